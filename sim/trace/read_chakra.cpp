#include "sim/trace/read_chakra.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/input/input_error.hpp"
#include "models/input/json_cursor.hpp"
#include "sim/trace/chakra.pb.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr double kLongestMicros = 8.64e11;  // 10 days, kLongestTraceNode
constexpr double kMostBytes = 1e15;
constexpr double kMostOperations = 1e24;
/// Streams of a rank that have no number of their own.
constexpr std::int64_t kComputeStream = -1, kMemoryStream = -2, kHostStream = -3;

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

/// The attributes that count.
struct Attributes {
  std::optional<double> host, collective, size, peer_from, peer_to, tag, operations, tensor, stream,
      picos;
  const std::string* group = nullptr;
};

Attributes attributes_of(const chakra::Node& node) {
  struct Row {
    std::string_view name;
    std::optional<double> Attributes::* member;
  };
  static constexpr std::array kRows{
      Row{"is_cpu_op", &Attributes::host},     Row{"comm_type", &Attributes::collective},
      Row{"comm_size", &Attributes::size},     Row{"comm_src", &Attributes::peer_from},
      Row{"comm_dst", &Attributes::peer_to},   Row{"comm_tag", &Attributes::tag},
      Row{"num_ops", &Attributes::operations}, Row{"tensor_size", &Attributes::tensor},
      Row{"stream", &Attributes::stream},      Row{"duration_picos", &Attributes::picos}};
  Attributes out;
  for (const chakra::Attribute& a : node.attr()) {
    if (a.name() == "pg_name" && a.value_case() == chakra::Attribute::kStringVal) {
      out.group = &a.string_val();
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

/// Turns nodes into those of a RankTrace, one by one.
class ChakraRank {
 public:
  ChakraRank(const std::string& file, int rank, const ChakraOptions& options) : options_(options) {
    out_.rank = rank;
    out_.file = file;
  }

  [[nodiscard]] std::size_t nodes() const { return seen_; }

  void add(const chakra::Node& node) {
    ++seen_;
    if (out_.nodes.size() >= kMostTraceNodes) {
      fail_trace(out_.file, "more nodes than that", fmt::format("at most {}", kMostTraceNodes));
    }
    const Attributes a = attributes_of(node);
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
        if (!host) read_collective(node, a, added);
        break;
      default:
        fail(node, fmt::format("type {}", static_cast<int>(node.type())),
             "a type of et_def.proto, 1 (METADATA_NODE) to 10 (CHECKPOINT_NODE)");
    }
    if (host && node.type() != chakra::METADATA_NODE) {
      added.kind = TraceNodeKind::host;
      own_stream = kHostStream;
    }
    added.duration = duration_of(node, a, added.kind);
    const bool runs = added.kind == TraceNodeKind::compute || added.kind == TraceNodeKind::memory ||
                      added.kind == TraceNodeKind::host;
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

  RankTrace finish() {
    resolve_groups();
    repair();
    return std::move(out_);
  }

 private:
  /// A node that a stream of the GPU runs.
  struct Ordered {
    double stream;
    std::uint64_t start, id;
    std::size_t index;
  };

  [[noreturn]] void fail(const chakra::Node& node, const std::string& found,
                         std::string allowed) const {
    fail_trace(out_.file, fmt::format("{} with {}", node_text(node.id(), node.name()), found),
               std::move(allowed));
  }
  double bounded(const chakra::Node& node, std::string_view name, std::optional<double> value,
                 double most) const {
    if (!value) fail(node, fmt::format("no attribute {}", name), "communication with that");
    if (!(*value >= 0) || *value > most) {
      fail(node, fmt::format("{} {}", name, *value), fmt::format("0 to {}", most));
    }
    return *value;
  }

  void read_message(const chakra::Node& node, const Attributes& a, RankTrace::Node& added) {
    const bool sends = node.type() == chakra::COMM_SEND_NODE;
    added.kind = sends ? TraceNodeKind::send : TraceNodeKind::receive;
    added.size = Bytes{bounded(node, "comm_size", a.size, kMostBytes)};
    added.peer = static_cast<int>(bounded(node, sends ? "comm_dst" : "comm_src",
                                          sends ? a.peer_to : a.peer_from, kMostTraceRanks));
    constexpr double kMostTag = std::numeric_limits<std::uint32_t>::max();
    added.tag = static_cast<std::uint32_t>(bounded(node, "comm_tag", a.tag.value_or(0), kMostTag));
  }

  void read_collective(const chakra::Node& node, const Attributes& a, RankTrace::Node& added) {
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
    // Names are resolved at the end: metadata may come late.
    const bool named = a.group != nullptr && !a.group->empty();
    added.group = out_.group({named ? *a.group : "", {}, !named});
  }

  StepTime duration_of(const chakra::Node& node, const Attributes& a, TraceNodeKind kind) const {
    if (a.picos) {
      return {static_cast<std::uint64_t>(
          bounded(node, "duration_picos", a.picos, kLongestMicros * 1e6))};
    }
    const auto micros = static_cast<double>(node.duration_micros());
    if (micros > kLongestMicros) {
      fail(node, fmt::format("duration_micros {}", node.duration_micros()),
           fmt::format("at most {:.0f}", kLongestMicros));
    }
    if (micros > 0 || kind == TraceNodeKind::host) return {node.duration_micros() * 1'000'000};
    const double bytes = bounded(node, "tensor_size", a.tensor.value_or(0), kMostBytes);
    double seconds = 0;
    if (kind == TraceNodeKind::memory) {
      seconds = bytes / options_.gpu.pcie_bandwidth.base_units();
    } else if (kind == TraceNodeKind::compute) {
      const double operations = bounded(node, "num_ops", a.operations.value_or(0), kMostOperations);
      seconds = std::max(operations / options_.gpu.peak_bf16.base_units(),
                         bytes / options_.gpu.hbm_bandwidth.base_units());
    }
    if (!(seconds <= kLongestMicros * 1e-6)) {
      fail(node, fmt::format("num_ops and tensor_size that take {:.3g} s", seconds),
           "at most 10 days on this GPU");
    }
    return to_step_time(Seconds{seconds});
  }

  std::uint16_t stream(const chakra::Node& node, std::int64_t number) {
    const auto [at, added] = streams_.try_emplace(number, streams_.size());
    if (at->second >= TraceNode::kNoStream) {
      fail(node, fmt::format("stream {}", number), "at most 65535 streams of a rank");
    }
    return static_cast<std::uint16_t>(at->second);
  }

  /// PyTorch's node of all process groups, a Python list with a JSON text: ['[{"pg_name": ...}]'].
  void read_groups(const chakra::Node& node) {
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
      tidy(known);
    }
  }
  static void tidy(std::vector<int>& ranks) {
    std::ranges::sort(ranks);
    const auto twice = std::ranges::unique(ranks);
    ranks.erase(twice.begin(), twice.end());
  }

  void resolve_groups() {
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
  void repair() {
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

  const ChakraOptions& options_;
  RankTrace out_;
  std::size_t seen_ = 0;
  std::map<std::int64_t, std::size_t> streams_;
  std::map<std::string, std::vector<int>> known_;
  std::vector<Ordered> ordered_;
};

[[noreturn]] void fail_bytes(const std::string& file, std::size_t at, std::string_view what) {
  fail_trace(file, fmt::format("{} at byte {}", what, at),
             "a Chakra trace: GlobalMetadata and Nodes, each behind its length");
}

/// Calls use(begin, length) for the JSON objects that are nodes or metadata.
template <class Use>
void for_each_object(const std::string& file, std::string_view text, Use use) {
  int depth = 0, wanted = 1;
  bool in_string = false;
  std::size_t string_start = 0, object_start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
        if (depth != 1 || wanted != 1 || text.substr(string_start, i - string_start) != "nodes") {
          continue;
        }
        std::size_t next = text.find_first_not_of(" \t\r\n", i + 1);
        if (next == std::string_view::npos || text[next] != ':') continue;
        next = text.find_first_not_of(" \t\r\n", next + 1);
        if (next != std::string_view::npos && text[next] == '[') wanted = 2;
      }
    } else if (c == '"') {
      in_string = true;
      string_start = i + 1;
    } else if (c == '{') {
      if (++depth == wanted) object_start = i;
    } else if (c == '}') {
      if (depth == 0) fail_trace(file, fmt::format("a '}}' too many at byte {}", i), "JSON");
      if (depth-- == wanted) use(text.substr(object_start, i + 1 - object_start));
    }
  }
  if (depth != 0 || in_string) {
    fail_trace(file, "a text that ends within an object", "a whole Chakra trace in JSON");
  }
}

}  // namespace

