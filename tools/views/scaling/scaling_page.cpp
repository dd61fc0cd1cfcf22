#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/scaling/scaling_table.hpp"

namespace lockstep {
namespace {

std::vector<const ScalingPoint*> possible(const std::vector<ScalingPoint>& points) {
  std::vector<const ScalingPoint*> out;
  for (const ScalingPoint& point : points) {
    if (point.problem.empty()) out.push_back(&point);
  }
  return out;
}

constexpr double kShownLoss = 0.0005;

/// The losses that have a colour, the same in both charts: those of which there is most at any size
/// either way, as many as there are colours beside that of what is left. All others share one.
std::vector<std::size_t> coloured_losses(const Scaling& scaling) {
  BucketTimes most{};
  for (const std::vector<ScalingPoint>* points : {&scaling.strong, &scaling.weak}) {
    for (const ScalingPoint* point : possible(*points)) {
      for (std::size_t b = 0; b < kBuckets; ++b) most[b] = std::max(most[b], point->lost[b]);
    }
  }
  std::vector<std::size_t> out;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    if (most[b] >= kShownLoss) out.push_back(b);
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, [&](std::size_t b) { return most[b]; });
  out.resize(std::min(out.size(), kPageColours - 1));
  std::ranges::sort(out);
  return out;
}

/// What prints as 0.0 % at all sizes has neither a bar nor a row.
constexpr double kTabled = 5e-4;

/// "81.6 %" of the last size over the first.
Html last_efficiency(const std::vector<const ScalingPoint*>& points) {
  return strong(page_percent(points.back()->efficiency, 1));
}

/// Where a token's GPU time goes at each size: what is left of the first point's speed, and what
/// took the rest.
void add_loss_chart(Page& page, const std::vector<const ScalingPoint*>& points,
                    const std::vector<std::size_t>& coloured) {
  std::vector<std::string> names;
  BarPart kept{.name = "efficiency", .colour = chart_colour(0), .values = {}};
  BarPart others{.name = "all other losses", .colour = "@others", .values = {}};
  double largest = 0;
  for (const ScalingPoint* point : points) {
    names.push_back(counted(point->gpus, "GPU"));
    kept.values.push_back(rounded_percent(point->efficiency));
    largest = std::max(largest, point->efficiency);
    double rest = 0;
    for (std::size_t b = 0; b < kBuckets; ++b) {
      if (std::ranges::find(coloured, b) == coloured.end()) rest += std::max(0.0, point->lost[b]);
    }
    others.values.push_back(rounded_percent(rest));
  }
  std::vector<BarPart> parts{kept};
  for (std::size_t c = 0; c < coloured.size(); ++c) {
    BarPart part{.name = std::string(buckets()[coloured[c]].title),
                 .colour = chart_colour(c + 1),
                 .values = {}};
    for (const ScalingPoint* point : points) {
      part.values.push_back(rounded_percent(std::max(0.0, point->lost[coloured[c]])));
    }
    if (std::ranges::max(part.values) >= 100 * kTabled) parts.push_back(std::move(part));
  }
  if (std::ranges::max(others.values) >= 100 * kTabled) parts.push_back(std::move(others));
  nlohmann::json options = stacked_bars(names, parts, "%");
  if (largest <= 1) options["xAxis"]["max"] = 100;
  page.chart({.title = "What is left, and what takes the rest",
              .about = "Tokens a second and GPU, over those of the first size.",
              .summary = "Bars of efficiency by the number of GPUs.",
              .height_px = bars_height(names.size()) + 40},
             options);
}

/// "rented, with storage".
std::string money_is_of(const std::vector<ScalingPoint>& points) {
  const auto paid =
      std::ranges::find_if(points, [](const ScalingPoint& p) { return !p.usd_of.empty(); });
  return paid == points.end() ? std::string() : paid->usd_of;
}

/// Of a run of weeks on each size. A row for each point that can be.
void add_run_columns(const std::vector<ScalingPoint>& points, PageTable& table) {
  const auto ran = [](const ScalingPoint& p) { return p.goodput.has_value(); };
  if (std::ranges::none_of(points, ran)) return;
  table.columns.insert(
      table.columns.end(),
      {{.title = "Goodput", .numeric = true},
       {.title = "Days", .numeric = true},
       {.title = "Tokens trained", .numeric = true},
       {.title = "Money of the run", .numeric = true, .about = money_is_of(points)}});
  std::size_t row = 0;
  for (const ScalingPoint& p : points) {
    if (!p.problem.empty()) continue;
    std::vector<PageCell>& cells = table.rows[row++];
    const double days = p.done_s.value_or(0) / 86'400;
    cells.insert(cells.end(),
                 {PageCell::number(page_percent(*p.goodput, 2), *p.goodput),
                  PageCell::number(significant(days), days),
                  PageCell::number(page_count(*p.tokens_done), *p.tokens_done),
                  p.usd ? PageCell::number(page_usd(*p.usd), *p.usd) : PageCell::unknown()});
  }
}

void add_scaling_table(Page& page, const std::vector<ScalingPoint>& points) {
  PageTable table{.columns = {{.title = "GPUs", .numeric = true},
                              {.title = "H100 equivalents",
                               .numeric = true,
                               .about = "dense 16-bit peak over that of an H100 SXM"},
                              {.title = "Sequences", .numeric = true},
                              {.title = "Step", .numeric = true},
                              {.title = "Tokens/s", .numeric = true},
                              {.title = "MFU", .numeric = true},
                              {.title = "Efficiency", .numeric = true},
                              {.title = "Per trillion tokens", .numeric = true},
                              {.title = "Energy per trillion", .numeric = true}},
                  .rows = {}};
  constexpr std::ptrdiff_t kPerTrillion = 7;
  const bool runs =
      std::ranges::any_of(points, [](const ScalingPoint& p) { return p.goodput.has_value(); });
  for (PageColumn& column : std::span(table.columns).subspan(kPerTrillion)) {
    column.about = runs ? "of all of the run" : "of a healthy step";
  }
  std::vector<std::string> problems;
  for (const ScalingPoint& p : points) {
    if (!p.problem.empty()) {
      problems.push_back(fmt::format("{}: {}", counted(p.gpus, "GPU"), p.problem));
      continue;
    }
    const double trillion_j = p.joules_per_token.value_or(0) * 1e12;
    table.rows.push_back(
        {PageCell::number(grouped(p.gpus), p.gpus),
         PageCell::number(grouped(p.h100_equivalents), p.h100_equivalents),
         PageCell::number(grouped(p.sequences), p.sequences),
         PageCell::number(page_duration(p.step_s), p.step_s),
         PageCell::number(page_count(p.tokens_per_s), p.tokens_per_s),
         PageCell::number(page_percent(p.mfu, 1), p.mfu),
         PageCell::number(page_percent(p.efficiency, 1), p.efficiency),
         p.usd_per_trillion_tokens
             ? PageCell::number(page_usd(*p.usd_per_trillion_tokens), *p.usd_per_trillion_tokens)
             : PageCell::unknown(),
         p.joules_per_token ? PageCell::number(page_energy(trillion_j), trillion_j)
                            : PageCell::unknown()});
  }
  const bool counts_energy = std::ranges::any_of(
      points, [](const ScalingPoint& p) { return p.joules_per_token.has_value(); });
  if (!counts_energy) {
    table.columns.pop_back();
    for (std::vector<PageCell>& row : table.rows) row.pop_back();
  }
  add_run_columns(points, table);
  if (!table.rows.empty()) page.table(table);
  if (!problems.empty()) page.list(problems);
}

/// What takes the rest at each size, kind by kind: the chart's bars in numbers.
void add_lost_table(Page& page, const std::vector<const ScalingPoint*>& points) {
  PageTable table{.columns = {{.title = "Lost to"}}, .rows = {}};
  for (const ScalingPoint* p : points) {
    table.columns.push_back({.title = counted(p->gpus, "GPU"), .numeric = true});
  }
  for (std::size_t b = 0; b < kBuckets; ++b) {
    const auto lost = [b](const ScalingPoint* p) { return std::abs(p->lost[b]) >= kTabled; };
    if (std::ranges::none_of(points, lost)) continue;
    std::vector<PageCell> row{PageCell::text(std::string(buckets()[b].title))};
    for (const ScalingPoint* p : points) {
      row.push_back(PageCell::number(page_percent(p->lost[b], 1), p->lost[b]));
    }
    table.rows.push_back(std::move(row));
  }
  std::vector<PageCell> rest{PageCell::text("All other losses")};
  bool tells = false;
  for (const ScalingPoint* p : points) {
    double others = 0;
    for (std::size_t b = 0; b < kBuckets; ++b) {
      const auto lost = [b](const ScalingPoint* each) {
        return std::abs(each->lost[b]) >= kTabled;
      };
      if (std::ranges::none_of(points, lost)) others += p->lost[b];
    }
    tells = tells || std::abs(others) >= kTabled;
    rest.push_back(PageCell::number(page_percent(others, 1), others));
  }
  if (tells) table.rows.push_back(std::move(rest));
  if (!table.rows.empty()) page.table(table);
}

/// What each GPU still does at the largest size, both with the same batch and with a batch that
/// grows: the two ends of what can be asked.
Html scaling_headline(const Scaling& scaling) {
  const std::vector<const ScalingPoint*> strongly = possible(scaling.strong);
  const std::vector<const ScalingPoint*> weakly = possible(scaling.weak);
  Html out;
  const auto add = [&](const std::vector<const ScalingPoint*>& points, std::string_view batch) {
    if (points.size() < 2) return;
    if (!out.empty()) out += escaped(" ");
    out += escaped("On ") + strong(counted(points.back()->gpus, "GPU")) + escaped(" each does ") +
           last_efficiency(points) +
           escaped(fmt::format(" of what it does on {} {}.", grouped(points.front()->gpus), batch));
  };
  add(strongly, "with the same batch (strong scaling)");
  add(weakly, "with as many sequences a replica (weak scaling)");
  if (strongly.empty() && weakly.empty()) return escaped("None of these sizes can be simulated.");
  if (out.empty()) {
    out = escaped("Only one of these sizes can be simulated: there is nothing to compare.");
  }
  return out + limit_sentence(exceeded_sizes(weakly.empty() ? scaling.strong : scaling.weak));
}

/// "llama3_405b on 2,048 to 16,384 GPUs".
std::string scaling_title(const std::string& file, const Scaling& scaling,
                          const AnswerBasis& basis) {
  const auto model = std::ranges::find(basis.simulated, "Model", &NamedWords::name);
  if (model == basis.simulated.end() || scaling.weak.empty()) return file;
  return fmt::format("{} on {} to {} GPUs", model->words, grouped(scaling.weak.front().gpus),
                     grouped(scaling.weak.back().gpus));
}

}  // namespace

