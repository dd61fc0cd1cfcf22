#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/number_text.hpp"
#include "sim/answer/hash_answer.hpp"
#include "sim/answer/scaling.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/site/site_availability.hpp"
#include "sim/site/standby_figures.hpp"
#include "tools/console/percent.hpp"
#include "tools/views/run/battery_words.hpp"
#include "tools/views/run/campaign_result.hpp"
#include "tools/views/run/data_table.hpp"
#include "tools/views/run/purchase_table.hpp"
#include "tools/views/run/rent_words.hpp"
#include "tools/views/run/run_facts.hpp"
#include "tools/views/run/run_result.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

constexpr int kCampaignLabels = 18;
constexpr double kCampaignDay = 86'400;

std::string run_percent(double share, int digits = 1) { return few_percent(share, digits); }
std::string with_interval(const SampleMean& of, double unit, const char* text) {
  return fmt::format("{} {} (+- {})", significant(of.mean / unit), text,
                     significant(of.half_width / unit, 2));
}

/// What storage of the dataset adds to a cost of the machines; empty: nothing.
std::string and_storage(const CampaignResult& result, double machines_usd) {
  const double usd = result.storage_usd();
  if (usd == 0) return {};
  return fmt::format(", and {} USD of storage: {} USD together", compact(usd),
                     compact(machines_usd + usd));
}

/// Of machines and what they take, for each trillion of `tokens`, as JSON has it.
std::string per_trillion_tokens(const CampaignResult& result, double usd, double tokens) {
  if (tokens <= 0) return {};
  return fmt::format("; {} USD per trillion tokens{}", compact(usd / tokens * 1e12),
                     result.storage_usd() > 0 ? ", without storage" : "");
}

/// "; 41,300 USD a node, of 2,080": what machines, network and building make a node cost.
std::string per_node_text(const CampaignResult& result) {
  const double nodes = result.power->holdings.nodes;
  return fmt::format("; {} USD a node, of {}",
                     grouped(std::round(result.bill->cost.capital.total_usd() / nodes)),
                     grouped(nodes));
}

/// "; 0.0712 USD per kWh on average": of machines that are all there from the start.
std::string per_kwh_text(const CampaignResult& result) {
  const RunBill& bill = *result.bill;
  const double kwh = bill.usage.energy.base_units() / 3.6e6;
  if (result.fleet || bill.cost.energy_usd <= 0 || kwh <= 0) return {};
  const bool highest = result.site && result.site->books.demand_usd > 0;
  const bool own = result.site && result.site->books.sum.renewable > Joules{};
  return fmt::format("; energy at {:.4g} USD per kWh on average{}{}", bill.cost.energy_usd / kwh,
                     highest ? ", its highest hours in it" : "",
                     own ? ", over what its own sun and wind give for nothing too" : "");
}

/// On average over the run; of spot nodes those that are not taken away.
double nodes_held(const CampaignResult& result, Seconds run) {
  const double hours = run.base_units() / 3600;
  return hours > 0 ? result.fleet->held_gpu_hours(run) / hours / result.scenario.node.gpus : 0;
}

