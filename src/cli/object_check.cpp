#include "cli/object_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "api/fault_text.h"
#include "base/strings.h"
#include "controllers/table.h"

namespace grapnel::cli {
namespace {

using api::Faults;
using api::Path;

using controllers::Causes;
using controllers::OurKind;

std::string_view kind_of(const Json& object) {
  return string_or(at(object, "kind"));
}

const OurKind* find_check(const Json& object) {
  return controllers::find_kind(kind_of(object));
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

Causes faults_of(const Json& object, const OurKind& ours) {
  Faults faults;
  const std::string_view found = string_or(at(object, "apiVersion"));
  const std::string version = ours.type.kind.api_version();
  if (found.empty()) {
    faults.required(Path("apiVersion"));
  } else if (found != version) {
    const std::string_view allowed[] = {version};
    faults.unsupported(Path("apiVersion"), std::string(found), allowed);
  }
  const Json named = with_name(object, faults);
  Causes causes = faults.causes();
  const Json whole = ours.rules.defaulted ? ours.rules.defaulted(named) : named;
  std::ranges::move(ours.rules.faults(whole, {.unknown = api::Unknown::kRefuse}),
                    std::back_inserter(causes));
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
    const OurKind* ours = find_check(object);
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
