#include "sim/run/plan_campaign.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <string>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/fabric/faulty_fabric.hpp"
#include "sim/step/step.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

CheckpointTier tier_of(const CheckpointSpec& spec, const CheckpointBytes& bytes,
                       const Scenario& scenario, const UploadPlan& upload) {
  CheckpointCost cost;
  if (spec.target == CheckpointTarget::peers || spec.storage) {
    const StorageSpec storage = spec.storage.value_or(StorageSpec{});
    cost = checkpoint_cost(bytes, node_towards(storage, scenario), scenario.transport,
                           scenario.nodes, spec.target, spec.asynchronous, storage);
  }
  return {.name = spec.name,
          .interval = spec.interval,
          .blocks = spec.blocks.value_or(cost.blocks),
          .finishes = upload.rate > BytesPerSecond{} ? upload.finishes
                                                     : spec.finishes.value_or(cost.finishes),
          .drag = spec.drag.value_or(upload.drag),
          .restores = spec.restores.value_or(cost.restores),
          .survives_node = spec.target != CheckpointTarget::local,
          .survives_rack = spec.target == CheckpointTarget::storage,
          .corrupt = spec.corrupt};
}

/// A checkpoint holds whole steps: where the interval is shorter than one, each step has its own.
void hold_to_steps(CheckpointTier& tier, CampaignPlan& plan) {
  const Seconds step = plan.campaign.step;
  if (tier.interval >= step) return;
  plan.assumptions.push_back(fmt::format(
      "run.checkpoint to {}: one for each step, every {}, as none is taken within a step ({} "
      "given)",
      tier.name, duration_text(step.base_units()), duration_text(tier.interval.base_units())));
  tier.interval = step;
}

/// When checkpoints of the last tier are due is up to code outside the tree.
void follow_rule(const std::string& file, const CheckpointSpec& spec, CampaignPlan& plan) {
  plan.campaign.tiers.back().rule = [file, rule = spec.rule](const CheckpointCall& call) {
    return next_checkpoint(file, rule, call);
  };
  plan.assumptions.push_back(
      fmt::format("run.checkpoint to {}: the rule \"{}\" (an extension) says when one is due; what "
                  "is foreseen of a run goes by its interval",
                  spec.name, checkpoint_rule_names()[spec.rule.place]));
}

/// What all nodes together can write to where these checkpoints go, for as long as it takes.
BytesPerSecond sustained_writes(const CheckpointSpec& spec, const CheckpointBytes& bytes,
                                const Scenario& scenario) {
  const auto nodes = static_cast<double>(scenario.nodes);
  if (spec.storage) {
    const NodeSpec node = node_towards(*spec.storage, scenario);
    return storage_rates(*spec.storage, node, scenario.transport, scenario.nodes).write;
  }
  if (spec.target == CheckpointTarget::peers) {
    return nodes * payload_bandwidth(slowest_node(scenario), scenario.transport);
  }
  // Everything was measured, and the storage was not said.
  const Seconds took = spec.asynchronous ? *spec.finishes : *spec.blocks;
  return took > Seconds{} ? bytes.all / took : BytesPerSecond{};
}

/// Replicas that hold weights or experts together cannot go on without one of them.
void check_elastic(const Scenario& scenario, int elastic) {
  if (elastic > 0 && scenario.unequal()) {
    throw InputError({.file = scenario.file,
                      .pointer = "/run/spares/elastic",
                      .found = std::to_string(elastic),
                      .allowed = "0 beside cluster.pools or batch.micro_batches: who takes the "
                                 "sequences of a missing replica is not said",
                      .nearest = {}});
  }
  const Parallelism& cut = scenario.job.parallelism;
  const bool grouped = cut.sharding == Sharding::zero3 && cut.shard_group > 0;
  const bool spread = cut.expert * cut.expert_tensor > cut.tensor * cut.context;
  if (elastic == 0 || (!grouped && !spread)) return;
  throw InputError({.file = scenario.file,
                    .pointer = "/run/spares/elastic",
                    .found = std::to_string(elastic),
                    .allowed = std::string("0, as replicas hold ") +
                               (grouped ? "weights together (shard_group)"
                                        : "experts together (expert x expert_tensor)"),
                    .nearest = {}});
}

/// With replicas missing the others take their sequences: the step of a job of that width, for a
/// batch as much smaller, done as many times more.
/// None is faster than its data come.
std::vector<double> width_speeds(const Scenario& scenario, int elastic, double step_s,
                                 double data_speed) {
  std::vector<double> speeds{data_speed};
  const int data = scenario.job.parallelism.data;
  const int per_replica = scenario.job.batch.sequences / data;
  for (int missing = 1; missing <= std::min(elastic, data - 1); ++missing) {
    Scenario narrow = scenario;
    narrow.job.parallelism.data = data - missing;
    narrow.job.batch.sequences = per_replica * (data - missing);
    const double narrow_s = simulate_step(narrow, {}).step_s;
    speeds.push_back(std::min(data_speed, step_s / narrow_s * (data - missing) / data));
  }
  return speeds;
}

