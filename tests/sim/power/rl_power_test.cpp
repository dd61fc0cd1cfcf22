// The power of an iteration of reinforcement learning: books that balance over pools and schedules,
// limit cases that are plain training, and weeks of it.
#include "sim/power/rl_power.hpp"

#include <doctest/doctest.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "sim/answer/answer.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json drawing_rl(const char* power = "{}") {
  Json out = Json::parse(R"({
    "model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "rail_optimised"},
    "parallelism": {"data": 8, "sharding": "zero1"},
    "batch": {"sequences": 64, "tokens": 2048},
    "recompute": "full",
    "rl": {"algorithm": "grpo", "prompts": 8, "generations": 16, "updates": 2,
      "prompt_tokens": 100, "responses": {"mean": 400, "most": 1500, "sigma": 0.8},
      "generation": {"engine": {"preset": "vllm", "memory_fraction": 0.7}}}
  })");
  out["power"] = Json::parse(power);
  return out;
}
RlScenario drawing_scenario(const Json& of, std::vector<std::string> sets = {}) {
  return read_rl_scenario("rl.json", write_json(of), test::presets(), {.set = std::move(sets)});
}

struct Iteration {
  RlScenario scenario;
  RlReport report;
  RlPower power;

  explicit Iteration(RlScenario of)
      : scenario(std::move(of)),
        report(simulate_rl_step(scenario, {.power = true})),
        power(rl_power(scenario, report)) {}

  [[nodiscard]] const RlPhasePower& phase(std::string_view name) const {
    for (const RlPhasePower& of : power.phases) {
      if (of.name == name) return of;
    }
    FAIL("no phase " << name);
    return power.phases.front();
  }
};

void check_iteration(const Iteration& it) {
  const StepPower& site = it.power.site;
  double gpu_seconds = 0;
  Joules gpus, all, parts;
  const GpuSpec& gpu = it.scenario.training.node.gpu;
  for (const RlPhasePower& phase : it.power.phases) {
    CAPTURE(phase.name);
    CHECK(phase.gpu_seconds > 0);
    CHECK(phase.gpu_mean() >= gpu.power->awake * (1 - 1e-9));
    CHECK(phase.gpu_mean() <= gpu.power_limit * (1 + 1e-9));
    CHECK(phase.site > phase.gpus);
    gpu_seconds += phase.gpu_seconds;
    gpus += phase.gpus;
    all += phase.site;
  }
  for (const PowerShare& share : site.shares) parts += share.energy;
  const double step = it.report.step.base_units(), energy = site.energy().base_units();
  CHECK(gpu_seconds == doctest::Approx(step * it.report.gpus()).epsilon(1e-9));
  CHECK(site.facility.end.base_units() == doctest::Approx(step).epsilon(1e-9));
  CHECK(all.base_units() == doctest::Approx(energy).epsilon(1e-9));
  CHECK(parts.base_units() == doctest::Approx(energy).epsilon(1e-9));
  CHECK(gpus.base_units() ==
        doctest::Approx((site.gpu_mean * it.report.step).base_units() * it.report.gpus())
            .epsilon(1e-9));
  CHECK(site.gpu_peak <= gpu.power_limit * (1 + 1e-9));
  CHECK(site.gpu_trough <= site.gpu_mean);
  CHECK(site.facility_meter.high <= peak_power(site.facility) * (1 + 1e-9));
}

}  // namespace

TEST_CASE("rl power: phases and components add up to the iteration, whoever takes turns") {
  const std::string own = "rl.generation.nodes=1";
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {},
           {own},
           {own, "rl.schedule=one_step_off"},
           {own, "rl.schedule=in_flight"},
           {"rl.generation.tensor=2"},
           {"rl.reward_time=3 s"},
           {"parallelism.sharding=zero3"},
           {"rl.algorithm=ppo", "rl.reward_model=llama3_2_1b", "rl.critic=llama3_2_1b", own}}) {
    CAPTURE(sets);
    check_iteration(Iteration(drawing_scenario(drawing_rl(), sets)));
  }
}

