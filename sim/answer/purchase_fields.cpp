#include <functional>
#include <optional>
#include <vector>

#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

using Bought = CampaignResult;

template <class Of, class Get>
void add_money_parts(FieldTable<Of>& fields, Get money) {
  const auto part = [money](double MonthMoney::*which) {
    return [money, which](const Of& of) { return money(of).*which; };
  };
  fields.add("bought_usd", Better::less, "Paid for machines.", part(&MonthMoney::bought))
      .add("leased_usd", Better::less, "Leases.", part(&MonthMoney::leased))
      .add("rented_usd", Better::less, "By the hour: reserved, on demand, spot.",
           part(&MonthMoney::rented))
      .add("energy_usd", Better::less,
           "Energy of own and leased machines, with a site's demand charges.",
           part(&MonthMoney::energy))
      .add("staff_usd", Better::less, "People.", part(&MonthMoney::staff))
      .add("interest_usd", Better::less, "Cost of the capital that was spent before.",
           part(&MonthMoney::interest))
      .add("residual_usd", "What machines that were bought are worth at the end, below 0.",
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

}  // namespace

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
    out.list(
           "steps", "Machines as they come and go.", fleet_step_fields(),
           [](const Bought& r) -> const auto& { return r.fleet->steps; })
        .list("months", "Money by month, of the mean run.", money_month_fields(), months_of);
    return out;
  }();
  return fields;
}

}  // namespace lockstep
