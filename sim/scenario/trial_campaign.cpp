#include "sim/scenario/trial_campaign.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace lockstep {
namespace {

/// Shares that people write as decimals are not quite what they mean.
constexpr double kRungTolerance = 1e-9;

RunTime rung_end(RunTime whole, double share) {
  if (share >= 1) return whole;
  return static_cast<RunTime>(std::llround(static_cast<double>(whole) * share));
}

}  // namespace

std::vector<double> rung_ends(double first, int eta) {
  assert(first >= kFirstRung.low && first <= kFirstRung.high && eta >= 2);
  std::vector<double> out;
  double end = first;
  while (end <= kFirstRung.high) {
    out.push_back(end);
    end *= eta;
  }
  out.push_back(1);
  assert(out.size() <= kMostRungs);
  return out;
}

int hyperband_most(double least, int eta) {
  int most = 0;
  double end = 1.0 / eta;
  while (end >= least * (1 - kRungTolerance)) {
    ++most;
    end /= eta;
  }
  return most;
}

std::vector<std::uint32_t> hyperband_trials(std::uint32_t trials, int eta, int most) {
  std::vector<std::int64_t> weights;
  std::int64_t power = 1;
  for (int s = 0; s <= most; ++s, power *= eta) {
    weights.push_back((std::int64_t{most + 1} * power + s) / (s + 1));
  }
  std::ranges::reverse(weights);
  assert(trials >= weights.size());
  const std::int64_t sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  // One for each; the rest by the largest remainders of what they are short of.
  std::vector<std::uint32_t> out;
  std::vector<std::pair<std::int64_t, std::size_t>> remainders;
  for (std::size_t b = 0; b < weights.size(); ++b) {
    const std::int64_t exact = weights[b] * trials;
    out.push_back(static_cast<std::uint32_t>(std::max<std::int64_t>(1, exact / sum)));
    remainders.emplace_back(-(exact % sum), b);
  }
  std::ranges::sort(remainders);
  std::uint32_t given = std::accumulate(out.begin(), out.end(), 0U);
  for (std::size_t i = 0; given < trials; i = (i + 1) % remainders.size(), ++given) {
    ++out[remainders[i].second];
  }
  while (given > trials) {
    --*std::ranges::max_element(out);
    --given;
  }
  return out;
}

RunTime rung_length(const TrialBracket& bracket, std::uint32_t rung, bool resume, RunTime whole) {
  const RunTime end = rung_end(whole, bracket.ends[rung]);
  if (!resume || rung == 0) return end;
  return end - rung_end(whole, bracket.ends[rung - 1]);
}

}  // namespace lockstep
