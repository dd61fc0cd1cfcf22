#include "tools/views/plan/plan_time_words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

constexpr double kTimeDay = 86'400;
constexpr double kTold = 0.01;  // of the time: less decides nothing
constexpr std::size_t kMostTold = 3;

/// By RunBucket; the first trains.
constexpr std::array<std::pair<std::string_view, std::string_view>, kRunBuckets> kBucketWords{
    {{"productive", "training"},
     {"degraded", "slower steps"},
     {"checkpoint", "waiting for checkpoints"},
     {"lost", "work done again"},
     {"detection", "detecting failures"},
     {"diagnosis", "diagnosing failures"},
     {"restart", "restarts"},
     {"repair_wait", "waiting for a healthy node"}}};

/// "60.0 % waiting for ..., 12.0 % ...".
std::string shares_text(const PlanOutcome& outcome) {
  std::string out;
  std::size_t told = 0;
  for (const PlanTimePart& part : plan_time_lost(outcome)) {
    const double share = part.seconds / outcome.time_s;
    if (share < kTold || told == kMostTold) break;
    out += fmt::format("{}{} {}", told++ == 0 ? "" : ", ", percent_text(share), part.words);
  }
  return out;
}

/// "; from day 182 on its lots leave fewer nodes than a replica needs": of the first phase for
/// which they do.
std::string gone_text(const PlanResult& result) {
  const auto words = [](const Fleet& fleet) -> std::string {
    const std::optional<Seconds> gone = fleet.gone();
    if (!gone) return {};
    return fmt::format("; from day {} on its lots leave fewer nodes than a replica needs",
                       significant(gone->base_units() / kTimeDay));
  };
  if (result.model.fleet) {
    if (std::string out = words(*result.model.fleet); !out.empty()) return out;
  }
  for (const PhaseResult& phase : result.later) {
    if (!phase.fleet) continue;
    if (std::string out = words(*phase.fleet); !out.empty()) return out;
  }
  return {};
}

}  // namespace

std::vector<PlanTimePart> plan_time_lost(const PlanOutcome& outcome) {
  const PlanTimes& times = outcome.times;
  std::vector<PlanTimePart> out{
      {"waiting", "waiting for machines, data or weights", outcome.time_s - outcome.run_s}};
  for (std::size_t b = 1; b < kBucketWords.size(); ++b) {
    double left = times.s[b];
    if (b == static_cast<std::size_t>(RunBucket::degraded)) {
      const double missing = std::clamp(times.missing_s, 0.0, left);
      const double site = std::clamp(times.site_s, 0.0, left - missing);
      out.push_back({"missing_machines", "machines of lots that are not there", missing});
      out.push_back({"site", "limits of the site", site});
      left -= missing + site;
    }
    out.push_back({kBucketWords[b].first, kBucketWords[b].second, left});
  }
  constexpr double kNothing = 1e-6;  // rounding of sums
  std::erase_if(
      out, [&](const PlanTimePart& part) { return part.seconds <= kNothing * outcome.time_s; });
  std::ranges::stable_sort(out, std::ranges::greater{}, &PlanTimePart::seconds);
  return out;
}

std::string plan_late_words(const PlanOutcome& outcome) {
  const std::string lost = shares_text(outcome);
  return fmt::format("; its time: {} training at full speed{}{}",
                     percent_text(outcome.times.s[0] / outcome.time_s), lost.empty() ? "" : ", ",
                     lost);
}

std::string plan_given_up_words(const PlanResult& result) {
  const PlanOutcome& of = *result.given_up;
  std::string out = fmt::format(", with {} of the work done", percent_text(of.times.done));
  if (const std::string lost = shares_text(of); !lost.empty()) {
    out += "; their time: " + lost;
  }
  if (of.times.taken_away > 0) {
    out += fmt::format("; {} taken away in each",
                       counted(std::round(of.times.taken_away), "spot node"));
  }
  return out + gone_text(result);
}

}  // namespace lockstep
