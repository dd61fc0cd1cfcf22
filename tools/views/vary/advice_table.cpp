#include "tools/views/vary/advice_table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <span>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/site_limit.hpp"
#include "tools/views/vary/shown_numbers.hpp"

namespace lockstep {
namespace {

constexpr int kGainBar = 20;  // columns
/// Gains below that are no help.
constexpr double kLeastGain = 0.001;

std::string interval_of_gain(const AdvisedChange& each) {
  if (!each.gain_low) return "no witness";
  return fmt::format("{:+.1f} to {:+.1f} %", 100 * *each.gain_low, 100 * *each.gain_high);
}

bool helps(const AdvisedChange& each) { return each.gain >= kLeastGain; }

bool some_witnessed(const Advice& advice) {
  return std::ranges::any_of(advice.changes,
                             [](const AdvisedChange& each) { return each.gain_low.has_value(); });
}

/// The changes that help, with so many of the numbers beside the gain and a bar so long; without
/// `words` for a line of them below each row.
TextTable gains_table(const Advice& advice, std::span<const ShownNumber* const> beside,
                      int bar_long, bool words, const TextStyle& style) {
  const bool intervals = some_witnessed(advice);
  std::vector<TextTable::Column> columns{{std::string(advice.goal->words)}};
  if (words) columns.insert(columns.begin(), {"change", TextTable::Align::left});
  if (intervals) columns.push_back({"90 % interval"});
  for (const ShownNumber* shown : beside) columns.push_back({std::string(shown->column)});
  if (bar_long > 0) columns.push_back({"", TextTable::Align::left});
  TextTable table(std::move(columns));
  const double most = advice.changes.front().gain;
  for (const AdvisedChange& each : advice.changes) {
    if (!helps(each)) continue;
    std::vector<std::string> cells{error_text(each.gain)};
    if (words) cells.insert(cells.begin(), each.change.words);
    if (intervals) cells.push_back(interval_of_gain(each));
    for (const ShownNumber* shown : beside) {
      const std::optional<double> number = number_named(each.numbers, shown->field);
      cells.push_back(number ? shown->scale.text(*number) : "-");
    }
    if (bar_long > 0) cells.push_back(bar(each.gain / most, bar_long, style));
    table.add(std::move(cells));
  }
  return table;
}

/// As wide as the terminal, or kTextColumns: bars get shorter and go, then the words of a change
/// stand below its numbers.
std::string helping_table(const Advice& advice, const TextStyle& style) {
  const std::vector<const ShownNumber*> beside = numbers_beside(advice);
  const auto widest = [&](bool with_words) {
    std::optional<TextTable> table;
    for (const int bar_long : {kGainBar, kGainBar / 2, kGainBar / 4, 0}) {
      table.emplace(gains_table(advice, beside, bar_long, with_words, style));
      if (table->width() <= table_columns(style)) break;
    }
    return *std::move(table);
  };
  const TextTable whole = widest(true);
  if (whole.width() <= table_columns(style)) return whole.text(style);
  std::vector<std::string> words;
  for (const AdvisedChange& each : advice.changes) {
    if (helps(each)) words.push_back(each.change.words);
  }
  return text_with_words(widest(false), words, style);
}

/// "Slower: tensor-parallel width 8 -> 16 -20.2 %, ...".
std::string hindering_text(const Advice& advice) {
  std::vector<std::string> words;
  for (const AdvisedChange& each : advice.changes) {
    if (!helps(each)) words.push_back(each.change.words + " " + error_text(each.gain));
  }
  if (words.empty()) return {};
  return "\n" + wrap(fmt::format("No help: {}.", fmt::join(words, "; ")), kTextColumns, 2) + "\n";
}

/// "  precision bf16 -> fp8, and micro batch 1 -> 2: +50.1 % (+41.0 to +60.2 %)".
std::string pairs_text(const Advice& advice) {
  std::string out;
  for (const AdvisedChange& each : advice.pairs) {
    if (out.empty()) out = "\nTwo together gain more than each change alone:\n";
    out += "  " +
           wrap(fmt::format("{}: {}{}", each.change.words, error_text(each.gain),
                            each.gain_low ? " (" + interval_of_gain(each) + ")" : ""),
                kTextColumns, 4, 2) +
           "\n";
  }
  return out;
}

std::string exceeded_by(const Advice& advice) {
  const std::string over = advice_limit_warning(advice);
  return over.empty() ? "" : wrap(over + ".", kTextColumns, 0) + "\n";
}

}  // namespace

std::string advice_limit_warning(const Advice& advice) {
  LimitTally limits;
  limits.add(advice.site_excess_w, advice.site_limit_w);
  for (const AdvisedChange& each : advice.changes)
    limits.add(each.site_excess_w, each.site_limit_w);
  return limits.warning("answers, as it is and with each change,");
}

std::string refusal_words(const RefusedChange& refused, const std::string& file) {
  std::string why = refused.why;
  if (why.starts_with(file)) why.erase(0, file.size());
  if (why.starts_with(": ")) why.erase(0, 2);
  if (why.starts_with("#/")) {
    why.erase(0, 2);
    std::ranges::replace(std::ranges::subrange(why.begin(), std::ranges::find(why, ':')), '/', '.');
  }
  // Which value was tried is the change's own name, and how to predict a job that does not fit is
  // no advice.
  const std::size_t set = why.find(" (--set "), allowed = why.find("); allowed: ", set);
  if (set != std::string::npos && allowed != std::string::npos) why.erase(set, allowed + 1 - set);
  constexpr std::string_view kAnyway = " (--allow-oom predicts anyway)";
  if (const std::size_t anyway = why.find(kAnyway); anyway != std::string::npos) {
    why.erase(anyway, kAnyway.size());
  }
  return why;
}

std::vector<const ShownNumber*> numbers_beside(const Advice& advice) {
  std::vector<const ShownNumber*> out;
  for (const std::string_view name : advice.goal->shown) {
    const ShownNumber* const shown = shown_number(name);
    const std::optional<double> own = number_named(advice.numbers, name);
    if (shown == nullptr || !own) continue;
    const bool moves = std::ranges::any_of(advice.changes, [&](const AdvisedChange& each) {
      return number_named(each.numbers, name) != own;
    });
    if (out.empty() || moves) out.push_back(shown);
  }
  return out;
}

std::string advice_table(const Advice& advice, const TextStyle& style) {
  const AdviceGoal& goal = *advice.goal;
  const std::vector<const ShownNumber*> beside = numbers_beside(advice);
  std::string about = "Each change is made alone and simulated.";
  if (!beside.empty()) {
    about += fmt::format(
        " As it is, {} {}.", goal.as_it_is,
        beside.front()->scale.text(number_named(advice.numbers, beside.front()->field).value()));
  }
  std::string out = style.bold("What would help") + "\n" + wrap(about, kTextColumns, 0) + "\n" +
                    exceeded_by(advice) + "\n";
  const bool some = std::ranges::any_of(advice.changes, helps);
  out += some ? helping_table(advice, style) : "  None of the changes that can be made helps.\n";
  out += pairs_text(advice);
  out += hindering_text(advice);
  if (advice.refused.empty()) return out;
  out += "\nCannot be:\n";
  for (const RefusedChange& each : advice.refused) {
    out += "  " +
           wrap(fmt::format("{}: {}", each.change.words, refusal_words(each, advice.file)),
                kTextColumns, 4, 2) +
           "\n";
  }
  return out;
}

CsvText advice_csv(const Advice& advice) {
  const bool limited =
      advice.site_limit_w || std::ranges::any_of(advice.changes, [](const AdvisedChange& each) {
        return each.site_limit_w.has_value();
      });
  const auto number = [](const std::optional<double>& value) {
    return value ? number_text(*value) : std::string();
  };
  const auto line = [&](const AdvisedChange& of, std::vector<std::optional<double>> gains,
                        std::string why) {
    std::vector<std::string> cells{of.change.words,
                                   fmt::format("{}", fmt::join(of.change.sets, " "))};
    for (const auto& [name, value] : advice.numbers) {
      cells.push_back(number(number_named(of.numbers, name)));
    }
    if (limited) gains.insert(gains.end(), {of.site_limit_w, of.site_excess_w});
    for (const std::optional<double>& gain : gains) cells.push_back(number(gain));
    cells.push_back(std::move(why));
    return csv_line(cells);
  };
  std::vector<std::string> titles{"change", "set"};
  for (const auto& [name, value] : advice.numbers) titles.push_back(name);
  titles.insert(titles.end(), {"gain", "gain_low", "gain_high"});
  if (limited) titles.insert(titles.end(), {"site_limit_w", "site_excess_w"});
  titles.emplace_back("refused");
  CsvText out = csv_line(titles);
  for (const AdvisedChange& each : advice.changes) {
    out += line(each, {each.gain, each.gain_low, each.gain_high}, "");
  }
  for (const AdvisedChange& each : advice.pairs) {
    out += line(each, {each.gain, each.gain_low, each.gain_high}, "");
  }
  for (const RefusedChange& each : advice.refused) {
    out += line({.change = each.change}, {{}, {}, {}}, each.why);
  }
  return out;
}

}  // namespace lockstep
