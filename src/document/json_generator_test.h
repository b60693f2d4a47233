// Arbitrary JSON for property tests. Few keys and few values, so that two documents have much in
// common.
#pragma once

#include <rapidcheck.h>

#include <algorithm>

#include "document/json.h"

namespace grapnel {

struct JsonShape {
  bool nulls = true;
  int depth = 4;
};

inline rc::Gen<Json> arbitrary_scalar(JsonShape shape) {
  return rc::gen::exec([shape]() -> Json {
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
        return *rc::gen::inRange<int64_t>(0, 3);
      case 1:
        return *rc::gen::arbitrary<int64_t>();
      case 2:
        return *rc::gen::arbitrary<bool>();
      case 3:
        return Json(*rc::gen::element<std::string>("", "x", "yes", "0777", "a: b", "- x\n"));
      case 4:
        return static_cast<double>(*rc::gen::inRange(-1000, 1000)) / 8;
      default:
        return shape.nulls ? Json(nullptr) : Json("none");
    }
  });
}

inline rc::Gen<Json> arbitrary_json(JsonShape shape) {
  return rc::gen::exec([shape]() -> Json {
    const JsonShape inner{.nulls = shape.nulls, .depth = shape.depth - 1};
    const int kind = shape.depth == 0 ? 0 : *rc::gen::inRange(0, 4);
    const int size = *rc::gen::inRange(0, 4);
    if (kind == 0) return *arbitrary_scalar(shape);
    if (kind == 1) {
      JsonArray array;
      for (int i = 0; i < size; ++i) array.push_back(*arbitrary_json(inner));
      return array;
    }
    JsonObject object;
    for (int i = 0; i < size; ++i) {
      object[*rc::gen::element<std::string>("a", "b", "c", "on", "1", "a/b~c")] =
          *arbitrary_json(inner);
    }
    return object;
  });
}

}  // namespace grapnel
