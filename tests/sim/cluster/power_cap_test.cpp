// A site's power cap: what starts under it, what waits for it, and what is refused.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/cluster/queue_draws.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::end_s;
using test::seconds;
using test::start_s;

/// Three jobs of a node each on four nodes.
Json capped_queue() {
  return Json::parse(R"({
    "cluster": {"node": "dgx_h100", "nodes": 4, "fabric": "fat_tree"},
    "power": {},
    "queue": {"order": "fifo", "admission": "best_effort", "gpu_draw": "600 W", "jobs": [
      {"job": {"name": "a", "gpus": 8, "runs": "1000 s"}},
      {"job": {"name": "b", "gpus": 8, "runs": "500 s"}},
      {"job": {"name": "c", "gpus": 8, "runs": "300 s"}}]}})");
}

QueueSpec read_capped(const Json& scenario) {
  return read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
}

/// What the site draws with so many GPUs held.
double draw_w(const QueueSpec& spec, int held) {
  const QueueDraws draws(spec);
  return draws.facility(held * draws.microwatts_of(-1), spec.cluster.gpus() - held).base_units();
}

std::string refusal_of_cap(const Json& scenario) {
  try {
    (void)simulate_queue(read_capped(scenario));
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("power cap: jobs start while the site draws no more, and wait for it by that name") {
  QueueSpec spec = read_capped(capped_queue());
  const double two = draw_w(spec, 16);
  CHECK(start_s(simulate_queue(spec), 2) == 0);  // nothing caps it
  spec.power_cap = Watts{two};
  const QueueResult result = simulate_queue(spec, {.watch = 2});
  CHECK(start_s(result, 1) == 0);
  CHECK(start_s(result, 2) == 500);  // when the second has ended
  CHECK(result.most_drawn == *spec.power_cap);
  REQUIRE(result.waits.size() == 1);
  CHECK(result.waits[0].reason == WaitReason::power);
  CHECK(result.waits[0].end - result.waits[0].begin == seconds(500));
  // Two nodes have no power while a job waits for it.
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::capped)] == GpuTime(16, seconds(500)));
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::blocked)] == GpuTime());
  GpuTime all;
  for (const GpuTime& bucket : result.books) all += bucket;
  CHECK(all == GpuTime(32, result.end));
  spec.power_cap = Watts{two * (1 - 1e-9)};
  CHECK(start_s(simulate_queue(spec), 1) == 1000);  // one after the other
}

TEST_CASE("power cap: who waits for it holds nobody back, and GPUs that have power are blocked") {
  // Power for a node and a half: the wide job waits, the narrow ones behind it start.
  Json scenario = capped_queue();
  scenario["queue"]["admission"] = "strict";
  scenario["queue"]["jobs"] = Json::parse(R"([
    {"job": {"name": "a", "gpus": 8, "runs": "1000 s"}},
    {"job": {"name": "b", "gpus": 8, "runs": "500 s"}},
    {"job": {"name": "c", "gpus": 4, "runs": "300 s"}}])");
  QueueSpec spec = read_capped(scenario);
  spec.power_cap = Watts{draw_w(spec, 12)};
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 2) == 0);
  CHECK(start_s(result, 1) == 1000);
  // Of 20 free GPUs none has power until 300 s; then 4 of 24 have.
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::capped)] ==
        GpuTime(20, seconds(300)) + GpuTime(20, seconds(700)));
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::blocked)] == GpuTime(4, seconds(700)));
}

TEST_CASE("power cap: it holds at any time, under every admission") {
  for (const std::string admission : {"strict", "best_effort", "easy", "conservative", "slurm"}) {
    CAPTURE(admission);
    Json scenario = capped_queue();
    scenario["cluster"]["nodes"] = 16;
    scenario["queue"]["admission"] = admission;
    scenario["queue"]["reliability"] = "meta_rsc1";
    scenario["queue"]["jobs"] = Json::parse(R"([{"generate": {"count": 300, "every": "10 min",
      "gpus": [[1, 2], [8, 3], [32, 1]], "mean": "3 h", "sigma": 1}}])");
    QueueSpec spec = read_capped(scenario);
    const QueueResult open = simulate_queue(spec);
    spec.power_cap = Watts{draw_w(spec, 64)};
    const QueueResult capped = simulate_queue(spec);
    CHECK(open.most_drawn > *spec.power_cap);
    CHECK(capped.most_drawn <= *spec.power_cap);
    CHECK(capped.end > open.end);
    CHECK(capped.books[static_cast<std::size_t>(QueueBucket::capped)] > GpuTime());
    CHECK(std::ranges::all_of(capped.jobs, [](const JobOutcome& of) { return of.end >= 0; }));
  }
}

TEST_CASE("power cap: mistakes are told by place, with what is allowed") {
  const auto says = [](const auto& change, const std::string& text) {
    Json scenario = capped_queue();
    scenario["queue"]["power_cap"] = "1 MW";
    change(scenario);
    const std::string message = refusal_of_cap(scenario);
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  says([](Json&) {}, "nothing");
  says(
      [](Json& s) {
        s.erase("power");
        s["queue"].erase("gpu_draw");
      },
      "t.json#/queue/power_cap");
  says([](Json& s) { s["queue"]["power_cap"] = "10 kW"; }, "while job a runs alone");
  says([](Json& s) { s["queue"]["power_cap"] = "-1 W"; }, "t.json#/queue/power_cap");
  says(
      [](Json& s) {
        s["queue"]["order"] = "srtf";
        s["queue"]["preemption"] = {{"mode", "replan"}};
      },
      "any but replan beside");
}

}  // namespace lockstep
