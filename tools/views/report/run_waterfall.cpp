#include "tools/views/report/run_waterfall.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/rl_answer.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_words.hpp"

namespace lockstep {
namespace {

using nlohmann::json;
using Kind = WaterfallPart::Kind;

constexpr int kWaterfallRowPx = 26;
constexpr double kShownShare = 5e-4;  // is printed as 0.1 %
constexpr double kRoomForText = 0.6;  // of the axis, also on a phone

/// Largest first; those too small to be seen become one, where there are several.
void add_losses(std::vector<WaterfallPart>& parts, std::vector<WaterfallPart> losses,
                const char* name_of_rest) {
  std::erase_if(losses, [](const WaterfallPart& part) { return part.share <= 0; });
  std::ranges::stable_sort(losses, std::ranges::greater{}, &WaterfallPart::share);
  const auto small = std::ranges::find_if(
      losses, [](const WaterfallPart& part) { return part.share < kShownShare; });
  if (losses.end() - small >= 2) {
    WaterfallPart rest{small->kind, name_of_rest, {}};
    for (auto part = small; part != losses.end(); ++part) {
      rest.share += part->share;
      rest.sum_of += (part == small ? "" : ", ") + part->name;
    }
    losses.erase(small, losses.end());
    losses.push_back(std::move(rest));
  }
  parts.insert(parts.end(), losses.begin(), losses.end());
}

/// Remedies of losses of wall time, by bucket.
constexpr std::array<std::string_view, kRunBuckets> kRunRemedies{
    "",
    "evicting stragglers sooner, or spare nodes instead of missing replicas",
    "checkpoints that are asynchronous or further apart",
    "checkpoints closer together, or parts that fail less often",
    "shorter time-outs and health checks",
    "automatic diagnosis",
    "quicker start of processes and communicators, or faster storage to read from",
    "more spare nodes, or quicker repair"};

/// "−2.6 %"; what would show as nothing is "< 0.1 %".
std::string share_text(const WaterfallPart& part) {
  const std::string text = page_part(part.share);
  return part.is_loss() && part.share >= kShownShare ? "−" + text : text;
}

const char* colour_of(Kind kind) {
  switch (kind) {
    case Kind::run_loss:
      return "@colour-3";
    case Kind::step_loss:
      return "@colour-1";
    default:
      return "@colour-0";
  }
}

json waterfall_options(std::span<const WaterfallPart> parts) {
  json names = json::array(), bases = json::array(), bars = json::array(), about = json::array();
  double left = 1;
  for (const WaterfallPart& part : parts) {
    if (part.is_loss()) left -= part.share;
    const double base = part.is_loss() ? std::max(0.0, left) : 0;
    const std::string text = share_text(part);
    const bool inside = !part.is_loss() && part.share > kRoomForText;
    names.push_back(part.name);
    about.push_back(part.sum_of.empty() ? part.about : part.sum_of);
    bases.push_back(four_digits(100 * base));
    // There is room for a label left of the bar, unless the bar begins near the axis: on a phone
    // the label is a third of the plot.
    // Where there is room on neither side the bar is long enough to hold it.
    constexpr double kRoomLeft = 0.42, kRoomRight = 0.75;
    const bool held = part.is_loss() && base <= kRoomLeft && base + part.share > kRoomRight;
    bars.push_back({{"value", four_digits(100 * part.share)},
                    {"itemStyle", {{"color", colour_of(part.kind)}}},
                    {"label",
                     {{"show", true},
                      {"fontSize", 11},
                      {"formatter", text},
                      {"color", inside || held ? "@card" : "@soft"},
                      {"position", inside || held     ? "insideLeft"
                                   : base > kRoomLeft ? "left"
                                                      : "right"}}}});
  }
  const json base_series{{"type", "bar"},
                         {"stack", "bars"},
                         {"silent", true},
                         {"itemStyle", {{"color", "transparent"}}},
                         {"tooltip", {{"show", false}}},
                         {"data", bases}};
  const json bar_series{{"type", "bar"},     {"stack", "bars"},   {"name", "share"},
                        {"barMinHeight", 2}, {"barWidth", "72%"}, {"data", bars}};
  return {{"lockstep", {{"rows", names}, {"about", about}}},
          {"grid", plot_grid(4, 4)},
          {"tooltip", {{"formatter", "@part"}, {"confine", true}}},
          {"xAxis",
           {{"type", "value"},
            {"min", 0},
            {"max", 100},
            {"axisLabel", {{"formatter", "{value} %"}, {"hideOverlap", true}}}}},
          {"yAxis",
           {{"type", "category"},
            {"inverse", true},
            {"data", names},
            {"axisLine", {{"show", false}}},
            {"axisLabel", {{"width", 260}, {"overflow", "break"}, {"interval", 0}}}}},
          {"series", {base_series, bar_series}}};
}

/// GPUs that are held beside the job's: none of the wall time that the parts share out.
std::vector<PageCell> spares_row(const CampaignResult& result) {
  const double hours = result.held_gpu_hours() - result.gpu_hours();
  std::vector<PageCell> row{
      PageCell::text(result.fleet ? "Nodes without a place in the job, of lots"
                                  : "Hot spares, beside these"),
      PageCell::text("–"), PageCell::number(page_count(hours), hours)};
  const std::optional<double> price = result.scenario.usd_per_gpu_hour;
  if (price && !result.fleet)
    row.push_back(PageCell::number(page_usd(hours * *price), hours * *price));
  row.push_back(PageCell::text("fewer of them, or warm ones that are in other use"));
  return row;
}

/// Losses with what they take of the GPU-hours, and of the money where a price is known.
PageTable waterfall_table(const CampaignResult& result, std::span<const WaterfallPart> parts) {
  // Of GPUs that are not there yet nobody pays the hours: lots have sums of their own.
  const bool priced = result.scenario.usd_per_gpu_hour && !result.fleet;
  const double price = result.scenario.usd_per_gpu_hour.value_or(0);
  PageTable table{
      .columns = {{.title = "Part"},
                  {.title = "Share",
                   .numeric = true,
                   .about = "of the peak FLOPs of all GPUs over the wall time"},
                  {.title = "GPU-hours",
                   .numeric = true,
                   .about = result.fleet ? "as if all were there from the start" : ""}},
  };
  if (priced) table.columns.push_back({.title = "Rent", .numeric = true});
  table.columns.push_back({.title = "What attacks it in general"});
  for (const WaterfallPart& part : parts) {
    const double sign = part.is_loss() ? -1 : 1;
    const std::string share = share_text(part);
    const double hours = part.share * result.whole_gpu_hours();
    std::vector<PageCell> row{
        {.content =
             part.is_loss() ? with_detail(escaped(part.name), part.sum_of) : strong(part.name)},
        {.content = part.is_loss() ? escaped(share) : strong(share), .sort = sign * part.share},
        PageCell::number(page_count(hours), hours)};
    if (priced) row.push_back(PageCell::number(page_usd(hours * price), hours * price));
    row.push_back(PageCell::text(part.about));
    table.rows.push_back(std::move(row));
  }
  if (result.held_gpu_hours() > result.gpu_hours()) table.rows.push_back(spares_row(result));
  return table;
}

/// Phases of an iteration but the actor's training, whose own step says what it loses. Returns the
/// share of GPU time that training takes.
double add_other_phases(const RlReport& iteration, double healthy,
                        std::vector<WaterfallPart>& losses) {
  const std::vector<double> shares = rl_shares(iteration);
  const auto training = static_cast<std::size_t>(RlBucket::training);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (i == training) continue;
    losses.push_back(
        {Kind::step_loss, std::string(rl_buckets()[i].title), {}, healthy * shares[i]});
  }
  return shares[training];
}

}  // namespace

