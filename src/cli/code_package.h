// A directory of code on its way into a cluster without an image being built: packed into a
// ConfigMap, which pods unpack before they start.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/result.h"
#include "document/json.h"

namespace grapnel::cli {

struct CodeFile {
  std::string path;  // below the directory
  uint64_t size = 0;
  bool operator==(const CodeFile&) const = default;
};

// By path, without .git and what the .gitignore and .grapnelignore files in it leave out.
Result<std::vector<CodeFile>> code_files(const std::filesystem::path& directory);

// As a .tar.gz; the same files give the same bytes. One that no ConfigMap can hold is an Error that
// names the largest files.
Task<Result<std::string>> pack_code(std::filesystem::path directory);
// What that Error says.
std::string too_large_text(const std::string& directory, uint64_t packed,
                           std::vector<CodeFile> files);

std::string code_name(const std::string& experiment);  // of the ConfigMap
Json code_config_map(const std::string& experiment, const std::string& ns,
                     const std::string& packed);

}  // namespace grapnel::cli