TEST_CASE("rl power: decoding waits for memory and draws less than training, a wait the least") {
  const Iteration it(drawing_scenario(drawing_rl()));
  const GpuPowerConstants& c = *it.scenario.training.node.gpu.power;
  CHECK(it.phase("decode").gpu_mean() < it.phase("training").gpu_mean());
  CHECK(it.phase("decode").gpu_mean() > c.active);
  CHECK(it.phase("reference").gpu_mean() > it.phase("decode").gpu_mean());
  CHECK(it.phase("drain").gpu_mean().base_units() == doctest::Approx(c.awake.base_units()));
  // Training comes back from the host and leaves again: its bytes pass HBM twice.
  CHECK(it.phase("offload").gpu_mean() > c.awake);
  CHECK(it.phase("offload").gpu_mean() < c.active);
}

TEST_CASE("rl power: new weights leave a GPU once, are read once and written once") {
  // Whoever trains also generates: each gets the whole engine's weights.
  const Iteration it(drawing_scenario(drawing_rl()));
  REQUIRE(it.report.generation_gpus == 0);
  REQUIRE(it.report.weight_sync > Seconds{});
  const GpuPowerConstants& gpu = *it.scenario.training.node.gpu.power;
  const Bytes sent = it.report.engine_weights;
  const Watts drawn = gpu.active + (gpu.link * sent + gpu.hbm * (2 * sent)) / it.report.weight_sync;
  CHECK(it.phase("weight_sync").gpu_mean().base_units() ==
        doctest::Approx(drawn.base_units()).epsilon(1e-9));
}

TEST_CASE("rl power: an iteration that only trains draws what its updates draw") {
  Json simpo = drawing_rl();
  simpo["rl"] = {{"algorithm", "simpo"},
                 {"prompts", 32},
                 {"prompt_tokens", 1024},
                 {"packing", false},
                 {"responses", {{"mean", 1024}, {"most", 1024}, {"sigma", 0}}}};
  const Iteration it(drawing_scenario(simpo));
  check_iteration(it);
  REQUIRE(it.power.phases.size() == 1);
  CHECK(it.power.phases[0].name == "training");
  Scenario training = it.scenario.training;
  training.job.batch = it.report.training_batch;
  const StepPower alone =
      step_power(training, simulate_step(training, {.record_timeline = true, .keep_actors = true}));
  CHECK(it.power.site.energy().base_units() ==
        doctest::Approx(alone.energy().base_units()).epsilon(1e-9));
  CHECK(peak_power(it.power.site.facility).base_units() ==
        doctest::Approx(peak_power(alone.facility).base_units()).epsilon(1e-9));
  CHECK(it.power.site.facility_meter.high.base_units() ==
        doctest::Approx(alone.facility_meter.high.base_units()).epsilon(1e-6));
}

TEST_CASE("rl power: a floor fills every wait, a cap is held in every phase") {
  const Iteration floor(drawing_scenario(drawing_rl(R"({"smoothing": {"floor": "500 W"}})")));
  check_iteration(floor);
  for (const RlPhasePower& phase : floor.power.phases) {
    CAPTURE(phase.name);
    CHECK(phase.gpu_mean().base_units() >= 500 * (1 - 1e-9));
  }
  CHECK(floor.phase("drain").gpu_mean().base_units() == doctest::Approx(500));
  const Iteration capped(drawing_scenario(drawing_rl(R"({"cap": "450 W"})")));
  check_iteration(capped);
  CHECK(capped.power.site.gpu_peak.base_units() <= 450 * (1 + 1e-9));
  CHECK(capped.report.training > Iteration(drawing_scenario(drawing_rl())).report.training);
}

