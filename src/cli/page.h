// The web pages that an experiment may have, and where they are served.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/experiment.h"

namespace grapnel::cli {

struct Page {
  std::string role;  // of the process that serves it; "": the first
  uint16_t port = 0;
  std::string path = "/";
};
// what: ray, tensorboard or jupyter. An Error says how to ask for it in the manifest.
Result<Page> page_of(const api::Experiment& experiment, std::string_view what);

}  // namespace grapnel::cli
