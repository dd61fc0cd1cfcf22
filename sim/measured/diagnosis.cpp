#include "sim/measured/diagnosis.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <tuple>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/collectives/collectives.hpp"
#include "sim/answer/value.hpp"
#include "sim/measured/kernel_marks.hpp"
#include "sim/measured/slow_groups.hpp"
#include "sim/measured/statistics.hpp"
#include "sim/trace/group_call.hpp"
#include "sim/trace/pytorch/kineto_call.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostDiagnosedCalls = 1000;

struct PartInfo {
  std::string_view name, title;
  std::array<std::optional<Bucket>, 9> buckets;  ///< of a simulated step
};
/// In the order of RecordedPart.
constexpr std::array<PartInfo, kRecordedParts> kPartInfos{{
    {"products",
     "products and attention",
     {Bucket::model_flops, Bucket::kernel_inefficiency, Bucket::recompute}},
    {"memory_bound", "memory-bound kernels", {Bucket::memory_bound, Bucket::optimiser}},
    {"exchange",
     "exposed communication and waits",
     {Bucket::tensor_exposed, Bucket::context_exposed, Bucket::expert_exposed,
      Bucket::expert_imbalance, Bucket::pipeline_exposed, Bucket::pipeline_bubble,
      Bucket::data_exposed, Bucket::variation, Bucket::straggler}},
    {"copies", "exposed copies", {Bucket::host_exposed}},
    {"host", "waiting for the host", {Bucket::launch}},
}};

/// The pipeline stage of a rank, in Megatron's order.
std::size_t stage_of(const RunResult& result, int rank) {
  const auto stages = static_cast<std::int64_t>(result.report.stages.size());
  return static_cast<std::size_t>(rank * stages / result.scenario.gpus());
}

/// Calls `use` with the seconds of each bucket that a part is about.
template <class Use>
void for_buckets(const StageReport& stage, std::size_t part, const Use& use) {
  for (const std::optional<Bucket>& bucket : kPartInfos[part].buckets) {
    if (bucket) use(stage.seconds[static_cast<std::size_t>(*bucket)]);
  }
}

std::vector<DiagnosedPart> parts_between(const RunResult& predicted,
                                         const std::vector<RecordedRank>& ranks) {
  std::vector<DiagnosedPart> out;
  const double each = 1.0 / static_cast<double>(ranks.size());
  for (std::size_t p = 0; p < kRecordedParts; ++p) {
    DiagnosedPart part{.name = kPartInfos[p].name, .title = kPartInfos[p].title};
    for (const RecordedRank& rank : ranks) {
      part.recorded_s += each * rank.seconds[p];
      for_buckets(predicted.report.stages[stage_of(predicted, rank.rank)], p,
                  [&](double seconds) { part.predicted_s += each * seconds; });
    }
    out.push_back(part);
  }
  return out;
}

/// The operators' rows, and what of the parts is no kernel that computes.
std::vector<DiagnosedOperator> with_other_parts(std::vector<DiagnosedOperator> operators,
                                                const std::vector<DiagnosedPart>& parts) {
  for (const RecordedPart part : {RecordedPart::exchange, RecordedPart::copy, RecordedPart::idle}) {
    const DiagnosedPart& own = parts[static_cast<std::size_t>(part)];
    operators.push_back({.name = own.name,
                         .title = own.title,
                         .predicted_s = own.predicted_s,
                         .recorded_s = own.recorded_s});
  }
  return operators;
}

/// Gathers the calls of all recordings.
class CallCollector {
 public:
  explicit CallCollector(const Scenario& scenario)
      : scenario_(scenario), placement_(placement_in_order(scenario.gpus(), scenario.node)) {}

  void add(const KinetoRecording& recording) {
    ++recordings_;
    for (const KinetoRecording::GpuEvent& event : recording.gpu) {
      if (!event.communicates()) continue;
      const auto& ranged = recording.ranged_calls[event.call];
      const NcclCallText& text = ranged ? *ranged : recording.calls[event.call];
      const auto call = read(recording, event, text);
      if (!call || call->kind != TraceNodeKind::collective) {
        ++untold_;
        continue;
      }
      Times& times = times_[{call->op, call->size.base_units(), members(call->group)}];
      const double took = static_cast<double>(event.end - event.start) * 1e-12;
      times.shortest = times.calls == 0 ? took : std::min(times.shortest, took);
      times.total += took;
      if (times.recording != recordings_) ++times.members;
      times.recording = recordings_;
      ++times.calls;
      times.name = call_name(text);
    }
  }
  [[nodiscard]] std::size_t untold() const { return untold_; }

