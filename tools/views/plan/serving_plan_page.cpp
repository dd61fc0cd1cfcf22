#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/plan/serving_plan_output.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/empty_columns.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

void add_service_bars(Page& page, const ServingPlanAnswer& a) {
  std::vector<IntervalBar> bars;
  for (std::size_t i = 0; i < a.report.options.size(); ++i) {
    const ServingOption& o = a.report.options[i];
    if (!o.sized.possible) continue;
    const std::string name = option_name(a, o);
    bars.push_back({.name = name,
                    .value = static_cast<double>(o.gpus()),
                    .words = {name, serving_way_words(o.sized.best.pools)},
                    .marked = a.report.choice == i});
  }
  if (bars.empty()) return;
  page.chart({.title = "Least GPUs that keep the objectives, spares included",
              .about = {},
              .summary = "A bar for each machine and way; the table has the same.",
              .height_px = bars_height(bars.size()) + 24},
             interval_bars(bars, "GPUs"));
}

PageTable options_page_table(const ServingPlanAnswer& a) {
  PageTable table{
      .columns = {{.title = "Machine"},
                  {.title = "GPUs", .numeric = true},
                  {.title = "Spare GPUs", .numeric = true, .about = "of whole replicas"},
                  {.title = "TTFT, 99 %", .numeric = true},
                  {.title = "TPOT, 99 %", .numeric = true},
                  {.title = "Busy", .numeric = true, .about = "of each pool"},
                  {.title = "USD per million",
                   .numeric = true,
                   .about = "tokens of answers, spares included"},
                  {.title = "J per token", .numeric = true, .about = "of answers"},
                  {.title = "At the slow end",
                   .about = "the objectives, where steps take what 19 of 20 take at most"}}};
  for (const ServingOption& o : a.report.options) {
    if (!o.sized.possible) {
      std::vector<PageCell> row{{.content = with_detail(escaped(option_name(a, o)),
                                                        "keeps the objectives with no layout")}};
      row.resize(table.columns.size(), PageCell::unknown());
      table.rows.push_back(std::move(row));
      continue;
    }
    const ServingTrial& best = o.sized.best;
    const ServingReport& r = best.report;
    std::string busy;
    for (const ServingPoolReport& pool : r.pools) {
      busy += (busy.empty() ? "" : " / ") +
              page_percent(pool.busy_s / (r.figures.span_s * pool.replicas), 1);
    }
    table.rows.push_back(
        {{.content = with_detail(escaped(option_name(a, o)), serving_way_words(best.pools))},
         PageCell::number(grouped(best.gpus()), best.gpus()),
         PageCell::number(grouped(o.spare_gpus), o.spare_gpus),
         PageCell::number(page_duration(r.figures.ttft_s.p99), r.figures.ttft_s.p99),
         PageCell::number(page_duration(r.figures.tpot_s.p99), r.figures.tpot_s.p99),
         PageCell::text(busy),
         o.usd_per_million
             ? PageCell{.content = with_detail(escaped(significant(*o.usd_per_million)),
                                               serving_billed_words(a, o)),
                        .sort = *o.usd_per_million}
             : PageCell::unknown(),
         r.power ? PageCell::number(significant(r.power->joules_per_output_token),
                                    r.power->joules_per_output_token)
                 : PageCell::unknown(),
         PageCell{.content = with_detail(escaped(slow_end_words(best)), slow_end_misses(best))}});
  }
  drop_empty_columns(table);
  return table;
}

/// Times at the 99 % quantile over the GPUs that were tried, of the choice's layout.
void add_capacity_curve(Page& page, const ServingPlanAnswer& a) {
  if (!a.report.choice) return;
  const ServingOption& o = a.report.options[*a.report.choice];
  if (a.report.curve.size() < 2) return;
  nlohmann::json ttft = nlohmann::json::array(), tpot = nlohmann::json::array();
  for (const ServingTrial& trial : a.report.curve) {
    const ServingFigures& f = trial.report.figures;
    ttft.push_back({trial.gpus(), four_digits(f.ttft_s.p99)});
    tpot.push_back({trial.gpus(), four_digits(1e3 * f.tpot_s.p99)});
  }
  page.section("The capacity curve: " + option_name(a, o),
               "The same layouts with half to twice the replicas; " +
                   fmt::format("{} {} the objectives.", counted(o.sized.best.gpus(), "GPU"),
                               o.sized.best.gpus() == 1 ? "is the least that keeps"
                                                        : "are the least that keep"));
  const ServingObjectives& asked = a.candidate_of(o).base.objectives;
  // What is asked for is a line, where the plan asks for this quantile.
  const auto add = [&](const char* title, const char* unit, const nlohmann::json& points,
                       std::size_t colour, ServedTime time, double unit_s) {
    constexpr std::size_t kNinetyNinth = kLimitedPercents.size() - 1;
    const std::optional<Seconds>& limit =
        asked.quantiles[static_cast<std::size_t>(time) * kLimitedPercents.size() + kNinetyNinth];
    nlohmann::json series =
        nlohmann::json::array({{{"type", "line"},
                                {"name", title},
                                {"lineStyle", {{"color", chart_colour(colour)}}},
                                {"itemStyle", {{"color", chart_colour(colour)}}},
                                {"data", points}}});
    if (limit) {
      const double at = four_digits(limit->base_units() / unit_s);
      series.push_back({{"type", "line"},
                        {"name", "objective"},
                        {"showSymbol", false},
                        {"lineStyle", {{"width", 1.5}, {"type", "dashed"}, {"color", "@soft"}}},
                        {"itemStyle", {{"color", "@soft"}}},
                        {"data", {{0, at}, {points.back()[0], at}}}});
    }
    page.chart(
        {.title = title,
         .about = {},
         .summary = fmt::format("{} over the number of GPUs.", title),
         .height_px = 240},
        {{"grid", plot_grid(40, 24)},
         {"legend", {{"top", 0}, {"left", 0}}},
         {"tooltip", {{"trigger", "axis"}}},
         {"xAxis",
          {{"type", "value"}, {"name", "GPUs"}, {"nameLocation", "middle"}, {"nameGap", 26}}},
         {"yAxis",
          {{"type", "value"},
           {"min", 0},
           {"axisLabel", {{"formatter", fmt::format("{{value}} {}", unit)}}}}},
         {"series", std::move(series)}});
  };
  page.begin_row();
  add("Time to the first token, 99 %", "s", ttft, 0, ServedTime::ttft, 1);
  add("Time per token, 99 %", "ms", tpot, 1, ServedTime::tpot, 1e-3);
  page.end_row();
}

