#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/plan/plan_output.hpp"
#include "tools/views/plan/plan_phases.hpp"
#include "tools/views/plan/plan_region_words.hpp"
#include "tools/views/plan/plan_words.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json plan_number_or_null(const std::optional<double>& value) {
  return value ? Json(twelve_digits(*value)) : Json(nullptr);
}

/// `point`: with every input at its median, as `lockstep run` has it.
Json spread_json(double point, const SampleMean& spread) {
  return {{"point", twelve_digits(point)},
          {"mean", twelve_digits(spread.mean)},
          {"p05", twelve_digits(spread.low)},
          {"p50", twelve_digits(spread.median)},
          {"p95", twelve_digits(spread.high)}};
}

Json plan_months_json(const PlanResult& result) {
  Json out = Json::array();
  for (const PlanMonth& month : result.months) {
    out.push_back({{"write_off_usd", twelve_digits(month.write_off_usd)},
                   {"running_usd", twelve_digits(month.running_usd)},
                   {"rent_usd", twelve_digits(month.rent_usd)},
                   {"egress_usd", twelve_digits(month.egress_usd)},
                   {"storage_usd", twelve_digits(month.storage_usd)},
                   {"usd", twelve_digits(month.usd())}});
  }
  return out;
}

/// The dataset on its way to the job, and what the job waits for.
Json data_json(const PlanResult& result) {
  const DataPlan& data = *result.model.plan.data;
  Json out{{"staging_s", twelve_digits(data.begins.base_units())},
           {"epochs", twelve_digits(data.epochs)},
           {"cached_share", twelve_digits(data.cached)},
           {"limited_by", kDataLimits[static_cast<std::size_t>(data.limit())]},
           {"speed", twelve_digits(result.model.plan.data_speed)},
           {"storage_usd", twelve_digits(result.expected.storage_usd)},
           {"hops", Json::array()},
           {"tiers", Json::array()}};
  for (const StagingHop& hop : data.hops) {
    out["hops"].push_back({{"from", hop.from},
                           {"to", hop.to},
                           {"starts_s", twelve_digits(hop.starts.base_units())},
                           {"takes_s", twelve_digits(hop.takes.base_units())},
                           {"rate_bytes_per_s", twelve_digits(hop.rate.base_units())}});
  }
  for (const HeldTier& tier : data.tiers) {
    Json months = Json::array();
    for (const double usd : tier_months(tier, data_until(result))) {
      months.push_back(twelve_digits(usd));
    }
    out["tiers"].push_back({{"name", tier.name},
                            {"holds_from_s", twelve_digits(tier.from.base_units())},
                            {"month_usd", std::move(months)}});
  }
  return out;
}

/// The candidate's region, and the time and cost of moving its data there and its checkpoints away.
Json region_json(const PlanAnswer& answer, std::size_t i) {
  const PlanCandidate& candidate = answer.candidate(i);
  const PlanPlace& place = *candidate.place;
  const PlanResult& result = answer.result(i);
  Json out{{"name", place.name},
           {"refused", candidate.refused.empty() ? Json(nullptr) : Json(candidate.refused)}};
  if (!result.model.impossible.empty()) return out;
  const PlanOutcome& expected = result.expected;
  out["data_from"] = place.data_from.empty() ? Json(nullptr) : Json(place.data_from);
  out["data_takes_s"] = twelve_digits(place.data_takes.base_units());
  out["begins_s"] = twelve_digits(expected.before_s);
  out["last_checkpoint_takes_s"] = twelve_digits(expected.after_s);
  out["done"] = plan_moment(answer, expected.time_s);
  out["data_egress_usd"] = twelve_digits(expected.data_usd);
  out["egress_usd"] = twelve_digits(expected.egress_usd);
  out["co2_t"] = plan_number_or_null(expected.tonnes_co2);
  return out;
}

Json measures_json(const PlanOutcome& outcome, bool priced) {
  Json out = Json::object();
  for (const PlanMeasure& measure : plan_measures()) {
    if (measure.name == "usd" && !priced) continue;
    out[std::string(measure.name)] = twelve_digits(outcome.*measure.number);
  }
  return out;
}

Json swings_json(const PlanResult& result, bool priced) {
  Json out = Json::array();
  for (const PlanSwing& swing : result.swings) {
    out.push_back({{"input", plan_inputs()[static_cast<std::size_t>(swing.input)].name},
                   {"low", twelve_digits(swing.low)},
                   {"high", twelve_digits(swing.high)},
                   {"at_low", measures_json(swing.at_low, priced)},
                   {"at_high", measures_json(swing.at_high, priced)}});
  }
  return out;
}

