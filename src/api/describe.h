// How an API type is described, once. From a description come its decoder and encoder (codec.h),
// its CRD schema and its reference page (schema.h).
//
//   struct Network {
//     bool publish_not_ready_addresses = true;
//     std::optional<std::string> subdomain;
//   };
//   template <>
//   struct Description<Network> {
//     static constexpr std::string_view kDoc = "How pods find each other.";
//     static auto fields() {
//       return std::tuple{
//           field("publishNotReadyAddresses", &Network::publish_not_ready_addresses,
//                 "Names resolve before pods are ready.").defaulted(),
//           field("subdomain", &Network::subdomain, "Defaults to the JobSet's name.")
//               .max_length(63),
//       };
//     }
//   };
//
// A default is the member's own initialiser: `defaulted()` only publishes it. Enums are described
// with BOOST_DEFINE_ENUM_CLASS, and an enumerator is spelled as in the API. What is carried through
// whole (pod templates) is a Json member.
#pragma once

#include <boost/describe/enum.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "document/json.h"
#include "kube/kind.h"

namespace grapnel::api {

// A CEL rule that the API server checks.
struct Rule {
  std::string_view expression;
  std::string_view message;
};

struct FieldInfo {
  std::string_view name;
  std::string_view doc;
  bool is_required = false;
  bool is_defaulted = false;
  std::optional<int64_t> minimum;
  std::optional<int64_t> maximum;
  std::optional<int64_t> min_length;  // of a string
  std::optional<int64_t> max_length;
  std::optional<int64_t> min_items;  // of a list
  std::optional<int64_t> max_items;
  std::string_view pattern;
  std::string_view pattern_words;  // for a person; "": the pattern itself is shown
  std::string_view list_key;       // a list that is a map by this member
  bool is_set = false;             // a list without repeats
  std::vector<Rule> rules;
  // Of an enum: the values to offer a person who gave another one; none: all.
  std::vector<std::string_view> offered;
  // More of the schema than the type says: what is known of a Json member.
  JsonObject (*shape)() = nullptr;
};

template <class Owner, class Member>
class Field {
 public:
  Field(std::string_view name, Member Owner::* member, std::string_view doc) : member_(member) {
    info_.name = name;
    info_.doc = doc;
  }

  // Must be there; and is written even when it is empty.
  Field required() const {
    return with([](FieldInfo& i) { i.is_required = true; });
  }
  Field defaulted() const {
    return with([](FieldInfo& i) { i.is_defaulted = true; });
  }
  Field minimum(int64_t n) const {
    return with([n](FieldInfo& i) { i.minimum = n; });
  }
  Field maximum(int64_t n) const {
    return with([n](FieldInfo& i) { i.maximum = n; });
  }
  Field min_length(int64_t n) const {
    return with([n](FieldInfo& i) { i.min_length = n; });
  }
  Field max_length(int64_t n) const {
    return with([n](FieldInfo& i) { i.max_length = n; });
  }
  Field min_items(int64_t n) const {
    return with([n](FieldInfo& i) { i.min_items = n; });
  }
  Field max_items(int64_t n) const {
    return with([n](FieldInfo& i) { i.max_items = n; });
  }
  Field pattern(std::string_view p, std::string_view words = "") const {
    return with([=](FieldInfo& i) {
      i.pattern = p;
      i.pattern_words = words;
    });
  }
  Field map_by(std::string_view key) const {
    return with([key](FieldInfo& i) { i.list_key = key; });
  }
  Field set() const {
    return with([](FieldInfo& i) { i.is_set = true; });
  }
  Field rule(std::string_view expression, std::string_view message) const {
    return with([=](FieldInfo& i) { i.rules.push_back({expression, message}); });
  }
  Field offering(std::vector<std::string_view> values) const {
    return with([&](FieldInfo& i) { i.offered = std::move(values); });
  }
  Field shaped(JsonObject (*shape)()) const {
    return with([shape](FieldInfo& i) { i.shape = shape; });
  }
  Field immutable() const { return rule("self == oldSelf", "field is immutable"); }

  const FieldInfo& info() const { return info_; }
  Member Owner::* member() const { return member_; }

 private:
  template <class F>
  Field with(F change) const {
    Field copy = *this;
    change(copy.info_);
    return copy;
  }
  Member Owner::* member_;
  FieldInfo info_;
};

template <class Owner, class Member>
Field<Owner, Member> field(std::string_view name, Member Owner::* member, std::string_view doc) {
  return {name, member, doc};
}

// Specialised for each described struct: kDoc and fields(), and rules() where there are CEL rules
// on the whole.
template <class T>
struct Description;

template <class T>
concept Described = requires { Description<T>::fields(); };

// The fields of T, made once.
template <Described T>
const auto& fields_of() {
  static const auto fields = Description<T>::fields();
  return fields;
}

template <Described T, class F>
void for_each_field(F&& f) {
  std::apply([&](const auto&... field) { (f(field), ...); }, fields_of<T>());
}

struct PrinterColumn {
  std::string_view name;
  std::string_view type;  // string, integer, date …
  std::string_view json_path;
  int priority = 0;  // above 0: only with -o wide
};

struct ScalePaths {
  std::string_view spec_replicas;
  std::string_view status_replicas;
  std::string_view label_selector;
};

// What a kind of ours is, beside its fields.
struct ResourceInfo {
  kube::Kind kind;
  std::string_view singular;
  std::vector<std::string_view> short_names;
  std::vector<std::string_view> categories;
  std::vector<PrinterColumn> columns;
  std::optional<ScalePaths> scale;
};

// Specialised for each kind: static ResourceInfo info(), and static kube::MetaOptions
// kept_metadata() with the labels and annotations that are read; without it none is kept. The kind
// itself is a struct with the members `kube::Meta meta`, `spec` and `status`, the last two
// described.
template <class T>
struct Resource;

}  // namespace grapnel::api
