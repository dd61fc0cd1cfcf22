// Power and money of a queue, against what follows from the books.
#include "sim/cluster/queue_bill.hpp"

#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/power/site_power.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/cluster/queue_draws.hpp"
#include "sim/cluster/queue_summary.hpp"
#include "sim/power/step_power.hpp"
#include "sim/power/switch_ports.hpp"
#include "sim/scenario/read_queue.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kHour = 3600;

/// A job of a node for an hour, and one of two GPUs of another account for two; then nothing.
Json powered_queue() {
  return Json::parse(R"({
    "cluster": {"node": "dgx_h100", "nodes": 4, "fabric": "fat_tree"},
    "power": {"facility": {"preset": "air_chiller", "pue": 1.25}},
    "queue": {"order": "fifo", "admission": "strict", "until": "5 h", "gpu_draw": "500 W", "jobs": [
      {"job": {"name": "wide", "gpus": 8, "runs": "1 h", "account": "a"}},
      {"job": {"name": "narrow", "gpus": 2, "runs": "2 h", "account": "b"}}]}})");
}

QueueSpec read_powered(const Json& scenario) {
  QueueSpec spec = read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
  time_trainings(spec);
  return spec;
}
QueueSummary summarised(const QueueSpec& spec) { return summary_of(spec, simulate_queue(spec)); }
std::string problem_of_power(const Json& scenario) {
  try {
    (void)read_powered(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// At the meter: so many GPUs of four nodes held at so much each, the others idle.
double facility_w(const QueueSpec& spec, double held, double gpu_w) {
  const NodeSpec& node = spec.cluster.node;
  const double each = node_power(node, Watts{8 * gpu_w}, true).ac().base_units() / 8;
  const double idle = idle_node_power(node).ac().base_units() / 8;
  const double fabric =
      fabric_power(spec.power->facility, switch_ports(spec.cluster)).total().base_units();
  return 1.25 * (held * each + (32 - held) * idle + fabric);
}

}  // namespace

TEST_CASE("queue power: the energy is that of held and of idle GPUs, node by node") {
  const QueueSpec spec = read_powered(powered_queue());
  const QueueSummary summary = summarised(spec);
  REQUIRE(summary.power);
  const QueuePower& power = *summary.power;
  const double expected =
      kHour * (facility_w(spec, 10, 500) + facility_w(spec, 2, 500) + 3 * facility_w(spec, 0, 500));
  CHECK(power.energy.base_units() == doctest::Approx(expected).epsilon(1e-6));
  CHECK(power.peak.base_units() == doctest::Approx(facility_w(spec, 10, 500)).epsilon(1e-6));
  CHECK(power.pue == doctest::Approx(1.25));
  CHECK(power.least == power.energy);
  CHECK(power.most == power.energy);
}

TEST_CASE(
    "queue power: where nobody says what jobs draw, the band ends at waiting and at the limit") {
  Json scenario = powered_queue();
  scenario["queue"].erase("gpu_draw");
  const QueueSpec open = read_powered(scenario);
  const GpuSpec& gpu = open.cluster.node.gpu;
  const QueueSummary summary = summarised(open);
  const auto energy_at = [&](Watts draw) {
    scenario["queue"]["gpu_draw"] = draw.base_units();
    return summarised(read_powered(scenario)).power->energy.base_units();
  };
  CHECK(summary.power->least.base_units() ==
        doctest::Approx(energy_at(gpu.power->awake)).epsilon(1e-6));
  CHECK(summary.power->most.base_units() ==
        doctest::Approx(energy_at(gpu.power_limit)).epsilon(1e-6));
  CHECK(summary.power->energy.base_units() ==
        doctest::Approx(energy_at(0.5 * (gpu.power->awake + gpu.power_limit))).epsilon(1e-6));
  bool said = false;
  for (const std::string& text : open.assumptions) said |= text.starts_with("queue.gpu_draw: ");
  CHECK(said);
}

TEST_CASE("queue power: a training draws what its step does, a broken node nothing") {
  Json scenario = powered_queue();
  scenario["queue"].erase("gpu_draw");
  scenario["queue"]["jobs"] = Json::parse(R"([{"training": {
    "name": "t", "nodes": 4, "steps": 1000, "model": "llama3_8b",
    "parallelism": {"data": 32, "sharding": "zero3"},
    "batch": {"sequences": 32, "micro": 1, "tokens": 4096},
    "recompute": "full", "stack": "megatron_core"}}])");
  scenario["queue"].erase("until");
  const QueueSpec spec = read_powered(scenario);
  Scenario step = spec.trainings[0].scenario;
  step.power = spec.power;
  const StepPower alone =
      step_power(step, simulate_step(step, {.record_timeline = true, .keep_actors = true}));
  const QueueSummary summary = summarised(spec);
  CHECK(spec.trainings[0].gpu_draw.base_units() ==
        doctest::Approx(alone.levels.training.gpu.base_units()));
  CHECK(mean_power(summary.power->facility).base_units() ==
        doctest::Approx(alone.levels.training.facility.base_units()).epsilon(0.01));
  CHECK(summary.power->least == summary.power->most);

  Json broken = powered_queue();
  broken["queue"]["jobs"].erase(0);
  broken["queue"]["breaks"] = Json::parse(R"([{"node": 3, "at": "0 s", "repair": "5 h"}])");
  const QueueSpec fewer = read_powered(broken);
  const double idle = idle_node_power(fewer.cluster.node).ac().base_units();
  CHECK(summarised(fewer).power->peak.base_units() ==
        doctest::Approx(facility_w(fewer, 2, 500) - 1.25 * idle).epsilon(1e-6));
}

