#include "sim/cluster/elastic_widths.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

/// What a choice is worth: the first that differs decides.
struct Worth {
  std::int64_t sum = 0, evenness = 0, unchanged = 0;

  friend auto operator<=>(const Worth&, const Worth&) = default;
  friend Worth operator+(const Worth& a, const Worth& b) {
    return {a.sum + b.sum, a.evenness + b.evenness, a.unchanged + b.unchanged};
  }
};

Worth worth_of(double gain, bool unchanged) {
  constexpr double kSteps = 1 << 20;
  return {std::llround(gain * kSteps), std::llround(std::sqrt(gain) * kSteps), unchanged ? 1 : 0};
}

}  // namespace

std::vector<int> choose_widths(const std::vector<WidthChoice>& jobs, std::int64_t gpus) {
  int unit = 0;
  for (const WidthChoice& job : jobs) {
    for (const int width : job.gpus) unit = std::gcd(unit, width);
  }
  std::vector<int> out(jobs.size());
  if (unit == 0) return out;
  const auto room = static_cast<std::size_t>(gpus / unit);
  // best[c]: of the jobs so far, on c units at most; none: those that may not wait do not fit.
  std::vector<std::optional<Worth>> best(room + 1, Worth{}), next(room + 1);
  std::vector<std::vector<std::uint16_t>> chosen(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const WidthChoice& job = jobs[j];
    chosen[j].assign(room + 1, 0);
    for (std::size_t c = 0; c <= room; ++c) {
      next[c].reset();
      if (job.may_wait && best[c]) next[c] = *best[c] + worth_of(0, job.now == 0);
      for (std::size_t w = 0; w < job.gpus.size(); ++w) {
        const auto takes = static_cast<std::size_t>(job.gpus[w] / unit);
        if (takes > c || !best[c - takes]) continue;
        const Worth worth = *best[c - takes] + worth_of(job.gain[w], job.gpus[w] == job.now);
        if (next[c] && worth <= *next[c]) continue;
        next[c] = worth;
        chosen[j][c] = static_cast<std::uint16_t>(w + 1);
      }
    }
    std::swap(best, next);
  }
  std::size_t left = room;
  for (std::size_t j = jobs.size(); j-- > 0;) {
    const std::uint16_t w = chosen[j][left];
    if (w == 0) continue;
    out[j] = jobs[j].gpus[w - 1U];
    left -= static_cast<std::size_t>(out[j] / unit);
  }
  return out;
}

namespace {

struct ElasticJob {
  std::uint32_t job = 0;
  bool runs = false;
  int width = 0;  ///< chosen; 0: it waits
  std::optional<Holding> where{};
};

WidthChoice choice_of(const QueueState& state, std::uint32_t j, bool runs) {
  WidthChoice out{.gpus = {state.job(j).gpus}, .gain = {1}};
  if (state.job(j).widths > 0) {
    const WidthTable& table = state.spec().width_tables[state.job(j).widths];
    out.gpus = table.gpus;
    out.gain.clear();
    for (const double speed : table.speeds) out.gain.push_back(speed / table.speeds.front());
  }
  out.now = runs ? state.state(j).width : 0;
  out.may_wait = !runs;
  return out;
}

/// The widths of a job up to one, the widest first.
std::vector<int> down_from(const QueueState& state, const ElasticJob& of) {
  const std::vector<int> all = choice_of(state, of.job, of.runs).gpus;
  std::vector<int> out;
  for (const int width : all) {
    if (width <= of.width) out.push_back(width);
  }
  std::ranges::reverse(out);
  return out;
}

/// Places the jobs on what is free of `left`, the widest first. Whether all have what they should.
bool place_all(const QueueState& state, FreeGpus left, std::vector<ElasticJob*> jobs) {
  std::ranges::stable_sort(jobs, std::greater<>(), [](const ElasticJob* of) { return of->width; });
  bool all = true;
  for (ElasticJob* const of : jobs) {
    const int wanted = of->width;
    of->where.reset();
    for (const int width : down_from(state, *of)) {
      of->where = state.placer().place(left, width, nullptr, state.link_loads());
      if (!of->where) continue;
      of->width = width;
      break;
    }
    all = all && (of->where ? of->width == wanted : wanted == 0);
    if (of->where) left.take(*of->where);
  }
  return all;
}

}  // namespace