std::string scaling_page(const std::string& file, const Scaling& scaling,
                         const AnswerBasis& basis) {
  Page page("Scaling report", scaling_title(file, scaling, basis));
  const std::vector<std::size_t> coloured = coloured_losses(scaling);
  const auto add = [&](const char* title, const char* lead,
                       const std::vector<ScalingPoint>& points) {
    page.section(title, lead);
    const std::vector<const ScalingPoint*> shown = possible(points);
    if (shown.size() > 1) add_loss_chart(page, shown, coloured);
    add_scaling_table(page, points);
    if (shown.size() > 1) add_lost_table(page, shown);
  };
  page.headline(scaling_headline(scaling));
  add("Strong scaling", "The same batch on more GPUs.", scaling.strong);
  add("Weak scaling", "As many sequences a replica on more GPUs.", scaling.weak);
  // The sizes are other ones: those of the tables.
  AnswerBasis shown = basis;
  for (NamedWords& each : shown.simulated) {
    if (each.name == "Nodes" || each.name == "Batch") each.name += " of the scenario";
  }
  add_basis(page, shown);
  page.foot("Scenario: " + file + ".");
  page.foot(
      "What a GPU does is its tokens a second. Losses are what a token takes more of each "
      "kind of GPU time than at the first size; they add up to what is missing.");
  return page.html(chart_library());
}

}  // namespace lockstep
