// Experts in demand on the wire: who receives more, what it costs on a full and on a thin fabric.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/step/layer_routes.hpp"
#include "sim/step/pieces.hpp"
#include "sim/step/site.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kTwoLevel = "two_level", kPairs = "all_to_all";

struct SkewedJob {
  double imbalance = 1;
  std::string_view dispatch = kPairs;
  double oversubscription = 1;
  int nodes = 2, tensor = 1, expert = 16;
  std::string_view sharding = "none";

  /// A leaf for each node. Gradients are summed after the last pass, where no token is on its way.
  [[nodiscard]] Scenario scenario() const {
    const std::string text = fmt::format(
        R"({{"model": {{"preset": "llama3_8b", "layers": 2,
                        "experts": {{"count": 16, "per_token": 2, "ffn": 4096}}}},
             "cluster": {{"node": "dgx_h100", "nodes": {},
                          "fabric": {{"kind": "fat_tree", "routing": "spray", "leaf_ports_down": 8,
                                      "leaf_oversubscription": {}}}}},
             "parallelism": {{"tensor": {}, "expert": {}, "expert_tensor": 1,
                              "expert_dispatch": "{}", "sharding": "{}"}},
             "stack": {{"preset": "megatron_core",
                        "communication": {{"overlap_gradients": {}, "overlap_parameters": false}}}},
             "routing": {{"imbalance": {}}},
             "batch": {{"sequences": 64, "tokens": 4096}}}})",
        nodes, oversubscription, tensor, expert, dispatch, sharding, sharding == "zero3",
        imbalance);
    return read_scenario("skewed.json", text, test::presets());
  }
};

double exposed(const StepReport& report) {
  return report.seconds[static_cast<std::size_t>(Bucket::expert_exposed)];
}
double exposed(const SkewedJob& job) { return exposed(simulate_step(job.scenario())); }

/// Exchanges of tokens of a step when alone on their links.
ExchangeCost exchanges_alone(const Scenario& s) {
  const Pieces pieces = make_pieces(workload_context(s, Placement{placement_spec(s)}));
  ExchangeCost sum;
  const Piece& layer = pieces.layers[Pieces::piece_of(s.job.kind(0))];
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const Axis axis : {Axis::expert, Axis::expert_return}) {
      sum += layer.cost(pass).exchanges[static_cast<std::size_t>(axis)];
    }
  }
  const double times = s.job.model.layers * plan_step(s).micro_batches;
  sum.latency *= times;
  sum.transfer *= times;
  return sum;
}

/// What the NICs of a job carry one way, for each byte that a GPU sends on average: by GPU.
struct NicLoads {
  std::vector<double> out, in;
};
NicLoads nic_loads(const Scenario& s, Axis axis) {
  const StepPlan plan = plan_step(s);
  const Fabric fabric = own_fabric(s, plan);
  const Lanes lanes(plan, fabric);
  LayerRoutes routes(plan, lanes);
  std::vector<RouteHop> uses;
  for (int replica = 0; replica < plan.placement.data; ++replica) {
    routes.add({replica, 0}, axis, uses);
  }
  std::vector<double> by_link(fabric.link_count());
  for (const RouteHop& use : uses) by_link[use.link] += use.share;
  NicLoads loads;
  for (int node = 0; node < s.nodes; ++node) {
    for (int nic = 0; nic < fabric.nics_per_node(); ++nic) {
      loads.out.push_back(by_link[fabric.nic_up(node, nic)]);
      loads.in.push_back(by_link[fabric.nic_down(node, nic)]);
    }
  }
  return loads;
}
double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

}  // namespace

TEST_CASE("expert skew: the NIC of the rank in demand carries its share of all tokens") {
  const double x = 4.0 / 16;
  for (const int tensor : {1, 2}) {
    CAPTURE(tensor);
    const Scenario s = SkewedJob{.imbalance = 16 * x, .tensor = tensor}.scenario();
    const NicLoads there = nic_loads(s, Axis::expert), back = nic_loads(s, Axis::expert_return);
    CHECK(sum_of(there.in) == doctest::Approx(16));
    CHECK(sum_of(there.out) == doctest::Approx(16));
    CHECK(sum_of(back.in) == doctest::Approx(16));
    CHECK(sum_of(back.out) == doctest::Approx(16));
    CHECK(there.in[0] / sum_of(there.in) == doctest::Approx(x));
    // On the way back members of a node send on the rails of their receivers (PXN), all alike.
    const double of_node = x + 7 * (1 - x) / 15;
    for (std::size_t gpu = 0; gpu < 16; ++gpu) {
      CAPTURE(gpu);
      const double own = gpu < 8 ? of_node : 1 - of_node;
      CHECK(back.out[gpu] / sum_of(back.out) == doctest::Approx(own / 8));
      if (gpu > 0) CHECK(there.in[gpu] / sum_of(there.in) == doctest::Approx((1 - x) / 15));
    }
  }
}

