#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

using Powered = PoweredStep;

constexpr double kJoulesPerKwh = 3.6e6;

const FieldTable<MeterReading>& meter_fields() {
  using Of = MeterReading;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("low_w", "The least that the meter reads.", [](const Of& m) { return m.low; })
          .add("high_w", Better::less, "The most that it reads.",
               [](const Of& m) { return m.high; })
          .add("swing_w", Better::less, "Their difference.",
               [](const Of& m) { return m.high - m.low; });
  return fields;
}

template <class Get>
void add_series(FieldTable<Powered>& fields, Get series) {
  fields
      .add("mean_w", Better::less, "Mean over the step.",
           [series](const Powered& r) { return mean_power(series(r)); })
      .add("peak_w", Better::less, "The most at any instant.",
           [series](const Powered& r) { return peak_power(series(r)); })
      .add("trough_w", "The least at any instant.",
           [series](const Powered& r) { return trough_power(series(r)); });
}

const FieldTable<Powered>& gpu_fields() {
  static const FieldTable<Powered> fields =
      FieldTable<Powered>()
          .add("mean_w", Better::less, "Mean over GPUs and the step.",
               [](const Powered& r) { return r.power.gpu_mean; })
          .add("peak_w", Better::less, "The most of any GPU at any instant.",
               [](const Powered& r) { return r.power.gpu_peak; })
          .add("trough_w", "The least of any GPU at any instant.",
               [](const Powered& r) { return r.power.gpu_trough; })
          .add("limit_w", "Power limit of the card; of the first kind of node.",
               [](const Powered& r) { return r.scenario.node.gpu.power_limit; })
          .add("nameplate_w",
               "Power of the card by its datasheet; mean where there are several kinds.",
               [](const Powered& r) { return r.scenario.power->gpu_nameplate; });
  return fields;
}

const FieldTable<Powered>& node_fields() {
  static const FieldTable<Powered> fields = [] {
    FieldTable<Powered> out;
    add_series(out, [](const Powered& r) -> const PowerSeries& { return r.power.node; });
    out.object("meter", "What a meter of meter_s reads.", meter_fields(),
               [](const Powered& r) -> const MeterReading& { return r.power.node_meter; });
    return out;
  }();
  return fields;
}

const FieldTable<Powered>& facility_fields() {
  static const FieldTable<Powered> fields = [] {
    FieldTable<Powered> out;
    add_series(out, [](const Powered& r) -> const PowerSeries& { return r.power.facility; });
    out.object("meter", "What a meter of meter_s reads.", meter_fields(),
               [](const Powered& r) -> const MeterReading& { return r.power.facility_meter; })
        .add("pue", Better::less, "Power usage effectiveness: all power over that of machines.",
             [](const Powered& r) { return r.power.pue; })
        .add("ramp_w_per_s", Better::less, "Steepest change of power over ramp_window_s.",
             [](const Powered& r) { return r.power.ramp_w_per_s; })
        .old_value("ramp_mw_per_s", "ramp_w_per_s",
                   [](const Powered& r) { return r.power.ramp_w_per_s * 1e-6; });
    return out;
  }();
  return fields;
}

const FieldTable<PowerLevels>& level_fields() {
  using Of = PowerLevels;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("training_w", Better::less, "While steps go on.",
               [](const Of& l) { return l.training.facility; })
          .add("waiting_w", Better::less, "While the job stands still and its kernels spin.",
               [](const Of& l) { return l.waiting.facility; })
          .add("starting_w", Better::less, "While processes hold the cards and nothing runs.",
               [](const Of& l) { return l.starting.facility; })
          .add("idle_w", Better::less, "While nothing holds the cards.",
               [](const Of& l) { return l.idle.facility; });
  return fields;
}

