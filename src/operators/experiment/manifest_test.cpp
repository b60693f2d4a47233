#include "operators/experiment/manifest.h"

#include <gtest/gtest.h>

#include "operators/experiment/components.h"

namespace grapnel::experiment {
namespace {

constexpr std::string_view kJax = R"(kind: AIchorManifest
apiVersion: 0.2.3
spec:
  operator: jax
  image: image
  command: "python3 -u main.py"
  types:
    worker:
      count: 2
      resources:
        cpus: 1
        ramRatio: 2
)";

TEST(Manifest, ReadsWhatTheDocumentationShows) {
  const auto manifest = parse_manifest(kJax, "manifest.yaml");
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->decoded.op, api::Operator::jax);
  api::Faults faults;
  const Components components = validate(manifest->decoded, faults);
  ASSERT_EQ(components.named.size(), 1U);
  EXPECT_EQ(components.named[0].first, "worker");
  EXPECT_EQ(components.named[0].second.count, 2);
}

struct Wrong {
  std::string name;
  std::string before;  // this line of the manifest above …
  std::string after;   // … replaced by this
  std::string message;
};

std::string replaced(std::string_view text, const std::string& before, const std::string& after) {
  std::string out(text);
  const auto at = out.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  return out.replace(at, before.size(), after);
}

class WrongManifest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongManifest, SaysWhereAndWhat) {
  const auto& wrong = GetParam();
  const auto manifest = parse_manifest(replaced(kJax, wrong.before, wrong.after), "m.yaml");
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().message, wrong.message);
}

INSTANTIATE_TEST_SUITE_P(
    Table, WrongManifest,
    testing::Values(
        Wrong{"UpperCaseWorker", "worker:", "Worker:",
              "m.yaml:8:5: spec.types.Worker: unknown type for operator 'jax'\n"
              "  found    Worker\n"
              "  allowed  worker   (lower case)"},
        Wrong{"OtherKind", "AIchorManifest", "Manifest",
              "m.yaml:1:1: kind: Unsupported value: \"Manifest\": supported values: "
              "\"AIchorManifest\"\n"
              "  found    Manifest\n"
              "  allowed  AIchorManifest"},
        Wrong{"OldVersion", "0.2.3", "0.1.9",
              "m.yaml:2:1: apiVersion: Unsupported value: \"0.1.9\": supported values: \"0.2.x\"\n"
              "  found    0.1.9\n"
              "  allowed  0.2.x"},
        Wrong{"UnknownOperator", "operator: jax", "operator: jaks",
              "m.yaml:4:3: spec.operator: Unsupported value: \"jaks\": supported values: "
              "\"kuberay\", \"jax\", \"pytorch\", \"xgboost\", \"jobset\", \"elastic\"\n"
              "  found    jaks\n"
              "  allowed  kuberay, jax, pytorch, xgboost, jobset, elastic"},
        Wrong{
            "NoWorkers", "count: 2", "count: 0",
            "m.yaml:9:7: spec.types.worker.count: Invalid value: \"0\": at least 1 worker must be "
            "set"},
        Wrong{"NegativeCount", "count: 2", "count: -1",
              "m.yaml:9:7: spec.types.worker.count: Invalid value: \"-1\": must be greater than or "
              "equal to 0\n"
              "m.yaml:9:7: spec.types.worker.count: Invalid value: \"-1\": at least 1 worker must "
              "be "
              "set"},
        Wrong{"QuotedCount", "count: 2", "count: \"2\"",
              "m.yaml:9:7: spec.types.worker.count: Invalid value: \"2\": must be an integer\n"
              "  found    \"2\"\n"
              "  allowed  an integer"},
        Wrong{"MemoryTwice", "ramRatio: 2", "ramRatio: 2\n        memory: 4",
              "m.yaml:13:9: spec.types.worker.resources.memory: Forbidden: ramRatio and memory "
              "exclude each other; keep one of them"},
        Wrong{"NoMemory", "        ramRatio: 2\n", "",
              "m.yaml:10:7: spec.types.worker.resources.ramRatio: Required value"},
        Wrong{"MisspelledField", "command:", "comand:",
              "m.yaml:6:3: spec.comand: unknown field \"comand\", did you mean \"command\"?\n"
              "  found    comand\n"
              "  allowed  operator, image, command, types, timeout, activeDeadlineSeconds, env, "
              "tensorboard, debug, storage, rayVersion, queue, priorityClass, backoffLimit, "
              "ttlSecondsAfterFinished, cancel\n"
              "m.yaml:3:1: spec.command: Required value"},
        Wrong{"BadTimeout", "image: image", "image: image\n  timeout: 5h 1w",
              "m.yaml:6:3: spec.timeout: Invalid value: \"5h 1w\": must be weeks, days, hours, "
              "minutes and seconds in that order, such as \"1w 2d 5h 6m 20s\" or \"90m\""},
        Wrong{"ReservedName", "image: image", "image: image\n  env: {RANK: \"1\"}",
              "m.yaml:6:9: spec.env.RANK: Forbidden: the name is reserved; Grapnel sets it"},
        Wrong{
            "CompletionsOfAWorker", "count: 2", "completions: 3",
            "m.yaml:9:7: spec.types.worker.completions: Forbidden: only the jobset operator takes "
            "it"}),
    [](const auto& info) { return info.param.name; });

TEST(Manifest, BrokenYamlNamesTheLine) {
  const auto manifest = parse_manifest("kind: [", "m.yaml");
  ASSERT_FALSE(manifest);
  EXPECT_TRUE(manifest.error().message.starts_with("m.yaml:")) << manifest.error().message;
}

}  // namespace
}  // namespace grapnel::experiment
