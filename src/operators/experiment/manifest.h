// The file a data scientist writes: an AIchorManifest.
#pragma once

#include <string>
#include <string_view>

#include "api/experiment.h"
#include "document/yaml.h"
#include "operators/experiment/names.h"

namespace grapnel::experiment {

struct Manifest {
  std::string name;  // "" when the manifest gives none
  Json spec;         // as written, to be sent as an Experiment's spec
  api::ExperimentSpec decoded;
  Components components = {};

  // Of whatever its experiment is to be called.
  NameLimit name_limit() const { return experiment::name_limit(decoded, components); }
};

// Reads and checks a manifest. An error has one cause for each fault, and its message is for a
// person: file, line, column, path, what was found, what is allowed.
Result<Manifest> parse_manifest(std::string_view text, std::string_view file);

// The Experiment resource of a manifest.
Json experiment_of(const Manifest& manifest, std::string_view name, std::string_view ns);

}  // namespace grapnel::experiment