struct ShareOfEnergy {
  std::string_view name;
  Joules energy;
  double share = 0;
};
std::vector<ShareOfEnergy> energy_shares(const Powered& r) {
  std::vector<ShareOfEnergy> out;
  const double all = r.power.energy().base_units();
  for (const PowerShare& share : r.power.shares) {
    if (share.energy <= Joules{}) continue;
    out.push_back({share.name, share.energy, share.energy.base_units() / all});
  }
  return out;
}
const FieldTable<ShareOfEnergy>& share_fields() {
  using Of = ShareOfEnergy;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("what", "The consumer.", [](const Of& s) { return s.name; })
          .add("energy_j", Better::less, "Its energy in a step.",
               [](const Of& s) { return s.energy; })
          .old_name("joules", "energy_j")
          .add("share", "Its share of the step's energy.", [](const Of& s) { return s.share; });
  return fields;
}

const FieldTable<StagePower>& stage_power_fields() {
  using Of = StagePower;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("stage", "Pipeline stage.", [](const Of& s) { return s.stage; })
          .add("gpu_mean_w", Better::less, "Mean of one of its GPUs.",
               [](const Of& s) { return s.mean; })
          .add("gpu_peak_w", Better::less, "The most of one of its GPUs.",
               [](const Of& s) { return s.peak; });
  return fields;
}

/// A bill, and whether there were prices for it.
struct PricedBill {
  EnergyBill bill;
  const CostSpec& prices;
};

/// Money is left out where no prices were given, and what is of the machines where they have none.
void add_money(FieldTable<PricedBill>& fields) {
  const auto priced = [](auto get) {
    return [get](const PricedBill& b) -> std::optional<double> {
      if (!has_prices(b.prices)) return std::nullopt;
      return get(b.bill.cost);
    };
  };
  const auto owning = [](auto get) {
    return [get](const PricedBill& b) -> std::optional<double> {
      if (!prices_machines(b.prices)) return std::nullopt;
      return get(b.bill.cost);
    };
  };
  using C = const CostReport&;
  fields.add("gpus_usd", Better::less, "GPUs, written off.", owning([](C c) { return c.gpus_usd; }))
      .add("nodes_usd", Better::less, "Servers around them, written off.",
           owning([](C c) { return c.nodes_usd; }))
      .add("network_usd", Better::less, "Network, written off.",
           priced([](C c) { return c.network_usd; }))
      .add("building_usd", Better::less, "Building with its power and cooling, written off.",
           priced([](C c) { return c.building_usd; }))
      .add("energy_usd", Better::less, "Energy by the tariff of its hours.",
           priced([](C c) { return c.energy_usd; }))
      .add("people_usd", Better::less, "People.", priced([](C c) { return c.people_usd; }))
      .add("hosting_usd", Better::less, "Hosting.", priced([](C c) { return c.hosting_usd; }))
      .add("capital_usd", Better::less, "What has to be spent before the machines can run.",
           owning([](C c) { return c.capital.total_usd(); }))
      .add("capital_machines_usd", Better::less, "Of it machines.",
           owning([](C c) { return c.capital.machines_usd; }))
      .add("capital_network_usd", Better::less, "Of it network.",
           priced([](C c) { return c.capital.network_usd; }))
      .add("capital_building_usd", Better::less, "Of it building.",
           priced([](C c) { return c.capital.building_usd; }))
      .add("write_off_usd", Better::less, "What all of it loses in value meanwhile.",
           owning([](C c) { return c.write_off_usd(); }))
      .add("running_usd", Better::less, "What is paid meanwhile: energy, people, hosting.",
           priced([](C c) { return c.running_usd(); }))
      .add("owned_usd", Better::less, "Cost of owning: write_off_usd and running_usd.",
           owning([](C c) { return c.total_usd(); }))
      .add("owned_usd_per_trillion_tokens", Better::less, "Cost of owning per 1e12 tokens.",
           owning([](C c) { return c.usd_per_trillion_tokens; }))
      .add("owned_usd_per_eflop", Better::less, "Cost of owning per 1e18 model FLOP.",
           owning([](C c) { return c.usd_per_eflop; }))
      .old_name("total_usd", "owned_usd")
      .old_name("usd_per_trillion_tokens", "owned_usd_per_trillion_tokens")
      .old_name("usd_per_eflop", "owned_usd_per_eflop");
}

