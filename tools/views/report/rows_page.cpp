#include "tools/views/report/rows_page.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>

#include "models/base/number_text.hpp"
#include "sim/scenario/names.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

/// The GPUs with most rows; all beyond the page's colours are one group.
std::vector<std::string> gpu_groups(const std::vector<RowPrediction>& predictions) {
  std::map<std::string, std::size_t> counts;
  for (const RowPrediction& p : predictions) {
    if (p.error) ++counts[p.row->gpu];
  }
  std::vector<std::pair<std::string, std::size_t>> order(counts.begin(), counts.end());
  std::ranges::stable_sort(order, std::ranges::greater{},
                           &std::pair<std::string, std::size_t>::second);
  std::vector<std::string> names;
  for (const auto& [name, count] : order) {
    if (names.size() < kPageColours) names.push_back(name);
  }
  names.emplace_back("all other GPUs");
  return names;
}

std::string row_layout(const ReferenceRow& row) {
  std::string out = fmt::format("TP {} PP {} DP {}", row.tensor, row.pipeline, row.data);
  if (row.context > 1) out += fmt::format(" CP {}", row.context);
  if (row.expert > 1) out += fmt::format(" EP {}", row.expert);
  return out;
}

/// For the measured and the predicted step: "2.07 min" beside "97.6 s" is hard to compare.
AxisUnit unit_of_both(const RowPrediction& p) {
  return time_unit(std::max(p.row->measured_step_s.value_or(0), p.predicted_step_s.value_or(0)));
}

void add_predicted_chart(Page& page, const std::vector<RowPrediction>& predictions) {
  const std::vector<std::string> groups = gpu_groups(predictions);
  std::vector<ChartDot> dots;
  bool beyond = false;
  double least = INFINITY, most = 0;
  for (const RowPrediction& p : predictions) {
    if (!p.error || !p.row->measured_step_s) continue;
    const auto group = std::ranges::find(groups, p.row->gpu) - groups.begin();
    const double measured = *p.row->measured_step_s;
    const AxisUnit unit = unit_of_both(p);
    least = std::min(least, measured);
    most = std::max(most, measured);
    beyond = beyond || std::abs(*p.error) > 1;
    dots.push_back(
        {.x = measured,
         .y = 100 * std::clamp(*p.error, -1.0, 1.0),
         .words = {p.row->id,
                   fmt::format("{} on {} {}", p.row->model.name, p.row->gpus, p.row->gpu),
                   fmt::format("measured {}, predicted {}: {}",
                               page_with(measured / unit.size, unit.name),
                               page_with(*p.predicted_step_s / unit.size, unit.name),
                               error_text(*p.error))},
         .colour = std::min(static_cast<std::size_t>(group), groups.size() - 1)});
  }
  if (dots.empty()) return;
  page.section("Row by row");
  page.chart(
      {.title = "Error over the measured step time",
       .about =
           fmt::format("A dot for each run, by GPU: above 0 the prediction is too slow. The axis "
                       "of time is logarithmic.{}",
                       beyond ? " Errors beyond 100 % lie on the edge." : ""),
       .summary = fmt::format("Dots of the error of {} runs; the table has them all.", dots.size()),
       .height_px = 400},
      dots_chart(dots, groups, {.unit = "s", .logarithmic = true}, {.unit = "%"}));
}

