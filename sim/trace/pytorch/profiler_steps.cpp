#include "sim/trace/pytorch/profiler_steps.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>

#include "models/base/input_error.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {
namespace {

constexpr double kMostCut = 0.1;  // assumed: a first or last step this far off was cut

/// A step of all ranks.
struct JobStep {
  std::int64_t number = 0;
  std::int64_t length = 0;                     ///< of the slowest rank
  std::int64_t start = 0, end = 0;             ///< of the first rank, from its first mark or kernel
  std::int64_t first_work = 0, last_work = 0;  ///< of its GPU, in the same time
};

std::vector<JobStep> job_steps(std::span<const KinetoRecording> recordings) {
  std::map<std::int64_t, std::size_t> ranks;  // that have the step
  std::map<std::int64_t, std::int64_t> longest;
  for (const KinetoRecording& recording : recordings) {
    for (const ProfilerStep& step : profiler_steps(recording)) {
      ++ranks[step.number];
      longest[step.number] = std::max(longest[step.number], step.length());
    }
  }
  std::vector<JobStep> out;
  for (const ProfilerStep& step : profiler_steps(recordings.front())) {
    if (ranks[step.number] != recordings.size()) continue;
    const std::int64_t zero = std::min<std::int64_t>(0, recordings.front().marks.front().start);
    out.push_back({step.number, longest[step.number], step.start - zero, step.end - zero,
                   step.first_work - zero, step.last_work - zero});
  }
  return out;
}

/// The lower of the two where there is no middle one.
JobStep median_step(std::vector<JobStep> steps) {
  std::ranges::stable_sort(steps, {}, &JobStep::length);
  return steps[(steps.size() - 1) / 2];
}

std::vector<JobStep> whole_steps(std::vector<JobStep> steps) {
  constexpr std::size_t kFewest = 3;  // of two, nothing tells which one was cut
  while (steps.size() >= kFewest) {
    const auto middle = static_cast<double>(median_step(steps).length);
    const auto is_off = [&](const JobStep& step) {
      return std::abs(static_cast<double>(step.length) / middle - 1) > kMostCut;
    };
    if (is_off(steps.front())) {
      steps.erase(steps.begin());
    } else if (is_off(steps.back())) {
      steps.pop_back();
    } else {
      break;
    }
  }
  return steps;
}

double millis(std::int64_t picos) { return static_cast<double>(picos) * 1e-9; }

std::string window_text(const JobStep& step) {
  return fmt::format(
      "ProfilerStep#{}, {:.6g} to {:.6g} ms of the recording, in which work of the GPU spans "
      "{:.6g} ms",
      step.number, millis(step.start), millis(step.end), millis(step.last_work - step.first_work));
}

void cut_recording(KinetoRecording& recording, const ProfilerStep& step) {
  const auto inside = [&](std::int64_t time) {
    return time >= step.host_start && time < step.host_end;
  };
  const auto shift = [&](auto& event) {
    event.end = std::max<std::int64_t>(0, event.end - step.start);
    event.start = std::max<std::int64_t>(0, event.start - step.start);
  };
  std::erase_if(recording.gpu, [&](const auto& event) { return !inside(event.launch); });
  std::erase_if(recording.operators, [&](const auto& own) { return !inside(own.start); });
  std::erase_if(recording.runtime, [&](const auto& call) { return !inside(call.start); });
  std::ranges::for_each(recording.gpu, shift);
  std::ranges::for_each(recording.operators, shift);
  std::ranges::for_each(recording.runtime, shift);
  std::ranges::stable_sort(recording.gpu, {}, [](const KinetoRecording::GpuEvent& e) {
    return std::pair(e.start, e.stream);
  });
  recording.marks.clear();
  recording.end = step.end - step.start;
  recording.is_cut = true;
}

}  // namespace

std::vector<ProfilerStep> profiler_steps(const KinetoRecording& recording) {
  if (recording.marks.empty()) return {};
  std::vector<std::uint32_t> order(recording.gpu.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto launch = [&](std::uint32_t event) { return recording.gpu[event].launch; };
  std::ranges::stable_sort(order, {}, launch);
  std::vector<std::int64_t> done{std::numeric_limits<std::int64_t>::min()};  // with so many of them
  for (const std::uint32_t event : order) {
    done.push_back(std::max(done.back(), recording.gpu[event].end));
  }
  std::vector<ProfilerStep> out;
  for (const KinetoRecording::Mark& mark : recording.marks) {
    const auto first = std::ranges::lower_bound(order, mark.start, {}, launch);
    const auto last = std::ranges::lower_bound(order, mark.end, {}, launch);
    if (first == last) continue;
    ProfilerStep step{.number = mark.number, .host_start = mark.start, .host_end = mark.end};
    step.start = std::max(mark.start, done[static_cast<std::size_t>(first - order.begin())]);
    step.end = std::max(mark.end, done[static_cast<std::size_t>(last - order.begin())]);
    const auto start = [&](std::uint32_t event) { return recording.gpu[event].start; };
    const auto end = [&](std::uint32_t event) { return recording.gpu[event].end; };
    step.first_work = start(*std::ranges::min_element(first, last, {}, start));
    step.last_work = end(*std::ranges::max_element(first, last, {}, end));
    out.push_back(step);
  }
  return out;
}

std::string cut_to_step(std::span<KinetoRecording> recordings, const StepRequest& wanted) {
  if (recordings.empty()) return {};
  std::int64_t longest = 0;
  for (const KinetoRecording& recording : recordings) longest = std::max(longest, recording.end);
  const std::vector<JobStep> steps = job_steps(recordings);
  if (wanted.all || (steps.empty() && !wanted.number)) {
    return fmt::format("{}: all {:.6g} ms of the recording are one step",
                       wanted.all ? "as asked for"
                       : recordings.size() > 1
                           ? "no ProfilerStep mark that all ranks have, or none at all"
                           : "no ProfilerStep marks (torch.profiler's step() makes them)",
                       millis(longest));
  }
  const std::vector<JobStep> whole = whole_steps(steps);
  JobStep chosen;
  std::string note;
  if (wanted.number) {
    const auto found = std::ranges::find(steps, *wanted.number, &JobStep::number);
    if (found == steps.end()) {
      std::vector<std::int64_t> numbers;
      numbers.reserve(steps.size());
      for (const JobStep& step : steps) numbers.push_back(step.number);
      fail_trace(recordings.front().file, fmt::format("no ProfilerStep#{}", *wanted.number),
                 steps.empty() ? std::string("no number: nothing is marked")
                               : fmt::format("steps {}", fmt::join(numbers, ", ")));
    }
    chosen = *found;
    note = window_text(chosen);
  } else {
    chosen = median_step(whole);
    note = window_text(chosen);
    if (steps.size() > 1) {
      const auto [least, most] = std::ranges::minmax(whole, {}, &JobStep::length);
      note += fmt::format(
          ": the median of {} steps, which took {:.6g} to {:.6g} ms{} (--step takes another one)",
          whole.size(), millis(least.length), millis(most.length),
          whole.size() < steps.size()
              ? fmt::format(", {} cut ones at the ends left out", steps.size() - whole.size())
              : "");
    }
  }
  for (KinetoRecording& recording : recordings) {
    const std::vector<ProfilerStep> own = profiler_steps(recording);
    cut_recording(recording, *std::ranges::find(own, chosen.number, &ProfilerStep::number));
  }
  return note;
}

}  // namespace lockstep