std::string bill_lines(const CampaignResult& result) {
  const RunBill& bill = *result.bill;
  const StepPower& power = *result.power;
  // Weather, limits and lots let a run draw more or less than a step of the job does.
  const bool by_hours = result.site || result.fleet;
  const Watts most = by_hours ? power.site_peak : power.levels.training.facility;
  const std::string there = result.fleet
                                ? fmt::format(" by the nodes that are there, {} on average",
                                              significant(nodes_held(result, bill.usage.time)))
                                : "";
  std::string out = labelled_line(
      "Energy", kCampaignLabels,
      fmt::format(
          "{} at the site's meter{}, {} on average, {} {}; nameplate of the GPUs{} {}",
          energy_text(bill.usage.energy), there, power_text(bill.usage.energy / bill.usage.time),
          power_text(most), by_hours ? "at the most" : "in a step",
          result.fleet ? " of the job and its hot spares" : "", power_text(power.gpu_nameplate)));
  if (bill.cost.tonnes_co2) {
    out += labelled_line("Carbon", kCampaignLabels,
                         fmt::format("{} t of CO2", significant(*bill.cost.tonnes_co2)));
  }
  if (result.fleet) {
    // A bill of machines that are all there from the start is none of this purchase.
    const MonthMoney money = sum_of(months_of(result));
    out += labelled_line(
        "Cost", kCampaignLabels,
        fmt::format(
            "{} USD: {} spent on machines as they come, {}energy, people and interest{}{}{}",
            compact(money.usd()), compact(money.spent() + money.interest), besides_words(money),
            money.residual < 0
                ? fmt::format(", of which {} USD come back as what {} are worth at the end",
                              compact(-money.residual), sold_words(money))
                : "",
            and_storage(result, money.usd()),
            per_trillion_tokens(result, money.usd(), result.steps() * result.tokens_per_step())));
  } else if (const CostSpec prices = prices_of(result);
             !prices_machines(prices) && (has_prices(prices) || bill.cost.total_usd() != 0)) {
    out += labelled_line(
        "Cost", kCampaignLabels,
        fmt::format("{} USD, {}{}{}", compact(bill.cost.total_usd()), partial_money_words(result),
                    per_kwh_text(result), and_storage(result, bill.cost.total_usd())));
  } else if (bill.cost.total_usd() > 0) {
    out += labelled_line(
        "Cost", kCampaignLabels,
        fmt::format("{} USD owned ({} written off, {} to run, {} of it energy{}){}{}",
                    compact(bill.cost.total_usd()), compact(bill.cost.write_off_usd()),
                    compact(bill.cost.running_usd()), compact(bill.cost.energy_usd),
                    per_kwh_text(result), and_storage(result, bill.cost.total_usd()),
                    per_trillion_tokens(result, bill.cost.total_usd(), bill.usage.tokens)));
  }
  CapitalReport capital = bill.cost.capital;
  // Beside lots they are in the money by month, as these are.
  if (result.fleet) capital.building_usd -= result.fleet->plants_usd;
  if (result.fleet && result.fleet->plants_usd > 0) {
    out += labelled_line("Plants", kCampaignLabels,
                         compact(result.fleet->plants_usd) +
                             " USD for the site's battery, path and cooling, as the first "
                             "machines come");
  }
  if (capital.total_usd() > 0) {
    out += labelled_line("Capital", kCampaignLabels, capital_text(capital) + per_node_text(result));
  }
  return out;
}

/// "made for 1/1.25 of the sum of peaks ...": nothing where the path has room and never held cards.
std::string capping_line(const CampaignResult& result) {
  const SiteBooks& books = result.site->books;
  const std::optional<PathProvision> path = path_provision(*result.site->plan, books.power);
  if (!path || (path->oversubscription() <= 1 && books.capping.capped <= Seconds{})) return "";
  const std::string brings = power_text(path->brings), peaks = power_text(path->peaks);
  std::string text =
      path->oversubscription() > 1
          ? fmt::format("the path brings {} of the {} that all nodes take at their peak", brings,
                        peaks)
          : fmt::format("the path brings {}; all nodes take {} at their peak", brings, peaks);
  const PathCapping& held = books.capping;
  if (held.capped > Seconds{}) {
    const std::string then =
        std::isfinite(held.stretch())
            ? fmt::format("a step then takes {} longer", run_percent(held.stretch() - 1))
            : "no step ran then";
    text += fmt::format(
        "; cards held for {} of the training, to {} of what they draw at the least; {}: {} of full "
        "speed",
        run_percent(held.capped / held.trained), run_percent(held.lowest_draw), then,
        duration_text(held.lost.base_units()));
  } else {
    text += "; cards were never held";
  }
  return labelled_line("  capping", kCampaignLabels, text);
}