RankTrace read_chakra(const std::string& file, int rank, std::string_view bytes,
                      const ChakraOptions& options) {
  const google::protobuf::LogSilencer silencer;  // a mistake is one line, and it is ours
  ChakraRank out(file, rank, options);
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  std::size_t at = 0;
  bool metadata = true;
  chakra::Node node;  // one for all: it keeps its memory
  chakra::GlobalMetadata head;
  while (at < bytes.size()) {
    // A length is at most five bytes; the stream never looks further.
    constexpr std::size_t kLongestVarint = 10;
    const auto ahead = static_cast<int>(std::min(bytes.size() - at, kLongestVarint));
    google::protobuf::io::CodedInputStream stream(data + at, ahead);
    std::uint32_t length = 0;
    if (!stream.ReadVarint32(&length)) fail_bytes(file, at, "no length of a message");
    const std::size_t begin = at + static_cast<std::size_t>(stream.CurrentPosition());
    if (length > bytes.size() - begin) {
      fail_bytes(file, at, fmt::format("a message of {} bytes, more than are left,", length));
    }
    google::protobuf::MessageLite& message =
        metadata ? static_cast<google::protobuf::MessageLite&>(head) : node;
    if (!message.ParseFromArray(data + begin, static_cast<int>(length))) {
      fail_bytes(file, at,
                 metadata ? std::string("no GlobalMetadata")
                          : fmt::format("no Node after {} of them", out.nodes()));
    }
    if (!metadata) out.add(node);
    metadata = false;
    at = begin + length;
  }
  if (out.nodes() == 0) fail_bytes(file, at, "no Node");
  return out.finish();
}

