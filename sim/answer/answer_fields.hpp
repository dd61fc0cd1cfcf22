/// The tables of the members of all answers, and of the parts that several of them share.
#pragma once

#include <optional>
#include <vector>

#include "models/accuracy/prediction_interval.hpp"
#include "models/layer/memory.hpp"
#include "sim/answer/campaign_answer.hpp"
#include "sim/answer/claim_check.hpp"
#include "sim/answer/fields.hpp"
#include "sim/answer/hash_answer.hpp"
#include "sim/answer/queue_answer.hpp"
#include "sim/answer/rl_answer.hpp"
#include "sim/answer/serving_answer.hpp"
#include "sim/answer/shared_answer.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/site/lot_prices.hpp"

namespace lockstep {

/// A step of reinforcement learning, and the scenario that it is of.
struct RlAnswer {
  const RlScenario& scenario;
  const RlReport& report;
  const std::optional<RlPower>& power;
  const std::optional<HashAnswer>& hash;
  const WrittenScenario& written;
};
/// Several jobs on one fabric, and the scenario that they are of.
struct SharedAnswer {
  const SharedScenario& scenario;
  const SharedResult& result;
  const std::optional<SharedPower>& power;
  const std::optional<HashAnswer>& hash;
  const WrittenScenario& written;
};

const FieldTable<RunResult>& step_fields();
const FieldTable<CampaignResult>& campaign_fields();
const FieldTable<SharedAnswer>& shared_fields();
const FieldTable<RlAnswer>& rl_fields();
/// Of an iteration, phase by phase.
const FieldTable<RlReport>& iteration_fields();
const FieldTable<QueueAnswer>& queue_fields();
/// Of a queue's searches and variants.
const FieldTable<CampaignSummary>& trial_campaign_fields();
const FieldTable<TrialOrder>& trial_order_fields();
const FieldTable<ServingAnswer>& serving_fields();

const FieldTable<PredictionInterval>& interval_fields();
const FieldTable<MemoryBreakdown>& memory_fields();
const FieldTable<ClaimCheck>& claim_fields();
/// Which draw of the hashes an answer is of; with the band of a step; of a run of weeks.
const FieldTable<HashAnswer>& draw_fields();
const FieldTable<HashAnswer>& hash_fields();
const FieldTable<HashAnswer>& run_hash_fields();
/// The band of a time.
const FieldTable<HashBand>& time_band_fields();
/// Bands of a job's step and slowdown.
const FieldTable<JobBands>& job_band_fields();
/// The "power" of a step.
const FieldTable<PoweredStep>& power_fields();
/// A phase of an iteration, and the energy of all of them.
struct PhaseOfEnergy {
  const RlPhasePower* phase = nullptr;
  Joules all;
};
std::vector<PhaseOfEnergy> phases_of_energy(const std::vector<RlPhasePower>& phases);
const FieldTable<PhaseOfEnergy>& phase_power_fields();
/// The "power" of an iteration of reinforcement learning, phase by phase.
struct PoweredIteration {
  PoweredStep step;
  const std::vector<RlPhasePower>& phases;
};
const FieldTable<PoweredIteration>& iteration_power_fields();
/// The "site" of a run. Requires CampaignResult::site.
const FieldTable<CampaignResult>& site_fields();
/// The "purchase" of a run. Requires CampaignResult::fleet.
/// Of a lot; a plan has them too.
const FieldTable<LotPrice>& lot_price_fields();
const FieldTable<CampaignResult>& purchase_fields();
/// The "data" of a run. Requires CampaignPlan::data.
const FieldTable<CampaignResult>& data_fields();
/// The "fabric" of a step. Requires RunResult::full_fabric.
const FieldTable<RunResult>& fabric_fields();

/// Rises when the name of a member or its meaning changes.
inline constexpr std::string_view kResultSchema = "lockstep-result/1";

/// What every answer begins with. `kind` is what it is the answer to.
template <class Of>
void add_head(FieldTable<Of>& fields, std::string_view kind) {
  fields.constant("schema", "Version of the names in this answer.", kResultSchema)
      .constant("kind", "What it is the answer to.", kind);
}
/// The scenario as a value; nothing where none was written.
Value written_value(const WrittenScenario& written);
/// The scenario as a member: `get` takes an answer and gives what was written.
template <class Of, class Get>
void add_written(FieldTable<Of>& fields, Get get) {
  fields.add("scenario",
             "The scenario as it was written, with what --set changed. Run under the file's name, "
             "it gives this answer again.",
             [get](const Of& of) { return written_value(get(of)); });
}

/// hash_least_s, hash_median_s and hash_most_s of the first level. `band` takes an answer and gives
/// the band of the time that `what` names, if several draws were simulated.
template <class Of, class Band>
void add_hash_headline(FieldTable<Of>& fields, const std::string& what, Band band) {
  const auto of_band = [band](HashDraw HashBand::* which) {
    return [band, which](const Of& of) -> std::optional<double> {
      const std::optional<HashBand> known = band(of);
      if (!known) return std::nullopt;
      return ((*known).*which).value;
    };
  };
  fields
      .add("hash_least_s", Better::less,
           "The shortest " + what + " over the draws of --hash-seeds.", of_band(&HashBand::least))
      .add("hash_median_s", Better::less, "The median " + what + " over the draws of --hash-seeds.",
           of_band(&HashBand::median))
      .add("hash_most_s", Better::less, "The longest " + what + " over the draws of --hash-seeds.",
           of_band(&HashBand::most));
}

/// Seconds of each bucket, in the order of buckets().
NamedNumbers bucket_seconds(const BucketTimes& seconds);

/// site_limit_w, site_peak_w and site_excess_w (above 0: by how much the limit is exceeded), where
/// `power` gives a step's power and what the scenario says of the site, and there is a limit.
template <class Of, class Power, class Spec>
void add_site_limit_fields(FieldTable<Of>& fields, Power power, Spec spec) {
  const auto where_limited = [power, spec](auto get) {
    return [power, spec, get](const Of& of) -> std::optional<double> {
      const StepPower* drawn = power(of);
      if (drawn == nullptr || !spec(of).site_limit) return std::nullopt;
      return get(*drawn, *spec(of).site_limit).base_units();
    };
  };
  fields
      .add("site_limit_w", "Power limit of the site.",
           where_limited([](const StepPower&, Watts limit) { return limit; }))
      .add("site_peak_w", Better::less, "The most that a meter at the site reads.",
           where_limited([](const StepPower& p, Watts) { return p.site_peak; }))
      .add("site_excess_w", Better::less,
           "By how much that is above the limit; above 0 the limit is exceeded.",
           where_limited([](const StepPower& p, Watts limit) { return p.above(limit); }));
}

/// Energy and money of a step, or of the training where the scenario says training.tokens, under
/// the names that they have in the answer to a run. `step` gives a PoweredStep, where the scenario
/// says "power".
template <class Of, class Get>
void add_energy_fields(FieldTable<Of>& fields, Get step) {
  const auto powered = [step](auto get) {
    return [step, get](const Of& of) -> std::optional<double> {
      const std::optional<PoweredStep> drawn = step(of);
      if (!drawn) return std::nullopt;
      return get(*drawn);
    };
  };
  const auto owning = [step](double (*get)(const CostReport&)) {
    return [step, get](const Of& of) -> std::optional<double> {
      const std::optional<PoweredStep> drawn = step(of);
      if (!drawn || !prices_machines(drawn->scenario.power->cost)) return std::nullopt;
      return get(energy_bill(*drawn).cost);
    };
  };
  using Step = const PoweredStep&;
  fields
      .add("facility_mean_w", Better::less, "Power of the site; mean of the step.",
           powered([](Step s) { return mean_power(s.power.facility).base_units(); }))
      .add("facility_peak_w", Better::less, "The most that the site draws at any instant.",
           powered([](Step s) { return peak_power(s.power.facility).base_units(); }))
      .add("energy_per_step_j", Better::less, "Energy of a step at the site's meter.",
           powered([](Step s) { return s.power.energy().base_units(); }))
      .add("energy_j", Better::less, "Energy of what power.bill is of, at the site's meter.",
           powered([](Step s) { return energy_bill(s).usage.energy.base_units(); }))
      .add("joules_per_token", Better::less, "Energy per token at the site's meter.",
           powered([](Step s) { return s.power.energy().base_units() / s.tokens; }))
      .add("tonnes_co2", Better::less,
           "Carbon dioxide that the grid emits for energy_j; where its intensity is given.",
           powered([](Step s) { return energy_bill(s).cost.tonnes_co2; }))
      .add("capital_usd", Better::less, "What has to be spent before the machines can run.",
           owning([](const CostReport& c) { return c.capital.total_usd(); }))
      .add("owned_usd", Better::less, "Cost of owning the machines meanwhile.",
           owning([](const CostReport& c) { return c.total_usd(); }));
}

}  // namespace lockstep
