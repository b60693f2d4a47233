// A manifest on its way to a cluster.
#pragma once

#include <string>

#include "base/async.h"
#include "kube/client.h"
#include "operators/experiment/manifest.h"

namespace grapnel::cli {

struct SubmissionOptions {
  std::string name;
  std::string ns;
  // Its processes start in the current directory and find programs as the caller does.
  bool is_laptop = false;
};

// The Experiment as the server has it.
Task<Result<Json>> submit_manifest(kube::Client& client, const experiment::Manifest& manifest,
                                   SubmissionOptions options);

// An ending that makes a name new.
Result<std::string> name_with_ending(std::string_view stem);

}  // namespace grapnel::cli
