#include "tools/calibrate/collective_plan.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "tools/console/options.hpp"

using namespace lockstep;

namespace {

std::map<CollectiveOp, std::vector<double>> sizes_by_op(const std::vector<CollectiveTask>& plan) {
  std::map<CollectiveOp, std::vector<double>> out;
  for (const CollectiveTask& task : plan) out[task.op].push_back(task.size.base_units());
  return out;
}

std::vector<std::string> ranks_on(const std::map<std::string, int>& hosts) {
  std::vector<std::string> out;
  for (const auto& [host, ranks] : hosts) {
    for (int i = 0; i < ranks; ++i) out.push_back(host);
  }
  return out;
}

}  // namespace

TEST_CASE("plan_collectives: every octave from 8 bytes to what there is room for, five kinds") {
  const auto by_op = sizes_by_op(plan_collectives(16, gibibytes(3), {}));
  REQUIRE(by_op.size() == 5);
  const auto& reductions = by_op.at(CollectiveOp::all_reduce);
  const std::set<double> distinct(reductions.begin(), reductions.end());
  CHECK(distinct.size() == reductions.size());
  CHECK(*distinct.begin() == 8);
  CHECK(*distinct.rbegin() == gibibytes(2).base_units());
  CHECK(distinct.size() == 29);
  // Whatever ends the run early, the first half covers all sizes.
  const std::vector<double> first(reductions.begin(), reductions.begin() + 15);
  CHECK(first.front() == 8);
  CHECK(first.back() == gibibytes(2).base_units());
  CHECK(std::is_sorted(first.begin(), first.end()));
}

TEST_CASE("plan_collectives: where ranks share a size, each has whole 16 bytes of it") {
  for (const int ranks : {2, 3, 24, 1000}) {
    CAPTURE(ranks);
    for (const CollectiveTask& task : plan_collectives(ranks, gibibytes(1), {})) {
      const double size = task.size.base_units();
      CHECK(size <= gibibytes(1).base_units());
      const bool alone =
          task.op == CollectiveOp::all_reduce || task.op == CollectiveOp::send_receive;
      CHECK(std::fmod(size, alone ? 8.0 : 16.0 * ranks) == 0);
      CHECK(size > 0);
    }
  }
}

TEST_CASE("plan_collectives: only what was asked for") {
  const std::vector<std::string> only{"sendrecv", "alltoall"};
  const auto by_op = sizes_by_op(plan_collectives(8, gibibytes(1), only));
  CHECK(by_op.size() == 2);
  CHECK(by_op.contains(CollectiveOp::send_receive));
  CHECK(by_op.contains(CollectiveOp::all_to_all));
}

TEST_CASE("plan_overlaps: what hides behind products, in the card's 16-bit format") {
  const PresetStore presets;
  const GpuSpec& h100 = presets.gpu("h100_sxm5_80gb");
  const auto overlaps = plan_overlaps(24, h100, gibibytes(8), {});
  REQUIRE(overlaps.size() == 6);
  for (const OverlapTask& task : overlaps) {
    CHECK(task.product.precision == Precision::bf16);
    const double size = task.collective.size.base_units();
    CHECK(size <= 268435456);
    CHECK(size > 0.99 * 268435456);
  }
  CHECK(describe(overlaps.front()) ==
        "gemm bf16 forward 8192 x 8192 x 8192 beside all_reduce 268,435,456 bytes");
  CHECK(describe(overlaps[3]) ==
        "gemm bf16 forward 8192 x 8192 x 8192 beside all_reduce 268,435,456 bytes, high priority");
  const GpuSpec& v100 = presets.gpu("v100_sxm2_32gb");
  CHECK(plan_overlaps(8, v100, gibibytes(8), {}).front().product.precision == Precision::fp16);
  const std::vector<std::string> other{"alltoall"}, only{"overlap"};
  CHECK(plan_overlaps(8, h100, gibibytes(8), other).empty());
  CHECK(plan_overlaps(8, h100, gibibytes(8), only).size() == 6);
  CHECK(plan_collectives(8, gibibytes(8), only).empty());
}

