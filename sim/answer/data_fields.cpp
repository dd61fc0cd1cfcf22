#include <string_view>
#include <vector>

#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

using Fed = CampaignResult;

/// A tier, and what it costs by month.
struct DataTierAnswer {
  const HeldTier* tier;
  std::vector<double> months;

  [[nodiscard]] double usd() const {
    double sum = 0;
    for (const double month : months) sum += month;
    return sum;
  }
};
std::vector<DataTierAnswer> data_tier_answers(const Fed& r) {
  std::vector<DataTierAnswer> out;
  for (const HeldTier& tier : r.plan.data->tiers) {
    out.push_back({&tier, tier_months(tier, r.data_until())});
  }
  return out;
}

std::string_view limit_name(DataLimit limit) {
  return kDataLimits[static_cast<std::size_t>(limit)];
}

const FieldTable<StagingHop>& hop_fields() {
  using Of = StagingHop;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("from", "The tier that is read.", [](const Of& h) { return h.from; })
          .add("to", "The tier that is written.", [](const Of& h) { return h.to; })
          .add("starts_s", "Since staging began.", [](const Of& h) { return h.starts; })
          .add("takes_s", Better::less, "For all of the dataset, alone.",
               [](const Of& h) { return h.takes; })
          .add("rate_bytes_per_s", Better::more, "After the first byte.",
               [](const Of& h) { return h.rate; });
  return fields;
}

const FieldTable<double>& tier_month_fields() {
  static const FieldTable<double> fields = FieldTable<double>().add(
      "usd", Better::less, "Of the month.", [](const double& usd) { return usd; });
  return fields;
}

const FieldTable<DataTierAnswer>& data_tier_fields() {
  using Of = DataTierAnswer;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "As the scenario calls it.", [](const Of& t) { return t.tier->name; })
          .add("holds_from_s", "Since staging began; until the run is done.",
               [](const Of& t) { return t.tier->from; })
          .add("read_usd", Better::less, "For reading the dataset out of it, once.",
               [](const Of& t) { return t.tier->read_usd; })
          .add("usd", Better::less, "All months together.", [](const Of& t) { return t.usd(); })
          .list("months", "Money by month, 1/12 of 365.25 days each.", tier_month_fields(),
                [](const Of& t) -> const auto& { return t.months; });
  return fields;
}

}  // namespace

const FieldTable<CampaignResult>& data_fields() {
  const auto later = [](auto get) {
    return [get](const Fed& r) {
      return r.plan.data->epochs > 1 ? std::optional(get(r.plan.data->later)) : std::nullopt;
    };
  };
  static const FieldTable<Fed> fields =
      FieldTable<Fed>()
          .add("begins_s", Better::less, "From the start of staging until the run can begin.",
               [](const Fed& r) { return r.plan.data->begins; })
          .add("done_s", Better::less, "From the start of staging until the mean run is done.",
               [](const Fed& r) { return r.data_until(); })
          .add("dataset_bytes", "Of all of it.", [](const Fed& r) { return r.plan.data->dataset; })
          .add("epochs", "Passes over it; below 1 where the run reads a part.",
               [](const Fed& r) { return r.plan.data->epochs; })
          .add("cached_share", "Of it, on the nodes' drives after the first pass.",
               [](const Fed& r) { return r.plan.data->cached; })
          .add("limited_by", "What the job waits for most of its time.",
               [](const Fed& r) { return limit_name(r.plan.data->limit()); })
          .add("first_epoch_speed", Better::more, "Over a job that never waits for data.",
               [](const Fed& r) { return r.plan.data->first.speed; })
          .add("first_epoch_limited_by", "What it waits for.",
               [](const Fed& r) { return limit_name(r.plan.data->first.limit); })
          .add("later_epochs_speed", Better::more, "The same of the passes after the first.",
               later([](const EpochSpeed& e) { return e.speed; }))
          .add("later_epochs_limited_by", "What they wait for.",
               later([](const EpochSpeed& e) { return limit_name(e.limit); }))
          .add("storage_usd", Better::less,
               "Of all tiers, until the mean run is done; beside owned_usd, price_usd and "
               "purchase.usd. A plan's usd has both.",
               [](const Fed& r) { return r.storage_usd(); })
          .list("hops", "The dataset's way from tier to tier.", hop_fields(),
                [](const Fed& r) -> const auto& { return r.plan.data->hops; })
          .list("tiers", "What holds it, and for how much money.", data_tier_fields(),
                data_tier_answers);
  return fields;
}

}  // namespace lockstep
