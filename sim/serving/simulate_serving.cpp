#include "sim/serving/simulate_serving.hpp"

#include <algorithm>
#include <deque>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "models/generation/served_adapters.hpp"
#include "models/generation/serving_replica.hpp"
#include "models/layer/offload.hpp"
#include "sim/scenario/serving_replica_spec.hpp"
#include "sim/serving/beside_training.hpp"
#include "sim/serving/kv_flows.hpp"
#include "sim/serving/kv_links.hpp"
#include "sim/serving/region_report.hpp"
#include "sim/serving/replica_rules.hpp"
#include "sim/serving/tier_report.hpp"

namespace lockstep {
namespace {

double in_s(Seconds time) { return time.base_units(); }

TransferPlan transfer_of(const ServingSpec& spec, const ServingReplica& from) {
  const ServingPool &prompts = spec.pools[0], &decoding = spec.pools[1];
  const bool joined = prompts.cluster_pool == decoding.cluster_pool &&
                      spec.gpus() <= spec.cluster.node.nvlink_domain;
  return {
      .per_token = from.moved_per_token(),
      .rate = kv_rate({spec.node_of(prompts), kv_cut(prompts)},
                      {spec.node_of(decoding), kv_cut(decoding)}, spec.transfer.efficiency, joined),
      .latency = spec.transfer.latency,
      .layers = spec.transfer.by_layer ? spec.model.layers : 0};
}

ServingPoolReport report_of(const ServingPool& pool, const ServingReplica& replica,
                            const PoolPlan& plan, const PoolAccount& account, double span_s) {
  ServingPoolReport out{.name = pool.name,
                        .replicas = pool.replicas,
                        .gpus = pool.replicas * pool.gpus(),
                        .cache_tokens = plan.rules.cache_tokens,
                        .fullest = account.fullest,
                        .weights_bytes = replica.weights().base_units(),
                        .passes = static_cast<double>(account.passes),
                        .preempted = static_cast<double>(account.preempted),
                        .busy_s = in_s(account.busy.total())};
  const ServingPass& busy = account.busy;
  const double down = in_s(to_seconds(account.down)), off = in_s(to_seconds(account.off));
  out.gpu_seconds = {in_s(busy.prompts),
                     in_s(busy.products),
                     in_s(busy.attention),
                     in_s(busy.exchange),
                     in_s(busy.host),
                     0,
                     down};
  const double on = std::max(0.0, span_s * pool.replicas - off);
  out.on = span_s > 0 ? on / span_s : pool.replicas;
  out.gpu_seconds[static_cast<std::size_t>(ServingBucket::idle)] =
      std::max(0.0, on - out.busy_s - down);
  for (double& seconds : out.gpu_seconds) seconds *= pool.gpus();
  return out;
}

/// Adds the figures of each kind of node where pools stand on several kinds.
void add_kinds(const ServingSpec& spec, const ServeResult& result, ServingReport& out) {
  if (spec.cluster.pools.empty()) return;
  for (std::size_t p = 0; p < out.pools.size(); ++p) {
    out.pools[p].node = spec.node_of(spec.pools[p]).name;
    out.pools[p].rent_usd = pool_rent_usd(spec, result, p);
  }
}

void add_shares(ServingReport& out) {
  double all = 0;
  for (const ServingPoolReport& pool : out.pools) {
    for (std::size_t b = 0; b < kServingBuckets; ++b) {
      out.shares[b] += pool.gpu_seconds[b];
      all += pool.gpu_seconds[b];
    }
  }
  if (all <= 0) return;
  for (double& share : out.shares) share /= all;
}

/// The interval over measured rows of models of the same kind, with any engine.
std::optional<ServingInterval> interval_of(const ServingSpec& spec, const ServingFigures& f) {
  const EngineSpec& engine = spec.pools.back().engine;
  const std::string_view kind = serving_kind(spec.model);
  const auto& all = engine.serving->residuals;
  const auto at = std::ranges::find(all, kind, &ServingResidual::kind);
  if (at == all.end()) return std::nullopt;
  return ServingInterval{
      .tpot_low_s = at->tpot_low * f.tpot_s.mean,
      .tpot_high_s = at->tpot_high * f.tpot_s.mean,
      .ttft_low_s = at->ttft_low * f.ttft_s.mean,
      .ttft_high_s = at->ttft_high * f.ttft_s.mean,
      .basis = fmt::format("models of kind {}, each source predicted without it: {} measured rows",
                           kind, grouped(static_cast<double>(at->rows)))};
}

/// Share of the tokens of computed prompts that the replica held before.
double found_share(const ServingSpec& spec) {
  double found = 0, all = 0;
  for (const ServedRequest& r : spec.requests) {
    if (r.scheduled < 0) continue;
    found += r.found;
    all += r.input;
  }
  return all > 0 ? found / all : 0;
}

/// Failures, starts and stops of the replicas of a pool.
ReplicaLife life_of(const ServingSpec& spec, std::size_t p, const ServingReplica& replica) {
  const ServingPool& pool = spec.pools[p];
  const Bytes weights = static_cast<double>(pool.gpus()) * replica.weights();
  const Seconds start = spec.start.overhead + weights / spec.start.rate;
  ReplicaLife out;
  out.start = to_run_time(start);
  if (spec.failures) {
    const ServingFailureSpec& f = *spec.failures;
    if (f.gpu_mean_time) out.mean_time = *f.gpu_mean_time / static_cast<double>(pool.gpus());
    out.down = to_run_time(f.repair + start);
    for (const ServingFailureSpec::Event& event : f.events) {
      if (event.pool == p) out.planned.push_back({to_run_time(event.at), event.replica});
    }
  }
  if (pool.autoscale) {
    out.least = pool.autoscale->least;
    out.target = pool.autoscale->target;
    out.check = to_run_time(pool.autoscale->check);
    out.calm = to_run_time(pool.autoscale->calm);
  }
  if (spec.restarts) {
    const ServingRestarts& r = *spec.restarts;
    out.restart_at = to_run_time(r.at);
    if (r.every) out.restart_every = to_run_time(*r.every);
    out.restart_at_once = r.at_once;
    out.grace = to_run_time(r.grace);
  }
  return out;
}

/// Memory that adapters take on a GPU.
Bytes adapter_room(const ServingSpec& spec, const ServingReplica& replica) {
  if (!spec.adapters) return {};
  return spec.adapters->on_gpu * served_adapter_cost(replica, spec.adapters->shape).bytes;
}

std::optional<AdapterRules> adapters_of_pool(const ServingSpec& spec,
                                             const ServingReplica& replica) {
  if (!spec.adapters) return std::nullopt;
  const ServedAdapters& a = *spec.adapters;
  const ServedAdapterCost cost = served_adapter_cost(replica, a.shape);
  const NodeSpec& node = replica.spec().node;
  const BytesPerSecond copy = node.host ? host_copy_rate(node) : node.gpu.pcie_bandwidth;
  return AdapterRules{.count = a.count,
                      .on_gpu = a.on_gpu,
                      .in_host = a.held(),
                      .from_host = to_run_time(cost.bytes / copy),
                      .from_storage = to_run_time(cost.all_bytes / spec.start.rate),
                      .pass = cost.pass,
                      .adapter = cost.adapter,
                      .row = cost.row};
}

/// Replicas of a pool, and what befalls them.
PoolPlan pool_plan(const ServingSpec& spec, std::size_t p, ServingReplica& replica) {
  PoolPlan out{.rules = rules_of(replica),
               .clock = &replica,
               .replicas = spec.pools[p].replicas,
               .life = life_of(spec, p, replica),
               .adapters = adapters_of_pool(spec, replica)};
  out.room = adapter_room(spec, replica);
  out.rules.cache_tokens = replica.cache_tokens(out.room);
  return out;
}

AdmissionPlan admission_of(const ServingSpec& spec) {
  if (!spec.admission) return {};
  const ServingAdmission& a = *spec.admission;
  return {.most_waiting = a.most_waiting.value_or(0),
          .most_cache = a.most_cache.value_or(0),
          .may_shed = a.may_shed,
          .patience = a.patience ? to_run_time(*a.patience) : 0,
          .retry_after = to_run_time(a.retry_after)};
}

std::optional<ServingAdapterReport> adapter_report(const ServingSpec& spec, const ServePlan& plan,
                                                   const ServeResult& result) {
  if (!spec.adapters) return std::nullopt;
  AdapterAccount all = result.serving.adapters;
  all += result.decoding.adapters;
  const auto with = [](const ServedRequest& r) { return r.adapter >= 0; };
  return ServingAdapterReport{
      .requests = static_cast<double>(std::ranges::count_if(spec.requests, with)),
      .room_bytes = plan.serving.room.base_units(),
      .loads = static_cast<double>(all.loads),
      .from_storage = static_cast<double>(all.from_storage),
      .load_s = in_s(all.loading),
      .kernel_s = in_s(all.kernels)};
}

ServePlan plan_of(const ServingSpec& spec, std::deque<ServingReplica>& replicas) {
  ServePlan plan;
  plan.serving = pool_plan(spec, 0, replicas[0]);
  if (spec.pools.size() > 1) {
    plan.decoding = pool_plan(spec, 1, replicas[1]);
    plan.transfer = transfer_of(spec, replicas[0]);
    plan.handover = to_run_time(replicas[1].handover_host());
    plan.decoding_tiers = decoding_tier_plan(spec, replicas[1]);
  }
  if (spec.prefix_cache && !spec.prefixes.empty()) plan.serving.rules.prefixes = &spec.prefixes;
  plan.tiers = tier_plan(spec, replicas[0]);
  plan.coming = spec.coming;
  plan.router = spec.router;
  plan.admission = admission_of(spec);
  plan.regions = region_plan(spec);
  plan.clients = spec.clients;
  plan.think = spec.think;
  plan.request_host = to_run_time(replicas[0].request_host());
  if (spec.failures) plan.detect = to_run_time(spec.failures->detect);
  plan.seed = spec.seed;
  return plan;
}

/// The result of a run and its load on links.
struct Played {
  ServeResult result;
  std::vector<ServingLink> links;
  std::optional<ServingBeside> beside{};
};

Played play(const ServePlan& plan, ServingSpec& spec,
            const std::function<bool(std::size_t)>& go_on) {
  if (spec.pools.size() < 2 || !clock_holds(spec.requests)) {
    return {serve(plan, spec.requests, go_on), {}};
  }
  const Cluster& c = spec.cluster;
  const NicPorts ports = fabric_ports(c.node, c.pools);
  const Fabric fabric(c.fabric, c.nodes, ports.count, ports.bandwidth);
  FlowNetwork network;
  FabricLinks links(fabric, network, c.transport.efficiency, nic_shares(c.pools, fabric));
  KvNetwork kv(spec, links);
  KvFlows flows(kv);
  Played out{serve(plan, spec.requests, flows, go_on), {}};
  out.links = fullest_links(links, to_seconds(out.result.end));
  return out;
}

double mean_wait(RunTime all, const ServingFigures& figures) {
  return figures.served > 0 ? in_s(to_seconds(all)) / static_cast<double>(figures.served) : 0;
}

/// Runs the service alone, then beside the trainings. The times of requests are those of the second
/// run.
Played play_beside(const ServePlan& plan, ServingSpec& spec,
                   const std::function<bool(std::size_t)>& go_on) {
  const std::vector<ServedRequest> requests = spec.requests;
  const Played alone = play(plan, spec, go_on);
  const ServingFigures figures = serving_figures(spec.requests, alone.result);
  spec.requests = requests;
  BesidePlayed together = serve_beside(plan, spec, go_on);
  together.beside.alone = figures;
  together.beside.transfer_alone_s = mean_wait(alone.result.transferring, figures);
  return {std::move(together.result), std::move(together.links), std::move(together.beside)};
}

}  // namespace

ServingReport simulate_serving(ServingSpec& spec, const std::function<bool(std::size_t)>& go_on) {
  std::deque<ServingReplica> replicas;
  for (const ServingPool& pool : spec.pools) replicas.emplace_back(replica_spec(pool, spec));
  const ServePlan plan = plan_of(spec, replicas);
  Played played = spec.beside ? play_beside(plan, spec, go_on) : play(plan, spec, go_on);
  const ServeResult& result = played.result;

  ServingReport out;
  out.figures = serving_figures(spec.requests, result);
  const double span = out.figures.span_s;
  out.pools.push_back(report_of(spec.pools[0], replicas[0], plan.serving, result.serving, span));
  if (spec.pools.size() > 1) {
    out.pools.push_back(
        report_of(spec.pools[1], replicas[1], plan.decoding, result.decoding, span));
  }
  add_kinds(spec, result, out);
  add_shares(out);
  out.failures = static_cast<double>(result.failures);
  out.retried = static_cast<double>(result.retried);
  out.found_share = found_share(spec);
  out.tiers = tier_report(spec, replicas[0], result);
  out.adapters = adapter_report(spec, plan, result);
  out.refused = static_cast<double>(result.refused);
  out.shed = static_cast<double>(result.shed);
  out.gave_up = static_cast<double>(result.gave_up);
  out.restarts = static_cast<double>(result.restarts);
  out.restarts_left = static_cast<double>(result.restarts_left);
  out.transfer_s = mean_wait(result.transferring, out.figures);
  out.transfer_alone_s = mean_wait(result.transferring_alone, out.figures);
  out.beside = std::move(played.beside);
  out.links = std::move(played.links);
  out.transferred_bytes = result.transferred.base_units();
  out.attained = attained_share(spec);
  out.populations = population_reports(spec, plan.regions);
  out.regions = region_reports(spec, plan.regions, result, span);
  out.objectives = check_objectives(spec, out.figures);
  if (span > 0) out.goodput = out.attained * static_cast<double>(spec.requests.size()) / span;
  out.course = load_course(spec.requests, spec.coming);
  out.stopped = result.stopped;
  out.interval = interval_of(spec, out.figures);
  if (spec.power) out.power = serving_power(spec, result, out.figures);
  out.rent = rent_of(spec, result, out.figures);
  return out;
}

TokenPrice cost_price(const ServingReport& report) {
  return token_price(report.power->cost.total_usd(), report.figures);
}

std::optional<ServingMoney> money_of(const ServingSpec& spec, const ServingReport& report) {
  const std::optional<MoneyOf> of =
      money_of(spec.power ? &spec.power->cost : nullptr, report.rent.has_value());
  if (!of) return std::nullopt;
  return ServingMoney{.of = *of, .price = *of == MoneyOf::rent ? *report.rent : cost_price(report)};
}

}  // namespace lockstep
