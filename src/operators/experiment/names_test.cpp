#include "operators/experiment/names.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "operators/experiment/check.h"
#include "operators/experiment/compile.h"
#include "operators/jobset/defaults.h"
#include "operators/jobset/validate.h"

namespace grapnel::experiment {
namespace {

using api::Operator;

api::Experiment experiment_of(std::string name, Operator op, const Json& types) {
  api::Experiment experiment;
  experiment.meta.key = {Interned("lab"), std::move(name)};
  experiment.spec.op = op;
  experiment.spec.image = "i";
  experiment.spec.command = "run";
  experiment.spec.types = types;
  return experiment;
}

// What the admission of JobSets says of what this becomes; "" when it takes it.
std::string faults_of_child(const api::Experiment& experiment, const Components& components) {
  const Json child = jobset::defaulted_object(compile(experiment, components).object);
  const auto decoded = api::decode_jobset(child, api::Unknown::kRefuse);
  if (!decoded) return decoded.error().message;
  std::string text;
  for (const auto& cause : jobset::validate(*decoded)) text += cause.field + ": " + cause.message;
  return text;
}

// ---- what passes the check becomes something that admission takes -------------------------------

rc::Gen<std::string> names(int longest) {
  return rc::gen::mapcat(rc::gen::inRange(1, longest + 1), [](int length) {
    return rc::gen::map(
        rc::gen::container<std::string>(length, rc::gen::elementOf(std::string("abz09-"))),
        [](std::string name) {
          name.front() = 'n';
          name.back() = 'e';
          return name;
        });
  });
}

// Small ones mostly, and the ends of what an integer may be.
rc::Gen<int64_t> counts(int64_t least) {
  return rc::gen::weightedOneOf<int64_t>(
      {{8, rc::gen::inRange<int64_t>(least, 2000)},
       {1, rc::gen::inRange<int64_t>(least, int64_t{1} << 40)},
       {1, rc::gen::elementOf(
               std::vector<int64_t>{least, 46341, INT32_MAX, int64_t{INT32_MAX} + 1})}});
}

Json component(bool is_free) {
  JsonObject type{{"count", *counts(is_free ? 0 : 1)},
                  {"resources", JsonObject{{"cpus", 1}, {"memory", 1}}}};
  if (is_free && *rc::gen::arbitrary<bool>()) type["completions"] = *counts(1);
  if (is_free && *rc::gen::arbitrary<bool>()) type["parallelisms"] = *counts(1);
  return type;
}

// As a server stores it, whatever its schema refuses: those are errors.
Result<api::Experiment> any_experiment() {
  const auto op = *rc::gen::elementOf(
      std::vector(api::kAvailableOperators.begin(), api::kAvailableOperators.end()));
  JsonObject types;
  if (op == Operator::jobset) {
    for (const auto& name :
         *rc::gen::resize(3, rc::gen::container<std::vector<std::string>>(names(63)))) {
      types[name] = component(true);
    }
  } else {
    types["worker"] = component(false);
  }
  auto experiment = experiment_of(*names(70), op, types);
  auto& spec = experiment.spec;
  if (*rc::gen::arbitrary<bool>()) {
    spec.storage.emplace().shared_volume = api::SharedVolume{.mount_point = "/s", .size_gb = 1};
  }
  if (*rc::gen::arbitrary<bool>()) spec.queue = *names(70);
  if (*rc::gen::arbitrary<bool>()) spec.wait_for_address = true;
  spec.backoff_limit = *counts(0);
  const Json object =
      JsonObject{{"metadata", JsonObject{{"name", experiment.meta.name()}, {"namespace", "lab"}}},
                 {"spec", api::encode(spec)}};
  return api::decode_resource<api::Experiment>(object);
}

TEST(Names, WhatPassesTheCheckBecomesAJobSetThatAdmissionTakes) {
  int passed = 0;
  EXPECT_TRUE(rc::check("what passes the check is taken", [&] {
    const auto experiment = any_experiment();
    if (!experiment) return;
    const auto components = check(*experiment);
    if (!components) return;
    ++passed;
    const std::string why = faults_of_child(*experiment, *components);
    RC_ASSERT(why == "");
  }));
  EXPECT_GT(passed, 5) << "the property was hardly looked at";
}

// ---- the limit is exact -------------------------------------------------------------------------

struct LimitCase {
  std::string name;
  Operator op;
  std::string types;
  size_t longest;
  bool shared_volume = false;
};

class NameLimitOf : public testing::TestWithParam<LimitCase> {};

TEST_P(NameLimitOf, IsExact) {
  const LimitCase& c = GetParam();
  const auto at = [&](size_t length) {
    auto experiment = experiment_of(std::string(length, 'n'), c.op, *parse_json(c.types));
    if (c.shared_volume) {
      experiment.spec.storage.emplace().shared_volume =
          api::SharedVolume{.mount_point = "/s", .size_gb = 1};
    }
    return experiment;
  };
  const auto components = check(at(c.longest));
  ASSERT_TRUE(components) << components.error().message;
  EXPECT_EQ(faults_of_child(at(c.longest), *components), "");
  const auto longer = at(c.longest + 1);
  EXPECT_FALSE(check(longer));
  if (c.longest < 63) EXPECT_NE(faults_of_child(longer, *components), "") << "it is too strict";
}

constexpr auto kWorkers = R"({"worker":{"count":4,"resources":{"cpus":1,"memory":1}}})";

INSTANTIATE_TEST_SUITE_P(
    Table, NameLimitOf,
    testing::Values(LimitCase{"OfACoordinator", Operator::jax, kWorkers, 25},
                    LimitCase{"OfACoordinatorOfPyTorch", Operator::pytorch, kWorkers, 25},
                    LimitCase{"OfPods", Operator::jobset, kWorkers, 63 - 17},
                    LimitCase{"OfManyJobs", Operator::jobset,
                              R"({"worker":{"count":5000,"resources":{"cpus":1,"memory":1}}})",
                              63 - 20},
                    LimitCase{"OfTheLongestType", Operator::jobset,
                              R"({"a":{"resources":{"cpus":1,"memory":1}},
                      "a-longer-one":{"resources":{"cpus":1,"memory":1}}})",
                              63 - 23},
                    LimitCase{"WithASharedVolumeToo", Operator::jobset, kWorkers, 63 - 17, true}),
    [](const auto& info) { return info.param.name; });

