// Forecasts of starts, against what comes to pass.
#include "sim/cluster/queue_forecast.hpp"

#include <doctest/doctest.h>
#include <string>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/cluster/recorded_starts.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::end_s;
using test::queue_of;
using test::seconds;
using test::start_s;

/// Each job of a node; limits are what `factor` times as long as jobs run.
QueueSpec many_jobs(double factor) {
  QueueSpec spec = test::empty_queue(4, 8);
  spec.admission = QueueAdmission::easy;
  for (int i = 0; i < 200; ++i) {
    QueueJob job;
    job.submit = seconds(40.0 * i);
    job.runs = seconds(100 + 37 * (i % 11));
    job.limit = seconds(factor * (100 + 37 * (i % 11)));
    job.gpus = i % 7 == 0 ? 24 : 8;
    spec.jobs.push_back(job);
  }
  return spec;
}

}  // namespace

TEST_CASE("recorded starts: when and where they were, and the rules from then on") {
  // Strict order would start the second job behind the first; the record has it on another node.
  QueueSpec spec = queue_of(2, 8, {{0, 100, 8}, {0, 100, 8}, {0, 50, 16}});
  spec.recorded = {{seconds(10), {2}}, {seconds(20), {1}}, {}};
  const QueueResult result =
      simulate_queue(spec, {.recorded_until = seconds(30), .keep_spans = true});
  CHECK(start_s(result, 0) == 10);
  CHECK(start_s(result, 1) == 20);
  CHECK(start_s(result, 2) == 120);
  CHECK(end_s(result, 2) == 170);
  for (const JobSpan& span : result.spans) {
    if (span.job == 0) CHECK(span.held.front().node == 1);
    if (span.job == 1) CHECK(span.held.front().node == 0);
  }
}

TEST_CASE("recorded starts: one whose nodes are taken goes elsewhere, or waits until it can") {
  QueueSpec spec = queue_of(2, 8, {{0, 100, 8}, {0, 100, 8}, {0, 50, 8}});
  spec.recorded = {{seconds(0), {1}}, {seconds(5), {1}}, {seconds(6), {2}}};
  const QueueResult result = simulate_queue(spec, {.recorded_until = seconds(500)});
  CHECK(start_s(result, 0) == 0);
  CHECK(start_s(result, 1) == 5);
  CHECK(start_s(result, 2) == 100);
}

TEST_CASE("forecast: where jobs run as long as they may, it is what comes to pass") {
  const QueueSpec spec = many_jobs(1);
  const QueueResult truth = simulate_queue(spec);
  const RunTime now = seconds(3000);
  const QueueForecast forecast = forecast_queue(spec, now, {.draws = 5});
  CHECK(forecast.mean_share == doctest::Approx(1));
  REQUIRE(forecast.waiting.size() > 3);
  for (const ForecastStart& of : forecast.waiting) {
    CHECK(of.started == forecast.draws);
    CHECK(of.p10_s == doctest::Approx(of.p90_s));
  }
  // What is submitted later may pass nobody that has been promised its start under EASY, but may
  // take GPUs: of the first that waits the start is certain.
  CHECK(forecast.waiting.front().p50_s ==
        doctest::Approx(start_s(truth, forecast.waiting.front().job) - 3000));
  std::size_t open = 0;
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    open += spec.jobs[j].submit <= now && truth.jobs[j].start > now ? 1 : 0;
  }
  CHECK(forecast.waiting.size() == open);
}

TEST_CASE("forecast: drawn durations hold what comes to pass, and longer limits do not move it") {
  const QueueSpec spec = many_jobs(4);
  const QueueResult truth = simulate_queue(spec);
  const QueueForecast forecast = forecast_queue(spec, seconds(3000), {.draws = 20});
  CHECK(forecast.mean_share == doctest::Approx(0.25));
  REQUIRE(forecast.waiting.size() > 3);
  for (const ForecastStart& of : forecast.waiting) {
    const double starts = start_s(truth, of.job) - 3000;
    CHECK(of.p10_s <= of.p50_s);
    CHECK(of.p50_s <= of.p90_s);
    // All ran a quarter of their limits: so does each draw.
    CHECK(of.p50_s <= starts + 1e-6);
  }
}

