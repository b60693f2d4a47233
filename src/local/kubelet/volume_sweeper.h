// Deletes the directories of claimed volumes: each goes with its PersistentVolume.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/async.h"
#include "base/random.h"
#include "kube/client.h"
#include "kube/meta.h"
#include "runtime/informer.h"

namespace grapnel::local::kubelet {

class VolumeSweeper {
 public:
  struct Options {
    Executor executor;
    kube::Client* client = nullptr;
    Clock* clock = nullptr;
    Random* random = nullptr;
    std::string directory;  // holds one for each volume, of the volume's name
    std::function<Task<Result<>>(std::string path)> discard;
  };
  explicit VolumeSweeper(Options options);
  VolumeSweeper(const VolumeSweeper&) = delete;
  VolumeSweeper& operator=(const VolumeSweeper&) = delete;

  Task<> follow() { return volumes_.run(); }
  Task<> run();

 private:
  struct Volume {
    kube::Meta meta;
    bool operator==(const Volume&) const = default;
  };
  Task<> sweep();

  Options options_;
  runtime::Informer<Volume> volumes_;
  Signal changed_;
  bool is_due_ = false;
};

}  // namespace grapnel::local::kubelet