void add_row_groups(Page& page, const std::vector<RowPrediction>& predictions,
                    const RowSummary& summary) {
  std::map<std::string, double> errors;
  for (const RowPrediction& p : predictions) {
    if (p.error) errors[p.row->id] = *p.error;
  }
  const auto worst = [&errors](const std::string& id) {
    const auto error = errors.find(id);
    return PageCell{.content = error == errors.end()
                                   ? key_words(id)
                                   : with_detail(key_words(id), error_text(error->second))};
  };
  PageTable table{.columns = {{.title = "By"},
                              {.title = "Group"},
                              {.title = "Rows", .numeric = true},
                              {.title = "Median error", .numeric = true},
                              {.title = "90th percentile", .numeric = true},
                              {.title = "Bias", .numeric = true, .about = "median, with its sign"},
                              {.title = "Worst"}},
                  .first_rows = 24,
                  .searched = true};
  const auto add = [&](const char* by, const std::vector<GroupErrors>& groups) {
    for (const GroupErrors& g : groups) {
      table.rows.push_back(
          {PageCell::text(by), PageCell::key(g.group),
           PageCell::number(grouped(static_cast<double>(g.errors.n)),
                            static_cast<double>(g.errors.n)),
           PageCell::number(page_percent(g.errors.median_abs, 1), g.errors.median_abs),
           PageCell::number(page_percent(g.errors.p90_abs, 1), g.errors.p90_abs),
           PageCell::number(error_text(g.errors.bias), g.errors.bias), worst(g.worst_id)});
    }
  };
  add("kind", summary.by_kind);
  add("GPU", summary.by_gpu);
  add("software", summary.by_stack);
  add("source", summary.by_source);
  page.section(
      "How far off, by group",
      "Error is predicted over measured step time, less 1. Groups overlap: a run has one GPU, "
      "software and source, and is in each kind that it is of, where it does not contradict "
      "itself.");
  page.table(table);
}

/// The preset's name, with the source's own below it where that is another, and the release.
PageCell software_cell(const RowPrediction& p) {
  const ReferenceRow& row = *p.row;
  const bool spelt = !row.stack.empty() && row.stack != p.stack;
  const std::string detail = (spelt ? "\u201c" + row.stack + "\u201d" : std::string()) +
                             (spelt && !row.release.empty() ? " " : "") + row.release;
  return {.content = detail.empty() ? escaped(p.stack) : with_detail(escaped(p.stack), detail)};
}

/// Where a run was published, and whether what is published of it cannot all be so.
std::string published_words(const ReferenceRow& row) {
  if (row.complete) return row.published;
  return row.published + (row.published.empty() ? "" : "; ") + "contradicts itself";
}

/// What the fullest GPU needs by the prediction, and what was measured and said of it.
PageCell memory_cell(const RowPrediction& p) {
  if (!p.predicted_memory_gib) return PageCell::unknown();
  std::string detail;
  if (p.row->measured_memory_gib) {
    detail = fmt::format("measured {}", page_with(*p.row->measured_memory_gib, "GiB"));
  }
  if (!p.predicted_fits.value_or(true)) {
    detail += (detail.empty() ? "" : "; ") + std::string("said not to fit");
  }
  const Html words = escaped(page_with(*p.predicted_memory_gib, "GiB"));
  return {.content = detail.empty() ? words : with_detail(words, detail),
          .sort = *p.predicted_memory_gib};
}

/// How well the order of layouts of each job is met.
void add_rankings(Page& page, const RowSummary& summary) {
  if (summary.rankings.empty()) return;
  PageTable table{.columns = {{.title = "Job"},
                              {.title = "GPUs", .numeric = true},
                              {.title = "Sequences", .numeric = true},
                              {.title = "Tokens a sequence", .numeric = true},
                              {.title = "Layouts", .numeric = true},
                              {.title = "Rank correlation", .numeric = true, .about = "Spearman"}}};
  for (const Ranking& r : summary.rankings) {
    table.rows.push_back(
        {{.content = with_detail(key_words(r.model), r.source)},
         PageCell::number(grouped(r.gpus), r.gpus),
         PageCell::number(grouped(r.sequences), r.sequences),
         PageCell::number(grouped(r.tokens), r.tokens),
         PageCell::number(grouped(static_cast<double>(r.n)), static_cast<double>(r.n)),
         PageCell::number(fmt::format("{:.3f}", r.spearman), r.spearman)});
  }
  page.section("The order of layouts",
               "Jobs of which many layouts were measured: 1 where the predicted order of their "
               "speeds is the measured one.");
  page.table(table);
}

