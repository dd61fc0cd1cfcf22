/// How the machines of a long run come: lots that are bought, leased or rented, and when.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"

namespace lockstep {

struct NodeSpec;

enum class LotTerms : std::uint8_t {
  buy,        ///< a part at the order, the rest as it is delivered
  lease,      ///< its price as an annuity over its term, month by month
  reserved,   ///< by the hour for the whole term, used or not
  on_demand,  ///< by the hour until it is given back or the run is done
  spot,       ///< the same, and the provider takes nodes away
};
inline constexpr std::string_view kLotTerms[]{"buy", "lease", "reserved", "on_demand", "spot"};

struct Lot {
  std::string name;
  LotTerms terms = LotTerms::buy;
  int nodes = 0;
  Seconds ordered, lead_time, delivery;  ///< from one to the next; 0: at once
  int shipments = 1;                     ///< equal ones, evenly over the delivery
  double usd_per_node = 0;               ///< buy, lease: at the start of the plan
  /// Reserved, on demand, spot. Of the last two it may be left out: plan_fleet() has the price of
  /// the scenario, else of its node.
  std::optional<double> usd_per_gpu_hour;
  std::optional<Seconds> term;             ///< lease, reserved: of each shipment from its arrival
  std::optional<Seconds> until;            ///< given back then, after the start of the plan
  double residual = 0;                     ///< lease: of the price, left at the end of its term
  Seconds taken_away;                      ///< spot: mean time until one of its nodes is; 0: never
  std::string node{};                      ///< the preset of its nodes; empty: the scenario's
  std::shared_ptr<const NodeSpec> kind{};  ///< the same; none: the scenario's
  /// What one of its nodes draws idle, over one of the scenario's: plan_fleet() fills it in.
  double idle_share = 1;
};

struct PurchaseSpec {
  std::vector<Lot> lots;
  double interest = 0;    ///< cost of capital, a year
  double price_fall = 0;  ///< of what is ordered later, a year
  double deposit = 0;     ///< of a price, at the order
  double loses = 0.35;    ///< of its value a year, what was bought
  double staff_usd_per_month = 0;
  std::vector<std::string> assumptions;
};

}  // namespace lockstep
