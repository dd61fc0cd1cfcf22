#include "tools/views/comm/collective_page.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

std::string page_rate(double bytes_per_s) { return page_bytes(bytes_per_s) + "/s"; }

/// "8 MiB", as sizes of nccl-tests are said, and as the terminal says them.
std::string size_words(const CollectiveRow& row) {
  return format_quantity(row.size.base_units(), Dimension::data);
}

std::string op_of(const CollectiveRow& row) {
  return std::string(collective_kinds()[static_cast<std::size_t>(row.op)].name);
}

/// Operations in the order of the rows: each has its colour in both charts.
std::vector<std::string> ops_of(const CollectiveStudy& study) {
  std::vector<std::string> out;
  for (const CollectiveRow& row : study.rows) {
    if (out.empty() || out.back() != op_of(row)) out.push_back(op_of(row));
  }
  return out;
}

std::vector<std::string> words_of(const CollectiveRow& row) {
  std::vector<std::string> out{
      fmt::format("{}, {}", op_of(row), size_words(row)), page_duration(row.time.base_units()),
      page_rate(row.busbw_bytes_per_s) + " of bus bandwidth",
      fmt::format("{}, {}", row.choice.cost->algorithm, row.choice.cost->protocol)};
  if (!row.slowest_link.empty()) {
    out.push_back(row.held_by_switches()
                      ? fmt::format("{} on a fabric whose switches never limit; here {} does",
                                    page_duration(row.full_time.base_units()), row.slowest_link)
                      : fmt::format("{} with NICs at full rate; {} is slower",
                                    page_duration(row.choice.time.base_units()), row.slowest_link));
  }
  return out;
}

/// Dots of an operation on a line, by rising size: where many lie on another they are told apart by
/// where they come from.
nlohmann::json with_lines(nlohmann::json chart) {
  for (nlohmann::json& series : chart["series"]) {
    series["type"] = "line";
    series["symbol"] = "circle";
    series["symbolSize"] = 7;
    series["lineStyle"] = {{"width", 1.5}, {"color", series["itemStyle"]["color"]}};
  }
  return chart;
}

/// Adds the charts. Requires at least one row.
void add_charts(Page& page, const CollectiveStudy& study) {
  const std::vector<std::string> ops = ops_of(study);
  const auto dots = [&](auto&& height) {
    std::vector<ChartDot> out;
    std::size_t op = 0;
    for (const CollectiveRow& row : study.rows) {
      if (op_of(row) != ops[op]) ++op;
      out.push_back(
          {.x = row.size.base_units(), .y = height(row), .words = words_of(row), .colour = op});
    }
    std::ranges::stable_sort(out, {}, &ChartDot::x);
    return out;
  };
  double longest = 0;
  for (const CollectiveRow& row : study.rows) longest = std::max(longest, row.time.base_units());
  const AxisUnit time = time_unit(longest);
  const DotAxis sizes{.unit = "@bytes", .logarithmic = true};
  page.chart({.title = "Bus bandwidth over the size",
              .about = "As nccl-tests counts it: what the busiest link of a ring would carry.",
              .summary = "Lines of bus bandwidth by size; the table has the same."},
             with_lines(dots_chart(
                 dots([](const CollectiveRow& row) { return row.busbw_bytes_per_s / 1e9; }), ops,
                 sizes, {.unit = "GB/s", .from_zero = true})));
  page.chart({.title = "Time over the size",
              .about = {},
              .summary = "Lines of time by size; the table has the same."},
             with_lines(dots_chart(
                 dots([&](const CollectiveRow& row) { return row.time.base_units() / time.size; }),
                 ops, sizes, {.unit = time.name, .logarithmic = true})));
}

void add_rows(Page& page, const CollectiveStudy& study) {
  const bool limited = switches_limit(study);
  PageTable table{
      .columns = {{.title = "Operation"},
                  {.title = "Size", .numeric = true},
                  {.title = "Time", .numeric = true},
                  {.title = "algbw", .numeric = true, .about = "size over time"},
                  {.title = "busbw", .numeric = true, .about = "as nccl-tests counts it"},
                  {.title = "Algorithm"},
                  {.title = "Protocol"},
                  {.title = "Channels", .numeric = true}}};
  if (limited) {
    table.columns.push_back({.title = "Full fabric",
                             .numeric = true,
                             .about = "time on a fabric whose switches never limit"});
  }
  for (const CollectiveRow& row : study.rows) {
    std::vector<PageCell> cells{
        PageCell::text(op_of(row)),
        PageCell::number(size_words(row), row.size.base_units()),
        PageCell::number(page_duration(row.time.base_units()), row.time.base_units()),
        PageCell::number(page_rate(row.algbw_bytes_per_s), row.algbw_bytes_per_s),
        PageCell::number(page_rate(row.busbw_bytes_per_s), row.busbw_bytes_per_s),
        PageCell::text(row.choice.cost->algorithm),
        PageCell::text(row.choice.cost->protocol),
        PageCell::number(fmt::format("{}", row.choice.channels), row.choice.channels)};
    if (limited) {
      const double full = row.full_time.base_units();
      cells.push_back(PageCell::number(page_duration(full), full));
    }
    table.rows.push_back(std::move(cells));
  }
  page.table(table);
}

