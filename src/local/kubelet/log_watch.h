// Tells those who follow logs when to look again. One inotify descriptor serves all of them; where
// the machine has none left, they look every now and then.
#pragma once

#include <memory>
#include <string>

#include "base/async.h"

namespace grapnel::local::kubelet {

class LogWatch {
  struct Impl;

 public:
  LogWatch(Executor executor, Clock& clock);
  ~LogWatch();
  LogWatch(const LogWatch&) = delete;
  LogWatch& operator=(const LogWatch&) = delete;

  // For one log, from now on. It may outlive the LogWatch.
  class Follower {
   public:
    Follower(std::shared_ptr<Impl> all, const std::string& path);
    ~Follower();
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;

    // Until something has changed since the last wait ended: of this log, or wake() was called.
    Task<> wait();
    void wake();

   private:
    friend LogWatch;
    Task<> wait_for_signal();
    std::shared_ptr<Impl> all_;
    std::string directory_;
    bool is_watched_ = false;
    bool has_news_ = false;
    Signal news_;
  };
  std::shared_ptr<Follower> follow(const std::string& path);
  // Something else has changed that decides how long a log goes on.
  void wake_all();

 private:
  std::shared_ptr<Impl> impl_;
  Spawned reading_;
};

}  // namespace grapnel::local::kubelet
