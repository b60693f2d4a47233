// What several commands do with a manifest file and with errors.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "operators/experiment/manifest.h"

namespace grapnel::cli {

// A file's text and its name in messages; "-" is standard input.
struct NamedText {
  std::string text;
  std::string name;
};
Result<NamedText> read_text(const std::string& file);
Result<experiment::Manifest> read_manifest(const std::string& file);

// The name asked for, the manifest's own, or one from the file's and a short ending that is new
// each time.
Result<std::string> experiment_name(const experiment::Manifest& manifest,
                                    const ManifestOptions& options);

// Writes the error to standard error and returns the code.
int report(const Error& error, int code);

}  // namespace grapnel::cli
