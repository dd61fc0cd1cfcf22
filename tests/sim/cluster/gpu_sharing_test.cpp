// Nodes whose GPUs are shared: fragments by hand, where each policy puts a pod, and what a filled
// cluster adds up to.
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "sim/answer/filling_answer.hpp"
#include "sim/cluster/fill_cluster.hpp"
#include "sim/cluster/gpu_fragments.hpp"
#include "sim/cluster/shared_gpu_nodes.hpp"

namespace lockstep {
namespace {

const std::vector<std::string> kTwoModels{"T4", "A100"};

PodShape asks(int cpus, int gpus, int milli, std::vector<std::string> models = {}) {
  return {.cpu_milli = 1000 * std::int64_t{cpus},
          .memory_mib = 1,
          .gpus = gpus,
          .gpu_milli = gpus == 0 ? 0 : milli,
          .gpu_models = std::move(models)};
}

SharedNode with_left(int cpus, std::vector<int> left, int model = 0, std::vector<int> widths = {}) {
  return {.cpu_milli = 1000 * std::int64_t{cpus},
          .memory_mib = 1000,
          .gpu_milli = std::move(left),
          .model = model,
          .widths = std::move(widths)};
}

double fragments_for(const SharedNode& of, const PodShape& next) {
  const std::vector<PodShape> pods{next};
  return fragments({of.cpu_milli, of.gpu_milli, of.model}, typical_pods(pods, kTwoModels, 1));
}

/// Where each of the policies puts one pod; every pod is as likely as the others.
struct PlacedPod {
  std::optional<std::size_t> on;
  std::vector<int> left;  ///< of the GPUs of that node
};
PlacedPod placed_by(FillingPolicy policy, std::vector<SharedNode> nodes, const PodShape& next,
                    const std::vector<PodShape>& likely = {asks(1, 1, 1000)}) {
  const std::vector<PodShape> pods{next};
  const std::vector<TypicalPod> typical = typical_pods(likely, kTwoModels, 1);
  SharedGpuNodes cluster(std::move(nodes), pods, kTwoModels, typical, policy);
  RandomStream draws({.seed = 1});
  PlacedPod out{.on = cluster.place(0, draws), .left = {}};
  if (out.on) out.left = cluster.nodes()[*out.on].gpu_milli;
  return out;
}

FillingSpec mixed_filling() {
  FillingSpec spec;
  for (std::size_t p = 0; p < kFillingPolicyNames.size(); ++p) {
    spec.policies.push_back(static_cast<FillingPolicy>(p));
  }
  spec.nodes = {
      {.count = 3, .cpu_milli = 64'000, .memory_mib = 1000, .gpus = 8, .gpu_model = "A100"},
      {.count = 6, .cpu_milli = 16'000, .memory_mib = 40, .gpus = 2, .gpu_model = "T4"}};
  spec.pods = {asks(4, 0, 0), asks(4, 1, 300), asks(4, 1, 700, {"T4"}), asks(8, 1, 1000),
               asks(30, 8, 1000, {"A100"})};
  for (PodShape& of : spec.pods) of.count = 10;
  spec.seeds = 3;
  return spec;
}

}  // namespace

TEST_CASE("fragments: what is free and of no use, by hand") {
  const SharedNode of = with_left(8, {1000, 400});
  CHECK(fragments_for(of, asks(4, 1, 600)) == 400);  // the second GPU holds too little
  CHECK(fragments_for(of, asks(4, 1, 400)) == 0);    // both will do
  CHECK(fragments_for(of, asks(4, 1, 1000)) == 400);
  CHECK(fragments_for(of, asks(4, 2, 1000)) == 1400);  // one whole GPU, not two
  CHECK(fragments_for(of, asks(9, 1, 100)) == 1400);   // CPUs are missing
  CHECK(fragments_for(of, asks(1, 0, 0)) == 1400);     // asks for no GPU
  CHECK(fragments_for(of, asks(4, 1, 600, {"A100"})) == 1400);
  CHECK(fragments_for(of, asks(4, 1, 600, {"A100", "T4"})) == 400);
  CHECK(fragments_for(with_left(8, {0, 0}), asks(1, 2, 1000)) == 0);
}

TEST_CASE("fragments: the mean over typical pods, as many as make the share") {
  std::vector<PodShape> pods{asks(4, 1, 600), asks(4, 2, 1000), asks(1, 0, 0)};
  pods[0].count = 6;
  pods[1].count = 3;
  pods.push_back(asks(4, 1, 600));  // the same but for memory
  pods.back().memory_mib = 77;
  const std::vector<TypicalPod> typical = typical_pods(pods, kTwoModels, 0.9);
  REQUIRE(typical.size() == 2);  // 7 and 3 of 11
  CHECK(typical[0].share == doctest::Approx(0.7));
  CHECK(typical[1].gpus == 2);
  const SharedNode of = with_left(8, {1000, 400});
  CHECK(fragments({of.cpu_milli, of.gpu_milli, of.model}, typical) ==
        doctest::Approx(0.7 * 400 + 0.3 * 1400));
}

TEST_CASE("shared GPUs: which node and GPU each policy takes") {
  using enum FillingPolicy;
  // Least left of CPUs and GPUs together.
  CHECK(placed_by(best_fit, {with_left(64, {1000, 1000}), with_left(8, {1000})}, asks(4, 1, 1000))
            .on == 1);
  CHECK(placed_by(best_fit, {with_left(16, {1000, 500})}, asks(1, 1, 400)).left ==
        std::vector<int>{1000, 100});
  // The smaller product of what is asked for and what is left.
  CHECK(
      placed_by(dot_product, {with_left(64, {1000, 1000}), with_left(64, {1000})}, asks(4, 1, 1000))
          .on == 1);
  CHECK(placed_by(dot_product, {with_left(64, {1000}), with_left(8, {1000})}, asks(8, 0, 0)).on ==
        1);
  // A GPU in use before an idle one; a node in use before an idle one.
  const std::vector<SharedNode> one_in_use{with_left(64, {1000}), with_left(64, {1000, 1000, 500})};
  CHECK(placed_by(gpu_packing, one_in_use, asks(4, 1, 300)).on == 1);
  CHECK(placed_by(gpu_packing, one_in_use, asks(4, 1, 300)).left ==
        std::vector<int>{1000, 1000, 200});
  CHECK(placed_by(gpu_packing, one_in_use, asks(4, 1, 1000)).on == 1);
  // Beside pods of as many GPUs, though the other node is fuller.
  const std::vector<SharedNode> two_kinds{with_left(64, {0, 0, 0, 1000}, 0, {1}),
                                          with_left(64, {1000, 1000, 1000, 700}, 0, {0})};
  CHECK(placed_by(gpu_clustering, two_kinds, asks(4, 1, 300)).on == 1);
  CHECK(placed_by(gpu_clustering, two_kinds, asks(4, 1, 1000)).on == 0);
  // Fragments fall on the second node, and grow on the first.
  CHECK(placed_by(fgd, {with_left(64, {1000}), with_left(64, {500})}, asks(4, 1, 500)).on == 1);
  // The first has no CPUs for those who want its GPUs: they are lost already.
  CHECK(placed_by(fgd, {with_left(64, {1000, 1000}), with_left(4, {1000, 1000})}, asks(1, 1, 500),
                  {asks(16, 1, 1000)})
            .on == 1);
  // Within a node: the GPU that is of no use to whole ones.
  CHECK(placed_by(fgd, {with_left(64, {1000, 600})}, asks(1, 1, 500)).left ==
        std::vector<int>{1000, 100});
}

TEST_CASE("shared GPUs: of equals the first, and nothing where there is no room") {
  for (std::size_t p = 1; p < kFillingPolicyNames.size(); ++p) {
    CAPTURE(kFillingPolicyNames[p]);
    const auto policy = static_cast<FillingPolicy>(p);
    CHECK(placed_by(policy, {with_left(8, {1000}), with_left(8, {1000})}, asks(4, 1, 500)).on == 0);
  }
  for (std::size_t p = 0; p < kFillingPolicyNames.size(); ++p) {
    CAPTURE(kFillingPolicyNames[p]);
    const auto policy = static_cast<FillingPolicy>(p);
    CHECK_FALSE(placed_by(policy, {with_left(8, {600, 600})}, asks(4, 1, 700)).on);
    CHECK_FALSE(placed_by(policy, {with_left(8, {1000, 600})}, asks(4, 2, 1000)).on);
    CHECK_FALSE(placed_by(policy, {with_left(8, {1000})}, asks(9, 1, 100)).on);
    CHECK_FALSE(placed_by(policy, {with_left(8, {1000})}, asks(4, 1, 100, {"A100"})).on);
    PodShape large = asks(4, 1, 100);
    large.memory_mib = 1001;
    CHECK_FALSE(placed_by(policy, {with_left(8, {1000})}, large).on);
    CHECK(placed_by(policy, {with_left(8, {1000}), with_left(8, {1000}, 1)},
                    asks(4, 1, 100, {"A100"}))
              .on == 1);
  }
}

TEST_CASE("shared GPUs: nothing is granted twice, whatever the policy") {
  const FillingSpec spec = mixed_filling();
  for (const FillingPolicy policy : spec.policies) {
    CAPTURE(kFillingPolicyNames[static_cast<std::size_t>(policy)]);
    const std::vector<TypicalPod> typical = typical_pods(spec.pods, kTwoModels, 0.95);
    SharedGpuNodes cluster(
        {with_left(64, std::vector<int>(8, kGpuMilli), 1), with_left(16, {1000, 1000})}, spec.pods,
        kTwoModels, typical, policy);
    RandomStream draws({.seed = 5});
    std::int64_t granted = 0, cpus = 0;
    for (std::size_t i = 0; i < 200; ++i) {
      const std::size_t shape = draws.below(5);
      if (!cluster.place(shape, draws)) continue;
      granted += spec.pods[shape].total_milli();
      cpus += spec.pods[shape].cpu_milli;
    }
    std::int64_t left = 0, cpus_left = 0;
    for (const SharedNode& of : cluster.nodes()) {
      CHECK(of.cpu_milli >= 0);
      CHECK(of.memory_mib >= 0);
      cpus_left += of.cpu_milli;
      for (const int milli : of.gpu_milli) {
        CHECK(milli >= 0);
        left += milli;
      }
    }
    CHECK(granted == cluster.held_milli());
    CHECK(granted + left == cluster.gpus() * kGpuMilli);
    CHECK(cpus + cpus_left == 80'000);
  }
}

TEST_CASE("fill_cluster: whole GPUs on one node fill it, and no more") {
  FillingSpec spec = mixed_filling();
  spec.nodes = {{.cpu_milli = 64'000, .memory_mib = 1000, .gpus = 4, .gpu_model = {}}};
  spec.pods = {asks(1, 1, 1000)};
  spec.until = 1.5;
  const FillingResult result = fill_cluster(spec);
  REQUIRE(result.policies.size() == 6);
  CHECK(result.workload == 0.25);
  for (const PolicyFilling& of : result.policies) {
    CHECK(of.mean.allocated == 1);
    CHECK(of.mean.fragmented == 0);
    CHECK(of.placed_pods == 4);
    CHECK(of.refused_pods == 2);
    REQUIRE(of.mean.series.size() == 30);
    CHECK(of.mean.series[9] == 0.5);   // at 50 %, a pod arrives
    CHECK(of.mean.series[11] == 0.5);  // at 60 %, none does
    CHECK(of.mean.series[29] == 1);
  }
}

TEST_CASE("fill_cluster: shares add up, orders are those of their seeds, and bytes are the same") {
  FillingSpec spec = mixed_filling();
  const FillingResult result = fill_cluster(spec);
  for (const PolicyFilling& of : result.policies) {
    CHECK(of.least <= of.mean.allocated);
    CHECK(of.mean.allocated <= of.most);
    for (const FilledCluster& one : of.by_seed) {
      CHECK(one.allocated > 0);
      CHECK(one.allocated + one.fragmented <= 1 + 1e-9);
    }
  }
  CHECK(write_json(filling_json(spec, result)) ==
        write_json(filling_json(spec, fill_cluster(spec))));
  FillingSpec second = spec;
  second.seed = spec.seed + 1;
  second.seeds = 1;
  second.policies = {FillingPolicy::fgd};
  CHECK(fill_cluster(second).policies.front().mean.series ==
        result.policies.back().by_seed[1].series);
  CHECK(result.policies.back().by_seed[0].series != result.policies.back().by_seed[1].series);
}

TEST_CASE("fill_cluster: somebody stops it, and whole policies are left") {
  const FillingSpec spec = mixed_filling();
  const FillingResult result =
      fill_cluster(spec, [](std::size_t done, std::size_t) { return done < 4; });
  CHECK(result.stopped);
  CHECK(result.policies.size() == 1);
}

}  // namespace lockstep