/// Adds each row's times over other draws of the hashes.
void add_draws(Page& page, const CollectiveStudy& study) {
  if (!study.hash) return;
  page.section("Draws of the hashes", study.hash->draws == 1
                                          ? one_draw_text(*study.hash)
                                          : fmt::format("Of {} draws; all else is of draw {}.",
                                                        study.hash->draws, study.hash->draw));
  if (study.hash->draws == 1) return;
  PageTable table{.columns = {{.title = "Operation"},
                              {.title = "Size", .numeric = true},
                              {.title = "Least", .numeric = true},
                              {.title = "Median", .numeric = true},
                              {.title = "Most", .numeric = true}}};
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const CollectiveRow& row = study.rows[i];
    const HashBand& band = study.hash->bands[i];
    std::vector<PageCell> cells{PageCell::text(op_of(row)),
                                PageCell::number(size_words(row), row.size.base_units())};
    for (const HashDraw& of : {band.least, band.median, band.most}) {
      cells.push_back(PageCell::number(page_duration(of.value), of.value));
    }
    table.rows.push_back(std::move(cells));
  }
  page.table(table);
}

/// The figures of the page; `best`: the row with the most bus bandwidth.
std::vector<PageFigure> collective_figures(const CollectiveStudy& study,
                                           const CollectiveRow& best) {
  const CollectiveRow& largest = *std::ranges::max_element(study.rows, {}, &CollectiveRow::size);
  return {{.value = page_duration(largest.time.base_units()),
           .label = fmt::format("time of {} of {}, the largest size", op_of(largest),
                                size_words(largest)),
           .field = "largest_time_s"},
          {.value = page_rate(best.busbw_bytes_per_s),
           .label = "of bus bandwidth, the best",
           .field = "best_busbw_bytes_per_s"},
          {.value = page_rate(study.group.nic_bandwidth.base_units()),
           .label = "of NIC for each GPU",
           .field = "nic_bytes_per_s"},
          {.value = grouped(static_cast<double>(study.group.gpus.size())),
           .label = "GPUs",
           .field = "ranks"}};
}

}  // namespace

std::string collective_page(const CollectiveStudy& study, const WrittenScenario& written,
                            const Behind* behind) {
  Page page("Collectives",
            fmt::format("{} among {}", fmt::join(ops_of(study), ", "),
                        counted(static_cast<double>(study.group.gpus.size()), "GPU")));
  if (behind != nullptr) behind->open_figures(page);
  if (!study.about.empty()) page.about(study.about);
  const CollectiveRow& best =
      *std::ranges::max_element(study.rows, {}, &CollectiveRow::busbw_bytes_per_s);
  page.headline(escaped("The most bus bandwidth is ") + strong(page_rate(best.busbw_bytes_per_s)) +
                escaped(fmt::format(", of {} of {} in ", op_of(best), size_words(best))) +
                strong(page_duration(best.time.base_units())) + escaped("."));
  page.figures(collective_figures(study, best));
  page.section("Bandwidth and time", collective_group_text(study) + ".");
  add_charts(page, study);
  add_rows(page, study);
  page.section("Why these algorithms",
               "Each algorithm's own time; above is the smooth minimum over all. "
               "Protocols by NCCL's names: ll and ll128 send 8 and 128 bytes together with their "
               "flags, for the least latency; simple sends whole buffers, for the most bandwidth.");
  page.list(choice_reasons(study));
  add_draws(page, study);
  std::vector<NamedWords> simulated = cluster_words(study.cluster);
  simulated.push_back({"Group", collective_group_text(study)});
  add_basis(page, {.simulated = std::move(simulated),
                   .written = written,
                   .assumptions = study.cluster.assumptions,
                   .presets = behind != nullptr ? &behind->presets() : nullptr,
                   .named = behind != nullptr ? presets_of(study.cluster, behind->presets())
                                              : std::vector<NamedPreset>{}});
  if (behind != nullptr) behind->add_to(page);
  if (!study.notes.empty()) {
    page.section("Notes");
    page.list(study.notes);
  }
  page.foot("Scenario: " + study.file + ".");
  return page.html(chart_library());
}

}  // namespace lockstep
