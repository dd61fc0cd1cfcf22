// The power block of `lockstep run`: table and JSON.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/lockstep/run_facts.hpp"
#include "tools/lockstep/run_result.hpp"
#include "tools/lockstep/site_limit.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kJoulesPerKwh = 3.6e6;
constexpr std::size_t kSharesShown = 6;

double watts(Watts w) { return twelve_digits(w.base_units()); }

std::string energy_text(Joules e) {
  const double kwh = e.base_units() / kJoulesPerKwh;
  if (kwh >= 1e6) return significant(kwh * 1e-6) + " GWh";
  if (kwh >= 1e3) return significant(kwh * 1e-3) + " MWh";
  if (kwh >= 1) return significant(kwh) + " kWh";
  return significant(e.base_units() * 1e-3) + " kJ";
}

Json meter_json(const MeterReading& meter) {
  return {{"low_w", watts(meter.low)},
          {"high_w", watts(meter.high)},
          {"swing_w", watts(meter.high - meter.low)}};
}

Json series_json(const PowerSeries& series) {
  return {{"mean_w", watts(mean_power(series))},
          {"peak_w", watts(peak_power(series))},
          {"trough_w", watts(trough_power(series))}};
}

Json shares_json(const StepPower& power) {
  Json shares = Json::array();
  const double all = power.energy().base_units();
  for (const PowerShare& share : power.shares) {
    if (share.energy <= Joules{}) continue;
    shares.push_back({{"what", share.name},
                      {"joules", twelve_digits(share.energy.base_units())},
                      {"share", twelve_digits(share.energy.base_units() / all)}});
  }
  return shares;
}

Json owned_json(const CostReport& c) {
  return {{"gpus_usd", twelve_digits(c.gpus_usd)},
          {"nodes_usd", twelve_digits(c.nodes_usd)},
          {"network_usd", twelve_digits(c.network_usd)},
          {"building_usd", twelve_digits(c.building_usd)},
          {"energy_usd", twelve_digits(c.energy_usd)},
          {"people_usd", twelve_digits(c.people_usd)},
          {"hosting_usd", twelve_digits(c.hosting_usd)},
          {"capital_usd", twelve_digits(c.capital.total_usd())},
          {"capital_machines_usd", twelve_digits(c.capital.machines_usd)},
          {"capital_network_usd", twelve_digits(c.capital.network_usd)},
          {"capital_building_usd", twelve_digits(c.capital.building_usd)},
          {"write_off_usd", twelve_digits(c.write_off_usd())},
          {"running_usd", twelve_digits(c.running_usd())},
          {"total_usd", twelve_digits(c.total_usd())},
          {"usd_per_trillion_tokens", twelve_digits(c.usd_per_trillion_tokens)},
          {"usd_per_eflop", twelve_digits(c.usd_per_eflop)}};
}

/// Without prices there is no money in it, and which of them are missing instead.
Json cost_json(const EnergyBill& bill, const CostSpec& prices) {
  const CostReport& c = bill.cost;
  Json out{{"of", bill.whole_training ? "training" : "step"},
           {"seconds", twelve_digits(bill.usage.time.base_units())},
           {"energy_j", twelve_digits(bill.usage.energy.base_units())},
           {"energy_kwh", twelve_digits(bill.usage.energy.base_units() / kJoulesPerKwh)},
           {"tonnes_co2", twelve_digits(c.tonnes_co2)}};
  if (has_prices(prices)) {
    out.update(owned_json(c));
  } else {
    out["missing_prices"] = missing_prices(prices);
  }
  if (c.cloud_usd) out["cloud_usd"] = twelve_digits(*c.cloud_usd);
  return out;
}

/// "cooling_and_distribution" -> "cooling and distribution".
std::string words(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', ' ');
  if (text.starts_with("gpu ")) text.replace(0, 4, "GPU ");
  return text;
}

std::string shares_text(const StepPower& power) {
  std::vector<PowerShare> shares = power.shares;
  std::ranges::stable_sort(
      shares, [](const PowerShare& a, const PowerShare& b) { return a.energy > b.energy; });
  const double all = power.energy().base_units();
  std::string text;
  for (std::size_t i = 0; i < std::min(kSharesShown, shares.size()); ++i) {
    text += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", words(shares[i].name),
                        100 * (shares[i].energy.base_units() / all));
  }
  return text;
}

std::string bill_text(const EnergyBill& bill) {
  const CostReport& c = bill.cost;
  std::string text = fmt::format("{}: {}", bill.whole_training ? "the training" : "a step",
                                 energy_text(bill.usage.energy));
  if (c.tonnes_co2 > 0) text += fmt::format(", {} t of CO2", compact(c.tonnes_co2));
  if (c.total_usd() > 0) {
    text += fmt::format("; {} USD (written off {}, energy {}, people and hosting {})",
                        compact(c.total_usd()), compact(c.write_off_usd()), compact(c.energy_usd),
                        compact(c.people_usd + c.hosting_usd));
    if (c.usd_per_trillion_tokens > 0) {
      text += fmt::format(", {} USD per trillion tokens, {} USD per EFLOP",
                          compact(c.usd_per_trillion_tokens), significant(c.usd_per_eflop));
    }
  }
  return text;
}

}  // namespace

std::string capital_text(const CapitalReport& capital) {
  return fmt::format("{} USD to be spent (machines {}, network {}, building {})",
                     compact(capital.total_usd()), compact(capital.machines_usd),
                     compact(capital.network_usd), compact(capital.building_usd));
}

