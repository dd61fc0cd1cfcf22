#include "sim/answer/advice.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <tbb/parallel_for.h>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "models/accuracy/paired_interval.hpp"
#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// A step's numbers, or why there are none.
struct Tried {
  double step_s = 0, tokens_per_s_per_gpu = 0;
  std::optional<double> site_limit_w{}, site_excess_w{};
  std::string error{};
};

Tried numbers_of(const ScenarioAnswer& answer) {
  return {.step_s = answer.number("step_s").value(),
          .tokens_per_s_per_gpu = answer.number("tokens_per_s_per_gpu").value(),
          .site_limit_w = answer.number("site_limit_w"),
          .site_excess_w = answer.number("site_excess_w")};
}

Tried try_change(const std::string& file, const std::string& text, const PresetStore& presets,
                 Question question, const StandardChange& change) {
  question.set.insert(question.set.end(), change.sets.begin(), change.sets.end());
  try {
    return numbers_of(answer_text(file, text, presets, question));
  } catch (const InputError& error) {
    return {.error = error.first_line()};
  }
}

/// The scenario's own answer may be one that does not fit; what is advised has to.
ScenarioAnswer own_answer(const std::string& file, const std::string& text,
                          const PresetStore& presets, const Question& question) {
  ScenarioAnswer answer = answer_text(file, text, presets, question);
  if (answer.kind() == AnswerKind::step) return answer;
  throw InputError({.file = file,
                    .pointer = "",
                    .found = "a scenario with \"" + std::string(name_of(answer.kind())) + "\"",
                    .allowed = "a single step: advice is about one",
                    .nearest = {}});
}

Scenario scenario_of(const std::string& file, const std::string& text, const PresetStore& presets,
                     const Question& question) {
  const JsonCursor root = JsonCursor::parse(file, text, JsonStyle::plain, question.set);
  return complete_measured(read_job_file(root, presets).draft, presets,
                           {.profiles = question.profiles});
}

AdvisedChange advised(const StandardChange& change, const Tried& own, const Tried& tried,
                      const std::optional<double>& error) {
  AdvisedChange out{.change = change,
                    .step_s = tried.step_s,
                    .gain = tried.tokens_per_s_per_gpu / own.tokens_per_s_per_gpu - 1,
                    .site_limit_w = tried.site_limit_w,
                    .site_excess_w = tried.site_excess_w};
  if (error) {
    out.gain_low = (1 + out.gain) * std::exp(-*error) - 1;
    out.gain_high = (1 + out.gain) * std::exp(*error) - 1;
  }
  return out;
}

}  // namespace

Advice advise(const std::string& file, const std::string& text, const PresetStore& presets,
              const Question& question, const std::function<void(std::size_t, std::size_t)>& done) {
  const Tried own = numbers_of(own_answer(file, text, presets, question));
  const std::vector<StandardChange> changes =
      standard_changes(scenario_of(file, text, presets, question), presets);
  std::vector<Tried> tried(changes.size());
  Question fitting = question;
  fitting.allow_oom = false;
  std::mutex mutex;
  std::size_t finished = 0;
  tbb::parallel_for(std::size_t{0}, changes.size(), [&](std::size_t i) {
    tried[i] = try_change(file, text, presets, fitting, changes[i]);
    const std::scoped_lock lock(mutex);
    done(++finished, changes.size());
  });

  const ResidualTable residuals = load_residuals(presets);
  const std::optional<double> same = paired_error(residuals, true);
  const std::optional<double> other = paired_error(residuals, false);
  Advice advice{.file = file,
                .step_s = own.step_s,
                .tokens_per_s_per_gpu = own.tokens_per_s_per_gpu,
                .site_limit_w = own.site_limit_w,
                .site_excess_w = own.site_excess_w,
                .changes = {},
                .refused = {}};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (tried[i].error.empty()) {
      advice.changes.push_back(
          advised(changes[i], own, tried[i], changes[i].other_gpu ? other : same));
    } else {
      advice.refused.push_back({.change = changes[i], .why = tried[i].error});
    }
  }
  std::ranges::stable_sort(advice.changes, std::greater{}, &AdvisedChange::gain);
  return advice;
}

Json advice_json(const Advice& advice) {
  Json changes = Json::array(), refused = Json::array();
  const auto bound = [](const std::optional<double>& gain) {
    return gain ? Json(twelve_digits(*gain)) : Json();
  };
  for (const AdvisedChange& each : advice.changes) {
    changes.push_back({{"change", each.change.words},
                       {"set", each.change.sets},
                       {"step_s", twelve_digits(each.step_s)},
                       {"gain", twelve_digits(each.gain)},
                       {"gain_low", bound(each.gain_low)},
                       {"gain_high", bound(each.gain_high)}});
  }
  for (const RefusedChange& each : advice.refused) {
    refused.push_back(
        {{"change", each.change.words}, {"set", each.change.sets}, {"why", each.why}});
  }
  return {{"file", advice.file},
          {"step_s", twelve_digits(advice.step_s)},
          {"tokens_per_s_per_gpu", twelve_digits(advice.tokens_per_s_per_gpu)},
          {"changes", std::move(changes)},
          {"refused", std::move(refused)}};
}

}  // namespace lockstep
