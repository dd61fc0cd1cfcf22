#include "tools/views/report/run_tables.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "tools/views/report/money_section.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_words.hpp"
#include "tools/views/run/rent_words.hpp"

namespace lockstep {
namespace {

constexpr double kSecondsInDay = 86'400;
constexpr std::size_t kCausesShown = 20;  // at first

/// A line of the bill.
struct CostLine {
  const char* what;
  const char* about;
  double usd;
};

std::vector<CostLine> cost_lines(const CostReport& cost, bool highest_hours) {
  std::vector<CostLine> lines{{"GPUs", "written off", cost.gpus_usd},
                              {"Servers without their GPUs", "written off", cost.nodes_usd},
                              {"Network", "switch ports and plugs, written off", cost.network_usd},
                              {"Building, power and cooling", "written off", cost.building_usd},
                              {"Energy",
                               highest_hours ? "by the tariff of its hours, and for the highest"
                                             : "by the tariff of its hours",
                               cost.energy_usd},
                              {"People", "by the hour", cost.people_usd},
                              {"Hosting", "by the peak of the site's power", cost.hosting_usd}};
  std::erase_if(lines, [](const CostLine& line) { return line.usd <= 0; });
  return lines;
}

/// "owned", or what has a price where the machines have none. Requires a bill.
std::string cost_words(const CampaignResult& result) {
  const CostSpec prices = prices_of(result);
  return words_of(prices_machines(prices) ? MoneyOf::owned : MoneyOf::partial, &prices);
}

PageTable bill_table(const CostReport& cost, bool owned, bool highest_hours) {
  const double total = cost.total_usd();
  PageTable table{.columns = {{.title = owned ? "Owned" : "What has a price"},
                              {.title = "Cost", .numeric = true},
                              {.title = "Share", .numeric = true}}};
  for (const CostLine& line : cost_lines(cost, highest_hours)) {
    table.rows.push_back({{.content = with_detail(escaped(line.what), line.about)},
                          PageCell::number(page_usd(line.usd), line.usd),
                          {.content = with_bar(page_percent(line.usd / total, 1), line.usd / total),
                           .sort = line.usd / total}});
  }
  table.rows.push_back({{.content = strong("Total")},
                        {.content = strong(page_usd(total)), .sort = total},
                        PageCell::number(page_percent(1, 1), 1)});
  return table;
}

/// Of machines that come in lots, what costs something or comes back.
PageTable lots_table(const MonthMoney& sum) {
  using Part = std::pair<const char*, double MonthMoney::*>;
  constexpr std::array kParts{Part{"Machines bought", &MonthMoney::bought},
                              Part{"Plants of the site", &MonthMoney::plants},
                              Part{"Leases", &MonthMoney::leased},
                              Part{"Rent", &MonthMoney::rented},
                              Part{"Energy", &MonthMoney::energy},
                              Part{"People", &MonthMoney::staff},
                              Part{"Interest", &MonthMoney::interest},
                              Part{"Worth at the end", &MonthMoney::residual}};
  PageTable table{.columns = {{.title = "Of the plan"}, {.title = "Cost", .numeric = true}}};
  for (const auto& [name, part] : kParts) {
    if (sum.*part == 0) continue;
    table.rows.push_back(
        {PageCell::text(name), PageCell::number(signed_usd(sum.*part), sum.*part)});
  }
  table.rows.push_back({{.content = strong("Total")},
                        {.content = strong(signed_usd(sum.usd())), .sort = sum.usd()}});
  return table;
}

/// Whose energy and money the section has.
const char* cost_lead(const CampaignResult& result, bool owned) {
  if (result.fleet) {
    return "Machines as they come, with energy of own and leased ones, people and interest, from "
           "the start of the plan until the mean run is done; what machines are worth then comes "
           "back.";
  }
  if (result.site) {
    return owned ? "Energy, and what owning costs, of the run whose goodput is the median; rent of "
                   "the mean run. Machines and building are written off evenly; what has no price "
                   "in the scenario costs nothing here."
           : result.rent_usd()
               ? "Energy and its cost of the run whose goodput is the median; rent of "
                 "the mean run."
               : "Energy and its cost of the run whose goodput is the median.";
  }
  return owned ? "Of the mean run. Machines and building are written off evenly; what has no price "
                 "in the scenario costs nothing here."
               : "Of the mean run.";
}

std::vector<PageFigure> cost_figures(const CampaignResult& result) {
  std::vector<PageFigure> figures;
  const std::string of = result.storage_usd() > 0 ? ", without storage" : "";
  const double tokens = result.steps() * result.tokens_per_step();
  if (const std::optional<double> rent = result.rent_usd()) {
    figures.push_back({.value = page_usd(*rent),
                       .label = fmt::format("to rent the GPU-hours{}", instead_of_owning(result))});
    if (tokens > 0) {
      figures.push_back(
          {.value = page_usd(*rent / tokens * 1e12), .label = "rent per trillion tokens" + of});
    }
  }
  if (!result.bill) return figures;
  const CostReport& cost = result.bill->cost;
  if (result.fleet && tokens > 0) {
    figures.push_back(
        {.value = page_usd(sum_of(months_of(result)).usd() / tokens * 1e12),
         .label = "machines as they come, with all beside them" + of + ", per trillion tokens"});
  }
  // A bill beside lots has energy alone.
  if (!result.fleet && cost.usd_per_trillion_tokens > 0) {
    figures.push_back({.value = page_usd(cost.usd_per_trillion_tokens),
                       .label = cost_words(result) + of + ", per trillion tokens"});
  }
  if (!result.fleet && cost.usd_per_eflop > 0) {
    figures.push_back({.value = page_usd(cost.usd_per_eflop),
                       .label = cost_words(result) + of + ", per EFLOP (10¹⁸ FLOPs) of the model"});
  }
  if (cost.tonnes_co2) {
    figures.push_back({.value = page_with(*cost.tonnes_co2, "t"), .label = "of CO₂"});
  }
  const Usage& usage = result.bill->usage;
  if (usage.tokens > 0) {
    figures.push_back({.value = page_with(usage.energy.base_units() / usage.tokens, "J"),
                       .label = "of energy per token"});
  }
  return figures;
}

std::vector<PageCell> distribution_row(const char* what, const SampleMean& of,
                                       const std::function<std::string(double)>& text) {
  const auto cell = [&](double value) { return PageCell::number(text(value), value); };
  return {PageCell::text(what),
          cell(of.mean),
          of.half_width > 0 ? PageCell::number("± " + text(of.half_width), of.half_width)
                            : PageCell::unknown(),
          cell(of.low),
          cell(of.median),
          cell(of.high)};
}

/// What no cause has: a job that lost replicas restarts when their nodes are back. Empty where it
/// would print as nothing.
std::string growth_text(const RunSummary& s, double causes_s) {
  double stood = 0;
  for (const RunBucket bucket : {RunBucket::lost, RunBucket::detection, RunBucket::diagnosis,
                                 RunBucket::restart, RunBucket::repair_wait}) {
    stood += s.shares[static_cast<std::size_t>(bucket)];
  }
  const double share = stood - (causes_s + s.site_stopped_s) / s.wall_s.mean;
  constexpr double kShown = 5e-5;
  if (share < kShown) return {};
  return fmt::format("Restarts with replicas that have come back cost {} more. ",
                     page_percent(share, 2));
}

}  // namespace

void add_causes(Page& page, const CampaignResult& result) {
  const RunSummary& s = result.summary;
  std::vector<ModeSummary> modes = s.modes;
  std::ranges::stable_sort(modes, std::ranges::greater{}, &ModeSummary::cost_s);
  PageTable table{.columns = {{.title = "Cause"},
                              {.title = "Of wall time",
                               .numeric = true,
                               .about = "what its failures cost, over the wall time"},
                              {.title = "Failures a run", .numeric = true},
                              {.title = "Cost each",
                               .numeric = true,
                               .about = "from the stop until training is where it had been"},
                              {.title = "Cost a run", .numeric = true}},
                  .first_rows = kCausesShown,
                  .sorted_by = 1};
  double all = 0;
  for (const ModeSummary& mode : modes) all += mode.cost_s;
  const double largest = modes.front().cost_s;
  for (const ModeSummary& mode : modes) {
    const double share = mode.cost_s / s.wall_s.mean;
    const double each = mode.failures > 0 ? mode.cost_s / mode.failures : 0;
    table.rows.push_back(
        {PageCell::text(mode.name),
         {.content = with_bar(page_percent(share, 2), largest > 0 ? mode.cost_s / largest : 0),
          .sort = share},
         PageCell::number(significant(mode.failures), mode.failures),
         mode.failures > 0 ? PageCell::number(page_duration(each), each) : PageCell::unknown(),
         PageCell::number(page_duration(mode.cost_s), mode.cost_s)});
  }
  page.section(
      "Goodput by cause",
      fmt::format("Failures cost {} of the wall time: recovery, and work done again. "
                  "Checkpoints cost {} more. {}{}",
                  page_percent(all / s.wall_s.mean, 1),
                  page_percent(s.shares[static_cast<std::size_t>(RunBucket::checkpoint)], 2),
                  growth_text(s, all), more_failures_text(s)));
  page.table(table);
}

void add_cost(Page& page, const CampaignResult& result) {
  const bool priced = result.bill && result.bill->cost.total_usd() > 0;
  const bool owned = priced && prices_machines(result.scenario.power->cost);
  page.section("Cost", cost_lead(result, owned));
  page.figures(cost_figures(result));
  if (result.fleet) {
    page.table(lots_table(sum_of(months_of(result))));
  } else if (priced) {
    page.table(
        bill_table(result.bill->cost, owned, result.site && result.site->books.demand_usd > 0));
  }
}

void add_checkpoints(Page& page, const CampaignResult& result) {
  const RunSummary& s = result.summary;
  const double each = result.plan.checkpoint.all.base_units();
  if (s.checkpoints <= 0 || each <= 0) return;
  const auto duration = [](Seconds time) {
    return time > Seconds{} ? PageCell::number(page_duration(time.base_units()), time.base_units())
                            : PageCell::unknown();
  };
  PageTable table{.columns = {{.title = "Checkpoint to"},
                              {.title = "Every", .numeric = true},
                              {.title = "Training waits", .numeric = true},
                              {.title = "There after", .numeric = true, .about = "more"},
                              {.title = "Slower", .numeric = true, .about = "meanwhile"},
                              {.title = "GB/s", .numeric = true, .about = "while steps run"},
                              {.title = "Of what it sustains", .numeric = true}}};
  for (std::size_t t = 0; t < result.plan.campaign.tiers.size(); ++t) {
    const CheckpointTier& tier = result.plan.campaign.tiers[t];
    std::vector<PageCell> row{PageCell::text(tier.name), duration(tier.interval),
                              duration(tier.blocks), duration(tier.finishes),
                              tier.drag > 0
                                  ? PageCell::number(page_percent(tier.drag, 1), tier.drag)
                                  : PageCell::unknown()};
    const bool writes = t < result.plan.writes.size();
    const double rate = writes ? result.plan.writes[t].rate(tier.interval).base_units() : 0;
    row.push_back(writes ? PageCell::number(significant(rate / 1e9), rate) : PageCell::unknown());
    const double share = writes ? result.plan.writes[t].share(tier.interval) : 0;
    row.push_back(share > 0 ? PageCell::number(page_percent(share, 1), share)
                            : PageCell::unknown());
    table.rows.push_back(std::move(row));
  }
  page.section("Checkpoints",
               fmt::format("{} a run of {}, {}/s on average over the run.", compact(s.checkpoints),
                           page_bytes(each), page_bytes(s.checkpoints * each / s.wall_s.mean)));
  page.table(table);
}

void add_projections(Page& page, const CampaignResult& result) {
  PageTable table{.columns = {{.title = "Size"},
                              {.title = "Mean time to failure", .numeric = true},
                              {.title = "Failures a day", .numeric = true}}};
  for (const ProjectedMttf& each : result.projections) {
    const double seconds = each.mttf.base_units();
    table.rows.push_back(
        {PageCell::text(counted(each.gpus, "GPU")),
         PageCell::number(page_duration(seconds), seconds),
         PageCell::number(significant(kSecondsInDay / seconds), kSecondsInDay / seconds)});
  }
  const bool aging = std::ranges::any_of(result.plan.campaign.modes,
                                         [](const FailureMode& mode) { return mode.shape != 1; });
  page.section("The same parts in jobs of other sizes",
               std::string("How often a job is stopped, from the mean failure rates of its "
                           "components alone.") +
                   (aging ? " Parts whose law has a shape are new when the run begins, so that it "
                            "meets more failures (shape below 1) or fewer."
                          : ""));
  page.table(table);
}

void add_distributions(Page& page, const CampaignResult& result) {
  const RunSummary& s = result.summary;
  std::string lead = fmt::format("{} trajectories", grouped(static_cast<double>(s.trajectories)));
  if (s.finished < 1 && result.plan.campaign.horizon == 0) {
    lead += fmt::format(", of which {} did all of their work", page_percent(s.finished, 1));
  }
  lead += fmt::format("; a mean run takes {} checkpoints", significant(s.checkpoints));
  if (s.fallbacks > 0) {
    lead += fmt::format(" and finds {} of them unreadable or corrupt", significant(s.fallbacks));
  }
  PageTable table{.columns = {{.title = "Of a run"},
                              {.title = "Mean", .numeric = true},
                              {.title = "95 % interval", .numeric = true, .about = "of the mean"},
                              {.title = "5th percentile", .numeric = true},
                              {.title = "Median", .numeric = true},
                              {.title = "95th percentile", .numeric = true}}};
  const auto percent = [](double value) { return page_percent(value, 2); };
  const auto count = [](double value) { return significant(value); };
  table.rows = {distribution_row("Goodput", s.goodput, percent),
                distribution_row("Wall time", s.wall_s, page_duration),
                distribution_row("Interruptions", s.interruptions, count)};
  page.section("How runs differ", lead + ".");
  page.table(table);
}

}  // namespace lockstep
