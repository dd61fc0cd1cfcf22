#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/number_text.hpp"
#include "models/spec/parameter_counts.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tools/lockstep/run_pools.hpp"
#include "tools/lockstep/run_result.hpp"
#include "tools/lockstep/site_limit.hpp"
#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr int kBarColumns = 34;
constexpr int kRunLabels = 18;            // columns
constexpr std::size_t kStagesShown = 20;  ///< more are folded in the middle; JSON has all
constexpr std::size_t kPathParts = 8;

std::string gib_text(Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; }

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
  if (batch.sample_tokens == 0) return all;
  return all + fmt::format(" in samples of {}", significant(batch.sample_tokens));
}

/// ", NICs of 25 GB/s" where a file says what cables carry.
std::string cable_rates(const Scenario& s) {
  if (s.fabric.kind != FabricKind::file) return {};
  const NicRates rates = nic_rates(s.fabric, s.nodes, nic_ports(s.node).bandwidth);
  return ", NICs of " + words_of(rates);
}

/// "671 B parameters, 37.6 B active; 11.6 B of prediction modules not counted"
std::string model_text(const TransformerShape& model) {
  const ParameterCounts counts = parameter_counts(model);
  std::string out = fmt::format("{} parameters", compact(counts.total));
  if (model.experts.count > 0) out += fmt::format(", {} active", compact(counts.active));
  if (counts.prediction > 0) {
    out += fmt::format("; {} of prediction modules not counted", compact(counts.prediction));
  }
  return out;
}

