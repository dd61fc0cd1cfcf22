#include "tools/views/plan/plan_region_words.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "tools/views/plan/plan_words.hpp"

namespace lockstep {
namespace {

constexpr double kSecondsOfDay = 86'400;

std::string tonnes(double value) { return significant(value) + " t"; }

RegionRow region_row(const PlanAnswer& answer, std::size_t i) {
  const PlanCandidate& candidate = answer.candidate(i);
  const PlanResult& result = answer.result(i);
  RegionRow row{.candidate = i, .cells = {}};
  row.cells.fill("-");
  row.cells[0] = candidate.name;
  if (!candidate.refused.empty()) row.cells[3] = "refused";
  if (!result.model.impossible.empty()) return row;
  const PlanOutcome& expected = result.expected;
  const PlanPlace& place = *candidate.place;
  if (!place.data_from.empty()) row.cells[1] = place.data_from;
  const double moving = place.data_takes.base_units() + expected.after_s;
  if (moving > 0) row.cells[2] = measure_text(0, moving);
  row.cells[3] = plan_moment(answer, expected.time_s);
  if (is_priced(candidate)) row.cells[4] = plan_money(expected.usd);
  if (expected.egress_usd > 0) row.cells[5] = plan_money(expected.egress_usd);
  row.cells[6] = plan_energy(expected.energy_j);
  if (expected.tonnes_co2) row.cells[7] = tonnes(*expected.tonnes_co2);
  return row;
}

/// "1.20 M USD more"; "as much" where the words would show no difference.
std::string difference_words(double more, const std::string& size, const char* up,
                             const char* down) {
  return more == 0 ? "as much" : fmt::format("{} {}", size, more > 0 ? up : down);
}

/// What most of a difference in money is.
std::string main_part(const PlanOutcome& shown, const PlanOutcome& other) {
  struct Part {
    const char* name;
    double more;
  };
  const auto people = [](const PlanOutcome& of) { return of.running_usd - of.energy_usd; };
  const std::array parts{
      Part{"energy", other.energy_usd - shown.energy_usd},
      Part{"rent", other.rent_usd - shown.rent_usd},
      Part{"machines and building", other.write_off_usd - shown.write_off_usd},
      Part{"people, hosting and interest", people(other) - people(shown)},
      Part{"egress", other.egress_usd - shown.egress_usd},
      Part{"storage", other.storage_usd - shown.storage_usd},
  };
  const Part& most =
      *std::ranges::max_element(parts, {}, [](const Part& part) { return std::abs(part.more); });
  return fmt::format(", decided by {} ({})", most.name,
                     difference_words(most.more, plan_money(std::abs(most.more)), "more", "less"));
}

std::string against_region(const PlanAnswer& answer, std::size_t shown, std::size_t other) {
  const PlanOutcome& a = answer.result(shown).expected;
  const PlanOutcome& b = answer.result(other).expected;
  std::string out = fmt::format("{} against {}: ", answer.candidate(other).place->name,
                                answer.candidate(shown).place->name);
  if (is_priced(answer.candidate(shown)) && is_priced(answer.candidate(other))) {
    const double more = b.usd - a.usd;
    out += difference_words(more, plan_money(std::abs(more)), "more", "less");
    if (more != 0) out += main_part(a, b);
    out += "; ";
  }
  const double later = b.time_s - a.time_s;
  out += later == 0 ? "done at the same time"
                    : "done " + difference_words(later, measure_text(0, std::abs(later)), "later",
                                                 "earlier");
  if (!a.tonnes_co2 || !b.tonnes_co2) return out + ".";
  const double carbon = *b.tonnes_co2 - *a.tonnes_co2;
  if (carbon != 0)
    out += "; " + difference_words(carbon, tonnes(std::abs(carbon)), "more", "less") + " CO2";
  return out + ".";
}

}  // namespace

std::string plan_moment(const PlanAnswer& answer, double seconds) {
  if (!answer.spec.start) return "day " + significant(seconds / kSecondsOfDay);
  const auto at = *answer.spec.start + std::chrono::seconds{std::llround(seconds)};
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(at)};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

Seconds data_until(const PlanResult& result) {
  const PlanOutcome& expected = result.expected;
  return result.model.plan.data->begins +
         Seconds{expected.time_s - expected.before_s - expected.after_s};
}

std::vector<RegionRow> region_rows(const PlanAnswer& answer) {
  std::vector<RegionRow> out;
  if (answer.spec.regions.empty()) return out;
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    out.push_back(region_row(answer, i));
  }
  return out;
}

std::vector<std::string> region_words(const PlanAnswer& answer) {
  std::vector<std::string> out;
  if (answer.spec.regions.empty() || !answer.shown()) return out;
  const std::size_t shown = *answer.shown();
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanCandidate& candidate = answer.candidate(i);
    if (i == shown || candidate.family != answer.candidate(shown).family) continue;
    // Why a region is refused, or impossible, is said of each candidate among the verdicts.
    if (candidate.refused.empty() && answer.result(i).model.impossible.empty()) {
      out.push_back(against_region(answer, shown, i));
    }
  }
  return out;
}

}  // namespace lockstep
