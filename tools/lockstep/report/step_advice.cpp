#include "tools/lockstep/report/step_advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <vector>

#include "models/base/number_text.hpp"
#include "tools/lockstep/report/chart_kit.hpp"
#include "tools/lockstep/report/page.hpp"
#include "tools/lockstep/report/page_numbers.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kAdvisedBars = 16;

std::string gain_text(double gain) { return fmt::format("{:+.1f}\u00a0%", 100 * gain); }

std::string gain_range(const AdvisedChange& each) {
  if (!each.gain_low) return "no published runs witness it";
  return fmt::format("{:+.0f} to {:+.0f}\u00a0%", 100 * *each.gain_low, 100 * *each.gain_high);
}

std::vector<IntervalBar> gain_bars(const Advice& advice) {
  std::vector<IntervalBar> bars;
  for (const AdvisedChange& each : advice.changes) {
    if (bars.size() == kAdvisedBars) break;
    IntervalBar bar{
        .name = each.change.words,
        .value = 100 * each.gain,
        .words = {each.change.words, gain_text(each.gain) + " tokens/s per GPU",
                  "90 % interval: " + gain_range(each), "step " + duration_text(each.step_s)},
        .marked = bars.empty() && each.gain > 0};
    if (each.gain_low) {
      bar.low = 100 * *each.gain_low;
      bar.high = 100 * *each.gain_high;
    }
    bars.push_back(std::move(bar));
  }
  return bars;
}

PageTable advice_rows(const Advice& advice) {
  PageTable table{.columns = {{.title = "Change"},
                              {.title = "Tokens/s per GPU", .numeric = true},
                              {.title = "90 % interval", .numeric = true},
                              {.title = "Step", .numeric = true},
                              {.title = "As --set says it"}}};
  for (const AdvisedChange& each : advice.changes) {
    table.rows.push_back(
        {PageCell::text(each.change.words), PageCell::number(gain_text(each.gain), each.gain),
         each.gain_low ? PageCell::number(gain_range(each), *each.gain_low) : PageCell::unknown(),
         PageCell::number(page_duration(each.step_s), each.step_s),
         PageCell::text(fmt::format("{}", fmt::join(each.change.sets, " ")))});
  }
  return table;
}

}  // namespace

void add_advice(Page& page, const Advice& advice) {
  page.section("What would help",
               fmt::format("Each change is made alone and simulated. As it is, the step takes {}.",
                           page_duration(advice.step_s)));
  const std::vector<IntervalBar> bars = gain_bars(advice);
  if (bars.empty()) {
    page.paragraph(escaped("None of the standard changes can be made here."));
  } else {
    page.chart({.title = "Gain in tokens per second and GPU",
                .about = "Whiskers: nine of ten measured gains of such changes lie between. A bar "
                         "without one has no published runs to witness it.",
                .summary = "Bars of the gain of each change, largest first; the table below has "
                           "the same figures.",
                .height_px = bars_height(bars.size())},
               interval_bars(bars, "%"));
    page.table(advice_rows(advice));
  }
  if (advice.refused.empty()) return;
  page.section("What cannot be changed so");
  PageTable refused{.columns = {{.title = "Change"}, {.title = "Why not"}}, .first_rows = 12};
  for (const RefusedChange& each : advice.refused) {
    refused.rows.push_back({PageCell::text(each.change.words), PageCell::text(each.why)});
  }
  page.table(refused);
}

}  // namespace lockstep
