#include "api/codec.h"

#include <algorithm>

#include "base/strings.h"
#include "document/pattern.h"

namespace grapnel::api {
namespace {

std::string quoted_list(std::span<const std::string_view> names) {
  std::string text;
  for (const auto name : names) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", name);
  return text;
}

std::string plain_list(std::span<const std::string_view> names) {
  std::string text;
  for (const auto name : names) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

std::string Path::text() const {
  std::string text = parent_ != nullptr ? parent_->text() : "";
  if (key_.empty() && parent_ != nullptr) return text + fmt::format("[{}]", index_);
  if (!text.empty()) text += '.';
  return text + std::string(key_);
}

std::string detail::shown(JsonView value) {
  constexpr size_t kLongest = 80;
  std::string text = to_text(value.to_json());
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  return text;
}

void Faults::add(const Path& path, std::string message, std::string_view reason, std::string found,
                 std::string allowed) {
  causes_.push_back({.field = path.text(),
                     .message = std::move(message),
                     .reason = std::string(reason),
                     .found = std::move(found),
                     .allowed = std::move(allowed)});
}

void Faults::required(const Path& path) {
  add(path, "Required value", "FieldValueRequired");
}

void Faults::wrong_type(const Path& path, JsonView found, std::string_view expected) {
  const std::string text = detail::shown(found);
  add(path, fmt::format("Invalid value: {}: must be {}", text, expected), "FieldValueTypeInvalid",
      text, std::string(expected));
}

void Faults::invalid(const Path& path, std::string found, std::string_view why) {
  add(path, fmt::format("Invalid value: \"{}\": {}", found, why), "FieldValueInvalid",
      std::move(found));
}

void Faults::unsupported(const Path& path, std::string found,
                         std::span<const std::string_view> allowed) {
  add(path,
      fmt::format("Unsupported value: \"{}\": supported values: {}", found, quoted_list(allowed)),
      "FieldValueNotSupported", std::move(found), plain_list(allowed));
}

void Faults::unknown_field(const Path& path, std::string_view name,
                           std::span<const std::string_view> allowed) {
  const auto meant = nearest(name, allowed);
  std::string message = fmt::format("unknown field \"{}\"", name);
  if (!meant.empty()) message += fmt::format(", did you mean \"{}\"?", meant);
  add(path, std::move(message), "FieldValueForbidden", std::string(name), plain_list(allowed));
}

void Faults::unknown_type(const Path& path, std::string found, std::string_view op,
                          std::span<const std::string_view> allowed) {
  add(path, fmt::format("unknown type for operator '{}'", op), "FieldValueForbidden",
      std::move(found), plain_list(allowed));
}

void Faults::duplicate(const Path& path, std::string found) {
  add(path, fmt::format("Duplicate value: \"{}\"", found), "FieldValueDuplicate", std::move(found));
}

void Faults::forbidden(const Path& path, std::string_view why) {
  add(path, fmt::format("Forbidden: {}", why), "FieldValueForbidden");
}

void Faults::not_available(const Path& path, std::string_view what,
                           std::span<const std::string_view> available) {
  add(path,
      fmt::format("{} is not available in this version; available: {}", what,
                  plain_list(available)),
      "FieldValueForbidden");
}

Error Faults::error(std::string_view what) const {
  std::string message = what.empty() ? "" : fmt::format("{} is invalid: ", what);
  for (size_t i = 0; i < causes_.size(); ++i) {
    message += fmt::format("{}{}: {}", i == 0 ? "" : "; ", causes_[i].field, causes_[i].message);
  }
  return {.reason = Reason::kInvalid, .message = std::move(message), .causes = causes_};
}

void check_limits(const FieldInfo& info, std::string_view text, const Path& path, Faults& faults) {
  const auto length = static_cast<int64_t>(text.size());
  if (info.min_length && length < *info.min_length) {
    faults.invalid(path, std::string(text),
                   fmt::format("must be at least {} characters", *info.min_length));
  }
  if (info.max_length && length > *info.max_length) {
    faults.invalid(path, std::string(text.substr(0, 80)),
                   fmt::format("must be no more than {} characters", *info.max_length));
  }
  if (!info.pattern.empty() && !matches_pattern(info.pattern, text)) {
    faults.invalid(path, std::string(text),
                   info.pattern_words.empty() ? fmt::format("must match {}", info.pattern)
                                              : std::string(info.pattern_words));
  }
}

void check_limits(const FieldInfo& info, int64_t number, const Path& path, Faults& faults) {
  if (info.minimum && number < *info.minimum) {
    faults.invalid(path, std::to_string(number),
                   fmt::format("must be greater than or equal to {}", *info.minimum));
  }
  if (info.maximum && number > *info.maximum) {
    faults.invalid(path, std::to_string(number),
                   fmt::format("must be less than or equal to {}", *info.maximum));
  }
}

void check_item_limits(const FieldInfo& info, size_t items, const Path& path, Faults& faults) {
  const auto count = static_cast<int64_t>(items);
  if (info.min_items && count < *info.min_items) {
    faults.invalid(path, std::to_string(items),
                   fmt::format("must have at least {} items", *info.min_items));
  }
  if (info.max_items && count > *info.max_items) {
    faults.invalid(path, std::to_string(items),
                   fmt::format("must have at most {} items", *info.max_items));
  }
}

}  // namespace grapnel::api
