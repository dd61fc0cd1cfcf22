#include "tools/views/vary/advice_section.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ranges>
#include <string>
#include <vector>

#include "models/base/number_text.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/vary/advice_table.hpp"
#include "tools/views/vary/shown_numbers.hpp"

namespace lockstep {
namespace {

std::string gain_text(double gain) {
  std::string text = error_text(gain);  // ends in " %"
  text.replace(text.size() - 2, 1, "\u00a0");
  return text;
}

std::string gain_range(const AdvisedChange& each) {
  if (!each.gain_low) return "nothing measured witnesses it";
  return fmt::format("{:+.1f} to {:+.1f}\u00a0%", 100 * *each.gain_low, 100 * *each.gain_high);
}

std::vector<IntervalBar> gain_bars(const Advice& advice, const std::vector<AdvisedChange>& gains) {
  std::vector<IntervalBar> bars;
  for (const AdvisedChange& each : gains) {
    IntervalBar bar{.name = with_arrows(each.change.words),
                    .value = 100 * each.gain,
                    .words = {with_arrows(each.change.words),
                              fmt::format("{} {}", gain_text(each.gain), advice.goal->words)},
                    .marked = bars.empty() && each.gain > 0};
    if (each.gain_low) {
      bar.low = 100 * *each.gain_low;
      bar.high = 100 * *each.gain_high;
    }
    bar.words.push_back("90 % interval: " + gain_range(each));
    for (const ShownNumber* shown : numbers_beside(advice)) {
      if (const auto number = number_named(each.numbers, shown->field)) {
        bar.words.push_back(fmt::format("{}: {}", shown->title, shown->scale.page_text(*number)));
      }
    }
    bars.push_back(std::move(bar));
  }
  return bars;
}

PageTable advice_rows(const Advice& advice, const std::vector<AdvisedChange>& gains) {
  const std::vector<const ShownNumber*> beside = numbers_beside(advice);
  PageTable table{.columns = {{.title = "Change"},
                              {.title = std::string(advice.goal->words), .numeric = true},
                              {.title = "90 % interval", .numeric = true}}};
  for (const ShownNumber* shown : beside) {
    table.columns.push_back({.title = std::string(shown->title), .numeric = true});
  }
  table.columns.push_back({.title = "As --set says it"});
  for (const AdvisedChange& each : gains) {
    std::vector<PageCell> row{
        PageCell::key(each.change.words), PageCell::number(gain_text(each.gain), each.gain),
        each.gain_low ? PageCell::number(gain_range(each), *each.gain_low) : PageCell::unknown()};
    for (const ShownNumber* shown : beside) {
      const std::optional<double> number = number_named(each.numbers, shown->field);
      row.push_back(number ? PageCell::number(shown->scale.page_text(*number), *number)
                           : PageCell::unknown());
    }
    row.push_back(PageCell::key(fmt::format("{}", fmt::join(each.change.sets, " "))));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// "As it is, the step takes 6.92 s."
std::string as_it_is_sentence(const Advice& advice) {
  const std::vector<const ShownNumber*> beside = numbers_beside(advice);
  if (beside.empty()) return {};
  const ShownNumber& first = *beside.front();
  const double number = number_named(advice.numbers, first.field).value();
  return fmt::format("As it is, {} {}.", advice.goal->as_it_is, first.scale.page_text(number));
}

Html most_helpful(const Advice& advice) {
  if (advice.changes.empty() || advice.changes.front().gain <= 0) {
    return escaped("None of the standard changes that can be made helps.");
  }
  const AdvisedChange& best = advice.changes.front();
  return strong(with_arrows(best.change.words)) +
         escaped(fmt::format(" helps most: {} {}.", gain_text(best.gain), advice.goal->words));
}

void add_gains(Page& page, const Advice& advice) {
  const std::vector<IntervalBar> bars = gain_bars(advice, advice.changes);
  if (bars.empty()) {
    page.paragraph(escaped("None of the standard changes can be made here."));
    return;
  }
  // Bars of nothing would be an empty chart.
  const bool some = std::ranges::any_of(
      advice.changes, [](const AdvisedChange& each) { return each.gain != 0 || each.gain_low; });
  if (some) {
    page.chart({.title = fmt::format("Gain: {}", advice.goal->words),
                .about = "Whiskers: nine of ten gains of such changes lie between. A bar without "
                         "one has nothing measured to witness it.",
                .summary = "Bars of the gain of each change, largest first; the table below has "
                           "the same figures.",
                .height_px = bars_height(bars.size())},
               interval_bars(bars, "%"));
  }
  page.table(advice_rows(advice, advice.changes));
  if (advice.pairs.empty()) return;
  const std::vector<IntervalBar> pairs = gain_bars(advice, advice.pairs);
  page.chart({.title = fmt::format("Two changes together: {}", advice.goal->words),
              .about = "Pairs that gain more than each of the two alone.",
              .summary = "Bars of the gain of each pair, largest first; the table below has the "
                         "same figures.",
              .height_px = bars_height(pairs.size())},
             interval_bars(pairs, "%"));
  page.table(advice_rows(advice, advice.pairs));
}

/// "micro batch 1 → 2 helps most: +4.2 % tokens/s per GPU. As it is, the step takes 6.92 s."
Html advice_headline(const Advice& advice) {
  return most_helpful(advice) + escaped(" " + as_it_is_sentence(advice));
}

/// `says_best`: where no headline does.
void add_changes(Page& page, const Advice& advice, bool says_best) {
  const std::string over = advice_limit_warning(advice);
  page.section("What would help",
               "Each change is made alone and simulated." + (over.empty() ? "" : " " + over + "."));
  if (says_best) page.paragraph(advice_headline(advice));
  add_gains(page, advice);
  if (advice.refused.empty()) return;
  page.section("What cannot be changed so");
  PageTable refused{.columns = {{.title = "Change"}, {.title = "Why not"}}, .first_rows = 12};
  for (const RefusedChange& each : advice.refused) {
    refused.rows.push_back(
        {PageCell::key(each.change.words), PageCell::key(refusal_words(each, advice.file))});
  }
  page.table(refused);
}

}  // namespace

void add_advice(Page& page, const Advice& advice) { add_changes(page, advice, true); }

std::string advice_page(const Advice& advice) {
  Page page("Advice", "What would help " + std::filesystem::path(advice.file).filename().string());
  page.headline(advice_headline(advice));
  add_changes(page, advice, false);
  page.foot("Scenario: " + advice.file + ".");
  return page.html(chart_library());
}

}  // namespace lockstep