// ---- words --------------------------------------------------------------------------------------

std::string refusal(std::string name, Operator op, std::string_view types) {
  const auto checked = check(experiment_of(std::move(name), op, *parse_json(types)));
  if (checked) return "";
  std::string text;
  for (const auto& cause : checked.error().causes)
    text += cause.field + ": " + cause.message + "\n";
  return text;
}

TEST(Names, ATooLongOneIsRefusedByWhatItsOwnerCanChange) {
  EXPECT_EQ(refusal("train-resnet50-imagenet-5652", Operator::pytorch, kWorkers),
            "metadata.name: Invalid value: \"train-resnet50-imagenet-5652\": has 28 characters, 3 "
            "too many; with operator 'pytorch' it may have at most 25\n");
  EXPECT_EQ(refusal(std::string(50, 'n'), Operator::jobset, kWorkers),
            "metadata.name: Invalid value: \"" + std::string(50, 'n') +
                "\": has 50 characters, 4 too many; with type 'worker' it may have at most 46\n");
}

TEST(Names, ATypeLeavesRoomForAName) {
  const std::string type(50, 't');
  EXPECT_EQ(
      refusal("e", Operator::jobset, R"({")" + type + R"(":{"resources":{"cpus":1,"memory":1}}})"),
      "spec.types." + type + ": Invalid value: \"" + type +
          "\": has 50 characters, 4 too many; the experiment's name comes before it\n");
}

TEST(Names, WhatAClusterTakesMayStillBeNoNameForProcesses) {
  EXPECT_EQ(refusal("a.b", Operator::jax, kWorkers).substr(0, 66),
            "metadata.name: Invalid value: \"a.b\": a DNS-1035 label must consist");
}

TEST(Names, AGeneratedOneIsCutAtItsStem) {
  EXPECT_EQ(fitted_stem("train-resnet50-imagenet", {.longest = 25}), "train-resnet50-image");
  EXPECT_EQ(fitted_stem("short", {.longest = 25}), "short");
  EXPECT_EQ(fitted_stem("ends-with-a-line-----here", {.longest = 22}), "ends-with-a-line");
  EXPECT_EQ(fitted_stem(std::string(60, 'x'), {.longest = 63}), std::string(30, 'x'));
}

}  // namespace
}  // namespace grapnel::experiment
