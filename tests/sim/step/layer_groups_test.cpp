#include "sim/step/layer_groups.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/step/pieces.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// 48 heads of a dense model on eight nodes of eight H100s.
Scenario spread_job(const std::string& parallelism, const std::string& more = "") {
  const std::string text = fmt::format(
      R"({{"model": {{"layers": 6, "hidden": 6144, "heads": 48, "ffn": 24576,
                       "vocabulary": 48000{}}},
           "cluster": {{"node": "dgx_h100", "nodes": 9, "fabric": "fat_tree"}},
           "stack": "megatron_core", "parallelism": {{{}}},
           "batch": {{"sequences": 720, "tokens": 2304}}}})",
      more, parallelism);
  return read_scenario("spread.json", text, test::presets());
}

ExchangeCost exchange_of(const Scenario& s, Axis axis) {
  const Pieces pieces = make_pieces(workload_context(s, Placement{placement_spec(s)}));
  const std::size_t kind = Pieces::piece_of(s.job.kind(0));
  return pieces.layers[kind].cost(Pass::forward).exchanges[static_cast<std::size_t>(axis)];
}

Seconds time_of(const CollectiveCall& call, const Scenario& s) {
  return collective_time(call, s.node.gpu, s.transport, s.node.nic_bandwidth);
}

Parallelism cut_of(int tensor, int data) {
  Parallelism cut;
  cut.tensor = tensor;
  cut.data = data;
  return cut;
}

std::vector<DomainSpread> sorted(const DomainSpreads& spreads) {
  std::vector<DomainSpread> ways = spreads.ways();
  std::ranges::sort(ways, {}, &DomainSpread::per_domain);
  return ways;
}

}  // namespace

TEST_CASE("layer_groups: tensor-parallel groups of 3, 5 and 6 on nodes of 8 straddle them") {
  const auto ways = [](int tensor) {
    const Scenario s = spread_job(
        fmt::format(R"("tensor": {}, "data": {}, "sequence": true)", tensor, 72 / tensor));
    return sorted(layer_groups(s.job.parallelism, Placement{placement_spec(s)}).tensor);
  };
  CHECK(ways(3) == std::vector<DomainSpread>{{1, 2, 2}, {3, 1, 3}});
  CHECK(ways(4) == std::vector<DomainSpread>{{4, 1, 4}});
  CHECK(ways(6) == std::vector<DomainSpread>{{2, 2, 4}, {6, 1, 6}});
  const Placement five({.tensor = 5, .data = 8, .pipeline = 1});
  CHECK(sorted(layer_groups(cut_of(5, 8), five).tensor) ==
        std::vector<DomainSpread>{{1, 2, 4}, {2, 2, 3}, {5, 1, 5}});
}

TEST_CASE("layer_groups: a stage is as slow as its group that lies worst") {
  // Two all-gathers and two reduce-scatters a layer and pass, each of tokens x hidden in 16 bit.
  const auto forward = [](int tensor) {
    const Scenario s = spread_job(
        fmt::format(R"("tensor": {}, "data": {}, "sequence": true)", tensor, 72 / tensor));
    return exchange_of(s, Axis::tensor).total();
  };
  const auto expected = [](int tensor, int least, int domains, int most) {
    const Scenario s = spread_job(
        fmt::format(R"("tensor": {}, "data": {}, "sequence": true)", tensor, 72 / tensor));
    const double slowdown = s.stack.communication.tensor_slowdown;
    Seconds sum;
    for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
      sum +=
          2 * slowdown * time_of({op, Bytes{2.0 * 2304 * 6144}, tensor, least, domains, most}, s);
    }
    return sum;
  };
  CHECK(forward(3) / expected(3, 1, 2, 2) == doctest::Approx(1));
  CHECK(forward(6) / expected(6, 2, 2, 4) == doctest::Approx(1));
  CHECK(forward(4) / expected(4, 4, 1, 4) == doctest::Approx(1));
  // Three ranks on two nodes cost what a network costs: several times as much as four on NVLink.
  CHECK(forward(3) > 3.0 * forward(4));
}

