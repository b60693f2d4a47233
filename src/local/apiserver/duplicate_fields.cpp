#include "local/apiserver/duplicate_fields.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

namespace grapnel::local {
namespace {

// Keys are compared as they are written: two spellings of one key ("a", "\\u0061") pass.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<std::string> scan() {
    for (; at_ < text_.size(); ++at_) step(text_[at_]);
    return std::move(found_);
  }

 private:
  struct Level {
    bool object = false;
    bool key_next = false;
    size_t index = 0;
    std::string_view key;
    absl::flat_hash_set<absl::string_view> keys;
  };

  void step(char c) {
    switch (c) {
      case '{':
        levels_.push_back({.object = true, .key_next = true});
        break;
      case '[':
        levels_.push_back({});
        break;
      case '}':
      case ']':
        if (!levels_.empty()) levels_.pop_back();
        break;
      case ',':
        if (levels_.empty()) break;
        levels_.back().key_next = levels_.back().object;
        ++levels_.back().index;
        break;
      case '"':
        string();
        break;
      default:
        break;
    }
  }

  void string() {
    const size_t start = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (levels_.empty() || !levels_.back().key_next) return;
    Level& level = levels_.back();
    level.key_next = false;
    level.key = text_.substr(start, at_ < text_.size() ? at_ - start : text_.size() - start);
    if (!level.keys.insert({level.key.data(), level.key.size()}).second) found_.push_back(path());
  }

  std::string path() const {
    std::string path;
    for (const Level& level : levels_) {
      if (!level.object) {
        path += fmt::format("[{}]", level.index);
        continue;
      }
      if (!path.empty()) path += ".";
      path += level.key;
    }
    return path;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Level> levels_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> duplicate_fields(std::string_view json) {
  return Scanner(json).scan();
}

}  // namespace grapnel::local
