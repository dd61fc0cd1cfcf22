// Reads "purchase" of a long run: sim/scenario/purchase_spec.hpp.
#include <algorithm>
#include <fmt/format.h>
#include <string>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/run_spec.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostLots = 100;
constexpr Interval kLotTime{0, 1e9};
constexpr Interval kLotTerm{1, 1e9};
constexpr Interval kLotUsd{0, 1e9};
constexpr Interval kLotShare{0, 1};

void declare_lot(const DeclaredMembers& member, Lot& out) {
  member.required("name", out.name, "");
  member.required("terms", out.terms, kLotTerms,
                  "buy; lease: its price as an annuity over its term, less what is left of it "
                  "then; reserved: by the hour for "
                  "its whole term; on_demand, spot: by the hour while it is used");
  member.required("nodes", out.nodes, 1, 10'000'000, "");
  member.optional("ordered", out.ordered, kLotTime, "After the start of the plan; default: 0");
  member.optional("lead_time", out.lead_time, kLotTime, "From order to delivery; default: 0");
  member.optional("delivery", out.delivery, kLotTime, "From its begin to its end; default: 0");
  member.optional("shipments", out.shipments, 1, 100,
                  "Equal ones, the last at the delivery's end; default: 1");
  member.optional("usd_per_node", out.usd_per_node, kLotUsd,
                  "With its GPUs, network and building, at the start of the plan: buy, lease");
  member.optional("usd_per_gpu_hour", out.usd_per_gpu_hour, kLotUsd,
                  "reserved, on_demand, spot; default: on_demand, the scenario's price, else the "
                  "list price of its node; spot, the node's list price on spot");
  member.optional("term", out.term, kLotTerm,
                  "Of each shipment from its arrival on: lease, reserved");
  member.optional("residual", out.residual, Dimension::share, kLotShare,
                  "Of a lease's price, what its nodes are worth to the lessor at the end of the "
                  "term, so that payments leave it out; default: 0");
  member.optional("until", out.until, kLotTime,
                  "Given back then, after the start of the plan; default: kept");
  member.optional("taken_away", out.taken_away, kLotTime,
                  "Of spot: mean time until the provider takes a node away; another comes after "
                  "run.spares.repair, and is paid for while it is there; default: never");
  member.optional(
      "node", out.node,
      "Preset of its nodes (lockstep list nodes), no faster than the scenario's: the job "
      "runs on the fastest kind, or on several at once where that is faster; default: the "
      "scenario's");
}

/// Which members go with which terms.
void check_lot(const JsonCursor& from, const Lot& lot) {
  const bool priced = lot.terms == LotTerms::buy || lot.terms == LotTerms::lease;
  const bool termed = lot.terms == LotTerms::lease || lot.terms == LotTerms::reserved;
  if (lot.terms != LotTerms::on_demand && lot.terms != LotTerms::spot) {
    (void)from.at(priced ? "usd_per_node" : "usd_per_gpu_hour");
  }
  if (termed) (void)from.at("term");
  const auto refuse = [&](const char* key, bool used) {
    const auto excess = from.find(key);
    if (excess && !used) {
      excess->fail(fmt::format(R"(nothing beside "terms": "{}")",
                               kLotTerms[static_cast<std::size_t>(lot.terms)]));
    }
  };
  refuse("usd_per_node", priced);
  refuse("usd_per_gpu_hour", !priced);
  refuse("term", termed);
  refuse("residual", lot.terms == LotTerms::lease);
  refuse("taken_away", lot.terms == LotTerms::spot);
  if (const auto away = from.find("taken_away"); away && !lot.node.empty()) {
    away->fail("nothing beside \"node\": only nodes of the scenario's kind are taken away");
  }
  if (lot.shipments > lot.nodes) {
    from.at("shipments").fail(fmt::format("at most {} (nodes)", lot.nodes));
  }
  if (lot.shipments > 1 && lot.delivery <= Seconds{}) {
    from.at("shipments").fail("1, or more beside \"delivery\", the time that they are spread over");
  }
  const Seconds there = lot.ordered + lot.lead_time + lot.delivery;
  if (lot.until && *lot.until <= there) {
    from.at("until").fail(
        fmt::format("later than its last shipment, at {:g} d", there.base_units() / 86'400));
  }
}

}  // namespace

void declare_purchase(const DeclaredMembers& member, PurchaseSpec& out) {
  member.required(
      "lots", kMostLots, "", "Nodes as they come, of the scenario's kind unless they say another",
      [](const DeclaredMembers& one) {
        Lot lot;
        declare_lot(one, lot);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostLots)) {
          Lot lot;
          declare_lot({at, Extent::whole}, lot);
          check_lot(at, lot);
          at.finish();
          const auto same = std::ranges::find(out.lots, lot.name, &Lot::name);
          if (same != out.lots.end()) at.at("name").fail("a name that no other lot has");
          out.lots.push_back(lot);
        }
        if (out.lots.empty()) list.fail("at least one lot");
      });
  member.optional("interest", out.interest, Dimension::share, Interval{0, 1},
                  "Cost of capital, a year; default: none");
  member.optional("price_fall", out.price_fall, Dimension::share, Interval{0, 0.95},
                  "A year, of what is ordered later; default: none");
  member.optional("deposit", out.deposit, Dimension::share, kShare,
                  "Of a price, paid at the order; default: none");
  member.optional("loses", out.loses, Dimension::share, Interval{0, 1},
                  "Of its value a year, what was bought; default: 35 %");
  member.optional("staff_usd_per_month", out.staff_usd_per_month, Interval{0, 1e12},
                  "From the first node on; default: none");
  const JsonCursor* const from = member.object();
  if (from != nullptr && !from->find("loses")) {
    out.assumptions.emplace_back(
        "run.purchase.loses: what is bought loses 35 % of its value a year (not given, a guess)");
  }
}

}  // namespace lockstep