/// How often the site holds nothing back, by closed forms and in the run.
std::string availability_line(const CampaignResult& result) {
  const SiteBooks& books = result.site->books;
  const SiteAvailability of = site_availability(*result.site->plan, books.hours.size());
  if (!of.path && !of.cooling && !of.grid) return "";
  std::string parts;
  const auto add = [&parts](std::string_view name, const std::optional<double>& share) {
    if (share)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, run_percent(*share, 3));
  };
  add("path", of.path);
  add("cooling", of.cooling);
  add("grid", of.grid);
  if (of.path && *of.path <= 0) {
    return labelled_line(
        "  no limit binds", kCampaignLabels,
        "never: the path brings less than all machines draw, even where nothing is "
        "broken");
  }
  if (of.all && *of.all == 0 && books.unbound_share() == 0) {
    return labelled_line("  no limit binds", kCampaignLabels,
                         "never: limits hold machines back all of the time, by closed forms and in "
                         "this run");
  }
  if (of.all_with_standby) {
    parts = fmt::format(
        "{} of the time by closed forms, with batteries and generators; without them {} ({})",
        run_percent(*of.all_with_standby, 5), run_percent(*of.all, 3), parts);
  } else if (of.all) {
    parts = run_percent(*of.all, 3) + " of the time by closed forms (" + parts + ")";
  }
  return labelled_line(
      "  no limit binds", kCampaignLabels,
      fmt::format("{}; {} of this run", parts, run_percent(books.unbound_share(), 3)));
}

/// "4.01 losses of power a year, of 2.0 h on average; 0.1 % of them outlast ...": closed forms.
std::string blackouts_text(const CampaignResult& result) {
  const std::optional<StandbyFigures> of = standby_figures(*result.site->plan);
  if (!of || !of->blackouts) return "";
  return fmt::format(
      "{} losses of all power from outside a year, of {} on average; {} of them outlast batteries "
      "and generators, by closed forms",
      significant(of->blackouts->per_year), duration_text(of->blackouts->lasts.base_units()),
      run_percent(of->blackouts->uncovered, 3));
}

/// Outages of the path, and what generators gave in them.
std::string standby_line(const CampaignResult& result) {
  const SiteBooks& books = result.site->books;
  std::string text = blackouts_text(result);
  if (books.standby.outages == 0) {
    return text.empty() ? ""
                        : labelled_line("  standby", kCampaignLabels, text + "; none in this run");
  }
  if (!text.empty())
    text += "; in this run they covered ";
  else
    text = "batteries and generators covered ";
  text += fmt::format("{} of {} outages", grouped(books.standby.outages - books.standby.uncovered),
                      grouped(books.standby.outages));
  if (books.sum.generated > Joules{}) {
    text += fmt::format("; generators ran {} and gave {}",
                        duration_text(books.generators_ran.base_units()),
                        energy_text(books.sum.generated));
  }
  if (books.sum.fuel_usd > 0) text += fmt::format(", for {} USD", compact(books.sum.fuel_usd));
  if (books.sum.fuel_grams > 0) {
    text += fmt::format(", {} t of CO2", significant(books.sum.fuel_grams * 1e-6));
  }
  return labelled_line("  standby", kCampaignLabels, text);
}

/// What keeps a step's swing within the grid's ramp, and what each way costs.
std::string smoothing_lines(const CampaignResult& result) {
  const SitePlan& plan = *result.site->plan;
  if (plan.ramp.ways.empty()) return {};
  const SmoothingWay& now = plan.ramp.ways.front();
  const double limit = *plan.spec.ramp_w_per_s;
  std::string out = labelled_line(
      "  ramp", kCampaignLabels,
      fmt::format("a step changes its power by up to {} MW/s, of {} that the grid allows{}",
                  significant(now.ramp_w_per_s * 1e-6), significant(limit * 1e-6),
                  plan.ramp.ways.size() > 1 ? "; to keep to it:" : ""));
  for (std::size_t i = 1; i < plan.ramp.ways.size(); ++i) {
    const SmoothingWay& way = plan.ramp.ways[i];
    std::string text = smoothing_words(way);
    text +=
        way.keeps
            ? fmt::format(": {:+.2f} % time, {:+.2f} % energy", 100 * (way.step / now.step - 1),
                          100 * (way.energy / now.energy - 1))
            : fmt::format(": not enough, {} MW/s at best", significant(way.ramp_w_per_s * 1e-6));
    out += labelled_line("", kCampaignLabels, text);
  }
  if (plan.ramp.start > Seconds{})
    out += labelled_line("", kCampaignLabels, restart_ramp_words(plan));
  return out;
}

