#include "tools/views/measured/learnt_page.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/measured/step_shares.hpp"
#include "tools/views/measured/learnt_text.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

constexpr double kNinetyPercent = 1.645;  ///< standard deviations of a normal law either way
constexpr std::size_t kListedSteps = 20;

/// "h100_sxm5_80gb, experts".
std::string learnt_kind(const LearntLevel& level) {
  return level.gpu + (level.experts ? ", experts" : "") + (level.adapters ? ", adapters" : "");
}

/// Per cent by which kernels take longer where the level's logarithm is this.
double more_percent(double log_level) { return 100 * std::expm1(log_level); }

std::string within(double half_width) { return "± " + page_percent(half_width, 1); }

Html learnt_headline(const MeasuredSteps& steps, const Learnt& learnt) {
  Html out;
  for (const LearntKind& kind : learnt.kinds) {
    const double more = std::expm1(kind.level.log_level);
    out += escaped(fmt::format("{}On {} the kernels of {} take ", out.empty() ? "" : " ",
                               learnt_kind(kind.level), steps.stack_name)) +
           strong(page_percent(std::abs(more), 1) + (more < 0 ? " less" : " more")) +
           escaped(" than its description says; a step is known to ") +
           strong(within(kind.half_width_after)) +
           escaped(fmt::format(" instead of {}.", within(kind.half_width_before)));
    if (const std::string words = less_sure_words(kind); !words.empty()) {
      out += escaped(" That is wider than before: " + words + ".");
    }
  }
  return out;
}

/// A step of a list that has its scenario within is named by its place there.
std::string learnt_step(const std::string& name) {
  const bool is_place = name.size() > 1 && name.front() == '/' &&
                        name.find_first_not_of("0123456789", 1) == std::string::npos;
  return is_place ? "entry " + name.substr(1) : name;
}

/// Of each kind the level before and after, with what nine of ten would lie in.
void add_levels(Page& page, const Learnt& learnt) {
  std::vector<IntervalBar> bars;
  const auto add = [&](const std::string& kind, const char* when, double level, double deviation,
                       bool marked) {
    const double low = more_percent(level - kNinetyPercent * deviation);
    const double high = more_percent(level + kNinetyPercent * deviation);
    bars.push_back(
        {.name = fmt::format("{}: {}", kind, when),
         .value = more_percent(level),
         .low = low,
         .high = high,
         .words = {fmt::format("{}: {}", kind, when),
                   fmt::format("{:+.1f} % ({:+.1f} to {:+.1f} %)", more_percent(level), low, high)},
         .marked = marked});
  };
  for (const LearntKind& kind : learnt.kinds) {
    const std::string name = learnt_kind(kind.level);
    add(name, "before", 0, kind.level.prior, false);
    add(name, "learnt", kind.level.log_level, kind.level.deviation, true);
  }
  page.section("What was learnt",
               "How much longer kernels take than the description of the stack says, and how sure "
               "that is. A few steps move it only as far as they can tell it.");
  page.chart({.title = "Level of the kernels, before and after",
              .about = "0 % is the description as it is. Whiskers: 90 % intervals.",
              .summary = "Bars with intervals, before and after; the table has the same.",
              .height_px = bars_height(bars.size())},
             interval_bars(bars, "%"));
}

void add_kinds(Page& page, const Learnt& learnt) {
  PageTable table{
      .columns = {{.title = "Kind of job"},
                  {.title = "Jobs", .numeric = true, .about = "distinct ones"},
                  {.title = "Kernels take", .numeric = true, .about = "over the description"},
                  {.title = "Sure to", .numeric = true, .about = "one standard deviation"},
                  {.title = "Before, sure to", .numeric = true, .about = "one standard deviation"},
                  {.title = "Prior deviations",
                   .numeric = true,
                   .about = "what all steps say, believed alike"},
                  {.title = "Step within: before", .numeric = true, .about = "90 % interval"},
                  {.title = "After", .numeric = true, .about = "90 % interval"}}};
  for (const LearntKind& kind : learnt.kinds) {
    const LearntLevel& level = kind.level;
    const double more = std::expm1(level.log_level);
    table.rows.push_back({PageCell::key(learnt_kind(level)),
                          PageCell::number(grouped(level.steps), level.steps),
                          PageCell::number(error_text(more), more),
                          PageCell::number(within(level.deviation), level.deviation),
                          PageCell::number(within(level.prior), level.prior),
                          PageCell::number(deviations_text(kind), kind.misfit),
                          PageCell::number(within(kind.half_width_before), kind.half_width_before),
                          PageCell::number(within(kind.half_width_after), kind.half_width_after)});
  }
  page.table(table);
  std::vector<std::string> doubts;
  for (const LearntKind& kind : learnt.kinds) {
    if (const std::string words = misfit_words(kind); !words.empty()) {
      doubts.push_back(learnt_kind(kind.level) + ": " + words);
    }
  }
  if (!doubts.empty()) page.list(doubts);
}

