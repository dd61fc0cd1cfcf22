#include "sim/trace/formats/chakra_rank.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/trace/formats/chakra.pb.h"

namespace lockstep {

/// The attributes that count.
struct ChakraAttributes {
  std::optional<double> host, collective, size, peer_from, peer_to, tag, operations, tensor, stream,
      picos;
  std::optional<double> fullest, whole_domain, back;  ///< ExchangeSkew, of our own exports
  const std::string* group = nullptr;
  const std::string* kind = nullptr;  ///< `lockstep_kind` of our own exports
};

namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr double kLongestMicros = 8.64e11;  // 10 days, kLongestTraceNode
constexpr double kMostBytes = 1e15;
constexpr double kMostOperations = 1e24;
/// Streams of a rank that have no number of their own.
constexpr std::int64_t kComputeStream = -1, kMemoryStream = -2, kHostStream = -3,
                       kExchangeStream = -4;

/// What write_chakra() says of a computation that is none.
struct OwnKind {
  std::string_view name;
  TraceNodeKind kind;
  std::int64_t stream;
};
constexpr std::array kOwnKinds{OwnKind{"memory", TraceNodeKind::memory, kMemoryStream},
                               OwnKind{"host", TraceNodeKind::host, kHostStream},
                               OwnKind{"exchange", TraceNodeKind::exchange, kExchangeStream},
                               OwnKind{"delay", TraceNodeKind::delay, kComputeStream}};

/// Of an attribute, whatever type its writer gave it.
std::optional<double> number_of(const chakra::Attribute& a) {
  using A = chakra::Attribute;
  switch (a.value_case()) {
    case A::kDoubleVal:
      return a.double_val();
    case A::kFloatVal:
      return static_cast<double>(a.float_val());
    case A::kInt32Val:
      return a.int32_val();
    case A::kInt64Val:
      return static_cast<double>(a.int64_val());
    case A::kUint32Val:
      return a.uint32_val();
    case A::kUint64Val:
      return static_cast<double>(a.uint64_val());
    case A::kSint32Val:
      return a.sint32_val();
    case A::kSint64Val:
      return static_cast<double>(a.sint64_val());
    case A::kFixed32Val:
      return a.fixed32_val();
    case A::kFixed64Val:
      return static_cast<double>(a.fixed64_val());
    case A::kSfixed32Val:
      return a.sfixed32_val();
    case A::kSfixed64Val:
      return static_cast<double>(a.sfixed64_val());
    case A::kBoolVal:
      return a.bool_val() ? 1 : 0;
    default:
      return std::nullopt;
  }
}

ChakraAttributes attributes_of(const chakra::Node& node) {
  struct Row {
    std::string_view name;
    std::optional<double> ChakraAttributes::* member;
  };
  static constexpr std::array kRows{Row{"is_cpu_op", &ChakraAttributes::host},
                                    Row{"comm_type", &ChakraAttributes::collective},
                                    Row{"comm_size", &ChakraAttributes::size},
                                    Row{"comm_src", &ChakraAttributes::peer_from},
                                    Row{"comm_dst", &ChakraAttributes::peer_to},
                                    Row{"comm_tag", &ChakraAttributes::tag},
                                    Row{"num_ops", &ChakraAttributes::operations},
                                    Row{"tensor_size", &ChakraAttributes::tensor},
                                    Row{"stream", &ChakraAttributes::stream},
                                    Row{"duration_picos", &ChakraAttributes::picos},
                                    Row{"lockstep_fullest", &ChakraAttributes::fullest},
                                    Row{"lockstep_whole_domain", &ChakraAttributes::whole_domain},
                                    Row{"lockstep_back", &ChakraAttributes::back}};
  ChakraAttributes out;
  for (const chakra::Attribute& a : node.attr()) {
    if (a.name() == "pg_name" && a.value_case() == chakra::Attribute::kStringVal) {
      out.group = &a.string_val();
      continue;
    }
    if (a.name() == "lockstep_kind" && a.value_case() == chakra::Attribute::kStringVal) {
      out.kind = &a.string_val();
      continue;
    }
    for (const Row& row : kRows) {
      if (a.name() == row.name) out.*row.member = number_of(a);
    }
  }
  return out;
}

struct Collective {
  CollectiveOp op;
  bool times_members;  ///< nccl-tests' size is that of all members
};
/// By CollectiveType. A root's link carries as much of a gather as of a reduce of the whole buffer;
/// the same for a scatter and a broadcast.
constexpr std::array kCollectives{Collective{CollectiveOp::all_reduce, false},
                                  Collective{CollectiveOp::reduce, false},
                                  Collective{CollectiveOp::all_gather, true},
                                  Collective{CollectiveOp::reduce, true},
                                  Collective{CollectiveOp::broadcast, false},
                                  Collective{CollectiveOp::broadcast, false},
                                  Collective{CollectiveOp::all_to_all, false},
                                  Collective{CollectiveOp::reduce_scatter, false},
                                  Collective{CollectiveOp::reduce_scatter, false},
                                  Collective{CollectiveOp::all_reduce, false}};
constexpr int kBarrier = 9;
constexpr double kBarrierBytes = 8;  // assumed: one word

void tidy_ranks(std::vector<int>& ranks) {
  std::ranges::sort(ranks);
  const auto twice = std::ranges::unique(ranks);
  ranks.erase(twice.begin(), twice.end());
}

}  // namespace

