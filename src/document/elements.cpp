#include "document/elements.h"

namespace grapnel {

const JsonArray& elements(const Json* value) {
  static const JsonArray none;
  const JsonArray* array = value == nullptr ? nullptr : value->if_array();
  return array == nullptr ? none : *array;
}

}  // namespace grapnel
