#include "tools/views/diagnose/diagnosis_page.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/diagnose/diagnosis_words.hpp"
#include "tools/views/diagnose/telemetry_text.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kDrawnOperators = 14, kDrawnRecordedRanks = 16, kDrawnDiagnosedCalls = 12;

/// Bars of what was predicted and what was recorded, in the unit that reads best.
struct RecordedBars {
  std::vector<std::string> names;
  std::vector<double> predicted_s, recorded_s;

  void add(std::string name, double predicted, double recorded) {
    names.push_back(std::move(name));
    predicted_s.push_back(predicted);
    recorded_s.push_back(recorded);
  }
  void draw(Page& page, const std::string& title, const std::string& about) const {
    if (names.empty()) return;
    const AxisUnit unit =
        time_unit(std::max(std::ranges::max(predicted_s), std::ranges::max(recorded_s)));
    const auto part = [&](const char* name, std::size_t colour, const std::vector<double>& of) {
      BarPart out{.name = name, .colour = chart_colour(colour), .values = {}};
      for (const double seconds : of) out.values.push_back(seconds / unit.size);
      return out;
    };
    const std::vector<BarPart> parts{part("predicted", 0, predicted_s),
                                     part("recorded", 1, recorded_s)};
    page.chart({.title = title,
                .about = about,
                .summary = "Bars of the predicted and of the recorded time; the table has them.",
                .height_px = paired_height(names.size(), parts.size())},
               paired_bars(names, parts, unit.name));
  }
};

PageCell recorded_time(double seconds) {
  constexpr double kRounding = 1e-9;  // sums of a recording's times round
  const double shown = std::abs(seconds) < kRounding ? 0 : seconds;
  return PageCell::number(page_duration(shown), shown);
}
PageCell difference_cell(double seconds) {
  constexpr double kRounding = 1e-9;
  if (std::abs(seconds) < kRounding) return PageCell::number(page_duration(0), 0);
  return PageCell::number((seconds < 0 ? "−" : "+") + page_duration(std::abs(seconds)), seconds);
}
PageCell share_of_step(double seconds, double step_s) {
  return PageCell::number(error_text(seconds / step_s), seconds / step_s);
}

std::vector<PageColumn> difference_columns(const char* what) {
  return {{.title = what},
          {.title = "Predicted", .numeric = true},
          {.title = "Recorded", .numeric = true},
          {.title = "Difference", .numeric = true, .about = "what it costs a step"},
          {.title = "Of the step", .numeric = true, .about = "of the predicted one"}};
}

void add_recorded_parts(Page& page, const Diagnosis& d) {
  RecordedBars bars;
  PageTable table{.columns = difference_columns("Part of the step"), .rows = {}};
  for (const DiagnosedPart& part : d.parts) {
    bars.add(std::string(part.title), part.predicted_s, part.recorded_s);
    table.rows.push_back({PageCell::text(part.title), recorded_time(part.predicted_s),
                          recorded_time(part.recorded_s), difference_cell(part.difference_s()),
                          share_of_step(part.difference_s(), d.predicted_s)});
  }
  page.section("Where the difference lies",
               "Means over the recorded ranks. The parts add up to either step: computing hides "
               "communication beside it.");
  bars.draw(page, "Parts of the step", "");
  page.table(table);
}

