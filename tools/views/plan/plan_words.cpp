#include "tools/views/plan/plan_words.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "models/base/number_text.hpp"
#include "tools/views/plan/plan_time_words.hpp"

namespace lockstep {
namespace {

struct PlanUnit {
  double size;
  const char* name;
};
constexpr std::array kMoneyUnits{PlanUnit{1e9, "B USD"}, PlanUnit{1e6, "M USD"},
                                 PlanUnit{1e3, "k USD"}, PlanUnit{1, "USD"}};
constexpr std::array kEnergyUnits{PlanUnit{3.6e15, "TWh"}, PlanUnit{3.6e12, "GWh"},
                                  PlanUnit{3.6e9, "MWh"}, PlanUnit{3.6e6, "kWh"}};
constexpr std::array kPowerUnits{PlanUnit{1e9, "GW"}, PlanUnit{1e6, "MW"}, PlanUnit{1e3, "kW"},
                                 PlanUnit{1, "W"}};
constexpr std::array kTimeUnits{PlanUnit{86'400, "days"}, PlanUnit{3600, "h"}, PlanUnit{60, "min"},
                                PlanUnit{1, "s"}};

/// The largest unit of which there is at least one, else the smallest.
const PlanUnit& unit_for(std::span<const PlanUnit> units, double value) {
  const auto found = std::ranges::find_if(
      units, [&](const PlanUnit& unit) { return std::abs(value) >= unit.size; });
  return found == units.end() ? units.back() : *found;
}

std::string in_units(std::span<const PlanUnit> units, double value) {
  const PlanUnit& unit = unit_for(units, value);
  return fmt::format("{} {}", significant(value / unit.size), unit.name);
}

std::string range_in(std::span<const PlanUnit> units, const SampleMean& spread) {
  const PlanUnit& unit = unit_for(units, spread.high);
  return fmt::format("{} to {} {}", significant(spread.low / unit.size),
                     significant(spread.high / unit.size), unit.name);
}

/// A range; its upper end is open if more than one sample in twenty was given up.
std::string open_range(std::span<const PlanUnit> units, const SampleMean& spread,
                       const PlanResult& result) {
  constexpr double kAboveRange = 0.05;
  if (result.unfinished <= kAboveRange) return range_in(units, spread);
  return in_units(units, spread.low) + " and up";
}

std::string plan_time(double seconds) { return in_units(kTimeUnits, seconds); }

/// A chance in per cent; "0 %" and "100 %" are only printed if they are exact.
std::string chance(double share) {
  if (share > 0 && share < 0.01) return "less than 1 %";
  if (share < 1 && share > 0.99) return "more than 99 %";
  return fmt::format("{:.0f} %", 100 * share);
}

/// "a", "a and b", "a, b and c".
std::string joined(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  if (words.size() == 1) return words.front();
  return fmt::format("{} and {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

/// By PlanGoal.
constexpr std::array<const char*, 4> kSuperlatives{"cheapest", "fastest", "thriftiest",
                                                   "one with the fewest GPUs"};

/// Each limit that a candidate does not keep surely enough, with the candidate's figure.
std::vector<std::string> missed_limits(const PlanAnswer& answer, std::size_t i) {
  const PlanResult& result = answer.result(i);
  const PlanLimits& limits = answer.spec.limits;
  std::vector<std::string> out;
  const auto add = [&](double kept, const char* what, const std::string& median,
                       const std::string& limit) {
    if (kept >= limits.confidence) return;
    out.push_back(fmt::format("{} in {} of all cases ({} in the median, against {})", what,
                              chance(1 - kept), median, limit));
  };
  if (limits.time) {
    add(result.chances.time, "the deadline", plan_time(result.expected.time_s),
        plan_time(limits.time->base_units()));
  }
  if (const auto watts = power_limit(answer.spec, answer.candidate(i))) {
    const bool own = !limits.power || *watts < *limits.power;
    add(result.chances.power, own ? "its own site's power" : "the site's power",
        plan_power(result.expected.peak_w), plan_power(watts->base_units()));
  }
  if (limits.usd) {
    add(result.chances.usd, "the budget", plan_money(result.expected.usd), plan_money(*limits.usd));
  }
  return out;
}

/// "does not finish in 19 of 100 cases": what its days and money would not tell; empty: it
/// does in all.
std::string unfinished_words(const PlanResult& result) {
  const auto all = static_cast<double>(result.samples.size());
  const double left = std::round(result.unfinished * all);
  if (left == 0) return {};
  return fmt::format(
      "does not finish in {} of {} cases, given up after ten times the time without failures{}",
      grouped(left), grouped(all), plan_given_up_words(result));
}

/// "; keeps all limits in 79 %": where those that are kept often enough leave fewer cases than the
/// missed ones do.
std::string keeps_all_words(const PlanAnswer& answer, const PlanResult& result) {
  const PlanChances& of = result.chances;
  const std::string all = chance(of.all);
  if (all == chance(std::min({of.time, of.power, of.usd}))) return {};
  std::vector<std::string> also;
  const auto add = [&](double kept, const char* what) {
    const std::string missed = chance(1 - kept);
    if (kept >= answer.spec.limits.confidence && missed != chance(0)) {
      also.push_back(fmt::format("{} in {}", what, missed));
    }
  };
  if (answer.spec.limits.time) add(of.time, "the deadline");
  add(of.power, "the power");
  if (answer.spec.limits.usd) add(of.usd, "the budget");
  return "; keeps all limits in " + all +
         (also.empty() ? std::string() : ", missing also " + joined(also));
}

/// A candidate's figures against the limits and the other candidates.
std::string standing(const PlanAnswer& answer, std::size_t i) {
  const PlanResult& result = answer.result(i);
  const std::vector<std::string> missed = missed_limits(answer, i);
  if (!missed.empty()) {
    const bool late = answer.spec.limits.time && result.unfinished == 0 &&
                      result.chances.time < answer.spec.limits.confidence;
    return "misses " + joined(missed) + (late ? plan_late_words(result.expected) : "") +
           keeps_all_words(answer, result);
  }
  if (result.chances.all < answer.spec.limits.confidence) {
    return fmt::format("keeps each limit often enough, but all of them in {} of all cases only",
                       chance(result.chances.all));
  }
  if (answer.report.choice == i) return "is recommended";
  const PlanOutcome& chosen = answer.result(*answer.report.choice).expected;
  if (answer.spec.goal == PlanGoal::gpus && result.expected.gpus > chosen.gpus) {
    return fmt::format("keeps the limits, but needs {} more",
                       counted(result.expected.gpus - chosen.gpus, "GPU"));
  }
  const std::size_t measure = goal_measure(answer.spec.goal);
  const auto median = [&](const PlanResult& of) {
    return std::array{of.expected.time_s, of.expected.usd, of.expected.energy_j}[measure];
  };
  const double more = median(result) - median(answer.result(*answer.report.choice));
  constexpr std::array<const char*, 3> kMore{"takes {} longer", "costs {} more", "needs {} more"};
  return "keeps the limits, but " +
         fmt::format(fmt::runtime(kMore[measure]), measure_text(measure, more));
}

std::string verdict(const PlanAnswer& answer, std::size_t i) {
  const PlanResult& result = answer.result(i);
  if (const std::string& refused = answer.candidate(i).refused; !refused.empty()) {
    return "is refused: " + refused;
  }
  if (!result.model.impossible.empty()) return "is impossible: it " + result.model.impossible;
  const std::string unfinished = unfinished_words(result);
  if (unfinished.empty()) return standing(answer, i);
  // Cases that are given up keep no limit of time: how many do keep all, has to be said beside.
  std::string stands = standing(answer, i);
  constexpr std::string_view kKeeps = "keeps the limits";
  if (stands.starts_with(kKeeps)) {
    stands.insert(kKeeps.size(), fmt::format(" in {} of all cases", chance(result.chances.all)));
  }
  return unfinished + "; it " + stands;
}

/// "1.00 MW of the site": limits of candidates' own sites, where these are the ones that hold; with
/// their names where not all have the same.
std::vector<std::string> own_site_limits(const PlanAnswer& answer) {
  std::vector<std::pair<std::string, std::vector<std::string>>> names;
  const std::size_t all = answer.spec.candidates.size();
  for (std::size_t i = 0; i < all; ++i) {
    const PlanCandidate& candidate = answer.candidate(i);
    const auto watts = power_limit(answer.spec, candidate);
    const bool shared = !candidate.rented && answer.spec.limits.power == watts;
    if (!watts || shared) continue;
    const std::string text = plan_power(watts->base_units());
    auto known = std::ranges::find_if(names, [&](const auto& of) { return of.first == text; });
    if (known == names.end()) known = names.insert(known, {text, {}});
    known->second.push_back(candidate.name);
  }
  std::vector<std::string> out;
  for (const auto& [text, of] : names) {
    out.push_back(text + " of the site" + (of.size() == all ? "" : " of " + joined(of)));
  }
  return out;
}

/// ", 2.31 days of them before the first step": staging, lots that are still to come, also those of
/// a later phase.
std::string waiting_words(const PlanCandidate& candidate, const PlanResult& result) {
  const double before = result.expected.before_s;
  constexpr double kNothing = 1e-3;  // of the time
  const double least = kNothing * result.expected.time_s;
  std::string out;
  if (before > least) out = fmt::format(", {} of them before the first step", plan_time(before));
  for (std::size_t p = 0; p < result.later.size(); ++p) {
    const double waits = result.later[p].expected.before_s;
    if (waits <= least) continue;
    out += fmt::format(", {} of them until {} has its machines", plan_time(waits),
                       candidate.then[p]->of.name);
  }
  return out;
}

std::string outcome_words(const PlanCandidate& candidate, const PlanResult& result) {
  const bool priced = is_priced(candidate);
  const std::string money =
      priced ? fmt::format(", {} ({})", plan_money(result.expected.usd), plan_money_range(result))
             : std::string();
  return fmt::format("{} ({}{}){} and {}, drawing up to {}", plan_time(result.expected.time_s),
                     plan_time_range(result), waiting_words(candidate, result), money,
                     plan_energy(result.expected.energy_j), plan_power(result.expected.peak_w));
}

/// "; 133 M USD of capital to be spent": of the machines that are bought.
std::string capital_words(const PlanResult& result) {
  const double capital = result.expected.capital.total_usd();
  return capital > 0 ? fmt::format("; {} of capital to be spent", plan_money(capital)) : "";
}

/// "; 32.0 M USD of it for terms of leases and reservations that go on when the work is done".
std::string terms_words(const PlanResult& result) {
  double left = 0;
  for (const MonthMoney& month : result.expected.lots) left += month.terms_left;
  return left > 0 ? fmt::format(
                        "; {} of it for terms of leases and reservations that go on when "
                        "the work is done",
                        plan_money(left))
                  : "";
}

/// Candidates of the front that keep the limits and beat the choice in something.
std::string alternatives(const PlanAnswer& answer) {
  const PlanResult& chosen = answer.result(*answer.report.choice);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& other = answer.result(i);
    if (i == *answer.report.choice || !other.on_front ||
        other.chances.all < answer.spec.limits.confidence) {
      continue;
    }
    const bool priced = answer.spec.all_priced();
    // A difference that disappears in the printed digits decides nothing.
    const auto less = [&](double PlanOutcome::* measure, auto words) {
      return other.expected.*measure < chosen.expected.*measure &&
             words(other.expected.*measure) != words(chosen.expected.*measure);
    };
    const bool faster = less(&PlanOutcome::time_s, plan_time);
    const bool cheaper = priced && less(&PlanOutcome::usd, plan_money);
    if (!faster && !cheaper && !less(&PlanOutcome::energy_j, plan_energy)) continue;
    const std::string energy = plan_energy(other.expected.energy_j);
    out.push_back(fmt::format("{}: {}, with {} for {}",
                              faster    ? "faster"
                              : cheaper ? "cheaper"
                                        : "with less energy",
                              answer.candidate(i).name, plan_time(other.expected.time_s),
                              priced ? plan_money(other.expected.usd) + " and " + energy : energy));
    const auto all = static_cast<double>(other.samples.size());
    if (const double left = std::round(other.unfinished * all); left > 0) {
      out.back() +=
          fmt::format(" (in {} of {} cases it does not finish)", grouped(left), grouped(all));
    }
  }
  return out.empty() ? "" : " Also on the front: " + fmt::format("{}", fmt::join(out, "; ")) + ".";
}

}  // namespace

std::string plan_money(double usd) { return in_units(kMoneyUnits, usd); }
std::vector<PlanMoneyColumn> plan_money_columns(const PlanAnswer& answer) {
  std::vector<PlanMoneyColumn> out{{"egress", "Egress", &PlanOutcome::egress_usd},
                                   {"storage", "Storage", &PlanOutcome::storage_usd}};
  std::erase_if(out, [&](const PlanMoneyColumn& column) {
    for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
      const PlanResult& result = answer.result(i);
      const bool shown = result.model.impossible.empty() && is_priced(answer.candidate(i));
      if (shown && result.expected.*column.usd > 0) return false;
    }
    return true;
  });
  return out;
}

std::string plan_energy(double joules) { return in_units(kEnergyUnits, joules); }
double plan_energy_per_trillion_tokens(const PlanCandidate& candidate, const PlanResult& result) {
  double tokens = candidate.scenario.training_tokens.value();
  for (const auto& phase : candidate.then) tokens += phase->of.scenario.training_tokens.value();
  return result.expected.energy_j / (tokens * 1e-12);
}
std::string plan_power(double watts) { return in_units(kPowerUnits, watts); }
std::string plan_time_range(const PlanResult& result) {
  return open_range(kTimeUnits, result.time_s, result);
}
std::string plan_money_range(const PlanResult& result) {
  return open_range(kMoneyUnits, result.usd, result);
}
std::string plan_energy_range(const PlanResult& result) {
  return open_range(kEnergyUnits, result.energy_j, result);
}
std::string plan_power_range(const SampleMean& watts) { return range_in(kPowerUnits, watts); }

std::size_t goal_measure(PlanGoal goal) {
  switch (goal) {
    case PlanGoal::time:
    case PlanGoal::gpus:  // no sample moves them: what a plan is unsure of is the time that they
                          // take
      return 0;
    case PlanGoal::energy:
      return 2;
    case PlanGoal::money:
      break;
  }
  return 1;
}

std::string measure_text(std::size_t measure, double value) {
  if (measure == 0) return plan_time(value);
  return measure == 1 ? plan_money(value) : plan_energy(value);
}

std::string plan_subject(const PlanAnswer& answer) {
  return fmt::format("{} on {}tokens", answer.candidate(0).scenario.job.model.name,
                     compact(answer.spec.training.tokens) + " ");
}

std::string plan_limits(const PlanAnswer& answer) {
  const PlanLimits& limits = answer.spec.limits;
  std::vector<std::string> out;
  if (limits.time) out.push_back(plan_time(limits.time->base_units()));
  if (limits.power) out.push_back(plan_power(limits.power->base_units()));
  if (limits.usd) out.push_back(plan_money(*limits.usd));
  for (std::string& own : own_site_limits(answer)) out.push_back(std::move(own));
  if (out.empty()) return "none";
  return fmt::format("at most {}, in {} of all cases", joined(out), chance(limits.confidence));
}

std::string plan_recommendation(const PlanAnswer& answer) {
  const PlanReport& report = answer.report;
  if (!report.nearest) return "None of the candidates is possible.";
  const PlanResult& best = answer.result(*answer.shown());
  const PlanCandidate& candidate = answer.candidate(*answer.shown());
  const std::string& name = candidate.name;
  const std::string outcome =
      outcome_words(candidate, best) + terms_words(best) + capital_words(best);
  if (!report.choice) {
    return fmt::format(
        "No candidate keeps the limits in {} of all cases. The nearest is {}, in {}: {}.",
        chance(answer.spec.limits.confidence), name, chance(best.chances.all), outcome);
  }
  const char* superlative = kSuperlatives[static_cast<std::size_t>(answer.spec.goal)];
  const std::string one_by_one =
      best.best_share < 1
          ? fmt::format("; drawn case by case, it is that in {}", chance(best.best_share))
          : std::string();
  return fmt::format(
      "Take {}: {}. It keeps the limits in {} of all cases, where {} are asked for, and is the {} "
      "that does{}.{}",
      name, outcome, chance(best.chances.all), chance(answer.spec.limits.confidence), superlative,
      one_by_one, alternatives(answer));
}

namespace {

/// The candidates that take no checkpoints in spite of failures, and the consequence; empty if
/// there are none.
std::string checkpoint_note(const PlanAnswer& answer) {
  std::vector<std::string> whose;
  bool everybody = true;  // of those that are possible
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    if (!answer.result(i).model.impossible.empty()) continue;
    const PlanCandidate& candidate = answer.candidate(i);
    if (candidate.run.checkpoints.empty() && answer.result(i).expected.interruptions > 0) {
      whose.push_back(candidate.name);
    } else {
      everybody = false;
    }
  }
  if (whose.empty()) return {};
  return fmt::format(
      "No checkpoint is taken{}: every failure starts the training again. \"checkpoint\" in "
      "\"run\" says where and how often, such as {{\"to\": \"storage\", \"interval\": \"30 min\", "
      "\"storage\": \"minio_nvme\"}}.",
      everybody ? std::string() : " by " + joined(whose));
}

/// Share of the shown candidate's time that waits for repairs; empty if it is small.
std::string waiting_note(const PlanAnswer& answer) {
  constexpr double kMuch = 0.03;  // of the time
  if (!answer.shown()) return {};
  const PlanCandidate& candidate = answer.candidate(*answer.shown());
  const PlanOutcome& expected = answer.result(*answer.shown()).expected;
  if (expected.waiting < kMuch) return {};
  const int hot = candidate.run.spares.hot;
  return fmt::format(
      "{} waits for {} of its time until there are enough healthy nodes, with {} in reserve. More "
      "nodes in reserve, \"hot\" in \"spares\" of \"run\", take that wait away: without it {} "
      "would do.",
      candidate.name, percent_text(expected.waiting), hot == 0 ? "none" : grouped(hot),
      plan_time(expected.time_s * (1 - expected.waiting)));
}

}  // namespace

std::vector<std::string> plan_notes(const PlanAnswer& answer) {
  std::vector<std::string> out;
  for (std::string note : {checkpoint_note(answer), waiting_note(answer)}) {
    if (!note.empty()) out.push_back(std::move(note));
  }
  return out;
}

std::vector<std::string> plan_verdicts(const PlanAnswer& answer) {
  std::vector<std::string> out;
  out.reserve(answer.spec.candidates.size());
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    out.push_back(verdict(answer, i));
  }
  return out;
}

