#include "tools/calibrate/plan.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "models/kernels/kernel_profile.hpp"
#include "models/layer/operations.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tests/tools/calibrate/made_up_card.hpp"
#include "tools/calibrate/shapes.hpp"

using namespace lockstep;

namespace {

std::vector<TransformerShape> models_of(const PresetStore& presets) {
  std::vector<TransformerShape> models;
  for (const std::string& name : presets.names("models")) models.push_back(presets.model(name));
  return models;
}

std::vector<ProductTask> products_in(const std::vector<PlannedTask>& plan) {
  std::vector<ProductTask> out;
  for (const PlannedTask& planned : plan) {
    if (const auto* product = std::get_if<ProductTask>(&planned.task)) out.push_back(*product);
  }
  return out;
}

std::vector<std::string> groups_in_order(const std::vector<PlannedTask>& plan) {
  std::vector<std::string> out;
  for (const PlannedTask& planned : plan) {
    if (out.empty() || out.back() != planned.group) out.push_back(planned.group);
  }
  return out;
}

double octaves(double a, double b) { return std::abs(std::log2(a / b)); }

}  // namespace

TEST_CASE("grid_products: between 128 and 32,768 nothing is farther than an octave from a point") {
  const std::vector<ProductShape> grid = grid_products();
  for (double m = 128; m <= 32768; m *= 2) {
    for (double n = 128; n <= 32768; n *= 2) {
      for (double k = 128; k <= 8192; k *= 2) {
        if (gemm_flops({m, n, k}) > Flops{2e12}) continue;
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        CHECK(std::ranges::any_of(grid, [&](const ProductShape& p) {
          return octaves(p.shape.m, m) <= 1 && octaves(p.shape.n, n) <= 1 &&
                 octaves(p.shape.k, k) <= 1;
        }));
      }
    }
  }
}

TEST_CASE("transformer_products: those of Llama 3 8B, as the workload cuts them") {
  const PresetStore presets;
  const std::vector<TransformerShape> models{presets.model("llama3_8b")};
  // Distance 0 keeps all; 4,096 tokens, two ranks: qkv is (32 + 2 x 8) / 2 heads of 128 wide.
  const std::vector<ProductShape> all = transformer_products(models, 1e-9);
  const auto has = [&](double m, double n, double k, ProductRole role, bool quantised) {
    return std::ranges::any_of(all, [&](const ProductShape& p) {
      return p.shape.m == m && p.shape.n == n && p.shape.k == k && p.role == role &&
             p.quantised == quantised;
    });
  };
  CHECK(has(4096, 3072, 4096, ProductRole::forward, true));
  CHECK(has(4096, 4096, 3072, ProductRole::input_gradient, true));
  CHECK(has(3072, 4096, 4096, ProductRole::weight_gradient, true));
  CHECK(has(8192, 28672, 4096, ProductRole::forward, true));
  CHECK(has(2048, 4096, 14336 / 8, ProductRole::forward, true));
  CHECK(has(4096, 128256 / 8, 4096, ProductRole::forward, false));
}

TEST_CASE("transformer_products: thinned, every product keeps a neighbour within half an octave") {
  const PresetStore presets;
  const std::vector<TransformerShape> models = models_of(presets);
  const std::vector<ProductShape> all = transformer_products(models, 1e-9);
  const std::vector<ProductShape> kept = transformer_products(models, 0.5);
  CHECK(kept.size() < all.size() / 4);
  for (const ProductShape& p : all) {
    CHECK(std::ranges::any_of(kept, [&](const ProductShape& q) {
      return octaves(p.shape.m, q.shape.m) < 0.5 && octaves(p.shape.n, q.shape.n) < 0.5 &&
             octaves(p.shape.k, q.shape.k) < 0.5;
    }));
  }
}

TEST_CASE("expert_products: those of Mixtral 8x7B, on one card and on more") {
  const PresetStore presets;
  const std::vector<TransformerShape> models{presets.model("mixtral_8x7b")};
  const std::vector<ProductShape> all = expert_products(models, 1e-9);
  const auto has = [&](double m, double n, double k, double count, ProductRole role) {
    return std::ranges::any_of(all, [&](const ProductShape& p) {
      return p.shape.m == m && p.shape.n == n && p.shape.k == k && p.shape.count == count &&
             p.role == role;
    });
  };
  // 8,192 tokens, two experts each, over eight experts, gate and up together.
  CHECK(has(2048, 28672, 4096, 8, ProductRole::forward));
  CHECK(has(2048, 4096, 28672, 8, ProductRole::input_gradient));
  CHECK(has(4096, 14336, 8192, 2, ProductRole::weight_gradient));
  // One expert alone is a product like any other.
  CHECK(std::ranges::all_of(all, [](const ProductShape& p) { return p.shape.count >= 2; }));
}

