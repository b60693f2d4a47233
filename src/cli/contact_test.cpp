#include "cli/contact.h"

#include <gtest/gtest.h>

#include <vector>

namespace grapnel::cli {
namespace {

struct Moment {
  int at = 0;  // seconds
  std::optional<int> process = {};
  bool serves = true;
  std::string trouble = {};
};

// What is said, each with its second, up to the end.
std::vector<std::string> said(const Cluster& cluster, const std::vector<Moment>& moments) {
  Contact contact(cluster, 7);
  std::vector<std::string> out;
  for (const Moment& m : moments) {
    ContactSample sample{.now = Instant(hours(1) + seconds(m.at)),
                         .process = m.process,
                         .serves = m.process && m.serves};
    if (!m.trouble.empty()) sample.trouble = Error{.message = m.trouble};
    const auto verdict = contact.judge(sample);
    if (!verdict.note.empty()) out.push_back(fmt::format("{}: {}", m.at, verdict.note));
    if (verdict.lost) {
      out.push_back(fmt::format("{}: lost: {}", m.at, verdict.lost->message));
      break;
    }
  }
  return out;
}

using Said = std::vector<std::string>;
const Cluster kLaptop{.laptop = "mine", .description = "the laptop cluster 'mine'"};
const Cluster kReal{.laptop = "", .description = "context prod (https://k8s:6443)"};

TEST(Contact, ALaptopClusterThatIsGoneForSecondsHasStopped) {
  EXPECT_EQ(said(kLaptop, {{0, 7}, {1}, {5}, {6}}),
            (Said{"6: lost: the cluster 'mine' has stopped"}));
}

TEST(Contact, OneThatNoLongerServesIsStopping) {
  EXPECT_EQ(said(kLaptop, {{0, 7}, {1, 7, false}, {6, 7, false}}),
            (Said{"6: lost: the cluster 'mine' has stopped"}));
}

TEST(Contact, OneThatComesBackWasRestarted) {
  EXPECT_EQ(
      said(kLaptop, {{0, 7}, {1}, {4, 8, false}, {9, 8, false}, {10, 8}, {11}, {15}, {16, 9}}),
      Said{});
  EXPECT_EQ(said(kLaptop, {{1}, {4, 8}, {20, 8, false}, {25}}),
            (Said{"25: lost: the cluster 'mine' has stopped"}));
}

TEST(Contact, AnotherClusterIsGivenMinutes) {
  EXPECT_EQ(said(kReal, {{0}, {1, {}, true, "refused"}, {10, {}, true, "refused"}}), Said{});
  EXPECT_EQ(said(kReal, {{0},
                         {1, {}, true, "refused"},
                         {11, {}, true, "refused"},
                         {12, {}, true, "refused"},
                         {600, {}, true, "refused"},
                         {601, {}, true, "reset"}}),
            (Said{"11: no contact with context prod (https://k8s:6443) (refused); trying again for "
                  "10 minutes",
                  "601: lost: lost the connection to context prod (https://k8s:6443): reset"}));
}

TEST(Contact, ItIsSaidThatAClusterAnswersAgain) {
  EXPECT_EQ(said(kReal, {{0, {}, true, "x"}, {10, {}, true, "x"}, {20}, {21}, {22, {}, true, "x"}}),
            (Said{"10: no contact with context prod (https://k8s:6443) (x); trying again for 10 "
                  "minutes",
                  "20: context prod (https://k8s:6443) answers again"}));
}

TEST(Contact, ALaptopClusterThatRunsButDoesNotAnswerIsGivenMinutes) {
  EXPECT_EQ(said(kLaptop, {{0, 7, true, "x"}, {599, 7, true, "x"}, {600, 7, true, "x"}}),
            (Said{"599: no contact with the laptop cluster 'mine' (x); trying again for 10 minutes",
                  "600: lost: lost the connection to the laptop cluster 'mine': x"}));
}

}  // namespace
}  // namespace grapnel::cli
