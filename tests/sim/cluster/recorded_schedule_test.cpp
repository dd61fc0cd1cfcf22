#include "sim/cluster/recorded_schedule.hpp"

#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "tests/sim/cluster/sample_queues.hpp"

namespace lockstep {
namespace {

std::string schedule_problem(std::string_view text) {
  try {
    (void)read_recorded_schedule("runs.csv", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// Two nodes of four GPUs in strict order: job 0 on node 1 until 100 s; job 1 on both from then to
/// 150 s; job 2, which came at 10 s and would fit beside job 0, on node 1 until 170 s.
struct ThreeJobs {
  QueueSpec spec = test::queue_of(2, 4, {{0, 100, 4}, {0, 50, 8}, {10, 20, 4}});
  JobSchedule simulated = schedule_of(spec, simulate_queue(spec, {.keep_spans = true}));

  [[nodiscard]] ScheduleMatch against(std::string_view csv, double gap_s) const {
    return match_schedule(spec, read_recorded_schedule("runs.csv", csv), simulated, Seconds{gap_s});
  }
};

constexpr std::string_view kSampleRuns =
    "nodes,job,state,start_s,end_s\n"
    "n1,0,done,3,103\n"
    "n[1-2],1,done,104,154\n"
    "n2,2,done,154,190\n"
    "n1,never,waits,,\n";

}  // namespace

TEST_CASE("a recorded schedule: columns in any order, runs of a job by their starts") {
  const JobSchedule schedule = read_recorded_schedule(
      "runs.csv",
      "nodes,job,start_s,end_s\nn2,a,50,60\n\"n[3,1-2]\",a,3,20\nn1,waits,,\n,b,-1.5,2\n");
  REQUIRE(schedule.size() == 2);
  REQUIRE(schedule.at("a").size() == 2);
  CHECK(schedule.at("a")[0].start_s == 3);
  CHECK(schedule.at("a")[0].end_s == 20);
  CHECK(schedule.at("a")[0].nodes == std::vector{1, 2, 3});
  CHECK(schedule.at("a")[1].start_s == 50);
  CHECK(schedule.at("b")[0].start_s == -1.5);
  CHECK(schedule.at("b")[0].nodes.empty());
  CHECK(read_recorded_schedule("runs.csv", "job,start_s,end_s\na,1,2\n").at("a")[0].nodes.empty());
}

TEST_CASE("a recorded schedule: what is wrong with a file is told with its row") {
  CHECK(schedule_problem("job,start_s,stop_s\na,1,2\n") ==
        R"(runs.csv: found the columns job, start_s, stop_s; allowed: a column "end_s")");
  CHECK(schedule_problem("job,start_s,end_s\na,1,2\nb,1,2o\n") ==
        R"(runs.csv, row 2: found "2o"; allowed: a time in seconds)");
  CHECK(schedule_problem("job,start_s,end_s\na,inf,2\n") ==
        R"(runs.csv, row 1: found "inf"; allowed: a time in seconds)");
  CHECK(schedule_problem("job,start_s,end_s,nodes\na,1,2,n[1\n") ==
        R"(runs.csv, row 1: found "n[1"; allowed: names of nodes, as "n[1-4,7]")");
}

TEST_CASE("schedules: starts, ends, nodes and order that a simulated queue has of a recorded one") {
  const ScheduleMatch match = ThreeJobs().against(kSampleRuns, 5);
  CHECK(match.runs == 3);
  CHECK(match.simulated_runs == 3);
  CHECK(match.starts.of == 3);
  CHECK(match.starts.alike == 3);
  CHECK(match.ends.of == 3);
  CHECK(match.ends.alike == 2);  // job 2 ended at 170 s, not at 190 s
  CHECK(match.nodes.of == 3);
  CHECK(match.nodes.alike == 2);  // job 2 was on node 2
  CHECK(match.order.of == 3);
  CHECK(match.order.alike == 3);
  CHECK(match.wait_mean_s == doctest::Approx((3 + 104 + 144) / 3.0));
  CHECK(match.simulated_wait_mean_s == doctest::Approx((0 + 100 + 140) / 3.0));
}

TEST_CASE("schedules: two times are the same up to the gap, and not beyond it") {
  CHECK(ThreeJobs().against(kSampleRuns, 4).starts.alike == 3);
  CHECK(ThreeJobs().against(kSampleRuns, 3.999).starts.alike == 1);
}

TEST_CASE("schedules: a job that never ran here is in no order, and another order is seen") {
  const ScheduleMatch more =
      ThreeJobs().against(std::string(kSampleRuns) + "n1,9,done,300,310\n", 5);
  CHECK(more.runs == 4);
  CHECK(more.simulated_runs == 3);
  CHECK(more.starts.alike == 3);
  CHECK(more.order.of == 6);
  CHECK(more.order.alike == 3);
  // Job 2 before job 1, as a scheduler that backfills has it.
  const ScheduleMatch other =
      ThreeJobs().against("job,start_s,end_s\n0,0,100\n2,10,30\n1,100,150\n", 5);
  CHECK(other.nodes.of == 0);
  CHECK(other.order.of == 3);
  CHECK(other.order.alike == 2);
}

}  // namespace lockstep
