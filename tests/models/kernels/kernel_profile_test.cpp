#include "models/kernels/kernel_profile.hpp"

#include <array>
#include <doctest/doctest.h>
#include <memory>
#include <optional>
#include <vector>

#include "models/kernels/memory_bound.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::presets;

const GpuSpec& h100() { return presets().gpu("h100_sxm5_80gb"); }
NodeNetwork infiniband_400() {
  return {presets().transport("infiniband"), gigabits_per_second(400)};
}

/// The card with the profile's corrections.
GpuSpec corrected_h100(const Profile& profile) {
  GpuSpec gpu = h100();
  gpu.profile = std::make_shared<const KernelProfile>(std::span(&profile, 1), std::span(&h100(), 1),
                                                      infiniband_400());
  return gpu;
}

CollectivePoint collective(CollectiveOp op, int nodes, int per_node, Bytes size, double time_us) {
  CollectivePoint point;
  point.op = op;
  point.nodes = nodes;
  point.gpus_per_node = per_node;
  point.size = size;
  point.time = Seconds{time_us * 1e-6};
  return point;
}

Seconds time_of(const CollectiveCall& call, const GpuSpec& gpu) {
  const NodeNetwork network = infiniband_400();
  return collective_time(call, gpu, network.transport, network.nic_bandwidth);
}

constexpr Bytes kMegabyte{1 << 20};

}  // namespace

TEST_CASE("KernelProfile: a measured product takes the time that was measured") {
  Profile profile;
  GemmPoint point;
  point.shape = {4096, 4096, 4096, 1};
  point.time = Seconds{300e-6};
  profile.gemm = {point};
  const GpuSpec gpu = corrected_h100(profile);
  CHECK(gemm_time(point.shape, Precision::bf16, gpu).base_units() == test::near(300e-6));
  // No point of this format: its law.
  CHECK(gemm_time(point.shape, Precision::fp8, gpu) ==
        gemm_time(point.shape, Precision::fp8, h100()));
  // A lasting load takes the ratio of bursts where it has no points of its own.
  const double ratio = gemm_time(point.shape, Precision::bf16, gpu, Load::sustained) /
                       gemm_time(point.shape, Precision::bf16, h100(), Load::sustained);
  CHECK(ratio == test::near(300e-6 / gemm_time(point.shape, Precision::bf16, h100()).base_units()));
}

TEST_CASE(
    "KernelProfile: a product of rows that begin anywhere is slow and says nothing of others") {
  const auto of = [](std::vector<GemmShape> shapes, double slowness) {
    Profile profile;
    for (const GemmShape& shape : shapes) {
      GemmPoint point;
      point.shape = shape;
      point.time = slowness * gemm_time(shape, Precision::bf16, h100());
      profile.gemm.push_back(point);
    }
    return corrected_h100(profile);
  };
  const GemmShape even{16384, 1024, 4096, 1};
  const auto ratio = [&](const GpuSpec& gpu, const GemmShape& shape) {
    return gemm_time(shape, Precision::bf16, gpu) / gemm_time(shape, Precision::bf16, h100());
  };
  for (const GemmShape& odd : {GemmShape{15261, 1024, 4096, 1}, GemmShape{16384, 1022, 4096, 1},
                               GemmShape{16384, 1024, 4095, 1}}) {
    CHECK(ratio(of({odd}, 4), odd) == test::near(4));
    CHECK(ratio(of({odd}, 4), even) == 1);
  }
  // Of few tokens, as of sizes that are even, neighbours learn.
  CHECK(ratio(of({{3, 1024, 4096, 1}}, 4), {4, 1024, 4096, 1}) > 1.5);
  CHECK(ratio(of({{8192, 1024, 4096, 1}}, 4), even) > 1.2);
}

TEST_CASE("KernelProfile: memory-bound kernels of two kinds count with their geometric mean") {
  Profile profile;
  const Bytes traffic{1e8};
  const Seconds law = memory_bound_time(traffic, h100());
  for (const double ratio : {1.0, 4.0}) {
    MemoryPoint point;
    point.kernel = ratio == 1.0 ? "copy" : "rms_norm";
    point.traffic = traffic;
    point.time = ratio * law;
    profile.memory.push_back(point);
  }
  const GpuSpec gpu = corrected_h100(profile);
  CHECK(memory_bound_time(traffic, gpu) / law == test::near(2.0));
}

