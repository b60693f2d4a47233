#include "cli/object_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "api/experiment.h"
#include "api/fault_text.h"
#include "api/jobset.h"
#include "base/strings.h"
#include "operators/experiment/check.h"
#include "operators/jobset/defaults.h"
#include "operators/jobset/validate.h"

namespace grapnel::cli {
namespace {

using api::Faults;
using api::Path;

using Causes = std::vector<Cause>;

Causes causes_of(const Error& error) {
  if (!error.causes.empty()) return error.causes;
  return {{.field = "metadata", .message = error.message}};  // all else has its causes
}

// A field that is not known hides no other fault.
template <class Decode, class Rules>
Causes faults_of(const Decode& decode, const Rules& rules) {
  Causes causes;
  if (const auto strictly = decode(api::Unknown::kRefuse); !strictly) {
    causes = causes_of(strictly.error());
  }
  if (const auto decoded = decode(api::Unknown::kIgnore)) {
    std::ranges::move(rules(*decoded), std::back_inserter(causes));
  }
  return causes;
}

Causes faults_of_jobset(const Json& object) {
  const Json whole = jobset::defaulted_object(object);
  return faults_of([&](api::Unknown unknown) { return api::decode_jobset(whole, unknown); },
                   jobset::validate);
}

Causes faults_of_experiment(const Json& object) {
  return faults_of(
      [&](api::Unknown unknown) { return api::decode_resource<api::Experiment>(object, unknown); },
      [](const api::Experiment& experiment) {
        const auto checked = experiment::check(experiment);
        return checked ? Causes() : causes_of(checked.error());
      });
}

struct Checked {
  const kube::Kind& kind;
  Causes (*faults)(const Json& object);
};
const auto kOurs = std::to_array<Checked>(
    {{kube::kinds::kJobSet, faults_of_jobset}, {kube::kinds::kExperiment, faults_of_experiment}});

std::string_view kind_of(const Json& object) {
  return string_or(at(object, "kind"));
}

const Checked* find_check(const Json& object) {
  const auto* found = std::ranges::find_if(
      kOurs, [&](const Checked& each) { return each.kind.kind == kind_of(object); });
  return found == kOurs.end() ? nullptr : found;
}

// As the cluster would store it: with the name that it makes where it is asked to. Without any name
// the rest can be checked all the same.
Json with_name(Json object, Faults& faults) {
  const Path path("metadata");
  Json& metadata = object.as_object()["metadata"];
  if (!metadata.is_object()) {
    if (!metadata.is_null()) faults.wrong_type(path, JsonView(metadata), "an object");
    metadata = JsonObject();
  }
  Json& name = metadata.as_object()["name"];
  if (!string_or(&name).empty()) return object;
  const std::string beginning(string_or(find(metadata, "generateName")));
  if (beginning.empty()) faults.required({path, "name"});
  name = beginning.empty() ? "x" : beginning + "12345";
  return object;
}

// JobSet train; of one that is to be named by the cluster, how its name begins.
std::string name_of(const Json& object) {
  std::string_view name = string_or(at(object, "metadata", "name"));
  if (name.empty()) name = string_or(at(object, "metadata", "generateName"));
  const std::string_view kind = kind_of(object);
  return fmt::format("{}{}{}", kind.empty() ? "a document without a kind" : kind,
                     name.empty() ? "" : " ", name);
}

Causes faults_of(const Json& object, const Checked& ours) {
  Faults faults;
  const std::string_view found = string_or(at(object, "apiVersion"));
  const std::string version = ours.kind.api_version();
  if (found.empty()) {
    faults.required(Path("apiVersion"));
  } else if (found != version) {
    const std::string_view allowed[] = {version};
    faults.unsupported(Path("apiVersion"), std::string(found), allowed);
  }
  const Json named = with_name(object, faults);
  Causes causes = faults.causes();
  std::ranges::move(ours.faults(named), std::back_inserter(causes));
  return causes;
}

}  // namespace

bool holds_our_objects(const std::vector<YamlDocument>& documents) {
  return std::ranges::any_of(documents, [](const YamlDocument& document) {
    return find_check(document.value) != nullptr;
  });
}

Result<std::vector<std::string>> check_objects(const std::vector<YamlDocument>& documents,
                                               std::string_view file) {
  std::vector<std::string> valid;
  std::string faults;
  for (const auto& [object, positions] : documents) {
    const Checked* ours = find_check(object);
    if (ours == nullptr) {
      valid.push_back(
          fmt::format("{}: {} is not checked: its kind is not ours", file, name_of(object)));
      continue;
    }
    Causes causes = faults_of(object, *ours);
    if (causes.empty()) {
      valid.push_back(fmt::format("{}: {} is valid", file, name_of(object)));
      continue;
    }
    causes = api::sorted_faults(std::move(causes), positions);
    if (!faults.empty()) faults += "\n";
    faults += api::format_faults(file, causes, positions, api::Examples::kNone);
  }
  if (faults.empty()) return valid;
  return fail(Error{.reason = Reason::kInvalid, .message = std::move(faults)});
}

}  // namespace grapnel::cli