std::string title(const RunResult& result, const TextStyle& style) {
  const Scenario& s = result.scenario;
  const TrainingJob& job = s.job;
  std::string out = style.bold(fmt::format("{} on {} GPUs", job.model.name, grouped(s.gpus()))) +
                    fmt::format(" {}\n", nodes_text(s));
  if (!s.about.empty()) out += wrap(s.about, kTextColumns, 0) + "\n";
  out += "\n" + labelled_line("Model", kRunLabels, model_text(job.model));
  out += labelled_line("Job", kRunLabels, layout_text(job));
  out += labelled_line("Batch", kRunLabels,
                       fmt::format("{} sequences of {}, {}", grouped(job.batch.sequences),
                                   tokens_text(job.batch), micro_batches_text(s)));
  if (!job.routing.is_even() || job.routing.capacity > 0) {
    out += labelled_line("Routing", kRunLabels, routing_text(job));
  }
  const std::string release = s.stack.release.empty() ? "" : " " + s.stack.release;
  return out + labelled_line("Software", kRunLabels, s.stack.name + release) +
         labelled_line("Fabric", kRunLabels,
                       fmt::format("{}, {}{}", s.fabric.name, s.transport.name, cable_rates(s)));
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

/// "56.1 to 82.3 GiB needed by what is assumed; optimiser precision (16-bit moments) decides"
std::string close_text(const MemoryBand& band) {
  return fmt::format("{} to {} needed by what is assumed; {} decides", gib_text(band.least),
                     gib_text(band.most), band.decides);
}

/// "1.2 TiB on the host of a node, of 1.8 TiB"
std::string host_text(const RunResult& result) {
  const NodeSpec& node = result.scenario.node;
  const double gpus = std::min(node.gpus, result.scenario.gpus());
  return fmt::format("{} of the {} that the host of a node has",
                     gib_text(gpus * result.memory.peak.host), gib_text(node.host->memory));
}

std::string headline(const RunResult& result, const TextStyle& style) {
  const StepReport& r = result.report;
  std::string out = "\n";
  if (result.power) {
    const std::string warning = limit_warning(*result.power, *result.scenario.power);
    if (!warning.empty()) out += labelled_line("Power limit", kRunLabels, style.bold(warning));
  }
  out += labelled_line("Step time", kRunLabels, style.bold(duration_text(r.step_s)));
  if (r.method == StepMethod::sampled) {
    out += labelled_line("Unfolded", kRunLabels,
                         fmt::format("{} to {} ({} of {} replicas simulated)",
                                     duration_text(r.band->low_s), duration_text(r.band->high_s),
                                     grouped(static_cast<double>(r.replicas_simulated)),
                                     grouped(static_cast<double>(r.replicas))));
  }
  if (result.jitter) {
    out += labelled_line("Jitter", kRunLabels,
                         fmt::format("transfers start up to {} late; {} where none does ({})",
                                     duration_text(result.jitter->most.base_units()),
                                     duration_text(result.jitter->aligned_s),
                                     error_text(result.jitter->aligned_s / r.step_s - 1)));
  }
  if (result.hash) {
    const HashAnswer& hash = *result.hash;
    out += hash.draws == 1 ? labelled_line("Hash", kRunLabels, one_draw_text(hash))
                           : labelled_line(fmt::format("{} hash draws", hash.draws), kRunLabels,
                                           hash_text(hash.bands[0]));
  }
  if (result.interval) {
    out += labelled_line(fmt::format("{:.0f} % interval", 100 * kCoverage), kRunLabels,
                         interval_text(r.step_s, *result.interval));
  }
  out += labelled_line("MFU", kRunLabels,
                       fmt::format("{} with attention in full, {} causal;  HFU {}",
                                   style.bold(percent_text(r.mfu_full)), percent_text(r.mfu_causal),
                                   percent_text(r.hfu)));
  out += labelled_line("Throughput", kRunLabels,
                       fmt::format("{} tokens/s per GPU, {} tokens/s in all",
                                   significant(r.tokens_per_s_per_gpu), compact(r.tokens_per_s)));
  out += labelled_line(
      "Per GPU", kRunLabels,
      fmt::format("{} TFLOP/s of {} ({} causal)", significant(r.tflops_per_gpu_full),
                  significant(r.peak_flops_per_gpu / 1e12), significant(r.tflops_per_gpu_causal)));
  out += labelled_line("Memory", kRunLabels, memory_text(result));
  if (result.memory.band.close()) {
    out += labelled_line("Close", kRunLabels, close_text(result.memory.band));
  }
  if (result.scenario.job.offload.any()) {
    out += labelled_line("On the host", kRunLabels, host_text(result));
  }
  if (const auto cost = training_cost(result)) {
    const std::string price = cost->usd
                                  ? fmt::format(", {} USD at {} per GPU-hour", compact(*cost->usd),
                                                significant(*result.scenario.usd_per_gpu_hour))
                                  : std::string();
    out += labelled_line(
        "Training", kRunLabels,
        fmt::format("{} for {} tokens: {} GPU-hours{}", duration_text(cost->seconds),
                    compact(*result.scenario.training_tokens), compact(cost->gpu_hours), price));
  }
  return out;
}

std::string waterfall(const StepReport& report, const TextStyle& style) {
  const std::vector<double> shares = bucket_shares(report.seconds);
  const std::vector<double> percentages = percentages_that_add_up(shares);
  const double longest = *std::ranges::max_element(shares);
  std::size_t width = 0;
  for (const BucketInfo& info : buckets()) width = std::max(width, info.title.size());
  constexpr double kRounding = 1e-12;  // what sums leave where nothing is
  std::string out = "\n" + style.bold("Where the GPU time goes") + "\n";
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] < kRounding) continue;
    const BucketInfo& info = buckets()[i];
    const double seconds = report.seconds[static_cast<std::size_t>(info.bucket)];
    out += fmt::format("  {:<{}}{:>7.1f} % {:>9}  {}", info.title, width, percentages[i],
                       duration_text(seconds), bar(shares[i] / longest, kBarColumns, style));
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out + fmt::format("  {:<{}}{:>7.1f} % {:>9}\n", "Together", width, 100.0,
                           duration_text(report.step_s));
}

std::vector<std::string> stage_cells(const StageReport& stage, double step_s) {
  const auto share = [&](std::initializer_list<Bucket> of) {
    double sum = 0;
    for (const Bucket bucket : of) sum += stage.seconds[static_cast<std::size_t>(bucket)];
    return percent_text(sum / step_s);
  };
  return {fmt::format("{}", stage.stage),
          fmt::format("{}", stage.layers),
          duration_text(stage.forward_s),
          duration_text(stage.backward_s),
          share({Bucket::model_flops, Bucket::kernel_inefficiency, Bucket::memory_bound,
                 Bucket::recompute, Bucket::launch, Bucket::optimiser}),
          share({Bucket::pipeline_bubble, Bucket::pipeline_exposed}),
          share({Bucket::tensor_exposed, Bucket::context_exposed, Bucket::expert_exposed,
                 Bucket::data_exposed, Bucket::host_exposed}),
          share({Bucket::variation, Bucket::straggler, Bucket::expert_imbalance}),
          gib_text(stage.memory.total())};
}

