#include "kube/types/protobuf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "kube/types/shapes.h"
#include "kube/types/wire.h"

namespace grapnel::kube {
namespace {

using testing::HasSubstr;
using Form = FieldInfo::Form;
using Shape = FieldInfo::Shape;

Json json(std::string_view text) {
  return parse_json(text).value();
}

// What arrives at the other end.
Json sent(std::string_view object) {
  const auto body = encode_protobuf(json(object));
  if (!body) return Json("stays JSON");
  return decode_protobuf(*body).value();
}

constexpr std::string_view kJob = R"({
  "apiVersion": "batch/v1", "kind": "Job",
  "metadata": {"name": "a", "namespace": "b", "labels": {"x": "1", "empty": ""},
               "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o",
                                    "uid": "u", "controller": true, "blockOwnerDeletion": false}]},
  "spec": {
    "parallelism": 0, "completions": 3, "suspend": false, "backoffLimit": 2147483647,
    "ttlSecondsAfterFinished": 0, "activeDeadlineSeconds": 9000000000,
    "template": {"spec": {
      "restartPolicy": "Never", "priority": -7, "nodeSelector": {"disk": "ssd"},
      "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": -1}],
      "containers": [{
        "name": "main", "image": "i", "command": ["sh", "-c", "echo \"é\" \\ \n"],
        "env": [{"name": "A", "value": "b"},
                {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": "500m", "memory": "2Gi"}},
        "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"path": "/", "port": "web"}},
        "readinessProbe": {"tcpSocket": {"port": 8080}},
        "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true}]}],
      "volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
                  {"name": "e", "emptyDir": {}},
                  {"name": "p", "projected": {"sources": [{"configMap": {"name": "c"}}]}}]}}}})";

TEST(Protobuf, AJobArrivesWhole) {
  EXPECT_TRUE(equal(sent(kJob), json(kJob))) << to_text(sent(kJob));
}

struct Case {
  std::string_view name;
  std::string_view object;
  std::string_view arrives;  // "" nothing: it stays JSON
};

class Objects : public testing::TestWithParam<Case> {};

TEST_P(Objects, Arrive) {
  const Json arrived = sent(GetParam().object);
  if (GetParam().arrives.empty()) {
    EXPECT_EQ(to_text(arrived), R"("stays JSON")");
  } else {
    EXPECT_TRUE(equal(arrived, json(GetParam().arrives))) << to_text(arrived);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Protobuf, Objects,
    testing::Values(
        Case{"null is nothing",
             R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","creationTimestamp":null}})",
             R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}})"},
        Case{"a time", R"({"apiVersion":"v1","kind":"Pod","metadata":
                        {"name":"a","creationTimestamp":"2026-01-02T03:04:05Z"}})",
             R"({"apiVersion":"v1","kind":"Pod","metadata":
                 {"name":"a","creationTimestamp":"2026-01-02T03:04:05Z"}})"},
        Case{"a quantity that is a number",
             R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":
                 [{"name":"a","resources":{"limits":{"cpu":2}}}]}})",
             R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":
                 [{"name":"a","resources":{"limits":{"cpu":"2"}}}]}})"},
        Case{"a field that no table has",
             R"({"apiVersion":"v1","kind":"Pod","spec":{"fromTheFuture":1}})", ""},
        Case{"a field that no table has, deep inside",
             R"({"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"name":"a","nfs2":{}}]}})", ""},
        Case{"a field that no table has, at the top",
             R"({"apiVersion":"v1","kind":"Pod","spce":{}})", ""},
        Case{"a kind that no table has", R"({"apiVersion":"jobset.x-k8s.io/v1alpha2",
                                           "kind":"JobSet","spec":{}})",
             ""},
        Case{"no kind", R"({"apiVersion":"v1","metadata":{"name":"a"}})", ""},
        Case{"a text for a number", R"({"apiVersion":"batch/v1","kind":"Job",
                                       "spec":{"parallelism":"3"}})",
             ""},
        Case{"a number for a text", R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":1}})",
             ""},
        Case{"a fraction for a number",
             R"({"apiVersion":"batch/v1","kind":"Job","spec":{"parallelism":1.5}})", ""},
        Case{"a number that is too large",
             R"({"apiVersion":"batch/v1","kind":"Job","spec":{"parallelism":2147483648}})", ""},
        Case{"a text for a bool",
             R"({"apiVersion":"batch/v1","kind":"Job","spec":{"suspend":"true"}})", ""},
        Case{"a text for an object", R"({"apiVersion":"v1","kind":"Pod","spec":"x"})", ""},
        Case{"an object for a list", R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":{}}})",
             ""},
        Case{"a list for a map", R"({"apiVersion":"v1","kind":"Pod","metadata":{"labels":["a"]}})",
             ""},
        Case{"null in a list", R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[null]}})",
             ""},
        Case{"null in a map",
             R"({"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":null}}})", ""},
        Case{"a time that is none", R"({"apiVersion":"v1","kind":"Pod","metadata":
                                       {"name":"a","creationTimestamp":"today"}})",
             ""},
        Case{"bytes", R"({"apiVersion":"v1","kind":"Secret","data":{"a":"YQ=="}})", ""}),
    [](const auto& info) {
      std::string name(info.param.name);
      for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      }
      return name;
    });