std::vector<WaterfallPart> run_losses(const CampaignResult& result) {
  const RunSummary& s = result.summary;
  std::vector<WaterfallPart> out;
  const auto add = [&](std::string name, std::string_view remedy, double share) {
    out.push_back({Kind::run_loss, std::move(name), std::string(remedy), share});
  };
  const double wall = s.wall_s.mean > 0 ? s.wall_s.mean : 1;
  for (std::size_t b = 1; b < kRunBuckets; ++b) {
    double left = s.shares[b];
    if (b == static_cast<std::size_t>(RunBucket::degraded)) {
      const auto take = [&](std::string name, std::string_view remedy, double share) {
        const double taken = std::clamp(share, 0.0, left);
        if (taken > 0) add(std::move(name), remedy, taken);
        left -= taken;
      };
      // What is left after machines and site runs as fast as its data come.
      const double missing = s.machines_missing_s / wall, site = s.site_slowed_s / wall;
      take("Machines of lots that are missing", "lots that come sooner, and stay longer", missing);
      take("Limits of the site", "raising the limit that binds, which \"Site\" names", site);
      take("Data that come too slowly", "faster storage, or more CPUs that load data",
           (s.shares[0] + s.shares[b] - missing - site) * (1 - result.plan.data_speed));
      constexpr double kRounding = 1e-9;
      if (left < kRounding && !out.empty()) {
        out.back().share += left;
        left = 0;
      }
    }
    add(std::string(run_bucket_names()[b].words), kRunRemedies[b], left);
  }
  return out;
}