/// What surrounds the racks, in a few lines.
std::string site_lines(const CampaignResult& result) {
  const SiteBooks& books = result.site->books;
  const RunSummary& s = result.summary;
  std::string power = fmt::format("highest hour {}", power_text(books.power.drawn));
  if (books.power.grid) {
    power += fmt::format("; from the grid {} of the {} that it gives",
                         power_text(books.power.imported), power_text(*books.power.grid));
  }
  if (books.power.path) {
    power += fmt::format("; machines {} of the {} that the path brings",
                         power_text(books.power.machines), power_text(*books.power.path));
  }
  if (books.power.firm) {
    const bool some = *books.power.firm > Watts{};
    power += fmt::format("{} {} with its worst unit broken",
                         books.power.path ? "," : "; the path brings",
                         some ? power_text(*books.power.firm) : "nothing");
  }
  std::string out = labelled_line("Site", kCampaignLabels, power);
  out += labelled_line(
      "  limits", kCampaignLabels,
      fmt::format("{}; {}{}, means of runs",
                  s.site_slowed_s > 0 ? duration_text(s.site_slowed_s) + " of full speed lost"
                                      : "none slowed the job",
                  s.site_stops > 0 ? significant(s.site_stops) : "no",
                  s.site_stops > 0 ? " stops without power, " + duration_text(s.site_stopped_s)
                                   : " stops without power"));
  out += availability_line(result);
  out += capping_line(result);
  out += standby_line(result);
  out += labelled_line(
      "  grid", kCampaignLabels,
      fmt::format(
          "{} imported{}{}", energy_text(books.sum.imported),
          books.sum.renewable > Joules{}
              ? fmt::format(", {} of sun and wind", energy_text(books.sum.renewable))
              : "",
          books.usd() != 0
              ? fmt::format("; {} USD{}", compact(books.usd()),
                            books.demand_usd > 0 ? fmt::format(", {} of it for the highest hours",
                                                               compact(books.demand_usd))
                                                 : "")
              : ""));
  if (const std::vector<std::string> battery = battery_words(*result.site); !battery.empty()) {
    out += labelled_line("  battery", kCampaignLabels, fmt::format("{}", fmt::join(battery, "; ")));
  }
  std::string weather = fmt::format("up to {:.1f} C outside", books.warmest_outside);
  if (books.sum.machines > Joules{}) {
    weather += fmt::format(", PUE {:.3f}", books.sum.facility / books.sum.machines);
  }
  if (result.site->plan->spec.cooling) {
    weather += fmt::format(", coolant up to {:.1f} C", books.warmest_coolant);
  }
  if (books.sum.litres > 0) {
    weather += fmt::format(", {} million litres of water", significant(books.sum.litres * 1e-6));
  }
  return out + labelled_line("  weather", kCampaignLabels, weather) + smoothing_lines(result);
}

std::string projections_text(const CampaignResult& result) {
  std::string text;
  for (const ProjectedMttf& of : result.projections) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} at {}", duration_text(of.mttf.base_units()), grouped(of.gpus));
  }
  return labelled_line("MTTF by rates", kCampaignLabels, text + " GPUs of this kind");
}

