#include "sim/answer/advice.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <mutex>
#include <tbb/parallel_for.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/accuracy/paired_interval.hpp"
#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "sim/scenario/queue_spec.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/serving_spec.hpp"
#include "sim/scenario/shared_scenario.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// An answer, or why there is none.
struct Tried {
  std::optional<ScenarioAnswer> answer{};
  std::string error{};
};

std::optional<double> step_measure(const ScenarioAnswer& answer) {
  return answer.number("tokens_per_s_per_gpu");
}

std::optional<double> run_measure(const ScenarioAnswer& answer) {
  const auto tokens = answer.number("tokens_done"), hours = answer.number("held_gpu_hours");
  if (!tokens || !hours || !(*hours > 0)) return std::nullopt;
  return *tokens / *hours;
}

std::optional<double> pace(const std::optional<double>& seconds) {
  if (!seconds || !(*seconds > 0)) return std::nullopt;
  return 1 / *seconds;
}
std::optional<double> queue_measure(const ScenarioAnswer& answer) {
  return pace(answer.number("completion_mean_s"));
}
std::optional<double> serving_measure(const ScenarioAnswer& answer) {
  return pace(answer.number("e2e_s.mean"));
}
/// Of the trainings, which alone have an MFU.
std::optional<double> shared_measure(const ScenarioAnswer& answer) {
  double logarithms = 0;
  int trainings = 0;
  for (const Json& job : answer.json()["jobs"]) {
    if (!job.contains("mfu")) continue;
    const auto step = job.find("step_s");
    if (step == job.end() || !step->is_number() || !(step->get<double>() > 0)) return std::nullopt;
    logarithms -= std::log(step->get<double>());
    ++trainings;
  }
  if (trainings == 0) return std::nullopt;
  return std::exp(logarithms / trainings);
}

constexpr std::array kAdviceGoals{
    AdviceGoal{.kind = AnswerKind::step,
               .name = "tokens_per_s_per_gpu",
               .words = "tokens/s per GPU",
               .as_it_is = "the step takes",
               .shown = {"step_s"},
               .measure = step_measure},
    AdviceGoal{.kind = AnswerKind::run,
               .name = "tokens_per_held_gpu_hour",
               .words = "tokens per GPU-hour held",
               .as_it_is = "goodput is",
               .shown = {"goodput", "step_s", "wall_s"},
               .measure = run_measure},
    AdviceGoal{.kind = AnswerKind::rl,
               .name = "tokens_per_s_per_gpu",
               .words = "tokens/s per GPU",
               .as_it_is = "an iteration takes",
               .shown = {"step_s", "generation_s", "training_s"},
               .measure = step_measure},
    AdviceGoal{.kind = AnswerKind::jobs,
               .name = "steps_per_s",
               .words = "pace of trainings",
               .as_it_is = "the worst slowdown is",
               .shown = {"slowdown_max"},
               .measure = shared_measure},
    AdviceGoal{.kind = AnswerKind::queue,
               .name = "jobs_per_completion_s",
               .words = "pace of the mean job",
               .as_it_is = "the mean job is done after",
               .shown = {"completion_mean_s", "wait_mean_s", "utilisation"},
               .all = "ended",
               .measure = queue_measure},
    AdviceGoal{.kind = AnswerKind::serving,
               .name = "requests_per_e2e_s",
               .words = "pace of the mean request",
               .as_it_is = "the mean request is done after",
               .shown = {"e2e_s.mean", "ttft_mean_s", "tpot_mean_s"},
               .all = "served",
               .measure = serving_measure}};

const AdviceGoal* goal_of(AnswerKind kind) {
  const auto at = std::ranges::find(kAdviceGoals, kind, &AdviceGoal::kind);
  return at == kAdviceGoals.end() ? nullptr : &*at;
}

Tried try_change(const std::string& file, const std::string& text, const PresetStore& presets,
                 const StepIntervals& intervals, Question question, const StandardChange& change) {
  question.set.insert(question.set.end(), change.sets.begin(), change.sets.end());
  try {
    return {.answer = answer_text(file, text, presets, intervals, question)};
  } catch (const InputError& error) {
    return {.error = error.first_line()};
  }
}

