#include "sim/cluster/queue_bill.hpp"

#include <algorithm>

#include "sim/cluster/queue_draws.hpp"
#include "sim/power/run_power.hpp"

namespace lockstep {
namespace {

constexpr double kHour = 3600;

PowerSeries facility_series(const QueueResult& result) {
  PowerSeries out;
  const Seconds bin{result.series.bin_s};
  const Seconds end = to_seconds(result.end);
  for (const double watts : result.series.facility_w) {
    const Seconds length = std::min(bin, end - out.end);
    if (length <= Seconds{}) break;
    out.add(length, Watts{watts});
  }
  return out;
}

}  // namespace

std::optional<QueuePower> queue_power(const QueueSpec& spec, const QueueResult& result) {
  if (!spec.power) return std::nullopt;
  const QueueDraws draws(spec);
  const GivenDraw given = given_draw(spec);
  QueuePower out{.given_gpu = given.assumed,
                 .facility = facility_series(result),
                 .peak = result.most_drawn,
                 .pue = draws.pue(),
                 .energy = {},
                 .least = {},
                 .most = {},
                 .owned = {}};
  out.energy = energy(out.facility);
  const Seconds held{result.given.gpu_seconds()};
  out.least = out.energy;
  out.most = out.energy;
  if (!spec.gpu_draw) {
    out.least += draws.facility_beyond(given.least) * held;
    out.most += draws.facility_beyond(given.most) * held;
  }
  const Holdings holdings{.gpus = static_cast<double>(spec.cluster.gpus()),
                          .nodes = static_cast<double>(spec.cluster.nodes),
                          .ports_100g = draws.ports_100g(),
                          .facility_peak = out.peak};
  const CostSpec& prices = spec.power->cost;
  out.owned = cost_of(prices, holdings, run_usage(out.facility, prices, 0, Flops{}));
  return out;
}

std::optional<double> QueueBill::usd() const {
  if (!of) return std::nullopt;
  return *of == MoneyOf::owned ? owned_usd : *of == MoneyOf::rent ? rent_usd : partial_usd;
}

std::optional<double> QueueBill::usd_per_held_gpu_hour() const {
  if (!of || held_gpu_hours <= 0) return std::nullopt;
  return *usd() / held_gpu_hours;
}

std::string billed_words(const QueueSpec& spec, const QueueBill& bill) {
  return bill.of ? words_of(*bill.of, spec.power ? &spec.power->cost : nullptr) : std::string();
}

QueueBill queue_bill(const QueueSpec& spec, const QueueResult& result,
                     const std::optional<QueuePower>& power) {
  QueueBill out;
  out.held_gpu_hours = result.held.gpu_hours();
  const CostSpec* const prices = power ? &spec.power->cost : nullptr;
  out.of = money_of(prices, spec.usd_per_gpu_hour.has_value());
  if (prices != nullptr && prices_machines(*prices)) {
    out.owned_usd = power->owned.total_usd();
  } else if (prices != nullptr && has_prices(*prices)) {
    out.partial_usd = power->owned.total_usd();
  }
  if (spec.usd_per_gpu_hour) {
    const double hours = to_seconds(result.end).base_units() / kHour;
    out.rent_usd = *spec.usd_per_gpu_hour * spec.cluster.gpus() * hours;
  }
  return out;
}

}  // namespace lockstep
