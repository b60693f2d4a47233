// The numbers of an operator, under the names that dashboards for controller-runtime and client-go
// know, plus those that planners count. Every series is there from the start, at zero.
//
// The library behind it is used in metrics.cpp alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/async.h"
#include "runtime/controller.h"
#include "runtime/plan.h"
#include "runtime/queue.h"

namespace grapnel::runtime {

class Manager;

class Metrics final : public QueueObserver, public ControllerObserver {
 public:
  explicit Metrics(std::string host = "");  // of the API server, as a label
  ~Metrics() override;

  // Follows what the manager does from now on; it must outlive the last text().
  void follow(Manager& manager);
  // Of those that planners count, a series for each object, the newest ten thousand are kept:
  // objects come and go for months.
  void count(const Count& count);
  // For kube::ClientOptions::observe.
  void observe_request(std::string_view method, int code, Duration took);

  // In Prometheus' text format.
  std::string text();

  // What queues and controllers tell.
  void added(size_t lane) override;
  void depth(size_t lane, size_t ready) override;
  void taken(size_t lane, Duration waited) override;
  void finished(size_t lane, Duration took) override;
  void retried(size_t lane) override;
  void planned(const std::string& controller, End end, Duration took) override;

 private:
  struct Impl;
  void add_controller(const Controller& controller);
  void refresh();
  std::unique_ptr<Impl> impl_;
};

}  // namespace grapnel::runtime
