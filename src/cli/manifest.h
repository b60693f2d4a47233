// What several commands do with a manifest file and with errors.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "operators/experiment/manifest.h"

namespace grapnel::cli {

// "-" is standard input.
Result<experiment::Manifest> read_manifest(const std::string& file);

// The name asked for, the manifest's own, or one from the file's and a short ending that is new
// each time.
Result<std::string> experiment_name(const experiment::Manifest& manifest,
                                    const ManifestOptions& options);

// The CustomResourceDefinitions of our kinds.
std::vector<Json> crds();

// Writes the error to standard error and returns the code.
int report(const Error& error, int code);

}  // namespace grapnel::cli