const FieldTable<PricedBill>& bill_fields() {
  using Of = PricedBill;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("of",
            "What the bill is of: \"training\" where the scenario says training.tokens, "
            "else \"step\".",
            [](const Of& b) -> std::string_view {
              return b.bill.whole_training ? "training" : "step";
            })
        .add("seconds", Better::less, "How long it takes.",
             [](const Of& b) { return b.bill.usage.time; })
        .add("energy_j", Better::less, "Energy at the site's meter.",
             [](const Of& b) { return b.bill.usage.energy; })
        .old_value("energy_kwh", "energy_j",
                   [](const Of& b) { return b.bill.usage.energy.base_units() / kJoulesPerKwh; })
        .add("tonnes_co2", Better::less,
             "Carbon dioxide that the grid emits for it; where its intensity is given.",
             [](const Of& b) { return b.bill.cost.tonnes_co2; });
    add_money(out);
    out.add("missing_prices",
            "Keys of prices that were not given, where the machines have none: nothing is owned "
            "then.",
            [](const Of& b) -> std::optional<std::vector<std::string>> {
              if (prices_machines(b.prices)) return std::nullopt;
              return missing_prices(b.prices);
            })
        .add("cloud_usd", Better::less, "What a cloud asks for the same.",
             [](const Of& b) { return b.bill.cost.cloud_usd; });
    return out;
  }();
  return fields;
}

void add_site(FieldTable<Powered>& fields) {
  fields
      .add("chassis", "Server around the GPUs; the first where there are several kinds of node.",
           [](const Powered& r) { return r.scenario.node.chassis->name; })
      .add("facility_preset", "Site around the machines.",
           [](const Powered& r) { return r.scenario.power->facility.name; })
      .add("outside_celsius", "Temperature outside.",
           [](const Powered& r) { return r.scenario.power->outside_celsius; })
      .add("meter_s", "Window of the meters.",
           [](const Powered& r) { return r.scenario.power->meter; })
      .add("ramp_window_s", "Window of the ramp.",
           [](const Powered& r) { return r.scenario.power->ramp_window; });
}

/// `stages`: with what each pipeline stage draws.
FieldTable<Powered> power_table(bool stages) {
  constexpr std::identity itself;
  FieldTable<Powered> out;
  add_site(out);
  out.object("gpu", "A GPU.", gpu_fields(), itself)
      .add("gpu_nameplate_w", "All GPUs by their datasheet.",
           [](const Powered& r) { return r.power.gpu_nameplate; })
      .object("node",
              "A node at its power supply's input; the mean one where there are several kinds.",
              node_fields(), itself)
      .add("rack_mean_w", Better::less,
           "A full rack, mean over the step; of the first kind of node.",
           [](const Powered& r) {
             const Watts node =
                 r.power.pools.empty() ? mean_power(r.power.node) : r.power.pools[0].node;
             return r.scenario.node.chassis->nodes_per_rack * node;
           })
      .add("fabric_w", Better::less, "The network between nodes.",
           [](const Powered& r) { return r.power.fabric.total(); })
      .object("facility", "The whole site.", facility_fields(), itself)
      .add("step_if_hidden_s", Better::less,
           "The step if all that power.smoothing.ramp_w_per_s costs is hidden behind waits; step_s "
           "holds none of it hidden. Where it costs time.",
           [](const Powered& r) { return r.power.step_if_hidden; })
      .add("energy_per_step_j", Better::less, "Energy of a step at the site's meter.",
           [](const Powered& r) { return r.power.energy(); })
      .add("joules_per_token", Better::less, "Energy per token at the site's meter.",
           [](const Powered& r) { return r.power.energy().base_units() / r.tokens; })
      .object("levels", "What the site draws in each state of a run.", level_fields(),
              [](const Powered& r) -> const PowerLevels& { return r.power.levels; })
      .list("shares", "Where the energy of a step goes.", share_fields(), energy_shares);
  if (stages) {
    out.list("stages", "Each pipeline stage.", stage_power_fields(),
             [](const Powered& r) -> const auto& { return r.power.stages; });
  }
  out.object("bill", "Energy, carbon and money.", bill_fields(),
             [](const Powered& r) { return PricedBill{energy_bill(r), r.scenario.power->cost}; })
      .add("site_limit_w", "Power limit of the site.",
           [](const Powered& r) {
             return r.power.site_nodes ? r.scenario.power->site_limit : std::nullopt;
           })
      .add("site_nodes", Better::more, "Nodes that fit under it.",
           [](const Powered& r) { return r.power.site_nodes; });
  return out;
}

}  // namespace