void add_recorded_operators(Page& page, const Diagnosis& d) {
  if (d.operators.empty()) return;
  std::vector<const DiagnosedOperator*> order;
  for (const DiagnosedOperator& each : d.operators) order.push_back(&each);
  std::ranges::stable_sort(order, std::ranges::greater{}, [](const DiagnosedOperator* each) {
    return std::abs(each->difference_s());
  });
  RecordedBars bars;
  PageTable table{.columns = difference_columns("Operator"), .rows = {}};
  table.columns.insert(table.columns.begin() + 1,
                       {.title = "Kernels", .numeric = true, .about = "of a rank"});
  for (const DiagnosedOperator* each : order) {
    if (bars.names.size() < kDrawnOperators) {
      bars.add(std::string(each->title), each->predicted_s, each->recorded_s);
    }
    table.rows.push_back({PageCell::text(each->title),
                          each->kernels > 0
                              ? PageCell::number(plain_number(each->kernels, 4), each->kernels)
                              : PageCell::unknown(),
                          recorded_time(each->predicted_s), recorded_time(each->recorded_s),
                          difference_cell(each->difference_s()),
                          share_of_step(each->difference_s(), d.predicted_s)});
  }
  page.section(
      "Operators of the model",
      "By what a difference costs, the costliest first. Kernels that nothing assigns to an "
      "operator are a row of their own.");
  bars.draw(page, "The largest differences",
            order.size() > kDrawnOperators
                ? fmt::format("{} of {}; the table has all.", kDrawnOperators, order.size())
                : std::string());
  page.table(table);
}

void add_recorded_ranks(Page& page, const Diagnosis& d) {
  page.section("Ranks");
  page.paragraph(escaped(slowest_rank_words(d)));
  if (d.ranks.size() < 2) return;
  std::vector<std::size_t> order(d.ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return d.ranks[i].own_s(); });
  RecordedBars bars;
  PageTable table{.columns = {{.title = "Rank", .numeric = true},
                              {.title = "Its own work", .numeric = true},
                              {.title = "Predicted", .numeric = true, .about = "of its stage"},
                              {.title = "Products", .numeric = true},
                              {.title = "Memory-bound", .numeric = true},
                              {.title = "Host", .numeric = true},
                              {.title = "Communication, waits", .numeric = true},
                              {.title = "Step", .numeric = true}},
                  .rows = {},
                  .first_rows = 12};
  for (const std::size_t i : order) {
    const RecordedRank& rank = d.ranks[i];
    if (bars.names.size() < kDrawnRecordedRanks) {
      bars.add(fmt::format("rank {}", rank.rank), d.predicted_own_s[i], rank.own_s());
    }
    table.rows.push_back(
        {PageCell::number(std::to_string(rank.rank), rank.rank), recorded_time(rank.own_s()),
         recorded_time(d.predicted_own_s[i]), recorded_time(rank.of(RecordedPart::product)),
         recorded_time(rank.of(RecordedPart::memory)), recorded_time(rank.of(RecordedPart::idle)),
         recorded_time(rank.of(RecordedPart::exchange)), recorded_time(rank.step_s)});
  }
  bars.draw(page, "Work of the ranks, without waits",
            order.size() > kDrawnRecordedRanks
                ? fmt::format("The {} of {} that work longest; the table has all.",
                              kDrawnRecordedRanks, order.size())
                : std::string("The one that works longest first."));
  page.table(table);
}

void add_recorded_calls(Page& page, const Diagnosis& d) {
  if (d.calls.empty()) return;
  std::vector<const DiagnosedCall*> order;
  for (const DiagnosedCall& call : d.calls) order.push_back(&call);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [](const DiagnosedCall* call) { return lost_in_calls_s(*call); });
  RecordedBars bars;
  PageTable table{
      .columns = {{.title = "Collective"},
                  {.title = "Size", .numeric = true},
                  {.title = "Ranks"},
                  {.title = "Calls", .numeric = true, .about = "of one rank, in a step"},
                  {.title = "Shortest", .numeric = true, .about = "that waits for nobody"},
                  {.title = "Predicted", .numeric = true, .about = "alone on this cluster"},
                  {.title = "Ratio", .numeric = true},
                  {.title = "Costs", .numeric = true, .about = "a step, over all calls"}},
      .rows = {},
      .first_rows = 20};
  for (const DiagnosedCall* call : order) {
    const std::string ranks = some_ranks_text(call->ranks);
    const double lost = lost_in_calls_s(*call);
    if (bars.names.size() < kDrawnDiagnosedCalls) {
      bars.add(fmt::format("{} of {}, ranks {}", call->call, page_bytes(call->bytes), ranks),
               call->predicted_s, call->shortest_s);
    }
    const auto calls = static_cast<double>(call->calls);
    table.rows.push_back(
        {PageCell::text(call->call), PageCell::number(page_bytes(call->bytes), call->bytes),
         PageCell::text(ranks), PageCell::number(grouped(calls), calls),
         recorded_time(call->shortest_s), recorded_time(call->predicted_s),
         PageCell::number(page_times(call->ratio()), call->ratio()), difference_cell(lost)});
  }
  page.section("Collectives and links",
               "The shortest call of each kind, size and group is that of the rank that comes "
               "last: what it takes longer than predicted is no wait. The costliest first.");
  std::vector<std::string> words = slow_group_words(d);
  if (const std::string slow = slow_call_words(d); !slow.empty()) {
    words.insert(words.begin(), slow);
  }
  if (!words.empty()) page.list(words);
  bars.draw(page, "A call, where nobody is waited for",
            order.size() > kDrawnDiagnosedCalls
                ? fmt::format("{} of {}; the table has all.", kDrawnDiagnosedCalls, order.size())
                : std::string());
  page.table(table);
}

