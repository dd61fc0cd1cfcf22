#include "tools/views/report/step_stages.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/step/pool_memory.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/run/rent_words.hpp"
#include "tools/views/run/run_facts.hpp"
#include "tools/views/run/schedule_svg.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kDrawnStages = 32, kDrawnSlices = 20'000;
/// The timeline gets no narrower than that, so that passes can be told apart.
constexpr int kTimelineLeast = 900;  // px

/// All stages, or as many evenly spaced ones as a chart has room for.
std::vector<const StageReport*> drawn_stages(const StepReport& report) {
  const std::size_t step = (report.stages.size() + kDrawnStages - 1) / kDrawnStages;
  std::vector<const StageReport*> out;
  for (std::size_t i = 0; i < report.stages.size(); i += step) out.push_back(&report.stages[i]);
  return out;
}

std::vector<std::string> stage_names(const std::vector<const StageReport*>& stages) {
  std::vector<std::string> names;
  names.reserve(stages.size());
  for (const StageReport* stage : stages) names.push_back(fmt::format("stage {}", stage->stage));
  return names;
}

void add_timeline(Page& page, const RunResult& result) {
  const StepReport& report = result.report;
  if (report.timeline.empty() || report.actors.size() < report.stages.size()) return;
  if (report.timeline.size() > kDrawnSlices) {
    page.paragraph(
        escaped("The timeline has too many passes to be drawn here; --svg draws it, "
                "--trace writes it."));
    return;
  }
  page.picture({.title = "Timeline",
                .about = "Passes of the first replica from left to right, with their micro batch; "
                         "where a row is empty, the stage waits.",
                .summary = fmt::format("The pipeline schedule: {} rows of passes over {}.",
                                       report.stages.size(), page_duration(report.step_s))},
               Html::markup(schedule_svg(report, schedule_title(result))), kTimelineLeast);
}

BarPart part_of_time(const std::vector<const StageReport*>& stages, const BucketInfo& info,
                     double unit, std::size_t colour) {
  BarPart part{.name = std::string(info.title), .colour = chart_colour(colour), .values = {}};
  for (const StageReport* stage : stages) {
    part.values.push_back(stage->seconds[static_cast<std::size_t>(info.bucket)] / unit);
  }
  return part;
}

void add_stage_times(Page& page, const StepReport& report,
                     const std::vector<const StageReport*>& stages) {
  const AxisUnit unit = time_unit(report.step_s);
  constexpr double kSeen = 0.003;
  std::vector<BarPart> parts;
  BarPart rest{.name = "all other", .colour = "@others", .values = {}};
  rest.values.resize(stages.size());
  for (const BucketInfo& info : buckets()) {
    BarPart part = part_of_time(stages, info, unit.size, parts.size());
    const bool seen = *std::ranges::max_element(part.values) * unit.size > kSeen * report.step_s;
    if (seen && parts.size() < kPageColours) {
      parts.push_back(std::move(part));
      continue;
    }
    for (std::size_t i = 0; i < stages.size(); ++i) rest.values[i] += part.values[i];
  }
  if (*std::ranges::max_element(rest.values) > 0) parts.push_back(std::move(rest));
  page.chart({.title = "Time of each stage",
              .about = "Where the step of a stage's GPUs goes, mean over its replicas.",
              .summary = "Stacked bars of the parts of the step, one for each stage.",
              .height_px = bars_height(stages.size()) + 40},
             stacked_bars(stage_names(stages), parts, unit.name));
}

/// A part of a GPU's memory.
struct MemoryPart {
  const char* title;
  Bytes MemoryBreakdown::* bytes;
};
constexpr std::array kMemoryParts{MemoryPart{"weights", &MemoryBreakdown::weights},
                                  MemoryPart{"gradients", &MemoryBreakdown::gradients},
                                  MemoryPart{"optimiser", &MemoryBreakdown::optimiser},
                                  MemoryPart{"activations", &MemoryBreakdown::activations},
                                  MemoryPart{"logits", &MemoryBreakdown::logits},
                                  MemoryPart{"communication", &MemoryBreakdown::communication},
                                  MemoryPart{"framework", &MemoryBreakdown::framework},
                                  MemoryPart{"cache", &MemoryBreakdown::cached}};