TEST_CASE("expert skew: sent once per domain, tokens share the NICs of the domain in demand") {
  // The first rank has 4 of 16 parts, its domain 0.6 of all copies; a token has two.
  const Scenario s = SkewedJob{.imbalance = 4, .dispatch = kTwoLevel}.scenario();
  const double hot = 1 - 0.4 * 0.4, cold = 1 - 0.6 * 0.6;
  const NicLoads there = nic_loads(s, Axis::expert), back = nic_loads(s, Axis::expert_return);
  for (std::size_t gpu = 0; gpu < 16; ++gpu) {
    const double own = gpu < 8 ? hot : cold, other = gpu < 8 ? cold : hot;
    CHECK(there.in[gpu] == doctest::Approx(2 * own / (hot + cold)));
    CHECK(back.out[gpu] == doctest::Approx(2 * own / (hot + cold)));
    CHECK(there.out[gpu] == doctest::Approx(2 * other / (hot + cold)));
    CHECK(back.in[gpu] == doctest::Approx(2 * other / (hot + cold)));
  }
}

TEST_CASE("expert skew: on a full fabric a step waits for tokens as the closed form says") {
  for (const std::string_view dispatch : {kPairs, kTwoLevel}) {
    for (const double imbalance : {1.0, 1.5, 4.0, 16.0}) {
      CAPTURE(dispatch);
      CAPTURE(imbalance);
      const SkewedJob job{.imbalance = imbalance, .dispatch = dispatch};
      const double alone = exchanges_alone(job.scenario()).total().base_units();
      CHECK(exposed(job) == doctest::Approx(alone).epsilon(1e-6));
    }
  }
}

TEST_CASE("expert skew: a rank with a quarter of all tokens makes 16 wait by hand") {
  const Seconds even = exchanges_alone(SkewedJob{}.scenario()).transfer;
  const Seconds quarter = exchanges_alone(SkewedJob{.imbalance = 4}.scenario()).transfer;
  // On the way there its NIC takes four times the mean; back those of its node share what leaves.
  CHECK(double{quarter / even} == doctest::Approx((4 + (4 + 7 * 0.8) / 8) / 2));
}

TEST_CASE("expert skew: a thin fabric is held back by the leaf of the node in demand") {
  // Behind 8:1 leaves the node's links are full, not those of the GPU.
  const SkewedJob even{.oversubscription = 8};
  const SkewedJob skewed{.imbalance = 2.5, .oversubscription = 8};
  const double latency = exchanges_alone(even.scenario()).latency.base_units();
  const double of_node = (2.5 + 7 * 13.5 / 15) / 8;
  CHECK((exposed(skewed) - latency) / (exposed(even) - latency) ==
        doctest::Approx(of_node).epsilon(1e-4));
}

TEST_CASE("expert skew: more of it is never faster, on whichever fabric") {
  for (const std::string_view dispatch : {kPairs, kTwoLevel}) {
    for (const double oversubscription : {1.0, 4.0, 16.0}) {
      for (const int expert : {8, 16}) {
        double before = 0;
        for (const double imbalance : {1.0, 1.01, 1.5, 4.0, 8.0}) {
          CAPTURE(dispatch);
          CAPTURE(oversubscription);
          CAPTURE(imbalance);
          const double now = exposed({.imbalance = imbalance,
                                      .dispatch = dispatch,
                                      .oversubscription = oversubscription,
                                      .expert = expert});
          CHECK(now >= before * (1 - 1e-9));
          before = now;
        }
      }
    }
  }
}

TEST_CASE("expert skew: replicas folded and one by one take the same step") {
  for (const std::string_view dispatch : {kPairs, kTwoLevel}) {
    for (const std::string_view sharding : {"none", "zero3"}) {
      for (const int tensor : {1, 2, 4}) {
        for (const int expert : {8, 16}) {
          CAPTURE(dispatch);
          CAPTURE(sharding);
          CAPTURE(tensor);
          CAPTURE(expert);
          const Scenario s = SkewedJob{.imbalance = 3,
                                       .dispatch = dispatch,
                                       .oversubscription = 4,
                                       .nodes = 4,
                                       .tensor = tensor,
                                       .expert = expert,
                                       .sharding = sharding}
                                 .scenario();
          const StepReport folded = simulate_step(s);
          const StepReport unfolded = simulate_step(s, {.folding = Folding::unfolded});
          CHECK(folded.method == StepMethod::exact);
          CHECK(folded.replicas_simulated < unfolded.replicas_simulated);
          CHECK(std::abs(folded.step_s - unfolded.step_s) <= 1e-9 * unfolded.step_s);
          CHECK(std::abs(exposed(folded) - exposed(unfolded)) <= 1e-9 * unfolded.step_s);
        }
      }
    }
  }
}

}  // namespace lockstep