/// Capital to be spent first, its write-off, and the cost of operation.
Json money_json(const PlanOutcome& expected) {
  return {{"usd", twelve_digits(expected.usd)},
          {"capital_usd", twelve_digits(expected.capital.total_usd())},
          {"capital_machines_usd", twelve_digits(expected.capital.machines_usd)},
          {"capital_network_usd", twelve_digits(expected.capital.network_usd)},
          {"capital_building_usd", twelve_digits(expected.capital.building_usd)},
          {"write_off_usd", twelve_digits(expected.write_off_usd)},
          {"running_usd", twelve_digits(expected.running_usd)},
          {"energy_usd", twelve_digits(expected.energy_usd)},
          {"rent_usd", twelve_digits(expected.rent_usd)},
          {"egress_usd", twelve_digits(expected.egress_usd)},
          {"storage_usd", twelve_digits(expected.storage_usd)}};
}

Json layout_json(const Scenario& scenario) {
  const Parallelism& cut = scenario.job.parallelism;
  return {{"tensor", cut.tensor},
          {"context", cut.context},
          {"expert", cut.expert},
          {"pipeline", cut.pipeline},
          {"virtual_stages", cut.virtual_stages},
          {"data", cut.data},
          {"micro", scenario.job.batch.micro_sequences}};
}

Json result_json_of(const PlanAnswer& answer, std::size_t i, const std::string& verdict) {
  const PlanCandidate& candidate = answer.candidate(i);
  const PlanResult& result = answer.result(i);
  const Scenario& scenario = result.model.scenario;
  Json out{{"name", candidate.name},
           {"pay", candidate.rented ? "rent" : "own"},
           {"node", scenario.node.name},
           {"gpu", scenario.node.gpu.name},
           {"gpus", scenario.gpus()},
           {"nodes", scenario.nodes},
           {"layout", layout_json(scenario)},
           {"tuned", candidate.tuned},
           {"possible", result.model.impossible.empty()},
           {"verdict", verdict}};
  if (candidate.place) out["region"] = region_json(answer, i);
  if (!result.model.impossible.empty()) return out;
  const PlanOutcome& expected = result.expected;
  const auto watts = power_limit(answer.spec, candidate);
  out["step_s"] = twelve_digits(result.model.step_s);
  out["method"] = name_of(result.model.method);
  if (const auto& band = result.model.band) {
    out["exact_low_s"] = twelve_digits(band->low_s);
    out["exact_high_s"] = twelve_digits(band->high_s);
  }
  out["mfu"] = twelve_digits(result.model.mfu);
  out["goodput"] = twelve_digits(expected.goodput);
  out["interruptions"] = twelve_digits(expected.interruptions);
  out["power_limit_w"] =
      plan_number_or_null(watts ? std::optional(watts->base_units()) : std::nullopt);
  out["time_s"] = spread_json(expected.time_s, result.time_s);
  const bool priced = is_priced(candidate);
  if (priced) out["usd"] = spread_json(expected.usd, result.usd);
  out["energy_j"] = spread_json(expected.energy_j, result.energy_j);
  out["peak_w"] = spread_json(expected.peak_w, result.peak_w);
  out["gpu_nameplate_w"] = twelve_digits(result.model.power.gpu_nameplate.base_units());
  out["expected"] = {{"time_s", twelve_digits(expected.time_s)},
                     {"energy_j", twelve_digits(expected.energy_j)},
                     {"energy_per_trillion_tokens_j",
                      twelve_digits(plan_energy_per_trillion_tokens(candidate, result))},
                     {"co2_t", plan_number_or_null(expected.tonnes_co2)}};
  if (priced) {
    out["expected"].update(money_json(expected));
    if (result.model.site) out["expected"]["demand_usd"] = twelve_digits(expected.demand_usd);
  }
  out["chances"] = {{"time", twelve_digits(result.chances.time)},
                    {"power", twelve_digits(result.chances.power)},
                    {"usd", twelve_digits(result.chances.usd)},
                    {"all", twelve_digits(result.chances.all)}};
  out["unfinished_share"] = twelve_digits(result.unfinished);
  out["best_share"] = twelve_digits(result.best_share);
  out["on_front"] = result.on_front;
  out["sensitivity"] = swings_json(result, priced);
  if (!candidate.then.empty()) out["phases"] = phases_json(answer, i);
  if (result.model.plan.data) out["data"] = data_json(result);
  if (!result.months.empty()) out["money_by_month"] = plan_months_json(result);
  if (result.model.fleet) out["months"] = lot_months_json(result.expected.lots);
  return out;
}