/// The stages' rows; neighbours that look the same share one, "1-7".
std::vector<std::vector<std::string>> stage_rows(const StepReport& report) {
  std::vector<std::vector<std::string>> rows;
  int first = 0;
  for (const StageReport& stage : report.stages) {
    std::vector<std::string> cells = stage_cells(stage, report.step_s);
    if (!rows.empty() && std::equal(cells.begin() + 1, cells.end(), rows.back().begin() + 1)) {
      rows.back()[0] = fmt::format("{}-{}", first, stage.stage);
      continue;
    }
    first = stage.stage;
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::string stages(const StepReport& report, const TextStyle& style) {
  if (report.stages.size() < 2) return {};
  const std::vector<std::string> titles{"stage",    "layers",    "forward", "backward", "working",
                                        "pipeline", "exchanges", "waiting", "memory"};
  std::vector<TextTable::Column> columns;
  columns.reserve(titles.size());
  for (const std::string& title : titles) columns.push_back({title});
  TextTable table(std::move(columns));
  const auto rows = stage_rows(report);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.size() > kStagesShown && i == kStagesShown / 2) {
      i = rows.size() - kStagesShown / 2;
      table.add(std::vector<std::string>(titles.size(), "..."));
    }
    table.add(rows[i]);
  }
  return "\n" + style.bold("Pipeline stages") +
         " (compute of one micro batch; shares of the step)\n" + table.text(style);
}

std::string critical_path(const StepReport& report, const TextStyle& style) {
  if (report.critical_path.empty()) return {};
  std::string out = "\n" + style.bold("Critical path") + " (what the end of the step waited for)\n";
  double rest = 0;
  for (std::size_t i = 0; i < report.critical_path.size(); ++i) {
    const CriticalPathPart& part = report.critical_path[i];
    if (i >= kPathParts) {
      rest += part.seconds;
      continue;
    }
    out += fmt::format("  {:<44}{:>6.1f} % {:>9}\n", part.what, 100 * part.share,
                       duration_text(part.seconds));
  }
  if (rest > 0) {
    out += fmt::format("  {:<44}{:>6.1f} % {:>9}\n",
                       fmt::format("{} more", report.critical_path.size() - kPathParts),
                       100 * rest / report.step_s, duration_text(rest));
  }
  return out;
}

std::string largest_loss_line(const StepReport& report, const TextStyle& style) {
  const LargestLoss loss = largest_loss(report);
  if (loss.bucket == nullptr) return {};
  const std::string text =
      fmt::format("{}, {} of the step. What attacks it in general (not simulated here): {}.",
                  loss.bucket->title, percent_text(loss.share), loss.bucket->remedy);
  return "\n" + style.bold("Largest loss: ") + wrap(text, kTextColumns - 14, 2) + "\n";
}

std::string expectation(const RunResult& result, const TextStyle& style) {
  std::string out;
  for (const ExpectationCheck& check : check_expectation(result)) {
    const bool is_time = check.what == "step time";
    const auto value = [&](double v) { return is_time ? duration_text(v) : percent_text(v); };
    const std::string text = fmt::format(
        "{} {} against {} measured: {}, {} the {:g} % that the scenario allows", check.what,
        value(check.predicted), value(check.expected), error_text(check.error),
        check.within ? "within" : "NOT within", 100 * result.scenario.expect->within);
    out += "  " + wrap(text, kTextColumns - 2, 4) + "\n";
  }
  if (out.empty()) return {};
  const std::string& source = result.scenario.expect->source;
  return "\n" + style.bold("Expected") + (source.empty() ? "" : " (" + source + ")") + "\n" + out;
}

std::string remarks(std::string_view heading, const std::vector<std::string>& texts,
                    const TextStyle& style) {
  if (texts.empty()) return {};
  std::string out = "\n" + style.bold(heading) + "\n";
  for (const std::string& text : texts) out += "  - " + wrap(text, kTextColumns - 4, 4) + "\n";
  return out;
}

}  // namespace

std::string result_table(const RunResult& result, const TextStyle& style) {
  const StepReport& report = result.report;
  return title(result, style) + headline(result, style) + waterfall(report, style) +
         largest_loss_line(report, style) +
         (result.full_fabric ? fabric_table(result, style) : std::string()) +
         (result.power ? power_table(result, style) : std::string()) + pools_table(result, style) +
         stages(report, style) + critical_path(report, style) + expectation(result, style) +
         remarks("Assumed", result.scenario.assumptions, style) +
         remarks("Notes", report.notes, style);
}

}  // namespace lockstep
