// Pods for tests, written as JSON.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "local/kubelet/pod.h"

namespace grapnel::local::kubelet {

inline Json json(std::string_view text) {
  auto value = parse_json(text);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message);
  return value ? *value : Json();
}

// Of the name "p", namespace "ns" and uid "u", unless `metadata` says more.
inline Pod pod_of(std::string_view spec, std::string_view status = "{}",
                  std::string_view metadata = "{}") {
  JsonObject meta{{"name", "p"}, {"namespace", "ns"}, {"uid", "u"}};
  const Json more = json(metadata);
  for (const auto& [key, value] : more.as_object()) meta[key] = value;
  const Json object =
      JsonObject{{"metadata", meta}, {"spec", json(spec)}, {"status", json(status)}};
  auto pod = decode_pod(object);
  EXPECT_TRUE(pod) << (pod ? "" : pod.error().message);
  return pod ? *pod : Pod{.meta = {}, .object = std::make_shared<const Json>()};
}

}  // namespace grapnel::local::kubelet
