#include "tools/explore/follow.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <exception>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/pipeline/schedule.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_scenario.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kTensorPath = "parallelism.tensor",
                           kPipelinePath = "parallelism.pipeline",
                           kContextPath = "parallelism.context", kExpertPath = "parallelism.expert",
                           kExpertTensorPath = "parallelism.expert_tensor",
                           kVirtualPath = "parallelism.virtual_stages",
                           kSchedulePath = "parallelism.schedule", kMicroPath = "batch.micro",
                           kSequencesPath = "batch.sequences", kNodesPath = "cluster.nodes";

/// What somebody gives up by a change, in no unit: a fixed part and one by each doubling. A batch
/// that moves by a third is as much as other virtual stages, other machines are more, and widths
/// that hold the weights are the last to move (assumed).
struct FollowWeight {
  double any, doubling;
};
constexpr FollowWeight kSequencesWeight{1, 8}, kMicroWeight{1, 1}, kVirtualWeight{4, 0.5},
    kNodesWeight{2, 8}, kExpertWeight{3, 1}, kContextWeight{6, 2}, kPipelineWeight{8, 3},
    kTensorWeight{12, 4};
double follow_weight(const FollowWeight& weight, double from, double to) {
  return from == to ? 0 : weight.any + weight.doubling * std::abs(std::log2(to / from));
}

/// So many jobs are tried, those that change least first.
constexpr std::size_t kMostFollowTries = 48;
constexpr int kWidestStop = 64;

/// Values beside the one there is, which is the first.
std::vector<int> values_beside(int own, std::initializer_list<int> others) {
  std::vector<int> out{own};
  for (const int each : others) {
    if (each != own) out.push_back(each);
  }
  return out;
}
std::vector<int> powers_beside(int own, int high) {
  std::vector<int> out{own};
  for (int each = 1; each <= high; each *= 2) {
    if (each != own) out.push_back(each);
  }
  return out;
}

/// The nearest multiple of `unit`, at least one.
std::int64_t multiple_near(std::int64_t value, std::int64_t unit) {
  return std::max<std::int64_t>(1, (value + unit / 2) / unit) * unit;
}

/// Servers of which whole replicas are made, where a replica has so many ranks. The analyser
/// follows std::gcd no further, and takes its quotient for undefined.
std::int64_t servers_together(std::int64_t replica, int per_node) {
  assert(replica > 0 && per_node > 0);
  return std::max(std::int64_t{1}, std::lcm(replica, std::int64_t{per_node}) / per_node);
}

/// A job that may be whole.
struct FollowTry {
  int tensor, pipeline, context;
  int virtual_stages;                                   ///< 0: left open
  int expert = 1, micro = 1, sequences = 1, nodes = 0;  ///< no nodes: left open
  double weight = 0;
};

/// Runs through what may follow one control.
class Follower {
 public:
  Follower(const ScenarioDraft& moved, std::string_view pinned) : moved_(moved), pinned_(pinned) {}

  /// Those that divide, the least changed first.
  std::vector<FollowTry> tries() {
    for (const int tensor : free(kTensorPath) ? powers_beside(moved_.tensor, kWidestStop)
                                              : values_beside(moved_.tensor, {})) {
      for (const int pipeline : pipelines()) {
        for (const int context : free(kContextPath) ? powers_beside(moved_.context, moved_.context)
                                                    : values_beside(moved_.context, {})) {
          add(tensor, pipeline, context);
        }
      }
    }
    std::ranges::stable_sort(tries_, {}, &FollowTry::weight);
    if (tries_.size() > kMostFollowTries) tries_.resize(kMostFollowTries);
    return std::move(tries_);
  }

  /// The draft with the values of a try.
  [[nodiscard]] ScenarioDraft draft_of(const FollowTry& tried) const {
    ScenarioDraft draft = moved_;
    draft.tensor = tried.tensor;
    draft.pipeline = tried.pipeline;
    draft.context = tried.context;
    draft.expert = tried.expert;
    draft.batch.micro_sequences = tried.micro;
    draft.batch.sequences = tried.sequences;
    if (tried.nodes > 0) draft.nodes = tried.nodes;
    if (tried.virtual_stages > 0) draft.virtual_stages = tried.virtual_stages;
    draft.schedule = schedule_of(tried.pipeline, tried.virtual_stages);
    return draft;
  }