/// "2.77 GB/s on average, 239 TB a day": over the whole run, to all tiers.
std::string mean_writes_text(double checkpoints, Bytes each, double wall_s) {
  const double rate = checkpoints * each.base_units() / wall_s;
  return fmt::format("{} GB/s on average, {} TB a day", significant(rate / 1e9),
                     significant(rate * kCampaignDay / 1e12));
}

/// "3.15 GB/s while steps run, 0.2 % of what it sustains"
std::string writes_text(const CheckpointWrites& writes, Seconds interval) {
  const double rate = writes.rate(interval).base_units();
  std::string out = fmt::format("{} GB/s while steps run", significant(rate / 1e9));
  if (writes.sustained <= BytesPerSecond{}) return out;
  return out + fmt::format(", {} of what it sustains", run_percent(writes.share(interval)));
}

std::string checkpoint_lines(const CampaignResult& result) {
  const RunSummary& s = result.summary;
  const Bytes each = result.plan.checkpoint.all;
  std::string out =
      labelled_line("Checkpoints", kCampaignLabels,
                    fmt::format("{} a run of {} TB; {}", compact(s.checkpoints),
                                significant(each.base_units() / 1e12),
                                mean_writes_text(s.checkpoints, each, s.wall_s.mean)));
  for (std::size_t t = 0; t < result.plan.campaign.tiers.size(); ++t) {
    const CheckpointTier& tier = result.plan.campaign.tiers[t];
    std::string text =
        fmt::format("every {}; training waits {}", duration_text(tier.interval.base_units()),
                    duration_text(tier.blocks.base_units()));
    if (tier.finishes > Seconds{}) {
      text += fmt::format(", it is there {} later", duration_text(tier.finishes.base_units()));
    }
    if (tier.drag > 0) text += fmt::format(", {} slower meanwhile", run_percent(tier.drag));
    if (t < result.plan.writes.size()) {
      text += "; " + writes_text(result.plan.writes[t], tier.interval);
    }
    out += labelled_line("  to " + tier.name, kCampaignLabels, text);
  }
  return out;
}

std::string interruptions_text(const RunSummary& s) {
  if (!s.mttf.mean_s) {
    return fmt::format("none seen; with 95 % confidence at least {} apart",
                       duration_text(s.mttf.at_least_s));
  }
  return fmt::format(
      "{}, one every {}{}", with_interval(s.interruptions, 1, "a run"),
      duration_text(*s.mttf.mean_s),
      s.site_stops > 0 ? fmt::format("; {} of them stops without power", significant(s.site_stops))
                       : "");
}

/// "512 of h100_sxm5_80gb, 512 H100 equivalents by their dense 16-bit peak".
std::string equivalents_text(const CampaignResult& result) {
  const double gpus = result.work().gpus();
  return fmt::format(
      "{} of {}, {} by their dense 16-bit peak", grouped(gpus),
      result.scenario.pools.empty() ? result.scenario.node.gpu.name : std::string("several kinds"),
      counted(std::round(h100_equivalents(result.scenario, gpus)), "H100 equivalent"));
}

/// Phases of an iteration of reinforcement learning.
std::string iteration_text(const RlReport& of) {
  std::string out =
      fmt::format("{} {}, training {}, weights {}", has_teacher(of) ? "teacher" : "scores",
                  duration_text(of.scores.base_units()), duration_text(of.training.base_units()),
                  duration_text(of.weight_sync.base_units()));
  if (of.generation <= Seconds{}) return out;
  return fmt::format("generation {}, {}", duration_text(of.generation.base_units()), out);
}