/// GiB that are usable at each stage: of several kinds of node those of the kind there that has
/// least.
std::vector<double> usable_at(const RunResult& result,
                              const std::vector<const StageReport*>& stages) {
  std::vector<double> out(stages.size(), result.memory.usable / gibibytes(1));
  const std::vector<PoolReport>& pools = result.report.pools;
  if (pools.empty()) return out;
  const std::vector<PoolMemory> memory = pool_memory(result.scenario);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    std::optional<double> least;
    for (std::size_t p = 0; p < pools.size(); ++p) {
      const bool there =
          pools[p].first_stage <= stages[i]->stage && stages[i]->stage <= pools[p].last_stage;
      const double usable = memory[p].usable / gibibytes(1);
      if (there) least = std::min(least.value_or(usable), usable);
    }
    out[i] = least.value_or(out[i]);
  }
  return out;
}

void add_stage_memory(Page& page, const RunResult& result,
                      const std::vector<const StageReport*>& stages) {
  std::vector<BarPart> parts;
  for (std::size_t p = 0; p < kMemoryParts.size(); ++p) {
    const MemoryPart& of = kMemoryParts[p];
    BarPart part{.name = of.title, .colour = chart_colour(p), .values = {}};
    for (const StageReport* stage : stages) {
      part.values.push_back(stage->memory.*of.bytes / gibibytes(1));
    }
    if (*std::ranges::max_element(part.values) > 0) parts.push_back(std::move(part));
  }
  const std::vector<double> usable = usable_at(result, stages);
  const auto [least, most] = std::ranges::minmax(usable);
  nlohmann::json line = nlohmann::json::array();
  for (std::size_t i = 0; i < usable.size(); ++i) line.push_back({four_digits(usable[i]), i});
  nlohmann::json options = stacked_bars(stage_names(stages), parts, "GiB");
  // A line through the middles of the bars; through one there is none.
  const bool one = stages.size() == 1;
  options["series"].push_back(
      {{"type", one ? "scatter" : "line"},
       {"name", "usable"},
       {"silent", true},
       {"symbol", one ? "rect" : "none"},
       {"symbolSize", {2, 36}},
       {"lineStyle", {{"width", 1.5}, {"type", "dashed"}, {"color", "@ink"}}},
       {"itemStyle", {{"color", "@ink"}}},
       {"tooltip", {{"show", false}}},
       {"data", std::move(line)}});
  const std::string amount = least == most ? fmt::format("the {:.1f} GiB that are usable", least)
                                           : fmt::format(
                                                 "what is usable, {:.1f} to {:.1f} GiB by "
                                                 "the kind of node",
                                                 least, most);
  page.chart(
      {.title = "Memory of each stage",
       .about = fmt::format(
           "Peak within the step of one GPU; {}: {}{}.", one ? "line" : "dashed", amount,
           result.report.pools.size() > 1 && one ? ", of the kind of node that has least" : ""),
       .summary = "Stacked bars of the parts of memory, one for each stage.",
       .height_px = bars_height(stages.size()) + 40},
      options);
}

