#include "tools/lockstep/report/step_behind.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/answer.hpp"
#include "sim/answer/step_answer.hpp"
#include "tools/lockstep/explain/explanation.hpp"
#include "tools/lockstep/report/page.hpp"
#include "tools/lockstep/report/page_numbers.hpp"

namespace lockstep {
namespace {

/// The figures of the page, and what else is often asked.
constexpr std::array<std::string_view, 7> kExplainedFigures{
    "step_s", "mfu", "mfu_causal", "tokens_per_s", "tflops_per_gpu", "peak_memory_gib", "hfu"};

std::string amount_behind(double value, const std::string& unit) {
  if (unit == "s") return page_duration(value);
  const std::string number =
      std::abs(value) >= 1e6 ? compact(value) : number_text(shown_digits(value, 4));
  return unit.empty() ? number : fmt::format("{} {}", number, unit);
}

Html input_behind(const ExplainedInput& input) {
  const std::string amount = input.value ? amount_behind(*input.value, input.unit) : "none";
  return Html::markup("<li>") + strong(input.path) + escaped(" " + amount) +
         Html::markup("<br><small>") + escaped(input.from) + Html::markup("</small></li>\n");
}

Html run_behind(const NearbyRun& run) {
  return Html::markup("<li>") +
         escaped(fmt::format("{} ({} of {}): measured {}, predicted {}", run.row, grouped(run.gpus),
                             run.gpu, page_duration(run.measured_s),
                             page_duration(run.predicted_s))) +
         Html::markup("</li>\n");
}

Html part_behind(const FieldExplanation& e) {
  Html out = Html::markup(fmt::format(R"(<details class="behind" id="{}"><summary>)",
                                      escaped(place_behind(e.field)).str())) +
             strong(e.field) + escaped(" = " + amount_behind(e.value, e.unit)) +
             Html::markup("</summary>\n<p>") + escaped(e.sentence) +
             Html::markup("</p>\n<p><code>") +
             escaped((e.arithmetic ? e.field + " = " : std::string()) + e.formula) +
             Html::markup("</code></p>\n<ul>\n");
  for (const ExplainedInput& input : e.inputs) out += input_behind(input);
  out += Html::markup("</ul>\n");
  if (e.low && e.high) {
    out += Html::markup("<p>") +
           escaped(fmt::format("90 % interval: {} to {} ({}).", amount_behind(*e.low, e.unit),
                               amount_behind(*e.high, e.unit), e.why)) +
           Html::markup("</p>\n");
  }
  if (!e.nearest.empty()) out += Html::markup("<p>Nearest published runs:</p>\n<ul>\n");
  for (const NearbyRun& run : e.nearest) out += run_behind(run);
  if (!e.nearest.empty()) out += Html::markup("</ul>\n");
  return out + Html::markup("</details>\n");
}

}  // namespace

std::string place_behind(std::string_view field) { return fmt::format("behind-{}", field); }

void add_behind(Page& page, const RunResult& result, const PresetStore& presets) {
  const ScenarioAnswer answer(AnswerKind::step, result_json(result));
  page.section("What stands behind the figures",
               "A figure that is pressed opens its part: lockstep explain says the same of every "
               "number of the answer.");
  for (const std::string_view field : kExplainedFigures) {
    if (!answer.number(field)) continue;
    page.markup(
        part_behind(explain_field(result.scenario.file, answer, std::string(field), presets)));
  }
}

}  // namespace lockstep