PageTable every_row(const std::vector<RowPrediction>& predictions) {
  PageTable table{.columns = {{.title = "Error", .numeric = true},
                              {.title = "Measured", .numeric = true},
                              {.title = "Predicted", .numeric = true},
                              {.title = "Run", .about = "and where it was published"},
                              {.title = "Model"},
                              {.title = "GPUs", .numeric = true},
                              {.title = "GPU"},
                              {.title = "Software"},
                              {.title = "Layout"},
                              {.title = "Memory", .numeric = true, .about = "predicted"}},
                  .first_rows = 50,
                  .searched = true};
  for (const RowPrediction& p : predictions) {
    const ReferenceRow& row = *p.row;
    const AxisUnit unit = unit_of_both(p);
    const auto time = [&](const std::optional<double>& seconds) {
      return seconds ? PageCell::number(page_with(*seconds / unit.size, unit.name), *seconds)
                     : PageCell::unknown();
    };
    PageCell error = PageCell::text(p.reason.empty() ? std::string(name_of(p.status)) : p.reason);
    if (p.error) error = PageCell::number(error_text(*p.error), *p.error);
    table.rows.push_back({std::move(error),
                          time(row.measured_step_s),
                          time(p.predicted_step_s),
                          {.content = with_detail(escaped(row.id), published_words(row))},
                          PageCell::key(row.model.name),
                          PageCell::number(grouped(row.gpus), row.gpus),
                          PageCell::key(row.gpu),
                          software_cell(p),
                          PageCell::text(row_layout(row)),
                          memory_cell(p)});
  }
  return table;
}

}  // namespace

std::string rows_page(const std::vector<RowPrediction>& predictions, const std::string& path) {
  // Where the program's own rows lie is another folder on each machine.
  const std::filesystem::path read(path);
  const std::string file = read.is_absolute() ? read.filename().string() : path;
  const RowSummary summary = summarise_rows(predictions);
  Page page("Validation report", "Published runs against predictions");
  page.about(fmt::format("Rows of {}.", file));
  const ErrorSummary& all = summary.complete.errors;
  page.headline(escaped("Half of the step times are within ") +
                strong(page_within(all.median_abs)) + escaped(", nine in ten within ") +
                strong(page_within(all.p90_abs)) +
                escaped(fmt::format(", of {} runs that do not contradict themselves.",
                                    grouped(static_cast<double>(all.n)))));
  const auto count = [](std::size_t n) { return grouped(static_cast<double>(n)); };
  std::vector<PageFigure> figures{
      {.value = count(summary.rows), .label = "rows"},
      {.value = count(summary.predicted), .label = "with a step time predicted"},
      {.value = count(summary.skipped), .label = "that cannot be simulated"},
      {.value = count(summary.oom), .label = "that ran out of memory when measured"}};
  std::size_t ran = 0, not_fitting = 0;
  for (const SaidNotToFit& source : summary.said_not_to_fit) {
    ran += source.rows;
    not_fitting += source.not_fitting;
  }
  if (ran > 0) {
    figures.push_back(
        {.value = count(not_fitting),
         .label = fmt::format("said not to fit in memory, of {} that ran", count(ran))});
  }
  if (const ErrorSummary& memory = summary.memory.errors; memory.n > 0) {
    figures.push_back(
        {.value = page_within(memory.median_abs),
         .label = fmt::format("median error of the peak of memory, of {} that tell it",
                              count(memory.n))});
  }
  if (!summary.rankings.empty()) {
    figures.push_back(
        {.value = fmt::format("{:.3f}", summary.median_spearman),
         .label = fmt::format("rank correlation of layouts (Spearman), median of {}",
                              counted(static_cast<double>(summary.rankings.size()), "job"))});
  }
  page.figures(figures);
  add_row_groups(page, predictions, summary);
  add_predicted_chart(page, predictions);
  add_rankings(page, summary);
  page.section("Every run", "What was measured of each, and what Lockstep says of it.");
  page.table(every_row(predictions));
  page.foot("Rows: " + file + ".");
  return page.html(chart_library());
}

}  // namespace lockstep
