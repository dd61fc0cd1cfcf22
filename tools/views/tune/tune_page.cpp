#include "tools/views/tune/tune_page.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/scenario/capabilities.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_words.hpp"
#include "tools/views/sweep/setting_titles.hpp"

namespace lockstep {
namespace {

constexpr double kGpuHour = 3600;

/// A layout of the page: one of the best, or that of the scenario itself.
struct ShownLayout {
  const TunedLayout* layout;
  const PredictionInterval* interval;
  std::string name;
  bool own = false;
};

std::vector<ShownLayout> shown_layouts(const TuneStudy& study) {
  std::vector<ShownLayout> out;
  for (std::size_t i = 0; i < study.result.best.size(); ++i) {
    const TunedLayout& layout = study.result.best[i];
    out.push_back({&layout, &study.intervals[i],
                   fmt::format("{}. {}", i + 1, layout_words(layout.scenario.job))});
  }
  if (study.result.own) {
    out.push_back({&*study.result.own, &*study.own_interval,
                   "own: " + layout_words(study.result.own->scenario.job), true});
  }
  return out;
}

double gib_of(Bytes bytes) { return bytes / gibibytes(1); }

/// USD of a step, or of the whole training where its tokens are known; nothing without a price.
std::optional<double> money_of(const TuneStudy& study, const TunedLayout& layout) {
  const Scenario& base = study.base;
  if (!base.usd_per_gpu_hour) return std::nullopt;
  const double step = layout.step_s * base.gpus() / kGpuHour * *base.usd_per_gpu_hour;
  if (!base.training_tokens) return step;
  const Batch& batch = layout.scenario.job.batch;
  return step * *base.training_tokens / (static_cast<double>(batch.sequences) * batch.tokens);
}

std::string range_of_step(const ShownLayout& shown) {
  return fmt::format("{} to {}", page_duration(shown.layout->step_s * shown.interval->low),
                     page_duration(shown.layout->step_s * shown.interval->high));
}

std::vector<std::string> layout_lines(const TuneStudy& study, const ShownLayout& shown) {
  const TunedLayout& l = *shown.layout;
  std::vector<std::string> lines{
      shown.name, fmt::format("step {}, {}", page_duration(l.step_s), range_of_step(shown)),
      fmt::format("MFU {}, memory {:.1f} of {:.1f} GiB", page_percent(l.mfu, 1),
                  gib_of(l.peak.needed()), gib_of(l.usable))};
  if (const auto usd = money_of(study, l)) lines.push_back(page_usd(*usd));
  if (l.ties) lines.emplace_back("as good as the first: within 1 %");
  return lines;
}

/// By which rule the layouts stand in their order.
std::string order_words(const TuneStudy& study) {
  const std::vector<TunedLayout>& best = study.result.best;
  const bool faster = std::ranges::any_of(
      best, [&](const TunedLayout& each) { return each.step_s < best.front().step_s; });
  if (faster && !best.front().ties) {
    return fmt::format(
        "The first is the {} of those within 1 % of the fastest that surely fits in memory, which "
        "faster ones may not; the others follow by step time.",
        study.result.chosen_as());
  }
  return faster ? fmt::format(
                      "The first is the {} of those within 1 % of the fastest, which count as "
                      "equally fast; the others follow by step time.",
                      study.result.chosen_as())
                : "By step time, the fastest first.";
}

void add_step_bars(Page& page, const TuneStudy& study, const std::vector<ShownLayout>& shown) {
  const AxisUnit unit = time_unit(shown.front().layout->step_s);
  std::vector<IntervalBar> bars;
  for (const ShownLayout& each : shown) {
    const double step = each.layout->step_s / unit.size;
    bars.push_back({.name = each.name,
                    .value = step,
                    .low = step * each.interval->low,
                    .high = step * each.interval->high,
                    .words = layout_lines(study, each),
                    .marked = each.own});
  }
  page.chart({.title = "Step time of the best layouts",
              .about = fmt::format(
                  "{} Whiskers: the 90 % interval of each by itself, for the first from {}. "
                  "Errors of two layouts of one job go together, so that their order is "
                  "surer than either.",
                  order_words(study), words_of(study.intervals.front())),
              .summary = fmt::format("Bars of {}; the table has the same.",
                                     counted(static_cast<double>(bars.size()), "layout")),
              .height_px = bars_height(bars.size()) + 24},
             interval_bars(bars, unit.name));
}

void add_fronts(Page& page, const TuneStudy& study, const std::vector<ShownLayout>& shown) {
  const AxisUnit unit = time_unit(shown.front().layout->step_s);
  std::vector<ChartDot> dots;
  std::vector<double> step, memory;
  std::vector<std::string> names;
  for (const ShownLayout& each : shown) {
    names.push_back(each.name);
    step.push_back(each.layout->step_s / unit.size);
    memory.push_back(gib_of(each.layout->peak.needed()));
    dots.push_back({.x = step.back(),
                    .y = memory.back(),
                    .words = layout_lines(study, each),
                    .colour = each.own            ? 2U
                              : each.layout->ties ? 0U
                                                  : 1U,
                    .marked = each.own});
  }
  std::vector<ChartDot> front;
  const std::vector<std::size_t> best = front_of(step, memory);
  for (const std::size_t i : best) front.push_back(dots[i]);
  const std::vector<std::string> groups{"ties with the fastest", "slower", "the scenario's own"};
  const bool money = money_of(study, *shown.front().layout).has_value();
  page.section(
      money ? "Time, memory and money" : "Time and memory",
      front.size() > 1
          ? "On the dashed front are layouts of which no other is both faster and smaller."
          : fmt::format("{} is both the fastest and the smallest: there is nothing to trade.",
                        names[best.front()]));
  if (money) page.begin_row();
  page.chart(
      {.title = "Step time and memory",
       .about = "Right: a step. Up: what the fullest GPU needs. The axes need not begin at 0.",
       .summary = "A dot for each layout.",
       .height_px = 340},
      dots_chart(dots, groups, {.unit = unit.name}, {.unit = "GiB"}, front));
  if (!money) return;
  double most = 0;
  for (const ShownLayout& each : shown) most = std::max(most, *money_of(study, *each.layout));
  const AxisUnit price = count_unit(most);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    dots[i].x = *money_of(study, *shown[i].layout) / price.size;
    step[i] = dots[i].x;
  }
  front.clear();
  for (const std::size_t i : front_of(step, memory)) front.push_back(dots[i]);
  page.chart({.title = "Money and memory",
              .about = fmt::format("Right: {}. Up: memory. The axes need not begin at 0.",
                                   study.base.training_tokens ? "the whole training" : "a step"),
              .summary = "A dot for each layout.",
              .height_px = 340},
             dots_chart(dots, groups, {.unit = price.name + " USD"}, {.unit = "GiB"}, front));
  page.end_row();
}

void add_time_parts(Page& page, const std::vector<ShownLayout>& shown) {
  std::vector<std::string> names;
  for (const ShownLayout& each : shown) names.push_back(each.name);
  std::vector<BarPart> parts;
  BarPart rest{.name = "all other",
               .colour = chart_colour(kPageColours),
               .values = std::vector<double>(shown.size())};
  for (const BucketInfo& info : buckets()) {
    BarPart part{
        .name = std::string(info.title), .colour = chart_colour(parts.size()), .values = {}};
    double most = 0;
    for (const ShownLayout& each : shown) {
      const double share =
          each.layout->seconds[static_cast<std::size_t>(info.bucket)] / each.layout->step_s;
      part.values.push_back(100 * share);
      most = std::max(most, share);
    }
    constexpr double kSeen = 0.002;
    if (most >= kSeen && parts.size() < kPageColours) {
      parts.push_back(std::move(part));
    } else {
      for (std::size_t i = 0; i < rest.values.size(); ++i) rest.values[i] += part.values[i];
    }
  }
  if (std::ranges::any_of(rest.values, [](double share) { return share > 0; })) {
    parts.push_back(std::move(rest));
  }
  nlohmann::json options = stacked_bars(names, parts, "%");
  options["xAxis"]["max"] = 100;  // rounded parts may add up to a little more
  page.section("Where each one's time goes", "Shares of its own step, mean over all GPUs.");
  page.chart({.title = "Parts of the step",
              .about = {},
              .summary = "Stacked bars of the parts of a step, one for each layout.",
              .height_px = bars_height(names.size()) + 40},
             options);
}

/// "ties with the fastest, close"; nothing for one that is neither.
std::string standing(const ShownLayout& shown) {
  const bool ties = shown.layout->ties && !shown.own;
  const bool close = shown.layout->memory.close();
  return fmt::format("{}{}{}", ties ? "ties with the fastest" : "", ties && close ? ", " : "",
                     close ? "close" : "");
}

Html with_standing(const ShownLayout& shown) {
  const std::string words = standing(shown);
  return words.empty() ? escaped(shown.name) : with_detail(escaped(shown.name), words);
}

PageTable layout_rows(const TuneStudy& study, const std::vector<ShownLayout>& shown) {
  const bool money = money_of(study, *shown.front().layout).has_value();
  PageTable table{.columns = {{.title = "Layout"},
                              {.title = "Step", .numeric = true},
                              {.title = "90 % interval", .numeric = true},
                              {.title = "MFU", .numeric = true},
                              {.title = "Memory", .numeric = true}}};
  if (money) table.columns.push_back({.title = "Money", .numeric = true});
  for (const ShownLayout& each : shown) {
    const TunedLayout& l = *each.layout;
    const double gib = gib_of(l.peak.needed());
    table.rows.push_back({{.content = with_standing(each)},
                          PageCell::number(page_duration(l.step_s), l.step_s),
                          PageCell::number(range_of_step(each), l.step_s * each.interval->low),
                          PageCell::number(page_percent(l.mfu, 1), l.mfu),
                          PageCell::number(page_with(gib, "GiB"), gib)});
    if (money) {
      const double usd = *money_of(study, l);
      table.rows.back().push_back(PageCell::number(page_usd(usd), usd));
    }
  }
  return table;
}

/// "sharding.zero3": "zero3 (what replicas share out)".
std::string capability_words(std::string_view name) {
  const std::size_t dot = name.find('.');
  const std::span<const CapabilityKey> keys = capability_keys();
  const auto key = std::ranges::find(keys, name.substr(0, dot), &CapabilityKey::name);
  if (dot == std::string_view::npos || key == keys.end()) return in_sentence(words_of_key(name));
  const std::string value = in_sentence(words_of_key(name.substr(dot + 1)));
  if (key->list == CapabilityList::pipeline_sharding) return value + " beside pipeline stages";
  return fmt::format("{} ({})", value, key->summary);
}

/// A rule by what it is about: "pipeline parallelism" of "/parallelism/pipeline".
std::string rule_words(std::string_view pointer) { return in_sentence(title_of_key(pointer)); }

/// What is wrong with a layout, with the words of its place before it.
std::string problem_words(const std::string& problem) {
  const std::size_t end = problem.find(": ");
  if (!problem.starts_with('/') || end == std::string::npos) return problem;
  return rule_words(problem.substr(0, end)) + problem.substr(end);
}

void add_left_out(Page& page, const TuneResult& r) {
  PageTable table{
      .columns = {{.title = "Left out because"}, {.title = "Layouts", .numeric = true}}};
  const auto add = [&](const std::string& why, std::size_t count) {
    if (count == 0) return;
    table.rows.push_back({PageCell::text(why), PageCell::number(grouped(static_cast<double>(count)),
                                                                static_cast<double>(count))});
  };
  add("more memory than the card has", r.over_memory);
  add("cannot be faster than the best, by their lower bound", r.pruned);
  add("no faster with zero2 than with zero1, which fits", r.same_as_zero1);
  for (const TuneCount& count : r.refused)
    add("the rule of " + rule_words(count.reason), count.layouts);
  for (const TuneCount& count : r.beyond_stack) {
    add("the software is not known to do " + capability_words(count.reason), count.layouts);
  }
  page.section("What was searched", fmt::format("{} combinations; {} were simulated.",
                                                grouped(static_cast<double>(r.considered)),
                                                grouped(static_cast<double>(r.replayed))));
  if (!table.rows.empty()) page.table(table);
}

Html tune_headline(const TuneStudy& study) {
  const TuneResult& r = study.result;
  if (r.best.empty()) return escaped("No layout fits.");
  const TunedLayout& best = r.best.front();
  Html out = strong(layout_words(best.scenario.job)) +
             escaped(fmt::format(" takes {} a step", page_duration(best.step_s)));
  if (!best.ties) {
    out += escaped(fmt::format(
        "; it is the {} of those within 1 % of the fastest that surely fits in memory, which "
        "faster ones may not",
        r.chosen_as()));
  } else if (r.ties > 1) {
    out += escaped(fmt::format("; it is the {} of {} layouts within 1 % of the fastest",
                               r.chosen_as(), grouped(static_cast<double>(r.ties))));
  }
  if (r.own && r.own_fits) {
    out +=
        escaped(fmt::format(". {} takes {}: {:+.1f}\u00a0%", own_layout_name(study),
                            page_duration(r.own->step_s), 100 * (r.own->step_s / best.step_s - 1)));
  }
  return out + escaped(".");
}

}  // namespace

