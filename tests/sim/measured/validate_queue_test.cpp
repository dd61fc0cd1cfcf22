// Queues against what was published and recorded of them.
#include "sim/measured/validate_queue.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/real_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

const std::string kOutcomes = LOCKSTEP_SOURCE_DIR "/tests/reference/queue";

/// Two jobs of 8 GPUs on a node of 8: from 0 to 100 s, from 100 to 150 s.
const std::string kTwoJobs = R"({"queues": [{"id": "a", "source": "s", "basis": "recorded",
  "scenario": {"cluster": {"node": "dgx_h100", "nodes": 1},
    "queue": {"order": "fifo", "admission": "strict", "jobs": [
      {"job": {"name": "x", "gpus": 8, "runs": "100 s"}},
      {"job": {"name": "y", "gpus": 8, "runs": "50 s"}}]}},
  "figures": [{"figure": "wait_mean_s", "value": 50, "within": "0.1 %"},
              {"figure": "makespan_s", "value": 120, "within": "10 %"},
              {"figure": "completion_mean_s", "value": 250}],
  "schedule": {"file": "runs.csv", "gap": "5 s", "within": {"starts": 0, "nodes": 0}}}]})";
constexpr const char* kTwoRuns = "job,start_s,end_s,nodes\nx,0,100,n1\ny,104,150,n2\n";

std::string replaced_text(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

PointTable table_of_queues(const std::string& document) {
  const test::TemporaryFolder folder;
  (void)folder.write("runs.csv", kTwoRuns);
  return validate_queue(folder.write("queues.json", document), test::presets());
}

/// What is said of a document, from its name on.
std::string queue_problem(const std::string& document) {
  try {
    (void)table_of_queues(document);
  } catch (const InputError& error) {
    const std::string said = error.what();
    const std::size_t at = said.find("queues.json");
    return at == std::string::npos ? said : said.substr(at);
  }
  return "";
}

const ValidationPoint& point_of(const PointTable& table, const std::string& figure) {
  for (const ValidationPoint& point : table.points) {
    if (identity_of(point, "figure") == figure) return point;
  }
  FAIL("no figure " << figure);
  return table.points.front();
}

}  // namespace

TEST_CASE("validate --queue: what the project promises of published and recorded queues is kept") {
  const PointTable table = validate_queue(kOutcomes, test::presets());
  CHECK(table.missed == std::vector<std::string>{});
  const bool real = test::has_real_file("scheduling/muri_trace3.csv.gz");
  CHECK(table.points.size() == (real ? 99 : 48));
  REQUIRE(table.skipped.size() == (real ? 0 : 1));
  if (!real) CHECK(table.skipped.front().starts_with("25 queues: a trace or schedule is neither"));
}

TEST_CASE(
    "validate --queue: FGD's published allocation, within half a point, and policies in order" *
    doctest::skip(!test::has_real_file("scheduling/openb_nodes.csv.gz"))) {
  const PointTable table = validate_queue(kOutcomes + "/fgd.json", test::presets());
  REQUIRE(table.points.size() == 30);
  constexpr double kHalfPoint = 0.005;
  constexpr double kTie = 0.001;  // the standard error of means of ten orders, and more
  int pairs = 0;
  for (const ValidationPoint& point : table.points) {
    CAPTURE(identity_of(point, "queue"));
    CAPTURE(identity_of(point, "figure"));
    CHECK(std::abs(point.predicted - point.measured) < kHalfPoint);
    for (const ValidationPoint& other : table.points) {
      if (identity_of(other, "queue") != identity_of(point, "queue")) continue;
      if (other.measured - point.measured < kTie) continue;
      CAPTURE(identity_of(other, "figure"));
      CHECK(other.predicted > point.predicted);
      ++pairs;
    }
  }
  CHECK(pairs == 72);  // of 75
}

