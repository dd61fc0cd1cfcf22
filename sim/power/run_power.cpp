#include "sim/power/run_power.hpp"

#include <cassert>

namespace lockstep {
namespace {

constexpr double kSecondsPerHour = 3600;

/// Adds a stretch of constant power.
void add(Usage& usage, const CostSpec& prices, Seconds begin, Seconds end, Watts level) {
  const double kw = level.base_units() * 1e-3;
  usage.energy += level * (end - begin);
  usage.energy_usd += kw * prices.usd_per_kwh.integral(begin, end) / kSecondsPerHour;
  if (prices.grams_per_kwh) {
    usage.grams =
        usage.grams.value_or(0) + kw * prices.grams_per_kwh->integral(begin, end) / kSecondsPerHour;
  }
}

/// Of a run that has not used anything yet.
Usage unused(Seconds time, const CostSpec& prices, double tokens, Flops model_flops) {
  Usage usage;
  usage.time = time;
  usage.tokens = tokens;
  usage.model_flops = model_flops;
  if (prices.grams_per_kwh) usage.grams = 0;
  return usage;
}

}  // namespace

const PowerLevel& level_of(RunBucket bucket, const PowerLevels& levels) {
  switch (bucket) {
    case RunBucket::productive:
    case RunBucket::degraded:
    case RunBucket::lost:
      return levels.training;
    case RunBucket::checkpoint:
    case RunBucket::detection:
      return levels.waiting;
    case RunBucket::restart:
      return levels.starting;
    case RunBucket::diagnosis:
    case RunBucket::repair_wait:
      return levels.idle;
  }
  assert(false && "every bucket is listed above");
  return levels.idle;
}

PowerSeries run_series(std::span<const RunPhase> phases, RunTime end, const PowerLevels& levels) {
  PowerSeries series;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const RunTime until = i + 1 < phases.size() ? phases[i + 1].begin : end;
    assert(phases[i].begin <= until);
    // Lengths are whole ticks, so that thousands of phases end where the run does.
    series.add(to_seconds(until - phases[i].begin), level_of(phases[i].bucket, levels).facility);
  }
  return series;
}

StepPower with_reserve(StepPower power, double share) {
  const Watts waiting = share * power.levels.idle.facility;
  for (PowerLevel* level : {&power.levels.training, &power.levels.waiting, &power.levels.starting,
                            &power.levels.idle}) {
    level->facility += waiting;
  }
  for (Watts& at : power.facility.power) at += waiting;
  power.holdings.gpus *= 1 + share;
  power.gpu_nameplate = (1 + share) * power.gpu_nameplate;
  power.holdings.nodes *= 1 + share;
  power.holdings.ports_100g *= 1 + share;
  power.holdings.facility_peak += waiting;
  power.facility_meter.low += waiting;
  power.facility_meter.high += waiting;
  power.site_peak += waiting;
  return power;
}

Joules run_energy(const TrajectoryResult& result, const PowerLevels& levels) {
  Joules sum;
  for (int b = 0; b < kRunBuckets; ++b) {
    sum += level_of(static_cast<RunBucket>(b), levels).facility *
           to_seconds(result.buckets[static_cast<std::size_t>(b)]);
  }
  return sum;
}

Usage run_usage(const PowerSeries& series, const CostSpec& prices, double tokens,
                Flops model_flops) {
  Usage usage = unused(series.end, prices, tokens, model_flops);
  for (std::size_t i = 0; i < series.size(); ++i) {
    add(usage, prices, series.start[i], series.until(i), series.power[i]);
  }
  return usage;
}

Usage run_usage(const TrajectoryResult& result, const PowerLevels& levels, const CostSpec& prices,
                double tokens, Flops model_flops) {
  Usage usage = unused(to_seconds(result.wall), prices, tokens, model_flops);
  if (result.wall > 0) {
    add(usage, prices, Seconds{}, usage.time, run_energy(result, levels) / usage.time);
  }
  return usage;
}

Usage with_draw(Usage usage, double factor) {
  usage.energy = factor * usage.energy;
  usage.energy_usd *= factor;
  if (usage.grams) *usage.grams *= factor;
  return usage;
}

}  // namespace lockstep