TEST_CASE("KernelProfile: a collective takes the measured time on as many nodes, else its law") {
  constexpr CollectiveOp kOp = CollectiveOp::all_reduce;
  Profile profile;
  // Slower and faster than the law, inside a node and over two.
  profile.collectives = {collective(kOp, 1, 8, kMegabyte, 100), collective(kOp, 1, 4, kMegabyte, 9),
                         collective(kOp, 2, 8, kMegabyte, 300),
                         collective(kOp, 2, 4, kMegabyte, 31)};
  const GpuSpec gpu = corrected_h100(profile);
  for (const CollectivePoint& p : profile.collectives) {
    CAPTURE(p.nodes);
    CAPTURE(p.gpus_per_node);
    CHECK(time_of(p.call(), gpu).base_units() == test::near(p.time.base_units()));
  }
  const std::array others{CollectiveCall{kOp, kMegabyte, 2, 2},
                          CollectiveCall{kOp, kMegabyte, 24, 8},
                          CollectiveCall{kOp, kMegabyte, 12, 8, 2},
                          CollectiveCall{CollectiveOp::all_gather, kMegabyte, 8, 8}};
  for (const CollectiveCall& call : others) CHECK(time_of(call, gpu) == time_of(call, h100()));
}

TEST_CASE("KernelProfile: no collective is faster than the links that carry it") {
  Profile profile;
  const Bytes size{1e9};
  profile.collectives = {collective(CollectiveOp::all_reduce, 2, 8, size, 1)};
  const GpuSpec gpu = corrected_h100(profile);
  const NodeNetwork network = infiniband_400();
  const CollectiveCall call = profile.collectives.front().call();
  const CollectiveCost law =
      collective_cost(call, h100(), network.transport, network.nic_bandwidth);
  const CollectiveCost cost = collective_cost(call, gpu, network.transport, network.nic_bandwidth);
  CHECK(cost.payload_rate >= law.payload_rate);
  CHECK(cost.network_coefficient * cost.payload_rate <= 1.000001 * network.nic_bandwidth);
  CHECK(cost.latency >= Seconds{});
}

TEST_CASE("KernelProfile: a pair takes the send and receive that was measured on more GPUs") {
  constexpr CollectiveOp kOp = CollectiveOp::send_receive;
  Profile profile;
  profile.collectives = {collective(kOp, 1, 8, kMegabyte, 55),
                         collective(kOp, 4, 8, kMegabyte, 99)};
  const GpuSpec gpu = corrected_h100(profile);
  const auto ratio = [&](int ranks, int per_node) {
    const CollectiveCall call{kOp, kMegabyte, ranks, per_node};
    return time_of(call, gpu) / time_of(call, h100());
  };
  CHECK(ratio(2, 2) == test::near(ratio(8, 8)));
  CHECK(ratio(2, 1) == test::near(ratio(32, 8)));
  CHECK(ratio(2, 2) != test::near(1));
  CHECK(ratio(2, 1) != test::near(1));
}

TEST_CASE("KernelProfile: points over several nodes need a network to stand against a law") {
  Profile profile;
  profile.collectives = {collective(CollectiveOp::all_reduce, 2, 8, kMegabyte, 300)};
  CHECK(profile.spans_nodes());
  const KernelProfile measured(std::span(&profile, 1), std::span(&h100(), 1), std::nullopt);
  CHECK(measured.collective_field(profile.collectives.front()) == nullptr);
  CHECK(measured.collective(profile.collectives.front().call()) == 1);
}

TEST_CASE("KernelProfile: of several profiles all points count") {
  std::array<Profile, 2> profiles;
  for (const double ratio : {1.0, 4.0}) {
    MemoryPoint point;
    point.kernel = "copy";
    point.traffic = Bytes{1e8};
    point.time = ratio * memory_bound_time(point.traffic, h100());
    profiles[ratio == 1.0 ? 0 : 1].memory = {point};
  }
  const std::array cards{h100(), h100()};
  const KernelProfile measured(profiles, cards, std::nullopt);
  CHECK(measured.memory(Bytes{1e8}) == test::near(2.0));
}

}  // namespace lockstep
