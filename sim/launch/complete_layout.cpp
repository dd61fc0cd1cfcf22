#include "sim/launch/complete_layout.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kMostGpus = 16'000'000;

class Layout {
 public:
  Layout(const JobSketch& job, LaunchKind kind, const LaunchMachine& machine,
         const std::string& file, std::vector<JobAssumption>& assumptions)
      : job_(job), kind_(kind), machine_(machine), file_(file), assumptions_(assumptions) {}

  CompleteLayout take() {
    out_.tensor = job_.tensor.value_or(1);
    out_.pipeline = job_.pipeline.value_or(1);
    out_.context = job_.context.value_or(1);
    out_.expert = job_.expert.value_or(1);
    expert_tensor();
    virtual_stages();
    machine();
    sharding();
    batch();
    return out_;
  }

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& allowed) const {
    throw InputError(
        {.file = file_, .pointer = {}, .found = found, .allowed = allowed, .nearest = {}});
  }
  void assume(const std::string& path, std::int64_t value, const std::string& why,
              const std::string& option) {
    assumptions_.push_back({path, std::to_string(value), why, option});
  }

  /// The tensor-parallel degree of experts: that of the rest in Megatron, unless the job gives one.
  void expert_tensor() {
    const bool as_tensor = kind_ == LaunchKind::megatron || kind_ == LaunchKind::nemo ||
                           kind_ == LaunchKind::bridge || kind_ == LaunchKind::neox;
    out_.expert_tensor = job_.expert_tensor.value_or(as_tensor ? out_.tensor : 1);
    if (out_.expert == 1 && !job_.model.experts && !job_.expert_tensor) {
      out_.expert_tensor = as_tensor ? out_.tensor : 1;
    }
  }

  void virtual_stages() {
    if (job_.virtual_stages) out_.virtual_stages = *job_.virtual_stages;
    if (out_.pipeline == 1) {
      out_.virtual_stages = 1;
      return;
    }
    if (!job_.stage_layers.empty()) {
      const auto stages = std::ssize(job_.stage_layers);
      if (stages % out_.pipeline != 0) {
        fail(fmt::format("{} stages in a layout for {} pipeline ranks", stages, out_.pipeline),
             "as many stages as ranks, or a multiple");
      }
      out_.virtual_stages = static_cast<int>(stages / out_.pipeline);
    } else if (job_.layers_per_virtual_stage && machine_.layers > 0) {
      const int each = out_.pipeline * *job_.layers_per_virtual_stage;
      const bool rounds_up = kind_ == LaunchKind::torchtitan;
      if (!rounds_up && machine_.layers % each != 0) {
        fail(fmt::format("{} layers a virtual stage, on {} ranks", *job_.layers_per_virtual_stage,
                         out_.pipeline),
             fmt::format("a product that divides the model's {} layers", machine_.layers));
      }
      out_.virtual_stages = std::max(1, (machine_.layers + each - 1) / each);
    } else if (kind_ == LaunchKind::torchtitan && !job_.virtual_stages) {
      const bool several = job_.schedule == "interleaved" || job_.schedule == "breadth_first" ||
                           job_.schedule == "zb_v" || job_.schedule == "dualpipev";
      out_.virtual_stages = several ? 2 : 1;
    }
  }

  void bounded(std::int64_t gpus) const {
    if (gpus > kMostGpus) fail(fmt::format("widths of {} GPUs", gpus), "at most 16,000,000");
  }

  /// GPUs that one copy of the job needs at least, experts among its replicas included.
  [[nodiscard]] std::int64_t least_gpus() const {
    const std::int64_t dense = std::int64_t{out_.tensor} * out_.context;
    const std::int64_t sparse = job_.expert ? std::int64_t{out_.expert} * out_.expert_tensor : 1;
    bounded(dense);
    bounded(sparse);
    const std::int64_t both = std::lcm(dense, std::max<std::int64_t>(1, sparse));
    bounded(both);
    const std::int64_t replicas =
        kind_ == LaunchKind::maxtext && job_.expert ? std::lcm(both, dense * out_.expert) : both;
    const int shard = job_.shard.value_or(1) < 0 ? job_.shard_least : job_.shard.value_or(1);
    const std::int64_t groups = std::max<std::int64_t>(1, job_.replicate.value_or(1)) *
                                std::max<std::int64_t>(1, shard) * expert_axis();
    bounded(replicas);
    bounded(groups);
    bounded(dense * groups);
    const std::int64_t whole = std::lcm(replicas, dense * groups);
    bounded(whole);
    const std::int64_t all = whole * out_.pipeline;
    bounded(all);
    return all;
  }

  [[nodiscard]] std::string widths() const {
    std::string text =
        fmt::format("TP {} x CP {} x PP {}", out_.tensor, out_.context, out_.pipeline);
    if (job_.expert) text += fmt::format(", EP {}", out_.expert);
    return text;
  }

  void machine() {
    const std::int64_t least = least_gpus();
    const int each = job_.node_gpus.value_or(machine_.node_gpus);
    std::int64_t all = 0;
    const bool all_said = job_.gpus && !machine_.fixed_nodes;
    if (all_said) {
      all = *job_.gpus;
    } else if (job_.nodes) {
      all = std::int64_t{*job_.nodes} * each;
    }
    const bool fits = all > 0 && all % least == 0;
    if (all > 0 && !fits) {
      const std::int64_t nodes = (least + each - 1) / each;
      const std::string how =
          machine_.variable.empty()
              ? fmt::format("--nodes {}", nodes)
              : fmt::format("--set {}={} (or --nodes {})", machine_.variable, nodes, nodes);
      fail(fmt::format("{} GPUs for {}", all, widths()),
           fmt::format("a multiple of {}: {}", least, how));
    }
    if (all == 0) {
      const bool told = machine_.told_gpus > 0 && machine_.told_gpus % least == 0;
      all = told ? machine_.told_gpus : least_with_batch(least, each);
      assume("cluster.nodes", (all + machine_.node_gpus - 1) / machine_.node_gpus,
             told ? "by a comment" : "no file says how many: as few as the layout needs",
             "--nodes N");
    }
    if (all > kMostGpus) fail(fmt::format("{} GPUs", all), "at most 16,000,000");
    out_.gpus = all;
    out_.nodes = static_cast<int>((all + machine_.node_gpus - 1) / machine_.node_gpus);
    out_.data = all / (std::int64_t{out_.tensor} * out_.context * out_.pipeline);
  }

  /// DeepSpeed and the Trainer refuse another batch (deepspeed/runtime/config.py,
  /// _batch_assertion); Megatron takes what is left of it as accumulation.
  [[nodiscard]] bool batch_is_product() const {
    return kind_ == LaunchKind::deepspeed || kind_ == LaunchKind::trainer ||
           kind_ == LaunchKind::accelerate || kind_ == LaunchKind::neox;
  }

  /// Whole nodes that the batch divides over, if there are some.
  [[nodiscard]] std::int64_t least_with_batch(std::int64_t least, int each) const {
    if (job_.gpus) return *job_.gpus;
    const std::int64_t base = least;
    if (least < each && each % least == 0) least = each;
    const std::int64_t model = std::int64_t{out_.tensor} * out_.context * out_.pipeline;
    const std::int64_t whole = least;
    const bool known = job_.sequences && (job_.micro || job_.local);
    const std::int64_t step = known ? job_.micro.value_or(job_.local.value_or(1)) *
                                          std::int64_t{job_.accumulation.value_or(1)}
                                    : 1;
    for (std::int64_t all = least; known && all <= 64 * least; all += least) {
      if (job_.accumulation && batch_is_product() && step * (all / model) != *job_.sequences) {
        continue;
      }
      if (*job_.sequences % (step * (all / model)) == 0) return all;
    }
    // Fewer GPUs than a node has, where the batch is for few replicas.
    for (std::int64_t all = whole; known && all > 0; all -= base) {
      if (*job_.sequences % (step * (all / model)) == 0) return all;
    }
    return least;
  }

  void sharding() {
    const bool zero = job_.zero_stage.has_value();
    if (zero) {
      const std::array<std::string, 4> names{"none", "zero1", "zero2", "zero3"};
      out_.sharding = names.at(static_cast<std::size_t>(*job_.zero_stage));
    } else if (!job_.sharding.empty()) {
      out_.sharding = job_.sharding;
    } else if (kind_ == LaunchKind::torchtitan || kind_ == LaunchKind::maxtext ||
               kind_ == LaunchKind::torchtune) {
      sharding_of_groups();
    } else {
      out_.sharding = job_.distributed_optimizer ? "zero1" : "none";
    }
    if (out_.sharding == "none" && job_.distributed_optimizer) out_.sharding = "zero1";
    if (out_.data * out_.context == 1) out_.sharding = "none";
    if (out_.sharding != "zero3") return;
    shard_group();
  }

  void sharding_of_groups() {
    const std::int64_t copies = job_.replicate.value_or(1);
    // Without a given width, the remaining GPUs shard the weights.
    const bool rest = job_.shard.value_or(-1) < 0 && job_.data.value_or(1) >= 0;
    const std::int64_t shard =
        rest ? std::max<std::int64_t>(1, out_.data / copies) : std::max(1, job_.shard.value_or(1));
    if (!rest && job_.data.value_or(1) >= 0 && copies * shard * expert_axis() != out_.data) {
      fail(fmt::format("{} replicas, {} copies of {} that share weights", out_.data, copies, shard),
           "a product that is the number of replicas");
    }
    out_.sharding = shard * out_.context > 1 ? "zero3" : "none";
    groups_ = shard * out_.context;
  }
  [[nodiscard]] std::int64_t expert_axis() const {
    return kind_ == LaunchKind::maxtext ? out_.expert : 1;
  }

  void shard_group() {
    const std::int64_t replicas = out_.data * out_.context;
    std::int64_t group = groups_;
    if (job_.shard_group) group = *job_.shard_group;
    if (job_.shard_copies) group = replicas / std::max(1, *job_.shard_copies);
    if (job_.fixed_node_group) {
      const int each = job_.node_gpus.value_or(machine_.node_gpus);
      group = std::max<std::int64_t>(1, each / (out_.tensor * out_.pipeline));
    }
    if (kind_ == LaunchKind::accelerate && job_.shard && job_.replicate) {
      group = std::int64_t{*job_.shard} * out_.context;
    }
    if (group > 0 && group < replicas && replicas % group == 0) {
      out_.shard_group = static_cast<int>(group);
    }
  }

  void batch() {
    if (kind_ == LaunchKind::torchtitan) {
      titan_batch();
    } else if (kind_ == LaunchKind::maxtext) {
      maxtext_batch();
    } else if (kind_ == LaunchKind::megatron || kind_ == LaunchKind::nemo ||
               kind_ == LaunchKind::bridge) {
      megatron_batch();
    } else {
      replica_batch();
    }
    const std::int64_t step = out_.data * out_.micro;
    if (out_.sequences % step == 0 && out_.sequences > 0) return;
    fail(fmt::format("{} sequences for {} replicas with micro batches of {}", out_.sequences,
                     out_.data, out_.micro),
         fmt::format("a multiple of {}: another number of nodes (--nodes N), or batch "
                     "(--set batch.sequences=N)",
                     step));
  }

  void megatron_batch() {
    out_.micro = micro_or_assumed();
    if (job_.sequences) {
      out_.sequences = *job_.sequences;
      return;
    }
    out_.sequences = out_.micro * out_.data * job_.accumulation.value_or(1);
    assume("batch.sequences", out_.sequences, "no file says it: one micro batch a replica",
           "--set batch.sequences=N");
  }

  int micro_or_assumed() {
    if (job_.micro) return *job_.micro;
    assume("batch.micro", 1, "no file says it", "--set batch.micro=N");
    return 1;
  }

  void titan_batch() {
    const int local = job_.local.value_or(1);
    if (!job_.local)
      assume("batch.micro", 1, "no file says local_batch_size", "--set batch.micro=N");
    const bool pipelined = out_.pipeline > 1;
    out_.micro = pipelined ? job_.pipeline_micro.value_or(titan_pass(local)) : local;
    out_.sequences = job_.sequences.value_or(0);
    if (!job_.sequences) out_.sequences = local * out_.data;
    if (pipelined && job_.local) {
      out_.pipelines = std::max<std::int64_t>(1, out_.sequences / (local * out_.data));
    }
  }

  /// Sequences of a pass, where a file says how many passes there are.
  [[nodiscard]] int titan_pass(int local) const {
    if (!job_.pipeline_passes) return 1;
    if (job_.local && local % *job_.pipeline_passes != 0) {
      fail(fmt::format("pipeline_parallel_microbatches {} of a batch of {} sequences",
                       *job_.pipeline_passes, local),
           "a divisor of the batch of a replica");
    }
    return std::max(1, local / *job_.pipeline_passes);
  }

  void maxtext_batch() {
    const double each = job_.per_device.value_or(1);
    if (!job_.per_device) {
      assume("batch.sequences", out_.gpus, "no file says per_device_batch_size",
             "--set batch.sequences=N");
    }
    const double all = each * static_cast<double>(out_.gpus) * job_.accumulation.value_or(1);
    if (all < 1 || all > 1e8)
      fail(fmt::format("{} sequences a step", plain_number(all)), "from 1 to 100,000,000");
    out_.sequences = std::llround(all);
    const std::int64_t replica =
        out_.sequences / std::max<std::int64_t>(1, out_.data * job_.accumulation.value_or(1));
    const std::int64_t parts = out_.pipeline > 1 ? std::max<std::int64_t>(1, out_.pipeline) : 1;
    out_.micro = static_cast<int>(std::max<std::int64_t>(1, replica / parts));
  }

  /// Sequences of a step are micro batch x accumulation x replicas: any two say the third.
  void replica_batch() {
    const int steps = job_.accumulation.value_or(1);
    if (job_.sequences && !job_.micro) {
      const std::int64_t micro = *job_.sequences / (steps * out_.data);
      out_.micro = static_cast<int>(std::max<std::int64_t>(1, micro));
      if (!job_.accumulation) {
        out_.micro = 1;
        assume("batch.micro", 1, "neither micro batch nor accumulation is said",
               "--set batch.micro=N");
      }
    } else {
      out_.micro = micro_or_assumed();
    }
    out_.sequences = job_.sequences ? std::int64_t{*job_.sequences}
                                    : std::int64_t{out_.micro} * steps * out_.data;
    if (job_.sequences && job_.micro && job_.accumulation) require_product();
  }

  void require_product() const {
    const std::int64_t product = std::int64_t{out_.micro} * *job_.accumulation * out_.data;
    if (product == out_.sequences) return;
    fail(fmt::format("a batch of {} sequences, and {} replicas that accumulate {} micro batches of "
                     "{}, which are {}",
                     out_.sequences, out_.data, *job_.accumulation, out_.micro, product),
         fmt::format("numbers that agree: another number of nodes (--nodes N), or "
                     "--set train_batch_size={}",
                     product));
  }

  const JobSketch& job_;
  LaunchKind kind_;
  const LaunchMachine& machine_;
  const std::string& file_;
  std::vector<JobAssumption>& assumptions_;
  std::int64_t groups_ = 0;
  CompleteLayout out_;
};

}  // namespace

CompleteLayout complete_layout(const JobSketch& job, LaunchKind kind, const LaunchMachine& machine,
                               const std::string& file, std::vector<JobAssumption>& assumptions) {
  return Layout(job, kind, machine, file, assumptions).take();
}

}  // namespace lockstep