// Objects of all kinds of values that encode_protobuf writes, without any that JSON leaves out.
class Maker {
 public:
  explicit Maker(uint32_t seed) : random_(seed) {}

  JsonObject object(const TypeInfo& type, int depth) {
    JsonObject out;
    for (const FieldInfo& info : type.fields) {
      if (info.number == 0 || !one_in(depth < 2 ? 1 : depth < 5 ? 3 : 9)) continue;
      if (info.name.empty()) {
        for (auto& [key, value] : object(*info.type, depth + 1)) out[key] = value;
      } else if (is_written(info.form)) {
        Json made = member(info, depth);
        const bool is_empty = made.is_object() && made.get_object().empty();
        if (!is_empty || (info.shape == Shape::kOne && (info.pointer || info.required))) {
          out[info.name] = std::move(made);
        }
      }
    }
    return out;
  }

 private:
  bool one_in(uint32_t n) { return random_() % n == 0; }

  static bool is_written(Form form) {
    return form == Form::kString || form == Form::kBool || form == Form::kInt32 ||
           form == Form::kInt64 || form == Form::kMessage || form == Form::kTime ||
           form == Form::kQuantity || form == Form::kIntOrString;
  }

  Json member(const FieldInfo& info, int depth) {
    if (info.shape == Shape::kOne) return value(info, depth);
    const size_t count = 1 + random_() % 2;
    JsonArray list;
    JsonObject map;
    for (size_t i = 0; i < count; ++i) {
      list.push_back(value(info, depth));
      map[std::to_string(i)] = list.back();
    }
    return info.shape == Shape::kMap ? Json(map) : Json(list);
  }

  Json value(const FieldInfo& info, int depth) {
    switch (info.form) {
      case Form::kBool:
        return true;
      case Form::kInt32:
        return static_cast<int64_t>(static_cast<int32_t>(random_() | 1U));
      case Form::kInt64:
        return static_cast<int64_t>(uint64_t{random_()} << 32 | random_() | 1U);
      case Form::kMessage:
        return object(*info.type, depth + 1);
      case Form::kTime:
        return "2026-01-02T03:04:05Z";
      case Form::kIntOrString:
        if (one_in(2)) return 8080;
        break;
      default:
        break;
    }
    return Json(std::string_view(fmt::format("t{}\n\"", random_() % 1000)));
  }

  std::mt19937 random_;
};

TEST(Protobuf, WhateverTheTablesSayArrivesWhole) {
  size_t bytes = 0;
  for (const auto& [api_version, kind] :
       std::vector<std::pair<std::string, std::string>>{{"v1", "Pod"},
                                                        {"v1", "Service"},
                                                        {"v1", "Node"},
                                                        {"v1", "PersistentVolumeClaim"},
                                                        {"batch/v1", "Job"},
                                                        {"apps/v1", "StatefulSet"},
                                                        {"events.k8s.io/v1", "Event"}}) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
      JsonObject object = Maker(seed).object(*type_of_kind(api_version, kind), 0);
      object["apiVersion"] = api_version;
      object["kind"] = kind;
      const auto body = encode_protobuf(object);
      ASSERT_TRUE(body) << to_text(object);
      bytes += body->size();
      const auto arrived = decode_protobuf(*body);
      ASSERT_TRUE(arrived) << arrived.error().message;
      ASSERT_TRUE(equal(*arrived, object)) << to_text(object) << "\n" << to_text(*arrived);
    }
  }
  EXPECT_GT(bytes, 500000U);
}

