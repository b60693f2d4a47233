#include <charconv>
#include <string>
#include <vector>

#include "base/strings.h"
#include "document/json_extent.h"
#include "document/patch.h"

namespace grapnel {
namespace {

// As the API server bounds it. The work is what operations copy or shift, in bytes: without a bound
// a short patch could double a document again and again.
constexpr size_t kMaxOperations = 10'000;
constexpr size_t kMaxWork = size_t{256} << 20;

template <class... Args>
Failure refuse(fmt::format_string<Args...> text, Args&&... args) {
  return fail(Reason::kInvalid, text, std::forward<Args>(args)...);
}

// A JSON pointer (RFC 6901), taken apart.
using Pointer = std::vector<std::string>;

std::optional<std::string> unescape(std::string_view token) {
  std::string text;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      text += token[i];
      continue;
    }
    if (++i == token.size() || (token[i] != '0' && token[i] != '1')) return std::nullopt;
    text += token[i] == '0' ? '~' : '/';
  }
  return text;
}

Result<Pointer> parse_pointer(std::string_view text) {
  Pointer pointer;
  if (text.empty()) return pointer;
  if (text.front() != '/') return refuse("\"{}\" is no JSON pointer: it must start with '/'", text);
  for (const std::string_view token : split(text.substr(1), '/')) {
    auto plain = unescape(token);
    if (!plain) return refuse("\"{}\" is no JSON pointer: '~' must be ~0 or ~1", text);
    pointer.push_back(std::move(*plain));
  }
  return pointer;
}

// An index below `end`, without sign or leading zeros.
std::optional<size_t> parse_index(std::string_view text, size_t end) {
  size_t index = 0;
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return index < end ? std::optional(index) : std::nullopt;
}

class Patcher {
 public:
  explicit Patcher(const Json& document) : document_(document) {}

  Result<> apply(const Json& operation);
  Json take() { return std::move(document_); }

 private:
  Json* find(const Pointer& pointer, size_t length);
  Json* find(const Pointer& pointer) { return find(pointer, pointer.size()); }
  Result<> add(const Pointer& pointer, Json value);
  Result<Json> remove(const Pointer& pointer);
  Result<> replace(const Pointer& pointer, Json value);
  Result<> move(const Pointer& from, const Pointer& to);
  Result<> copy(const Pointer& from, const Pointer& to);
  Result<> work(size_t bytes);

  Json document_;
  size_t worked_ = 0;
};

Result<> Patcher::work(size_t bytes) {
  worked_ += bytes;
  if (worked_ <= kMaxWork) return {};
  return fail(Reason::kRequestEntityTooLarge, "the patch copies or moves too much");
}

Json* Patcher::find(const Pointer& pointer, size_t length) {
  Json* place = &document_;
  for (size_t i = 0; i < length && place != nullptr; ++i) {
    if (JsonObject* object = place->if_object()) {
      place = object->if_contains(pointer[i]);
    } else if (JsonArray* array = place->if_array()) {
      const auto index = parse_index(pointer[i], array->size());
      place = index ? &(*array)[*index] : nullptr;
    } else {
      place = nullptr;
    }
  }
  return place;
}

Result<> Patcher::add(const Pointer& pointer, Json value) {
  if (pointer.size() + extent_of(value).height > kMaxJsonDepth) {
    return refuse("the patch makes the document deeper than {}", kMaxJsonDepth);
  }
  if (pointer.empty()) {
    document_ = std::move(value);
    return {};
  }
  Json* parent = find(pointer, pointer.size() - 1);
  if (parent == nullptr) return refuse("the parent is missing");
  if (JsonObject* object = parent->if_object()) {
    (*object)[pointer.back()] = std::move(value);
    return {};
  }
  JsonArray* array = parent->if_array();
  if (array == nullptr) return refuse("the parent is neither object nor array");
  const auto index =
      pointer.back() == "-" ? array->size() : parse_index(pointer.back(), array->size() + 1);
  if (!index) return refuse("\"{}\" is no index in an array of {}", pointer.back(), array->size());
  if (auto ok = work((array->size() - *index) * sizeof(Json)); !ok) return ok;
  array->insert(array->begin() + *index, std::move(value));
  return {};
}

