// Counts how often a rare branch is taken, so that the simulator can tell whether any of its
// schedules ever came there. A hit is one increment; nobody reads it in production.
//
//   Probe kExpired("watch: the version has expired");  // in the anonymous namespace of a source
//   kExpired.hit();
//
// Of one thread, as all that is counted here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace grapnel {

class Probe {
 public:
  explicit Probe(std::string_view name) : name_(name), next_(first_) { first_ = this; }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  void hit() { ++hits_; }
  std::string_view name() const { return name_; }
  uint64_t hits() const { return hits_; }

  // All of the program, whether they were hit or not, by name.
  static std::vector<const Probe*> all();

 private:
  std::string_view name_;
  uint64_t hits_ = 0;
  const Probe* next_;
  static inline constinit const Probe* first_ = nullptr;
};

}  // namespace grapnel
