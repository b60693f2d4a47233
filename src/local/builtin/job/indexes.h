// A set of completion indexes, written as Kubernetes does: "1,3-5,7".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace grapnel::local {

class Indexes {
 public:
  // Nothing when the text is not of that form. Indexes at or above `bound` are left out.
  static std::optional<Indexes> parse(std::string_view text, int64_t bound);

  void insert(int64_t index);
  bool contains(int64_t index) const;
  int64_t size() const;
  bool empty() const { return ranges_.empty(); }
  std::string text() const;
  // The smallest index from `from` on that is not in the set.
  int64_t first_missing(int64_t from) const;
  // How many of these are in the other set too.
  int64_t count_common(const Indexes& other) const;
  bool operator==(const Indexes&) const = default;

 private:
  std::map<int64_t, int64_t> ranges_;  // first → last, apart from each other
};

}  // namespace grapnel::local
