#include "tools/views/run/run_facts.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/number_text.hpp"
#include "models/spec/parameter_counts.hpp"
#include "sim/answer/hash_answer.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tools/views/run/run_pools.hpp"
#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

std::string layout_text(const TrainingJob& job) {
  const Parallelism& p = job.parallelism;
  std::vector<std::string> parts;
  if (p.tensor > 1) {
    parts.push_back(fmt::format("TP {}{}{}", p.tensor, p.sequence ? " + SP" : "",
                                p.tensor_pieces() > 1 ? " in pieces" : ""));
  }
  if (p.pipeline > 1) {
    parts.push_back(
        fmt::format("PP {} ({}{})", p.pipeline, name_of(p.schedule),
                    p.virtual_stages > 1 ? fmt::format(" x {}", p.virtual_stages) : ""));
  }
  if (p.context > 1) {
    parts.push_back(fmt::format("CP {} ({})", p.context, name_of(p.context_exchange)));
  }
  if (p.expert > 1) {
    const std::string shared =
        p.expert_tensor > 1 ? fmt::format(" x {}", p.expert_tensor) : std::string();
    parts.push_back(fmt::format("EP {}{} ({})", p.expert, shared, name_of(p.expert_dispatch)));
  }
  parts.push_back(fmt::format("DP {}", p.data));
  if (p.sharding != Sharding::none) {
    parts.push_back(std::string(name_of(p.sharding)) +
                    (p.shard_group > 0 ? fmt::format(" in groups of {}", p.shard_group) : ""));
  }
  parts.emplace_back(info(job.precision).name);
  if (job.adapters.any()) {
    parts.push_back(fmt::format(
        "{} rank {}", job.adapters.base == BaseFormat::nf4 ? "QLoRA" : "LoRA", job.adapters.rank));
  }
  if (job.offload.optimiser > 0) {
    parts.push_back(fmt::format("{:g} % of the optimiser{} on the host",
                                100 * job.offload.optimiser,
                                job.offload.parameters ? " and the weights" : ""));
  }
  if (job.offload.activation_layers > 0) {
    parts.push_back(
        fmt::format("activations of {} layers on the host", job.offload.activation_layers));
  }
  if (job.frozen.any()) {
    parts.push_back(
        fmt::format("{} of the weights trained",
                    percent_text(trained_parameters(job) / total_parameters(job.model))));
  }
  if (job.recompute != Recompute::none) {
    parts.push_back(fmt::format("{} recompute", name_of(job.recompute)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "the fullest rank has 1.4 times the mean; 12.3 % of the copies are dropped (capacity 1)"
std::string routing_text(const TrainingJob& job) {
  const ExpertLoad load = expert_load(job);
  std::string out =
      fmt::format("the fullest rank has {} times the mean", significant(load.fullest));
  if (job.routing.capacity == 0) return out;
  out += fmt::format("; {} of the copies are dropped (capacity {})", percent_text(load.dropped()),
                     significant(job.routing.capacity));
  if (job.routing.padded)
    out += fmt::format(", {} of the rows padding", percent_text(1 - load.useful()));
  return out;
}

/// "4,096 tokens in samples of 512"
std::string tokens_text(const Batch& batch) {
  std::string all = fmt::format("{} tokens", grouped(batch.tokens));
  if (batch.source_tokens > 0) all += fmt::format(" after {}", grouped(batch.source_tokens));
  if (batch.sample_tokens == 0) return all;
  return all + fmt::format(" in samples of {}", significant(batch.sample_tokens));
}

/// ", NICs of 25 GB/s" where a file says what cables carry.
std::string cable_rates(const Scenario& s) {
  if (s.fabric.kind != FabricKind::file) return {};
  const NicRates rates = nic_rates(s.fabric, s.nodes, nic_ports(s.node).bandwidth);
  return ", NICs of " + words_of(rates);
}

/// "671 B parameters, 37.6 B active, both embeddings counted; 11.6 B of prediction modules not
/// counted"; of a tower its layers, where they are known.
std::string model_text(const TransformerShape& model) {
  const ParameterCounts counts = parameter_counts(model);
  std::string out = fmt::format("{} parameters", compact(counts.total));
  if (model.experts.count > 0) out += fmt::format(", {} active", compact(counts.active));
  out += model.tied ? ", the embedding counted once" : ", both embeddings counted";
  if (counts.vision > 0) {
    out += fmt::format("; {} of a vision tower beside", compact(counts.vision));
    const VisionTower& tower = model.tower;
    if (tower.layers > 0) {
      out += fmt::format(" ({} layers of {} columns, {} patches an image)", tower.layers,
                         tower.hidden, tower.patches);
    }
  }
  if (counts.prediction > 0) {
    out += fmt::format("; {} of prediction modules not counted", compact(counts.prediction));
  }
  return out;
}

/// "61.3 GiB at the peak (stage 0), 66.0 GiB with the allocator's cache, of 74.9 GiB usable on ..."
std::string memory_text(const RunResult& result) {
  const MemoryBreakdown& peak = result.memory.peak;
  const bool caches = peak.cached > gibibytes(0.05);  // what three digits would show
  return fmt::format(
      "{} at the peak (stage {}){} of {} usable on {}{}", gib_text(peak.needed()),
      result.memory.fullest_stage,
      caches ? fmt::format(", {} with the allocator's cache,", gib_text(peak.total()))
             : std::string(),
      gib_text(result.memory.usable), gib_text(tightest_node(result.scenario).gpu.hbm_capacity),
      result.memory.fits ? "" : "; DOES NOT FIT");
}

/// "56.1 to 82.3 GiB, by what is assumed of memory, so that it may not fit; optimiser precision
/// (16-bit moments) decides"
std::string close_text(const MemoryVerdict& memory) {
  const MemoryBand& band = memory.band;
  return fmt::format("{} to {}, by what is assumed of memory, so that it may{} fit; {} decides",
                     gib_text(band.least), gib_text(band.most), memory.fits ? " not" : "",
                     band.decides);
}

/// "1.2 TiB on the host of a node, of 1.8 TiB"
std::string host_text(const RunResult& result) {
  const NodeSpec& node = result.scenario.node;
  const double gpus = std::min(node.gpus, result.scenario.gpus());
  return fmt::format("{} of the {} that the host of a node has",
                     gib_text(gpus * result.memory.peak.host), gib_text(node.host->memory));
}

/// Adds what the step time depends on beyond its prediction: folding, jitter, hashes, missing
/// measurements.
void add_spread(const RunResult& result, std::vector<Fact>& out) {
  const StepReport& r = result.report;
  if (r.method == StepMethod::sampled) {
    out.push_back({"Unfolded",
                   {},
                   fmt::format("{} to {} ({} of {} replicas simulated)",
                               duration_text(r.band->low_s), duration_text(r.band->high_s),
                               grouped(static_cast<double>(r.replicas_simulated)),
                               grouped(static_cast<double>(r.replicas)))});
  }
  if (result.jitter) {
    out.push_back({"Jitter",
                   {},
                   fmt::format("transfers start up to {} late; {} where none does ({})",
                               duration_text(result.jitter->most.base_units()),
                               duration_text(result.jitter->aligned_s),
                               error_text(result.jitter->aligned_s / r.step_s - 1))});
  }
  if (result.hash) {
    const HashAnswer& hash = *result.hash;
    out.push_back(
        hash.draws == 1
            ? Fact{"Hash", {}, one_draw_text(hash)}
            : Fact{fmt::format("{} hash draws", hash.draws), {}, hash_text(hash.bands[0])});
  }
  if (result.interval) {
    out.push_back({fmt::format("{:.0f} % interval", 100 * kCoverage),
                   {},
                   interval_text(r.step_s, *result.interval)});
  } else if (!result.scenario.pools.empty()) {
    out.push_back({fmt::format("{:.0f} % interval", 100 * kCoverage),
                   {},
                   "none: every published run is on nodes of one kind"});
  }
}

/// "33 d for 15.6 T tokens: 13 M GPU-hours, 26 M USD at 2 per GPU-hour"
std::string training_text(const Scenario& scenario, const TrainingCost& cost) {
  const std::string price = cost.usd
                                ? fmt::format(", {} USD at {} per GPU-hour", compact(*cost.usd),
                                              significant(*scenario.usd_per_gpu_hour))
                                : std::string();
  return fmt::format("{} for {} tokens: {} GPU-hours{}", duration_text(cost.seconds),
                     compact(*scenario.training_tokens), compact(cost.gpu_hours), price);
}

}  // namespace

std::string gib_text(Bytes bytes) {
  constexpr double kLeast = 0.001;
  const double gib = bytes / gibibytes(1);
  return gib > 0 && gib < kLeast ? "<0.001 GiB" : significant(gib) + " GiB";
}

double bucket_share(const StepReport& report, const BucketInfo& bucket) {
  const auto row = static_cast<std::size_t>(&bucket - buckets().data());
  return bucket_shares(report.seconds)[row];
}

std::vector<Fact> step_warnings(const RunResult& result) {
  std::vector<Fact> out;
  const MemoryVerdict& memory = result.memory;
  if (!memory.fits) {
    out.push_back(
        {"Memory", "DOES NOT FIT",
         fmt::format(": {} are needed on stage {}, {} are usable", gib_text(memory.peak.needed()),
                     memory.fullest_stage, gib_text(memory.usable))});
  }
  if (result.power) {
    const std::string warning = limit_warning(*result.power, *result.scenario.power);
    if (!warning.empty()) out.push_back({"Power limit", warning, {}});
  }
  return out;
}

std::vector<Fact> job_facts(const RunResult& result) {
  const Scenario& s = result.scenario;
  const TrainingJob& job = s.job;
  std::vector<Fact> out{{"Model", {}, model_text(job.model)},
                        {"Job", {}, layout_text(job)},
                        {"Batch",
                         {},
                         fmt::format("{} of {}, {}", counted(job.batch.sequences, "sequence"),
                                     tokens_text(job.batch), micro_batches_text(s))}};
  if (!job.routing.is_even() || job.routing.capacity > 0) {
    out.push_back({"Routing", {}, routing_text(job)});
  }
  const std::string release = s.stack.release.empty() ? "" : " " + s.stack.release;
  out.push_back({"Software", {}, s.stack.name + release});
  out.push_back(
      {"Fabric", {}, fmt::format("{}, {}{}", s.fabric.name, s.transport.name, cable_rates(s))});
  return out;
}

bool has_teacher(const RlReport& report) {
  return report.gpu_seconds[static_cast<std::size_t>(RlBucket::teacher)] > 0;
}

bool has_causal_attention(const StepReport& report) {
  constexpr double kSumsRound = 1e-9;
  return report.mfu_causal < report.mfu_full * (1 - kSumsRound);
}

std::vector<Fact> answer_facts(const RunResult& result) {
  const StepReport& r = result.report;
  std::vector<Fact> out{{"Step time", duration_text(r.step_s), {}}};
  add_spread(result, out);
  const bool causal = has_causal_attention(r);
  out.push_back(
      {"MFU", percent_text(r.mfu_full),
       (causal ? fmt::format(" with attention in full, {} causal", percent_text(r.mfu_causal))
               : std::string()) +
           fmt::format(";  HFU {}", percent_text(r.hfu))});
  out.push_back({"Throughput",
                 {},
                 fmt::format("{} tokens/s per GPU, {} tokens/s in all",
                             significant(r.tokens_per_s_per_gpu), compact(r.tokens_per_s))});
  out.push_back({"Per GPU",
                 {},
                 fmt::format("{} TFLOP/s of {}", significant(r.tflops_per_gpu_full),
                             significant(r.peak_flops_per_gpu / 1e12)) +
                     (causal ? fmt::format(" ({} causal)", significant(r.tflops_per_gpu_causal))
                             : std::string())});
  out.push_back({"Memory", {}, memory_text(result)});
  if (result.memory.band.close()) out.push_back({"Memory needed", {}, close_text(result.memory)});
  if (result.scenario.job.offload.any()) out.push_back({"On the host", {}, host_text(result)});
  if (const auto cost = training_cost(result)) {
    // A step does not know of failures; "run" in the scenario does.
    out.push_back({"Without failures", {}, training_text(result.scenario, *cost)});
  }
  return out;
}

}  // namespace lockstep
