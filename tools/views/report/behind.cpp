#include "tools/views/report/behind.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

/// In the unit that reads best, with as many digits as the page's figures have; a share too small
/// for three digits of its own is a power of ten.
std::string amount_behind(double value, const std::string& unit) {
  const double size = std::abs(value);
  if (unit == "s") return page_duration(value);
  if (unit == "B") return page_bytes(value);
  if (unit == "B/s") return page_bytes(value) + "/s";
  if (unit == "W") return page_watts(value);
  if (unit == "J" && size >= 1e6) return page_energy(value);
  if (unit == "USD") return size < 1e3 ? page_with(value, unit) : page_usd(value);
  if (unit.starts_with("FLOP")) {
    const AxisUnit of = bytes_unit(size);  // the same prefixes
    return page_with(value / of.size, of.name.substr(0, of.name.size() - 1) + unit);
  }
  constexpr double kCounts = 1e15, kTiny = 1e-4;
  if (value == std::round(value) && size < kCounts) {
    return unit.empty() ? grouped(value) : page_with_text(grouped(value), unit);
  }
  if (size < kTiny && size > 0) return page_with_text(fmt::format("{:.2e}", value), unit);
  return size >= 1e4 ? page_with_text(grouped(std::round(value)), unit) : page_with(value, unit);
}

Html input_behind(const ExplainedInput& input) {
  const std::string amount = input.value ? amount_behind(*input.value, input.unit) : "none";
  return Html::markup("<li><strong>") + key_words(input.path) + Html::markup("</strong>") +
         escaped(" " + amount) + Html::markup("<br><small>") + escaped(input.from) +
         Html::markup("</small></li>\n");
}

Html run_behind(const NearbyRun& run) {
  return Html::markup("<li>") +
         escaped(fmt::format("{} ({} of {}): measured {}, predicted {}", run.row, grouped(run.gpus),
                             run.gpu, amount_behind(run.measured, run.unit()),
                             amount_behind(run.predicted, run.unit()))) +
         Html::markup("</li>\n");
}

Html part_behind(const FieldExplanation& e) {
  Html out = Html::markup(fmt::format(R"(<details class="behind" id="{}"><summary>)",
                                      escaped(place_behind(e.field)).str())) +
             Html::markup("<strong>") + key_words(e.field) + Html::markup("</strong>") +
             escaped(" = " + amount_behind(e.value, e.unit)) + Html::markup("</summary>\n<p>") +
             escaped(e.sentence) + Html::markup("</p>\n<p>") +
             code((e.arithmetic ? e.field + " = " : std::string()) + e.formula) +
             Html::markup("</p>\n<ul>\n");
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

void Behind::open_figures(Page& page) const {
  page.open_figures([this](std::string_view field) { return opens(field); });
}

bool Behind::opens(std::string_view field) const {
  return answer_.number(field).has_value() && answer_.formula(field) != nullptr;
}

std::string Behind::one_of(std::initializer_list<std::string_view> fields) const {
  const auto* const found =
      std::ranges::find_if(fields, [this](std::string_view field) { return opens(field); });
  return found == fields.end() ? std::string() : std::string(*found);
}

void Behind::add_to(Page& page, std::span<const std::string_view> more) const {
  std::vector<std::string> fields = page.opened_figures();
  for (const std::string_view field : more) {
    if (std::ranges::find(fields, field) == fields.end() && opens(field)) {
      fields.emplace_back(field);
    }
  }
  if (fields.empty()) return;
  page.section("What stands behind the figures",
               "A figure that is pressed opens its part: lockstep explain says the same of every "
               "number of the answer.");
  for (const std::string& field : fields) {
    page.markup(part_behind(explain_field(file_, answer_, field, presets_)));
  }
}

}  // namespace lockstep