TEST_CASE("plan_variants: what each operation can be otherwise, within half of the room") {
  const Bytes room = gibibytes(0.125);
  const auto variants = plan_variants(24, room, {});
  std::map<CollectiveOp, std::set<CollectiveVariant>> by_op;
  for (const VariantTask& task : variants) {
    by_op[task.collective.op].insert(task.variant);
    CHECK(task.collective.size <= room / 2);
    CHECK(task.collective.size > 0.99 * Bytes{1 << 20});
  }
  using enum CollectiveVariant;
  using Variants = std::set<CollectiveVariant>;
  CHECK(by_op[CollectiveOp::all_reduce] == Variants{bf16, in_place, pair});
  CHECK(by_op[CollectiveOp::all_gather] == Variants{in_place, pair});
  CHECK(by_op[CollectiveOp::reduce_scatter] == Variants{bf16, in_place, pair});
  CHECK(by_op[CollectiveOp::all_to_all] == Variants{uneven});
  CHECK(variants.size() == 18);
  CHECK(describe(variants.front()) == "all_reduce 1,048,576 bytes in BF16");
  const std::vector<std::string> other{"overlap"}, only{"variants"};
  CHECK(plan_variants(24, room, other).empty());
  CHECK(plan_variants(24, room, only).size() == 18);
  CHECK(plan_collectives(8, room, only).empty());
}

TEST_CASE("rank_shape: a machine is a node, machines of one NVLink domain are one together") {
  const PresetStore presets;
  const auto shape = [&](const std::map<std::string, int>& hosts, const std::string& node) {
    return rank_shape(ranks_on(hosts), node.empty() ? nullptr : &presets.node(node));
  };
  const RankShape two = shape({{"a", 8}, {"b", 8}}, "dgx_h100");
  CHECK(two.nodes == 2);
  CHECK(two.gpus_per_node == 8);
  // Trays of four cards, eighteen of them in a domain.
  const std::map<std::string, int> trays{{"a", 4}, {"b", 4}, {"c", 4}};
  const RankShape rack = shape(trays, "gb200_nvl72");
  CHECK(rack.nodes == 1);
  CHECK(rack.gpus_per_node == 12);
  CHECK(shape(trays, "").nodes == 3);
  CHECK_THROWS_WITH_AS(
      shape({{"a", 8}, {"b", 7}}, ""),
      "lockstep-calibrate: 8 ranks on a, 7 on b; allowed: as many on every machine", UsageError);
  std::map<std::string, int> many;
  for (int i = 0; i < 19; ++i) many["host-" + std::to_string(i)] = 4;
  CHECK_THROWS_AS(shape(many, "gb200_nvl72"), UsageError);
  many.erase("host-18");
  for (int i = 0; i < 18; ++i) many["other-" + std::to_string(i)] = 4;
  CHECK(shape(many, "gb200_nvl72").nodes == 2);
}

TEST_CASE("bus_bandwidth: nccl-tests' factors") {
  const auto bus = [](CollectiveOp op) {
    return bus_bandwidth({op, Bytes{8e9}}, 8, Seconds{1}).base_units();
  };
  CHECK(bus(CollectiveOp::all_reduce) == doctest::Approx(14e9));
  CHECK(bus(CollectiveOp::all_gather) == doctest::Approx(7e9));
  CHECK(bus(CollectiveOp::reduce_scatter) == doctest::Approx(7e9));
  CHECK(bus(CollectiveOp::all_to_all) == doctest::Approx(7e9));
  CHECK(bus(CollectiveOp::send_receive) == doctest::Approx(8e9));
}

TEST_CASE("collective_repeats: short ones many in a row, long ones a few times") {
  const CollectiveRepeats tiny = collective_repeats(microseconds(10));
  CHECK(tiny.launches == 100);
  CHECK(tiny.samples == 20);
  const CollectiveRepeats middle = collective_repeats(Seconds{1e-3});
  CHECK(middle.launches == 2);
  CHECK(middle.samples == 20);
  const CollectiveRepeats huge = collective_repeats(Seconds{2});
  CHECK(huge.launches == 1);
  CHECK(huge.samples == 5);
}