/// The same job on its fabric with one more fault. Throws InputError where that has no such part,
/// or leaves the job no way.
Scenario with_fault(const Scenario& scenario, const FabricFault& fault,
                    const std::string& pointer) {
  Scenario broken = scenario;
  broken.fabric.faults.push_back(fault);
  const NicPorts ports = nic_ports(scenario.node);
  const auto problem = check(broken.fabric, scenario.nodes, ports.count, ports.bandwidth);
  if (!problem) return broken;
  throw InputError({.file = scenario.file,
                    .pointer = pointer,
                    .found = problem->found,
                    .allowed = problem->allowed + ", as the job goes on",
                    .nearest = problem->nearest});
}

/// Throws InputError for a mode of cables on a fabric that has none between switches.
void check_cables(const Scenario& scenario, const RunSpec& run,
                  const std::vector<FailureMode>& modes) {
  const auto none = std::ranges::find(modes, 0U, &FailureMode::components);
  if (none == modes.end()) return;
  const bool own = run.reliability.own;
  throw InputError(
      {.file = scenario.file,
       .pointer = own ? fmt::format("/run/reliability/modes/{}/component", none - modes.begin())
                      : std::string("/run/reliability"),
       .found = "\"cable\", of which this fabric has none between switches",
       .allowed = "a fabric of several switches, or another component; the cable of a "
                  "NIC fails with \"nic\"",
       .nearest = {}});
}

/// Steps on the fabric with each fault of a mode, each kind simulated once: how much longer they
/// take than a healthy one.
void simulate_faults(const RunWork& work, const RunSpec& run, CampaignPlan& plan) {
  const Scenario& scenario = work.scenario;
  std::map<std::string, double> known;
  const std::vector<ReliabilityMode>& modes = run.reliability.modes;
  for (std::size_t m = 0; m < modes.size(); ++m) {
    if (!modes[m].fault) continue;
    const std::string pointer = run.reliability.own
                                    ? fmt::format("/run/reliability/modes/{}/fault", m)
                                    : std::string("/run/reliability");
    const FabricFault& fault = *modes[m].fault;
    const std::string words = words_of_fault(fault);
    const auto [at, is_new] = known.try_emplace(fmt::format("{} {}", words, fault.seed), 1.0);
    if (is_new) {
      const Scenario broken = with_fault(scenario, fault, pointer);
      // A fabric with faults is routed cable by cable: so is the one that it is held against.
      const Scenario whole = with_fault(scenario, no_fault(), pointer);
      at->second =
          std::max(1.0, step_time_on(work, broken.fabric) / step_time_on(work, whole.fabric));
    }
    plan.campaign.modes[m].slowdown = at->second;
    plan.assumptions.push_back(
        fmt::format("run.reliability: {}: each as if {}: a step takes {:.4g} times as long "
                    "(simulated); of several at once the slowest counts",
                    modes[m].mode.name, words, at->second));
  }
}

/// The band of a step that shares its NICs with storage, where its replicas are a sample.
void note_band(const std::string& what, const std::optional<StepBand>& band, CampaignPlan& plan) {
  if (!band) return;
  plan.assumptions.push_back(
      fmt::format("{}: a sample of the replicas was simulated beside it; with every replica on its "
                  "own a step takes {:.4g} to {:.4g} s meanwhile",
                  what, band->low_s, band->high_s));
}

/// The dataset on its way to the job, and what the job waits for.
void add_data_plan(const DataSpec& data, Bytes dataset, const StorageTraffic& traffic,
                   CampaignPlan& plan) {
  DataPlan& out = plan.data.emplace(stage_data(data, dataset, traffic.staging_write()));
  out.epochs = traffic.epochs();
  out.cached = traffic.cached();
  out.first = traffic.first_epoch();
  out.later = traffic.later_epochs();
  if (data.staging == DataStaging::during && !data.tiers.empty()) {
    plan.assumptions.emplace_back(
        "run.data.staging: the first pass reads the dataset in the order in which it arrives");
  }
  if (out.cached > 0) {
    plan.assumptions.emplace_back(
        "run.data.cache: each node reads in every pass what it read in the first, and its drives "
        "never throw out what they hold");
  }
}

/// What is assumed of the work itself.
void tell_work(const RunWork& work, CampaignPlan& plan) {
  if (!work.scenario.pools.empty()) {
    plan.assumptions.emplace_back(
        "run: a broken node is replaced by one of its kind, and checkpoints wait for the slowest "
        "kind of node (cluster.pools)");
  }
  if (work.rl == nullptr) return;
  plan.assumptions.emplace_back(
      "run: what is generated, scored and trained since a checkpoint is done again after a "
      "failure; checkpoints hold no responses");
  if (work.engine_nodes() > 0) {
    plan.assumptions.emplace_back(
        "run: a failure of a node that generates stops the job as one of a node that trains does");
  }
}

