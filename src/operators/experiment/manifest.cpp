#include "operators/experiment/manifest.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "api/fault_text.h"
#include "base/strings.h"
#include "document/pattern.h"
#include "operators/experiment/components.h"

namespace grapnel::experiment {
namespace {

using api::Faults;
using api::Path;

constexpr auto kTopLevel =
    std::to_array<std::string_view>({"kind", "apiVersion", "name", "builder", "clone", "spec"});

void check_kind(JsonView document, Faults& faults) {
  static constexpr auto kKinds = std::to_array<std::string_view>({"AIchorManifest"});
  const auto kind = document.find("kind");
  if (!kind) return faults.required(Path("kind"));
  if (const auto text = kind->as_string(); !text) {
    faults.wrong_type(Path("kind"), *kind, "a string");
  } else if (*text != "AIchorManifest") {
    faults.unsupported(Path("kind"), std::string(*text), kKinds);
  }
}

// A builder makes the image that the experiment runs; Grapnel builds none.
void check_builder(JsonView document, Faults& faults) {
  const auto builder = document.find("builder");
  if (!builder || builder->is_null()) return;
  const Path path("builder");
  if (!builder->is_object()) return faults.wrong_type(path, *builder, "an object");
  const auto built = builder->find("image");
  const auto spec = document.find("spec");
  const auto used = spec ? spec->find("image") : std::nullopt;
  if (built && used && built->as_string() && used->as_string() &&
      *built->as_string() != *used->as_string()) {
    faults.invalid({path, "image"}, std::string(*built->as_string()),
                   fmt::format("must be spec.image, which is \"{}\"", *used->as_string()));
  }
}

void check_version(JsonView document, Faults& faults) {
  static constexpr auto kVersions = std::to_array<std::string_view>({"0.2.x"});
  const auto version = document.find("apiVersion");
  if (!version) return faults.required(Path("apiVersion"));
  const auto text = version->as_string();
  if (!text) {
    faults.wrong_type(Path("apiVersion"), *version, "a version such as 0.2.3");
  } else if (!matches_pattern(R"(^0\.2\.\d+$)", *text)) {
    faults.unsupported(Path("apiVersion"), std::string(*text), kVersions);
  }
}

void read_name(JsonView document, Manifest& manifest, Faults& faults) {
  const auto name = document.find("name");
  if (!name) return;
  api::decode_into(*name, manifest.name, Path("name"), {faults});
  const NameLimit limit = manifest.name_limit();
  if (const auto why = why_not_name(manifest.name, limit); !why.empty()) {
    const bool is_too_long = manifest.name.size() > limit.longest;
    faults.invalid(Path("name"), manifest.name,
                   is_too_long ? why : why + suggested_name(manifest.name));
  }
}

// "line 3, column 5: why" of a YAML error, as all other faults are told.
Error placed(std::string_view file, Error error) {
  int line = 0;
  int column = 0;
  int length = 0;
  if (std::sscanf(error.message.c_str(), "line %d, column %d: %n", &line, &column, &length) == 2 &&
      length > 0) {
    error.message = fmt::format("{}:{}:{}: {}", file, line, column, error.message.substr(length));
    return error;
  }
  return fail_in(file, error).value();
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, std::string_view file) {
  auto documents = parse_yaml(text);
  if (!documents) return fail(placed(file, documents.error()));
  if (documents->empty()) return fail(Reason::kUsage, "{}:1:1: the file is empty", file);
  if (documents->size() > 1) {
    return fail(Reason::kUsage, "{}:1:1: expected one manifest, found {} documents", file,
                documents->size());
  }
  const auto& [value, positions] = documents->front();
  const JsonView document(value);
  Faults faults;
  Manifest manifest;
  if (!document.is_object()) {
    faults.wrong_type(Path("manifest"), document, "an object");
  } else {
    check_kind(document, faults);
    check_version(document, faults);
    check_builder(document, faults);
    document.for_each_member([&](std::string_view key, JsonView) {
      if (std::ranges::find(kTopLevel, key) == kTopLevel.end()) {
        faults.unknown_field(Path(key), key, kTopLevel);
      }
      return true;
    });
    if (const auto spec = document.find("spec")) {
      api::decode_into(*spec, manifest.decoded, Path("spec"), {faults, api::Unknown::kRefuse});
      // Without a known operator nothing can be said about its types.
      const bool operator_is_known = std::ranges::none_of(
          faults.causes(), [](const Cause& c) { return c.field == "spec.operator"; });
      if (operator_is_known) manifest.components = validate(manifest.decoded, faults);
      manifest.spec = spec->to_json();
    } else {
      faults.required(Path("spec"));
    }
    read_name(document, manifest, faults);
  }
  if (!faults.empty()) {
    Error error = faults.error("manifest");
    error.causes = api::sorted_faults(std::move(error.causes), positions);
    error.message = api::format_faults(file, error.causes, positions);
    return fail(std::move(error));
  }
  return manifest;
}

Json experiment_of(const Manifest& manifest, std::string_view name, std::string_view ns) {
  return JsonObject{
      {"apiVersion", kube::kinds::kExperiment.api_version()},
      {"kind", kube::kinds::kExperiment.kind},
      {"metadata", JsonObject{{"name", name}, {"namespace", ns}}},
      {"spec", manifest.spec},
  };
}

}  // namespace grapnel::experiment