TEST_CASE("rl power: a decoding step of more sequences takes more energy, and less for each") {
  ServingReplicaSpec spec;
  spec.model = test::presets().model("llama3_8b");
  spec.node = test::presets().node("dgx_h100");
  spec.transport = test::presets().transport("infiniband");
  spec.engine = engine_preset(test::presets(), "vllm").rollout();
  ServingReplica replica(spec);
  const GpuSpec& gpu = spec.node.gpu;
  const auto drawn_by = [&](int sequences, double context) {
    const PassLoad load{.sequences = sequences, .context = sequences * context};
    const ServingPass pass = replica.pass(load);
    const ByGpuPart<Joules> drawn = replica.drawn_by_part(load, pass.total());
    CHECK(sum(drawn) / pass.drawn == doctest::Approx(1).epsilon(1e-12));
    CHECK(pass.drawn >= gpu.power->active * pass.total() * (1 - 1e-9));
    CHECK(pass.drawn <= gpu.power_limit * pass.total() * (1 + 1e-9));
    return drawn;
  };
  Joules before, each_before{1e9};
  for (const int sequences : {1, 8, 64, 256}) {
    CAPTURE(sequences);
    const Joules drawn = sum(drawn_by(sequences, 1000));
    CHECK(drawn > before);
    CHECK(drawn / sequences < each_before);
    before = drawn;
    each_before = drawn / sequences;
  }
  // Its weights are read once, whoever asks: bytes through HBM are at least theirs.
  CHECK(drawn_by(1, 1)[static_cast<std::size_t>(GpuPart::hbm)] >=
        0.9 * (gpu.power->hbm * replica.weights()));
}

TEST_CASE("rl power: weeks without failures take an iteration's energy and money each time") {
  Json scenario = drawing_rl();
  scenario["cost"] = {{"usd_per_gpu", 30000}, {"usd_per_kwh", 0.1}, {"years", 4}};
  const ScenarioAnswer once = answer_text("rl.json", write_json(scenario), test::presets());
  const auto of = [](const ScenarioAnswer& answer, const char* name) {
    CAPTURE(name);
    const std::optional<double> number = answer.number(name);
    REQUIRE(number);
    return *number;
  };
  CHECK(of(once, "energy_j") == doctest::Approx(of(once, "energy_per_step_j")));
  CHECK(of(once, "energy_per_step_j") ==
        doctest::Approx(of(once, "facility_mean_w") * of(once, "step_s")));
  CHECK(of(once, "power.bill.energy_usd") == doctest::Approx(0.1 * of(once, "energy_j") / 3.6e6));
  scenario["run"] = {
      {"steps", 50}, {"reliability", {{"modes", Json::array()}}}, {"trajectories", 2}};
  const ScenarioAnswer weeks = answer_text("rl.json", write_json(scenario), test::presets());
  CHECK(of(weeks, "energy_j") == doctest::Approx(50 * of(once, "energy_j")).epsilon(1e-6));
  CHECK(of(weeks, "owned_usd") == doctest::Approx(50 * of(once, "owned_usd")).epsilon(1e-6));
  CHECK(of(weeks, "joules_per_token") ==
        doctest::Approx(of(once, "joules_per_token")).epsilon(1e-6));
}

TEST_CASE("rl power: the engine's own nodes are held, fed and limited too") {
  Json scenario = drawing_rl(R"({"site_limit": "1 kW"})");
  const ScenarioAnswer shared = answer_text("rl.json", write_json(scenario), test::presets());
  scenario["rl"]["generation"]["nodes"] = 1;
  const ScenarioAnswer own = answer_text("rl.json", write_json(scenario), test::presets());
  const auto nameplate = [](const ScenarioAnswer& of) {
    return of.number("power.gpu_nameplate_w").value();
  };
  CHECK(nameplate(own) == 2 * nameplate(shared));
  CHECK(own.number("facility_mean_w") > shared.number("facility_mean_w"));
  CHECK(own.number("site_excess_w").value() ==
        doctest::Approx(own.number("site_peak_w").value() - 1000));
  CHECK(own.number("site_excess_w") > 0);
}

}  // namespace lockstep
