#include "document/list_splitter.h"

#include <bit>
#include <cstring>
#include <optional>
#include <utility>

namespace grapnel {
namespace {

constexpr size_t kKeep = size_t{1} << 20;

constexpr size_t kBlock = 64;

// Bit i: whether byte i of the block, with these bits set, is `wanted`.
uint64_t where(const char* block, unsigned char wanted, unsigned char bits = 0) {
  using Bytes = unsigned char __attribute__((vector_size(kBlock)));
  using Mask = bool __attribute__((ext_vector_type(kBlock)));
  Bytes bytes;
  std::memcpy(&bytes, block, kBlock);
  return std::bit_cast<uint64_t>(__builtin_convertvector((bytes | bits) == wanted, Mask));
}

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

ListSplitter::ListSplitter(OnItem on_item, ListSplitterOptions options)
    : on_item_(std::move(on_item)), options_(options) {}

Result<> ListSplitter::feed(std::string_view chunk) {
  if (error_) return fail(*error_);
  auto result = take(chunk);
  if (!result) error_ = result.error();
  return result;
}

Result<Json> ListSplitter::finish() {
  if (error_) return fail(*error_);
  if (place_ != Place::kEnd) {
    error_ = Error{.reason = Reason::kDecode,
                   .message = fmt::format("the list ends early, after {} bytes", offset_)};
    return fail(*error_);
  }
  return parse_json(skeleton_);
}

Result<> ListSplitter::take(std::string_view chunk) {
  for (size_t i = 0; i < chunk.size();) {
    if (place_ == Place::kInItem) {
      auto length = take_item(chunk.substr(i));
      if (!length) return fail(std::move(length.error()));
      i += *length;
      offset_ += *length;
      continue;
    }
    const bool between =
        place_ == Place::kFirstItem || place_ == Place::kAfterItem || place_ == Place::kNextItem;
    // The brace that opens an item is read again, as the first byte of its text.
    const bool opens_item = between && chunk[i] == '{' && place_ != Place::kAfterItem;
    auto result = between ? take_between_items(chunk[i]) : take_outside(chunk[i]);
    if (!result) return result;
    if (opens_item) continue;
    ++i;
    ++offset_;
  }
  return {};
}

// True while c is part of a string that began before it.
bool ListSplitter::follow_string(char c) {
  if (!in_string_) return false;
  if (escaped_) {
    escaped_ = false;
  } else if (c == '\\') {
    escaped_ = true;
  } else if (c == '"') {
    in_string_ = false;
  }
  return true;
}

Result<> ListSplitter::take_outside(char c) {
  if (place_ == Place::kEnd) return is_space(c) ? Result<>() : unexpected(c);
  if (place_ == Place::kStart) {
    if (is_space(c)) return {};
    if (c != '{') return unexpected(c);
    place_ = Place::kOutside;
    skeleton_ = c;
    depth_ = 1;
    return {};
  }
  if (skeleton_.size() >= options_.max_skeleton) {
    return fail(Reason::kDecode, "the list holds more than {} bytes outside of its items",
                options_.max_skeleton);
  }
  skeleton_ += c;
  if (follow_string(c)) {
    last_was_string_ = !in_string_;
    return {};
  }
  if (is_space(c)) return {};
  const bool after_string = std::exchange(last_was_string_, false);
  if (place_ == Place::kItemsKey) {
    place_ = c == '[' ? Place::kFirstItem : Place::kOutside;  // null is an empty list too
    if (c == '[') return {};
  }
  switch (c) {
    case '"':
      in_string_ = true;
      key_start_ = skeleton_.size() - 1;
      break;
    case ':': {
      const auto key = std::string_view(skeleton_).substr(key_start_);
      if (depth_ != 1 || !after_string || !key.starts_with("\"items\"")) break;
      if (std::exchange(seen_items_, true)) {
        return fail(Reason::kDecode, "the list has items twice");
      }
      place_ = Place::kItemsKey;
      break;
    }
    case '{':
    case '[':
      ++depth_;
      break;
    case '}':
    case ']':
      if (--depth_ == 0) place_ = Place::kEnd;
      break;
    default:
      break;
  }
  return {};
}

Result<> ListSplitter::take_between_items(char c) {
  if (is_space(c)) return {};
  if (c == '{' && place_ != Place::kAfterItem) {
    place_ = Place::kInItem;
    depth_ = 0;
    return {};
  }
  if (c == ',' && place_ == Place::kAfterItem) {
    place_ = Place::kNextItem;
    return {};
  }
  if (c == ']' && place_ != Place::kNextItem) {
    skeleton_ += c;
    place_ = Place::kOutside;
    depth_ = 1;
    return {};
  }
  return unexpected(c);
}

// Which bytes of a block come after a backslash that is not itself escaped.
uint64_t ListSplitter::escaped_in(const char* block) {
  uint64_t escaped = escaped_ ? 1 : 0;
  uint64_t slashes = where(block, '\\') & ~escaped;
  escaped_ = false;
  while (slashes != 0) {
    const uint64_t slash = slashes & -slashes;
    const uint64_t next = slash << 1;
    escaped |= next;
    escaped_ = slash >> 63 != 0;
    slashes &= ~(slash | next);
  }
  return escaped;
}

// Takes a block that the item does not end in. Every byte of a list comes through here, so they are
// looked at together.
bool ListSplitter::skip_block(const char* block) {
  const bool was_escaped = escaped_;
  const uint64_t escaped = escaped_in(block);
  uint64_t in_string = where(block, '"') & ~escaped;
  for (int shift = 1; shift < 64; shift *= 2) in_string ^= in_string << shift;
  if (in_string_) in_string = ~in_string;
  constexpr unsigned char kBraces = 0x20;  // makes braces of brackets
  const uint64_t counts = ~(in_string | escaped);
  const int opened = std::popcount(where(block, '{', kBraces) & counts);
  const int closed = std::popcount(where(block, '}', kBraces) & counts);
  if (depth_ <= closed) {
    escaped_ = was_escaped;
    return false;
  }
  depth_ += opened - closed;
  in_string_ = (in_string >> 63) != 0;
  return true;
}

// One past the item's end, which leaves depth_ at 0, or the end of the chunk.
size_t ListSplitter::item_end(std::string_view rest) {
  size_t i = 0;
  while (i < rest.size()) {
    if (i % kBlock == 0 && rest.size() - i >= kBlock && skip_block(rest.data() + i)) {
      i += kBlock;
      continue;
    }
    const char c = rest[i++];
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = !in_string_;
    } else if (in_string_) {
      continue;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      if (--depth_ == 0) break;
    }
  }
  return i;
}

// Reads an item to its end or to the end of the chunk; gives the number of bytes it took.
Result<size_t> ListSplitter::take_item(std::string_view rest) {
  const std::string_view part = rest.substr(0, item_end(rest));
  const bool whole = depth_ == 0;
  if (item_.size() + part.size() > options_.max_item) {
    return fail(Reason::kDecode, "an item of the list is larger than {} bytes", options_.max_item);
  }
  if (!whole) {
    item_ += part;
    return part.size();
  }
  place_ = Place::kAfterItem;
  Result<> taken;
  if (item_.empty()) {
    taken = on_item_(part);
  } else {
    item_ += part;
    taken = on_item_(item_);
    item_.clear();
    if (item_.capacity() > kKeep) item_.shrink_to_fit();
  }
  if (!taken) return fail(std::move(taken.error()));
  return part.size();
}

Failure ListSplitter::unexpected(char c) const {
  const auto byte = static_cast<unsigned char>(c);
  if (byte > ' ' && byte < 0x7f) {
    return fail(Reason::kDecode, "byte {} of the list: unexpected '{}'", offset_, c);
  }
  return fail(Reason::kDecode, "byte {} of the list: unexpected 0x{:02x}", offset_, byte);
}

}  // namespace grapnel