std::vector<WaterfallPart> waterfall(const CampaignResult& result) {
  const RunSummary& s = result.summary;
  std::vector<WaterfallPart> parts{{Kind::whole, "Peak FLOPs × wall time", {}, 1}};
  add_losses(parts, run_losses(result), "All other wall time");
  parts.push_back({Kind::steps, "Healthy steps at full speed", {}, s.shares[0]});
  const StepReport& step = result.step;
  if (step.step_s <= 0) return parts;
  std::vector<WaterfallPart> losses;
  double trains = s.shares[0];
  if (result.plan.iteration) trains *= add_other_phases(*result.plan.iteration, trains, losses);
  WaterfallPart useful{Kind::useful, "Useful model FLOPs", {}};
  const std::string of = result.plan.iteration ? "Training: " : "";
  for (const BucketInfo& info : buckets()) {
    const double share = trains * step.seconds[static_cast<std::size_t>(info.bucket)] / step.step_s;
    if (info.bucket == Bucket::model_flops) {
      useful.share = share;
    } else {
      losses.push_back(
          {Kind::step_loss, of + std::string(info.title), std::string(info.remedy), share});
    }
  }
  add_losses(parts, losses, "All other losses of a step");
  parts.push_back(useful);
  return parts;
}

void add_waterfall(Page& page, const CampaignResult& result) {
  const std::vector<WaterfallPart> parts = waterfall(result);
  std::string lead =
      "All GPUs at their peak for the whole wall time are 100 %. First goes wall time that does "
      "not "
      "advance training";
  lead += result.plan.iteration
              ? ", then each phase of an iteration but the actor's training, then "
                "what that loses."
              : ", then what a healthy step loses.";
  if (parts.back().kind == Kind::useful) {
    lead += fmt::format(
        " What remains are FLOPs that {}, attention counted causally: {}. With "
        "attention counted in full, as most papers do, it is {} (MFU {} × goodput {}).",
        result.plan.iteration ? "the actor's updates need" : "the model needs",
        page_percent(parts.back().share, 1), page_percent(result.mfu * result.summary.shares[0], 1),
        page_percent(result.mfu, 1), telling_percent(result.summary.shares[0]));
  }
  page.section("From peak FLOPs to useful training", lead);
  page.chart({.title = "What becomes of 100 % of the peak",
              .about = {},
              .summary = fmt::format("Waterfall from 100 % of the peak to {} of it.",
                                     page_percent(parts.back().share, 1)),
              .height_px = 40 + kWaterfallRowPx * static_cast<int>(parts.size())},
             waterfall_options(parts));
  page.table(waterfall_table(result, parts));
}

}  // namespace lockstep
