// Decoding and encoding of described types. A decoder reports every fault at once, each with the
// path of the field, what was found and what is allowed.
#pragma once

#include <algorithm>
#include <boost/describe/enum_from_string.hpp>
#include <boost/describe/enum_to_string.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/mp11/algorithm.hpp>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "api/describe.h"
#include "base/result.h"
#include "document/json_view.h"
#include "kube/meta.h"

namespace grapnel::api {

// Where a decoder is; built on the stack and written out only for a fault.
class Path {
 public:
  Path() = default;
  explicit Path(std::string_view root) : key_(root) {}
  Path(const Path& parent, std::string_view key) : parent_(&parent), key_(key) {}
  Path(const Path& parent, size_t index) : parent_(&parent), index_(index) {}
  std::string text() const;  // spec.replicatedJobs[0].name

 private:
  const Path* parent_ = nullptr;
  std::string_view key_;
  size_t index_ = 0;
};

// Collects faults, in the words of Kubernetes' field errors.
class Faults {
 public:
  void required(const Path& path);
  void wrong_type(const Path& path, JsonView found, std::string_view expected);
  void invalid(const Path& path, std::string found, std::string_view why);
  void unsupported(const Path& path, std::string found, std::span<const std::string_view> allowed);
  void unknown_field(const Path& path, std::string_view name,
                     std::span<const std::string_view> allowed);
  // A member that another operator would take, or that is spelled in another case.
  void unknown_type(const Path& path, std::string found, std::string_view op,
                    std::span<const std::string_view> allowed);
  void duplicate(const Path& path, std::string found);
  void forbidden(const Path& path, std::string_view why);
  // What another version may know.
  void not_available(const Path& path, std::string_view what,
                     std::span<const std::string_view> available);

  bool empty() const { return causes_.empty(); }
  const std::vector<Cause>& causes() const { return causes_; }
  // One Invalid error with all of them.
  Error error(std::string_view what) const;

 private:
  void add(const Path& path, std::string message, std::string_view reason, std::string found = "",
           std::string allowed = "");
  std::vector<Cause> causes_;
};

enum class Unknown { kIgnore, kRefuse };

struct DecodeContext {
  Faults& faults;
  Unknown unknown = Unknown::kIgnore;
};

// Limits of one field's value; faults go to the context.
void check_limits(const FieldInfo& info, std::string_view text, const Path& path, Faults& faults);
void check_limits(const FieldInfo& info, int64_t number, const Path& path, Faults& faults);
void check_item_limits(const FieldInfo& info, size_t items, const Path& path, Faults& faults);

namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<std::map<std::string, T>> = true;

template <class E>
std::vector<std::string_view> enumerator_names() {
  std::vector<std::string_view> names;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>(
      [&](auto e) { names.emplace_back(e.name); });
  return names;
}

// The members of T by name, for unknown-field messages.
template <Described T>
std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  for_each_field<T>([&](const auto& f) { names.push_back(f.info().name); });
  return names;
}

std::string shown(JsonView value);  // as an error quotes it, shortened

}  // namespace detail

template <class T>
void decode_into(JsonView value, T& out, const Path& path, DecodeContext context,
                 const FieldInfo& info = {});

template <Described T>
void decode_struct(JsonView value, T& out, const Path& path, DecodeContext context) {
  if (!value.is_object()) {
    context.faults.wrong_type(path, value, "an object");
    return;
  }
  for_each_field<T>([&](const auto& f) {
    const FieldInfo& info = f.info();
    const Path here(path, info.name);
    const auto member = value.find(info.name);
    if (member && !member->is_null()) {
      decode_into(*member, out.*f.member(), here, context, info);
    } else if (info.is_required) {
      context.faults.required(here);
    }
  });
  if (context.unknown == Unknown::kIgnore) return;
  const auto names = detail::field_names<T>();
  value.for_each_member([&](std::string_view key, JsonView) {
    if (std::find(names.begin(), names.end(), key) == names.end()) {
      context.faults.unknown_field(Path(path, key), key, names);
    }
    return true;
  });
}

