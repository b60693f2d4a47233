#include "local/apiserver/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/strings.h"

namespace grapnel::local {
namespace {

constexpr size_t kMostAnnotations = 256 * 1024;

bool is_empty(const Json& value) {
  return value.is_null() || (value.is_string() && value.get_string().empty()) ||
         (value.is_array() && value.get_array().empty()) ||
         (value.is_object() && value.get_object().empty());
}

void validate_labels(const Json& meta, FieldErrors& errors) {
  const Json* labels = find(meta, "labels");
  if (labels == nullptr || !labels->is_object()) return;
  for (const auto& entry : labels->as_object()) {
    const std::string_view key(entry.key());
    if (const std::string why = why_not_qualified_name(key); !why.empty()) {
      errors.invalid("metadata.labels", key, why);
      // An empty name breaks a second rule too.
      if (key.empty()) errors.invalid("metadata.labels", key, why_not_qualified_name("-"));
    }
    const std::string_view value = string_or(&entry.value());
    if (const std::string why = why_not_label_value(value); !why.empty()) {
      errors.invalid("metadata.labels", value, why);
    }
  }
}

void validate_annotations(const Json& meta, FieldErrors& errors) {
  const Json* annotations = find(meta, "annotations");
  if (annotations == nullptr || !annotations->is_object()) return;
  size_t size = 0;
  for (const auto& entry : annotations->as_object()) {
    const std::string_view key(entry.key());
    if (const std::string why = why_not_qualified_name(to_lower(key)); !why.empty()) {
      errors.invalid("metadata.annotations", key, why);
    }
    size += key.size() + string_or(&entry.value()).size();
  }
  if (size > kMostAnnotations) errors.too_long("metadata.annotations", kMostAnnotations);
}

void validate_owners(const Json& meta, FieldErrors& errors) {
  const Json* owners = find(meta, "ownerReferences");
  if (owners == nullptr || !owners->is_array()) return;
  std::string controller;
  for (const Json& owner : owners->as_array()) {
    const std::string path = "metadata.ownerReferences";
    for (const std::string_view field : {"apiVersion", "kind", "name", "uid"}) {
      if (!string_or(find(owner, field)).empty()) continue;
      errors.invalid(
          fmt::format("{}.{}", path, field), "",
          fmt::format("{} must not be empty", field == "apiVersion" ? "version" : field));
    }
    if (string_or(find(owner, "kind")) == "Event" && string_or(find(owner, "apiVersion")) == "v1") {
      errors.add(Cause{
          .field = path,
          .message = fmt::format("Invalid value: v1.OwnerReference{{APIVersion:\"v1\", "
                                 "Kind:\"Event\", Name:{}, UID:{}, Controller:(*bool)(nil), "
                                 "BlockOwnerDeletion:(*bool)(nil)}}: /v1, Kind=Event is disallowed "
                                 "from being an owner",
                                 in_quotes(string_or(find(owner, "name"))),
                                 in_quotes(string_or(find(owner, "uid")))),
          .reason = "FieldValueInvalid"});
    }
    if (!bool_or(find(owner, "controller"))) continue;
    const std::string name =
        fmt::format("{}/{}", string_or(find(owner, "kind")), string_or(find(owner, "name")));
    if (!controller.empty()) {
      errors.invalid_value(
          path, *owners,
          fmt::format("Only one reference can have Controller set to true. Found \"true\" in "
                      "references for {} and {}",
                      controller, name));
    }
    controller = name;
  }
}

void validate_finalizers(const Json& meta, FieldErrors& errors) {
  const Json* finalizers = find(meta, "finalizers");
  if (finalizers == nullptr || !finalizers->is_array()) return;
  bool orphans = false;
  bool foreground = false;
  std::vector<std::string> all;
  size_t index = 0;
  for (const Json& finalizer : finalizers->as_array()) {
    const std::string_view name = string_or(&finalizer);
    const size_t at = index++;
    orphans |= name == "orphan";
    foreground |= name == "foregroundDeletion";
    all.push_back(in_quotes(name));
    if (const std::string why = why_not_qualified_name(name); !why.empty()) {
      errors.invalid("metadata.finalizers", name, why);
    } else if (name.find('/') == std::string_view::npos && name != "orphan" &&
               name != "foregroundDeletion" && name != "kubernetes") {
      errors.invalid(fmt::format("metadata.finalizers[{}]", at), name,
                     "name is neither a standard finalizer name nor is it fully qualified");
    }
  }
  if (orphans && foreground) {
    errors.add(Cause{.field = "metadata.finalizers",
                     .message = fmt::format("Invalid value: []string{{{}}}: finalizer orphan and "
                                            "foregroundDeletion cannot be both set",
                                            fmt::join(all, ", ")),
                     .reason = "FieldValueInvalid"});
  }
}

std::vector<std::string> finalizers_of(const Json& object) {
  std::vector<std::string> result;
  const Json* list = at(object, "metadata", "finalizers");
  if (list == nullptr || !list->is_array()) return result;
  for (const Json& one : list->as_array()) result.emplace_back(string_or(&one));
  return result;
}

}  // namespace

std::string new_uid(Random& random) {
  const uint64_t high = (random.next() & ~0xf000ULL) | 0x4000ULL;
  const uint64_t low = (random.next() & ~(3ULL << 62)) | (2ULL << 62);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffffULL);
}

