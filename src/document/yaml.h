// YAML as kubectl reads it: YAML 1.1 scalars (yes/no/on/off are booleans, 0777 is octal, quoted
// numbers are strings), anchors and merge keys, several documents in one stream. Each value keeps
// its line and column, so that an error found later can point at it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "document/json.h"

namespace grapnel {

struct Position {
  int line = 0;    // from 1
  int column = 0;  // from 1
  bool operator==(const Position&) const = default;
};

// Where each field of a document stands (a member at its key), by its path as errors write it:
// spec.types.worker[0].count.
class Positions {
 public:
  void set(std::string path, Position position) { positions_[std::move(path)] = position; }
  // The position of that path, or of the nearest place above it that is in the document.
  Position find(std::string_view path) const;

 private:
  std::map<std::string, Position, std::less<>> positions_;
};

struct YamlDocument {
  Json value;
  Positions positions;
};

// At most this much text, and this much again that aliases make of it.
constexpr size_t kMaxYamlSize = size_t{32} << 20;

// All documents of a stream; empty ones are left out. Errors say line and column. Duplicate keys,
// cyclic aliases and alias bombs are errors.
Result<std::vector<YamlDocument>> parse_yaml(std::string_view text);

// As kubectl -o yaml prints: keys sorted, block style, strings quoted where YAML 1.1 would read
// them as something else.
std::string to_yaml(const Json& value);

}  // namespace grapnel
