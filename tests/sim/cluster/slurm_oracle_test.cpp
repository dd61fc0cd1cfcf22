// Queues that a real Slurm 22.05 ran (tests/reference/slurm, recorded by record.py), against what
// is simulated: the same jobs on the same nodes in the same order, the same victims, the same jobs
// that never start.
#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/base/text_file.hpp"
#include "sim/cluster/recorded_schedule.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

const std::string kRecordings = LOCKSTEP_SOURCE_DIR "/tests/reference/slurm/";

/// The names of all runs, by their starts.
std::vector<std::pair<double, std::string>> in_order(const JobSchedule& runs) {
  std::vector<std::pair<double, std::string>> out;
  for (const auto& [name, of] : runs) {
    for (std::size_t r = 0; r < of.size(); ++r) {
      out.emplace_back(of[r].start_s, name + " " + std::to_string(r));
    }
  }
  std::ranges::sort(out);
  return out;
}

void check_order(const JobSchedule& recorded, const JobSchedule& simulated, double within_s) {
  std::map<std::string, double> here;
  for (const auto& [at, name] : in_order(simulated)) here[name] = at;
  const auto truth = in_order(recorded);
  for (std::size_t a = 0; a < truth.size(); ++a) {
    for (std::size_t b = a + 1; b < truth.size(); ++b) {
      if (truth[b].first - truth[a].first <= within_s) continue;
      INFO(truth[a].second << " before " << truth[b].second);
      CHECK(here.at(truth[a].second) < here.at(truth[b].second));
    }
  }
}

/// `within_s`: what the controller's cycles leave open. `raced`: jobs that started within a second
/// of an end, on a node that was or was not still completing: whose nodes are not compared.
void check_recorded(const std::string& name, double within_s,
                    const std::set<std::string>& raced = {}) {
  CAPTURE(name);
  const std::string path = kRecordings + name + ".json";
  const QueueSpec spec = read_queue(JsonCursor::parse(path, read_text_file(path)), test::presets());
  const QueueResult result = simulate_queue(spec, {.keep_spans = true});
  const std::string rows = kRecordings + name + ".csv";
  const JobSchedule recorded = read_recorded_schedule(rows, read_text_file(rows));
  const JobSchedule simulated = schedule_of(spec, result);
  for (const auto& [job, runs] : recorded) {
    CAPTURE(job);
    REQUIRE(simulated.contains(job));
    const std::vector<JobRun>& here = simulated.at(job);
    REQUIRE(here.size() == runs.size());
    for (std::size_t r = 0; r < runs.size(); ++r) {
      CAPTURE(r);
      if (!raced.contains(job)) CHECK(here[r].nodes == runs[r].nodes);
      CHECK(std::abs(here[r].start_s - runs[r].start_s) <= within_s);
      CHECK(std::abs(here[r].end_s - runs[r].end_s) <= within_s);
    }
  }
  for (const auto& [job, runs] : simulated) CHECK_MESSAGE(recorded.contains(job), job);
  check_order(recorded, simulated, within_s);
}

}  // namespace

// The main scheduler looks once in 60 s where nothing happens, and backfill once in 30 s.
TEST_CASE("a real Slurm: the same victims of preemption, on the same nodes, in the same order") {
  check_recorded("preempt", 60);
}
TEST_CASE("a real Slurm: arrays and every kind of dependency") {
  check_recorded("dependencies", 60, {"arr_4", "begins", "either", "one", "pair_2"});
}
TEST_CASE("a real Slurm: advance reservations") { check_recorded("reserved", 60); }
TEST_CASE("a real Slurm: limits of qualities of service and of associations") {
  check_recorded("limits", 60, {"a4"});
}
TEST_CASE("a real Slurm: jobs of a node that broke are requeued") { check_recorded("broken", 60); }
TEST_CASE("a real Slurm: the order of Fair Tree") { check_recorded("fair_tree", 60); }

}  // namespace lockstep
