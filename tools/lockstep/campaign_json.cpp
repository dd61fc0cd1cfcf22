#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/lockstep/campaign_result.hpp"
#include "tools/lockstep/run_result.hpp"
#include "tools/lockstep/site_limit.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json mean_json(const SampleMean& of) {
  return {{"mean", twelve_digits(of.mean)},
          {"half_width_95", twelve_digits(of.half_width)},
          {"p5", twelve_digits(of.low)},
          {"p50", twelve_digits(of.median)},
          {"p95", twelve_digits(of.high)}};
}
/// What checkpoints at that interval write.
void add_writes(const CheckpointWrites& writes, Seconds interval, Json& out) {
  constexpr double kDay = 86'400;
  const double rate = writes.rate(interval).base_units();
  out["written_bytes_per_s"] = twelve_digits(rate);
  out["written_bytes_per_day"] = twelve_digits(rate * kDay);
  if (writes.sustained > BytesPerSecond{}) {
    out["storage_share"] = twelve_digits(writes.share(interval));
  }
}
Json point_json(const IntervalPoint& point, const CheckpointWrites& writes) {
  Json out{{"interval_s", twelve_digits(point.interval.base_units())},
           {"goodput", twelve_digits(point.goodput)},
           {"half_width_95", twelve_digits(point.half_width)}};
  add_writes(writes, point.interval, out);
  return out;
}
Json optimum_json(const IntervalOptimum& optimum, const CheckpointWrites& writes) {
  Json curve = Json::array();
  for (const IntervalPoint& point : optimum.curve) curve.push_back(point_json(point, writes));
  return {{"path", "run.checkpoint.interval"},
          {"best", point_json(optimum.best, writes)},
          {"given", point_json(optimum.given, writes)},
          {"young", point_json(optimum.young, writes)},
          {"daly", point_json(optimum.daly, writes)},
          {"least_interval_s", twelve_digits(optimum.least.base_units())},
          {"most_storage_share", twelve_digits(writes.most_share)},
          {"limited_by_storage", optimum.limited},
          {"curve", curve}};
}

/// What the site draws in each state of the run, and within a step.
Json power_levels_json(const StepPower& power) {
  const auto watts = [](Watts w) { return twelve_digits(w.base_units()); };
  const PowerLevels& levels = power.levels;
  return {{"training_w", watts(levels.training.facility)},
          {"waiting_w", watts(levels.waiting.facility)},
          {"starting_w", watts(levels.starting.facility)},
          {"idle_w", watts(levels.idle.facility)},
          {"step_low_w", watts(trough_power(power.facility))},
          {"step_high_w", watts(peak_power(power.facility))},
          {"ramp_w_per_s", twelve_digits(power.ramp_w_per_s)},
          {"step_ramp_w_per_s", twelve_digits(power.ramp_w_per_s)},  // as it was called before
          {"pue", twelve_digits(power.pue)}};
}

/// An object per point: its values, and goodput.
Json grid_json(const GoodputGrid& grid) {
  Json points = Json::array();
  for (std::size_t i = 0; i < grid.goodput.size(); ++i) {
    Json point;
    std::size_t place = i;
    for (std::size_t a = grid.axes.size(); a-- > 0;) {
      const GoodputGrid::Axis& axis = grid.axes[a];
      point[axis.path] = axis.values[place % axis.values.size()];
      place /= axis.values.size();
    }
    point["goodput"] = twelve_digits(grid.goodput[i].mean);
    point["half_width_95"] = twelve_digits(grid.goodput[i].half_width);
    points.push_back(point);
  }
  return points;
}

/// Without prices there is no money in it, and which of them are missing instead.
void add_bill(const RunBill& bill, const CostSpec& prices, Json& out) {
  const double joules = bill.usage.energy.base_units();
  out["energy_j"] = twelve_digits(joules);
  out["facility_mean_w"] = twelve_digits(joules / bill.usage.time.base_units());
  out["joules_per_token"] = twelve_digits(bill.usage.tokens > 0 ? joules / bill.usage.tokens : 0);
  out["tonnes_co2"] = twelve_digits(bill.cost.tonnes_co2);
  if (!has_prices(prices)) {
    out["missing_prices"] = missing_prices(prices);
    return;
  }
  out["capital_usd"] = twelve_digits(bill.cost.capital.total_usd());
  out["capital_machines_usd"] = twelve_digits(bill.cost.capital.machines_usd);
  out["capital_network_usd"] = twelve_digits(bill.cost.capital.network_usd);
  out["capital_building_usd"] = twelve_digits(bill.cost.capital.building_usd);
  out["write_off_usd"] = twelve_digits(bill.cost.write_off_usd());
  out["running_usd"] = twelve_digits(bill.cost.running_usd());
  out["owned_usd"] = twelve_digits(bill.cost.total_usd());
  out["owned_usd_per_trillion_tokens"] = twelve_digits(bill.cost.usd_per_trillion_tokens);
  out["owned_usd_per_eflop"] = twelve_digits(bill.cost.usd_per_eflop);
}

