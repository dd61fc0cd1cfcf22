#include <functional>
#include <optional>
#include <vector>

#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

using Bought = CampaignResult;

template <class Of, class Get>
void add_money_parts(FieldTable<Of>& fields, Get money) {
  const auto part = [money](double MonthMoney::* which) {
    return [money, which](const Of& of) { return money(of).*which; };
  };
  fields.add("bought_usd", Better::less, "Paid for machines.", part(&MonthMoney::bought))
      .add("plants_usd", Better::less,
           "Paid for the site's battery, the units of its path and its cooling, where they have "
           "prices.",
           [money](const Of& of) -> std::optional<double> {
             const double usd = money(of).plants;
             return usd != 0 ? std::optional(usd) : std::nullopt;
           })
      .add("leased_usd", Better::less, "Leases.", part(&MonthMoney::leased))
      .add("rented_usd", Better::less, "By the hour: reserved, on demand, spot.",
           part(&MonthMoney::rented))
      .add("energy_usd", Better::less,
           "Energy of own and leased machines, with a site's demand charges.",
           part(&MonthMoney::energy))
      .add("energy_kwh", Better::less,
           "That energy_usd pays for, at the site's meter; with run.site from the grid.",
           part(&MonthMoney::kwh))
      .add("usd_per_kwh", Better::less, "energy_usd over energy_kwh.",
           [money](const Of& of) -> std::optional<double> {
             const MonthMoney& sum = money(of);
             return sum.kwh > 0 ? std::optional(sum.energy / sum.kwh) : std::nullopt;
           })
      .add("staff_usd", Better::less, "People.", part(&MonthMoney::staff))
      .add("interest_usd", Better::less, "Cost of the capital that was spent before.",
           part(&MonthMoney::interest))
      .add("residual_usd",
           "What machines and plants that were bought are worth at the end, below 0.",
           part(&MonthMoney::residual))
      .add("usd", Better::less, "All of it together.",
           [money](const Of& of) { return money(of).usd(); });
}

const FieldTable<MonthMoney>& money_month_fields() {
  using Of = MonthMoney;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("nodes", "Nodes that are there, mean of the days that the plan has of the month.",
            [](const Of& m) { return m.nodes; });
    add_money_parts(out, std::identity());
    return out;
  }();
  return fields;
}

const FieldTable<FleetStep>& fleet_step_fields() {
  using Of = FleetStep;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("at_s", "Since the start of the plan.", [](const Of& s) { return s.at; })
          .add("nodes", "Nodes that are there from then on.", [](const Of& s) { return s.nodes; })
          .add("used_nodes", "Of these, that the job runs on.", [](const Of& s) { return s.used; })
          .add("other_nodes",
               "Of another kind than those that the job runs on, where there are any.",
               [](const Of& s) -> std::optional<int> {
                 if (s.apart == 0) return std::nullopt;
                 return s.apart;
               })
          .add("speed", Better::more, "Of the job on all of its nodes.",
               [](const Of& s) { return s.speed; });
  return fields;
}

std::vector<LotPrice> prices_of_lots(const Bought& r) {
  return lot_prices(*r.fleet, Seconds{r.summary.wall_s.mean});
}

}  // namespace

const FieldTable<LotPrice>& lot_price_fields() {
  using Of = LotPrice;
  const auto unless = [](double LotPrice::* number) {
    return [number](const Of& p) -> std::optional<double> {
      return p.*number != 0 ? std::optional(p.*number) : std::nullopt;
    };
  };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "As the scenario calls it.", [](const Of& p) { return p.lot.name; })
          .add("terms", "How it is paid for.",
               [](const Of& p) { return kLotTerms[static_cast<std::size_t>(p.lot.terms)]; })
          .add("nodes", "Of the lot.", [](const Of& p) { return p.lot.nodes; })
          .add("ordered_s", "Since the start of the plan.",
               [](const Of& p) { return p.lot.ordered; })
          .add("arrives_s", "The last of it, since the start of the plan.",
               [](const Of& p) { return p.arrives; })
          .add("after_end",
               "Whether that is when the mean run is done, or later; absent: it is not.",
               [](const Of& p) -> std::optional<bool> {
                 return p.after_end ? std::optional(true) : std::nullopt;
               })
          .add("usd_per_node", Better::less,
               "Bought or leased: the lot's price, less what prices fall until it is ordered, with "
               "a plan's factors on prices.",
               unless(&LotPrice::usd_per_node))
          .add("usd_per_gpu_hour", Better::less, "The same, where it is paid by the hour.",
               unless(&LotPrice::usd_per_gpu_hour))
          .add("gpu_hours",
               "Those paid for, where it is paid by the hour; of a reservation to its end.",
               unless(&LotPrice::gpu_hours))
          .add("usd_per_month", Better::less,
               "Where it is leased: the annuity of nodes x usd_per_node over the term, less what a "
               "residual is worth today, at the "
               "interest.",
               unless(&LotPrice::usd_per_month))
          .add("months", "Of the term, where it is leased.", unless(&LotPrice::months))
          .add("paid_usd", Better::less,
               "nodes x usd_per_node; leased usd_per_month x months; by the hour gpu_hours x "
               "usd_per_gpu_hour; 0 where it is ordered after the end.",
               [](const Of& p) { return p.paid_usd; })
          .add("residual_usd", "What it is worth at the end, or when it goes, below 0.",
               unless(&LotPrice::residual_usd));
  return fields;
}

const FieldTable<CampaignResult>& purchase_fields() {
  static const FieldTable<Bought> fields = [] {
    FieldTable<Bought> out;
    out.add("begins_s", Better::less, "From the start of the plan until the run can begin.",
            [](const Bought& r) { return r.fleet->begins; })
        .add("done_s", Better::less, "From the start of the plan until the mean run is done.",
             [](const Bought& r) { return r.fleet->begins + Seconds{r.summary.wall_s.mean}; });
    add_money_parts(out, [](const Bought& r) { return sum_of(months_of(r)); });
    out.add("usd_per_trillion_tokens", Better::less,
            "All of it together over the tokens trained on, for each 1e12 of them.",
            [](const Bought& r) {
              return 1e12 * sum_of(months_of(r)).usd() / (r.steps() * r.tokens_per_step());
            });
    out.add("terms_left_usd", Better::less,
            "Of leases and reservations, in leased_usd and rented_usd: what is left of their terms "
            "when the run is done, and falls due then.",
            [](const Bought& r) -> std::optional<double> {
              const double left = sum_of(months_of(r)).terms_left;
              return left > 0 ? std::optional(left) : std::nullopt;
            });
    out.list("lots", "What each lot costs until the mean run is done.", lot_price_fields(),
             prices_of_lots);
    out.list("steps", "Machines as they come and go.", fleet_step_fields(),
             [](const Bought& r) -> const auto& { return r.fleet->steps; })
        .list("months", "Money by month, of the mean run.", money_month_fields(), months_of);
    return out;
  }();
  return fields;
}

}  // namespace lockstep
