// That the simulator itself can be trusted: a seed repeats its run, and a fault in what it tests is
// found.
#include "tests/simulation/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/simulation/echo.h"

namespace grapnel::simulation {
namespace {

struct WorldTest : testing::Test {
  WorldTest() { log_setup(LogFormat::kText, static_cast<LogLevel>(99)); }

  static Report run(uint64_t seed) {
    const auto subject = make_echo_subject();
    return World(seed, *subject).run();
  }
};

TEST_F(WorldTest, ASeedRepeatsItsRun) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Report first = run(seed);
    const Report second = run(seed);
    EXPECT_EQ(first.digest, second.digest) << seed;
    EXPECT_EQ(first.virtual_time, second.virtual_time) << seed;
    EXPECT_EQ(first.violation, std::nullopt);
  }
  EXPECT_NE(run(1).digest, run(2).digest);
}

// An Echo whose planner has a defect that only shows under faults.
class FaultySubject final : public Subject {
 public:
  enum class Fault { kForgetsDrift, kNamesByChance, kDeletesTooMuch };
  explicit FaultySubject(Fault fault) : fault_(fault) {}

  std::vector<ServedKind> kinds() const override { return right_->kinds(); }
  void disturb(Server& server, Random& random, Moment moment) override {
    right_->disturb(server, random, moment);
  }
  std::optional<Duration> live(Server& server, Random& random, Moment moment) override {
    return right_->live(server, random, moment);
  }
  std::optional<std::string> check_write(const Server& server, const WriteSeen& write) override {
    return right_->check_write(server, write);
  }
  std::optional<std::string> check_settled(const Server& server) override {
    return right_->check_settled(server);
  }

  std::shared_ptr<void> install(runtime::Manager& manager, const std::string& /*ns*/) override {
    auto& echoes = manager.add_informer<Echo>({.kind = kEcho}, decode_echo);
    auto& children =
        manager.add_informer<EchoChild>({.kind = kube::kinds::kConfigMap}, decode_echo_child);
    auto& controller = manager.add_controller(
        {.name = "echo",
         .kind = &kEcho,
         .plan = [&, this](const kube::Key& key, Time,
                           const runtime::Refusal*) -> std::optional<runtime::Plan> {
           const auto echo = echoes.cache().get(key);
           if (!echo) return std::nullopt;
           EchoObserved o{echo, children.cache().controlled_by(echo->meta.uid)};
           if (fault_ == Fault::kDeletesTooMuch && !o.children.empty()) {
             auto less = std::make_shared<Echo>(*echo);
             --less->replicas;
             o.echo = less;
           }
           return spoilt(plan(o));
         }});
    manager.watch(echoes, controller);
    if (fault_ != Fault::kForgetsDrift) manager.watch_owned(children, controller);
    return nullptr;
  }

 private:
  runtime::Plan spoilt(runtime::Plan plan) {
    if (fault_ != Fault::kNamesByChance) return plan;
    for (auto& stage : plan.stages) {
      for (auto& write : stage) {
        if (auto* create = std::get_if<runtime::Create>(&write)) {
          Json object = create->object.make();
          ensure_object(object.as_object(), "metadata")["name"] =
              "x" + std::to_string(++number_) + "-0";
          create->object = std::move(object);
        }
      }
    }
    return plan;
  }

  Fault fault_;
  int number_ = 0;
  std::unique_ptr<Subject> right_ = make_echo_subject();
};

TEST_F(WorldTest, FindsPlannersThatAreWrong) {
  using Fault = FaultySubject::Fault;
  for (const Fault fault : {Fault::kForgetsDrift, Fault::kNamesByChance, Fault::kDeletesTooMuch}) {
    bool found = false;
    for (uint64_t seed = 1; seed <= 10 && !found; ++seed) {
      FaultySubject subject(fault);
      found = World(seed, subject).run().violation.has_value();
    }
    EXPECT_TRUE(found) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace grapnel::simulation