void give_widths(QueueState& state) {
  std::vector<ElasticJob> jobs;
  std::int64_t gpus = state.free().total();
  std::vector<std::uint32_t> running;
  for (const auto& [end, j] : state.by_limit()) {
    if (state.job(j).widths > 0) running.push_back(j);
  }
  std::ranges::sort(running);
  for (const std::uint32_t j : running) {
    jobs.push_back({.job = j, .runs = true});
    gpus += state.state(j).width;
  }
  // No more of those that wait than there are GPUs can start; and a choice has to end.
  constexpr std::int64_t kMostTried = 1000;
  const std::size_t most = running.size() + static_cast<std::size_t>(std::min(gpus, kMostTried));
  for (WaitingWalk walk(state.waiting(), [](std::uint32_t) { return true; });
       !walk.empty() && jobs.size() < most; walk.pop()) {
    if (!state.held_back(walk.front().job)) jobs.push_back({.job = walk.front().job});
  }
  if (jobs.empty()) return;
  std::vector<WidthChoice> choices;
  for (const ElasticJob& of : jobs) choices.push_back(choice_of(state, of.job, of.runs));
  const std::vector<int> widths = choose_widths(choices, gpus);
  std::vector<ElasticJob*> changed, all;
  FreeGpus beside = state.free(), empty = state.free();
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    ElasticJob& of = jobs[k];
    of.width = widths[k];
    if (of.runs) empty.give(state.state(of.job).held);
    all.push_back(&of);
    if (of.runs && of.width == state.state(of.job).width) continue;
    if (of.runs) beside.give(state.state(of.job).held);
    changed.push_back(&of);
  }
  std::vector<ElasticJob> kept = jobs;
  if (!place_all(state, beside, changed)) {
    for (std::size_t k = 0; k < jobs.size(); ++k) jobs[k].width = kept[k].width;
    place_all(state, empty, all);
    changed = all;
  }
  const auto is_left_out = [](const ElasticJob* of) { return of->runs && !of->where; };
  if (std::ranges::any_of(changed, is_left_out)) {
    // Fragments leave no room for one that runs: then all of those stay, and others fill the rest.
    changed.clear();
    for (ElasticJob& of : jobs) {
      if (!of.runs) changed.push_back(&of);
    }
    place_all(state, state.free(), changed);
  }
  for (const ElasticJob* of : changed) {
    if (of->runs) state.lend(of->job);
  }
  for (ElasticJob* of : changed) {
    if (!of->runs) continue;
    const JobState& now = state.state(of->job);
    if (of->width == now.width && *of->where == now.held) {
      state.take_back(of->job);
    } else {
      state.resize(of->job, *std::move(of->where), of->width, state.spec().elastic.resize);
    }
  }
  for (ElasticJob* of : changed) {
    if (!of->runs && of->where) state.start(of->job, *std::move(of->where), of->width);
  }
}

void grow_back(QueueState& state) {
  std::vector<std::uint32_t> narrow;
  for (const auto& [end, j] : state.by_limit()) {
    if (state.state(j).width < state.job(j).gpus) narrow.push_back(j);
  }
  std::ranges::sort(narrow);
  for (const std::uint32_t j : narrow) {
    const WidthTable& table = state.spec().width_tables[state.job(j).widths];
    FreeGpus free = state.free();
    free.give(state.state(j).held);
    NodeSet scratch;
    const NodeSet* const usable = state.nodes_for(j, state.now(), state.job(j).limit, scratch);
    for (std::size_t w = table.gpus.size(); w-- > 0;) {
      const int width = table.gpus[w];
      if (width > state.job(j).gpus || width <= state.state(j).width) continue;
      std::optional<Holding> where = state.placer().place(free, width, usable, state.link_loads());
      if (!where) continue;
      state.lend(j);
      state.resize(j, *std::move(where), width, state.spec().elastic.resize);
      break;
    }
  }
}

}  // namespace lockstep