TEST_CASE("forecast: of a real Slurm's queue, four in five starts lie in the band that says so") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/queue/slurm-recorded.json";
  const QueueSpec spec = read_queue(JsonCursor::parse(file, read_text_file(file)), test::presets());
  std::size_t waiting = 0, held = 0;
  for (const double now_s : {2000.0, 3000.0, 4000.0}) {
    const QueueForecast forecast = forecast_queue(spec, seconds(now_s), {.draws = 40});
    for (const ForecastStart& of : forecast.waiting) {
      const RunTime start = spec.recorded[of.job].start;
      REQUIRE(start >= 0);
      const double in_s = to_seconds(start).base_units() - now_s;
      ++waiting;
      held += of.p10_s <= in_s && in_s <= of.p90_s ? 1 : 0;
    }
  }
  CHECK(waiting > 150);
  CHECK(static_cast<double>(held) / static_cast<double>(waiting) > 0.8);
}

TEST_CASE("forecast: the same bytes each time, and other draws for another seed") {
  QueueSpec spec = many_jobs(1);
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    spec.jobs[j].limit = spec.jobs[j].runs * static_cast<RunTime>(1 + j % 3);
  }
  const auto first = [&spec] {
    return forecast_queue(spec, seconds(3000), {.draws = 8}).waiting.back().p50_s;
  };
  const double once = first();
  CHECK(first() == once);
  CHECK(forecast_queue(spec, seconds(3000), {.draws = 8}).draws == 8);
}

TEST_CASE("forecast: an evicted job waits again, for what holds its GPUs") {
  QueueSpec spec = queue_of(1, 8, {{0, 36'000, 8, 43'200, 0}, {5400, 3600, 4, 0, 1}});
  spec.order = QueueOrder::priority;
  spec.admission = QueueAdmission::best_effort;
  spec.preemption.mode = PreemptionMode::evict;
  spec.preemption.checkpoint = seconds(3600);
  spec.preemption.restart = seconds(300);
  const QueueForecast forecast = forecast_queue(spec, seconds(7200), {.draws = 5});
  CHECK(forecast.running == 1);
  CHECK(forecast.ended == 0);
  REQUIRE(forecast.waiting.size() == 1);
  CHECK(forecast.waiting[0].job == 0);
  CHECK(forecast.waiting[0].waited == seconds(1800));  // since it was evicted
  CHECK(forecast.waiting[0].p50_s == 1800);
}

TEST_CASE("forecast: what a failure threw away is done again, and the repair is waited for") {
  QueueSpec spec = queue_of(1, 8, {{0, 36'000, 8, 72'000}, {3600, 3600, 8}});
  spec.breaks = {{.node = 0, .at = seconds(18'000), .repair = seconds(14'400)}};
  const QueueForecast broken = forecast_queue(spec, seconds(21'600), {.draws = 5});
  CHECK(broken.running == 0);
  REQUIRE(broken.waiting.size() == 2);
  CHECK(broken.waiting[0].job == 0);
  CHECK(broken.waiting[0].p50_s == 10'800);
  CHECK(broken.waiting[1].p50_s == 10'800 + 72'000);  // nothing has ended: as long as it may
  const QueueForecast again = forecast_queue(spec, seconds(43'200), {.draws = 5});
  CHECK(again.running == 1);
  REQUIRE(again.waiting.size() == 1);
  CHECK(again.waiting[0].p50_s == 32'400 + 72'000 - 43'200);
}

TEST_CASE("forecast: of Kueue's queues with preemption no more jobs run than there are GPUs for") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/queue/kueue-two-teams.json";
  const QueueSpec spec = read_queue(JsonCursor::parse(file, read_text_file(file)), test::presets());
  const QueueForecast forecast = forecast_queue(spec, seconds(10'800), {.draws = 2});
  CHECK(forecast.running == 12);
  CHECK(forecast.waiting.size() == 8);
}

TEST_CASE("forecast: an order by durations is refused where a job was evicted") {
  QueueSpec spec = queue_of(1, 8, {{0, 36'000, 8}, {5400, 3600, 8}});
  spec.order = QueueOrder::srtf;
  spec.admission = QueueAdmission::best_effort;
  CHECK(forecast_queue(spec, seconds(7200), {.draws = 1}).running == 1);
  spec.preemption.mode = PreemptionMode::evict;
  CHECK_THROWS_WITH_AS(
      forecast_queue(spec, seconds(7200), {.draws = 1}),
      doctest::Contains("#/queue/order: found \"srtf\"; allowed: for forecasts, an order"),
      InputError);
}

}  // namespace lockstep
