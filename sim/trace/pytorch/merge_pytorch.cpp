#include "sim/trace/pytorch/merge_pytorch.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "sim/trace/pytorch/gpu_order.hpp"
#include "sim/trace/pytorch/host_pieces.hpp"

namespace lockstep {
namespace {

constexpr std::uint32_t kNoNode = KernelLinks::kNone;

class PytorchMerger {
 public:
  PytorchMerger(const ExecutionTrace& trace, const KinetoRecording& recording, int rank)
      : trace_(trace),
        recording_(recording),
        links_(link_kernels(trace, recording)),
        launches_(recording, links_),
        order_(gpu_order(trace, recording, links_, launches_)),
        host_(host_pieces(recording, links_, launches_)),
        last_(recording.streams, kNoNode),
        work_(recording.gpu.size()) {
    out_.file = recording.file;
    out_.rank = rank;
    out_.world = std::max(1, recording.world.value_or(1));
    out_.recorded = picos(recording.end);
    out_.device = recording.device;
    out_.links = {.kernels = recording.gpu.size(),
                  .unlinked = links_.unlinked,
                  .missing = links_.missing,
                  .first_missing = links_.first_missing,
                  .contradicted = 0};
    // The execution trace is of all steps.
    if (recording.is_cut) out_.links.missing = 0;
    out_.repaired = order_.inferred;
    find_calls();
    share_work();
    sort_nodes();
  }

  RankTrace merge() {
    for (std::uint32_t i = 0; i < sorted_.size(); ++i) {
      const std::uint32_t node = sorted_[i];
      node < host_.list.size() ? add_host(i, host_.list[node])
                               : add_gpu(i, node - static_cast<std::uint32_t>(host_.list.size()));
    }
    add_rest();
    return std::move(out_);
  }

 private:
  struct Work {
    Flops flops;
    Bytes bytes;
  };

  // Nodes: the host's pieces, then events of the GPU.
  [[nodiscard]] std::uint32_t node_of_event(std::uint32_t event) const {
    return static_cast<std::uint32_t>(host_.list.size()) + event;
  }

  /// Under the operator that a kernel names, or beside it, there may be the one that says more.
  void find_calls() {
    for (const ExecutionTrace::Operator& own : trace_.operators) {
      if (own.call != ExecutionTrace::kNoCall) calls_.insert_or_assign(own.parent, own.call);
    }
  }
  [[nodiscard]] std::uint32_t call_of(std::uint32_t node) const {
    constexpr int kFarthest = 4;  // kernel, nccl:all_reduce, record_param_comms, c10d::allreduce_
    const ExecutionTrace::Operator* at = node == kNoNode ? nullptr : &trace_.operators[node];
    for (int up = 0; at != nullptr && up < kFarthest; ++up) {
      if (at->call != ExecutionTrace::kNoCall) return at->call;
      const auto below = calls_.find(at->id);
      if (below != calls_.end()) return below->second;
      at = at->parent == at->id ? nullptr : trace_.find(at->parent);
    }
    return ExecutionTrace::kNoCall;
  }

  /// FLOPs and bytes of an operator go to its longest kernel.
  void share_work() {
    std::map<std::uint32_t, std::uint32_t> longest;  // kernel by operator
    const auto took = [&](std::uint32_t event) {
      return recording_.gpu[event].end - recording_.gpu[event].start;
    };
    for (std::uint32_t event = 0; event < recording_.gpu.size(); ++event) {
      const std::uint32_t node = links_.node[event];
      if (node == kNoNode || recording_.gpu[event].communicates()) continue;
      const auto [at, added] = longest.try_emplace(node, event);
      if (!added && took(event) > took(at->second)) at->second = event;
    }
    for (const auto& [node, event] : longest) {
      const ExecutionTrace::Operator& own = trace_.operators[node];
      const bool known = own.flops.has_value() || own.name.starts_with("aten::");
      if (known) work_[event] = {own.flops.value_or(Flops{}), own.bytes};
    }
  }

  void sort_nodes() {
    sorted_.resize(host_.list.size() + recording_.gpu.size());
    std::iota(sorted_.begin(), sorted_.end(), 0U);
    starts_.reserve(sorted_.size());
    for (const HostPiece& piece : host_.list) starts_.push_back(piece.start);
    for (const KinetoRecording::GpuEvent& event : recording_.gpu) starts_.push_back(event.start);
    // The host first at equal times: numbers of nodes go up from it.
    std::ranges::stable_sort(sorted_, {}, [&](std::uint32_t node) { return starts_[node]; });
    place_.resize(sorted_.size());
    for (std::uint32_t i = 0; i < sorted_.size(); ++i) place_[sorted_[i]] = i;
    ends_.resize(sorted_.size());
  }

  /// Keeps what the recording agrees with.
  void wait_for(std::uint32_t place, std::int64_t start, std::uint32_t node) {
    if (node == kNoNode) return;
    if (place_[node] >= place || ends_[node] > start) {
      ++out_.links.contradicted;
      return;
    }
    waits_.push_back(node);
  }