 private:
  [[nodiscard]] bool free(std::string_view path) const { return path != pinned_; }
  [[nodiscard]] std::vector<int> pipelines() const {
    if (!free(kPipelinePath) || moved_.order || !moved_.layers_per_stage.empty()) {
      return {moved_.pipeline};
    }
    return values_beside(moved_.pipeline, {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64});
  }
  /// Micro batches of a batch that may move too: as they are, or halved so that more replicas have
  /// one.
  [[nodiscard]] std::vector<int> micros() const {
    std::vector<int> out{moved_.batch.micro_sequences};
    while (free(kMicroPath) && free(kSequencesPath) && out.back() % 2 == 0) {
      out.push_back(out.back() / 2);
    }
    return out;
  }
  [[nodiscard]] std::vector<int> virtuals(int pipeline) const {
    if (moved_.order || !moved_.layers_per_stage.empty())
      return {moved_.virtual_stages.value_or(0)};
    if (!free(kVirtualPath) || !moved_.virtual_stages) return {moved_.virtual_stages.value_or(0)};
    if (pipeline == 1) return {1};
    std::vector<int> out = values_beside(*moved_.virtual_stages, {1, 2, 3, 4, 5, 6, 8, 10, 12});
    std::erase_if(out, [&](int v) { return v * pipeline > moved_.model.layers + 2; });
    return out;
  }
  /// The schedule that is given, or else the usual one of its virtual stages.
  [[nodiscard]] std::optional<Schedule> schedule_of(int pipeline, int virtual_stages) const {
    if (!moved_.schedule || !free(kSchedulePath) || moved_.order) return moved_.schedule;
    const ScheduleKind& kind = info(*moved_.schedule);
    const int v = pipeline == 1 ? 1 : virtual_stages;
    if (v == 0 || (v >= kind.virtual_min && v <= kind.virtual_max)) return moved_.schedule;
    return v == 1 ? Schedule::one_f_one_b : Schedule::interleaved;
  }
  /// Experts' ranks that these lanes and ranks hold.
  [[nodiscard]] std::optional<int> expert_of(std::int64_t lanes, std::int64_t ranks) const {
    const std::int64_t wide = moved_.expert_tensor.value_or(1);
    const auto fits = [&](int expert) {
      const std::int64_t together = expert * wide;
      const int count = std::max(1, moved_.model.experts.count);
      return count % expert == 0 && ranks % together == 0 &&
             (lanes % together == 0 || together % lanes == 0);
    };
    // Of a stack's default only the reader knows.
    if (!moved_.expert_tensor || !free(kExpertPath) || fits(moved_.expert)) return moved_.expert;
    std::optional<int> best;
    for (int each = 1; each <= std::max(1, moved_.model.experts.count); each *= 2) {
      if (!fits(each)) continue;
      if (!best || follow_weight(kExpertWeight, moved_.expert, each) <
                       follow_weight(kExpertWeight, moved_.expert, *best)) {
        best = each;
      }
    }
    return best;
  }

  /// Servers beside those there are: the nearest that whole replicas of `replica` ranks fill.
  [[nodiscard]] std::vector<int> servers(std::int64_t replica) const {
    if (!moved_.nodes || !moved_.pools.empty()) return {0};
    const int own = *moved_.nodes;
    if (moved_.data) return {own};  // a part of one node
    const std::int64_t unit = servers_together(replica, moved_.node.gpus);
    if (own % unit == 0) return {own};
    if (!free(kNodesPath)) return {};
    const std::int64_t nearest = multiple_near(own, unit);
    return nearest > kMaxGpus ? std::vector<int>{} : std::vector<int>{static_cast<int>(nearest)};
  }

  void add(int tensor, int pipeline, int context) {
    const std::int64_t lanes = std::int64_t{tensor} * context, replica = lanes * pipeline;
    if (replica > kMaxGpus) return;
    for (const int nodes : servers(replica)) {
      const std::int64_t gpus = std::int64_t{nodes} * moved_.node.gpus;
      const std::int64_t data = moved_.data ? *moved_.data : nodes > 0 ? gpus / replica : 0;
      for (const int micro : micros()) {
        for (const int v : virtuals(pipeline)) {
          FollowTry tried{.tensor = tensor,
                          .pipeline = pipeline,
                          .context = context,
                          .virtual_stages = v,
                          .expert = moved_.expert,
                          .micro = micro,
                          .sequences = moved_.batch.sequences,
                          .nodes = nodes};
          if (!divide_batch(tried, data)) continue;
          weigh(tried);
          // Fewer experts to a rank, where theirs are what does not divide.
          const std::optional<int> expert =
              data > 0 ? expert_of(lanes, lanes * data) : moved_.expert;
          tried.weight += expert ? follow_weight(kExpertWeight, moved_.expert, *expert) : 0;
          if (expert) tried.expert = *expert;
          if (expert) tries_.push_back(tried);
        }
      }
    }
  }

