#include "tools/views/report/behind.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/fields.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_words.hpp"
#include "tools/views/run/figure_text.hpp"

namespace lockstep {
namespace {

/// The number at that path, in the unit that reads best, with as many digits as the page's figures
/// have: per cent of shares; a ratio too small for three digits of its own is a power of ten.
std::string amount_behind(std::string_view path, double value, const std::string& unit) {
  const double size = std::abs(value);
  if (unit.empty() && is_share_figure(path)) return telling_percent(value);
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
  std::string amount = input.written;
  if (amount.empty() && input.value) amount = amount_behind(input.path, *input.value, input.unit);
  if (amount.empty()) amount = "none";
  // Objects and lists stand as the scenario has them, to be copied.
  const bool as_written = amount.starts_with('[') || amount.starts_with('{');
  return Html::markup("<li><strong>") + key_words(input.path) + Html::markup("</strong> ") +
         (as_written ? code(amount) : escaped(amount)) + Html::markup("<br><small>") +
         escaped(input.from) + Html::markup("</small></li>\n");
}

Html run_behind(const NearbyRun& run) {
  return Html::markup("<li>") +
         escaped(fmt::format("{} ({} of {}): measured {}{}, predicted {}", run.row,
                             grouped(run.gpus), run.gpu,
                             run.statistic.empty() ? "" : run.statistic + " ",
                             amount_behind({}, run.measured, run.unit()),
                             amount_behind({}, run.predicted, run.unit()))) +
         Html::markup("</li>\n");
}

/// What a page calls a figure, up to what it says of it beside: "a healthy step" of "a healthy
/// step; 90 % interval 3.05 s to 3.95 s". Of what has no figure, or one whose words go on from its
/// number ("of 20 jobs ended"), the words of its name.
std::string name_behind(const Page::OpenedFigure& figure) {
  std::string out = figure.label.substr(0, figure.label.find_first_of(";:"));
  if (out.empty() || out.starts_with("of "))
    out = FieldInfo{.name = figure.field, .kind = FieldKind::number}.title();
  if (out.front() >= 'a' && out.front() <= 'z') {
    out.front() = static_cast<char>(out.front() - 'a' + 'A');
  }
  return out;
}

Html part_behind(const Page::OpenedFigure& figure, const FieldExplanation& e) {
  // As the figure says it, so that nobody looks for a difference.
  const std::string shown =
      figure.value.empty() ? amount_behind(e.field, e.value, e.unit) : figure.value;
  Html out = Html::markup(fmt::format(R"(<details class="behind" id="{}"><summary>)",
                                      escaped(place_behind(e.field)).str())) +
             strong(name_behind(figure)) + escaped(": " + shown) + Html::markup(" <small>") +
             key_words(e.field) + Html::markup("</small></summary>\n<p>") + escaped(e.sentence) +
             Html::markup("</p>\n<p>") +
             code((e.arithmetic ? e.field + " = " : std::string()) + e.formula) +
             Html::markup("</p>\n<ul>\n");
  for (const ExplainedInput& input : e.inputs) out += input_behind(input);
  out += Html::markup("</ul>\n");
  if (e.low && e.high) {
    out +=
        Html::markup("<p>") +
        escaped(fmt::format("90 % interval: {} to {} ({}).", amount_behind(e.field, *e.low, e.unit),
                            amount_behind(e.field, *e.high, e.unit), e.why)) +
        Html::markup("</p>\n");
  }
  if (!e.nearest.empty()) {
    out += Html::markup("<p>") + escaped("Nearest " + e.nearest_kind + ":") +
           Html::markup("</p>\n<ul>\n");
  }
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
  std::vector<Page::OpenedFigure> figures = page.opened_figures();
  for (const std::string_view field : more) {
    if (std::ranges::find(figures, field, &Page::OpenedFigure::field) == figures.end() &&
        opens(field)) {
      figures.push_back({std::string(field), {}, {}});
    }
  }
  if (figures.empty()) return;
  page.section("What stands behind the figures",
               "A figure that is pressed opens its part: lockstep explain says the same of every "
               "number of the answer.");
  for (const Page::OpenedFigure& figure : figures) {
    page.markup(part_behind(figure, explain_field(file_, answer_, figure.field, presets_)));
  }
}

}  // namespace lockstep
