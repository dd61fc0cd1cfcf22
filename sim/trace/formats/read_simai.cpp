#include "sim/trace/formats/read_simai.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/trace/formats/workload_ranks.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kSimaiPolicies{"HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                                                         "HYBRID_TRANSFORMER"};
constexpr std::size_t kMostSimaiLayers = 1'000'000;
constexpr double kMostSimaiBytes = 1e15;
constexpr std::uint64_t kMostSimaiNanoseconds = kLongestTraceNode.ps / 1000;

/// Among whom a collective is.
enum class SimaiGroup : std::uint8_t { tensor, data, expert, expert_data };
constexpr std::array<std::string_view, 4> kSimaiGroupNames{"tensor", "data", "expert",
                                                           "expert data"};

struct SimaiCall {
  std::optional<CollectiveOp> op;  ///< nothing: none
  SimaiGroup group = SimaiGroup::tensor;
  double bytes = 0;
};
struct SimaiPass {
  std::uint64_t ns = 0;
  SimaiCall call;
};
struct SimaiLayer {
  std::string name;
  SimaiPass forward, input, weights;
  std::uint64_t update_ns = 0;
};

/// The first line.
struct SimaiHead {
  int tensor = 1, expert = 1, pipeline = 1, ranks = 0;
  std::vector<int> checkpoints, initiates;  ///< layers
};

/// Words of a text, line by line.
class SimaiReader {
 public:
  SimaiReader(const std::string& file, std::string_view text) : file_(file), text_(text) {}

  SimaiHead head();
  std::vector<SimaiLayer> layers();

 private:
  [[noreturn]] void fail(std::string_view found, std::string allowed) const {
    fail_trace(fmt::format("{}:{}", file_, line_), found.empty() ? "no more" : in_quotes(found),
               std::move(allowed));
  }
  /// The words of the next line that has some; none at the end.
  std::vector<std::string_view> next_line();
  std::uint64_t whole(std::string_view word, std::string_view what, std::uint64_t most) const;
  std::vector<int> layer_list(const std::vector<std::string_view>& words, std::size_t& at) const;
  SimaiCall call(std::string_view word, std::string_view size, SimaiGroup group) const;

  const std::string& file_;
  std::string_view text_;
  std::size_t line_ = 0;
};

std::vector<std::string_view> SimaiReader::next_line() {
  constexpr std::string_view kBlanks = " \t\r";
  while (!text_.empty()) {
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    std::string_view rest = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    ++line_;
    std::vector<std::string_view> words;
    for (;;) {
      const std::size_t from = rest.find_first_not_of(kBlanks);
      if (from == std::string_view::npos) break;
      rest.remove_prefix(from);
      const std::size_t length = std::min(rest.find_first_of(kBlanks), rest.size());
      words.push_back(rest.substr(0, length));
      rest.remove_prefix(length);
    }
    if (!words.empty()) return words;
  }
  return {};
}

std::uint64_t SimaiReader::whole(std::string_view word, std::string_view what,
                                 std::uint64_t most) const {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || stop != word.data() + word.size() || value > most) {
    fail(word, fmt::format("{}, a whole number up to {}", what, most));
  }
  return value;
}

/// "2 0 12": how many, then which layers.
std::vector<int> SimaiReader::layer_list(const std::vector<std::string_view>& words,
                                         std::size_t& at) const {
  const auto word = [&] { return at < words.size() ? words[at++] : std::string_view(); };
  std::vector<int> out(whole(word(), "a number of layers", kMostSimaiLayers));
  for (int& layer : out) {
    layer = static_cast<int>(whole(word(), "the number of a layer", kMostSimaiLayers));
  }
  std::ranges::sort(out);
  return out;
}

SimaiHead SimaiReader::head() {
  const std::vector<std::string_view> words = next_line();
  if (words.empty() || std::ranges::find(kSimaiPolicies, words[0]) == kSimaiPolicies.end()) {
    fail(words.empty() ? std::string_view() : words[0],
         fmt::format("{} or {}", kSimaiPolicies[0], kSimaiPolicies[1]));
  }
  SimaiHead out;
  const std::map<std::string_view, int*> widths{{"model_parallel_NPU_group:", &out.tensor},
                                                {"ep:", &out.expert},
                                                {"pp:", &out.pipeline},
                                                {"all_gpus:", &out.ranks}};
  for (std::size_t at = 1; at < words.size();) {
    const std::string_view key = words[at++];
    if (key == "checkpoints:") {
      out.checkpoints = layer_list(words, at);
    } else if (key == "checkpoint_initiates:") {
      out.initiates = layer_list(words, at);
    } else if (const auto width = widths.find(key); width != widths.end()) {
      const std::string_view word = at < words.size() ? words[at++] : std::string_view();
      *width->second = static_cast<int>(whole(word, key, kMostTraceRanks));
      if (*width->second == 0) fail(word, fmt::format("{} at least 1", key));
    }
    // Others (vpp:, ga:, pp_comm:) say how the file was made: its layers are all of the step.
  }
  return out;
}

