#include "operators/experiment/manifest.h"

#include <algorithm>
#include <array>

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

}  // namespace

std::string format_faults(std::string_view file, const std::vector<Cause>& causes,
                          const Positions& positions) {
  std::string text;
  for (const auto& cause : causes) {
    const Position at = positions.find(cause.field);
    text += fmt::format("{}{}:{}:{}: {}: {}", text.empty() ? "" : "\n", file, at.line, at.column,
                        cause.field, cause.message);
    if (cause.found.empty() || cause.allowed.empty()) continue;
    text += fmt::format("\n  found    {}\n  allowed  {}", cause.found, cause.allowed);
    if (cause.allowed.find(',') == std::string::npos &&
        to_lower(cause.found) == to_lower(cause.allowed)) {
      text += cause.allowed == to_lower(cause.allowed) ? "   (lower case)" : "   (mind the case)";
    }
  }
  return text;
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view file) {
  auto documents = parse_yaml(text);
  if (!documents) return fail_in(file, documents.error());
  if (documents->size() != 1) {
    return fail(Reason::kUsage, "{}: expected one manifest, found {} documents", file,
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
    document.for_each_member([&](std::string_view key, JsonView) {
      if (std::ranges::find(kTopLevel, key) == kTopLevel.end()) {
        faults.unknown_field(Path(key), key, kTopLevel);
      }
      return true;
    });
    if (const auto name = document.find("name")) {
      api::decode_into(*name, manifest.name, Path("name"), {faults});
      if (const auto why = why_not_dns1035_label(manifest.name); !why.empty()) {
        faults.invalid(Path("name"), manifest.name, why);
      }
    }
    if (const auto spec = document.find("spec")) {
      api::decode_into(*spec, manifest.decoded, Path("spec"), {faults, api::Unknown::kRefuse});
      // Without a known operator nothing can be said about its types.
      const bool operator_is_known = std::ranges::none_of(
          faults.causes(), [](const Cause& c) { return c.field == "spec.operator"; });
      if (operator_is_known) validate(manifest.decoded, faults);
      manifest.spec = spec->to_json();
    } else {
      faults.required(Path("spec"));
    }
  }
  if (!faults.empty()) {
    Error error = faults.error("manifest");
    error.message = format_faults(file, faults.causes(), positions);
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
