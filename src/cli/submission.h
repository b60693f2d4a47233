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
  // Code that its processes get to start in; "": none. See code_package.h.
  std::string code = "";
};

// The Experiment that is sent to the server.
Json experiment_object(const experiment::Manifest& manifest, const SubmissionOptions& options);
// The Experiment as the server has it.
Task<Result<Json>> submit_manifest(kube::Client& client, const experiment::Manifest& manifest,
                                   SubmissionOptions options);

// The ConfigMap with code lives for as long as one of the experiments that use it.
Task<Result<>> own_code(kube::Client& client, kube::Where code, Json experiment);

// An ending that makes a name new; the stem is cut to what fits before it.
Result<std::string> name_with_ending(std::string_view stem, const experiment::NameLimit& limit);

}  // namespace grapnel::cli