  std::vector<DiagnosedCall> calls() const {
    std::vector<DiagnosedCall> out;
    for (const auto& [key, times] : times_) {
      const auto& [op, bytes, ranks] = key;
      if (ranks.size() < 2) continue;
      // Each of its members that was recorded counts its calls.
      out.push_back({.call = times.name,
                     .bytes = bytes,
                     .ranks = ranks,
                     .calls = std::max<std::size_t>(1, times.calls / times.members),
                     .shortest_s = times.shortest,
                     .predicted_s = cost_of(op, bytes, ranks),
                     .total_s = times.total / static_cast<double>(times.members)});
    }
    std::ranges::stable_sort(out, std::greater<>(), &DiagnosedCall::total_s);
    if (out.size() > kMostDiagnosedCalls) out.resize(kMostDiagnosedCalls);
    return out;
  }

 private:
  struct Times {
    std::string name;
    std::size_t calls = 0;
    std::size_t members = 0, recording = 0;  ///< recorded; the newest of their recordings
    double shortest = 0, total = 0;
  };

  static std::optional<NcclCall> read(const KinetoRecording& recording,
                                      const KinetoRecording::GpuEvent& event,
                                      const NcclCallText& text) {
    if (text.collective.empty()) return std::nullopt;
    try {
      return read_nccl_call(recording.file, recording.names[event.name], text);
    } catch (const InputError&) {
      return std::nullopt;  // its size or ranks are not told: counted as such
    }
  }
  [[nodiscard]] std::vector<int> members(const RankTrace::Group& group) const {
    if (!group.all) {
      std::vector<int> out = group.ranks;
      std::ranges::sort(out);
      return out;
    }
    std::vector<int> out(static_cast<std::size_t>(scenario_.gpus()));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int>(i);
    return out;
  }
  [[nodiscard]] double cost_of(CollectiveOp op, double bytes, const std::vector<int>& ranks) const {
    const CollectiveCall call = group_call(op, Bytes{bytes}, by_domain(placement_, ranks));
    return collective_time(call, scenario_.node.gpu, scenario_.transport, nic_share(scenario_.node))
        .base_units();
  }

  const Scenario& scenario_;
  Placement placement_;
  std::map<std::tuple<CollectiveOp, double, std::vector<int>>, Times> times_;
  std::size_t recordings_ = 0, untold_ = 0;
};

/// By rank: what it takes above the median of its like, so that stages of a pipeline, which differ
/// by right, are not held against each other. Where a stage has too few recorded ranks for a
/// median, its prediction stands for it.
std::vector<double> above_its_like(const std::vector<double>& values,
                                   const std::vector<double>& predicted,
                                   const std::vector<std::size_t>& stages) {
  constexpr std::size_t kFewest = 3;
  std::map<std::size_t, std::vector<double>> by_stage;
  for (std::size_t r = 0; r < values.size(); ++r) by_stage[stages[r]].push_back(values[r]);
  const bool apart =
      std::ranges::all_of(by_stage, [](const auto& each) { return each.second.size() >= kFewest; });
  std::vector<double> out(values.size());
  if (apart) {
    for (std::size_t r = 0; r < values.size(); ++r) {
      out[r] = values[r] - median(by_stage[stages[r]]);
    }
    return out;
  }
  for (std::size_t r = 0; r < values.size(); ++r) out[r] = values[r] - predicted[r];
  const double middle = median(out);
  for (double& each : out) each -= middle;
  return out;
}