std::string headline(const CampaignResult& result) {
  const RunSummary& s = result.summary;
  const Scenario& scenario = result.scenario;
  std::string out;
  if (const std::string cut = unfinished_text(result); !cut.empty()) {
    out += labelled_line("Not finished", kCampaignLabels, cut);
  }
  if (const std::string unsaved = unsaved_text(result); !unsaved.empty()) {
    out += labelled_line("Checkpoints", kCampaignLabels, unsaved);
  }
  out += labelled_line(
      "Goodput", kCampaignLabels,
      fmt::format("{} of wall time advances training (+- {}, {} trajectories)",
                  run_percent(s.goodput.mean, 2), run_percent(s.goodput.half_width, 2),
                  grouped(static_cast<double>(s.trajectories))));
  out +=
      labelled_line("Useful FLOPs", kCampaignLabels,
                    fmt::format("{} of the peak over the whole run (MFU {} x goodput)",
                                run_percent(result.mfu * s.goodput.mean), run_percent(result.mfu)));
  std::string low = duration_text(s.wall_s.low), high = duration_text(s.wall_s.high);
  if (low == high && s.wall_s.low < s.wall_s.high) {
    // Both ends would read the same.
    constexpr double kDay = 86'400;
    low = fmt::format("{:.6g}", s.wall_s.low / kDay);
    high = fmt::format("{:.6g} days", s.wall_s.high / kDay);
  }
  out += labelled_line("Wall time", kCampaignLabels,
                       s.wall_s.low < s.wall_s.high
                           ? fmt::format("{} (5th to 95th percentile: {} to {})",
                                         duration_text(s.wall_s.mean), low, high)
                           : duration_text(s.wall_s.mean));
  if (result.before() > Seconds{}) {
    out += labelled_line(
        "Done after", kCampaignLabels,
        fmt::format("{}, with {} before the first step: {}",
                    duration_text(result.done().base_units()),
                    duration_text(result.before().base_units()), waits_for_text(result)));
  }
  out += labelled_line("GPUs", kCampaignLabels, equivalents_text(result));
  const double steps = result.steps();
  out += labelled_line(
      "Trained", kCampaignLabels,
      fmt::format("{} {} of {}, {} tokens", compact(steps),
                  result.plan.iteration ? "iterations" : "steps", duration_text(result.plan.step_s),
                  compact(steps * result.tokens_per_step())));
  if (result.plan.iteration) {
    out += labelled_line("Iteration", kCampaignLabels, iteration_text(*result.plan.iteration));
  }
  if (result.interval) {
    out += labelled_line(fmt::format("{:.0f} % interval", 100 * kCoverage), kCampaignLabels,
                         interval_text(result.plan.step_s, *result.interval) +
                             "; the wall time is that of the median");
  }
  if (result.hash) {
    const int draws = result.hash->draws;
    out += labelled_line(draws == 1 ? "Hash" : fmt::format("{} hash draws", draws), kCampaignLabels,
                         run_hash_text(*result.hash));
  }
  out += labelled_line("Interruptions", kCampaignLabels, interruptions_text(s));
  if (!result.projections.empty()) out += projections_text(result);
  if (!result.plan.campaign.tiers.empty()) out += checkpoint_lines(result);
  if (result.plan.data_read_bytes_per_s > 0) {
    out += labelled_line(
        "Training data", kCampaignLabels,
        fmt::format("{} GB/s read{}", significant(result.plan.data_read_bytes_per_s / 1e9),
                    result.plan.data_speed < 1
                        ? fmt::format("; training {} slower for it",
                                      run_percent(1 - result.plan.data_speed))
                        : ""));
  }
  if (result.plan.data) {
    out += labelled_line("Dataset", kCampaignLabels, data_words(*result.plan.data));
  }
  if (const std::optional<double> rent = result.rent_usd()) {
    out += labelled_line(
        "Price", kCampaignLabels,
        fmt::format(
            "{} USD to rent {} GPU-hours at {:.2f}{}{}{}", compact(*rent),
            compact(result.held_gpu_hours()), *scenario.usd_per_gpu_hour,
            reserved_nodes(result.plan.campaign.spares) > 0 ? ", with those of hot spares" : "",
            instead_of_owning(result), and_storage(result, *rent)));
  }
  if (const std::optional<double> rent = result.rent_usd()) {
    const double used = *scenario.usd_per_gpu_hour * result.gpu_hours();
    out += labelled_line("  lost", kCampaignLabels,
                         fmt::format("{} USD of it buys no training",
                                     compact(*rent - used * result.summary.shares[0])));
  }
  if (result.bill) out += bill_lines(result);
  if (result.site) out += site_lines(result);
  return out;
}

