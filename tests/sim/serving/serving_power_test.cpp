// What serving draws and costs, against sums by hand.
#include "sim/serving/serving_power.hpp"

#include <doctest/doctest.h>
#include <numeric>

#include "models/generation/serving_replica.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/scenario/serving_replica_spec.hpp"
#include "sim/serving/simulate_serving.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

ServingSpec powered_spec() {
  return read_serving(JsonCursor::parse("s.json", R"({
    "model": "llama3_70b",
    "cluster": {"node": "dgx_h100", "nodes": 2},
    "serving": {
      "load": {"rate": 2, "requests": 200, "input": {"mean": 1000}, "output": {"mean": 100}},
      "pools": {"both": {"replicas": 2, "tensor": 4}}, "weights": "fp8"
    },
    "power": {}, "cost": {"usd_per_kwh": 0.1}, "price": {"usd_per_gpu_hour": 3}
  })"),
                      test::presets());
}

}  // namespace

TEST_CASE("pass bins: energy and busy time survive every widening") {
  PassBins bins;
  constexpr int kPasses = 10'000;
  const RunTime each = to_run_time(Seconds{0.0137});
  for (int i = 0; i < kPasses; ++i) bins.add(i * 2 * each, (i * 2 + 1) * each, Joules{3});
  double busy = 0, drawn = 0;
  for (const PassBins::Bin& bin : bins.bins()) {
    busy += bin.busy_s;
    drawn += bin.drawn.base_units();
  }
  CHECK(bins.bins().size() <= 512);
  CHECK(busy == test::near(kPasses * 0.0137));
  CHECK(drawn == test::near(kPasses * 3.0));
  // Every second half of the time is idle, in each bin but the last.
  const double width = to_seconds(bins.width()).base_units();
  CHECK(bins.bins()[7].busy_s == test::near(width / 2).epsilon(0.02));
}

TEST_CASE("a decoding pass of one sequence draws its fixed part and the bytes of the weights") {
  const ServingSpec spec = powered_spec();
  ServingReplica replica(replica_spec(spec.pools[0], spec));
  const GpuSpec& gpu = spec.cluster.node.gpu;
  const ServingPass pass = replica.pass({.sequences = 1, .context = 1000});
  const Joules fixed = gpu.power->active * pass.total();
  // One row of everything but the embedding, whose rows are looked up.
  const Bytes looked_up{2.0 * spec.model.vocabulary * spec.model.hidden / 4};
  const Joules reading = gpu.power->hbm * (replica.weights() - looked_up);
  CHECK((pass.drawn - fixed).base_units() == test::near(reading.base_units()).epsilon(0.05));
}

TEST_CASE("a long prompt asks for more than the card's limit, and gets that") {
  ServingSpec spec = powered_spec();
  spec.cluster.node.gpu.power_limit = Watts{300};
  ServingReplica replica(replica_spec(spec.pools[0], spec));
  const ServingPass pass =
      replica.pass({.prompts = 1, .prompt_tokens = 8192, .prompt_pairs = 8192.0 * 4096});
  CHECK((pass.drawn / pass.total()).base_units() == test::near(300.0));
}

TEST_CASE("serving power: the mean GPU is its passes and its waiting, the site's energy its bill") {
  ServingSpec spec = powered_spec();
  const ServingReport report = simulate_serving(spec);
  REQUIRE(report.power);
  const ServingPower& p = *report.power;
  const double gpu = mean_power(p.gpus).base_units() / spec.gpus();
  CHECK(gpu == test::near(p.pools[0].base_units()));
  CHECK(gpu > spec.cluster.node.gpu.power->awake.base_units());
  CHECK(gpu < spec.cluster.node.gpu.power_limit.base_units());
  const double joules = energy(p.facility).base_units();
  CHECK(p.joules_per_output_token * report.figures.output_tokens == test::near(joules));
  CHECK(p.cost.energy_usd == test::near(joules / 3.6e6 * 0.1));
  CHECK(p.facility.end.base_units() == test::near(p.gpus.end.base_units()));
  REQUIRE(report.rent);
  CHECK(report.rent->usd == test::near(3.0 * 8 * p.facility.end.base_units() / 3600));
  CHECK(report.rent->per_million_output ==
        test::near(1e6 * report.rent->usd / report.figures.output_tokens));
}

TEST_CASE("serving power: a pool that nothing comes to draws what held cards draw") {
  ServingSpec spec = powered_spec();
  ServeResult idle;
  idle.end = to_run_time(Seconds{100});
  const ServingPower p = serving_power(spec, idle, {});
  CHECK(p.pools[0].base_units() == test::near(spec.cluster.node.gpu.power->awake.base_units()));
  CHECK(p.joules_per_output_token == 0);
}

TEST_CASE("serving power: two pools' GPUs add up") {
  ServingSpec spec = powered_spec();
  ServingPool decode = spec.pools[0];
  spec.pools[0].name = "prefill";
  spec.pools[0].replicas = 1;
  decode.name = "decode";
  spec.pools.push_back(decode);
  const ServingReport report = simulate_serving(spec);
  const ServingPower& p = *report.power;
  CHECK(mean_power(p.gpus).base_units() ==
        test::near(4 * p.pools[0].base_units() + 8 * p.pools[1].base_units()));
}

}  // namespace lockstep
