#include "local/node/held_questions.h"

#include <gtest/gtest.h>

#include "tests/simulation/virtual_loop.h"

namespace grapnel::local::dns {
namespace {

using Answer = std::optional<std::string>;

struct HeldQuestionsTest : testing::Test {
  simulation::VirtualLoop loop;
  std::map<std::string, std::string> known;
  HeldQuestions questions{loop.executor(), loop.clock, {.time = seconds(4), .all = 5, .of_one = 3}};
  std::map<std::string, Answer> answers;  // of those who wait no longer
  std::vector<Spawned> askers;

  void ask(const std::string& name, uint32_t asker = 1) {
    const auto wait = [](HeldQuestionsTest& test, std::string name, uint32_t asker) -> Task<> {
      Answer answer = co_await test.questions.wait(asker, [&test, name] {
        const auto found = test.known.find(name);
        return found == test.known.end() ? Answer() : Answer(found->second);
      });
      test.answers[name] = std::move(answer);
    };
    askers.push_back(spawn(loop.executor(), wait(*this, name, asker)));
    loop.settle();
  }
  void TearDown() override {
    askers.clear();
    loop.settle();
  }
  bool waits(const std::string& name) const { return !answers.contains(name); }
};

TEST_F(HeldQuestionsTest, WhatIsKnownIsAnsweredAtOnce) {
  known["a"] = "1";
  ask("a");
  EXPECT_EQ(answers.at("a"), "1");
  EXPECT_EQ(questions.size(), 0U);
}

TEST_F(HeldQuestionsTest, WhatBecomesKnownIsAnsweredThen) {
  ask("a");
  ask("b");
  loop.run_for(seconds(3));
  EXPECT_TRUE(waits("a"));
  known["a"] = "1";
  questions.look_again();
  loop.settle();
  EXPECT_EQ(answers.at("a"), "1");
  EXPECT_TRUE(waits("b"));
  EXPECT_EQ(questions.size(), 1U);
}

TEST_F(HeldQuestionsTest, NobodyWaitsForLongerThanTheTime) {
  ask("a");
  loop.run_for(milliseconds(3990));
  EXPECT_TRUE(waits("a"));
  loop.run_for(milliseconds(20));
  EXPECT_EQ(answers.at("a"), std::nullopt);
  EXPECT_EQ(questions.size(), 0U);
}

TEST_F(HeldQuestionsTest, AFloodIsRefusedAtOnceAndTakesNoPlaceOfOthers) {
  for (const char* name : {"a", "b", "c"}) ask(name, 1);
  ask("d", 1);
  EXPECT_EQ(answers.at("d"), std::nullopt) << "one asker has three places";
  ask("e", 2);
  ask("f", 3);
  EXPECT_TRUE(waits("e"));
  EXPECT_TRUE(waits("f"));
  ask("g", 4);
  EXPECT_EQ(answers.at("g"), std::nullopt) << "there are five in all";
  EXPECT_EQ(questions.size(), 5U);

  loop.run_for(seconds(5));
  EXPECT_EQ(questions.size(), 0U);
  ask("h", 1);
  EXPECT_TRUE(waits("h")) << "places are free again";
}

TEST_F(HeldQuestionsTest, ReleasedTheyWaitNoLonger) {
  ask("a");
  ask("b");
  questions.release();
  loop.settle();
  EXPECT_EQ(answers.at("a"), std::nullopt);
  EXPECT_EQ(answers.at("b"), std::nullopt);
  EXPECT_EQ(questions.size(), 0U);
}

TEST_F(HeldQuestionsTest, AnAskerThatIsCancelledLeavesItsPlace) {
  ask("a");
  askers.back().cancel();
  loop.settle();
  EXPECT_EQ(questions.size(), 0U);
  known["a"] = "1";
  questions.look_again();
}

}  // namespace
}  // namespace grapnel::local::dns
