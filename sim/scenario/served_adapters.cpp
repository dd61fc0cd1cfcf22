#include "sim/scenario/served_adapters.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "models/generation/served_adapters.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/job_readers.hpp"
#include "sim/scenario/serving_load.hpp"
#include "sim/scenario/serving_replica_spec.hpp"
#include "sim/scenario/serving_spec.hpp"

namespace lockstep {
namespace {

constexpr int kMostAdapters = 1'000'000;
constexpr std::uint32_t kAdapterDraw = 216;  // after those of a load

/// Whether the cache has room beside the adapters that the GPUs hold.
void check_adapter_memory(const JsonCursor& at, const ServingPool& pool, const ServingSpec& spec) {
  const ServingReplica replica(replica_spec(pool, spec));
  const Bytes one = served_adapter_cost(replica, spec.adapters->shape).bytes;
  const auto tokens = [&](int slots) { return replica.cache_tokens(slots * one); };
  if (tokens(spec.adapters->on_gpu) >= pool.engine.serving->block) return;
  int most = spec.adapters->on_gpu;
  while (most > 1 && tokens(most) < pool.engine.serving->block) most /= 2;
  at.find("on_gpu").value_or(at).fail(
      fmt::format("at most {} adapters of {:.1f} MB each beside the weights of {}", most,
                  one.base_units() * 1e-6, pool.name));
}

}  // namespace

void declare_served_adapters(const DeclaredMembers& member, ServedAdapters& out) {
  member.required("count", out.count, 1, kMostAdapters, "Of different adapters");
  declare_adapters(member, out.shape);
  member.optional(
      "zipf", out.zipf, Interval{0, 4},
      "The k-th is asked for as often as 1 / k to this power; 0: all alike. Default: 1");
  member.optional("without", out.without, Dimension::share, Interval{0, 1},
                  "Share of the requests that the model answers by itself. Default: 0");
  member.optional("on_gpu", out.on_gpu, 1, kMostAdapters,
                  "Different ones in a pass, at most, for which the GPUs keep room (max_loras of "
                  "vLLM, max_loras_per_batch of SGLang). Default: 8");
  member.optional("in_host", out.in_host, 1, kMostAdapters,
                  "That the host keeps (max_cpu_loras, max_loaded_loras); others come from storage "
                  "at the rate of \"start\". Default: all");
}

void settle_served_adapters(const JsonCursor& serving, bool searched, ServingSpec& out) {
  if (!out.adapters) {
    if (out.router != ServingRouter::adapter_aware) return;
    serving.at("router").fail(R"(another one, or "adapters")");
  }
  const JsonCursor at = serving.at("adapters");
  if (searched) at.fail("no such key where pools are searched for");
  ServedAdapters& a = *out.adapters;
  const bool listed = at.find("modules").has_value();
  for (const AdapterModule of : {AdapterModule::expert_up, AdapterModule::expert_down}) {
    bool& on = a.shape.modules[static_cast<std::size_t>(of)];
    if (on && listed) at.at("modules").fail("products outside routed experts");
    on = false;
  }
  const auto adapted = [&](const auto& kind) {
    return adapters_of(a.shape, out.model, kind.first) > 0;
  };
  if (std::ranges::none_of(layer_kinds(out.model), adapted)) {
    at.find("modules").value_or(at).fail(fmt::format("products that {} has", out.model.name));
  }
  a.on_gpu = std::min(a.on_gpu, a.count);
  if (a.held() < a.on_gpu) {
    at.at("in_host").fail(fmt::format("at least the {} that the GPUs hold", a.on_gpu));
  }
  for (const ServingPool& pool : out.pools) {
    if (pool.attention_data > 1) {
      serving.at("pools").at(pool.name).at("attention_data").fail("1 beside \"adapters\"");
    }
    check_adapter_memory(at, pool, out);
  }
  if (!at.find("zipf")) out.assumptions.emplace_back("adapters.zipf: 1 (not given)");
  if (!at.find("on_gpu")) {
    out.assumptions.push_back(fmt::format("adapters.on_gpu: {} (not given)", a.on_gpu));
  }
  out.assumptions.emplace_back(
      "adapters: times of their kernels are counted, and were not fitted to measured ones");
}

void draw_adapters(ServingSpec& spec) {
  if (!spec.adapters) return;
  const ServedAdapters& a = *spec.adapters;
  RandomStream random({.seed = spec.seed, .purpose = kAdapterDraw});
  const ZipfDraw law(a.count, a.zipf);
  for (ServedRequest& r : spec.requests) {
    const bool without = random.uniform() < a.without;
    r.adapter = without ? -1 : static_cast<std::int32_t>(law.next(random));
  }
  for (const ServedRequest& r : spec.requests) {
    if (r.next >= 0) spec.requests[static_cast<std::size_t>(r.next)].adapter = r.adapter;
  }
}

}  // namespace lockstep