std::string books(const RunSummary& summary, const TextStyle& style) {
  std::string out = style.bold("Where the wall time goes") + "\n";
  for (std::size_t b = 0; b < run_bucket_names().size(); ++b) {
    out += fmt::format(
        "  {:<44}{:>8}  {:>9}  {}\n", run_bucket_names()[b].words, part_percent(summary.shares[b]),
        duration_text(summary.shares[b] * summary.wall_s.mean), bar(summary.shares[b], 34, style));
    out.erase(out.find_last_not_of(" \n") + 1);
    out += "\n";
  }
  return out;
}

std::string causes(const RunSummary& summary, const TextStyle& style) {
  TextTable table({{"cause", Align::left}, {"a run"}, {"cost each"}, {"of wall time"}});
  std::vector<const ModeSummary*> modes;
  modes.reserve(summary.modes.size());
  for (const ModeSummary& mode : summary.modes) modes.push_back(&mode);
  std::ranges::stable_sort(modes, std::ranges::greater{}, &ModeSummary::cost_s);
  for (const ModeSummary* mode : modes) {
    const double each = mode->failures > 0 ? mode->cost_s / mode->failures : 0;
    table.add({mode->name, significant(mode->failures), duration_text(each),
               run_percent(mode->cost_s / summary.wall_s.mean, 2)});
  }
  const std::string more = more_failures_text(summary);
  return table.text(style) + (more.empty() ? "" : wrap(more, kTextColumns, 0) + "\n");
}

std::string optimum_text(const IntervalOptimum& optimum, const CheckpointWrites& writes,
                         const TextStyle& style) {
  TextTable table({{"checkpoint interval", Align::left},
                   {"every"},
                   {"goodput"},
                   {"+-"},
                   {"GB/s"},
                   {"TB a day"},
                   {"of the storage"}});
  const auto add = [&](const char* name, const IntervalPoint& point) {
    const double rate = writes.rate(point.interval).base_units();
    table.add(
        {name, duration_text(point.interval.base_units()), run_percent(point.goodput, 2),
         run_percent(point.half_width, 2), significant(rate / 1e9),
         significant(rate * kCampaignDay / 1e12),
         writes.sustained > BytesPerSecond{} ? run_percent(writes.share(point.interval)) : "-"});
  };
  add("best simulated", optimum.best);
  add("as given", optimum.given);
  add("Young 1974", optimum.young);
  add("Daly 2006", optimum.daly);
  std::string out =
      table.text(style) + "  GB/s, TB a day: while steps run; a recovery writes nothing.\n";
  if (optimum.limited) {
    out +=
        "  " +
        wrap(fmt::format("Shorter intervals than {} have more goodput, but write more than {} "
                         "of what the storage sustains (run.checkpoint.storage_share).",
                         duration_text(optimum.least.base_units()), run_percent(writes.most_share)),
             98, 2) +
        "\n";
  }
  return out;
}

}  // namespace

std::string run_hash_text(const HashAnswer& hash) {
  if (hash.draws == 1) return one_draw_text(hash);
  const HashBand &wall = hash.bands[1], &goodput = hash.bands[2];
  return fmt::format("a step takes {}; wall time {} to {}, goodput {} to {}",
                     hash_text(hash.bands[0]), duration_text(wall.least.value),
                     duration_text(wall.most.value), run_percent(goodput.least.value, 2),
                     run_percent(goodput.most.value, 2));
}

std::string before_text(const CampaignResult& result) {
  if (result.before() <= Seconds{}) return {};
  return fmt::format(", of which {} before the first step",
                     duration_text(result.before().base_units()));
}