void add_logged(Page& page, const Telemetry& t) {
  page.section("Power and clock", "What monitors logged of the GPUs, as means over a second.");
  if (t.measured) {
    PageTable table{.columns = {{.title = "Power of a GPU"},
                                {.title = "Predicted", .numeric = true},
                                {.title = "Measured", .numeric = true},
                                {.title = "Difference", .numeric = true}},
                    .rows = {}};
    const auto add = [&](const char* what, double predicted, double measured) {
      table.rows.push_back(
          {PageCell::text(what), PageCell::number(page_watts(predicted), predicted),
           PageCell::number(page_watts(measured), measured),
           PageCell::number(page_watts(measured - predicted), measured - predicted)});
    };
    add("mean", t.predicted.mean_w, t.measured->mean_w);
    add("99th percentile", t.predicted.p99_w, t.measured->p99_w);
    add("swing", t.predicted.swing_w, t.measured->swing_w);
    page.table(table);
  }
  const std::vector<std::string> words = telemetry_words(t);
  if (!words.empty()) page.list(words);
}

}  // namespace

std::string diagnosis_page(const Diagnosis& d, const RunResult& predicted,
                           const PresetStore& presets) {
  const Scenario& scenario = predicted.scenario;
  Page page("Diagnosis",
            fmt::format("{} on {}", scenario.job.model.name, counted(scenario.gpus(), "GPU")));
  if (!scenario.about.empty()) page.about(scenario.about);
  const Html slow = strong(d.telemetry ? slow_gpu_verdict(*d.telemetry) : std::string());
  if (d.ranks.empty()) {
    page.headline(escaped("The step is predicted to take ") + strong(page_duration(d.predicted_s)) +
                  escaped(".") + slow);
  } else {
    page.headline(prose(diagnosis_verdict(d)) + slow);
    page.figures(std::vector<PageFigure>{
        {.value = page_duration(d.recorded_s), .label = "recorded step"},
        {.value = page_duration(d.predicted_s),
         .label = fmt::format("predicted; 90 % interval {} to {}", page_duration(d.predicted_low_s),
                              page_duration(d.predicted_high_s))},
        {.value = error_text(d.ratio() - 1), .label = "recorded over predicted"},
        {.value = grouped(static_cast<double>(d.ranks.size())),
         .label = d.ranks.size() == 1 ? "rank recorded" : "ranks recorded"}});
    add_recorded_parts(page, d);
    add_recorded_operators(page, d);
    add_recorded_ranks(page, d);
    add_recorded_calls(page, d);
  }
  if (d.telemetry) add_logged(page, *d.telemetry);
  if (!d.notes.empty()) {
    page.section("Notes");
    page.list(d.notes);
  }
  add_basis(page, {.simulated = job_words(scenario),
                   .written = predicted.written,
                   .assumptions = scenario.assumptions,
                   .presets = &presets,
                   .named = presets_of(scenario, presets)});
  page.foot(fmt::format("Scenario: {}.", scenario.file));
  return page.html(chart_library());
}

}  // namespace lockstep