Result<Json> Patcher::remove(const Pointer& pointer) {
  if (pointer.empty()) return refuse("the whole document cannot be removed");
  Json* parent = find(pointer, pointer.size() - 1);
  Json* place = find(pointer);
  if (place == nullptr) return refuse("there is nothing");
  Json value = std::move(*place);
  if (JsonObject* object = parent->if_object()) {
    object->erase(pointer.back());
    return value;
  }
  JsonArray& array = parent->get_array();
  if (auto ok = work(array.size() * sizeof(Json)); !ok) return fail(std::move(ok.error()));
  array.erase(array.begin() + (place - array.data()));
  return value;
}

Result<> Patcher::replace(const Pointer& pointer, Json value) {
  Json* place = find(pointer);
  // The RFC asks that there be something; the API server takes a missing member, and so do we, for
  // patches that work there must work here.
  Json* parent = pointer.empty() ? nullptr : find(pointer, pointer.size() - 1);
  if (place == nullptr && (parent == nullptr || !parent->is_object())) {
    return refuse("there is nothing");
  }
  if (place == nullptr) return add(pointer, std::move(value));
  if (pointer.size() + extent_of(value).height > kMaxJsonDepth) {
    return refuse("the patch makes the document deeper than {}", kMaxJsonDepth);
  }
  *place = std::move(value);
  return {};
}

Result<> Patcher::move(const Pointer& from, const Pointer& to) {
  if (from == to) return find(from) == nullptr ? refuse("there is nothing") : Result<>();
  if (to.size() > from.size() && std::equal(from.begin(), from.end(), to.begin())) {
    return refuse("a value cannot be moved into itself");
  }
  auto value = remove(from);
  if (!value) return fail(std::move(value.error()));
  if (auto ok = work(extent_of(*value).bytes); !ok) return ok;
  return add(to, std::move(*value));
}

Result<> Patcher::copy(const Pointer& from, const Pointer& to) {
  const Json* value = find(from);
  if (value == nullptr) return refuse("there is nothing");
  if (auto ok = work(extent_of(*value).bytes); !ok) return ok;
  return add(to, Json(*value));
}

Result<> Patcher::apply(const Json& operation) {
  const std::string_view op = string_or(grapnel::find(operation, "op"));
  const auto pointer_at = [&](std::string_view key) -> Result<Pointer> {
    const Json* text = grapnel::find(operation, key);
    if (text == nullptr || !text->is_string()) return refuse("{} must be a string", key);
    return parse_pointer(string_or(text));
  };
  auto path = pointer_at("path");
  if (!path) return fail(std::move(path.error()));
  if (op == "remove") {
    auto removed = remove(*path);
    return removed ? Result<>() : fail(std::move(removed.error()));
  }
  if (op == "move" || op == "copy") {
    auto from = pointer_at("from");
    if (!from) return fail(std::move(from.error()));
    return op == "move" ? move(*from, *path) : copy(*from, *path);
  }
  if (op != "add" && op != "replace" && op != "test") return refuse("unknown operation \"{}\"", op);
  const Json* value = grapnel::find(operation, "value");
  if (value == nullptr) return refuse("value is missing");
  if (op == "add") return add(*path, *value);
  if (op == "replace") return replace(*path, *value);
  // A test for null holds where there is nothing, as in the API server: so a patch can ask that a
  // field be absent.
  const Json* place = find(*path);
  const bool holds = place == nullptr ? value->is_null() : equal(*place, *value);
  return holds ? Result<>() : refuse("the test fails");
}

}  // namespace

Result<> apply_json_patch(Json& target, const Json& patch) {
  const JsonArray* operations = patch.if_array();
  if (operations == nullptr) {
    return fail(Reason::kBadRequest, "a JSON patch must be an array of operations");
  }
  if (operations->size() > kMaxOperations) {
    return fail(Reason::kRequestEntityTooLarge, "a JSON patch has at most {} operations, not {}",
                kMaxOperations, operations->size());
  }
  Patcher patcher(target);
  for (size_t i = 0; i < operations->size(); ++i) {
    const Json& operation = (*operations)[i];
    if (auto done = patcher.apply(operation); !done) {
      return fail_in(fmt::format("operation {} ({} {})", i, string_or(find(operation, "op"), "?"),
                                 string_or(find(operation, "path"), "?")),
                     std::move(done.error()));
    }
  }
  target = patcher.take();
  return {};
}

}  // namespace grapnel