TEST_CASE("validate --queue: a cluster that is filled, and its mistakes") {
  const std::string filled = R"({"queues": [{"id": "f", "source": "s", "basis": "published",
    "scenario": {"filling": {"policies": ["fgd"], "seeds": 1,
      "nodes": [{"cpus": 8, "memory": "8 GiB", "gpus": 4}],
      "pods": [{"cpus": 1, "gpus": 1}]}},
    "figures": [{"figure": "policies.fgd.allocated", "value": 1, "within": 0}]}]})";
  const PointTable table = table_of_queues(filled);
  REQUIRE(table.points.size() == 1);
  CHECK(table.points.front().predicted == 1);
  CHECK(table.missed.empty());
  CHECK(queue_problem(replaced_text(filled, "fgd.allocated", "fgd.alocated"))
            .starts_with("queues.json#/queues/0/figures/0/figure"));
  CHECK(queue_problem(replaced_text(filled, "\"cpus\": 8", "\"cpus\": -8"))
            .starts_with("queues.json#/queues/0/scenario/filling/nodes/0/cpus"));
  CHECK(queue_problem(replaced_text(filled, "\"figures\"",
                                    R"("schedule": {"file": "runs.csv", "gap": 1}, "figures")"))
            .starts_with("queues.json#/queues/0/schedule"));
}

TEST_CASE("validate --queue: Muri's published averages, to all their digits" *
          doctest::skip(!test::has_real_file("scheduling/muri_trace3.csv.gz"))) {
  const PointTable table = validate_queue(kOutcomes + "/muri.json", test::presets());
  int averages = 0;
  for (const ValidationPoint& point : table.points) {
    const std::string queue = identity_of(point, "queue");
    CAPTURE(queue);
    if (queue == "muri-cluster-srtf") continue;
    const bool is_mean = identity_of(point, "figure") == "completion_mean_s";
    averages += is_mean ? 1 : 0;
    CHECK(std::abs(point.predicted - point.measured) < (is_mean ? 0.00051 : 0.051));
  }
  CHECK(averages == 12);
}

TEST_CASE("validate --queue: each figure with its promise, and a line for each that is missed") {
  const PointTable table = table_of_queues(kTwoJobs);
  CHECK(table.points.size() == 9);
  const ValidationPoint& wait = point_of(table, "wait_mean_s");
  CHECK(wait.predicted == 50);
  CHECK(identity_of(wait, "promise") == "kept");
  CHECK(identity_of(wait, "within") == "0.1 %");
  CHECK(point_of(table, "makespan_s").error == doctest::Approx(0.25));
  CHECK(identity_of(point_of(table, "makespan_s"), "promise") == "missed");
  CHECK(point_of(table, "completion_mean_s").predicted == 125);
  CHECK(identity_of(point_of(table, "completion_mean_s"), "promise") == "reported");
  CHECK(point_of(table, "schedule.starts").predicted == 2);
  CHECK(point_of(table, "schedule.ends").predicted == 2);
  CHECK(point_of(table, "schedule.nodes").measured == 2);
  CHECK(point_of(table, "schedule.nodes").predicted == 1);
  CHECK(point_of(table, "schedule.wait_mean_s").measured == 52);
  CHECK(table.missed ==
        std::vector<std::string>{
            "a, makespan_s: predicted 150, recorded 120: +25.0000 %; promised: within 10 %",
            "a, schedule.nodes: predicted 1, recorded 2: -50.0000 %; promised: within 0 %"});
  const PointTable faster = table_of_queues(replaced_text(
      kTwoJobs, R"("basis")", R"("set": {"queue.jobs.0.job.runs": "70 s"}, "basis")"));
  CHECK(point_of(faster, "makespan_s").predicted == 120);
}

TEST_CASE("validate --queue: what is drawn in place of a trace is no prediction of it") {
  const std::string document = R"({"queues": [{"id": "gone", "source": "s", "basis": "published",
    "scenario": "muri-trace3-srtf", "set": {"queue.jobs.0.trace.file": "not-here/trace.csv"},
    "figures": [{"figure": "completion_mean_s", "value": 1}]}]})";
  const PointTable table = table_of_queues(document);
  CHECK(table.points.empty());
  CHECK(table.skipped ==
        std::vector<std::string>{"1 queue: a trace or schedule is neither beside its scenario nor "
                                 "in a folder that LOCKSTEP_DATA names"});
  CHECK(table_of_queues(replaced_text(kTwoJobs, "runs.csv", "not-here.csv")).skipped ==
        table.skipped);
}