void ChakraRank::add(const chakra::Node& node) {
  ++seen_;
  if (out_.nodes.size() >= kMostTraceNodes) {
    fail_trace(out_.file, "more nodes than that", fmt::format("at most {}", kMostTraceNodes));
  }
  const ChakraAttributes a = attributes_of(node);
  RankTrace::Node& added = out_.add(node.id(), node.name());
  for (const std::uint64_t id : node.ctrl_deps()) out_.depends_on(id);
  for (const std::uint64_t id : node.data_deps()) out_.depends_on(id);
  const bool host = a.host.value_or(0) != 0;
  std::int64_t own_stream = kComputeStream;
  switch (node.type()) {
    case chakra::METADATA_NODE:
      added.kind = TraceNodeKind::delay;
      read_groups(node);
      break;
    case chakra::MEM_LOAD_NODE:
    case chakra::MEM_STORE_NODE:
    case chakra::STORAGE_NODE:
    case chakra::BATCH_NODE:
    case chakra::CHECKPOINT_NODE:
      added.kind = TraceNodeKind::memory;
      own_stream = kMemoryStream;
      break;
    case chakra::COMP_NODE:
      added.kind = TraceNodeKind::compute;
      break;
    case chakra::COMM_SEND_NODE:
    case chakra::COMM_RECV_NODE:
      if (!host) read_message(node, a, added);
      break;
    case chakra::COMM_COLL_NODE:
      if (host) break;
      if (!a.collective && node.duration_micros() > 0) {
        keep_length(node, added);
        own_stream = kExchangeStream;
      } else {
        read_collective(node, a, added);
      }
      break;
    default:
      fail(node, fmt::format("type {}", static_cast<int>(node.type())),
           "a type of et_def.proto, 1 (METADATA_NODE) to 10 (CHECKPOINT_NODE)");
  }
  if (host && node.type() != chakra::METADATA_NODE) {
    added.kind = TraceNodeKind::host;
    own_stream = kHostStream;
  }
  if (a.kind != nullptr && added.kind == TraceNodeKind::compute) {
    const auto* const own = std::ranges::find(kOwnKinds, *a.kind, &OwnKind::name);
    if (own != kOwnKinds.end()) {
      added.kind = own->kind;
      own_stream = own->stream;
    }
  }
  if (added.kind == TraceNodeKind::compute) read_work(node, a, added);
  added.duration = duration_of(node, a, added);
  const bool runs = added.kind == TraceNodeKind::compute || added.kind == TraceNodeKind::memory ||
                    added.kind == TraceNodeKind::host || added.kind == TraceNodeKind::exchange;
  const bool named = a.stream && !host;
  constexpr double kMostStream = 1e15;
  if (named && !(std::abs(*a.stream) <= kMostStream)) {
    fail(node, fmt::format("stream {}", *a.stream), "a whole number");
  }
  if (runs) {
    added.stream = stream(node, named ? static_cast<std::int64_t>(*a.stream) : own_stream);
  }
  if (named) ordered_.push_back({*a.stream, node.start_time_micros(), node.id(), seen_ - 1});
}

RankTrace ChakraRank::finish() {
  resolve_groups();
  repair();
  return std::move(out_);
}