/// How the job lies on its nodes.
void lay_out(const RunWork& work, Campaign& campaign) {
  campaign.nodes = work.nodes();
  const Parallelism& cut = work.scenario.job.parallelism;
  const int replica = cut.tensor * cut.context * cut.pipeline;  // GPUs
  const int node = work.scenario.node.gpus;
  campaign.nodes_per_replica = std::max(1, (replica + node - 1) / node);
  campaign.replicas_per_node = std::max(1, node / replica);
}

/// Until when the run goes on.
void set_work(const Scenario& scenario, const RunSpec& run, const RepeatedStep& step,
              Campaign& campaign) {
  if (run.duration) {
    campaign.horizon = to_run_time(*run.duration);
    campaign.work = *run.duration;
    return;
  }
  if (!run.steps && !scenario.training_tokens) {
    throw InputError(
        {.file = scenario.file,
         .pointer = "/run",
         .found = "a run without \"duration\"",
         .allowed = R"("duration", "steps", or "training": {"tokens": ...} to be done)",
         .nearest = {}});
  }
  const double steps = run.steps ? *run.steps : std::ceil(*scenario.training_tokens / step.tokens);
  campaign.work = Seconds{steps * step.step_s};
}

void add_tiers(const Scenario& scenario, const RunSpec& run, const StorageTraffic& traffic,
               CampaignPlan& plan) {
  for (const CheckpointSpec& spec : run.checkpoints) {
    const UploadPlan upload = traffic.upload(spec, plan.checkpoint);
    note_band("run.checkpoint to " + spec.name, upload.step_band, plan);
    plan.campaign.tiers.push_back(tier_of(spec, plan.checkpoint, scenario, upload));
    hold_to_steps(plan.campaign.tiers.back(), plan);
    if (spec.rule.place > 0) follow_rule(scenario.file, spec, plan);
    plan.uploads.push_back(upload);
    plan.writes.push_back({.each = plan.checkpoint.all,
                           .blocks = plan.campaign.tiers.back().blocks,
                           .sustained = sustained_writes(spec, plan.checkpoint, scenario),
                           .most_share = spec.storage_share});
  }
}

}  // namespace

Seconds CheckpointWrites::least_interval() const {
  if (sustained <= BytesPerSecond{}) return {};
  return std::max(Seconds{}, each / (most_share * sustained) - blocks);
}

CampaignPlan plan_campaign(const RunWork& work, const RunSpec& run) {
  const Scenario& scenario = work.scenario;
  CampaignPlan plan;
  plan.assumptions = run.assumptions;
  tell_work(work, plan);
  const RepeatedStep step = repeated_step(work);
  plan.step_s = step.step_s;
  plan.tokens_per_step = step.tokens;
  plan.flops_per_step = step.flops;
  plan.iteration = step.iteration;
  if (!step.words.empty()) plan.assumptions.push_back("step: " + step.words);
  Campaign& campaign = plan.campaign;
  check_elastic(scenario, run.elastic);
  lay_out(work, campaign);
  set_work(scenario, run, step, campaign);
  plan.steps = campaign.work.base_units() / step.step_s;
  plan.checkpoint = state_of(work);
  const StorageTraffic traffic(step.update, run.data, step.update_s, plan.steps,
                               step.training_share);
  plan.data_read_bytes_per_s = traffic.data_read().base_units();
  plan.data_speed = traffic.data_speed();
  if (run.data && (run.data->dataset || run.data->loader)) {
    const Bytes all{plan.steps * step.tokens * run.data->bytes_per_token};
    add_data_plan(*run.data, run.data->dataset.value_or(all), traffic, plan);
  }
  campaign.step = Seconds{plan.step_s / plan.data_speed};
  note_band("run.data", traffic.data_step_band(), plan);
  add_tiers(scenario, run, traffic, plan);
  campaign.modes = failing_modes(run, scenario.node, scenario.nodes, scenario.gpus(),
                                 scenario.fabric, work.engine_nodes());
  check_cables(scenario, run, campaign.modes);
  simulate_faults(work, run, plan);
  campaign.log = run.reliability.log;
  const FailureDomains& domains = run.domains;
  campaign.scope_nodes = {0, 1, domains.rack, domains.switch_nodes, domains.feed};
  campaign.recovery = run.recovery;
  campaign.recovery.restarts += run.restarts_per_thousand_ranks * (work.gpus() / 1000.0);
  campaign.spares = run.spares;
  campaign.width_speed = width_speeds(scenario, run.elastic, plan.step_s, plan.data_speed);
  campaign.seed = run.seed;
  return plan;
}

}  // namespace lockstep
