#include "tools/lockstep/vary/advice_table.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "models/base/number_text.hpp"
#include "tools/lockstep/run/site_limit.hpp"

namespace lockstep {
namespace {

constexpr int kGainBar = 20;  // columns
/// Gains below that are no help.
constexpr double kLeastGain = 0.001;

std::string interval_of_gain(const AdvisedChange& each) {
  if (!each.gain_low) return "no witness";
  return fmt::format("{:+.0f} to {:+.0f} %", 100 * *each.gain_low, 100 * *each.gain_high);
}

bool helps(const AdvisedChange& each) { return each.gain >= kLeastGain; }

std::string helping_table(const Advice& advice, const TextStyle& style) {
  TextTable table({{"change", TextTable::Align::left},
                   {"tokens/s/GPU"},
                   {"90 % interval"},
                   {"step"},
                   {"", TextTable::Align::left}});
  const double most = advice.changes.front().gain;
  for (const AdvisedChange& each : advice.changes) {
    if (!helps(each)) continue;
    table.add({each.change.words, error_text(each.gain), interval_of_gain(each),
               duration_text(each.step_s), bar(each.gain / most, kGainBar, style)});
  }
  return table.text(style);
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

/// The rule of an error line, without the file that all share.
std::string reason_of(const RefusedChange& each, const std::string& file) {
  std::string why = each.why;
  if (why.starts_with(file)) why.erase(0, file.size());
  if (why.starts_with("#")) why.erase(0, 1);
  if (why.starts_with(": ")) why.erase(0, 2);
  return why;
}

}  // namespace

namespace {

/// What draws more than the site has: the scenario as it is, and each change.
std::string exceeded_by(const Advice& advice) {
  LimitTally limits;
  limits.add(advice.site_excess_w, advice.site_limit_w);
  for (const AdvisedChange& each : advice.changes)
    limits.add(each.site_excess_w, each.site_limit_w);
  const std::string over = limits.warning("steps, as it is and with each change,");
  return over.empty() ? "" : wrap(over + ".", kTextColumns, 0) + "\n";
}

}  // namespace

std::string advice_table(const Advice& advice, const TextStyle& style) {
  std::string out = style.bold("What would help") + "\n" +
                    wrap(fmt::format("Each change is made alone and simulated. As it is, the step "
                                     "takes {}.",
                                     duration_text(advice.step_s)),
                         kTextColumns, 0) +
                    "\n" + exceeded_by(advice) + "\n";
  const bool some = std::ranges::any_of(advice.changes, helps);
  out += some ? helping_table(advice, style)
              : "  None of the changes that can be made makes it faster.\n";
  out += hindering_text(advice);
  if (advice.refused.empty()) return out;
  out += "\nCannot be:\n";
  for (const RefusedChange& each : advice.refused) {
    out += wrap(fmt::format("  {}: {}", each.change.words, reason_of(each, advice.file)),
                kTextColumns, 4) +
           "\n";
  }
  return out;
}

CsvText advice_csv(const Advice& advice) {
  const auto number = [](const std::optional<double>& value) {
    return value ? number_text(*value) : std::string();
  };
  CsvText out = csv_line(std::vector<std::string>{"change", "set", "step_s", "gain", "gain_low",
                                                  "gain_high", "refused"});
  for (const AdvisedChange& each : advice.changes) {
    out += csv_line(std::vector<std::string>{each.change.words,
                                             fmt::format("{}", fmt::join(each.change.sets, " ")),
                                             number_text(each.step_s), number_text(each.gain),
                                             number(each.gain_low), number(each.gain_high), ""});
  }
  for (const RefusedChange& each : advice.refused) {
    out += csv_line(std::vector<std::string>{each.change.words,
                                             fmt::format("{}", fmt::join(each.change.sets, " ")),
                                             "", "", "", "", each.why});
  }
  return out;
}

}  // namespace lockstep