TEST_CASE("queue money: who holds GPUs pays for all of them, owned or rented") {
  Json scenario = powered_queue();
  scenario["price"] = {{"usd_per_gpu_hour", 2}};
  const QueueSummary rented = summarised(read_powered(scenario));
  CHECK(*rented.bill.rent_usd == doctest::Approx(2 * 32 * 5.0));
  CHECK_FALSE(rented.bill.owned_usd);
  // 8 GPU hours of one account, 4 of the other.
  CHECK(*rented.bill.usd_per_held_gpu_hour() == doctest::Approx(320 / 12.0));
  REQUIRE(rented.by_account.size() == 2);
  CHECK(*rented.by_account[0].usd + *rented.by_account[1].usd == doctest::Approx(320));
  CHECK(*rented.all.usd == doctest::Approx(320));

  scenario["cost"] = {{"usd_per_gpu", 30'000}, {"years", 5}, {"usd_per_kwh", 0.1}};
  const QueueSummary owned = summarised(read_powered(scenario));
  const double written_off = 32 * 30'000.0 * 5 / (5 * 365.25 * 24);
  const double energy = owned.power->energy.base_units() / 3.6e6 * 0.1;
  CHECK(*owned.bill.owned_usd == doctest::Approx(written_off + energy).epsilon(1e-3));
  CHECK(*owned.bill.usd_per_held_gpu_hour() == doctest::Approx(*owned.bill.owned_usd / 12));

  CHECK_FALSE(summarised(read_powered(powered_queue())).all.usd);
}

TEST_CASE("queue money: a tariff alone owns nothing") {
  Json scenario = powered_queue();
  scenario["cost"] = {{"usd_per_kwh", 0.1}};
  const QueueSpec tariff = read_powered(scenario);
  const QueueSummary energy = summarised(tariff);
  CHECK_FALSE(energy.bill.owned_usd);
  CHECK(*energy.bill.partial_usd ==
        doctest::Approx(energy.power->energy.base_units() / 3.6e6 * 0.1).epsilon(1e-3));
  CHECK(*energy.bill.usd_per_held_gpu_hour() == doctest::Approx(*energy.bill.partial_usd / 12));
  CHECK(billed_words(tariff, energy.bill) == "energy only");

  scenario["price"] = {{"usd_per_gpu_hour", 2}};
  const QueueSpec both = read_powered(scenario);
  const QueueSummary rented = summarised(both);
  CHECK(rented.bill.of == MoneyOf::rent);
  CHECK(*rented.bill.usd_per_held_gpu_hour() == doctest::Approx(320 / 12.0));
  CHECK(billed_words(both, rented.bill) == "rented");
}

TEST_CASE("queue power: what cannot be is said where it stands") {
  Json scenario = powered_queue();
  scenario["queue"]["gpu_draw"] = "900 W";
  CHECK(problem_of_power(scenario) ==
        "t.json#/queue/gpu_draw: found \"900 W\"; allowed: at most 700 W, the limit of "
        "h100_sxm5_80gb");
  scenario = powered_queue();
  scenario.erase("power");
  CHECK(problem_of_power(scenario).find("#/queue/gpu_draw: ") != std::string::npos);
  scenario["queue"].erase("gpu_draw");
  scenario["cost"] = {{"usd_per_gpu", 30'000}};
  CHECK(problem_of_power(scenario).find("#/cost: ") != std::string::npos);
}

}  // namespace lockstep