SimaiCall SimaiReader::call(std::string_view word, std::string_view size, SimaiGroup group) const {
  constexpr std::array<std::pair<std::string_view, CollectiveOp>, 5> kOps{
      {{"ALLREDUCE", CollectiveOp::all_reduce},
       {"ALLGATHER", CollectiveOp::all_gather},
       {"REDUCESCATTER", CollectiveOp::reduce_scatter},
       {"ALLTOALL", CollectiveOp::all_to_all},
       {"BROADCAST", CollectiveOp::broadcast}}};
  SimaiCall out{.op = {}, .group = group, .bytes = 0};
  if (word != "NONE") {
    const auto op =
        std::ranges::find_if(kOps, [&](const auto& each) { return word.starts_with(each.first); });
    const std::string_view suffix = op == kOps.end() ? word : word.substr(op->first.size());
    if (suffix == "_EP") {
      out.group = SimaiGroup::expert;
    } else if (suffix == "_DP_EP") {
      out.group = SimaiGroup::expert_data;
    } else if (!suffix.empty()) {
      fail(word,
           "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or BROADCAST, with _EP or "
           "_DP_EP behind it or nothing");
    }
    out.op = op->second;
  }
  out.bytes = static_cast<double>(
      whole(size, "bytes of a collective", static_cast<std::uint64_t>(kMostSimaiBytes)));
  if (out.bytes == 0) out.op.reset();
  return out;
}

std::vector<SimaiLayer> SimaiReader::layers() {
  const std::vector<std::string_view> count = next_line();
  const std::uint64_t layers = whole(count.empty() ? std::string_view() : count[0],
                                     "the number of layers", kMostSimaiLayers);
  std::vector<SimaiLayer> out;
  for (std::uint64_t l = 0; l < layers; ++l) {
    const std::vector<std::string_view> words = next_line();
    constexpr std::size_t kWords = 12;
    if (words.size() < kWords) {
      fail(words.empty() ? std::string_view() : words.back(),
           fmt::format("layer {} of {} in 12 words: name, dependency, three times time, "
                       "collective, bytes, and the time of the update",
                       l + 1, layers));
    }
    const auto pass = [&](std::size_t at, SimaiGroup group) {
      return SimaiPass{whole(words[at], "ns", kMostSimaiNanoseconds),
                       call(words[at + 1], words[at + 2], group)};
    };
    out.push_back({.name = std::string(words[0]),
                   .forward = pass(2, SimaiGroup::tensor),
                   .input = pass(5, SimaiGroup::tensor),
                   .weights = pass(8, SimaiGroup::data),
                   .update_ns = whole(words[11], "ns of the update", kMostSimaiNanoseconds)});
  }
  if (const auto more = next_line(); !more.empty()) {
    fail(more[0], fmt::format("no more than the {} layers of the second line", layers));
  }
  return out;
}

/// Turns layers into what a rank does, one after the other.
class SimaiStep {
 public:
  SimaiStep(const std::string& file, const SimaiHead& head, const std::vector<SimaiLayer>& layers)
      : head_(head), layers_(layers) {
    stage_.first = 0;
    stage_.ranks = head.ranks;
    stage_.work.file = file;
    const int ranks = head.ranks / head.pipeline;
    const auto add = [&](SimaiGroup kind, int members, int step) {
      const std::string name(kSimaiGroupNames[static_cast<std::size_t>(kind)]);
      stage_.groups.push_back({name, 0, head.ranks, members, step});
      stage_.work.groups.push_back({name, {}, false});
    };
    // Without tensor parallelism what layers exchange are weights.
    add(SimaiGroup::tensor, head.tensor > 1 ? head.tensor : ranks, 1);
    add(SimaiGroup::data, ranks / head.tensor, head.tensor);
    add(SimaiGroup::expert, head.expert, head.tensor);
    add(SimaiGroup::expert_data, ranks / head.tensor / head.expert, head.tensor * head.expert);
  }

  WorkloadStage finish() {
    for (const SimaiLayer& layer : layers_) forward(layer);
    for (std::size_t l = layers_.size(); l-- > 0;) {
      repeat_forward(static_cast<int>(l));
      backward(layers_[l]);
    }
    add_simai_notes();
    return std::move(stage_);
  }

