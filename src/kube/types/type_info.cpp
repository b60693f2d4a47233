#include "kube/types/type_info.h"

namespace grapnel::kube {

const FieldInfo* TypeInfo::find(std::string_view field) const {
  for (const FieldInfo& one : fields) {
    if (one.name == field && !field.empty()) return &one;
    if (one.name.empty() && one.type != nullptr) {
      if (const FieldInfo* inner = one.type->find(field)) return inner;
    }
  }
  return nullptr;
}

const FieldInfo* TypeInfo::find(uint32_t number) const {
  for (const FieldInfo& one : fields) {
    if (one.number == number) return &one;
  }
  return nullptr;
}

const TypeInfo* type_of_kind(std::string_view api_version, std::string_view kind) {
  const size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return type_of_kind("", api_version, kind);
  return type_of_kind(api_version.substr(0, slash), api_version.substr(slash + 1), kind);
}

}  // namespace grapnel::kube
