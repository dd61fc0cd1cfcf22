// Steps whose cards' power changes slowly: held to the ramp, energy that balances, today's answer
// in the limit of fast ramps, and the pace of a power cap where power stands still.
#include "sim/step/power_ramp.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <numeric>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/power/step_power.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// Stages that wait for each other, replicas that sum over the network.
std::string piped_job(const std::string& power) {
  return R"({"model": "llama2_7b", "cluster": {"node": "dgx_h100", "nodes": 4},
    "parallelism": {"tensor": 2, "pipeline": 4, "virtual_stages": 2, "schedule": "interleaved",
      "sharding": "zero1"},
    "batch": {"sequences": 32, "micro": 1, "tokens": 4096}, "recompute": "none",
    "power": )" +
         power + "}";
}
/// Replicas alone, which wait long for their sums: all cards do the same.
std::string waiting_job(const std::string& power) {
  return R"({"model": "llama2_7b",
    "cluster": {"node": {"preset": "dgx_h100", "nic_bandwidth": "25 Gb/s"}, "nodes": 8},
    "parallelism": {"sharding": "zero1"},
    "batch": {"sequences": 64, "micro": 1, "tokens": 4096}, "recompute": "full",
    "power": )" +
         power + "}";
}
/// The same where no sum goes on beside a pass.
std::string serial_job(const std::string& power) {
  return R"({"model": "llama2_7b",
    "cluster": {"node": {"preset": "dgx_h100", "nic_bandwidth": "25 Gb/s"}, "nodes": 8},
    "parallelism": {"sharding": "zero1"},
    "batch": {"sequences": 64, "micro": 1, "tokens": 4096}, "recompute": "full",
    "stack": {"preset": "megatron_core",
      "communication": {"overlap_gradients": false, "overlap_parameters": false}},
    "power": )" +
         power + "}";
}
std::string smoothing(const std::string& keys) { return R"({"smoothing": {)" + keys + "}}"; }
std::string ramp_of(double watts_per_s) {
  return smoothing(fmt::format(R"("ramp_w_per_s": {})", watts_per_s));
}