TEST_CASE("plan_tasks: experts' products in bursts and at the power limit, in 16 bit") {
  const PresetStore presets;
  std::map<Load, std::set<double>> counts;
  for (const ProductTask& p : products_in(
           plan_tasks(presets.gpu("h100_sxm5_80gb"), test::h100_facts(), models_of(presets), {}))) {
    if (p.shape.count == 1) continue;
    CHECK(p.precision == Precision::bf16);
    const auto [m, n, k, count, repeats] = p.shape;
    CHECK(2 * count * (m * k + k * n) <= gibibytes(6).base_units());
    CHECK(2 * count * m * n <= gibibytes(4).base_units());
    counts[p.load].insert(count);
  }
  CHECK(counts[Load::burst].size() > 2);
  CHECK(counts[Load::burst] == counts[Load::sustained]);
}

TEST_CASE("plan_tasks: an H100 is planned for less than 8 minutes, the useful first") {
  const PresetStore presets;
  const std::vector<PlannedTask> plan =
      plan_tasks(presets.gpu("h100_sxm5_80gb"), test::h100_facts(), models_of(presets), {});
  CHECK(groups_in_order(plan) ==
        std::vector<std::string>{"launch", "copies", "memory", "gemm bf16", "gemm fp8",
                                 "attention bf16", "gemm bf16 sustained", "gemm fp8 sustained",
                                 "gemm bf16", "gemm fp8", "gemm tf32", "gemm fp16"});
  Seconds together;
  for (const PlannedTask& planned : plan) together += planned.estimate;
  CAPTURE(together.base_units());
  CHECK(together < Seconds{8 * 60});
  CHECK(together > Seconds{3 * 60});
}

TEST_CASE("plan_tasks: only the first sustained product of a format heats the card up") {
  const PresetStore presets;
  const std::vector<PlannedTask> plan =
      plan_tasks(presets.gpu("h100_sxm5_80gb"), test::h100_facts(), models_of(presets), {});
  std::map<std::string, std::vector<Seconds>> warm;
  for (const PlannedTask& planned : plan) {
    if (planned.pace.timed > Seconds{}) warm[planned.group].push_back(planned.pace.warm);
  }
  CHECK(warm.size() == 2);
  for (const auto& [group, times] : warm) {
    CAPTURE(group);
    REQUIRE(times.size() > 20);
    CHECK(times.front() >= Seconds{2});
    CHECK(std::all_of(times.begin() + 1, times.end(),
                      [](Seconds t) { return t < Seconds{1} && t > Seconds{}; }));
  }
}

TEST_CASE("plan_tasks: no product is planned twice in one format and load") {
  const PresetStore presets;
  const std::vector<TransformerShape> models = models_of(presets);
  std::set<std::tuple<double, double, double, double, Precision, Load>> seen;
  int twice = 0;
  for (const ProductTask& p :
       products_in(plan_tasks(presets.gpu("h200_sxm_141gb"), test::h100_facts(), models, {}))) {
    const auto [m, n, k, count, repeats] = p.shape;
    if (!seen.insert({m, n, k, count, p.precision, p.load}).second) ++twice;
  }
  CHECK(twice == 0);
}

TEST_CASE("plan_tasks: formats that the card lacks are left out") {
  const PresetStore presets;
  const auto formats = [&](std::string_view gpu, int major, int minor, bool scaling = false) {
    CardFacts facts = test::h100_facts();
    facts.major = major;
    facts.minor = minor;
    facts.block_scaling = scaling;
    std::set<Precision> out;
    for (const ProductTask& p :
         products_in(plan_tasks(presets.gpu(gpu), facts, models_of(presets), {}))) {
      out.insert(p.precision);
    }
    return out;
  };
  using Formats = std::set<Precision>;
  CHECK(formats("h100_sxm5_80gb", 9, 0) ==
        Formats{Precision::fp16, Precision::bf16, Precision::fp8, Precision::tf32});
  CHECK(formats("h100_sxm5_80gb", 9, 0, true) == formats("h100_sxm5_80gb", 9, 0));
  CHECK(formats("b200_sxm_180gb", 10, 0, true) == Formats{Precision::fp16, Precision::bf16,
                                                          Precision::fp8, Precision::mxfp8,
                                                          Precision::nvfp4, Precision::tf32});
  CHECK(formats("b200_sxm_180gb", 10, 0) ==
        Formats{Precision::fp16, Precision::bf16, Precision::fp8, Precision::tf32});
  CHECK(formats("a100_sxm4_80gb", 8, 0) ==
        Formats{Precision::fp16, Precision::bf16, Precision::tf32});
  CHECK(formats("v100_sxm2_32gb", 7, 0) == Formats{Precision::fp16});
}

