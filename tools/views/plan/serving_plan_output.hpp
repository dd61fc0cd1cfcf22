/// What `lockstep plan` says of a service, and its forms.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/step_answer.hpp"
#include "sim/search/serving_plan.hpp"
#include "tools/console/console.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

class Behind;

struct ServingPlanAnswer {
  const ServingPlanSpec& spec;
  const ServingPlanReport& report;

  [[nodiscard]] const ServingCandidate& candidate_of(const ServingOption& option) const {
    return spec.candidates[option.candidate];
  }
  /// Whose machines the map is of: the chosen candidate's.
  [[nodiscard]] const ServingCandidate& mapped_candidate() const {
    return candidate_of(report.options[report.choice.value_or(0)]);
  }
};

/// "Machines to serve llama3_70b".
std::string serving_plan_title(const ServingPlanAnswer& answer);
/// Whether the objectives are kept at the slow end of the step's 90 % interval: "kept", "missed",
/// "no interval" where nothing was published to take one from.
std::string slow_end_words(const ServingTrial& trial);
/// "TTFT 99 % 1.12 s, against 1.00 s": objectives that are missed there; empty: none.
std::string slow_end_misses(const ServingTrial& trial);
/// What to take and why, in a sentence or two.
std::string serving_recommendation(const ServingPlanAnswer& answer);
/// By how long a load that was judged; empty: by what the plan has, which is long enough.
std::string serving_judged_words(const ServingPlanAnswer& answer);
/// What its money is of: "owned", "rented", "energy only"; empty: nothing has a price.
std::string serving_billed_words(const ServingPlanAnswer& answer, const ServingOption& option);
/// "ttft_p99 1.00 s, tpot_p99 40.0 ms".
std::string serving_objectives_words(const ServingPlanAnswer& answer);
/// Of the plan and of all its machines; sorted, each once.
std::vector<std::string> serving_plan_assumptions(const ServingPlanAnswer& answer);
/// "H100, two pools".
std::string option_name(const ServingPlanAnswer& answer, const ServingOption& option);

std::string serving_plan_table(const ServingPlanAnswer& answer, const TextStyle& style);
nlohmann::ordered_json serving_plan_json(const ServingPlanAnswer& answer);
/// A header line, and a line for each candidate on one pool and on two.
CsvText serving_plan_csv(const ServingPlanAnswer& answer);
Markdown serving_plan_markdown(const ServingPlanAnswer& answer);
/// `written`: the plan's document. What stands `behind` its figures is there where that is given,
/// and sources are of its presets.
std::string serving_plan_page(const ServingPlanAnswer& answer, const WrittenScenario& written = {},
                              const Behind* behind = nullptr);

/// The answer to the plan of `root`, as JSON; nothing after Ctrl-C. Throws UsageError as below.
std::optional<nlohmann::ordered_json> serving_plan_point(const JsonCursor& root,
                                                         const PresetStore& presets,
                                                         const ParsedOptions& options,
                                                         Console& console);

/// Reads, searches and prints the plan of `root`. Throws UsageError for options that are about
/// plans of trainings.
Exit answer_serving_plan(const JsonCursor& root, const PresetStore& presets,
                         const ParsedOptions& options, const std::string& format, Console& console);

}  // namespace lockstep