EnergyBill energy_bill(const RunResult& result) {
  const StepPower& power = *result.power;
  const CostSpec& prices = result.scenario.power->cost;
  EnergyBill bill;
  bill.whole_training = result.scenario.training_tokens.has_value();
  const double steps =
      bill.whole_training ? *result.scenario.training_tokens / result.report.tokens_per_step : 1.0;
  const Watts mean = mean_power(power.facility);
  const double kw = mean.base_units() * 1e-3;
  bill.usage = {.time = steps * Seconds{result.report.step_s},
                .energy = steps * power.energy(),
                .energy_usd = 0,
                .grams = 0,
                .tokens = steps * result.report.tokens_per_step,
                .model_flops = steps * Flops{result.report.model_flops_full}};
  constexpr double kHour = 3600;
  bill.usage.energy_usd = kw * prices.usd_per_kwh.integral(Seconds{}, bill.usage.time) / kHour;
  bill.usage.grams = kw * prices.grams_per_kwh.integral(Seconds{}, bill.usage.time) / kHour;
  bill.cost = cost_of(prices, power.holdings, bill.usage);
  return bill;
}

nlohmann::ordered_json power_json(const RunResult& result) {
  const StepPower& power = *result.power;
  const Scenario& s = result.scenario;
  Json stages = Json::array();
  for (const StagePower& stage : power.stages) {
    stages.push_back({{"stage", stage.stage},
                      {"gpu_mean_w", watts(stage.mean)},
                      {"gpu_peak_w", watts(stage.peak)}});
  }
  Json node = series_json(power.node);
  node["meter"] = meter_json(power.node_meter);
  Json facility = series_json(power.facility);
  facility["meter"] = meter_json(power.facility_meter);
  facility["pue"] = twelve_digits(power.pue);
  facility["ramp_w_per_s"] = twelve_digits(power.ramp_w_per_s);
  facility["ramp_mw_per_s"] = twelve_digits(power.ramp_w_per_s * 1e-6);  // as it was called before
  const Joules energy = power.energy();
  Json out{{"chassis", s.node.chassis->name},
           {"facility_preset", s.power->facility.name},
           {"outside_celsius", twelve_digits(s.power->outside_celsius)},
           {"meter_s", twelve_digits(s.power->meter.base_units())},
           {"ramp_window_s", twelve_digits(s.power->ramp_window.base_units())},
           {"gpu",
            {{"mean_w", watts(power.gpu_mean)},
             {"peak_w", watts(power.gpu_peak)},
             {"trough_w", watts(power.gpu_trough)},
             {"limit_w", watts(s.node.gpu.power_limit)},
             {"nameplate_w", watts(s.power->gpu_nameplate)}}},
           {"gpu_nameplate_w", watts(power.gpu_nameplate)},
           {"node", std::move(node)},
           {"rack_mean_w", watts(s.node.chassis->nodes_per_rack * mean_power(power.node))},
           {"fabric_w", watts(power.fabric.total())},
           {"facility", std::move(facility)},
           {"energy_per_step_j", twelve_digits(energy.base_units())},
           {"joules_per_token", twelve_digits(energy.base_units() / result.report.tokens_per_step)},
           {"levels",
            {{"training_w", watts(power.levels.training.facility)},
             {"waiting_w", watts(power.levels.waiting.facility)},
             {"starting_w", watts(power.levels.starting.facility)},
             {"idle_w", watts(power.levels.idle.facility)}}},
           {"shares", shares_json(power)},
           {"stages", std::move(stages)},
           {"bill", cost_json(energy_bill(result), s.power->cost)}};
  if (power.site_nodes) {
    out["site_limit_w"] = watts(*s.power->site_limit);
    out["site_nodes"] = *power.site_nodes;
  }
  return out;
}

std::vector<Fact> power_facts(const RunResult& result) {
  const StepPower& power = *result.power;
  const Scenario& s = result.scenario;
  const auto range = [](const PowerSeries& series) {
    return fmt::format("{} (from {} to {})", power_text(mean_power(series)),
                       power_text(trough_power(series)), power_text(peak_power(series)));
  };
  const auto read = [&](const MeterReading& meter) {
    return fmt::format("; a meter of {} reads {} to {}", duration_text(s.power->meter.base_units()),
                       power_text(meter.low), power_text(meter.high));
  };
  std::vector<Fact> out;
  const auto line = [&out](std::string label, std::string text) {
    out.push_back({std::move(label), {}, std::move(text)});
  };
  line("GPU", fmt::format("{} (from {} to {}) of {}", power_text(power.gpu_mean),
                          power_text(power.gpu_trough), power_text(power.gpu_peak),
                          power_text(s.node.gpu.power_limit)));
  line("Node", range(power.node) + read(power.node_meter));
  line("Facility",
       range(power.facility) + read(power.facility_meter) +
           fmt::format("; PUE {:.3f}, network {}", power.pue, power_text(power.fabric.total())));
  line("Nameplate",
       fmt::format("{} of GPUs by their datasheet; the site draws {}",
                   power_text(power.gpu_nameplate), power_text(mean_power(power.facility))));
  line("Ramp", fmt::format("{} MW/s over {}", significant(power.ramp_w_per_s * 1e-6),
                           duration_text(s.power->ramp_window.base_units())));
  line("Energy",
       fmt::format("{} a step, {} J per token", energy_text(power.energy()),
                   significant(power.energy().base_units() / result.report.tokens_per_step)));
  line("Goes into", shares_text(power));
  const EnergyBill bill = energy_bill(result);
  line("Bill", bill_text(bill));
  if (bill.cost.capital.total_usd() > 0) line("Capital", capital_text(bill.cost.capital));
  if (power.site_nodes) {
    line("Site", fmt::format("{} nodes ({} GPUs) fit under {}", grouped(*power.site_nodes),
                             grouped(static_cast<double>(*power.site_nodes) * s.node.gpus),
                             power_text(*s.power->site_limit)));
  }
  return out;
}

}  // namespace lockstep