/// The scenario's own answer may be one that does not fit; what is advised has to.
ScenarioAnswer own_answer(const std::string& file, const std::string& text,
                          const PresetStore& presets, const Question& question) {
  ScenarioAnswer answer = answer_text(file, text, presets, question);
  const AdviceGoal* const goal = goal_of(answer.kind());
  if (goal != nullptr && goal->measure(answer)) return answer;
  throw InputError(
      {.file = file,
       .pointer = "",
       .found = goal != nullptr ? "an answer without " + std::string(goal->shown.front())
                                : "a scenario with \"" + std::string(name_of(answer.kind())) + "\"",
       .allowed = "what has a pace: a step, weeks of them, jobs whose steps are over, an "
                  "iteration with \"rl\", a queue whose jobs end or a service",
       .nearest = {}});
}

/// Of a step, or of weeks of them.
Scenario scenario_of(const JsonCursor& root, const PresetStore& presets, const Question& question) {
  return complete_measured(read_job_file(root, presets).draft, presets,
                           {.profiles = question.profiles});
}

std::vector<StandardChange> changes_to_weeks(const ParsedScenario& parsed,
                                             const PresetStore& presets, const Question& question) {
  const ScenarioFile file = read_scenario_file(parsed, presets, {.profiles = question.profiles});
  const auto run = parsed.root.find("run");
  const auto checkpoint = run ? run->find("checkpoint") : run;
  std::vector<StandardChange> out =
      run_changes(*file.run, checkpoint && checkpoint->json().is_array());
  std::vector<StandardChange> of_step;
  if (file.rl) of_step = rl_changes(*file.rl, presets);
  if (file.job) of_step = standard_changes(*file.job, presets);
  for (StandardChange& change : of_step) out.push_back(std::move(change));
  return out;
}

std::vector<StandardChange> changes_to(AnswerKind kind, const std::string& file,
                                       const std::string& text, const PresetStore& presets,
                                       const Question& question) {
  const ParsedScenario parsed = parse_scenario(file, text, question.set);
  switch (kind) {
    case AnswerKind::run:
      return changes_to_weeks(parsed, presets, question);
    case AnswerKind::rl:
      return rl_changes(*read_scenario_file(parsed, presets, {.profiles = question.profiles}).rl,
                        presets);
    case AnswerKind::jobs:
      return shared_changes(
          *read_scenario_file(parsed, presets, {.profiles = question.profiles}).jobs, presets);
    case AnswerKind::queue:
      return queue_changes(*read_scenario_file(parsed, presets).queue, presets);
    case AnswerKind::serving:
      return serving_changes(*read_scenario_file(parsed, presets).serving, presets);
    default: {
      const Scenario scenario = scenario_of(parsed.root, presets, question);
      std::vector<StandardChange> out = standard_changes(scenario, presets);
      for (StandardChange& change : stack_changes(scenario, presets)) {
        out.push_back(std::move(change));
      }
      return out;
    }
  }
}

NamedNumbers numbers_of(const AdviceGoal& goal, const ScenarioAnswer& answer) {
  NamedNumbers out;
  for (const std::string_view name : goal.shown) {
    if (name.empty()) continue;
    if (const auto number = answer.number(name)) out.emplace_back(name, *number);
  }
  out.emplace_back(goal.name, goal.measure(answer).value());
  return out;
}

/// Errors of a gain that nine of ten stay within, as logarithms.
struct GainErrors {
  std::optional<double> same_card, other_card;  ///< of steps, by published pairs
};

/// Of goodput, as a share of it: from the half width of its 95 % interval to that of 90 %.
double spread_of(const ScenarioAnswer& answer) {
  constexpr double kNinetyOfNinetyFive = 1.645 / 1.960;  // of the normal law
  const double half = answer.number("goodput_half_width_95").value_or(0);
  const double goodput = answer.number("goodput").value_or(0);
  return goodput > 0 ? kNinetyOfNinetyFive * half / goodput : 0;
}

/// Both answers meet the same random numbers, so that the spread of their means is the most that
/// chance makes of a gain.
std::optional<double> gain_error(const StandardChange& change, const ScenarioAnswer& own,
                                 const ScenarioAnswer& other, const GainErrors& errors) {
  if (change.other_stack) return std::nullopt;  // pairs are of one software
  const std::optional<double> of_step = change.other_gpu ? errors.other_card : errors.same_card;
  if (own.kind() == AnswerKind::step) {
    // What is not used here, as a second NIC of the only node, changes nothing for sure.
    const bool same = own.number("tokens_per_s_per_gpu") == other.number("tokens_per_s_per_gpu");
    return same ? 0 : of_step;
  }
  if (own.kind() != AnswerKind::run) return std::nullopt;  // pairs of others were never measured
  const double spread = std::hypot(spread_of(own), spread_of(other));
  if (own.number("step_s") == other.number("step_s")) return spread;
  if (!of_step) return std::nullopt;
  return std::hypot(spread, *of_step);
}

