#include "sim/measured/predict_serving.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/generation/serving_replica.hpp"
#include "sim/core/random.hpp"
#include "sim/measured/eager_release.hpp"
#include "sim/scenario/serving_trace.hpp"
#include "sim/serving/kv_shards.hpp"
#include "sim/serving/replica_rules.hpp"

namespace lockstep {
namespace {

constexpr int kMostOffline = 4000;  // requests that stand for any number at once

int drawn(int printed, double low, double high, double share) {
  const double length = printed * (low + (high - low) * share);
  return std::max(1, static_cast<int>(std::lround(length)));
}

std::vector<ServedRequest> requests_of(const ServingRow& row) {
  if (row.load == ServingLoad::trace) return read_request_trace(row.trace);
  int count = row.requests;
  if (row.load == ServingLoad::offline || row.load == ServingLoad::poisson) {
    count = std::min(count > 0 ? count : kMostOffline, kMostOffline);
  }
  RandomStream random({.seed = 1, .purpose = 201});
  std::vector<ServedRequest> out(static_cast<std::size_t>(count));
  double at = 0;
  for (ServedRequest& r : out) {
    r.input = drawn(row.input, row.shortest, row.longest, random.uniform());
    r.output = drawn(row.output, row.shortest, row.longest, random.uniform());
    if (row.load != ServingLoad::poisson) continue;
    at += random.exponential() / row.rate;
    r.arrival = to_run_time(Seconds{at});
  }
  return out;
}

ServingReplicaSpec replica_of(const ServingRow& row, const ServingPoolRow& pool,
                              const PresetStore& presets) {
  return {.model = row.model,
          .node = row.node,
          .transport = presets.transport(row.node.transport),
          .engine = row.rules,
          .tensor = pool.tensor,
          .pipeline = pool.pipeline,
          .attention_data = pool.attention_data,
          .expert = pool.expert,
          .weights = row.weights,
          .experts = row.experts,
          .cache_bytes = row.cache_bytes,
          .speculation = row.speculation};
}

}  // namespace

ServedRow predict_serving(const ServingRow& row, const PresetStore& presets) {
  ServingReplica serving(replica_of(row, row.serving, presets));
  ServePlan plan;
  plan.serving = {rules_of(serving), &serving, row.serving.workers};
  std::optional<EagerClock> eager;
  if (const auto host = eager_release(row)) {
    eager.emplace(serving, *host);
    plan.serving.clock = &*eager;
  }
  if (row.cache_tokens > 0) plan.serving.rules.cache_tokens = row.cache_tokens;
  plan.router = ServingRouter::least_loaded;
  plan.request_host = to_run_time(serving.request_host());
  std::optional<ServingReplica> decoding;
  if (row.decoding) {
    decoding.emplace(replica_of(row, *row.decoding, presets));
    plan.decoding = {rules_of(*decoding), &*decoding, row.decoding->workers};
    const auto side = [&](const ServingPoolRow& pool) {
      return KvSide{row.node, {pool.tensor, pool.pipeline, pool.attention_data}};
    };
    plan.transfer = {.per_token = serving.moved_per_token(),
                     .rate = kv_rate(side(row.serving), side(*row.decoding),
                                     ServingTransfer{}.efficiency, false),
                     .latency = Seconds{1e-3}};
    plan.handover = to_run_time(decoding->handover_host());
  }
  if (row.load == ServingLoad::closed_loop) plan.clients = row.concurrency;
  std::vector<ServedRequest> requests = requests_of(row);
  const ServeResult result = serve(plan, requests);
  if (result.refused > 0) return {"does not fit in memory", {}};
  return {{}, serving_figures(requests, result)};
}

double predicted_measure(const ServingMeasure& of, const ServingRow& row, const ServingFigures& f) {
  const auto ms = [&](const ServingSpread& s) {
    return 1e3 * (of.p99 ? s.p99 : of.mean ? s.mean : s.p50);
  };
  if (of.name.starts_with("tpot_ms")) return ms(f.tpot_s);
  if (of.name.starts_with("itl_ms")) return ms(f.itl_s);
  if (of.name.starts_with("ttft_ms")) return ms(f.ttft_s);
  if (of.name.starts_with("e2e_ms")) return ms(f.e2e_s);
  if (of.name == "prefill_ms")
    return ms(f.ttft_s) -
           1e3 * (laws_for(row.rules, row.node.gpu.architecture).host.request / Seconds{1});
  return f.output_per_s;
}

}  // namespace lockstep
