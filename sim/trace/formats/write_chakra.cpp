#include "sim/trace/formats/write_chakra.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <string_view>
#include <utility>

#include "sim/trace/formats/chakra.pb.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kPicosPerMicro = 1'000'000;
constexpr std::string_view kSchemaVersion = "0.0.4";  // that of et_def.proto's producers

/// The largest size that is written: a gather's counts all members in our trace.
constexpr double kMostWritten = 1e15;

/// ASTRA-sim's number 0 is every rank, whatever the file of groups says of it.
constexpr std::uint32_t kFirstGroup = 1;

/// By TraceNodeKind, of those that ASTRA-sim has no node for.
constexpr std::array<std::string_view, 5> kKindNames{"compute", "memory", "host", "exchange",
                                                     "delay"};

/// By CollectiveOp; send and receive are nodes of their own.
constexpr std::array kTypes{chakra::ALL_REDUCE, chakra::ALL_GATHER, chakra::REDUCE_SCATTER,
                            chakra::ALL_TO_ALL, chakra::BROADCAST,  chakra::BROADCAST,
                            chakra::REDUCE};

void set(chakra::Node& node, const char* name, std::int64_t value) {
  chakra::Attribute& a = *node.add_attr();
  a.set_name(name);
  a.set_int64_val(value);
}
void set_small(chakra::Node& node, const char* name, std::uint32_t value) {
  chakra::Attribute& a = *node.add_attr();
  a.set_name(name);
  a.set_uint32_val(value);
}

class ChakraWriter {
 public:
  ChakraWriter(const Trace& trace, int rank) : trace_(trace), rank_(rank) {}

  std::string write() {
    chakra::GlobalMetadata head;
    head.set_version(std::string(kSchemaVersion));
    append(head);
    const auto first = trace_.rank_first[static_cast<std::size_t>(rank_)];
    const auto end = trace_.rank_first[static_cast<std::size_t>(rank_) + 1];
    for (std::uint32_t n = first; n < end; ++n) write_node(n, first);
    return std::move(out_);
  }

 private:
  template <class Message>
  void append(const Message& message) {
    google::protobuf::io::StringOutputStream stream(&out_);  // appends
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.WriteVarint32(static_cast<std::uint32_t>(message.ByteSizeLong()));
    message.SerializeWithCachedSizes(&coded);
  }

  void write_node(std::uint32_t n, std::uint32_t first) {
    const TraceNode& from = trace_.nodes[n];
    node_.Clear();
    node_.set_id(n - first + 1);
    node_.set_name(trace_.strings[trace_.names[n]]);
    for (const std::uint32_t d : trace_.dependencies_of(n)) node_.add_data_deps(d - first + 1);
    chakra::Attribute& host = *node_.add_attr();
    host.set_name("is_cpu_op");
    host.set_bool_val(false);
    switch (from.kind) {
      case TraceNodeKind::compute:
        node_.set_type(chakra::COMP_NODE);
        break;
      case TraceNodeKind::memory:
      case TraceNodeKind::host:
      case TraceNodeKind::exchange:
      case TraceNodeKind::delay:
        node_.set_type(chakra::COMP_NODE);
        set_text("lockstep_kind", kKindNames[static_cast<std::size_t>(from.kind)]);
        break;
      case TraceNodeKind::send:
      case TraceNodeKind::receive:
        add_message(from);
        break;
      case TraceNodeKind::collective:
        add_collective(from);
        break;
    }
    if (from.kind <= TraceNodeKind::delay) add_duration(from.duration);
    append(node_);
  }

  void add_duration(StepTime duration) {
    const auto rounded = [](std::uint64_t ps) {
      return (ps + kPicosPerMicro / 2) / kPicosPerMicro;
    };
    node_.set_duration_micros(rounded(sum_ + duration.ps) - rounded(sum_));
    sum_ += duration.ps;
    set(node_, "duration_picos", static_cast<std::int64_t>(duration.ps));
  }
  void add_message(const TraceNode& from) {
    const TraceMessage& message = trace_.messages[from.subject];
    const bool sends = from.kind == TraceNodeKind::send;
    node_.set_type(sends ? chakra::COMM_SEND_NODE : chakra::COMM_RECV_NODE);
    set(node_, "comm_size", std::llround(message.size.base_units()));
    set_small(node_, "comm_src", static_cast<std::uint32_t>(sends ? rank_ : message.peer));
    set_small(node_, "comm_dst", static_cast<std::uint32_t>(sends ? message.peer : rank_));
    set_small(node_, "comm_tag", message.tag);
  }
  void add_collective(const TraceNode& from) {
    const TraceCollective& collective = trace_.collectives[from.subject];
    double size = collective.payload.base_units();
    if (collective.op == CollectiveOp::all_gather) {
      size /= static_cast<double>(trace_.groups[collective.group].size());
    }
    node_.set_type(chakra::COMM_COLL_NODE);
    set(node_, "comm_type", kTypes[static_cast<std::size_t>(collective.op)]);
    set(node_, "comm_size", std::llround(std::min(size, kMostWritten)));
    set_text("pg_name", std::to_string(collective.group + kFirstGroup));
    if (!collective.skew.is_even()) add_skew(collective.skew);
  }
  /// Chakra has one size for all members.
  void add_skew(const ExchangeSkew& skew) {
    chakra::Attribute& fullest = *node_.add_attr();
    fullest.set_name("lockstep_fullest");
    fullest.set_double_val(skew.fullest);
    for (const auto& [name, value] : {std::pair{"lockstep_whole_domain", skew.whole_domain},
                                      std::pair{"lockstep_back", skew.back}}) {
      chakra::Attribute& flag = *node_.add_attr();
      flag.set_name(name);
      flag.set_bool_val(value);
    }
  }
  void set_text(const char* name, std::string_view value) {
    chakra::Attribute& a = *node_.add_attr();
    a.set_name(name);
    a.set_string_val(std::string(value));
  }

  const Trace& trace_;
  int rank_;
  std::uint64_t sum_ = 0;  ///< picoseconds so far
  chakra::Node node_;
  std::string out_;
};

}  // namespace

std::string write_chakra(const Trace& trace, int rank) { return ChakraWriter(trace, rank).write(); }

std::string write_trace_groups(const Trace& trace) {
  std::string out = "{";
  for (std::size_t g = 0; g < trace.groups.size(); ++g) {
    out += fmt::format("{}\n  \"{}\": [{}]", g == 0 ? "" : ",", g + kFirstGroup,
                       fmt::join(trace.groups[g], ", "));
  }
  return out + "\n}\n";
}

}  // namespace lockstep