/// Why an answer is no gain: its mean is over fewer jobs or requests. Empty where it may be one.
std::string left_undone(const AdviceGoal& goal, const ScenarioAnswer& own,
                        const ScenarioAnswer& other) {
  if (!goal.measure(other)) return "it leaves nothing done";
  if (goal.all.empty()) return {};
  const double before = own.number(goal.all).value_or(0), now = other.number(goal.all).value_or(0);
  if (now >= before) return {};
  return fmt::format("{} {} instead of {}", grouped(now), goal.all, grouped(before));
}

AdvisedChange advised(const AdviceGoal& goal, const StandardChange& change,
                      const ScenarioAnswer& own, const ScenarioAnswer& other,
                      const GainErrors& errors) {
  AdvisedChange out{.change = change,
                    .numbers = numbers_of(goal, other),
                    .gain = *goal.measure(other) / *goal.measure(own) - 1,
                    .site_limit_w = other.number("site_limit_w"),
                    .site_excess_w = other.number("site_excess_w")};
  if (const auto error = gain_error(change, own, other, errors)) {
    out.gain_low = (1 + out.gain) * std::exp(-*error) - 1;
    out.gain_high = (1 + out.gain) * std::exp(*error) - 1;
  }
  return out;
}

std::vector<Tried> try_all(const std::string& file, const std::string& text,
                           const PresetStore& presets, Question question,
                           const std::vector<StandardChange>& changes,
                           const std::function<void(std::size_t, std::size_t)>& done) {
  question.allow_oom = false;
  question.full_fabric = false;
  const StepIntervals intervals(presets);
  std::vector<Tried> out(changes.size());
  std::mutex mutex;
  std::size_t finished = 0;
  tbb::parallel_for(std::size_t{0}, changes.size(), [&](std::size_t i) {
    out[i] = try_change(file, text, presets, intervals, question, changes[i]);
    const std::scoped_lock lock(mutex);
    done(++finished, changes.size());
  });
  return out;
}

/// Whether one says a value within what the other says.
bool overlap(const StandardChange& a, const StandardChange& b) {
  const auto path = [](const std::string& set) { return set.substr(0, set.find('=')) + "."; };
  const auto meets = [&](const std::string& x, const std::string& y) {
    return path(x).starts_with(path(y)) || path(y).starts_with(path(x));
  };
  return std::ranges::any_of(a.sets, [&](const std::string& x) {
    return std::ranges::any_of(b.sets, [&](const std::string& y) { return meets(x, y); });
  });
}

/// Every two of the changes that gain most that can be made together; of other cards with the best
/// alone, as several of them would leave no room. `sorted`: largest gain first.
std::vector<StandardChange> pairs_of(std::span<const AdvisedChange> sorted) {
  constexpr std::size_t kFirst = 4;
  constexpr double kLeastGain = 0.001;
  std::vector<AdvisedChange> best;
  bool card = false;
  for (const AdvisedChange& each : sorted) {
    if (each.change.other_gpu && std::exchange(card, true)) continue;
    // Of several values of a key the best alone: they would leave other keys no room.
    const bool same_key = std::ranges::any_of(
        best, [&](const AdvisedChange& better) { return overlap(better.change, each.change); });
    if (!same_key && best.size() < kFirst) best.push_back(each);
  }
  std::vector<StandardChange> out;
  for (std::size_t i = 0; i < best.size(); ++i) {
    for (std::size_t j = i + 1; j < best.size(); ++j) {
      const StandardChange &a = best[i].change, &b = best[j].change;
      if (best[j].gain < kLeastGain || overlap(a, b)) continue;
      StandardChange pair{.words = a.words + ", and " + b.words,
                          .sets = a.sets,
                          .other_gpu = a.other_gpu || b.other_gpu,
                          .other_stack = a.other_stack || b.other_stack};
      pair.sets.insert(pair.sets.end(), b.sets.begin(), b.sets.end());
      out.push_back(std::move(pair));
    }
  }
  return out;
}