PageTable stage_rows(const StepReport& report) {
  PageTable table{
      .columns = {{.title = "Stage", .numeric = true},
                  {.title = "Layers", .numeric = true},
                  {.title = "Forward", .numeric = true, .about = "of one micro batch"},
                  {.title = "Backward", .numeric = true, .about = "of one micro batch"}},
      .first_rows = 16};
  std::vector<const MemoryPart*> parts;
  for (const MemoryPart& part : kMemoryParts) {
    const auto is_there = [&](const StageReport& s) { return s.memory.*part.bytes > Bytes{}; };
    if (std::ranges::none_of(report.stages, is_there)) continue;
    parts.push_back(&part);
    table.columns.push_back({.title = part.title, .numeric = true, .about = "memory"});
  }
  table.columns.push_back({.title = "needed", .numeric = true});
  for (const StageReport& stage : report.stages) {
    std::vector<PageCell> row{PageCell::number(std::to_string(stage.stage), stage.stage),
                              PageCell::number(std::to_string(stage.layers), stage.layers),
                              PageCell::number(page_duration(stage.forward_s), stage.forward_s),
                              PageCell::number(page_duration(stage.backward_s), stage.backward_s)};
    const auto add = [&](Bytes bytes) {
      row.push_back(PageCell::number(gib_text(bytes), bytes.base_units()));
    };
    for (const MemoryPart* part : parts) add(stage.memory.*part->bytes);
    add(stage.memory.needed());
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

void add_stages(Page& page, const RunResult& result) {
  const StepReport& report = result.report;
  const std::vector<const StageReport*> stages = drawn_stages(report);
  page.section("Stages", stages.size() < report.stages.size()
                             ? fmt::format("{} of {} stages are drawn, evenly spaced.",
                                           stages.size(), report.stages.size())
                             : std::string());
  add_timeline(page, result);
  page.begin_row();
  add_stage_times(page, report, stages);
  add_stage_memory(page, result, stages);
  page.end_row();
  page.table(stage_rows(report));
}

void add_traffic(Page& page, const StepReport& report) {
  if (report.traffic.empty()) return;
  std::vector<std::string> classes, kinds;
  for (const TrafficBytes& traffic : report.traffic) {
    for (const TrafficBytes::Part& part : traffic.over) {
      if (std::ranges::find(classes, part.links) == classes.end()) classes.push_back(part.links);
    }
  }
  std::vector<double> sums(classes.size());
  std::vector<BarPart> parts;
  for (const TrafficBytes& traffic : report.traffic) {
    BarPart bars{.name = traffic.traffic, .colour = chart_colour(parts.size()), .values = {}};
    bars.values.resize(classes.size());
    for (const TrafficBytes::Part& part : traffic.over) {
      const auto c =
          static_cast<std::size_t>(std::ranges::find(classes, part.links) - classes.begin());
      bars.values[c] += part.bytes.base_units();
      sums[c] += part.bytes.base_units();
    }
    parts.push_back(std::move(bars));
  }
  // Links that do the same count once, so that bytes of two classes are not to be compared.
  for (BarPart& part : parts) {
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (sums[c] > 0) part.values[c] *= 100 / sums[c];
    }
  }
  nlohmann::json options = stacked_bars(classes, parts, "%");
  options["xAxis"]["max"] = 100;  // rounded parts may add up to a little more
  page.chart({.title = "Traffic by kind, of each class of links",
              .about = "Shares of the bytes of a step. Of ways that carry the same, as the two of "
                       "a cable often do, "
                       "one stands for all.",
              .summary = "Stacked bars of shares by kind, one for each class of links.",
              .height_px = bars_height(classes.size()) + 40},
             options);
}

void add_money(Page& page, const RunResult& result) {
  PageTable table{.columns = {{.title = "What"}, {.title = "Money", .numeric = true}}};
  std::string way = "rented";
  bool rented = false, owned = false;
  const auto add = [&](const char* what, double usd) {
    if (usd <= 0) return;
    table.rows.push_back(
        {{.content = with_detail(escaped(what), way)}, PageCell::number(page_usd(usd), usd)});
  };
  if (const auto& price = result.scenario.usd_per_gpu_hour) {
    rented = true;
    table.rows.push_back({{.content = with_detail(escaped("price of a GPU's hour"), way)},
                          PageCell::number(fmt::format("{:.2f} USD", *price), *price)});
  }
  if (const auto cost = training_cost(result); cost && cost->usd) {
    add("the whole training at that price, without failures", *cost->usd);
  }
  if (result.power) {
    const EnergyBill bill = energy_bill(result);
    const char* of = bill.whole_training ? "the whole training" : "one step";
    const CostReport& cost = bill.cost;
    const CostSpec& prices = result.scenario.power->cost;
    owned = prices_machines(prices);
    if (has_prices(prices)) way = words_of(owned ? MoneyOf::owned : MoneyOf::partial, &prices);
    add("capital: machines", cost.capital.machines_usd);
    add("capital: network", cost.capital.network_usd);
    add("capital: building", cost.capital.building_usd);
    if (cost.total_usd() > 0) {
      add(fmt::format("written off over {}", of).c_str(), cost.write_off_usd());
      add(fmt::format("energy of {}", of).c_str(), cost.energy_usd);
      add(fmt::format("people over {}", of).c_str(), cost.people_usd);
      add(fmt::format("hosting over {}", of).c_str(), cost.hosting_usd);
      add(fmt::format("together, {}", of).c_str(), cost.total_usd());
    }
  }
  if (table.rows.empty()) return;
  page.section("Prices and capital", rented && owned ? kRentOrOwn : std::string_view());
  page.table(table);
}

}  // namespace lockstep