Scenario read(const std::string& text) { return read_scenario("ramp.json", text, test::presets()); }
StepReport step_of(const Scenario& s) {
  return simulate_step(s, {.record_timeline = true, .keep_actors = true});
}
std::string ramp_problem(const std::string& text) {
  try {
    (void)read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

double sum_of_buckets(const BucketTimes& times) {
  return std::accumulate(times.begin(), times.end(), 0.0);
}

void check_books(const StepReport& step, const StepPower& power) {
  Joules parts;
  for (const PowerShare& share : power.shares) {
    CHECK(share.energy >= Joules{});
    parts += share.energy;
  }
  CHECK(parts.base_units() == doctest::Approx(power.energy().base_units()).epsilon(1e-9));
  CHECK(power.facility.end.base_units() == doctest::Approx(step.step_s).epsilon(1e-9));
  CHECK(sum_of_buckets(step.seconds) == doctest::Approx(step.step_s).epsilon(1e-9));
  for (const ActorReport& actor : step.actors) {
    CHECK(sum_of_buckets(actor.seconds) == doctest::Approx(step.step_s).epsilon(1e-9));
    CHECK(to_seconds(actor.finished).base_units() <= step.step_s * (1 + 1e-12));
  }
  double path = 0, shares = 0;
  for (const CriticalPathPart& part : step.critical_path) {
    path += part.seconds;
    shares += part.share;
  }
  CHECK(path == doctest::Approx(step.step_s).epsilon(1e-9));
  CHECK(shares == doctest::Approx(1).epsilon(1e-9));
  for (const TimelineSlice& slice : step.timeline) {
    CHECK(slice.start <= slice.end);
    CHECK(to_seconds(slice.end).base_units() <= step.step_s * (1 + 1e-12));
  }
}

/// W/s that all GPUs together may change by, as the site sees it.
double allowed(const Scenario& s, const StepPower& power) {
  return power.supply * s.gpus() * s.power->smoothing.ramp_w_per_s;
}

/// A GPU's mean power in the passes of a job whose cards all do the same.
double mean_in_passes(const Scenario& s, const StepReport& step, const StepPower& power) {
  double joules = 0, seconds = 0;
  for (const TimelineSlice& slice : step.timeline) {
    if (slice.actor != 0 || slice.stream != 0) continue;
    if (slice_kinds()[slice.kind].name == "optimiser") continue;
    const double from = to_seconds(slice.start).base_units();
    const double to = to_seconds(slice.end).base_units();
    for (std::size_t i = 0; i < power.gpus.size(); ++i) {
      const double begin = std::max(from, power.gpus.start[i].base_units());
      const double end = std::min(to, power.gpus.until(i).base_units());
      if (end > begin) joules += power.gpus.power[i].base_units() * (end - begin);
    }
    seconds += to - from;
  }
  return joules / seconds / s.gpus();
}

}  // namespace

TEST_CASE("ramp: a card that follows at once is today's answer to the last bit") {
  for (const auto& job : {piped_job, waiting_job}) {
    const Scenario fast = read(job(ramp_of(1e18))), none = read(job("{}"));
    const StepReport of_fast = step_of(fast), of_none = step_of(none);
    CHECK(of_fast.step_s == of_none.step_s);
    CHECK_FALSE(of_fast.ramps);
    CHECK(of_fast.seconds == of_none.seconds);
    const StepPower a = step_power(fast, of_fast), b = step_power(none, of_none);
    CHECK(a.facility.power == b.facility.power);
    CHECK(a.facility.start == b.facility.start);
    CHECK(a.ramp_w_per_s == b.ramp_w_per_s);
    CHECK(a.energy() == b.energy());
  }
}

TEST_CASE("ramp: the site's power changes by no more than its cards may, and energy balances") {
  for (const auto& job : {piped_job, waiting_job}) {
    const double asked = step_of(read(job("{}"))).step_s;
    for (const double ramp : {1e6, 1e5, 1e4, 1e3, 100.0}) {
      CAPTURE(ramp);
      for (const char* const window : {"10 ms", "100 ms", "1 s"}) {
        CAPTURE(window);
        const Scenario s = read(job(fmt::format(
            R"({{"ramp_window": "{}", "smoothing": {{"ramp_w_per_s": {}}}}})", window, ramp)));
        const StepReport step = step_of(s);
        const StepPower power = step_power(s, step);
        check_books(step, power);
        CHECK(power.ramp_w_per_s <= allowed(s, power) * (1 + 1e-9));
        // Stairs stand for lines: one of 64 in a window more at the most.
        CHECK(steepest_ramp(power.facility, s.power->ramp_window) <=
              allowed(s, power) * (1 + 1.0 / 32));
        CHECK(power.gpu_peak <= s.node.gpu.power_limit * (1 + 1e-12));
        CHECK(power.gpu_trough >= s.node.gpu.power->active * (1 - 1e-12));
        CHECK(step.step_s > asked);
        REQUIRE(step.band);
        CHECK(step.band->low_s == asked);
        CHECK(step.band->high_s == doctest::Approx(step.step_s).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("ramp: rises that are over soon cost half the time of half the ramp") {
  const double asked = step_of(read(piped_job("{}"))).step_s;
  const auto late = [&](double ramp) {
    return step_of(read(piped_job(ramp_of(ramp)))).step_s - asked;
  };
  const double slow = late(2e7);
  CHECK(slow > 0);
  CHECK(late(4e7) == doctest::Approx(slow / 2).epsilon(0.01));
  CHECK(late(8e7) == doctest::Approx(slow / 4).epsilon(0.02));
}

TEST_CASE("ramp: where power stands still, the pace is that of a cap of that power") {
  // At 1 W/s power hardly changes within a step: it rises in passes as long as it falls in waits.
  const Scenario slow = read(serial_job(ramp_of(1)));
  const StepReport of_slow = step_of(slow);
  const StepPower power = step_power(slow, of_slow);
  const double watts = power.gpu_mean.base_units();
  CHECK(power.gpu_peak.base_units() - power.gpu_trough.base_units() < 0.05 * watts);
  const GpuSpec& gpu = slow.node.gpu;
  CHECK(watts < 0.9 * gpu.power_limit.base_units());
  CHECK(watts > lowest_cap(gpu).base_units());
  // The cap under which passes draw as much.
  double low = lowest_cap(gpu).base_units(), high = gpu.power_limit.base_units();
  double capped_s = 0;
  for (int i = 0; i < 30; ++i) {
    const double cap = (low + high) / 2;
    const Scenario s = read(serial_job(fmt::format(R"({{"cap": {}}})", cap)));
    const StepReport step = step_of(s);
    (mean_in_passes(s, step, step_power(s, step)) < watts ? low : high) = cap;
    capped_s = step.step_s;
  }
  CHECK(of_slow.step_s == doctest::Approx(capped_s).epsilon(0.01));
  CHECK(of_slow.step_s > 1.02 * of_slow.ramps->asked_s);
}

TEST_CASE("ramp: a law's pace is straight between its points, and full at its end") {
  const RampLaw law{{100, 0}, {300, 0.5}, {300, 0.6}, {500, 1}};
  CHECK(pace_at(law, 100) == 0);
  CHECK(pace_at(law, 200) == doctest::Approx(0.25));
  CHECK(pace_at(law, 300) == doctest::Approx(0.6));
  CHECK(pace_at(law, 400) == doctest::Approx(0.8));
  CHECK(pace_at(law, 500) == 1);
  CHECK(pace_at(law, 900) == 1);
  CHECK(pace_at({}, 1) == 1);
}

TEST_CASE("ramp: a floor that is as high as any pass leaves nothing to rise") {
  const Scenario s = read(piped_job(smoothing(R"("floor": "700 W", "ramp_w_per_s": 100)")));
  const StepReport step = step_of(s);
  CHECK_FALSE(step.ramps);
  CHECK(step.step_s == step_of(read(piped_job("{}"))).step_s);
}

TEST_CASE("ramp: what cannot be is one line") {
  CHECK(ramp_problem(piped_job(smoothing(R"("ramp_w_per_s": 0)")))
            .starts_with("ramp.json#/power/smoothing/ramp_w_per_s: found 0; allowed: "));
  CHECK(ramp_problem(piped_job(smoothing(R"("ramp_w_per_s": 100, "capacitor_joules": 65)")))
            .starts_with("ramp.json#/power/smoothing/ramp_w_per_s: found slow ramps beside "
                         "\"capacitor_joules\"; allowed: one of both"));
  CHECK(ramp_problem(
            piped_job(smoothing(R"("ramp_w_per_s": 100, "stagger": {"over": "1 s", "groups": 2})")))
            .starts_with("ramp.json#/power/smoothing/ramp_w_per_s: found slow ramps beside "
                         "\"stagger\"; allowed: one of both"));
}

}  // namespace lockstep