/// The parts of the description that govern how long the steps take.
void add_mixed_parts(Page& page, const Learnt& learnt) {
  std::vector<std::string> names;
  std::vector<BarPart> parts;
  for (std::size_t p = 0; p < kDescriptionParts; ++p) {
    BarPart part{
        .name = std::string(description_parts()[p].words), .colour = chart_colour(p), .values = {}};
    for (const LearntKind& kind : learnt.kinds) {
      part.values.push_back(std::max(0.0, rounded_percent(kind.shares[p])));
    }
    parts.push_back(std::move(part));
  }
  for (const LearntKind& kind : learnt.kinds) names.push_back(learnt_kind(kind.level));
  page.section("What these steps cannot tell apart",
               "Of each part of the description the share of a step's time that it decides. All "
               "kernels have products and the kernels between them in them, so that shares do not "
               "add up. Only the level of all is corrected: a step that is slower for another part "
               "looks the same.");
  page.chart({.title = "What governs the measured steps",
              .about = {},
              .summary = "Bars of the shares of the parts, by kind of job.",
              .height_px = paired_height(names.size(), parts.size())},
             paired_bars(names, parts, "%"));
}

void add_next(Page& page, const Learnt& learnt) {
  PageTable table{.columns = {{.title = "Kind of job"},
                              {.title = "Measure next"},
                              {.title = "Step then within", .numeric = true},
                              {.title = "Now", .numeric = true}}};
  for (const LearntKind& kind : learnt.kinds) {
    if (!kind.next) continue;
    table.rows.push_back({PageCell::key(learnt_kind(kind.level)), PageCell::text(kind.next->words),
                          PageCell::number(within(kind.next->half_width), kind.next->half_width),
                          PageCell::number(within(kind.half_width_after), kind.half_width_after)});
  }
  if (table.rows.empty()) return;
  page.section("Which measurement next", "The one step that would make the answer surest.");
  page.table(table);
}

void add_evidence(Page& page, const Learnt& learnt) {
  PageTable table{.columns = {{.title = "Step"}, {.title = "Kind of job"}, {.title = "It took"}},
                  .first_rows = 40};
  for (const LearntKind& kind : learnt.kinds) {
    for (const std::string& step : kind.evidence) {
      const std::size_t colon = step.rfind(": ");
      table.rows.push_back({PageCell::key(learnt_step(step.substr(0, colon))),
                            PageCell::key(learnt_kind(kind.level)),
                            PageCell::text(step.substr(colon + 2))});
    }
  }
  page.section("The measured steps", "Steps of one job count as one.");
  page.table(table);
}

/// The jobs of the steps, and all that they name.
AnswerBasis learnt_basis(const MeasuredSteps& steps, const PresetStore& presets) {
  AnswerBasis basis{.title = "What was measured",
                    .simulated = {{"Software", steps.stack_name}},
                    .presets = &presets};
  std::vector<std::string> listed;
  for (const MeasuredStep& step : steps.steps) {
    if (listed.size() == kListedSteps) break;
    if (std::ranges::find(listed, step.job) != listed.end()) continue;
    listed.push_back(step.job);
    for (const NamedWords& line : job_words(step.scenario)) {
      if (line.name != "Software")
        basis.simulated.push_back({learnt_step(step.name) + ": " + line.name, line.words});
    }
    for (const NamedPreset& each : presets_of(step.scenario, presets)) {
      if (std::ranges::find(basis.named, each) == basis.named.end()) basis.named.push_back(each);
    }
    for (const std::string& line : step.scenario.assumptions) {
      if (std::ranges::find(basis.assumptions, line) == basis.assumptions.end()) {
        basis.assumptions.push_back(line);
      }
    }
  }
  return basis;
}

}  // namespace

std::string learnt_page(const MeasuredSteps& steps, const Learnt& learnt, const std::string& file,
                        const PresetStore& presets) {
  Page page("Learnt stack",
            fmt::format("{}, from {}", steps.stack_name,
                        counted(static_cast<double>(steps.steps.size()), "measured step")));
  page.headline(learnt_headline(steps, learnt));
  add_levels(page, learnt);
  add_kinds(page, learnt);
  add_mixed_parts(page, learnt);
  add_next(page, learnt);
  add_evidence(page, learnt);
  if (!steps.left_out.empty()) {
    page.section("Left out");
    page.list(steps.left_out);
  }
  add_basis(page, learnt_basis(steps, presets));
  page.foot(fmt::format("Measured steps: {}.", file));
  return page.html(chart_library());
}

}  // namespace lockstep
