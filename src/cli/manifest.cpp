#include "cli/manifest.h"

#include <filesystem>
#include <iostream>
#include <iterator>

#include "base/strings.h"
#include "cli/paths.h"
#include "cli/submission.h"

namespace grapnel::cli {
namespace {

// "My Manifest.yaml" → "my-manifest"; never empty.
std::string stem_of(const std::string& file) {
  std::string stem;
  for (const char c : to_lower(std::filesystem::path(file).stem().string())) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (letter) {
      stem += c;
    } else if (!stem.empty() && stem.back() != '-') {
      stem += '-';
    }
  }
  if (stem.empty() || (stem[0] >= '0' && stem[0] <= '9')) stem = "experiment";
  return stem;
}

}  // namespace

Result<NamedText> read_text(const std::string& file) {
  if (file == "-") {
    return NamedText{{std::istreambuf_iterator<char>(std::cin), {}}, "standard input"};
  }
  auto text = read_file(file);
  if (!text) return fail(std::move(text.error()));
  return NamedText{std::move(*text), file};
}

Result<experiment::Manifest> read_manifest(const std::string& file) {
  const auto read = read_text(file);
  if (!read) return fail(read.error());
  return experiment::parse_manifest(read->text, read->name);
}

Result<std::string> experiment_name(const experiment::Manifest& manifest,
                                    const ManifestOptions& options) {
  const std::string& given = options.name.empty() ? manifest.name : options.name;
  if (!given.empty()) {
    if (const auto why = experiment::why_not_name(given, manifest.name_limit()); !why.empty()) {
      return fail(Reason::kUsage, "'{}' cannot be the name of an experiment: {}", given, why);
    }
    return given;
  }
  return name_with_ending(stem_of(options.file), manifest.name_limit());
}

int report(const Error& error, int code) {
  std::cerr << error.message << "\n";
  return code;
}

}  // namespace grapnel::cli
