// Which controllers of a Manager work, and which rest, while kinds come and go.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/manager.h"
#include "runtime/metrics.h"
#include "runtime/scripted_transport_test.h"
#include "tests/simulation/virtual_loop.h"

namespace grapnel::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

constexpr kube::Kind kWidget{"example.com", "v1", "Widget", "widgets", true};
const kube::Kind& kThing = kube::kinds::kConfigMap;

struct Thing {
  kube::Meta meta;
  bool operator==(const Thing&) const = default;
};
Result<Thing> decode(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  return Thing{std::move(*meta)};
}

// What the server has of a kind.
struct Collection {
  enum class Access { kGiven, kNotDefined, kForbidden };
  Access access = Access::kGiven;
  std::vector<std::string> names;
  int version = 5;
};
using Access = Collection::Access;

struct StandingTest : testing::Test {
  simulation::VirtualLoop loop;
  Random random{1};
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>(loop.clock);
  kube::Client client{server, nullptr, {.server = "http://test:1", .clock = &loop.clock}};
  Metrics metrics;
  Manager manager{loop.executor(), client, loop.clock, random, {}};
  std::map<std::string, Collection> collections;  // by plural
  std::vector<std::string> planned;
  std::optional<Result<>> ended;
  Spawned running;

  StandingTest() {
    server->serve([this](std::string_view request) { return answer(request); });
  }
  ~StandingTest() override {
    manager.stop();
    loop.run_until([&] { return running.done(); }, minutes(1));
  }

  std::optional<ScriptedAnswer> answer(std::string_view request) {
    const auto path = request.substr(0, request.find('?'));
    const Collection& of = collections[std::string(path.substr(path.rfind('/') + 1))];
    if (of.access == Access::kNotDefined) return ScriptedTransport::refusal(404, "NotFound");
    if (of.access == Access::kForbidden) {
      return ScriptedTransport::refusal(403, "Forbidden", "you may not");
    }
    // A watch lasts for half a minute.
    if (request.find("watch=true") != std::string_view::npos) {
      return ScriptedAnswer{.silent_for = seconds(30)};
    }
    std::vector<std::string> items;
    for (const auto& name : of.names) {
      items.push_back(fmt::format(
          R"({{"metadata":{{"namespace":"ns","name":"{}","uid":"u-{}","resourceVersion":"2"}}}})",
          name, name));
    }
    return ScriptedAnswer{
        .pieces = {fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}},"items":[{}]}})",
                               of.version, fmt::join(items, ","))}};
  }

  Informer<Thing>& inform(const kube::Kind& kind) {
    return manager.add_informer<Thing>({.kind = kind, .watcher = {.watch_list = false}}, decode);
  }
  Controller& control(std::string name, const kube::Kind& kind) {
    auto plan = [this, name](const kube::Key& key, Time, const Refusal*) {
      planned.push_back(name + " " + key.name);
      return Plan();
    };
    return manager.add_controller({.name = std::move(name), .kind = &kind, .plan = plan});
  }
  void start() {
    metrics.follow(manager);
    running = spawn(loop.executor(),
                    [](StandingTest& t) -> Task<> { t.ended = co_await t.manager.run(); }(*this));
  }
  std::string readyz(std::string_view query = "") {
    Health health;
    manager.add_checks(health);
    return health.answer({.target = fmt::format("/readyz{}", query)}).body;
  }
  size_t asked_for(std::string_view what) const {
    return static_cast<size_t>(std::ranges::count_if(server->asked, [&](const auto& request) {
      return request.find(what) != std::string::npos;
    }));
  }
};

struct TwoControllers : StandingTest {
  Informer<Thing>& things = inform(kThing);
  Informer<Thing>& widgets = inform(kWidget);
  Controller& thing_controller = control("thing", kThing);
  Controller& widget_controller = control("widget", kWidget);
  TwoControllers() {
    manager.watch(things, thing_controller);
    manager.watch(widgets, widget_controller);
    collections["configmaps"].names = {"a"};
    collections["widgets"].names = {"w"};
  }
};

