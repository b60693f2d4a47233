// The controllers that every Kubernetes has, so the laptop cluster needs them, too. They speak to
// the API server over HTTP like all others.
#pragma once

#include <memory>
#include <string>

#include "base/async.h"
#include "base/random.h"
#include "base/result.h"
#include "kube/client.h"

namespace grapnel::local {

struct BuiltinOptions {
  std::string authority_pem;     // by which pods know the API server
  std::string volume_directory;  // of volumes made for claims
};

class BuiltinControllers {
 public:
  // All given must outlive it.
  BuiltinControllers(Executor executor, kube::Client& client, Clock& clock, Random& random,
                     BuiltinOptions options);
  ~BuiltinControllers();

  Task<Result<>> run();  // until stop(), or until it cannot go on
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grapnel::local