TEST_CASE("plan_tasks: eight-bit sides are multiples of 16, and the output projection is 16 bit") {
  const PresetStore presets;
  for (const ProductTask& p : products_in(
           plan_tasks(presets.gpu("h100_sxm5_80gb"), test::h100_facts(), models_of(presets), {}))) {
    if (p.precision != Precision::fp8) continue;
    for (const double side : {p.shape.m, p.shape.n, p.shape.k}) {
      CHECK(std::fmod(side, 16.0) == 0);
      CHECK(side != 128256);  // Llama 3's vocabulary
    }
  }
}

TEST_CASE("plan_tasks: sides of block-scaled products are whole blocks") {
  const PresetStore presets;
  CardFacts facts = test::h100_facts();
  facts.major = 10;
  facts.block_scaling = true;
  int seen = 0;
  for (const ProductTask& p :
       products_in(plan_tasks(presets.gpu("b200_sxm_180gb"), facts, models_of(presets), {}))) {
    if (p.precision != Precision::mxfp8 && p.precision != Precision::nvfp4) continue;
    ++seen;
    for (const double side : {p.shape.m, p.shape.n, p.shape.k}) CHECK(std::fmod(side, 32) == 0);
  }
  CHECK(seen > 50);
}

TEST_CASE("plan_tasks: attention, each backward pass behind its forward pass") {
  const PresetStore presets;
  CardFacts facts = test::h100_facts();
  const std::vector<std::string> only{"attention"};
  const auto planned = [&] {
    std::vector<AttentionShape> out;
    for (const PlannedTask& task :
         plan_tasks(presets.gpu("h100_sxm5_80gb"), facts, models_of(presets), only)) {
      out.push_back(std::get<AttentionTask>(task.task).shape);
    }
    return out;
  };
  const std::vector<AttentionShape> shapes = planned();
  REQUIRE(shapes.size() > 40);
  for (std::size_t i = 0; i < shapes.size(); i += 2) {
    CHECK(shapes[i].direction == Direction::forward);
    CHECK(shapes[i + 1].direction == Direction::backward);
    CHECK(place_of(shapes[i]) == place_of(shapes[i + 1]));
    CHECK(shapes[i].causal == shapes[i + 1].causal);
  }
  CHECK(std::ranges::any_of(shapes, [](const AttentionShape& s) { return !s.causal; }));
  // Llama 3's heads, four or eight queries to a key, on one card or on eight.
  for (const double heads : {32.0, 4.0}) {
    CHECK(std::ranges::any_of(shapes, [&](const AttentionShape& s) {
      return octaves(s.sequences * s.heads, heads) < 2 && octaves(s.tokens, 8192) < 2 &&
             octaves(s.heads / s.kv_heads, 4) < 2 && s.head_dim == 128;
    }));
  }
  facts.inputs = Bytes{64e6};
  for (const AttentionShape& s : planned()) {
    CHECK(8 * s.sequences * s.tokens * s.heads * s.head_dim <= 64e6);
  }
  facts.no_attention = "no cuDNN";
  CHECK(planned().empty());
  facts.no_attention.clear();
  facts.major = 7;
  CHECK(planned().empty());
}

TEST_CASE("plan_tasks: nothing is planned that does not fit into the card's buffers") {
  const PresetStore presets;
  CardFacts facts = test::h100_facts();
  facts.inputs = Bytes{64e6};
  facts.outputs = Bytes{32e6};
  const std::vector<PlannedTask> plan =
      plan_tasks(presets.gpu("h100_sxm5_80gb"), facts, models_of(presets), {});
  CHECK(plan.size() > 50);
  for (const PlannedTask& planned : plan) {
    if (const auto* p = std::get_if<ProductTask>(&planned.task)) {
      const auto [m, n, k, count, repeats] = p->shape;
      CHECK(info(p->precision).bytes_per_element * (m * k + k * n) <= 64e6);
      CHECK(2 * m * n <= 32e6);
    } else if (const auto* kernel = std::get_if<MemoryTask>(&planned.task)) {
      CHECK(kernel->elements * info(kernel->kernel).read <= 64e6);
    }
  }
}

TEST_CASE("plan_tasks: --only") {
  const PresetStore presets;
  const std::vector<std::string> only{"memory"};
  const std::vector<PlannedTask> plan =
      plan_tasks(presets.gpu("h100_sxm5_80gb"), test::h100_facts(), models_of(presets), only);
  CHECK(groups_in_order(plan) == std::vector<std::string>{"memory"});
  // Kernels of about 1 MiB to 1 GiB, in whole rows.
  for (const PlannedTask& planned : plan) {
    const auto& task = std::get<MemoryTask>(planned.task);
    const double traffic = info(task.kernel).traffic(task.elements);
    CHECK(traffic > 0.75e6);
    CHECK(traffic <= 1073741824.0);
    CHECK(std::fmod(task.elements, kRowElements) == 0);
  }
}