std::string tune_page(const TuneStudy& study, const AnswerBasis& basis, const Behind* behind) {
  const TuneResult& r = study.result;
  Page page("Layouts",
            fmt::format("{} on {}", study.base.job.model.name, counted(study.base.gpus(), "GPU")));
  if (behind != nullptr) behind->open_figures(page);
  if (!study.base.about.empty()) page.about(study.base.about);
  page.headline(tune_headline(study));
  if (!r.best.empty()) {
    const TunedLayout& best = r.best.front();
    page.figures(std::vector<PageFigure>{
        {.value = page_duration(best.step_s), .label = "step time", .field = "step_s"},
        {.value = page_percent(best.mfu, 1), .label = "MFU, attention in full", .field = "mfu"},
        {.value = page_with(gib_of(best.peak.needed()), "GiB"),
         .label = fmt::format("memory, of {:.1f} GiB usable", gib_of(best.usable)),
         .field = "needed_memory_gib"},
        {.value = grouped(static_cast<double>(r.ties)),
         .label = "layouts within 1 % of the fastest"}});
    const std::vector<ShownLayout> shown = shown_layouts(study);
    page.section("The best layouts", close_sentence(study));
    add_step_bars(page, study, shown);
    page.table(layout_rows(study, shown));
    add_fronts(page, study, shown);
    add_time_parts(page, shown);
  }
  add_left_out(page, r);
  std::vector<std::string> notes = tune_notes(study);
  if (const std::string over = study.limits.warning("layouts"); !over.empty()) {
    notes.insert(notes.begin(), over + ".");
  }
  if (!r.own && !r.own_problem.empty())
    notes.push_back(own_layout_name(study) + ": " + problem_words(r.own_problem));
  if (r.interrupted) notes.emplace_back("Interrupted: the best of what was looked at.");
  if (!notes.empty()) {
    page.section("Notes");
    page.list(notes);
  }
  add_basis(page, basis);
  if (behind != nullptr) behind->add_to(page);
  page.foot(fmt::format("Scenario: {}.", study.base.file));
  return page.html(chart_library());
}

}  // namespace lockstep