  /// Whole micro batches of all replicas; no data: replicas are not known before the job is read.
  [[nodiscard]] bool divide_batch(FollowTry& tried, std::int64_t data) const {
    const bool split = !moved_.micro_batches.empty() || moved_.balanced_batch;
    if (split || data == 0) return true;
    const std::optional<Schedule> given = schedule_of(tried.pipeline, tried.virtual_stages);
    const Schedule schedule =
        given.value_or(tried.virtual_stages > 1 ? Schedule::interleaved : Schedule::one_f_one_b);
    MicroBatchRule rule;
    if (moved_.order) {
      rule = {.multiple = moved_.order->micro_batches, .least = moved_.order->micro_batches};
    } else if (tried.pipeline > 1) {
      rule = info(schedule).micro_batches(tried.pipeline);
    }
    if (!free(kSequencesPath)) return divide_micro(tried, data, rule);
    const std::int64_t unit = data * tried.micro * rule.multiple;
    const std::int64_t least = data * tried.micro * rule.least;
    std::int64_t sequences = multiple_near(tried.sequences, unit);
    while (sequences < least) sequences += unit;
    if (moved_.order) sequences = least;
    constexpr std::int64_t kMostSequences = 1 << 20;
    if (sequences > kMostSequences) return false;
    tried.sequences = static_cast<int>(sequences);
    return true;
  }
  /// Of a batch that somebody chose the micro batches follow, and get smaller.
  [[nodiscard]] bool divide_micro(FollowTry& tried, std::int64_t data, MicroBatchRule rule) const {
    for (; tried.micro >= 1; --tried.micro) {
      const std::int64_t together = data * tried.micro;
      const std::int64_t micro_batches = tried.sequences / together;
      if (tried.sequences % together == 0 && micro_batches % rule.multiple == 0 &&
          micro_batches >= rule.least) {
        return true;
      }
      if (!free(kMicroPath)) return false;
    }
    return false;
  }

  void weigh(FollowTry& tried) const {
    tried.weight = follow_weight(kTensorWeight, moved_.tensor, tried.tensor) +
                   follow_weight(kPipelineWeight, moved_.pipeline, tried.pipeline) +
                   follow_weight(kContextWeight, moved_.context, tried.context) +
                   follow_weight(kMicroWeight, moved_.batch.micro_sequences, tried.micro) +
                   follow_weight(kSequencesWeight, moved_.batch.sequences, tried.sequences) +
                   follow_weight(kNodesWeight, moved_.nodes.value_or(0), tried.nodes);
    if (tried.virtual_stages > 0 && moved_.virtual_stages) {
      tried.weight += follow_weight(kVirtualWeight, *moved_.virtual_stages, tried.virtual_stages);
    }
  }

  const ScenarioDraft& moved_;
  std::string_view pinned_;
  std::vector<FollowTry> tries_;
};

ExploreState followed_state(const ScenarioDraft& from, const ScenarioDraft& to) {
  ExploreState state;
  const auto add = [&](std::string_view path, int before, int after) {
    if (before != after) state.emplace(path, std::to_string(after));
  };
  add(kTensorPath, from.tensor, to.tensor);
  add(kPipelinePath, from.pipeline, to.pipeline);
  add(kContextPath, from.context, to.context);
  add(kExpertPath, from.expert, to.expert);
  add(kMicroPath, from.batch.micro_sequences, to.batch.micro_sequences);
  add(kSequencesPath, from.batch.sequences, to.batch.sequences);
  add(kNodesPath, from.nodes.value_or(0), to.nodes.value_or(0));
  add(kVirtualPath, from.virtual_stages.value_or(0), to.virtual_stages.value_or(0));
  if (from.schedule != to.schedule) {
    state.emplace(kSchedulePath, std::string(name_of(*to.schedule)));
  }
  return state;
}

}  // namespace

bool may_follow(std::string_view pointer) {
  constexpr std::array<std::string_view, 3> kOf{"/parallelism", "/batch", "/cluster/nodes"};
  return std::ranges::any_of(kOf, [&](std::string_view key) { return pointer.starts_with(key); });
}

