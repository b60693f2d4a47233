// The steps an event takes through us, one by one.
#include <benchmark/benchmark.h>

#include <fstream>
#include <sstream>

#include "api/pod.h"
#include "base/random.h"
#include "document/json.h"
#include "document/json_view.h"
#include "document/list_splitter.h"
#include "document/patch.h"
#include "kube/kind.h"
#include "runtime/cache.h"
#include "runtime/queue.h"

using namespace grapnel;

namespace {

const std::string& pod_text() {
  static const std::string text = [] {
    std::ifstream file(POD_FILE);
    std::stringstream content;
    content << file.rdbuf();
    return to_text(*parse_json(content.str()));
  }();
  return text;
}

std::string numbered(int number) {
  std::string text = pod_text();
  const auto put = [&text](std::string_view what, const std::string& value) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;) {
      text.replace(at, what.size(), value);
    }
  };
  put("@NAME@", fmt::format("train-workers-{}", number));
  put("@UID@", fmt::format("5d1c9b0e-0000-4000-8000-{:012d}", number));
  put("@VERSION@", fmt::format("{}", number + 1));
  put("@PHASE@", "Running");
  return text;
}

void DecodePod(benchmark::State& state) {
  const std::string text = numbered(1);
  JsonParser parser;
  for (auto _ : state)
    benchmark::DoNotOptimize(api::decode_pod(*parser.parse(text), {.all_labels = true}));
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(text.size()));
}
BENCHMARK(DecodePod);

void SplitList(benchmark::State& state) {
  std::string list = R"({"kind":"PodList","metadata":{},"items":[)";
  for (int i = 0; i < 100; ++i) list += (i > 0 ? "," : "") + numbered(i);
  list += "]}";
  for (auto _ : state) {
    size_t items = 0;
    ListSplitter splitter([&](std::string_view) -> Result<> {
      ++items;
      return {};
    });
    for (size_t at = 0; at < list.size(); at += 16384) {
      if (!splitter.feed(std::string_view(list).substr(at, 16384))) state.SkipWithError("refused");
    }
    benchmark::DoNotOptimize(splitter.finish());
    if (items != 100) state.SkipWithError("items were lost");
  }
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(list.size()));
}
BENCHMARK(SplitList);

void UpdateCache(benchmark::State& state) {
  JsonParser parser;
  std::vector<api::Pod> pods;
  for (int i = 0; i < 10000; ++i)
    pods.push_back(*api::decode_pod(*parser.parse(numbered(i)), {.all_labels = true}));
  runtime::Cache<api::Pod> cache(kube::kinds::kPod);
  size_t next = 0;
  for (auto _ : state) {
    api::Pod pod = pods[next++ % pods.size()];
    pod.meta.resource_version += next;
    benchmark::DoNotOptimize(cache.update(std::move(pod)));
  }
}
BENCHMARK(UpdateCache);

void Queue(benchmark::State& state) {
  Random random(1);
  runtime::Queue queue(system_clock(), random);
  const size_t lane = queue.add_lane("bench", 8);
  std::vector<kube::Key> keys;
  for (int i = 0; i < 1000; ++i) keys.push_back({Interned("default"), fmt::format("train-{}", i)});
  for (auto _ : state) {
    for (const auto& key : keys) queue.add(lane, key);
    while (auto item = queue.take()) queue.done(*item);
  }
  state.SetItemsProcessed(int64_t(state.iterations()) * int64_t(keys.size()));
}
BENCHMARK(Queue);

void MergePatchBetween(benchmark::State& state) {
  const Json before = *parse_json(numbered(1));
  Json after = before;
  after.as_object()["status"].as_object()["phase"] = "Failed";
  for (auto _ : state) benchmark::DoNotOptimize(merge_patch_between(before, after));
}
BENCHMARK(MergePatchBetween);

}  // namespace
