// The power block of `lockstep run` for people.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "models/base/number_text.hpp"
#include "sim/answer/site_limit.hpp"
#include "tools/views/run/run_facts.hpp"
#include "tools/views/run/run_result.hpp"

namespace lockstep {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;
constexpr std::size_t kSharesShown = 6;

/// "cooling_and_distribution" -> "cooling and distribution".
std::string words(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', ' ');
  if (text.starts_with("gpu ")) text.replace(0, 4, "GPU ");
  if (text == "cpus") text = "CPUs";
  if (text == "nics") text = "NICs";
  return text;
}

/// The largest shares, and what is left of all energy: of smaller ones, and of nodes in reserve.
std::string shares_text(const StepPower& power) {
  std::vector<PowerShare> shares = power.shares;
  std::ranges::stable_sort(
      shares, [](const PowerShare& a, const PowerShare& b) { return a.energy > b.energy; });
  const double all = power.energy().base_units();
  std::string text;
  double left = 100;
  for (std::size_t i = 0; i < std::min(kSharesShown, shares.size()); ++i) {
    const double part = 100 * (shares[i].energy.base_units() / all);
    left -= part;
    text += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", words(shares[i].name), part);
  }
  constexpr double kPrinted = 0.05;
  return left < kPrinted ? text : text + fmt::format(", all else {:.1f} %", left);
}

/// "700 W", "700 W and 400 W".
std::string limits_text(const Scenario& s) {
  std::string text;
  for (std::size_t pool = 0; pool < s.pool_count(); ++pool) {
    text += (pool == 0 ? "" : " and ") + power_text(s.node_of(pool).gpu.power_limit);
  }
  return text;
}

std::string bill_text(const EnergyBill& bill, const CostSpec& prices) {
  const CostReport& c = bill.cost;
  std::string text = fmt::format("{}: {}", bill.whole_training ? "the training" : "a step",
                                 energy_text(bill.usage.energy));
  if (c.tonnes_co2) text += fmt::format(", {} t of CO2", significant(*c.tonnes_co2));
  if (!prices_machines(prices) && has_prices(prices)) {
    return text +
           fmt::format("; {} USD, {}", compact(c.total_usd()), words_of(MoneyOf::partial, &prices));
  }
  if (c.total_usd() > 0) {
    text += fmt::format("; {} USD owned (written off {}, energy {}, people and hosting {})",
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

std::string energy_text(Joules e) {
  const double kwh = e.base_units() / kJoulesPerKwh;
  if (kwh >= 1e6) return significant(kwh * 1e-6) + " GWh";
  if (kwh >= 1e3) return significant(kwh * 1e-3) + " MWh";
  if (kwh >= 1) return significant(kwh) + " kWh";
  return significant(e.base_units() * 1e-3) + " kJ";
}

std::string capital_text(const CapitalReport& capital) {
  return fmt::format("{} USD to be spent (machines {}, network {}, building {})",
                     compact(capital.total_usd()), compact(capital.machines_usd),
                     compact(capital.network_usd), compact(capital.building_usd));
}

std::vector<Fact> power_facts(const RunResult& result) { return power_facts(powered_step(result)); }

std::vector<Fact> power_facts(const PoweredStep& step) {
  const StepPower& power = step.power;
  const Scenario& s = step.scenario;
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
  line("GPU",
       fmt::format("{} (from {} to {}) of {}", power_text(power.gpu_mean),
                   power_text(power.gpu_trough), power_text(power.gpu_peak), limits_text(s)));
  for (std::size_t i = 0; i < power.pools.size(); ++i) {
    line(i == 0 ? "By kind" : "",
         fmt::format("{}: {} a GPU, {} a node", s.pools[i].node.name,
                     power_text(power.pools[i].gpu), power_text(power.pools[i].node)));
  }
  line("Node", range(power.node) + read(power.node_meter));
  line("Facility",
       range(power.facility) + read(power.facility_meter) +
           fmt::format("; PUE {:.3f}, network {}", power.pue, power_text(power.fabric.total())));
  line("Nameplate",
       fmt::format("{} of GPUs by their datasheet; the site draws {}",
                   power_text(power.gpu_nameplate), power_text(mean_power(power.facility))));
  line("Ramp", fmt::format("{} MW/s over {}", significant(power.ramp_w_per_s * 1e-6),
                           duration_text(s.power->ramp_window.base_units())));
  if (power.step_if_hidden) {
    line("",
         fmt::format("held to {} W/s a GPU: a step takes {}, {} if the wait for power is hidden",
                     significant(s.power->smoothing.ramp_w_per_s), duration_text(power.step_s),
                     duration_text(power.step_if_hidden->base_units())));
  }
  line("Energy", fmt::format("{} a step, {} J per token", energy_text(power.energy()),
                             significant(power.energy().base_units() / step.tokens)));
  line("Goes into", shares_text(power));
  const EnergyBill bill = energy_bill(step);
  // Without prices and CO2 a step's bill would be its energy once more.
  if (has_prices(s.power->cost)) {
    line("Bill", bill_text(bill, s.power->cost));
  } else if (bill.whole_training || bill.cost.tonnes_co2) {
    line("Energy used", bill_text(bill, s.power->cost));
  }
  if (bill.cost.capital.total_usd() > 0) line("Capital", capital_text(bill.cost.capital));
  if (power.site_nodes) {
    line("Site", fmt::format("{} ({}) fit under {}", counted(*power.site_nodes, "node"),
                             counted(static_cast<double>(*power.site_nodes) * s.node.gpus, "GPU"),
                             power_text(*s.power->site_limit)));
  }
  return out;
}

}  // namespace lockstep