std::string waits_for_text(const CampaignResult& result) {
  const Seconds staged = result.plan.data ? result.plan.data->begins : Seconds{};
  if (!result.fleet) return "staging of its dataset";
  if (staged <= Seconds{}) return "there are no machines for the job before";
  if (staged >= result.fleet->begins) {
    return "staging of its dataset, while machines that are there wait and are paid for";
  }
  return fmt::format("there are no machines for the job before; its dataset is staged in {}",
                     duration_text(staged.base_units()));
}

std::string unfinished_text(const CampaignResult& result) {
  const Campaign& campaign = result.plan.campaign;
  const auto all = static_cast<double>(result.summary.trajectories);
  const double left = std::round(all * (1 - result.summary.finished));
  if (campaign.horizon > 0 || left == 0) return {};
  return fmt::format(
      "{} of {} runs {} not done after {}, {} times what their work takes, and {} cut off there; "
      "wall time, goodput, energy and money are those up to the cut",
      grouped(left), grouped(all), left == 1 ? "is" : "are",
      duration_text(kGivenUpAfter * campaign.work.base_units()), kGivenUpAfter,
      left == 1 ? "is" : "are");
}

std::string unsaved_text(const CampaignResult& result) {
  const bool stopped = result.summary.interruptions.mean > 0;
  if (!stopped || !result.plan.campaign.tiers.empty()) return {};
  return "none: every failure starts the run again (run.checkpoint)";
}

std::string more_failures_text(const RunSummary& s) {
  constexpr double kNoticed = 1.01;
  double failures = 0;
  for (const ModeSummary& mode : s.modes) failures += mode.failures;
  const double stops = s.interruptions.mean - s.site_stops;
  if (failures <= kNoticed * stops) return {};
  return fmt::format(
      "{} failures a run make {} interruptions{}: the others come while the job stands already, or "
      "only slow it.",
      significant(failures), significant(stops),
      s.site_stops > 0 ? fmt::format(", beside {} stops without power", significant(s.site_stops))
                       : "");
}

std::string campaign_table(const CampaignResult& result, const TextStyle& style) {
  const Scenario& scenario = result.scenario;
  std::string out =
      style.bold(fmt::format("{} on {}, {}{}{}", scenario.job.model.name,
                             counted(result.work().gpus(), "GPU"),
                             duration_text(result.done().base_units()), before_text(result),
                             unfinished_text(result).empty() ? "" : ", not finished")) +
      "\n";
  if (result.power) {
    const std::string warning = limit_warning(*result.power, *scenario.power);
    if (!warning.empty()) out += labelled_line("Power limit", kCampaignLabels, warning);
  }
  if (!scenario.about.empty()) out += wrap(scenario.about, 100, 0) + "\n";
  out += "\n" + headline(result) + "\n" + books(result.summary, style) + "\n" +
         causes(result.summary, style);
  if (result.fleet) {
    out +=
        "\n" + style.bold("Machines and money, from the start of the plan") + "\n" +
        purchase_text(*result.fleet, lot_prices(*result.fleet, Seconds{result.summary.wall_s.mean}),
                      months_of(result), style);
  }
  if (result.plan.data) {
    const DataPlan& data = *result.plan.data;
    const std::string text = data_text(data, result.data_until(), style);
    if (!text.empty()) {
      out += "\n" + style.bold("The dataset, from the start of its staging") + "\n" + text;
    }
  }
  if (result.optimum) {
    out += "\n" + optimum_text(*result.optimum, result.plan.writes.front(), style);
  }
  if (result.interrupted) out += "\nInterrupted: what was done until then.\n";
  if (result.plan.assumptions.empty() && scenario.assumptions.empty()) return out;
  out += "\nAssumed\n";
  for (const auto* list : {&scenario.assumptions, &result.plan.assumptions}) {
    for (const std::string& assumed : *list)
      out += "  - " + wrap(assumed, kTextColumns, 4, 4) + "\n";
  }
  return out;
}

}  // namespace lockstep