  /// The node at a place has the number 2 place + 1; a delay before it has 2 place.
  RankTrace::Node& add(std::uint32_t place, std::int64_t start, std::int64_t end,
                       std::string_view name) {
    std::int64_t free = 0;  // of the recording's first event
    for (const std::uint32_t node : waits_) free = std::max(free, ends_[node]);
    const std::uint64_t id = 2 * std::uint64_t{place};
    const bool delays = start > free;
    if (delays) {
      RankTrace::Node& delay = out_.add(id, "delay");
      delay.kind = TraceNodeKind::delay;
      delay.duration = picos(start - free);
      depend();
    }
    RankTrace::Node& node = out_.add(id + 1, name);
    node.duration = picos(end - start);
    if (delays) {
      out_.depends_on(id);
    } else {
      depend();
    }
    ends_[sorted_[place]] = end;
    waits_.clear();
    return out_.nodes.back();
  }
  void depend() {
    for (const std::uint32_t node : waits_) out_.depends_on(2 * std::uint64_t{place_[node]} + 1);
  }

  void add_host(std::uint32_t place, const HostPiece& piece) {
    wait_for(place, piece.start, piece.previous);
    wait_for(place, piece.start, piece.other);
    for (const std::uint32_t event : piece.gpu) wait_for(place, piece.start, node_of_event(event));
    const std::string_view name = piece.node != kNoNode   ? trace_.operators[piece.node].name
                                  : piece.name != kNoNode ? recording_.names[piece.name]
                                                          : std::string_view("host");
    add(place, piece.start, piece.end, name).kind = TraceNodeKind::host;
  }

  void add_gpu(std::uint32_t place, std::uint32_t index) {
    const KinetoRecording::GpuEvent& event = recording_.gpu[index];
    // A kernel may begin before the one before it has ended (programmatic dependent launch): it
    // counts from there.
    std::int64_t start = event.start;
    std::uint32_t& last = last_[event.stream];
    if (last != kNoNode) {
      start = std::max(start, ends_[last]);
      waits_.push_back(last);
      ++out_.repaired;
    }
    last = node_of_event(index);
    wait_for(place, start, host_.launch[index]);
    while (next_ < order_.list.size() && order_.list[next_].event < index) ++next_;
    for (std::size_t d = next_; d < order_.list.size() && order_.list[d].event == index; ++d) {
      wait_for(place, start, node_of_event(order_.list[d].before));
    }
    const std::string& name = recording_.names[event.name];
    RankTrace::Node& node = add(place, start, std::max(start, event.end), name);
    if (event.communicates()) {
      NcclCallText text = recording_.calls[event.call];
      complete(text, call_of(links_.node[index]));
      return add_call(name, text, out_);
    }
    node.kind = event.copies ? TraceNodeKind::memory : TraceNodeKind::compute;
    node.stream = event.stream;
    node.flops = work_[index].flops;
    node.size = work_[index].bytes;
  }

  /// What the host does in a step after all of that.
  void add_rest() {
    const auto last = std::ranges::max_element(ends_);
    if (!recording_.is_cut || recording_.end <= *last) return;
    RankTrace::Node& delay = out_.add(2 * std::uint64_t{sorted_.size()}, "delay");
    delay.kind = TraceNodeKind::delay;
    delay.duration = picos(recording_.end - *last);
    const auto node = static_cast<std::size_t>(last - ends_.begin());
    out_.depends_on(2 * std::uint64_t{place_[node]} + 1);
  }

  void complete(NcclCallText& text, std::uint32_t call) const {
    if (call != ExecutionTrace::kNoCall) {
      const NcclCallText& own = trace_.calls[call];
      if (text.collective.empty()) text.collective = own.collective;
      if (text.dtype.empty()) text.dtype = own.dtype;
      if (text.group.empty()) text.group = own.group;
      if (!text.in_elements) text.in_elements = own.in_elements;
      if (!text.out_elements) text.out_elements = own.out_elements;
      if (!text.group_size) text.group_size = own.group_size;
      if (text.ranks.empty()) {
        text.rank_start = own.rank_start;
        text.rank_stride = own.rank_stride;
      }
    }
    const auto group = trace_.groups.find(text.group);
    if (group == trace_.groups.end() || group->second.empty()) return;
    text.ranks = fmt::format("{}", group->second);
    text.group_size = static_cast<double>(group->second.size());
  }

  static StepTime picos(std::int64_t value) { return {static_cast<std::uint64_t>(value)}; }

  const ExecutionTrace& trace_;
  const KinetoRecording& recording_;
  KernelLinks links_;
  LaunchTimes launches_;
  GpuOrder order_;
  HostPieces host_;
  RankTrace out_;
  std::map<std::uint64_t, std::uint32_t> calls_;  ///< by the operator that they are part of
  std::vector<std::uint32_t> sorted_, place_;     ///< nodes by start; and where each is
  std::vector<std::int64_t> starts_, ends_;       ///< by node; ends as they are replayed
  std::vector<std::uint32_t> last_;               ///< node of each stream
  std::vector<std::uint32_t> waits_;              ///< of the node that is being added
  std::vector<Work> work_;                        ///< by event of the GPU
  std::size_t next_ = 0;                          ///< in order_
};

}  // namespace

RankTrace merge_pytorch(const ExecutionTrace& trace, const KinetoRecording& recording, int rank) {
  return PytorchMerger(trace, recording, rank).merge();
}

void fail_without_kineto(const std::string& file) {
  fail_trace(file, "an execution trace of PyTorch without the Kineto trace of its rank",
             "both of each rank, recorded over the same steps by torch.profiler.profile("
             "execution_trace_observer=ExecutionTraceObserver().register_callback(FILE)) and "
             "export_chrome_trace(FILE)");
}

}  // namespace lockstep