FollowedJob follow(const ScenarioDraft& moved, std::string_view pinned,
                   const PresetStore& presets) {
  std::exception_ptr as_it_is;
  try {
    return {.scenario = complete_measured(moved, presets, {}), .followed = {}};
  } catch (const InputError& error) {
    if (!may_follow(error.problem().pointer)) throw;
    as_it_is = std::current_exception();
  }
  Follower follower(moved, pinned);
  for (const FollowTry& tried : follower.tries()) {
    ScenarioDraft draft = follower.draft_of(tried);
    for (const bool last : {draft.shard_group == 0, true}) {
      try {
        return {.scenario = complete_measured(draft, presets, {}),
                .followed = followed_state(moved, draft)};
      } catch (const InputError& error) {
        if (!may_follow(error.problem().pointer)) throw;
        if (last || error.problem().pointer != "/parallelism/shard_group") break;
      }
      draft.shard_group = 0;
    }
  }
  std::rethrow_exception(as_it_is);
}

std::string followed_text(const Scenario& before, const Scenario& after, std::string_view pinned) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view path, std::string_view name, double from, double to,
                       std::string_view unit = {}) {
    if (path == pinned || from == to) return;
    parts.push_back(fmt::format("{} {} -> {}{}", name, grouped(from), grouped(to), unit));
  };
  const Parallelism &was = before.job.parallelism, &is = after.job.parallelism;
  const Batch &old = before.job.batch, &batch = after.job.batch;
  add(kTensorPath, "tensor", was.tensor, is.tensor);
  add(kPipelinePath, "pipeline", was.pipeline, is.pipeline);
  add(kContextPath, "context", was.context, is.context);
  add({}, "data width", was.data, is.data);
  add(kExpertPath, "experts' width", was.expert, is.expert);
  add(kExpertTensorPath, "tensor width of experts", was.expert_tensor, is.expert_tensor);
  add(kVirtualPath, "virtual stages", was.virtual_stages, is.virtual_stages);
  const auto add_name = [&](std::string_view path, std::string_view name, std::string_view from,
                            std::string_view to) {
    if (path != pinned && from != to) parts.push_back(fmt::format("{} {} -> {}", name, from, to));
  };
  if (is.pipeline > 1) {
    add_name(kSchedulePath, "schedule", name_of(was.schedule), name_of(is.schedule));
  }
  add_name("parallelism.sharding", "sharding", name_of(was.sharding), name_of(is.sharding));
  add_name("parallelism.sequence", "sequence parallel", was.sequence ? "on" : "off",
           is.sequence ? "on" : "off");
  add_name("recompute", "recompute", name_of(before.job.recompute), name_of(after.job.recompute));
  add(kNodesPath, "servers", before.nodes, after.nodes);
  if (was.shard_group > 0 && is.shard_group == 0) {  // no control has it, nothing puts it back
    parts.push_back(fmt::format("shard group of {} -> none", grouped(was.shard_group)));
  }
  add(kSequencesPath, "batch", old.sequences, batch.sequences, " sequences");
  add(kMicroPath, "micro batch", old.micro_sequences, batch.micro_sequences);
  if (parts.empty()) return {};
  std::string text = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    text += (i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return text + (parts.size() == 1 ? " follows" : " follow");
}

std::vector<std::string> stops_of(const ExploreControl& control, const Scenario& job) {
  if (control.path != kNodesPath && control.path != kSequencesPath) return control.values;
  const Parallelism& cut = job.job.parallelism;
  const std::int64_t replica = std::int64_t{cut.tensor} * cut.context * cut.pipeline;
  const bool servers = control.path == kNodesPath;
  std::int64_t unit = servers ? servers_together(replica, job.node.gpus)
                              : std::int64_t{cut.data} * job.job.batch.micro_sequences;
  if (!servers && cut.order) return {std::to_string(job.job.batch.sequences)};
  if (!servers && cut.pipeline > 1) {
    unit *= info(cut.schedule).micro_batches(cut.pipeline).multiple;
  }
  std::set<std::int64_t> stops;
  for (const std::string& value : control.values) {
    const std::int64_t each = std::stoll(value);
    const std::int64_t stop = each < unit && servers ? each : multiple_near(each, unit);
    if (static_cast<double>(stop) <= control.high) stops.insert(stop);
  }
  std::vector<std::string> out;
  for (const std::int64_t stop : stops) out.push_back(std::to_string(stop));
  return out;
}

}  // namespace lockstep