TEST_F(TwoControllers, OneWhoseKindIsNotDefinedRestsAndTheOtherWorks) {
  collections["widgets"].access = Access::kNotDefined;
  start();
  loop.run_for(seconds(3));
  EXPECT_TRUE(manager.working());
  EXPECT_THAT(planned, ElementsAre("thing a"));
  EXPECT_THAT(manager.unready(), IsEmpty());
  EXPECT_THAT(manager.resting(),
              ElementsAre(Pair("widget", "not defined in this cluster: Widget (example.com/v1)")));
  EXPECT_EQ(readyz(), "ok");
  EXPECT_THAT(readyz("?verbose"),
              HasSubstr("[+]widget rests: not defined in this cluster: Widget"));
  EXPECT_THAT(metrics.text(), HasSubstr(R"(grapnel_controller_ready{controller="thing"} 1)"));
  EXPECT_THAT(metrics.text(), HasSubstr(R"(grapnel_controller_ready{controller="widget"} 0)"));
  EXPECT_THAT(metrics.text(),
              HasSubstr("grapnel_controller_waits"
                        R"({controller="widget",kind="Widget",reason="NotDefined"} 1)"));
}

TEST_F(TwoControllers, ItBeginsSoonAfterItsKindIsDefined) {
  collections["widgets"].access = Access::kNotDefined;
  start();
  loop.run_for(seconds(3));
  collections["widgets"].access = Access::kGiven;
  loop.run_for(seconds(8));
  EXPECT_THAT(planned, ElementsAre("thing a", "widget w")) << "just after the start: in seconds";
  EXPECT_THAT(manager.resting(), IsEmpty());
  EXPECT_THAT(metrics.text(), HasSubstr(R"(grapnel_controller_ready{controller="widget"} 1)"));
  EXPECT_THAT(metrics.text(), Not(HasSubstr("NotDefined")));
}

TEST_F(TwoControllers, ItGoesOnAskingAboutOnceAMinute) {
  collections["widgets"].access = Access::kNotDefined;
  start();
  loop.run_for(hours(1));
  EXPECT_FALSE(ended) << "the time-out is not for what rests";
  EXPECT_GE(asked_for("widgets"), 60U);
  EXPECT_LE(asked_for("widgets"), 80U);
  collections["widgets"].access = Access::kGiven;
  loop.run_for(seconds(70));
  EXPECT_THAT(planned, ElementsAre("thing a", "widget w"));
}

TEST_F(TwoControllers, NothingIsDoneWhenADefinitionGoesAndAllIsReadWhenItIsBack) {
  start();
  loop.run_for(seconds(10));
  EXPECT_THAT(planned, ElementsAre("thing a", "widget w"));
  planned.clear();
  collections["widgets"].access = Access::kNotDefined;
  loop.run_for(minutes(2));
  EXPECT_EQ(manager.resting().size(), 1U);
  EXPECT_EQ(widgets.cache().size(), 1U) << "what was known stays known";
  widget_controller.enqueue({Interned("ns"), "w"});
  thing_controller.enqueue({Interned("ns"), "a"});
  loop.run_for(minutes(2));
  EXPECT_THAT(planned, ElementsAre("thing a"));
  planned.clear();
  collections["widgets"] = {.names = {"x"}, .version = 9};
  loop.run_for(seconds(70));
  EXPECT_EQ(widgets.cache().size(), 1U);
  EXPECT_THAT(planned, testing::UnorderedElementsAre("widget w", "widget x"));
  EXPECT_THAT(manager.resting(), IsEmpty());
}

TEST_F(TwoControllers, OneThatMayNotReadItsKindIsNotReadyAndTheOtherWorks) {
  collections["widgets"].access = Access::kForbidden;
  start();
  loop.run_for(minutes(10));
  EXPECT_FALSE(ended);
  EXPECT_THAT(planned, ElementsAre("thing a"));
  EXPECT_THAT(manager.resting(), IsEmpty());
  EXPECT_THAT(readyz(), HasSubstr("[-]caches failed: Widget (example.com/v1): you may not"));
  EXPECT_THAT(metrics.text(), HasSubstr(R"(kind="Widget",reason="Forbidden"} 1)"));
  collections["widgets"].access = Access::kGiven;
  loop.run_for(minutes(1));
  EXPECT_THAT(planned, ElementsAre("thing a", "widget w"));
  EXPECT_EQ(readyz(), "ok");
}

