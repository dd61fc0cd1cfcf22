/// A step that was recorded or exported: what every rank does, in which order, and what it waits
/// for. read_trace.hpp makes one from files, trace_of_step.hpp from our own steps,
/// replay_trace.hpp runs it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/base/units.hpp"
#include "models/collectives/collectives.hpp"
#include "sim/core/clock.hpp"

namespace lockstep {

/// The longest that a node may take, and a whole replay: the clock of a step ends after 213 days.
constexpr StepTime kLongestTraceNode{std::uint64_t{10} * 24 * 3600 * 1'000'000'000'000};
constexpr StepTime kLongestReplay{10 * kLongestTraceNode.ps};

enum class TraceNodeKind : std::uint8_t {
  compute,     ///< a kernel
  memory,      ///< a copy between a GPU and its host, or to storage
  host,        ///< work of the host
  exchange,    ///< communication whose call is not known: takes as long as it was recorded to
  delay,       ///< passes by itself: nothing is busy
  send,        ///< done when the message has arrived
  receive,     ///< done when the message has arrived
  collective,  ///< done when the collective is
};

/// One of a rank. What it means by itself, small, since traces have millions of them.
struct TraceNode {
  static constexpr std::uint16_t kNoStream = std::numeric_limits<std::uint16_t>::max();

  StepTime duration;          ///< of kinds up to delay; else as recorded, waiting too
  std::uint32_t subject = 0;  ///< collective: in Trace::collectives; message: in Trace::messages;
                              ///< kernel: in Trace::works
  std::uint16_t stream = 0;   ///< of its rank: runs one node at a time; kNoStream: any number
  TraceNodeKind kind = TraceNodeKind::compute;
};

/// A call that ranks make together, as often as nodes name it.
struct TraceCollective {
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes payload;  ///< as in CollectiveCall
  std::uint32_t group = 0;
  ExchangeSkew skew{};  ///< of an all-to-all
  friend bool operator==(const TraceCollective&, const TraceCollective&) = default;
};

/// The k-th send of a rank to another with a tag meets the k-th receive there.
struct TraceMessage {
  int peer = 0;
  std::uint32_t tag = 0;
  Bytes size;
  friend bool operator==(const TraceMessage&, const TraceMessage&) = default;
};

/// What a kernel does, where its operator's tensors say so.
struct TraceWork {
  Flops flops;  ///< of products
  Bytes bytes;  ///< read and written
  friend bool operator==(const TraceWork&, const TraceWork&) = default;
};

/// A wait that a recording neither shows nor rules out: a node, and communication of its rank that
/// had ended when it began.
struct PossibleWait {
  std::uint32_t node = 0, on = 0;
};

/// Whole numbers, each in as few bytes as the largest needs.
class SmallNumbers {
 public:
  void push_back(std::uint64_t number) {
    const unsigned width = number < 0x100 ? 1 : number < 0x1'0000 ? 2 : number >> 32U == 0 ? 4 : 8;
    if (width > width_) widen(width);
    bytes_.resize(bytes_.size() + width_);
    for (unsigned i = width_; i > 0; --i, number >>= 8U) {
      bytes_[bytes_.size() - i] = static_cast<std::uint8_t>(number);
    }
  }
  [[nodiscard]] std::uint64_t operator[](std::size_t i) const {
    std::uint64_t number = 0;
    for (unsigned k = width_; k > 0; --k) number = number << 8U | bytes_[i * width_ + k - 1];
    return number;
  }
  [[nodiscard]] std::size_t size() const { return bytes_.size() / width_; }

 private:
  void widen(unsigned width) {
    SmallNumbers wide;
    wide.width_ = width;
    wide.bytes_.reserve(size() * width);
    for (std::size_t i = 0; i < size(); ++i) wide.push_back((*this)[i]);
    *this = std::move(wide);
  }

  std::vector<std::uint8_t> bytes_;
  unsigned width_ = 1;
};

/// Nodes of all ranks, rank by rank. Flat: a trace of a million nodes is a handful of allocations.
struct Trace {
  int ranks = 0;
  std::vector<std::uint32_t> rank_first;  ///< by rank, and the end
  std::vector<StepTime> begins;           ///< by rank, after the first one's; empty: together
  std::vector<TraceNode> nodes;
  SmallNumbers ids;    ///< by node: the file's number, or the line of GOAL
  SmallNumbers names;  ///< by node: in `strings`
  std::vector<std::string> strings;
  std::vector<std::uint32_t> dependency_first;  ///< by node, and the end: in `dependencies`
  std::vector<std::uint32_t> dependencies;      ///< nodes of the same rank that must be done before
  std::vector<PossibleWait> possible_waits;     ///< beyond `dependencies`, by node
  std::vector<std::vector<int>> groups;         ///< ranks, ascending
  std::vector<TraceCollective> collectives;
  std::vector<TraceMessage> messages;
  std::vector<TraceWork> works;       ///< the first: nothing known
  std::vector<std::string> files;     ///< by rank, for messages
  std::vector<std::string> repaired;  ///< what was missing and is assumed, a sentence each
  std::vector<std::string> notes;     ///< what the trace is of, a sentence each
  std::string device;                 ///< the card, as the recording names it; empty: it does not
  StepTime recorded;                  ///< the longest of the ranks; zero: the files do not say

  [[nodiscard]] std::size_t size() const { return nodes.size(); }
  [[nodiscard]] std::span<const std::uint32_t> dependencies_of(std::uint32_t node) const {
    return std::span(dependencies)
        .subspan(dependency_first[node], dependency_first[node + 1] - dependency_first[node]);
  }
  [[nodiscard]] int rank_of(std::uint32_t node) const;
};

/// Where collectives and messages of a trace meet.
struct TraceMatches {
  /// A call of all of a group. Its nodes are `nodes[first]` to `nodes[first + members]`.
  struct Call {
    std::uint32_t collective = 0;  ///< in Trace::collectives
    std::uint32_t first = 0, members = 0;
  };
  struct Message {
    std::uint32_t send = 0, receive = 0;  ///< nodes
  };
  std::vector<Call> calls;  ///< group by group, in the order of each rank's nodes
  std::vector<std::uint32_t> nodes;
  std::vector<Message> messages;  ///< by sender, receiver, tag, order
};

/// Finds them. Throws InputError where a rank never joins a collective, joins with another
/// operation or size, where a message has no sender or receiver, and where the nodes of a rank wait
/// for each other in a circle, which it names.
TraceMatches match(const Trace& trace);

}  // namespace lockstep