void ChakraRank::fail(const chakra::Node& node, const std::string& found,
                      std::string allowed) const {
  fail_trace(out_.file, fmt::format("{} with {}", node_text(node.id(), node.name()), found),
             std::move(allowed));
}
double ChakraRank::bounded(const chakra::Node& node, std::string_view name,
                           std::optional<double> value, double most) const {
  if (!value) fail(node, fmt::format("no attribute {}", name), "communication with that");
  if (!(*value >= 0) || *value > most) {
    fail(node, fmt::format("{} {}", name, *value), fmt::format("0 to {}", most));
  }
  return *value;
}

void ChakraRank::read_message(const chakra::Node& node, const ChakraAttributes& a,
                              RankTrace::Node& added) {
  const bool sends = node.type() == chakra::COMM_SEND_NODE;
  added.kind = sends ? TraceNodeKind::send : TraceNodeKind::receive;
  added.size = Bytes{bounded(node, "comm_size", a.size, kMostBytes)};
  added.peer = static_cast<int>(bounded(node, sends ? "comm_dst" : "comm_src",
                                        sends ? a.peer_to : a.peer_from, kMostTraceRanks));
  constexpr double kMostTag = std::numeric_limits<std::uint32_t>::max();
  added.tag = static_cast<std::uint32_t>(bounded(node, "comm_tag", a.tag.value_or(0), kMostTag));
}

void ChakraRank::read_collective(const chakra::Node& node, const ChakraAttributes& a,
                                 RankTrace::Node& added) {
  added.kind = TraceNodeKind::collective;
  const int type = static_cast<int>(bounded(node, "comm_type", a.collective, 1e6));
  if (static_cast<std::size_t>(type) >= kCollectives.size()) {
    fail(node, fmt::format("comm_type {}", type),
         "a CollectiveCommType of et_def.proto, 0 (ALL_REDUCE) to 9 (BARRIER)");
  }
  const Collective& collective = kCollectives[static_cast<std::size_t>(type)];
  added.op = collective.op;
  added.payload_of_rank = collective.times_members;
  added.size = type == kBarrier ? Bytes{kBarrierBytes}
                                : Bytes{bounded(node, "comm_size", a.size, kMostBytes)};
  if (a.fullest && added.op == CollectiveOp::all_to_all) {
    if (!(*a.fullest >= 1)) {
      fail(node, fmt::format("lockstep_fullest {}", *a.fullest),
           "what the fullest member is sent over the mean, at least 1");
    }
    added.skew =
        out_.skew({.fullest = bounded(node, "lockstep_fullest", a.fullest, kMostTraceRanks),
                   .whole_domain = a.whole_domain.value_or(0) != 0,
                   .back = a.back.value_or(0) != 0});
  }
  // Names are resolved at the end: metadata may come late.
  const bool named = a.group != nullptr && !a.group->empty();
  added.group = out_.group({named ? *a.group : "", {}, !named});
}

/// Of communication that only says how long it took, as older converters write it.
void ChakraRank::keep_length(const chakra::Node& node, RankTrace::Node& added) {
  added.kind = TraceNodeKind::exchange;
  if (out_.unknown.calls++ == 0) {
    out_.unknown.first = node_text(node.id(), node.name()) + " with no attribute comm_type";
  }
  out_.unknown.time += {node.duration_micros() * 1'000'000};
}

void ChakraRank::read_work(const chakra::Node& node, const ChakraAttributes& a,
                           RankTrace::Node& added) {
  added.flops = Flops{bounded(node, "num_ops", a.operations.value_or(0), kMostOperations)};
  added.size = Bytes{bounded(node, "tensor_size", a.tensor.value_or(0), kMostBytes)};
}

StepTime ChakraRank::duration_of(const chakra::Node& node, const ChakraAttributes& a,
                                 const RankTrace::Node& added) const {
  if (a.picos) {
    return {
        static_cast<std::uint64_t>(bounded(node, "duration_picos", a.picos, kLongestMicros * 1e6))};
  }
  const auto micros = static_cast<double>(node.duration_micros());
  if (micros > kLongestMicros) {
    fail(node, fmt::format("duration_micros {}", node.duration_micros()),
         fmt::format("at most {:.0f}", kLongestMicros));
  }
  if (micros > 0 || added.kind == TraceNodeKind::host) return {node.duration_micros() * 1'000'000};
  double seconds = 0;
  if (added.kind == TraceNodeKind::memory) {
    const double bytes = bounded(node, "tensor_size", a.tensor.value_or(0), kMostBytes);
    seconds = bytes / options_.gpu.pcie_bandwidth.base_units();
  } else if (added.kind == TraceNodeKind::compute) {
    const GpuSpec& gpu = options_.gpu;
    const FlopsPerSecond peak = std::max(gpu.peak_bf16, gpu.peak_fp16);  // Volta has FP16 only
    seconds = std::max(added.flops / peak, added.size / gpu.hbm_bandwidth).base_units();
  }
  if (!(seconds <= kLongestMicros * 1e-6)) {
    fail(node, fmt::format("num_ops and tensor_size that take {} s", plain_number(seconds, 3)),
         "at most 10 days on this GPU");
  }
  return to_step_time(Seconds{seconds});
}