TEST_F(TwoControllers, TheEndComesWhenNothingCanBeRead) {
  collections["configmaps"].access = Access::kForbidden;
  collections["widgets"].access = Access::kNotDefined;
  start();
  loop.run_for(seconds(119));
  EXPECT_FALSE(ended);
  loop.run_for(seconds(2));
  ASSERT_TRUE(ended);
  ASSERT_FALSE(*ended);
  EXPECT_EQ(ended->error().message, "caches did not sync in time: ConfigMap (v1): you may not");
}

TEST_F(TwoControllers, WithoutAnyDefinitionTheyRestForAsLongAsItTakes) {
  collections["configmaps"].access = Access::kNotDefined;
  collections["widgets"].access = Access::kNotDefined;
  start();
  loop.run_for(hours(1));
  EXPECT_FALSE(ended);
  EXPECT_FALSE(manager.working());
  EXPECT_EQ(readyz(), "ok");
  collections["widgets"].access = Access::kGiven;
  loop.run_for(seconds(70));
  EXPECT_THAT(planned, ElementsAre("widget w"));
}

// A controller of things that has widgets made, where there are widgets.
struct OneWithAChild : StandingTest {
  Informer<Thing>& things = inform(kThing);
  Informer<Thing>& widgets = inform(kWidget);
  Controller& controller = control("thing", kThing);
  OneWithAChild() {
    manager.watch(things, controller);
    manager.watch_owned(widgets, controller, Manager::Need::kIfDefined);
    collections["configmaps"].names = {"a"};
    collections["widgets"].access = Access::kNotDefined;
  }
};

TEST_F(OneWithAChild, WorksBeforeTheChildsKindIsDefined) {
  start();
  loop.run_for(seconds(3));
  EXPECT_THAT(planned, ElementsAre("thing a"));
  EXPECT_THAT(manager.resting(), IsEmpty());
}

TEST_F(OneWithAChild, RestsWhenTheChildsKindWasThereAndIsGone) {
  collections["widgets"].access = Access::kGiven;
  start();
  loop.run_for(seconds(10));
  collections["widgets"].access = Access::kNotDefined;
  loop.run_for(minutes(2));
  EXPECT_EQ(manager.resting().size(), 1U) << "what it knows of its children may be wrong";
}

// ---- several projections of one watch -----------------------------------------------------------

TEST_F(StandingTest, InformersThatAskForTheSameShareAWatch) {
  collections["widgets"].names = {"w"};
  auto& first = inform(kWidget);
  auto& second = inform(kWidget);
  auto& other = manager.add_informer<Thing>(
      {.kind = kWidget, .filter = {.label_selector = "x"}, .watcher = {.watch_list = false}},
      decode);
  auto& controller = control("widget", kWidget);
  manager.watch(first, controller);
  manager.watch(second, controller);
  manager.watch(other, controller);
  start();
  loop.run_for(seconds(3));
  EXPECT_EQ(asked_for("widgets?limit"), 1U);
  EXPECT_EQ(asked_for("widgets?labelSelector=x&limit"), 1U);
  EXPECT_EQ(first.cache().size(), 1U);
  EXPECT_EQ(second.cache().size(), 1U);
  EXPECT_EQ(second.cache().last_version(), 5U);
  EXPECT_EQ(second.cache().complete_as_of(), first.cache().complete_as_of());
  EXPECT_TRUE(second.synced());
  EXPECT_EQ(manager.reflectors().size(), 2U);
  EXPECT_THAT(metrics.text(), HasSubstr(R"(grapnel_cache_objects{kind="Widget"} 2)"))
      << "one for each watch";
  EXPECT_THAT(metrics.text(), HasSubstr(R"(grapnel_watches{kind="Widget"} 2)"));
  EXPECT_THAT(planned, ElementsAre("widget w"));
}

}  // namespace
}  // namespace grapnel::runtime
