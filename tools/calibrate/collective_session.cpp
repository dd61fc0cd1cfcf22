#include "tools/calibrate/collective_session.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include "models/base/number_text.hpp"
#include "tools/console/interrupt.hpp"

namespace lockstep {
namespace {

/// assumed: connections of an operation's first call, filling and checking its buffers.
constexpr Seconds kCollectivePreparation{0.1};
/// assumed, of an operation that was not timed yet: the plan begins with small ones.
constexpr Seconds kUnknownTime{1e-3};
/// Runs of a collective before it is timed: one that is checked, four that are timed roughly.
constexpr double kRunsBefore = 5;
/// Of a product beside a collective: four times five samples of 30 to 90 ms, and their operands.
constexpr Seconds kOverlapTime{2};

}  // namespace

SessionEnd CollectiveSession::run(const std::vector<CollectiveTask>& plan, double deadline) {
  return go_through(plan, deadline);
}
SessionEnd CollectiveSession::run(const std::vector<OverlapTask>& plan, double deadline) {
  return go_through(plan, deadline);
}

SessionEnd CollectiveSession::run(const std::vector<VariantTask>& plan, double deadline) {
  return go_through(plan, deadline);
}

template <class Task>
SessionEnd CollectiveSession::go_through(const std::vector<Task>& plan, double deadline) {
  planned_ += plan.size();
  try {
    for (const Task& task : plan) {
      const auto now = communicator_.agree({seconds_(), InterruptGuard::interrupted() ? 1.0 : 0.0});
      if (now[1] > 0) return SessionEnd::interrupted;
      if (now[0] + estimate(task).base_units() > deadline) {
        ++cut_;
        continue;
      }
      const bool prints = communicator_.facts().rank == 0;
      try {
        const std::string line = result_of(task);
        if (prints) console_.out << line << '\n' << std::flush;
      } catch (const TaskFailed& e) {
        ++failed_;
        if (prints) console_.err << describe(task) << ": " << e.what() << '\n' << std::flush;
      }
    }
  } catch (const CardError& e) {
    end_by(e.what());
    return SessionEnd::card_error;
  }
  return SessionEnd::done;
}

void CollectiveSession::end_by(const std::string& error) {
  error_ = error;
  console_.err << fmt::format("lockstep-calibrate: rank {}: {}", communicator_.facts().rank, error_)
               << '\n'
               << std::flush;
}

/// From the times of other sizes, which every process knows alike. Never too short for long ones:
/// a collective's time grows no faster than its size.
Seconds CollectiveSession::estimate(const CollectiveTask& task) const {
  Seconds one = kUnknownTime;
  if (const auto op = times_.find(task.op); op != times_.end()) {
    const auto larger = op->second.lower_bound(task.size.base_units());
    const auto& [size, time] = larger != op->second.end() ? *larger : *op->second.rbegin();
    one = std::max(1.0, task.size.base_units() / size) * time;
  }
  const CollectiveRepeats repeats = collective_repeats(one);
  return kCollectivePreparation + (kRunsBefore + repeats.samples * (repeats.launches + 1.0)) * one;
}

Seconds CollectiveSession::estimate(const OverlapTask&) const { return kOverlapTime; }

/// Plain and varied, each as often as a collective by itself.
Seconds CollectiveSession::estimate(const VariantTask& task) const {
  return 3 * estimate(task.collective);
}

std::string CollectiveSession::keep(const std::string& task, const std::string& result) {
  comparisons_.emplace_back(task, result);
  return task + ": " + result;
}

std::string CollectiveSession::result_of(const OverlapTask& task) {
  const OverlapTimes t = communicator_.overlap(task);
  return keep(
      describe(task),
      fmt::format("the product takes {:.3g} times as long as the {} alone, the collective {:.3g} "
                  "times as long as its {}",
                  static_cast<double>(t.product_beside / t.product_alone),
                  duration_text(t.product_alone.base_units()),
                  static_cast<double>(t.collective_beside / t.collective_alone),
                  duration_text(t.collective_alone.base_units())));
}

std::string CollectiveSession::result_of(const VariantTask& task) {
  const VariantTimes t = communicator_.vary(task);
  return keep(describe(task), fmt::format("{:.3g} times as long as the {} of a plain one",
                                          static_cast<double>(t.varied / t.plain),
                                          duration_text(t.plain.base_units())));
}

std::string CollectiveSession::result_of(const CollectiveTask& task) {
  const Samples samples = communicator_.measure(task);
  const Timing timing = timing_of(samples.seconds);
  measured_.push_back({task, timing});
  times_[task.op][task.size.base_units()] = timing.median;
  note(samples.state);
  const BytesPerSecond bus = bus_bandwidth(task, communicator_.facts().ranks(), timing.median);
  return fmt::format("{:<40} {:>9} +- {:>6}  bus {:>9} GB/s", describe(task),
                     duration_text(timing.median.base_units()), percent_text(timing.spread),
                     significant(bus / gigabytes_per_second(1), 4));
}

void CollectiveSession::note(const CardState& state) {
  ++states_;
  mhz_ += state.sm_mhz;
  watts_ += state.watts;
  hottest_ = std::max(hottest_, state.celsius);
}

std::vector<std::pair<std::string, std::string>> CollectiveSession::conditions() const {
  std::string text =
      fmt::format("{} of {} measured", measured_.size() + comparisons_.size(), planned_);
  if (cut_ > 0) text += fmt::format(", {} left out for lack of time", cut_);
  if (failed_ > 0) text += fmt::format(", {} failed", failed_);
  if (states_ > 0 && mhz_ > 0) {
    text += fmt::format("; rank 0: {:.0f} MHz, {:.0f} W, {:.0f} C (means, hottest)", mhz_ / states_,
                        watts_ / states_, hottest_);
  }
  std::vector<std::pair<std::string, std::string>> out{{"collectives", text}};
  out.insert(out.end(), comparisons_.begin(), comparisons_.end());
  if (!error_.empty()) out.emplace_back("ended early by", error_);
  return out;
}

}  // namespace lockstep
