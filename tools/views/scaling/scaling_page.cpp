#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/scaling/scaling_table.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

std::vector<const ScalingPoint*> possible(const std::vector<ScalingPoint>& points) {
  std::vector<const ScalingPoint*> out;
  for (const ScalingPoint& point : points) {
    if (point.problem.empty()) out.push_back(&point);
  }
  return out;
}

/// Where a token's GPU time goes at each size: what is left of the first point's speed, and what
/// took the rest.
void add_loss_chart(Page& page, const std::vector<const ScalingPoint*>& points) {
  std::vector<std::string> names;
  BarPart kept{.name = "efficiency", .colour = "@accent", .values = {}};
  for (const ScalingPoint* point : points) {
    names.push_back(counted(point->gpus, "GPU"));
    kept.values.push_back(rounded_percent(point->efficiency));
  }
  std::vector<BarPart> parts{kept};
  for (std::size_t b = 0; b < kBuckets; ++b) {
    BarPart part{.name = std::string(buckets()[b].title),
                 .colour = chart_colour(parts.size()),
                 .values = {}};
    double most = 0;
    for (const ScalingPoint* point : points) {
      most = std::max(most, point->lost[b]);
      part.values.push_back(rounded_percent(std::max(0.0, point->lost[b])));
    }
    constexpr double kNoticed = 0.0005;
    if (most >= kNoticed) parts.push_back(part);
  }
  page.chart({.title = "What is left, and what takes the rest",
              .about = "Tokens a second and GPU, over those of the first size.",
              .summary = "Bars of efficiency by the number of GPUs.",
              .height_px = bars_height(names.size()) + 40},
             stacked_bars(names, parts, "%"));
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
  std::vector<std::string> problems;
  for (const ScalingPoint& p : points) {
    if (!p.problem.empty()) {
      problems.push_back(fmt::format("{}: {}", counted(p.gpus, "GPU"), p.problem));
      continue;
    }
    const double trillion_j = p.joules_per_token.value_or(0) * 1e12;
    table.rows.push_back(
        {PageCell::number(grouped(p.gpus), p.gpus),
         PageCell::number(page_count(p.h100_equivalents), p.h100_equivalents),
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
  if (!table.rows.empty()) page.table(table);
  if (!problems.empty()) page.list(problems);
}

}  // namespace

std::string scaling_page(const std::string& file, const Scaling& scaling,
                         const AnswerBasis& basis) {
  Page page("Scaling report", file);
  const auto add = [&](const char* title, const char* lead,
                       const std::vector<ScalingPoint>& points) {
    page.section(title, lead);
    const std::vector<const ScalingPoint*> shown = possible(points);
    if (!shown.empty()) add_loss_chart(page, shown);
    add_scaling_table(page, points);
  };
  const std::vector<const ScalingPoint*> weak = possible(scaling.weak);
  if (!weak.empty()) {
    page.headline(escaped("On ") + strong(counted(weak.back()->gpus, "GPU")) +
                  escaped(" each does ") + strong(page_percent(weak.back()->efficiency, 1)) +
                  escaped(fmt::format(" of what it does on {}, with as many sequences a replica.",
                                      grouped(weak.front()->gpus))) +
                  limit_sentence(exceeded_sizes(scaling.weak)));
  }
  add("Strong scaling", "The same batch on more GPUs.", scaling.strong);
  add("Weak scaling", "As many sequences a replica on more GPUs.", scaling.weak);
  add_basis(page, basis);
  page.foot(
      "What a GPU does is its tokens a second. Losses are what a token takes more of each "
      "kind of GPU time than at the first size; they add up to what is missing.");
  return page.html(chart_library());
}

}  // namespace lockstep