std::string generate_name(std::string_view base, Random& random) {
  // Letters that make no words.
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  constexpr size_t kMostBase = 58;
  std::string name(base.substr(0, kMostBase));
  for (int i = 0; i < 5; ++i) name.push_back(kLetters[random.below(kLetters.size())]);
  return name;
}

std::string_view meta_text(const Json& object, std::string_view field) {
  return string_or(at(object, "metadata", field));
}

bool is_being_deleted(const Json& object) {
  const Json* time = at(object, "metadata", "deletionTimestamp");
  return time != nullptr && !time->is_null();
}

bool has_finalizers(const Json& object) {
  return !finalizers_of(object).empty();
}

void prepare_new_metadata(JsonObject& object, const ResourceType& type, std::string_view ns,
                          Time now, Random& random) {
  JsonObject& meta = ensure_object(object, "metadata");
  if (type.namespaced) {
    meta["namespace"] = ns;
  } else {
    meta.erase("namespace");
  }
  for (const char* key :
       {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"}) {
    meta.erase(key);
  }
  meta["uid"] = new_uid(random);
  meta["creationTimestamp"] = format_time(now);
  if (type.has_generation) meta["generation"] = 1;
}

void keep_old_metadata(JsonObject& object, const Json& old) {
  JsonObject& meta = ensure_object(object, "metadata");
  const Json* before = find(old, "metadata");
  if (before == nullptr) return;
  for (const char* key :
       {"generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    if (const Json* value = find(*before, key)) {
      meta[key] = *value;
    } else {
      meta.erase(key);
    }
  }
  for (const char* key : {"uid", "name", "namespace"}) {
    const Json* value = find(*before, key);
    Json* place = meta.if_contains(key);
    if (value != nullptr && (place == nullptr || is_empty(*place))) meta[key] = *value;
  }
  if (const Json* generated = find(*before, "generateName")) {
    if (!meta.contains("generateName")) meta["generateName"] = *generated;
  }
  meta.erase("selfLink");
}

void validate_given_metadata(const Json& object, const Json& old, FieldErrors& errors) {
  const std::string_view given = meta_text(object, "deletionTimestamp");
  const auto time = parse_time(given);
  if (given.empty() || !time || time == parse_time(meta_text(old, "deletionTimestamp"))) return;
  std::string shown = format_time(*time);  // as Go prints a time
  shown.replace(shown.find('T'), 1, " ");
  shown.replace(shown.find('Z'), 1, " +0000 UTC");
  errors.add(Cause{.field = "metadata.deletionTimestamp",
                   .message = fmt::format("Invalid value: {}: field is immutable", shown),
                   .reason = "FieldValueInvalid"});
}

void drop_repeated_owners(JsonObject& object, std::vector<std::string>& warnings) {
  Json* meta = object.if_contains("metadata");
  Json* list = meta == nullptr || !meta->is_object()
                   ? nullptr
                   : meta->get_object().if_contains("ownerReferences");
  if (list == nullptr || !list->is_array()) return;
  JsonArray kept;
  std::vector<std::string> repeated;
  for (const Json& owner : list->as_array()) {
    const bool there = std::any_of(kept.begin(), kept.end(),
                                   [&owner](const Json& one) { return equal(one, owner); });
    if (there) {
      repeated.emplace_back(string_or(find(owner, "uid")));
    } else {
      kept.push_back(owner);
    }
  }
  if (repeated.empty()) return;
  *list = std::move(kept);
  warnings.push_back(fmt::format(
      ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in "
      "1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "
      "UID(s) observed: {}",
      fmt::join(repeated, ", ")));
}

void tidy_metadata(JsonObject& object) {
  JsonObject& meta = ensure_object(object, "metadata");
  std::vector<std::string> empty;
  for (const auto& entry : meta) {
    if (is_empty(entry.value())) empty.emplace_back(entry.key());
  }
  for (const std::string& key : empty) meta.erase(key);
}

void validate_metadata(const Json& object, const ResourceType& type, FieldErrors& errors) {
  static const Json kNothing = JsonObject();
  const Json* found = find(object, "metadata");
  const Json& meta = found == nullptr ? kNothing : *found;
  const std::string_view name = string_or(find(meta, "name"));
  const auto why_not = type.why_not_name == nullptr ? why_not_dns1123_subdomain : type.why_not_name;
  if (std::string base(string_or(find(meta, "generateName"))); !base.empty()) {
    std::string sample = base;  // a dash at its end is no fault: more follows
    if (sample.size() > 1 && sample.back() == '-') sample.back() = 'a';
    if (const std::string why = why_not(sample); !why.empty() && sample.size() <= 63) {
      errors.invalid("metadata.generateName", base, why);
    }
  }
  if (name.empty()) {
    errors.required("metadata.name", "name or generateName is required");
  } else if (const std::string why = why_not(name); !why.empty()) {
    errors.invalid("metadata.name", name, why);
  }
  validate_labels(meta, errors);
  validate_annotations(meta, errors);
  validate_owners(meta, errors);
  validate_finalizers(meta, errors);
}

void validate_metadata_update(const Json& object, const Json& old, FieldErrors& errors) {
  for (const char* key : {"uid", "name", "namespace"}) {
    const std::string_view now = meta_text(object, key);
    if (now != meta_text(old, key)) {
      errors.invalid(fmt::format("metadata.{}", key), now, "field is immutable");
    }
  }
  if (!is_being_deleted(old)) return;
  const std::vector<std::string> before = finalizers_of(old);
  std::vector<std::string> added;
  for (const std::string& finalizer : finalizers_of(object)) {
    if (std::find(before.begin(), before.end(), finalizer) == before.end()) {
      added.push_back(in_quotes(finalizer));
    }
  }
  if (!added.empty()) {
    errors.forbidden("metadata.finalizers",
                     fmt::format("no new finalizers can be added if the object is being deleted, "
                                 "found new finalizers []string{{{}}}",
                                 fmt::join(added, ", ")));
  }
}

namespace {

// Members that are not skipped are there in both and equal.
bool equal_members(const JsonObject& a, const JsonObject& b,
                   const std::function<bool(std::string_view)>& skip) {
  for (const auto& entry : a) {
    if (skip(entry.key())) continue;
    const Json* other = b.if_contains(entry.key());
    if (other == nullptr || !equal(entry.value(), *other)) return false;
  }
  return std::all_of(b.begin(), b.end(), [&](const auto& entry) {
    return skip(entry.key()) || a.contains(entry.key());
  });
}

bool equal_objects(const Json& a, const Json& b,
                   const std::function<bool(std::string_view)>& skip_meta) {
  const JsonObject* left = a.if_object();
  const JsonObject* right = b.if_object();
  if (left == nullptr || right == nullptr) return false;
  const Json* left_meta = left->if_contains("metadata");
  const Json* right_meta = right->if_contains("metadata");
  if (left_meta == nullptr || right_meta == nullptr || !left_meta->is_object() ||
      !right_meta->is_object()) {
    return equal(a, b);
  }
  return equal_members(*left, *right, [](std::string_view key) { return key == "metadata"; }) &&
         equal_members(left_meta->get_object(), right_meta->get_object(), skip_meta);
}

}  // namespace

bool same_content(const Json& a, const Json& b) {
  return equal_objects(a, b, [](std::string_view key) {
    return key == "resourceVersion" || key == "managedFields";
  });
}

bool equal_but_version(const Json& a, const Json& b) {
  return equal_objects(a, b, [](std::string_view key) { return key == "resourceVersion"; });
}

bool spec_changed(const JsonObject& now, const Json& old, bool status_counts) {
  const auto counts = [status_counts](std::string_view key) {
    return key != "metadata" && key != "apiVersion" && key != "kind" &&
           (status_counts || key != "status");
  };
  const JsonObject& before = old.as_object();
  for (const auto& entry : now) {
    if (!counts(entry.key())) continue;
    const Json* was = before.if_contains(entry.key());
    if (was == nullptr || !equal(entry.value(), *was)) return true;
  }
  for (const auto& entry : before) {
    if (counts(entry.key()) && !now.contains(entry.key())) return true;
  }
  return false;
}

}  // namespace grapnel::local