/// Which rank works longest, by how much, and at what.
void find_slowest(const RunResult& predicted, Diagnosis& out) {
  std::vector<double> own;
  std::vector<std::size_t> stages;
  std::array<std::vector<double>, kRecordedParts> parts, predicted_parts;
  for (const RecordedRank& rank : out.ranks) {
    own.push_back(rank.own_s());
    stages.push_back(stage_of(predicted, rank.rank));
    double expected = 0;
    for (std::size_t p = 0; p < kRecordedParts; ++p) {
      const auto part = static_cast<RecordedPart>(p);
      parts[p].push_back(rank.of(part));
      predicted_parts[p].push_back(predicted_part_s(predicted, stages.back(), part));
      if (part != RecordedPart::exchange) expected += predicted_parts[p].back();
    }
    out.predicted_own_s.push_back(expected);
  }
  const std::vector<double> above = above_its_like(own, out.predicted_own_s, stages);
  out.slowest = static_cast<std::size_t>(std::ranges::max_element(above) - above.begin());
  constexpr double kLeast = 1e-9;  // seconds: less is rounding
  out.behind_s = above[out.slowest] < kLeast ? 0 : above[out.slowest];
  double most = 0;
  for (std::size_t p = 0; p < kRecordedParts; ++p) {
    if (static_cast<RecordedPart>(p) == RecordedPart::exchange) continue;
    const double part = above_its_like(parts[p], predicted_parts[p], stages)[out.slowest];
    if (part > most) {
      most = part;
      out.slowest_part = p;
    }
  }
}

/// Whether names tell whose layers these are, and none is of a backward pass.
bool is_inference(std::span<const KinetoRecording> recordings) {
  const KernelMarks marks = kernel_marks(recordings);
  const bool told =
      marks.count(KernelMark::elementwise) > 0 || marks.count(KernelMark::attention_forward) > 0;
  return told && marks.count(KernelMark::backward) == 0 &&
         marks.count(KernelMark::attention_backward) == 0;
}

void set_predicted(const RunResult& predicted, Diagnosis& out) {
  out.predicted_s = predicted.report.step_s;
  out.predicted_low_s = out.predicted_s * (predicted.interval ? predicted.interval->low : 1);
  out.predicted_high_s = out.predicted_s * (predicted.interval ? predicted.interval->high : 1);
}

}  // namespace

void check_recorded_ranks(int gpus, const std::string& job,
                          std::span<const KinetoRecording> recordings, std::span<const int> ranks) {
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    const int world = recordings[i].world.value_or(gpus);
    if (world == gpus && ranks[i] < gpus) continue;
    throw InputError(
        {.file = recordings[i].file,
         .pointer = {},
         .found = world == gpus ? fmt::format("rank {}", ranks[i])
                                : fmt::format("a recording of {} ranks", world),
         .allowed = fmt::format("one of a rank of the {} GPUs that {} is about", gpus, job),
         .nearest = {}});
  }
}

double predicted_part_s(const RunResult& predicted, std::size_t stage, RecordedPart part) {
  double out = 0;
  for_buckets(predicted.report.stages[stage], static_cast<std::size_t>(part),
              [&](double seconds) { out += seconds; });
  return out;
}

Diagnosis diagnose_telemetry(const RunResult& predicted, std::span<const TelemetryLog> logs) {
  Diagnosis out;
  set_predicted(predicted, out);
  out.telemetry = compare_telemetry(predicted, logs);
  return out;
}

Diagnosis diagnose(const RunResult& predicted, std::span<const KinetoRecording> recordings,
                   std::span<const int> ranks) {
  check_recorded_ranks(predicted.scenario.gpus(), predicted.scenario.file, recordings, ranks);
  Diagnosis out;
  set_predicted(predicted, out);
  CallCollector calls(predicted.scenario);
  OperatorCollector operators(predicted);
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    out.ranks.push_back(recorded_rank(recordings[i], ranks[i]));
    out.recorded_s = std::max(out.recorded_s, out.ranks.back().step_s);
    calls.add(recordings[i]);
    operators.add(recordings[i], out.ranks.back(), stage_of(predicted, ranks[i]));
  }
  std::ranges::sort(out.ranks, {}, &RecordedRank::rank);
  out.parts = parts_between(predicted, out.ranks);
  out.operators = with_other_parts(operators.rows(), out.parts);
  out.other_products_share = operators.other_products_share();
  out.notes = operators.notes();
  find_slowest(predicted, out);
  out.calls = calls.calls();
  out.slow_groups = slow_groups(out.calls, predicted.scenario, out.recorded_s);
  if (is_inference(recordings)) {
    out.notes.emplace_back(
        "the recording has no operator or kernel of a backward pass: it is of inference, or of a "
        "part of a step, and the prediction is of a whole training step");
  }
  if (calls.untold() > 0) {
    out.notes.push_back(fmt::format(
        "{} kernels of communication do not say what they call: they count in the parts alone",
        calls.untold()));
  }
  return out;
}

