#include "sim/site/lot_prices.hpp"

#include <algorithm>

#include "models/site/finance.hpp"

namespace lockstep {
namespace {

constexpr double kLotYear = 365.25 * 86'400, kLotMonth = kLotYear / 12;

/// GPU-hours of a shipment that are paid for: of a reservation to its end, used or not.
double paid_hours(const Fleet& fleet, const Shipment& each, double end_s) {
  const Lot& lot = *each.lot;
  const double until = lot.terms == LotTerms::reserved ? each.from_s + lot.term->base_units()
                                                       : std::min(each.until_s, end_s);
  const double length = std::max(0.0, until - each.from_s);
  return share_there(fleet, lot) * gpus_of(fleet, lot) * each.nodes * length / 3600;
}

void sell(const std::vector<Shipment>& shipments, std::size_t i, const Fleet& fleet, double end_s,
          const MoneyFactors& factors, LotPrice& out) {
  const Lot& lot = fleet.spec.lots[i];
  const double sold = std::min(end_s, lot.until ? lot.until->base_units() : end_s);
  const double loses = std::min(1.0, factors.value_loss * fleet.spec.loses);
  for (const Shipment& each : shipments) {
    if (each.lot != &lot) continue;
    const double years = std::max(0.0, sold - each.from_s) / kLotYear;
    out.residual_usd -= declined(out.usd_per_node * each.nodes, loses, years);
  }
}

}  // namespace

std::vector<LotPrice> lot_prices(const Fleet& fleet, Seconds run, const MoneyFactors& factors) {
  const double end_s = (fleet.begins + run).base_units();
  const std::vector<Shipment> shipments = shipments_of(fleet.spec);
  std::vector<LotPrice> out;
  for (std::size_t i = 0; i < fleet.spec.lots.size(); ++i) {
    const Lot& lot = fleet.spec.lots[i];
    LotPrice price{.lot = lot, .arrives = last_shipment(lot)};
    price.after_end = price.arrives.base_units() >= end_s;
    const bool ordered = lot.ordered.base_units() < end_s;
    const double years = lot.ordered.base_units() / kLotYear;
    if (lot.terms == LotTerms::buy || lot.terms == LotTerms::lease) {
      price.usd_per_node = factors.price * declined(lot.usd_per_node, fleet.spec.price_fall, years);
    } else {
      price.usd_per_gpu_hour = factors.price * lot.usd_per_gpu_hour.value_or(0);
    }
    if (lot.terms == LotTerms::lease) {
      price.months = lot.term->base_units() / kLotMonth;
      const double usd = lot.nodes * price.usd_per_node;
      price.usd_per_month = lease_payment(usd, lot.residual * usd,
                                          period_rate(fleet.spec.interest, 12), price.months);
      if (ordered) price.paid_usd = price.usd_per_month * price.months;
    } else if (lot.terms == LotTerms::buy) {
      if (ordered) price.paid_usd = lot.nodes * price.usd_per_node;
      if (ordered) sell(shipments, i, fleet, end_s, factors, price);
    } else if (ordered) {
      for (const Shipment& each : shipments) {
        if (each.lot == &lot) price.gpu_hours += paid_hours(fleet, each, end_s);
      }
      price.paid_usd = price.gpu_hours * price.usd_per_gpu_hour;
    }
    out.push_back(std::move(price));
  }
  return out;
}

}  // namespace lockstep
