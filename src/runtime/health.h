// /healthz, /livez, /readyz and /metrics: what a kubelet and Prometheus ask.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/message.h"
#include "http/server.h"

namespace grapnel::runtime {

class Health {
 public:
  // Nothing when all is well, otherwise what is not.
  using Check = std::function<std::optional<std::string>()>;

  // The process lives: a check that fails has it restarted.
  void add_live(std::string name, Check check) { live_.emplace_back(std::move(name), check); }
  // It may be sent work.
  void add_ready(std::string name, Check check) { ready_.emplace_back(std::move(name), check); }
  // What is as it should be and yet worth knowing, a line each: shown beside the checks of
  // readiness.
  void add_ready_notes(std::function<std::vector<std::string>()> notes) {
    notes_.push_back(std::move(notes));
  }
  // The text of /metrics; without it there is no such path.
  void set_metrics(std::function<std::string()> metrics) { metrics_ = std::move(metrics); }

  http::Response answer(const http::Request& request) const;
  // For start_server(); this object must outlive the server.
  http::Handler handler() const;

 private:
  using Checks = std::vector<std::pair<std::string, Check>>;
  static http::Response run(const Checks& checks, const std::vector<std::string>& notes,
                            std::string_view name, const http::Target& target);

  Checks live_;
  Checks ready_;
  std::vector<std::function<std::vector<std::string>()>> notes_;
  std::function<std::string()> metrics_;
};

}  // namespace grapnel::runtime