namespace {

const FieldTable<DiagnosedPart>& part_fields() {
  using Of = DiagnosedPart;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Which.", [](const Of& p) { return std::string(p.name); })
          .add("predicted_s", "Of the simulated step, mean over the ranks that were recorded.",
               [](const Of& p) { return p.predicted_s; })
          .add("recorded_s", "Of the recorded step, the same mean.",
               [](const Of& p) { return p.recorded_s; })
          .add("difference_s", "Recorded less predicted.",
               [](const Of& p) { return p.difference_s(); });
  return fields;
}

const FieldTable<DiagnosedOperator>& diagnosed_operator_fields() {
  using Of = DiagnosedOperator;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Which: an operator of the model, \"unassigned\", or a part as above.",
               [](const Of& o) { return std::string(o.name); })
          .add("predicted_s", "Of the simulated step, mean over the ranks that were recorded.",
               [](const Of& o) { return o.predicted_s; })
          .add("recorded_s", "Of the recorded step, the same mean.",
               [](const Of& o) { return o.recorded_s; })
          .add("difference_s", "Recorded less predicted.",
               [](const Of& o) { return o.difference_s(); })
          .add("placed_s", "Of the recorded: kernels that only the products around them tell.",
               [](const Of& o) { return o.placed_s; })
          .add("kernels", "Recorded, of a rank on average.", [](const Of& o) { return o.kernels; });
  return fields;
}

const FieldTable<RecordedRank>& diagnosed_rank_fields() {
  using Of = RecordedRank;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("rank", "Number.", [](const Of& r) { return r.rank; })
        .add("step_s", "Its step.", [](const Of& r) { return r.step_s; })
        .add("own_s", "What it takes without waiting in communication.",
             [](const Of& r) { return r.own_s(); });
    for (std::size_t p = 0; p < kRecordedParts; ++p) {
      out.add(fmt::format("{}_s", kPartInfos[p].name),
              fmt::format("Time of {}.", kPartInfos[p].title),
              [p](const Of& r) { return r.seconds[p]; });
    }
    return out;
  }();
  return fields;
}

const FieldTable<DiagnosedCall>& diagnosed_call_fields() {
  using Of = DiagnosedCall;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("call", "Which collective.", [](const Of& c) { return c.call; })
          .add("size_bytes", "As nccl-tests counts it.", [](const Of& c) { return c.bytes; })
          .add("ranks", "How many take part.", [](const Of& c) { return c.ranks.size(); })
          .add("first_rank", "The lowest of them.", [](const Of& c) { return c.ranks.front(); })
          .add("calls", "How often in the step.", [](const Of& c) { return c.calls; })
          .add("shortest_s", "The shortest call: the last to arrive waits for nobody.",
               [](const Of& c) { return c.shortest_s; })
          .add("predicted_s", "Alone on the scenario's cluster.",
               [](const Of& c) { return c.predicted_s; })
          .add("ratio", "Shortest over predicted.", [](const Of& c) { return c.ratio(); })
          .add("total_s", "Of a member that was recorded, on average, waits in it.",
               [](const Of& c) { return c.total_s; });
  return fields;
}

const FieldTable<SlowGroup>& slow_group_fields() {
  using Of = SlowGroup;
  const auto numbers = [](const std::vector<int>& ranks) {
    return std::vector<double>(ranks.begin(), ranks.end());
  };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("ranks", "Of the group.", [=](const Of& g) { return numbers(g.ranks); })
          .add("spans_nodes", "Whether its calls leave a node.",
               [](const Of& g) { return g.spans_nodes; })
          .add("suspects", "Ranks of it at whose links it may lie: no fast group has them.",
               [=](const Of& g) { return numbers(g.suspects); })
          .add("calls", "How often in the step.", [](const Of& g) { return g.calls; })
          .add("peers", "Other groups that call the same.", [](const Of& g) { return g.peers; })
          .add("shortest_s", "Its calls in a step, each as long as its shortest like.",
               [](const Of& g) { return g.shortest_s; })
          .add("usual_s", "What they take other groups; without such, as predicted.",
               [](const Of& g) { return g.usual_s; })
          .add("ratio", "Shortest over usual.", [](const Of& g) { return g.ratio(); })
          .add("cost_s", "The difference: what it costs a step, as far as nothing hides it.",
               [](const Of& g) { return g.cost_s(); });
  return fields;
}

