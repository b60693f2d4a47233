#include "local/apiserver/managed/merge_type.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/types/shapes.h"
#include "local/apiserver/crd.h"

namespace grapnel::local {
namespace {

using Form = kube::FieldInfo::Form;
using Shape = kube::FieldInfo::Shape;
using Merge = kube::FieldInfo::Merge;

constexpr kube::FieldInfo kMetadata{
    .name = "metadata", .form = Form::kMessage, .type = &kube::shapes::meta_v1_ObjectMeta};

}  // namespace

MergeType MergeType::of(const ResourceType& type) {
  MergeType root;
  if (type.custom) {
    root.resource_ = true;
    if (type.custom->schema.is_object()) root.schema_ = &type.custom->schema;
  } else {
    root.struct_ = kube::type_of_kind(type.group, type.version, type.kind);
  }
  return root;
}

const kube::TypeInfo* MergeType::fields() const {
  if (struct_ != nullptr) return struct_;
  if (field_ != nullptr && field_->form == Form::kMessage &&
      (inside_ || field_->shape == Shape::kOne)) {
    return field_->type;
  }
  return nullptr;
}

bool MergeType::atomic() const {
  if (field_ != nullptr && !inside_ && field_->merge == Merge::kAtomic) return true;
  if (const kube::TypeInfo* type = fields()) return type->atomic;
  if (schema_ != nullptr) return string_or(find(*schema_, "x-kubernetes-map-type")) == "atomic";
  return false;
}

bool MergeType::declares(std::string_view name) const {
  if (const kube::TypeInfo* type = fields()) return type->find(name) != nullptr;
  if (resource_ && name == "metadata") return true;
  return schema_ != nullptr && at(*schema_, "properties", name) != nullptr;
}

bool MergeType::always_there(std::string_view name) const {
  const kube::TypeInfo* type = fields();
  const kube::FieldInfo* info = type == nullptr ? nullptr : type->find(name);
  if (info == nullptr) return false;
  return info->required ||
         (info->form == Form::kMessage && info->shape == Shape::kOne && !info->pointer);
}

MergeType MergeType::member(std::string_view name) const {
  MergeType next;
  if (const kube::TypeInfo* type = fields()) {
    next.field_ = type->find(name);
    return next;
  }
  if (field_ != nullptr) {
    if (!inside_ && field_->shape == Shape::kMap) {
      next.field_ = field_;
      next.inside_ = true;
    }
    return next;
  }
  if (resource_ && name == "metadata") {
    next.field_ = &kMetadata;
    return next;
  }
  if (schema_ == nullptr) return next;
  next.schema_ = at(*schema_, "properties", name);
  if (next.schema_ == nullptr) {
    const Json* additional = find(*schema_, "additionalProperties");
    if (additional != nullptr && additional->is_object()) next.schema_ = additional;
  }
  return next;
}

MergeType::List MergeType::list() const {
  if (field_ != nullptr && !inside_) {
    if (field_->merge == Merge::kSet) return List::kSet;
    if (field_->merge == Merge::kByKey) return List::kByKey;
    return List::kAtomic;
  }
  if (schema_ == nullptr) return List::kAtomic;
  const std::string_view type = string_or(find(*schema_, "x-kubernetes-list-type"));
  if (type == "set") return List::kSet;
  return type == "map" ? List::kByKey : List::kAtomic;
}

MergeType MergeType::element() const {
  MergeType next;
  if (field_ != nullptr && !inside_) {
    next.field_ = field_;
    next.inside_ = true;
  } else if (schema_ != nullptr) {
    const Json* items = find(*schema_, "items");
    if (items != nullptr && items->is_object()) next.schema_ = items;
  }
  return next;
}

std::vector<std::string_view> MergeType::keys() const {
  if (field_ != nullptr) return split(field_->keys, ',');
  std::vector<std::string_view> result;
  const Json* list = schema_ == nullptr ? nullptr : find(*schema_, "x-kubernetes-list-map-keys");
  if (list != nullptr && list->is_array()) {
    for (const Json& one : list->as_array()) result.push_back(string_or(&one));
  }
  return result;
}

std::string MergeType::path_element(const Json& value) const {
  if (list() == List::kSet) return "v:" + to_text(value);
  std::vector<std::string_view> names = keys();
  std::sort(names.begin(), names.end());
  JsonObject key;
  for (const std::string_view name : names) {
    const Json* part = find(value, name);
    if (part == nullptr && schema_ != nullptr) {
      // A key that is left out has its default.
      const Json* items = find(*schema_, "items");
      part = items == nullptr ? nullptr : at(*items, "properties", name, "default");
    }
    if (part != nullptr) {
      key[name] = *part;
    } else if (name == "protocol") {
      key[name] = "TCP";
    }
  }
  return "k:" + to_text(key);
}

}  // namespace grapnel::local