template <class T>
void decode_into(JsonView value, T& out, const Path& path, DecodeContext context,
                 const FieldInfo& info) {
  if constexpr (Described<T>) {
    decode_struct(value, out, path, context);
  } else if constexpr (detail::is_optional<T>) {
    decode_into(value, out.emplace(), path, context, info);
  } else if constexpr (detail::is_vector<T>) {
    if (!value.is_array()) return context.faults.wrong_type(path, value, "a list");
    out.clear();
    value.for_each_element([&](size_t index, JsonView element) {
      decode_into(element, out.emplace_back(), Path(path, index), context);
      return true;
    });
    check_item_limits(info, out.size(), path, context.faults);
  } else if constexpr (detail::is_map<T>) {
    if (!value.is_object()) return context.faults.wrong_type(path, value, "an object");
    out.clear();
    value.for_each_member([&](std::string_view key, JsonView member) {
      decode_into(member, out[std::string(key)], Path(path, key), context);
      return true;
    });
  } else if constexpr (std::is_same_v<T, Json>) {
    out = value.to_json();
  } else if constexpr (std::is_same_v<T, bool>) {
    const auto b = value.as_bool();
    if (!b) return context.faults.wrong_type(path, value, "a boolean");
    out = *b;
  } else if constexpr (std::is_integral_v<T>) {
    const auto n = value.as_int();
    if (!n || !std::in_range<T>(*n)) return context.faults.wrong_type(path, value, "an integer");
    out = static_cast<T>(*n);
    check_limits(info, *n, path, context.faults);
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto n = value.as_double();
    if (!n) return context.faults.wrong_type(path, value, "a number");
    out = *n;
  } else if constexpr (std::is_same_v<T, Time>) {
    const auto text = value.as_string();
    const auto time = text ? parse_time(*text) : std::nullopt;
    if (!time) return context.faults.wrong_type(path, value, "a time such as 2026-01-31T12:00:00Z");
    out = *time;
  } else if constexpr (std::is_enum_v<T>) {
    const auto text = value.as_string();
    if (!text) return context.faults.wrong_type(path, value, "a string");
    if (!boost::describe::enum_from_string(std::string(*text).c_str(), out)) {
      context.faults.unsupported(
          path, std::string(*text),
          info.offered.empty() ? detail::enumerator_names<T>() : info.offered);
    }
  } else {
    static_assert(std::is_constructible_v<T, std::string_view>,
                  "a type that codec.h does not know");
    const auto text = value.as_string();
    if (!text) return context.faults.wrong_type(path, value, "a string");
    out = T(*text);
    check_limits(info, *text, path, context.faults);
  }
}

// The text of a described enumerator.
template <class E>
std::string_view name_of(E value) {
  return boost::describe::enum_to_string(value, "");
}

template <class T>
Json encode(const T& value);

template <class T>
bool is_left_out(const T& value) {
  if constexpr (detail::is_optional<T>) return !value.has_value();
  if constexpr (detail::is_vector<T> || detail::is_map<T>) return value.empty();
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Interned>) return value.empty();
  if constexpr (std::is_same_v<T, Json>) return value.is_null();
  return false;
}

template <class T>
Json encode(const T& value) {
  if constexpr (Described<T>) {
    JsonObject object;
    for_each_field<T>([&](const auto& f) {
      const auto& member = value.*f.member();
      if (f.info().is_required || !is_left_out(member)) object[f.info().name] = encode(member);
    });
    return object;
  } else if constexpr (detail::is_optional<T>) {
    return value ? encode(*value) : Json();
  } else if constexpr (detail::is_vector<T>) {
    JsonArray array;
    for (const auto& element : value) array.push_back(encode(element));
    return array;
  } else if constexpr (detail::is_map<T>) {
    JsonObject object;
    for (const auto& [key, member] : value) object[key] = encode(member);
    return object;
  } else if constexpr (std::is_same_v<T, Time>) {
    return Json(format_time(value));
  } else if constexpr (std::is_enum_v<T>) {
    return Json(name_of(value));
  } else if constexpr (std::is_same_v<T, Json> || std::is_arithmetic_v<T>) {
    return Json(value);
  } else {
    return Json(std::string_view(value));
  }
}

// Field by field; caches ask it to tell news from repeats.
template <class T>
bool equal_values(const T& a, const T& b) {
  if constexpr (Described<T>) {
    bool same = true;
    for_each_field<T>(
        [&](const auto& f) { same = same && equal_values(a.*f.member(), b.*f.member()); });
    return same;
  } else if constexpr (detail::is_optional<T>) {
    return a.has_value() == b.has_value() && (!a || equal_values(*a, *b));
  } else if constexpr (detail::is_vector<T>) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return equal_values(x, y); });
  } else if constexpr (std::is_same_v<T, Json>) {
    return equal(a, b);
  } else {
    return a == b;
  }
}

template <Described T>
Result<T> decode(JsonView value, Unknown unknown = Unknown::kIgnore, std::string_view root = "") {
  T out;
  Faults faults;
  decode_struct(value, out, Path(root), {faults, unknown});
  if (!faults.empty()) return fail(faults.error(root));
  return out;
}

// A whole object of one of our kinds. Spec and status are as the API server stored them.
template <class T>
Result<T> decode_resource(JsonView object, Unknown unknown = Unknown::kIgnore) {
  kube::MetaOptions kept;
  if constexpr (requires { Resource<T>::kept_metadata(); }) kept = Resource<T>::kept_metadata();
  auto meta = kube::decode_meta(object, kept);
  if (!meta) return fail(meta.error());
  T out;
  out.meta = std::move(*meta);
  Faults faults;
  const auto spec = object.find("spec");
  if (spec) decode_struct(*spec, out.spec, Path("spec"), {faults, unknown});
  if (const auto status = object.find("status"); status && !status->is_null()) {
    decode_struct(*status, out.status, Path("status"), {faults, Unknown::kIgnore});
  }
  if (!spec) faults.required(Path("spec"));
  if (!faults.empty()) {
    return fail(
        faults.error(std::string(Resource<T>::info().kind.kind) + " " + out.meta.key.text()));
  }
  return out;
}

}  // namespace grapnel::api