void add_predicted_step(FieldTable<Diagnosis>& fields) {
  using Of = Diagnosis;
  fields.add("predicted_s", "The simulated step.", [](const Of& d) { return d.predicted_s; })
      .add("predicted_low_s", "Its 90 % interval.", [](const Of& d) { return d.predicted_low_s; })
      .add("predicted_high_s", "Its 90 % interval.",
           [](const Of& d) { return d.predicted_high_s; });
}
void add_notes_and_telemetry(FieldTable<Diagnosis>& fields) {
  using Of = Diagnosis;
  fields.add("notes", "What is to be known of the recording.", [](const Of& d) { return d.notes; })
      .object("telemetry", "What monitors logged of the GPUs, beside the prediction.",
              telemetry_fields(), [](const Of& d) -> const auto& { return d.telemetry; });
}

/// Of monitors' logs alone.
const FieldTable<Diagnosis>& telemetry_alone_fields() {
  static const FieldTable<Diagnosis> fields = [] {
    FieldTable<Diagnosis> out;
    add_predicted_step(out);
    add_notes_and_telemetry(out);
    return out;
  }();
  return fields;
}

const FieldTable<Diagnosis>& diagnosis_table_fields() {
  using Of = Diagnosis;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    add_predicted_step(out);
    out.add("recorded_s", "The recorded step of the rank whose step is the longest.",
            [](const Of& d) { return d.recorded_s; })
        .add("recorded_over_predicted", "Of these two.", [](const Of& d) { return d.ratio(); })
        .add("within_interval", "Whether the interval holds the recorded step.",
             [](const Of& d) { return d.within_interval(); })
        .list("parts", "Where both go.", part_fields(),
              [](const Of& d) -> const auto& { return d.parts; })
        .list("operators", "The same by operator of the model; they add up to the step too.",
              diagnosed_operator_fields(), [](const Of& d) -> const auto& { return d.operators; })
        .add("other_products_share",
             "Of the time in recorded matrix products whose sizes are known, what is in products "
             "that the job has none of: most of it where another job was recorded. Left out where "
             "no sizes were recorded.",
             [](const Of& d) { return d.other_products_share; })
        .add("slowest_rank", "The one that works longest, what it waits for others apart.",
             [](const Of& d) { return d.ranks[d.slowest].rank; })
        .add("behind_s",
             "How much longer than the median rank, of its pipeline stage where enough of that "
             "were recorded; 0 of one rank.",
             [](const Of& d) { return d.behind_s; })
        .add("behind_in", "The part that most of that is in; left out where nothing is behind.",
             [](const Of& d) {
               return d.behind_s > 0 ? std::optional(std::string(kPartInfos[d.slowest_part].name))
                                     : std::nullopt;
             })
        .list("rank_times", "Ranks that were recorded.", diagnosed_rank_fields(),
              [](const Of& d) -> const auto& { return d.ranks; })
        .list("collectives", "Longest first, the process groups of recorded ranks apart.",
              diagnosed_call_fields(), [](const Of& d) -> const auto& { return d.calls; })
        .list("slow_groups", "Process groups whose calls stand out, the costliest first.",
              slow_group_fields(), [](const Of& d) -> const auto& { return d.slow_groups; });
    add_notes_and_telemetry(out);
    return out;
  }();
  return fields;
}

}  // namespace

nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis) {
  const bool recorded = !diagnosis.ranks.empty();
  const auto& fields = recorded ? diagnosis_table_fields() : telemetry_alone_fields();
  return Value(fields.values(diagnosis)).json();
}

std::vector<FieldInfo> diagnosis_fields() { return diagnosis_table_fields().infos(); }

}  // namespace lockstep