std::vector<SwingRow> widest_swings(const PlanResult& result, std::size_t measure) {
  std::vector<SwingRow> rows;
  const auto number = plan_measures()[measure].number;
  rows.reserve(result.swings.size());
  for (const PlanSwing& swing : result.swings) {
    rows.push_back({.swing = &swing,
                    .info = &plan_inputs()[static_cast<std::size_t>(swing.input)],
                    .at_low = swing.at_low.*number,
                    .at_high = swing.at_high.*number});
  }
  std::erase_if(rows, [](const SwingRow& row) { return row.width() <= 0; });
  std::ranges::stable_sort(
      rows, [](const SwingRow& a, const SwingRow& b) { return a.width() > b.width(); });
  return rows;
}

std::string plan_sensitivity(const PlanAnswer& answer) {
  if (!answer.shown()) return {};
  const std::size_t measure = goal_measure(answer.spec.goal);
  const std::vector<SwingRow> rows = widest_swings(answer.result(*answer.shown()), measure);
  if (rows.empty()) return {};
  constexpr std::size_t kNamed = 2;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(kNamed, rows.size()); ++i) {
    const SwingRow& row = rows[i];
    out.push_back(fmt::format("{} ({} to {})", row.info->title,
                              measure_text(measure, std::min(row.at_low, row.at_high)),
                              measure_text(measure, std::max(row.at_low, row.at_high))));
  }
  return fmt::format("What moves it most: {}.", joined(out));
}