TEST_CASE("layer_groups: context-parallel groups that straddle nodes pay for the network") {
  const auto all_gather = R"(, "context_exchange": "all_gather")";
  const Scenario three = spread_job(fmt::format(R"("context": 3, "data": 24{})", all_gather));
  CHECK(sorted(layer_groups(three.job.parallelism, Placement{placement_spec(three)}).context) ==
        std::vector<DomainSpread>{{1, 2, 2}, {3, 1, 3}});
  const double key_value = 2.0 * 2304 / 3 * 2 * 6144;
  const Seconds expected =
      time_of({CollectiveOp::all_gather, Bytes{3 * key_value}, 3, 1, 2}, three);
  CHECK(exchange_of(three, Axis::context).total() / expected == doctest::Approx(1));
  const Scenario two = spread_job(fmt::format(R"("context": 2, "data": 36{})", all_gather));
  CHECK(exchange_of(two, Axis::context).network == Bytes{});
}

TEST_CASE("layer_groups: expert-parallel groups that straddle nodes pay for the network") {
  const std::string experts = R"(, "experts": {"count": 12, "per_token": 2, "ffn": 2048})";
  const Scenario s = spread_job(R"("data": 72, "expert": 6)", experts);
  const LayerGroups groups = layer_groups(s.job.parallelism, Placement{placement_spec(s)});
  CHECK(sorted(groups.expert) == std::vector<DomainSpread>{{2, 2, 4}, {6, 1, 6}});
  const CollectiveCall call{CollectiveOp::all_to_all, Bytes{2.0 * 2 * 2304 * 6144}, 6, 2, 2};
  CHECK(exchange_of(s, Axis::expert).total() / (2 * time_of(call, s)) == doctest::Approx(1));
  CHECK(exchange_of(spread_job(R"("data": 72, "expert": 4)", experts), Axis::expert).network ==
        Bytes{});
  // Of four ranks that share two experts, the pairs that split one lie side by side.
  const Scenario split = spread_job(R"("data": 72, "expert": 2, "expert_tensor": 3)", experts);
  const LayerGroups of = layer_groups(split.job.parallelism, Placement{placement_spec(split)});
  CHECK(sorted(of.expert) == std::vector<DomainSpread>{{1, 2, 1}, {2, 1, 2}});
  CHECK(sorted(of.expert_shard) == std::vector<DomainSpread>{{1, 2, 2}, {3, 1, 3}});
}

TEST_CASE("data_groups: replicas of a width that does not divide a node lie unevenly") {
  // Ranks 0, 3, 6 | 9, 12, 15 | 18, 21; 1, 4, 7 | 10, 13 | 16, 19, 22; 2, 5 | 8, 11, 14 | 17, ...
  const Placement placement({.tensor = 3, .data = 8, .pipeline = 1});
  const DataGroup group = data_groups(cut_of(3, 8), placement, 0)[0];
  CHECK(sorted(group.spreads) == std::vector<DomainSpread>{{2, 3, 3}});
  CHECK(group.per_domain == 3);
  CHECK(group.crosses_domains);
  const Placement even({.tensor = 4, .data = 8, .pipeline = 1});
  CHECK(sorted(data_groups(cut_of(4, 8), even, 0)[0].spreads) ==
        std::vector<DomainSpread>{{2, 4, 2}});
}

TEST_CASE("lanes: jobs whose groups straddle nodes fold exactly") {
  for (const std::string cut :
       {R"("tensor": 3, "pipeline": 2, "data": 12)", R"("tensor": 6, "pipeline": 3, "data": 4)",
        R"("tensor": 6, "data": 12, "sharding": "zero1")",
        R"("tensor": 12, "pipeline": 2, "data": 3)"}) {
    CAPTURE(cut);
    const Scenario s = spread_job(cut);
    const double folded = simulate_step(s).step_s;
    const double unfolded = simulate_step(s, {.folding = Folding::unfolded}).step_s;
    CHECK(unfolded == doctest::Approx(folded).epsilon(1e-9));
  }
}

}  // namespace lockstep