RankTrace read_chakra_json(const std::string& file, int rank, std::string_view text,
                           const ChakraOptions& options) {
  const google::protobuf::LogSilencer silencer;
  ChakraRank out(file, rank, options);
  google::protobuf::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  chakra::Node node;
  bool first = true;
  for_each_object(file, text, [&](std::string_view object) {
    const bool metadata = first && object.find("\"type\"") == std::string_view::npos;
    first = false;
    if (metadata) return;
    node.Clear();
    const auto status =
        google::protobuf::util::JsonStringToMessage({object.data(), object.size()}, &node, lenient);
    if (!status.ok()) {
      fail_trace(file, fmt::format("no Node after {} of them", out.nodes()),
                 "a Node of et_def.proto in protobuf's JSON mapping");
    }
    out.add(node);
  });
  if (out.nodes() == 0) fail_trace(file, "no Node", "a Chakra trace in JSON");
  return out.finish();
}

std::map<std::string, std::vector<int>> read_trace_groups(const std::string& file,
                                                          std::string_view text) {
  std::map<std::string, std::vector<int>> out;
  const JsonCursor root = JsonCursor::parse(file, text);
  for (const std::string& name : root.keys()) {
    std::vector<int>& ranks = out[name];
    for (const JsonCursor& rank : root.at(name).elements(kMostTraceRanks)) {
      ranks.push_back(rank.integer(0, kMostTraceRanks - 1));
    }
    std::ranges::sort(ranks);
    const auto twice = std::ranges::unique(ranks);
    ranks.erase(twice.begin(), twice.end());
  }
  return out;
}

}  // namespace lockstep
