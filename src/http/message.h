// Requests and responses as values, for client and server alike.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace grapnel::http {

// In order, names compared without case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> list) : list_(list) {}
  void add(std::string name, std::string value);
  void set(std::string_view name, std::string value);  // replaces all of that name
  // The first of that name, "" when there is none.
  std::string_view get(std::string_view name) const;
  bool has(std::string_view name) const;
  size_t size() const { return list_.size(); }
  void keep_first(size_t count) { list_.resize(std::min(count, list_.size())); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<std::pair<std::string, std::string>> list_;
};

struct Request {
  std::string method = "GET";
  // For a client: an absolute URL. For a server: the path and query as received.
  std::string target;
  Headers headers;
  std::string body;
  // The longest the whole exchange may take; for a stream, until its head has come.
  Duration timeout = seconds(30);
  // For a stream: the longest silence; after it the connection counts as dead.
  std::optional<Duration> idle_timeout;
  // For a stream: it ends by itself, so it may have a connection of the pool.
  bool pooled = false;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

// A request's target split into path and query, both decoded. A '%' that starts no valid escape is
// taken literally. Of an absolute URL only the path and query are used.
struct Target {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;
  std::string_view get(std::string_view name) const;  // "" when missing
  bool has(std::string_view name) const;
};
Target parse_target(std::string_view target);

}  // namespace grapnel::http