/// Where the time goes: buckets, causes, checkpoints.
void add_lists(const CampaignResult& result, Json& out) {
  const RunSummary& s = result.summary;
  for (std::size_t b = 0; b < kRunBuckets; ++b) {
    out["wall_time"].push_back({{"bucket", run_bucket_names()[b].key},
                                {"share", twelve_digits(s.shares[b])},
                                {"seconds", twelve_digits(s.shares[b] * s.wall_s.mean)}});
  }
  for (const ModeSummary& mode : s.modes) {
    out["causes"].push_back({{"name", mode.name},
                             {"failures", twelve_digits(mode.failures)},
                             {"cost_s", twelve_digits(mode.cost_s)}});
  }
  for (std::size_t t = 0; t < result.plan.campaign.tiers.size(); ++t) {
    const CheckpointTier& tier = result.plan.campaign.tiers[t];
    Json row{{"name", tier.name},
             {"drag", twelve_digits(tier.drag)},
             {"interval_s", twelve_digits(tier.interval.base_units())},
             {"blocks_s", twelve_digits(tier.blocks.base_units())},
             {"finishes_s", twelve_digits(tier.finishes.base_units())},
             {"restores_s", twelve_digits(tier.restores.base_units())}};
    if (t < result.plan.writes.size()) add_writes(result.plan.writes[t], tier.interval, row);
    out["checkpoint_tiers"].push_back(std::move(row));
  }
}

}  // namespace

nlohmann::ordered_json campaign_json(const CampaignResult& result) {
  const RunSummary& s = result.summary;
  const Scenario& scenario = result.scenario;
  Json out{{"goodput", twelve_digits(s.goodput.mean)},
           {"goodput_half_width_95", twelve_digits(s.goodput.half_width)},
           {"wall_s", twelve_digits(s.wall_s.mean)},
           {"interruptions", twelve_digits(s.interruptions.mean)},
           {"mttf_s", s.mttf.mean_s ? Json(twelve_digits(*s.mttf.mean_s)) : Json(nullptr)},
           {"mttf_at_least_s", twelve_digits(s.mttf.at_least_s)},
           {"mfu", twelve_digits(result.mfu)},
           {"useful_flops_share", twelve_digits(result.mfu * s.goodput.mean)},
           {"step_s", twelve_digits(result.plan.step_s)},
           {"gpus", scenario.gpus()},
           {"nodes", scenario.nodes},
           {"gpu_hours", twelve_digits(result.gpu_hours())},
           {"held_gpu_hours", twelve_digits(result.held_gpu_hours())},
           {"trajectories", s.trajectories},
           {"finished_share", twelve_digits(s.finished)},
           {"checkpoints", twelve_digits(s.checkpoints)},
           {"checkpoint_bytes", twelve_digits(result.plan.checkpoint.all.base_units())},
           {"unreadable_checkpoints", twelve_digits(s.fallbacks)}};
  if (result.interval) {
    out["step_s_low"] = twelve_digits(result.plan.step_s * result.interval->low);
    out["step_s_high"] = twelve_digits(result.plan.step_s * result.interval->high);
  }
  if (result.plan.data_read_bytes_per_s > 0) {
    out["data_read_bytes_per_s"] = twelve_digits(result.plan.data_read_bytes_per_s);
    out["data_speed"] = twelve_digits(result.plan.data_speed);
  }
  if (const std::optional<double> rent = result.rent_usd()) out["price_usd"] = twelve_digits(*rent);
  if (result.bill) add_bill(*result.bill, scenario.power->cost, out);
  if (result.power) {
    out["gpu_nameplate_w"] = twelve_digits(result.power->gpu_nameplate.base_units());
    add_site_limit(*result.power, *scenario.power, out);
  }
  add_lists(result, out);
  out["distributions"] = {{"goodput", mean_json(s.goodput)},
                          {"wall_s", mean_json(s.wall_s)},
                          {"interruptions", mean_json(s.interruptions)}};
  for (const ProjectedMttf& of : result.projections) {
    out["mttf_by_rates"].push_back(
        {{"gpus", of.gpus}, {"mttf_s", twelve_digits(of.mttf.base_units())}});
  }
  if (result.optimum) {
    out["optimum"] = optimum_json(*result.optimum, result.plan.writes.front());
  }
  if (result.interval) out["interval"] = interval_json(*result.interval);
  if (result.power) out["facility_power"] = power_levels_json(*result.power);
  if (result.grid) out["grid"] = grid_json(*result.grid);
  if (result.interrupted) out["interrupted"] = true;
  out["assumptions"] = scenario.assumptions;
  for (const std::string& assumed : result.plan.assumptions) out["assumptions"].push_back(assumed);
  return out;
}

CsvText campaign_csv(const nlohmann::ordered_json& json) {
  std::vector<std::string> names, values;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_number()) continue;
    names.push_back(key);
    values.push_back(number_text(value.get<double>()));
  }
  for (const Json& bucket : json.at("wall_time")) {
    names.push_back(bucket.at("bucket").get<std::string>() + "_share");
    values.push_back(number_text(bucket.at("share").get<double>()));
  }
  return csv_line(names) + csv_line(values);
}

}  // namespace lockstep