// ---- reading ------------------------------------------------------------------------------------

std::string message(std::initializer_list<std::pair<uint32_t, std::string>> fields) {
  std::string out;
  for (const auto& [number, bytes] : fields) append_bytes(out, number, bytes);
  return out;
}

std::string enveloped(std::string_view api_version, std::string_view kind, std::string raw) {
  return std::string(kProtobufMagic) +
         message({{1, message({{1, std::string(api_version)}, {2, std::string(kind)}})},
                  {2, std::move(raw)}});
}

TEST(Protobuf, ListsAndMapsMayBeScattered) {
  const std::string label_a = message({{1, "a"}, {2, "1"}});
  const std::string label_b = message({{1, "b"}});
  const std::string metadata =
      message({{11, label_a}, {14, "first"}, {1, "name"}, {11, label_b}, {14, "second"}});
  const auto pod = decode_protobuf(enveloped("v1", "Pod", message({{1, metadata}})));
  EXPECT_EQ(to_text(*find(*pod, "metadata")),
            R"({"labels":{"a":"1","b":""},"finalizers":["first","second"],"name":"name"})");
}

TEST(Protobuf, ManagedFieldsCanBeLeftOut) {
  const std::string entry = message({{1, "kubectl"}, {7, message({{1, R"({"f:spec":{}})"}})}});
  const std::string body = enveloped("v1", "Pod", message({{1, message({{1, "a"}, {17, entry}})}}));
  EXPECT_THAT(json_of_protobuf(body).value(), HasSubstr(R"("fieldsV1":{"f:spec":{}})"));
  EXPECT_EQ(json_of_protobuf(body, {.managed_fields = false}).value(),
            R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}})");
}

TEST(Protobuf, WhatIsBrokenIsAnError) {
  const auto error_of = [](std::string_view raw) {
    const auto read = decode_protobuf(enveloped("v1", "Pod", std::string(raw)));
    return read ? to_text(*read) : read.error().message;
  };
  EXPECT_THAT(decode_protobuf("k8s?").error().message, HasSubstr("does not appear"));
  EXPECT_THAT(decode_protobuf(enveloped("v9", "Pod", "")).error().message,
              HasSubstr(R"(no kind "Pod" is registered for version "v9")"));
  EXPECT_THAT(error_of("\x0a\x7f"), HasSubstr("broken in core/v1.Pod"));  // cut off
  EXPECT_THAT(error_of(std::string("\x08\x01", 2)), HasSubstr("broken in metadata"));
  EXPECT_THAT(error_of(message({{1, ""}, {1, ""}})), HasSubstr("broken in metadata"));  // twice
  EXPECT_THAT(error_of(message({{1, message({{1, "\xff"}})}})), HasSubstr("UTF-8"));
  // JSON inside that is not whole.
  const std::string raw = message({{1, R"(1},{"x":2)"}});
  const std::string managed = message({{17, message({{7, raw}})}});
  EXPECT_FALSE(decode_protobuf(enveloped("v1", "Pod", message({{1, managed}}))));
}

TEST(Protobuf, AStatusIsOneInAnyVersion) {
  const std::string raw = message({{2, "Failure"}, {3, "no"}, {4, "Conflict"}});
  EXPECT_EQ(json_of_protobuf(enveloped("v1", "Status", raw)).value(),
            R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"no",)"
            R"("reason":"Conflict"})");
}

TEST(Protobuf, EventsOfAWatch) {
  const std::string object = enveloped("v1", "Pod", message({{1, message({{1, "a"}, {6, "12"}})}}));
  EXPECT_EQ(json_of_watch_event(message({{1, "ADDED"}, {2, message({{1, object}})}})).value(),
            R"({"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",)"
            R"("metadata":{"name":"a","resourceVersion":"12"}}})");
  EXPECT_FALSE(json_of_watch_event("nonsense"));
}

}  // namespace
}  // namespace grapnel::kube
