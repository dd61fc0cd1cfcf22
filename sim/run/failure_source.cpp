#include "sim/run/failure_source.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace lockstep {
namespace {

/// Mean of a Weibull law of scale 1: gamma(1 + 1 / shape). Only rounding differs between machines,
/// and the scale is rounded to 1e-9 of itself.
double mean_of_unit_weibull(double shape) {
  constexpr double kGrid = 1e9;
  return std::round(std::tgamma(1 + 1 / shape) * kGrid) / kGrid;
}

}  // namespace

FailureSource::FailureSource(const Campaign& campaign, std::uint32_t trajectory, RunTime until)
    : logged_(!campaign.log.empty()),
      name_{.seed = campaign.seed, .trajectory = trajectory},
      until_(until),
      nodes_there_(campaign.nodes_there) {
  for (const LoggedFailure& failure : campaign.log) {
    if (failure.at >= until_) break;
    processes_.push_back({.mode = failure.mode, .scale_ns = 0, .shape = 1, .gone = until_});
    heap_.push({failure.at, static_cast<std::uint32_t>(processes_.size() - 1)});
  }
  if (logged_) return;
  for (std::uint32_t m = 0; m < campaign.modes.size(); ++m) {
    const FailureMode& mode = campaign.modes[m];
    const double mean = mode.mean_time.base_units() * kRunTicksPerSecond;
    const double away = mode.away.base_units() * kRunTicksPerSecond;
    const bool each = mode.shape != 1 || away > 0;
    const std::uint32_t processes = each ? mode.components : 1;
    const double scale = each ? mean / mean_of_unit_weibull(mode.shape) : mean / mode.components;
    const auto add = [&](std::uint32_t count, RunTime from, RunTime gone) {
      for (std::uint32_t c = 0; c < count; ++c) {
        processes_.push_back({m, scale, mode.shape, away, gone});
        if (!mode.there.empty()) {
          processes_.back().place = -1;
        } else if (each) {
          processes_.back().place = (c + 0.5) / count;
        }
        draw(static_cast<std::uint32_t>(processes_.size() - 1), from);
      }
    };
    assert(mode.there.empty() || each);
    if (mode.there.empty()) add(processes, 0, until_);
    for (const Presence& part : mode.there) {
      add(part.components, part.from, std::min(part.until, until_));
    }
  }
}

void FailureSource::draw(std::uint32_t process, RunTime from) {
  while (const std::optional<RunTime> at = draw_failure(process, from)) {
    if (is_there(process, *at)) {
      heap_.push({*at, process});
      return;
    }
    from = *at;
  }
}

bool FailureSource::is_there(std::uint32_t process, RunTime at) const {
  double share = 1;
  for (const NodesThere& part : nodes_there_) {
    if (part.from > at) break;
    share = part.share;
  }
  if (share >= 1) return true;
  const Process& of = processes_[process];
  if (of.place) return *of.place < share;
  StreamName name = name_;
  name.component = process;
  name.purpose = purpose_of(RunDraw::presence, of.drawn);
  return RandomStream(name).uniform() < share;
}

std::optional<RunTime> FailureSource::draw_failure(std::uint32_t process, RunTime from) {
  Process& of = processes_[process];
  StreamName name = name_;
  name.component = process;
  name.purpose = purpose_of(RunDraw::failures, of.drawn++);
  double unit = RandomStream(name).exponential();
  constexpr double kLeast = 0x1p-54;  // a draw can be 0, which has no logarithm
  if (of.shape != 1) unit = portable_exp(portable_log(std::max(unit, kLeast)) / of.shape);
  const double wait = unit * of.scale_ns;
  const auto left = static_cast<double>(of.gone - from);
  // Nanoseconds after the end of the run are never asked for, and might not fit.
  if (wait >= left) return std::nullopt;
  return from + static_cast<RunTime>(wait);
}

/// Of the failure that was drawn last.
RunTime FailureSource::draw_return(std::uint32_t process, RunTime from) const {
  const Process& of = processes_[process];
  StreamName name = name_;
  name.component = process;
  name.purpose = purpose_of(RunDraw::absence, of.drawn);
  const double absent = RandomStream(name).exponential() * of.away_ns;
  // As draw() has it. Of what is gone for good by then nobody waits for another.
  return absent >= static_cast<double>(of.gone - from) ? of.gone
                                                       : from + static_cast<RunTime>(absent);
}

FailureSource::Failure FailureSource::take() {
  assert(!heap_.empty());
  const Entry entry = heap_.top();
  heap_.pop();
  const Process& of = processes_[entry.process];
  Failure out{.at = entry.at, .mode = of.mode};
  if (of.away_ns > 0) out.back = draw_return(entry.process, entry.at);
  if (!logged_) draw(entry.process, std::max(entry.at, out.back));
  return out;
}

}  // namespace lockstep