TEST_CASE("validate --queue: a mistake is told at its place in the document") {
  CHECK(queue_problem(replaced_text(kTwoJobs, R"("figures")", R"("figurs")")) ==
        R"(queues.json#/queues/0/figurs: found the unknown key "figurs"; allowed: id, source, )"
        R"(basis, scenario, set, figures, schedule. Did you mean "figures"?)");
  CHECK(queue_problem(replaced_text(kTwoJobs, "wait_mean_s", "wait_mean")) ==
        R"(queues.json#/queues/0/figures/0/figure: found "wait_mean"; allowed: a number of the )"
        R"(answer (lockstep list fields). Did you mean "wait_mean_s"?)");
  CHECK(queue_problem(replaced_text(kTwoJobs, R"("strict",)", R"("strict", "until": "50 s",)")) ==
        R"(queues.json#/queues/0/figures/1/figure: found "makespan_s"; allowed: a number that the )"
        "answer has a value of, which this one is not");
  CHECK(queue_problem(replaced_text(kTwoJobs, R"("value": 50)", R"("value": 0)")) ==
        "queues.json#/queues/0/figures/0/value: found 0; allowed: a number above 0");
  CHECK(queue_problem(replaced_text(kTwoJobs, R"("starts": 0)", R"("start": 0)")) ==
        R"(queues.json#/queues/0/schedule/within/start: found the unknown key "start"; allowed: )"
        R"(runs, starts, ends, nodes, order, wait_mean_s. Did you mean "starts"?)");
  CHECK(queue_problem(replaced_text(kTwoJobs, R"("fifo")", R"("fif")"))
            .starts_with(R"(queues.json#/queues/0/scenario/queue/order: found "fif"; allowed: )"));
  CHECK(queue_problem(
            replaced_text(kTwoJobs, R"("basis")", R"("set": {"queue.order": "fif"}, "basis")"))
            .find(R"(queues.json#/queues/0/set, queue.order="fif"); allowed: fifo)") !=
        std::string::npos);
  CHECK(queue_problem(R"({"queues": [{"id": "a", "source": "s", "basis": "published",
          "scenario": "muri-trace3-srft", "figures": [{"figure": "jobs", "value": 1}]}]})")
            .ends_with(R"(a name of lockstep list scenarios, or an object. Did you mean )"
                       R"("muri-trace3-srtf"?)"));
  CHECK(queue_problem(R"({"queues": [{"id": "a", "source": "s", "basis": "published",
          "scenario": "muri-trace3-srtf"}]})") ==
        R"(queues.json#/queues/0: found an object; allowed: "figures" or a "schedule" to hold )"
        "predictions against");
}

TEST_CASE("validate --queue: a folder's documents are read by name, and ids are of one queue") {
  const test::TemporaryFolder folder;
  (void)folder.write("runs.csv", kTwoRuns);
  (void)folder.write("b.json", kTwoJobs);
  (void)folder.write("a.json", replaced_text(kTwoJobs, R"("id": "a")", R"("id": "first")"));
  const PointTable table = validate_queue(folder.path(), test::presets());
  REQUIRE(table.points.size() == 18);
  CHECK(identity_of(table.points.front(), "queue") == "first");
  CHECK(identity_of(table.points.back(), "queue") == "a");
  (void)folder.write("c.json", kTwoJobs);
  CHECK_THROWS_WITH_AS(
      (void)validate_queue(folder.path(), test::presets()),
      (folder.path() + R"(/c.json#/queues/0/id: found "a"; allowed: an id of its own)").c_str(),
      InputError);
  const test::TemporaryFolder empty;
  CHECK_THROWS_AS((void)validate_queue(empty.path(), test::presets()), InputError);
}

}  // namespace lockstep