 private:
  /// A kernel behind `waits_`.
  std::uint64_t compute(const std::string& name, std::uint64_t ns,
                        const std::vector<std::uint64_t>& waits) {
    RankTrace::Node& node = stage_.work.add(next_, name);
    node.duration = {ns * 1000};
    node.stream = 0;
    for (const std::uint64_t id : waits) stage_.work.depends_on(id);
    return next_++;
  }
  std::optional<std::uint64_t> exchange(const std::string& name, const SimaiCall& call,
                                        std::uint64_t after) {
    if (!call.op) return std::nullopt;
    if (stage_.groups[static_cast<std::size_t>(call.group)].members < 2) {
      ++alone_;
      return std::nullopt;
    }
    RankTrace::Node& node = stage_.work.add(next_, name);
    node.kind = TraceNodeKind::collective;
    node.stream = TraceNode::kNoStream;
    node.op = *call.op;
    node.size = Bytes{call.bytes};
    node.group = static_cast<std::uint32_t>(call.group);
    stage_.work.depends_on(after);
    return next_++;
  }
  void forward(const SimaiLayer& layer) {
    const std::uint64_t done = compute(layer.name, layer.forward.ns, waits_);
    waits_ = {exchange(layer.name, layer.forward.call, done).value_or(done)};
  }
  void backward(const SimaiLayer& layer) {
    const std::uint64_t input = compute(layer.name, layer.input.ns, waits_);
    const auto exchanged = exchange(layer.name, layer.input.call, input);
    const std::uint64_t weights = compute(layer.name, layer.weights.ns, {input});
    const auto reduced = exchange(layer.name, layer.weights.call, weights);
    if (reduced && layer.update_ns > 0) {
      RankTrace::Node& node = stage_.work.add(next_++, layer.name);
      node.kind = TraceNodeKind::delay;
      node.stream = TraceNode::kNoStream;
      node.duration = {layer.update_ns * 1000};
      stage_.work.depends_on(*reduced);
    }
    waits_ = {weights};
    if (exchanged) waits_.push_back(*exchanged);
  }
  void repeat_forward(int layer) {
    if (!std::ranges::binary_search(head_.initiates, layer)) return;
    const auto after = std::ranges::upper_bound(head_.checkpoints, layer);
    if (after == head_.checkpoints.begin()) return;
    for (int l = *std::prev(after); l < layer; ++l) forward(layers_[static_cast<std::size_t>(l)]);
  }
  void add_simai_notes() {
    stage_.work.notes.push_back(fmt::format(
        "a workload of {} layers, as every one of {} ranks does it: TP {}, EP {}, PP {}",
        layers_.size(), head_.ranks, head_.tensor, head_.expert, head_.pipeline));
    if (head_.pipeline > 1) {
      stage_.work.notes.emplace_back(
          "such files have no messages between pipeline stages: stages do not wait for each other");
    }
    if (alone_ > 0) {
      stage_.work.notes.push_back(
          fmt::format("{} collectives of groups of one rank take no time", alone_));
    }
  }

  const SimaiHead& head_;
  const std::vector<SimaiLayer>& layers_;
  WorkloadStage stage_;
  std::vector<std::uint64_t> waits_;  ///< what the next kernel of the main line waits for
  std::uint64_t next_ = 0;
  std::size_t alone_ = 0;
};

}  // namespace

bool is_simai(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text.substr(first).starts_with(kSimaiPolicies[1]);
}

std::vector<RankTrace> read_simai(const std::string& file, std::string_view text, int ranks) {
  SimaiReader reader(file, text);
  SimaiHead head = reader.head();
  const std::vector<SimaiLayer> layers = reader.layers();
  if (layers.empty()) fail_trace(file, "no layers", "at least one");
  if (head.ranks == 0) head.ranks = ranks;
  if (head.ranks == 0) {
    fail_trace(file, "no all_gpus in the first line",
               "a number of ranks: all_gpus: N there, or --nodes N, whose GPUs it then is of");
  }
  const std::int64_t replica = std::int64_t{head.tensor} * head.expert * head.pipeline;
  if (head.ranks % replica != 0) {
    fail_trace(file, fmt::format("{} ranks", head.ranks),
               fmt::format("a multiple of {} (tensor {} x expert {} x pipeline {})", replica,
                           head.tensor, head.expert, head.pipeline));
  }
  return ranks_of_stages({SimaiStep(file, head, layers).finish()});
}

}  // namespace lockstep