/// Of other software the best alone, if it is there: nobody has two of them.
void keep_best_stack(std::vector<AdvisedChange>& sorted) {
  bool seen = false;
  std::erase_if(sorted, [&](const AdvisedChange& each) {
    return each.change.other_stack && std::exchange(seen, true);
  });
}

}  // namespace

std::span<const AdviceGoal> advice_goals() { return kAdviceGoals; }

std::optional<double> number_named(const NamedNumbers& numbers, std::string_view name) {
  const auto found = std::ranges::find(numbers, name, &NamedNumbers::value_type::first);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

Advice advise(const std::string& file, const std::string& text, const PresetStore& presets,
              const Question& question, const std::function<void(std::size_t, std::size_t)>& done) {
  const ScenarioAnswer own = own_answer(file, text, presets, question);
  const AdviceGoal& goal = *goal_of(own.kind());
  const std::vector<StandardChange> changes = changes_to(own.kind(), file, text, presets, question);
  const std::vector<Tried> tried = try_all(file, text, presets, question, changes, done);
  const ResidualTable residuals = load_residuals(presets);
  const GainErrors errors{.same_card = paired_error(residuals, true),
                          .other_card = paired_error(residuals, false)};
  Advice advice{.file = file,
                .goal = &goal,
                .numbers = numbers_of(goal, own),
                .site_limit_w = own.number("site_limit_w"),
                .site_excess_w = own.number("site_excess_w")};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::optional<ScenarioAnswer>& answer = tried[i].answer;
    std::string why = answer ? left_undone(goal, own, *answer) : tried[i].error;
    if (why.empty()) {
      advice.changes.push_back(advised(goal, changes[i], own, *answer, errors));
    } else if (!changes[i].other_stack) {
      advice.refused.push_back({.change = changes[i], .why = std::move(why)});
    }
  }
  std::ranges::stable_sort(advice.changes, std::greater{}, &AdvisedChange::gain);
  keep_best_stack(advice.changes);
  const std::vector<StandardChange> pairs = pairs_of(advice.changes);
  const auto pair_done = [&](std::size_t n, std::size_t all) {
    done(changes.size() + n, changes.size() + all);
  };
  const std::vector<Tried> tried_pairs = try_all(file, text, presets, question, pairs, pair_done);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::optional<ScenarioAnswer>& answer = tried_pairs[i].answer;
    if (!answer || !left_undone(goal, own, *answer).empty()) continue;
    AdvisedChange pair = advised(goal, pairs[i], own, *answer, errors);
    if (pair.gain > advice.changes.front().gain) advice.pairs.push_back(std::move(pair));
  }
  std::ranges::stable_sort(advice.pairs, std::greater{}, &AdvisedChange::gain);
  return advice;
}

namespace {

void add_numbers(Json& out, const NamedNumbers& numbers) {
  for (const auto& [name, number] : numbers) out[name] = twelve_digits(number);
}

/// Of the scenario as it is, or with a change.
template <class Of>
void add_site_limit(Json& out, const Of& of) {
  if (of.site_limit_w) out["site_limit_w"] = twelve_digits(*of.site_limit_w);
  if (of.site_excess_w) out["site_excess_w"] = twelve_digits(*of.site_excess_w);
}

Json gains_json(const std::vector<AdvisedChange>& gains) {
  Json out = Json::array();
  const auto bound = [](const std::optional<double>& gain) {
    return gain ? Json(twelve_digits(*gain)) : Json();
  };
  for (const AdvisedChange& each : gains) {
    Json change{{"change", each.change.words}, {"set", each.change.sets}};
    add_numbers(change, each.numbers);
    change.update({{"gain", twelve_digits(each.gain)},
                   {"gain_low", bound(each.gain_low)},
                   {"gain_high", bound(each.gain_high)}});
    add_site_limit(change, each);
    out.push_back(std::move(change));
  }
  return out;
}

}  // namespace

Json advice_json(const Advice& advice) {
  Json refused = Json::array();
  for (const RefusedChange& each : advice.refused) {
    refused.push_back(
        {{"change", each.change.words}, {"set", each.change.sets}, {"why", each.why}});
  }
  Json out{{"file", advice.file},
           {"answer_kind", name_of(advice.goal->kind)},
           {"goal", advice.goal->name}};
  add_numbers(out, advice.numbers);
  add_site_limit(out, advice);
  out["changes"] = gains_json(advice.changes);
  out["pairs"] = gains_json(advice.pairs);
  out["refused"] = std::move(refused);
  return out;
}

}  // namespace lockstep