const FieldTable<PhaseOfEnergy>& phase_power_fields() {
  using Of = PhaseOfEnergy;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("phase", "What its GPUs do.", [](const Of& p) { return p.phase->name; })
          .add("gpu_s", Better::less, "GPU-seconds of it in a step.",
               [](const Of& p) { return p.phase->gpu_seconds; })
          .add("gpu_mean_w", Better::less, "Mean of one of its GPUs.",
               [](const Of& p) { return p.phase->gpu_mean(); })
          .add("gpu_energy_j", Better::less, "Energy of its GPUs.",
               [](const Of& p) { return p.phase->gpus; })
          .add("energy_j", Better::less,
               "Energy at the site's meter: of its GPUs through their supplies, and of the rest of "
               "the site by GPU-seconds.",
               [](const Of& p) { return p.phase->site; })
          .add("share", Better::less, "Its share of the step's energy.",
               [](const Of& p) { return p.phase->site / p.all; });
  return fields;
}

std::vector<PhaseOfEnergy> phases_of_energy(const std::vector<RlPhasePower>& phases) {
  Joules all;
  for (const RlPhasePower& phase : phases) all += phase.site;
  std::vector<PhaseOfEnergy> out;
  for (const RlPhasePower& phase : phases) out.push_back({&phase, all});
  return out;
}

const FieldTable<PoweredStep>& power_fields() {
  static const FieldTable<Powered> fields = power_table(true);
  return fields;
}

const FieldTable<PoweredIteration>& iteration_power_fields() {
  using Of = PoweredIteration;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .all_of(power_table(false), [](const Of& a) -> const Powered& { return a.step; })
          .list("phases", "Each phase; their energies add up to energy_per_step_j.",
                phase_power_fields(), [](const Of& a) { return phases_of_energy(a.phases); });
  return fields;
}

nlohmann::ordered_json power_json(const RunResult& result) {
  return Value(power_fields().values(powered_step(result))).json();
}

PoweredStep powered_step(const RunResult& result) {
  return {.scenario = result.scenario,
          .power = *result.power,
          .step_s = result.report.step_s,
          .tokens = result.report.tokens_per_step,
          .model_flops = Flops{result.report.model_flops_full}};
}

EnergyBill energy_bill(const RunResult& result) { return energy_bill(powered_step(result)); }

EnergyBill energy_bill(const PoweredStep& step) {
  const StepPower& power = step.power;
  const CostSpec& prices = step.scenario.power->cost;
  EnergyBill bill;
  bill.whole_training = step.scenario.training_tokens.has_value();
  const double steps = bill.whole_training ? *step.scenario.training_tokens / step.tokens : 1.0;
  const Watts mean = mean_power(power.facility);
  const double kw = mean.base_units() * 1e-3;
  bill.usage = {.time = steps * Seconds{step.step_s},
                .energy = steps * power.energy(),
                .energy_usd = 0,
                .grams = {},
                .tokens = steps * step.tokens,
                .model_flops = steps * step.model_flops};
  constexpr double kHour = 3600;
  bill.usage.energy_usd = kw * prices.usd_per_kwh.integral(Seconds{}, bill.usage.time) / kHour;
  if (prices.grams_per_kwh) {
    bill.usage.grams = kw * prices.grams_per_kwh->integral(Seconds{}, bill.usage.time) / kHour;
  }
  bill.cost = cost_of(prices, power.holdings, bill.usage);
  return bill;
}

}  // namespace lockstep