namespace {

/// Of a candidate, or of one of its later phases.
std::vector<std::string> assumed_of(const PlanCandidate& candidate, const PlanModel& model) {
  std::vector<std::string> all = model.scenario.assumptions;
  // Lots decide which spares there are, and how the job goes on with what has come.
  const std::vector<std::string>& of_run =
      model.fleet ? model.plan.assumptions : candidate.run.assumptions;
  all.insert(all.end(), of_run.begin(), of_run.end());
  if (model.site && !model.fleet) {
    const std::string words = unpriced_words(*model.site, model.scenario.power->cost);
    if (!words.empty()) all.push_back(words);
    if (candidate.rented && plants_usd(model.site->spec) > 0) {
      all.emplace_back(
          "run.site: whoever rents pays for no plants: their prices are in no money of it");
    }
  }
  if (!model.layout.empty()) all.push_back(model.layout);
  if (const std::string words = method_words(model.method, model.band); !words.empty()) {
    all.push_back("step: " + words);
  }
  if (!model.accuracy.empty()) all.push_back(model.accuracy);
  return all;
}

}  // namespace

std::vector<std::string> plan_assumptions(const PlanAnswer& answer) {
  std::vector<std::string> out = answer.spec.training.words;
  out.insert(out.end(), answer.spec.assumptions.begin(), answer.spec.assumptions.end());
  struct Line {
    std::string text;
    std::vector<std::string> whose;
  };
  std::vector<Line> lines;
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanCandidate& candidate = answer.candidate(i);
    const PlanResult& result = answer.result(i);
    std::vector<std::string> all = assumed_of(candidate, result.model);
    for (std::size_t p = 0; p < result.later.size(); ++p) {
      const PlanPhase& phase = *candidate.then[p];
      for (std::string& text : assumed_of(phase.of, result.later[p].model)) {
        if (std::ranges::find(all, text) != all.end()) continue;
        all.push_back(fmt::format("{}: {}", phase.of.name, text));
      }
    }
    for (const std::string& text : all) {
      const auto same = std::ranges::find(lines, text, &Line::text);
      Line& line = same == lines.end() ? lines.emplace_back(Line{text, {}}) : *same;
      if (line.whose.empty() || line.whose.back() != candidate.name) {
        line.whose.push_back(candidate.name);
      }
    }
  }
  for (const Line& line : lines) {
    const bool everybody = line.whose.size() == answer.spec.candidates.size();
    out.push_back(everybody ? line.text
                            : fmt::format("{} ({})", line.text, fmt::join(line.whose, "; ")));
  }
  return out;
}

}  // namespace lockstep