void add_crossover_map(Page& page, const ServingPlanAnswer& a) {
  if (a.report.map.empty()) return;
  PageTable table{.columns = {{.title = "Requests/s", .numeric = true},
                              {.title = "Prompt", .numeric = true, .about = "tokens"},
                              {.title = "Answer", .numeric = true, .about = "tokens"},
                              {.title = "One pool", .numeric = true, .about = "GPUs"},
                              {.title = "Two pools", .numeric = true, .about = "GPUs"},
                              {.title = "Two over one", .numeric = true}}};
  const auto count = [](int gpus) {
    return gpus > 0 ? PageCell::number(grouped(gpus), gpus) : PageCell::unknown();
  };
  for (const ServingMapCell& cell : a.report.map) {
    const double ratio = cell.one_pool > 0 ? 1.0 * cell.two_pools / cell.one_pool : 0;
    table.rows.push_back(
        {PageCell::number(significant(cell.rate), cell.rate),
         PageCell::number(grouped(cell.input), cell.input),
         PageCell::number(grouped(cell.output), cell.output), count(cell.one_pool),
         count(cell.two_pools),
         ratio > 0 ? PageCell::number(fmt::format("{:.2f}", ratio), ratio) : PageCell::unknown()});
  }
  page.section(
      "One pool or two",
      fmt::format("{}: the least GPUs of each for drawn loads of these lengths and rates; "
                  "two pools pay where the last column is below 1. What is chosen above is for "
                  "the plan's own load.",
                  a.mapped_candidate().name));
  page.table(table);
}

std::vector<PageFigure> chosen_service_figures(const ServingPlanAnswer& a, std::size_t choice) {
  const ServingOption& o = a.report.options[choice];
  const ServingFigures& f = o.sized.best.report.figures;
  const std::string path = fmt::format("options.{}.", choice);
  std::vector<PageFigure> out{
      {.value = grouped(o.sized.best.gpus()), .label = "GPUs at least", .field = path + "gpus"},
      {.value = page_duration(f.ttft_s.p99),
       .label = "to the first token, 99 %",
       .field = path + "ttft_p99_s"},
      {.value = page_duration(f.tpot_s.p99),
       .label = "per token, 99 %",
       .field = path + "tpot_p99_s"}};
  if (o.spare_gpus > 0) {
    out.push_back(
        {.value = grouped(o.spare_gpus), .label = "GPUs for spares", .field = path + "spare_gpus"});
  }
  if (o.usd_per_million) {
    out.push_back({.value = significant(*o.usd_per_million) + " USD",
                   .label = "per million tokens of answers",
                   .field = path + "usd_per_million_output_tokens"});
  }
  return out;
}

AnswerBasis serving_plan_basis(const ServingPlanAnswer& a, const WrittenScenario& written,
                               const PresetStore* presets) {
  AnswerBasis basis{
      .written = written, .assumptions = serving_plan_assumptions(a), .presets = presets};
  for (const ServingCandidate& candidate : a.spec.candidates) {
    const Cluster& cluster = candidate.base.cluster;
    for (const NamedWords& line : cluster_words(cluster)) {
      basis.simulated.push_back({candidate.name + ": " + line.name, line.words});
    }
    if (presets == nullptr) continue;
    const std::vector<NamedPreset> named = presets_of(cluster, *presets);
    basis.named.insert(basis.named.end(), named.begin(), named.end());
  }
  return basis;
}

}  // namespace

std::string serving_plan_page(const ServingPlanAnswer& a, const WrittenScenario& written,
                              const Behind* behind) {
  const ServingSpec& first = a.spec.candidates.front().base;
  Page page("Plan", serving_plan_title(a));
  if (behind != nullptr) behind->open_figures(page);
  if (!a.spec.about.empty()) page.about(a.spec.about);
  const std::string words = serving_recommendation(a);
  const std::size_t told = std::min(words.find(": "), words.size());
  page.headline(strong(words.substr(0, told)) + escaped(words.substr(told)));
  if (a.report.choice) page.figures(chosen_service_figures(a, *a.report.choice));
  const std::string judged = serving_judged_words(a);
  page.section(
      "Machines",
      fmt::format("Load: {}. Objectives: {}.{}{} TTFT is the time to the first token, TPOT "
                  "that of each token behind it, TP the GPUs that share a replica.",
                  first.load, serving_objectives_words(a), judged.empty() ? "" : " ", judged));
  add_service_bars(page, a);
  page.table(options_page_table(a));
  add_capacity_curve(page, a);
  add_crossover_map(page, a);
  add_basis(page, serving_plan_basis(a, written, behind != nullptr ? &behind->presets() : nullptr));
  if (behind != nullptr) behind->add_to(page);
  page.foot(fmt::format("Plan: {}. {} simulations.", a.spec.file, grouped(a.report.trials)));
  return page.html(chart_library());
}

}  // namespace lockstep
