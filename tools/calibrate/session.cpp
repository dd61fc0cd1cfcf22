#include "tools/calibrate/session.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include "models/base/number_text.hpp"
#include "tools/console/interrupt.hpp"

namespace lockstep {
namespace {

/// Two runs should agree within 3 %; most points spread by less than 1 % (assumed).
constexpr double kRestless = 0.03;
constexpr int kMostTries = 3;

/// What the task moved or computed in a second; empty for launches.
struct RateText {
  double seconds;
  std::string operator()(const LaunchTask&) const { return {}; }
  std::string operator()(const CopyTask& t) const { return gigabytes(t.size.base_units()); }
  std::string operator()(const MemoryTask& t) const {
    return gigabytes(info(t.kernel).traffic(t.elements));
  }
  std::string operator()(const ProductTask& t) const {
    return fmt::format("{:.0f} TFLOP/s", gemm_flops(t.shape).base_units() / seconds * 1e-12);
  }
  std::string operator()(const AttentionTask& t) const {
    return fmt::format("{:.0f} TFLOP/s", attention_flops(t.shape).base_units() / seconds * 1e-12);
  }
  [[nodiscard]] std::string gigabytes(double bytes) const {
    return fmt::format("{:.4g} GB/s", bytes / seconds * 1e-9);
  }
};

std::string rate_text(const Task& task, const Timing& timing) {
  return std::visit(RateText{timing.median.base_units()}, task);
}

std::string state_text(double mhz, double watts, double celsius) {
  std::string out;
  const auto add = [&](double value, std::string_view unit) {
    if (value > 0) out += fmt::format("{}{:.0f} {}", out.empty() ? "" : ", ", value, unit);
  };
  add(mhz, "MHz");
  add(watts, "W");
  add(celsius, "C");
  return out;
}

std::string line_of(const Task& task, const Timing& timing, const CardState& state) {
  return fmt::format("{:<58} {:>9} +- {:>6}  {:>13}  {}{}", describe(task),
                     duration_text(timing.median.base_units()), percent_text(timing.spread),
                     rate_text(task, timing), state_text(state.sm_mhz, state.watts, state.celsius),
                     timing.spread > kRestless ? "  restless" : "");
}

}  // namespace

SessionEnd Session::run(const std::vector<PlannedTask>& plan, double deadline) {
  for (const PlannedTask& planned : plan) {
    if (!groups_.contains(planned.group)) order_.push_back(planned.group);
    ++groups_[planned.group].planned;
  }
  for (const PlannedTask& planned : plan) {
    if (InterruptGuard::interrupted()) return SessionEnd::interrupted;
    if (seconds_() + planned.estimate.base_units() > deadline) {
      ++groups_[planned.group].cut;
    } else if (!measure(planned, deadline)) {
      return SessionEnd::card_error;
    }
  }
  return InterruptGuard::interrupted() ? SessionEnd::interrupted : SessionEnd::done;
}

Session::Repeated Session::repeat(const PlannedTask& planned) {
  call_ = describe(planned.task);
  const HangGuard::Watched watched(guard_, call_.c_str(), hang_.patience + planned.estimate);
  const Samples samples = card_.measure(planned.task, planned.pace);
  return {timing_of(samples.seconds), samples.state};
}

/// A second time that fails costs the point as the first would: such a card is not to be trusted.
Session::Repeated Session::calmest(const PlannedTask& planned, double deadline) {
  Repeated best = repeat(planned);
  for (int tries = 1; tries < kMostTries && best.timing.spread > kRestless; ++tries) {
    if (InterruptGuard::interrupted()) break;
    if (seconds_() + planned.estimate.base_units() > deadline) break;
    const Repeated again = repeat(planned);
    if (again.timing.spread < best.timing.spread) best = again;
  }
  return best;
}

/// On the guard's thread: the other one is inside the call.
void Session::lose(const char* call) {
  error_ = fmt::format("{}: it did not come back", call);
  console_.err << "lockstep-calibrate: " << error_ << '\n' << std::flush;
  hang_.give_up();
}

/// False where the card gave up.
bool Session::measure(const PlannedTask& planned, double deadline) {
  Group& group = groups_[planned.group];
  try {
    const auto [timing, state] = calmest(planned, deadline);
    measured_.push_back({planned.task, timing});
    ++group.measured;
    if (timing.spread > kRestless) ++group.restless;
    note(state, group);
    console_.out << line_of(planned.task, timing, state) << '\n' << std::flush;
  } catch (const TaskFailed& e) {
    ++group.failed;
    ++failed_;
    console_.err << describe(planned.task) << ": " << e.what() << '\n' << std::flush;
  } catch (const CardError& e) {
    error_ = fmt::format("{}: {}", describe(planned.task), e.what());
    console_.err << "lockstep-calibrate: " << error_ << '\n' << std::flush;
    return false;
  }
  return true;
}

void Session::note(const CardState& state, Group& group) {
  ++group.states;
  group.mhz += state.sm_mhz;
  group.watts += state.watts;
  group.hottest = std::max(group.hottest, state.celsius);
}

std::vector<std::pair<std::string, std::string>> Session::conditions() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const MeasuredTask& m : measured_) {
    if (is_point(m.task)) continue;
    const std::string rate = rate_text(m.task, m.timing);
    out.emplace_back(describe(m.task),
                     fmt::format("{}{}{}, spread {}", duration_text(m.timing.median.base_units()),
                                 rate.empty() ? "" : ", ", rate, percent_text(m.timing.spread)));
  }
  for (const std::string& name : order_) {
    const Group& g = groups_.at(name);
    std::string text = fmt::format("{} of {} measured", g.measured, g.planned);
    if (g.cut > 0) text += fmt::format(", {} left out for lack of time", g.cut);
    if (g.failed > 0) text += fmt::format(", {} failed", g.failed);
    if (g.restless > 0) {
      text += fmt::format(", {} restless (spread above {})", g.restless, percent_text(kRestless));
    }
    const double n = std::max(1, g.states);
    const std::string state = state_text(g.mhz / n, g.watts / n, g.hottest);
    if (!state.empty()) text += fmt::format("; {} (means, hottest)", state);
    out.emplace_back(name, text);
  }
  if (!error_.empty()) out.emplace_back("ended early by", error_);
  return out;
}

}  // namespace lockstep
