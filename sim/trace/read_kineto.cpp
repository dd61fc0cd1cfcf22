#include "sim/trace/read_kineto.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/input/input_error.hpp"
#include "models/input/letter_case.hpp"

namespace lockstep {
namespace {

using KinetoJson = nlohmann::json;

constexpr int kDeepestKineto = 64;  // levels; a trace has five
constexpr std::string_view kKinetoForm =
    "a trace of the PyTorch profiler (export_chrome_trace) with GPU kernels";

struct KinetoEvent {
  double start = 0, end = 0, took = 0;  ///< microseconds
  std::int64_t stream = 0;
  std::string name;
  bool copies = false;
  bool communicates = false;
  RankTrace::Node call;  ///< of communication: kind, op, size, peer
  RankTrace::Group group;
};

struct OpWord {
  std::string_view word;
  CollectiveOp op;
  bool of_output;  ///< its size is that of what comes out
};
/// By the first word that the collective's name has, without '_'. Source:
/// torch/csrc/distributed/c10d/ ProcessGroupNCCL.cpp, RECORD_PARAM_COMMS.
constexpr std::array kOpWords{OpWord{"allreduce", CollectiveOp::all_reduce, false},
                              OpWord{"allgather", CollectiveOp::all_gather, true},
                              OpWord{"reducescatter", CollectiveOp::reduce_scatter, false},
                              OpWord{"alltoall", CollectiveOp::all_to_all, false},
                              OpWord{"broadcast", CollectiveOp::broadcast, false},
                              OpWord{"barrier", CollectiveOp::all_reduce, false},
                              OpWord{"reduce", CollectiveOp::reduce, false},
                              OpWord{"gather", CollectiveOp::reduce, true},
                              OpWord{"scatter", CollectiveOp::broadcast, false}};

struct TypeWidth {
  std::string_view name;
  double bytes;
};
constexpr std::array kTypeWidths{
    TypeWidth{"float", 4},  TypeWidth{"half", 2},          TypeWidth{"bfloat16", 2},
    TypeWidth{"double", 8}, TypeWidth{"long", 8},          TypeWidth{"int", 4},
    TypeWidth{"short", 2},  TypeWidth{"byte", 1},          TypeWidth{"char", 1},
    TypeWidth{"bool", 1},   TypeWidth{"float8_e4m3fn", 1}, TypeWidth{"float8_e5m2", 1}};

std::string kineto_text(const KinetoJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
std::optional<double> kineto_number(const KinetoJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  if (!found->is_string()) return std::nullopt;
  const auto& text = found->get_ref<const std::string&>();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class KinetoReader {
 public:
  KinetoReader(const std::string& file, std::optional<int> rank) : rank_(rank) { out_.file = file; }

  void read(std::string_view text) {
    // Each event is used and dropped as it is complete: traces have millions.
    const auto use = [&](int depth, KinetoJson::parse_event_t what, KinetoJson& value) {
      if (depth > kDeepestKineto) fail("too many levels");
      if (what != KinetoJson::parse_event_t::object_end || !value.contains("ph")) return true;
      read_event(value);
      return false;
    };
    KinetoJson rest;
    try {
      rest = KinetoJson::parse(text, use);
    } catch (const KinetoJson::exception&) {
      fail("a text that is no JSON");
    }
    if (events_.empty()) fail("no kernel");
    read_rank(rest);
    std::ranges::stable_sort(events_, {},
                             [](const KinetoEvent& e) { return std::tuple(e.start, e.stream); });
  }

  RankTrace finish() {
    for (std::size_t i = 0; i < events_.size(); ++i) {
      ends_[events_[i].communicates ? 1 : 0].emplace_back(events_[i].end, i);
    }
    for (auto& ends : ends_) std::ranges::sort(ends);
    for (std::size_t i = 0; i < events_.size(); ++i) add(i);
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string found) const {
    fail_trace(out_.file, std::move(found), std::string(kKinetoForm));
  }
  [[noreturn]] void fail_event(const KinetoEvent& event, std::string_view found,
                               std::string allowed) const {
    fail_trace(out_.file, fmt::format("{} {}", in_quotes(event.name), found), std::move(allowed));
  }

  void read_event(const KinetoJson& json) {
    if (kineto_text(json, "ph") != "X") return;
    const std::string category = lowered(kineto_text(json, "cat"));
    const bool copies = category.ends_with("memcpy") || category.ends_with("memset");
    if (category != "kernel" && !copies) return;
    static const KinetoJson kNothing = KinetoJson::object();
    const auto found = json.find("args");
    const KinetoJson& args = found != json.end() && found->is_object() ? *found : kNothing;
    KinetoEvent event;
    event.name = kineto_text(json, "name");
    event.copies = copies;
    const std::optional<double> start = kineto_number(json, "ts"),
                                took = kineto_number(json, "dur");
    constexpr double kLatest = 1e17, kLongest = 8.64e11;  // microseconds; 10 days
    if (!start || !took || !(std::abs(*start) <= kLatest) || !(*took >= 0) || *took > kLongest) {
      fail_event(event, "without times", "\"ts\" and \"dur\" in microseconds");
    }
    event.start = *start;
    event.took = *took;
    event.end = *start + *took;
    constexpr double kMostStreamNumber = 1e15;
    const double stream =
        kineto_number(args, "stream").value_or(kineto_number(json, "tid").value_or(0));
    if (!(std::abs(stream) <= kMostStreamNumber)) fail_event(event, "on no stream", "a number");
    event.stream = static_cast<std::int64_t>(stream);
    event.communicates = !copies && lowered(event.name).find("nccl") != std::string::npos;
    if (event.communicates) read_call(args, event);
    events_.push_back(std::move(event));
  }

  void read_call(const KinetoJson& args, KinetoEvent& event) {
    std::string op = lowered(kineto_text(args, "Collective name"));
    std::erase(op, '_');
    if (op.empty()) {
      fail_event(event, "without its collective's name",
                 "NCCL kernels with \"Collective name\" in their args (PyTorch 2.2 and later)");
    }
    if (op == "send" || op == "recv") {
      const bool sends = op == "send";
      event.call.kind = sends ? TraceNodeKind::send : TraceNodeKind::receive;
      const auto peer = kineto_number(args, sends ? "Dst Rank" : "Src Rank");
      if (!peer || !(*peer >= 0) || *peer >= kMostTraceRanks) {
        fail_event(event, "without its other rank", "\"Src Rank\" and \"Dst Rank\" in its args");
      }
      event.call.peer = static_cast<int>(*peer);
      event.call.size = size_of(args, event, !sends);
      return;
    }
    event.call.kind = TraceNodeKind::collective;
    const auto* const row = std::ranges::find_if(
        kOpWords, [&](const OpWord& word) { return op.find(word.word) != std::string::npos; });
    if (row == kOpWords.end()) {
      fail_event(event, "of the collective " + in_quotes(op),
                 "allreduce, allgather, reduce_scatter, all_to_all, broadcast, barrier, reduce, "
                 "gather, scatter, send, recv");
    }
    event.call.op = row->op;
    event.call.size = size_of(args, event, row->of_output);
    event.group = group_of(args, event);
  }

  Bytes size_of(const KinetoJson& args, const KinetoEvent& event, bool output) const {
    const auto elements = kineto_number(args, output ? "Out msg nelems" : "In msg nelems");
    const std::string type = lowered(kineto_text(args, "dtype"));
    const auto* const width = std::ranges::find(kTypeWidths, type, &TypeWidth::name);
    constexpr double kMostElements = 1e14;
    if (!elements || !(*elements >= 0) || *elements > kMostElements) {
      fail_event(event, "without its size", "\"In msg nelems\" and \"Out msg nelems\" in its args");
    }
    if (width == kTypeWidths.end()) {
      fail_event(event, "of dtype " + in_quotes(type), "a type of PyTorch, such as BFloat16");
    }
    return Bytes{*elements * width->bytes};
  }

  /// "[0, 1, 2, 3]". A long list ends in "..."; the rest is taken to go on in steps of the same
  /// size.
  RankTrace::Group group_of(const KinetoJson& args, const KinetoEvent& event) const {
    RankTrace::Group group{kineto_text(args, "Process Group Name"), {}, false};
    const std::string list = kineto_text(args, "Process Group Ranks");
    const auto size = kineto_number(args, "Group size");
    const char* at = list.data();
    const char* const end = at + list.size();
    while (at != end) {
      int rank = 0;
      const auto [next, error] = std::from_chars(at, end, rank);
      if (error == std::errc{}) group.ranks.push_back(rank);
      at = error == std::errc{} ? next : at + 1;
    }
    const bool cut = list.find("...") != std::string::npos;
    if (!size || !(*size >= 1) || *size > kMostTraceRanks ||
        (group.ranks.empty() && !cut && !list.empty() && list != "[]")) {
      fail_event(event, "without its ranks",
                 "\"Process Group Ranks\" and \"Group size\" in its args");
    }
    const auto members = static_cast<std::size_t>(*size);
    if (cut && group.ranks.size() >= 2 && group.ranks.size() < members) {
      const int step = group.ranks[1] - group.ranks[0];
      const std::int64_t last = group.ranks[0] + static_cast<std::int64_t>(members) * step;
      if (step < 1 || last > kMostTraceRanks)
        fail_event(event, "of ranks out of order", "ascending ranks");
      while (group.ranks.size() < members) group.ranks.push_back(group.ranks.back() + step);
    }
    group.all = group.ranks.empty();
    std::ranges::sort(group.ranks);
    const auto twice = std::ranges::unique(group.ranks);
    group.ranks.erase(twice.begin(), twice.end());
    return group;
  }

  void read_rank(const KinetoJson& root) {
    const auto info = root.find("distributedInfo");
    if (root.is_object() && info != root.end() && info->is_object()) {
      const auto rank = kineto_number(*info, "rank");
      if (rank && *rank >= 0 && *rank < kMostTraceRanks) rank_ = static_cast<int>(*rank);
    }
    if (!rank_) {
      fail_trace(out_.file, "no \"distributedInfo\" with a rank",
                 "a file whose trace or name says its rank, such as trace.0.json");
    }
    out_.rank = *rank_;
  }

  /// The last of the events of a kind that ended in (after, until] and come before event i.
  [[nodiscard]] std::optional<std::size_t> ended(bool communication, double after, double until,
                                                 std::size_t i) const {
    const auto& ends = ends_[communication ? 1 : 0];
    auto it = std::ranges::upper_bound(ends, std::pair(until, events_.size()));
    // Events without a duration may begin and end at that very time.
    while (it != ends.begin() && std::prev(it)->second >= i) --it;
    if (it == ends.begin() || std::prev(it)->first <= after) return std::nullopt;
    return std::prev(it)->second;
  }

  /// The node of event i has the number 2 i + 1; a delay before it has 2 i.
  void add(std::size_t i) {
    const KinetoEvent& event = events_[i];
    const auto [stream, fresh] = streams_.try_emplace(event.stream, streams_.size());
    if (stream->second >= TraceNode::kNoStream) {
      fail_event(event, "on one stream more", "at most 65535 streams");
    }
    last_.resize(streams_.size(), kNone);
    std::size_t& last = last_[stream->second];
    std::array<std::size_t, 2> before{last, kNone};
    const double previous =
        last == kNone ? -std::numeric_limits<double>::infinity() : events_[last].end;
    double free = previous;
    const double after = event.communicates ? -std::numeric_limits<double>::infinity() : previous;
    const auto other = ended(!event.communicates, after, event.start, i);
    if (other) {
      before[1] = *other;
      free = std::max(free, events_[*other].end);
    }
    last = i;
    const double gap = event.start - free;
    const bool delays = std::isfinite(gap) && gap > 0;
    if (delays) {
      RankTrace::Node& delay = out_.add(2 * i, "host");
      delay.kind = TraceNodeKind::delay;
      delay.duration = micros(std::min(gap, 8.64e11));
      wait_for(before);
    }
    RankTrace::Node& node = out_.add(2 * i + 1, event.name);
    node.duration = micros(event.took);
    if (event.communicates) {
      node.kind = event.call.kind;
      node.op = event.call.op;
      node.size = event.call.size;
      node.peer = event.call.peer;
      if (node.kind == TraceNodeKind::collective) node.group = out_.group(event.group);
    } else {
      node.kind = event.copies ? TraceNodeKind::memory : TraceNodeKind::compute;
      node.stream = static_cast<std::uint16_t>(stream->second);
    }
    if (delays) {
      out_.depends_on(2 * i);
    } else {
      wait_for(before);
    }
  }
  void wait_for(const std::array<std::size_t, 2>& before) {
    for (const std::size_t event : before) {
      if (event == kNone) continue;
      out_.depends_on(2 * event + 1);
      ++out_.repaired;
    }
  }
  static StepTime micros(double value) { return to_step_time(Seconds{value * 1e-6}); }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::optional<int> rank_;
  RankTrace out_;
  std::vector<KinetoEvent> events_;
  std::array<std::vector<std::pair<double, std::size_t>>, 2> ends_;  ///< computing, communicating
  std::map<std::int64_t, std::size_t> streams_;
  std::vector<std::size_t> last_;  ///< event of each stream
};

}  // namespace

RankTrace read_kineto(const std::string& file, std::optional<int> rank, std::string_view text) {
  KinetoReader reader(file, rank);
  reader.read(text);
  return reader.finish();
}

}  // namespace lockstep
