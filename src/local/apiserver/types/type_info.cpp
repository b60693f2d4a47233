#include "local/apiserver/types/type_info.h"

namespace grapnel::local {

const FieldInfo* TypeInfo::find(std::string_view field) const {
  for (const FieldInfo& one : fields) {
    if (one.name == field && !field.empty()) return &one;
    if (one.name.empty() && one.type != nullptr) {
      if (const FieldInfo* inner = one.type->find(field)) return inner;
    }
  }
  return nullptr;
}

}  // namespace grapnel::local
