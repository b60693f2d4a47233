#include "runtime/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/manager.h"
#include "runtime/scripted_transport_test.h"
#include "tests/simulation/virtual_loop.h"

namespace grapnel::runtime {
namespace {

using testing::HasSubstr;
using testing::Not;
using End = ControllerObserver::End;

struct MetricsTest : testing::Test {
  simulation::VirtualLoop loop;
  Random random{1};
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>(loop.clock);
  kube::Client client{server, nullptr, {.server = "http://test:1", .clock = &loop.clock}};
  Manager manager{loop.executor(),
                  client,
                  loop.clock,
                  random,
                  {.lease = LeaseOptions{.ns = "ns", .name = "grapnel", .identity = "me"}}};
  Metrics metrics{"10.0.0.1:443"};
  Controller& controller = manager.add_controller(
      {.name = "jobset", .kind = &kube::kinds::kJobSet, .plan = {}, .at_once = 8});

  MetricsTest() { metrics.follow(manager); }
};

TEST_F(MetricsTest, EverySeriesIsThereFromTheStart) {
  const auto text = metrics.text();
  for (const auto* line : {
           R"(controller_runtime_reconcile_total{controller="jobset",result="success"} 0)",
           R"(controller_runtime_reconcile_total{controller="jobset",result="requeue_after"} 0)",
           R"(controller_runtime_reconcile_errors_total{controller="jobset"} 0)",
           R"(controller_runtime_terminal_reconcile_errors_total{controller="jobset"} 0)",
           R"(controller_runtime_reconcile_panics_total{controller="jobset"} 0)",
           R"(controller_runtime_reconcile_timeouts_total{controller="jobset"} 0)",
           R"(controller_runtime_reconcile_time_seconds_count{controller="jobset"} 0)",
           R"(controller_runtime_max_concurrent_reconciles{controller="jobset"} 8)",
           R"(controller_runtime_active_workers{controller="jobset"} 0)",
           R"(workqueue_depth{controller="jobset",name="jobset",priority="0"} 0)",
           R"(workqueue_adds_total{controller="jobset",name="jobset"} 0)",
           R"(workqueue_retries_total{controller="jobset",name="jobset"} 0)",
           R"(workqueue_unfinished_work_seconds{controller="jobset",name="jobset"} 0)",
           R"(workqueue_longest_running_processor_seconds{controller="jobset",name="jobset"} 0)",
           R"(leader_election_master_status{name="grapnel"} 0)",
           R"(# TYPE rest_client_request_duration_seconds histogram)",
           R"(process_resident_memory_bytes )",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(MetricsTest, CountsWhatQueueAndControllerDo) {
  controller.enqueue({Interned("ns"), "a"});
  controller.enqueue({Interned("ns"), "b"});
  manager.queue().take();
  loop.clock.advance(seconds(3));
  metrics.planned("jobset", End::kSuccess, milliseconds(20));
  metrics.planned("jobset", End::kRefused, milliseconds(20));
  const auto text = metrics.text();
  const std::string queue = R"({controller="jobset",name="jobset"})";
  EXPECT_THAT(text, HasSubstr("workqueue_adds_total" + queue + " 2"));
  EXPECT_THAT(text,
              HasSubstr(R"(workqueue_depth{controller="jobset",name="jobset",priority="0"} 1)"));
  EXPECT_THAT(text, HasSubstr("workqueue_longest_running_processor_seconds" + queue + " 3"));
  EXPECT_THAT(text, HasSubstr(R"(reconcile_total{controller="jobset",result="success"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(reconcile_errors_total{controller="jobset"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(terminal_reconcile_errors_total{controller="jobset"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(reconcile_time_seconds_count{controller="jobset"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(controller_runtime_active_workers{controller="jobset"} 1)"));
}

TEST_F(MetricsTest, CountsRequestsAndWhatPlannersCount) {
  metrics.observe_request("GET", 200, milliseconds(3));
  metrics.observe_request("GET", 0, milliseconds(3));
  metrics.count({"jobset_completed_total", {{"jobset_name", "a"}}});
  metrics.count({"jobset_completed_total", {{"jobset_name", "a"}}});
  metrics.count({"not a name", {}});
  const auto text = metrics.text();
  EXPECT_THAT(
      text,
      HasSubstr(R"(rest_client_requests_total{code="200",host="10.0.0.1:443",method="GET"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(code="<error>")"));
  EXPECT_THAT(text, HasSubstr(R"(jobset_completed_total{jobset_name="a"} 2)"));
  EXPECT_THAT(text, Not(HasSubstr("not a name")));
}

TEST_F(MetricsTest, KeepsTheNewestOfWhatPlannersCount) {
  const auto count = [&](int number) {
    metrics.count({"jobset_failed_total", {{"jobset_name", std::to_string(number)}}});
  };
  for (int i = 0; i < 10'002; ++i) count(i);
  count(2);  // it is there already, and takes nobody's place
  const auto text = metrics.text();
  EXPECT_THAT(text, Not(HasSubstr(R"({jobset_name="1"})")));
  EXPECT_THAT(text, HasSubstr(R"(jobset_failed_total{jobset_name="2"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(jobset_failed_total{jobset_name="10001"} 1)"));
}

TEST_F(MetricsTest, GaugesAreReadWhenAskedForWhileTheManagerWorks) {
  Manager alone(loop.executor(), client, loop.clock, random, {});
  double ended = 1;
  alone.add_gauge({.name = "jobset_terminal_state", .help = "Ended.", .read = [&ended] {
                     return std::vector<CacheGauge::Sample>{
                         {.labels = {{"jobset_name", "a"}, {"namespace", "ml"}}, .value = ended}};
                   }});
  Metrics of_it;
  of_it.follow(alone);
  EXPECT_THAT(of_it.text(), Not(HasSubstr("terminal_state"))) << "what stands by would count twice";
  const auto running =
      spawn(loop.executor(), [](Manager& m) -> Task<> { (void)co_await m.run(); }(alone));
  ASSERT_TRUE(loop.run_until([&] { return alone.working(); }, seconds(5)));
  EXPECT_THAT(of_it.text(),
              HasSubstr("# TYPE jobset_terminal_state gauge\n"
                        R"(jobset_terminal_state{jobset_name="a",namespace="ml"} 1)"));
  ended = 0;
  EXPECT_THAT(of_it.text(), HasSubstr(R"(jobset_name="a",namespace="ml"} 0)"));
  alone.stop();
  ASSERT_TRUE(loop.run_until([&] { return running.done(); }, seconds(5)));
}

}  // namespace
}  // namespace grapnel::runtime
