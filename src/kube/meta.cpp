#include "kube/meta.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace grapnel::kube {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The text of a view that is a string, "" for anything else.
std::string_view text_of(const std::optional<JsonView>& value) {
  return value ? value->as_string().value_or("") : "";
}

std::optional<Time> time_of(const std::optional<JsonView>& value) {
  const auto text = text_of(value);
  return text.empty() ? std::nullopt : parse_time(text);
}

StringMap decode_strings(const std::optional<JsonView>& map, bool all,
                         const std::vector<std::string_view>& kept) {
  std::vector<std::pair<Interned, Interned>> entries;
  if (!map || (!all && kept.empty())) return {};
  map->for_each_member([&](std::string_view key, JsonView value) {
    const bool wanted = all || std::ranges::find(kept, key) != kept.end();
    if (wanted) entries.emplace_back(Interned(key), Interned(value.as_string().value_or("")));
    return true;
  });
  return StringMap(std::move(entries));
}

OwnerReference decode_owner(JsonView owner) {
  const auto controller = owner.find("controller");
  return {.api_version = Interned(text_of(owner.find("apiVersion"))),
          .kind = Interned(text_of(owner.find("kind"))),
          .name = std::string(text_of(owner.find("name"))),
          .uid = Uid(text_of(owner.find("uid"))),
          .controller = controller && controller->as_bool().value_or(false)};
}

}  // namespace

ResourceVersion parse_resource_version(std::string_view text) {
  ResourceVersion version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  return error == std::errc() && end == text.data() + text.size() ? version : 0;
}

Uid::Uid(std::string_view text) {
  if (text.empty()) return;
  uint64_t halves[2] = {0, 0};
  int digits = 0;
  bool uuid = text.size() == 36;
  for (size_t i = 0; uuid && i < text.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      uuid = text[i] == '-';
      continue;
    }
    const int digit = hex_digit(text[i]);
    if (digit < 0) {
      uuid = false;
      break;
    }
    auto& half = halves[digits++ / 16];
    half = half << 4 | static_cast<uint64_t>(digit);
  }
  if (uuid && (halves[0] != 0 || halves[1] != 0)) {
    high_ = halves[0];
    low_ = halves[1];
  } else {
    other_ = Interned(text);
  }
}

std::string Uid::text() const {
  if (!is_uuid()) return other_.str();
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high_ >> 32, high_ >> 16 & 0xffff,
                     high_ & 0xffff, low_ >> 48, low_ & 0xffffffffffff);
}

StringMap::StringMap(std::vector<std::pair<Interned, Interned>> entries)
    : entries_(std::move(entries)) {
  std::ranges::sort(entries_);
  entries_.shrink_to_fit();
}

std::string_view StringMap::get(std::string_view key) const {
  for (const auto& [name, value] : entries_) {
    if (name.view() == key) return value;
  }
  return "";
}

bool StringMap::has(std::string_view key) const {
  return std::ranges::any_of(entries_, [&](const auto& e) { return e.first.view() == key; });
}

std::string Key::text() const {
  return ns.empty() ? name : fmt::format("{}/{}", ns.view(), name);
}

const OwnerReference* Meta::controller() const {
  const auto found = std::ranges::find_if(owners, &OwnerReference::controller);
  return found == owners.end() ? nullptr : &*found;
}

Result<Meta> decode_meta(JsonView object, const MetaOptions& options) {
  const auto metadata = object.find("metadata");
  const auto name = metadata ? text_of(metadata->find("name")) : std::string_view();
  if (name.empty()) return fail(Reason::kDecode, "an object without metadata.name");
  Meta meta;
  meta.key = {Interned(text_of(metadata->find("namespace"))), std::string(name)};
  meta.uid = Uid(text_of(metadata->find("uid")));
  meta.resource_version = parse_resource_version(text_of(metadata->find("resourceVersion")));
  if (const auto generation = metadata->find("generation")) {
    meta.generation = generation->as_int().value_or(0);
  }
  meta.created = time_of(metadata->find("creationTimestamp")).value_or(Time{});
  meta.deleted = time_of(metadata->find("deletionTimestamp"));
  meta.labels = decode_strings(metadata->find("labels"), options.all_labels, options.labels);
  meta.annotations =
      decode_strings(metadata->find("annotations"), options.all_annotations, options.annotations);
  if (const auto owners = metadata->find("ownerReferences")) {
    owners->for_each_element([&](size_t, JsonView owner) {
      meta.owners.push_back(decode_owner(owner));
      return true;
    });
  }
  if (const auto finalizers = metadata->find("finalizers")) {
    finalizers->for_each_element([&](size_t, JsonView finalizer) {
      meta.finalizers.emplace_back(finalizer.as_string().value_or(""));
      return true;
    });
  }
  return meta;
}

}  // namespace grapnel::kube
