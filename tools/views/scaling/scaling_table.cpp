#include "tools/views/scaling/scaling_table.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/answer/site_limit.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {
namespace {

std::string percent_of(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string fine_percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

bool any_has(const std::vector<ScalingPoint>& points,
             std::optional<double> ScalingPoint::* member) {
  return std::ranges::any_of(points,
                             [member](const ScalingPoint& p) { return (p.*member).has_value(); });
}

std::string compact_or_dash(const std::optional<double>& value, double times) {
  return value ? compact(*value * times) : "-";
}

/// What the columns of a run are of; empty: none ran.
std::string run_words(const std::vector<ScalingPoint>& points) {
  const auto ran =
      std::ranges::find_if(points, [](const ScalingPoint& p) { return p.goodput.has_value(); });
  if (ran == points.end()) return {};
  std::string out = "Money and energy for each T tokens are of all of the run";
  if (!ran->usd_of.empty()) out += "; USD of it: " + ran->usd_of;
  return "  " + wrap(out + ".", kTextColumns, 2, 2) + "\n";
}

/// Buckets that take or give half a per cent anywhere.
std::vector<std::size_t> shown_buckets(const std::vector<ScalingPoint>& points) {
  constexpr double kNoticed = 0.0005;
  std::vector<std::size_t> out;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    if (std::ranges::any_of(
            points, [b](const ScalingPoint& p) { return std::abs(p.lost[b]) >= kNoticed; })) {
      out.push_back(b);
    }
  }
  return out;
}

std::string series_table(const std::vector<ScalingPoint>& points, const TextStyle& style) {
  const bool usd = any_has(points, &ScalingPoint::usd_per_trillion_tokens);
  const bool joules = any_has(points, &ScalingPoint::joules_per_token);
  std::vector<TextTable::Column> columns{{"GPUs"},     {"H100s"}, {"sequences"}, {"step"},
                                         {"tokens/s"}, {"MFU"},   {"efficiency"}};
  if (usd) columns.push_back({"USD/T tokens"});
  if (joules) columns.push_back({"MWh/T tokens"});
  const bool runs = any_has(points, &ScalingPoint::goodput);
  const bool paid = any_has(points, &ScalingPoint::usd);
  if (runs) columns.insert(columns.end(), {{"goodput"}, {"days"}, {"tokens"}});
  if (paid) columns.push_back({"USD of it"});
  TextTable table(columns);
  std::string problems;
  for (const ScalingPoint& p : points) {
    if (!p.problem.empty()) {
      problems +=
          "  " +
          wrap(fmt::format("{}: {}", counted(p.gpus, "GPU"), p.problem), kTextColumns, 4, 2) + "\n";
      continue;
    }
    std::vector<std::string> cells{grouped(p.gpus),         compact(p.h100_equivalents),
                                   grouped(p.sequences),    duration_text(p.step_s),
                                   compact(p.tokens_per_s), percent_of(p.mfu),
                                   percent_of(p.efficiency)};
    if (usd) cells.push_back(compact_or_dash(p.usd_per_trillion_tokens, 1));
    // Joules a token are MJ a million; 3.6e9 J are a MWh.
    if (joules) cells.push_back(compact_or_dash(p.joules_per_token, 1e12 / 3.6e9));
    if (runs) {
      cells.insert(cells.end(), {fine_percent(*p.goodput), significant(*p.done_s / 86'400),
                                 compact(*p.tokens_done)});
    }
    if (paid) cells.push_back(compact_or_dash(p.usd, 1));
    table.add(cells);
  }
  return table.text(style) + problems + run_words(points);
}

std::string lost_table(const std::vector<ScalingPoint>& points, const TextStyle& style) {
  const std::vector<std::size_t> shown = shown_buckets(points);
  if (shown.empty()) return {};
  std::vector<TextTable::Column> columns{{"lost to", TextTable::Align::left}};
  for (const ScalingPoint& p : points) {
    if (p.problem.empty()) columns.push_back({grouped(p.gpus)});
  }
  TextTable table(columns);
  for (const std::size_t b : shown) {
    std::vector<std::string> cells{std::string(buckets()[b].title)};
    for (const ScalingPoint& p : points) {
      if (p.problem.empty()) cells.push_back(percent_of(p.lost[b]));
    }
    table.add(cells);
  }
  return table.text(style);
}

}  // namespace

[[noreturn]] void fail_sizes(std::string_view found) {
  throw UsageError(
      fmt::format("--scaling: found {}; allowed: whole numbers of GPUs that rise, 64,128,256",
                  in_quotes(found)));
}

std::string exceeded_sizes(const std::vector<ScalingPoint>& points) {
  LimitTally limits;
  for (const ScalingPoint& p : points) {
    if (p.problem.empty()) limits.add(p.site_excess_w, p.site_limit_w);
  }
  return limits.warning("sizes");
}

std::string scaling_table(const Scaling& scaling, const TextStyle& style) {
  const auto section = [&](const char* title, const std::vector<ScalingPoint>& points) {
    const std::string lost = lost_table(points, style), over = exceeded_sizes(points);
    return style.bold(title) + "\n" + (over.empty() ? "" : over + ".\n") +
           series_table(points, style) + (lost.empty() ? "" : "\n" + lost);
  };
  std::string out = section("Strong scaling: the same batch", scaling.strong) + "\n" +
                    section("Weak scaling: as many sequences a replica", scaling.weak);
  if (!scaling.assumptions.empty()) out += "\nAssumed\n";
  for (const std::string& assumed : scaling.assumptions) {
    out += "  - " + wrap(assumed, kTextColumns, 4, 4) + "\n";
  }
  return out;
}

CsvText scaling_csv(const Scaling& scaling) {
  std::vector<std::string> heading{"scaling",
                                   "gpus",
                                   "nodes",
                                   "data",
                                   "sequences",
                                   "step_s",
                                   "mfu",
                                   "tokens_per_s",
                                   "efficiency",
                                   "h100_equivalents",
                                   "usd_per_trillion_tokens",
                                   "joules_per_token",
                                   "goodput",
                                   "done_s",
                                   "tokens_done",
                                   "usd",
                                   "usd_of"};
  for (const BucketInfo& bucket : buckets()) heading.push_back("lost_" + std::string(bucket.name));
  heading.emplace_back("problem");
  CsvText out = csv_line(heading);
  const auto add = [&](const char* name, const ScalingPoint& p) {
    std::vector<std::string> cells{name, std::to_string(p.gpus)};
    const auto number = [&](double value) {
      cells.push_back(p.problem.empty() ? number_text(value) : "");
    };
    for (const int count : {p.nodes, p.data, p.sequences}) number(count);
    for (const double value : {p.step_s, p.mfu, p.tokens_per_s, p.efficiency, p.h100_equivalents}) {
      number(value);
    }
    for (const auto& value : {p.usd_per_trillion_tokens, p.joules_per_token, p.goodput, p.done_s,
                              p.tokens_done, p.usd}) {
      cells.push_back(value ? number_text(*value) : "");
    }
    cells.push_back(p.usd_of);
    for (const double lost : p.lost) number(lost);
    cells.push_back(p.problem);
    out += csv_line(cells);
  };
  for (const ScalingPoint& p : scaling.strong) add("strong", p);
  for (const ScalingPoint& p : scaling.weak) add("weak", p);
  return out;
}

}  // namespace lockstep