Json name_or_null(const PlanAnswer& answer, const std::optional<std::size_t>& i) {
  return i ? Json(answer.candidate(*i).name) : Json(nullptr);
}

}  // namespace

nlohmann::ordered_json plan_json(const PlanAnswer& answer) {
  const PlanSpec& spec = answer.spec;
  const PlanLimits& limits = spec.limits;
  Json out{{"plan", spec.file},
           {"model", answer.candidate(0).scenario.job.model.name},
           {"tokens", twelve_digits(spec.training.tokens)},
           {"prefer", kPlanGoals[static_cast<std::size_t>(spec.goal)]},
           {"samples", spec.samples},
           {"seed", spec.seed},
           {"choice", name_or_null(answer, answer.report.choice)},
           {"nearest", name_or_null(answer, answer.report.nearest)},
           {"choice_time_s", nullptr},
           {"choice_time_s_p05", nullptr},
           {"choice_time_s_p95", nullptr},
           {"choice_usd", nullptr},
           {"choice_usd_p05", nullptr},
           {"choice_usd_p95", nullptr},
           {"choice_chance", nullptr},
           {"recommendation", plan_recommendation(answer)},
           {"notes", plan_notes(answer)}};
  if (const auto& choice = answer.report.choice) {
    const PlanResult& chosen = answer.result(*choice);
    const auto add = [&out](const std::string& name, double point, const SampleMean& spread) {
      out[name] = twelve_digits(point);
      out[name + "_p05"] = twelve_digits(spread.low);
      out[name + "_p95"] = twelve_digits(spread.high);
    };
    add("choice_time_s", chosen.expected.time_s, chosen.time_s);
    if (is_priced(answer.candidate(*choice))) add("choice_usd", chosen.expected.usd, chosen.usd);
    out["choice_chance"] = twelve_digits(chosen.chances.all);
  }
  out["limits"] = {
      {"time_s",
       plan_number_or_null(limits.time ? std::optional(limits.time->base_units()) : std::nullopt)},
      {"power_w", plan_number_or_null(limits.power ? std::optional(limits.power->base_units())
                                                   : std::nullopt)},
      {"usd", plan_number_or_null(limits.usd)},
      {"confidence", twelve_digits(limits.confidence)}};
  if (!spec.regions.empty()) out["regions_compared"] = region_words(answer);
  out["candidates"] = Json::array();
  const std::vector<std::string> verdicts = plan_verdicts(answer);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    out["candidates"].push_back(result_json_of(answer, i, verdicts[i]));
  }
  out["assumptions"] = plan_assumptions(answer);
  return out;
}

CsvText plan_csv(const PlanAnswer& answer) {
  const auto line = [](std::vector<std::string> cells) { return csv_line(cells); };
  CsvText out = line({"candidate", "pay", "gpus", "possible", "mfu", "goodput", "time_s",
                      "time_s_p05", "time_s_p95", "usd", "usd_p05", "usd_p95", "energy_j", "peak_w",
                      "chance", "on_front", "capital_usd"});
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanCandidate& candidate = answer.candidate(i);
    const PlanResult& r = answer.result(i);
    const bool possible = r.model.impossible.empty();
    std::vector<std::string> cells{candidate.name, candidate.rented ? "rent" : "own",
                                   std::to_string(r.model.scenario.gpus()), possible ? "1" : "0"};
    if (possible) {
      for (const double value :
           {r.model.mfu, r.expected.goodput, r.expected.time_s, r.time_s.low, r.time_s.high,
            r.expected.usd, r.usd.low, r.usd.high, r.expected.energy_j, r.expected.peak_w,
            r.chances.all, r.on_front ? 1.0 : 0.0, r.expected.capital.total_usd()}) {
        cells.push_back(number_text(value));
      }
      constexpr std::array<std::size_t, 4> kMoneyCells{9, 10, 11, 16};
      for (const std::size_t cell : kMoneyCells) {
        if (!is_priced(candidate)) cells[cell].clear();
      }
    } else {
      cells.resize(17);
    }
    out += line(std::move(cells));
  }
  return out;
}

}  // namespace lockstep