std::uint16_t ChakraRank::stream(const chakra::Node& node, std::int64_t number) {
  const auto [at, added] = streams_.try_emplace(number, streams_.size());
  if (at->second >= TraceNode::kNoStream) {
    fail(node, fmt::format("stream {}", number), "at most 65535 streams of a rank");
  }
  return static_cast<std::uint16_t>(at->second);
}

/// PyTorch's node of all process groups, a Python list with a JSON text: ['[{"pg_name": ...}]'].
void ChakraRank::read_groups(const chakra::Node& node) {
  std::string text = node.inputs().values();
  const std::size_t first = text.find("[{"), last = text.rfind("}]");
  if (first == std::string::npos || last == std::string::npos || last < first) return;
  text = text.substr(first, last + 2 - first);
  if (text.find("\\\"") != std::string::npos) std::erase(text, '\\');
  const auto list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array()) return;
  for (const auto& entry : list) {
    if (!entry.is_object() || !entry.contains("pg_name")) continue;
    const auto& name = entry["pg_name"];
    const auto ranks = entry.find("ranks");
    if (!name.is_string() || ranks == entry.end() || !ranks->is_array()) continue;
    std::vector<int>& known = known_[name.get<std::string>()];
    known.clear();
    for (const auto& rank : *ranks) {
      if (!rank.is_number_integer() || rank.get<double>() < 0 ||
          rank.get<double>() >= kMostTraceRanks) {
        fail(node, "process group " + in_quotes(name.get<std::string>()) + " of such ranks",
             "a list of rank numbers");
      }
      known.push_back(rank.get<int>());
    }
    tidy_ranks(known);
  }
}
void ChakraRank::resolve_groups() {
  for (RankTrace::Group& group : out_.groups) {
    if (group.all) continue;
    const std::vector<int>* ranks = nullptr;
    if (const auto here = known_.find(group.name); here != known_.end()) ranks = &here->second;
    if (const auto given = options_.groups.find(group.name); given != options_.groups.end()) {
      ranks = &given->second;
    }
    if (ranks == nullptr) {
      fail_trace(out_.file, fmt::format("process group {} without ranks", in_quotes(group.name)),
                 "groups that a process_group:init node or the file of --groups lists");
    }
    group.ranks = *ranks;
    group.all = ranks->empty();  // PyTorch's default group
  }
}

/// One dependency more where a stream's next node does not wait for the one before.
void ChakraRank::repair() {
  if (ordered_.empty()) return;
  std::ranges::sort(ordered_, {},
                    [](const Ordered& o) { return std::tuple(o.stream, o.start, o.id); });
  std::vector<std::uint64_t> before(out_.nodes.size(), kNever);
  for (std::size_t i = 1; i < ordered_.size(); ++i) {
    if (ordered_[i].stream == ordered_[i - 1].stream) {
      before[ordered_[i].index] = ordered_[i - 1].id;
    }
  }
  std::vector<std::uint64_t> all;
  all.reserve(out_.dependencies.size() + ordered_.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < out_.nodes.size(); ++i) {
    RankTrace::Node& node = out_.nodes[i];
    const std::size_t first = all.size();
    for (std::uint32_t d = 0; d < node.dependencies; ++d) {
      all.push_back(out_.dependencies[next++]);
    }
    const auto own = all.begin() + static_cast<std::ptrdiff_t>(first);
    if (before[i] == kNever || std::find(own, all.end(), before[i]) != all.end()) continue;
    all.push_back(before[i]);
    ++node.dependencies;
    ++out_.repaired;
  }
  out_.dependencies = std::move(all);
}

}  // namespace lockstep
