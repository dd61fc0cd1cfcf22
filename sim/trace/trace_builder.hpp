/// Puts a Trace together from what a reader finds, rank by rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/trace/trace.hpp"

namespace lockstep {

/// The most ranks and nodes that are taken.
constexpr int kMostTraceRanks = 1'000'000;
constexpr std::size_t kMostTraceNodes = 1'000'000'000;
/// The most nodes of a trace with copied ranks: a file of a megabyte must not make a hundred
/// gigabytes.
constexpr std::size_t kMostCopiedNodes = 50'000'000;

/// What one rank does, as its file says it: dependencies by number, groups by name.
struct RankTrace {
  struct Node {
    std::uint64_t id = 0;
    StepTime duration;
    Bytes size;               ///< of a message, or a collective's payload; of a kernel what it
                              ///< reads and writes, if that is known
    Flops flops;              ///< of a kernel, if they are known
    std::uint32_t name = 0;   ///< in `names`
    std::uint32_t group = 0;  ///< in `groups`
    std::uint32_t skew = 0;   ///< of an all-to-all: in `skews`
    int peer = 0;
    std::uint32_t tag = 0;
    std::uint32_t dependencies = 0;  ///< how many, in the order of nodes
    std::uint16_t stream = TraceNode::kNoStream;
    TraceNodeKind kind = TraceNodeKind::compute;
    CollectiveOp op = CollectiveOp::all_reduce;
    bool payload_of_rank = false;  ///< `size` is what one rank puts in; times the members
  };
  struct Group {
    std::string name;
    std::vector<int> ranks;  ///< ascending
    bool all = false;        ///< every rank of the trace
  };

  /// What a trace of two files (PyTorch's) has in one of them only.
  struct Links {
    std::size_t kernels = 0, unlinked = 0;  ///< kernels without an operator
    std::size_t missing = 0;                ///< operators without a kernel
    std::string first_missing;              ///< "node 12 (aten::mm)"
    std::size_t contradicted = 0;           ///< dependencies against the recorded times
  };

  int rank = 0;
  std::string file;
  std::vector<Node> nodes;
  std::vector<std::uint64_t> dependencies;  ///< ids
  /// PossibleWait by ids: a node, and what it may have waited for.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> possible_waits;
  std::vector<std::string> names;
  std::vector<Group> groups;
  std::vector<ExchangeSkew> skews{ExchangeSkew{}};  ///< the first: even
  std::size_t repaired = 0;                         ///< dependencies that the file did not have
  Links links;
  /// Communication of its recorded length: what calls it could not be told, or goes to ranks that
  /// were not recorded.
  struct Unknown {
    std::size_t calls = 0;
    StepTime time;
    std::string first;  ///< what lacks what
  };
  Unknown unknown;
  StepTime begin;      ///< after the first rank's
  StepTime recorded;   ///< from its first event to its last; zero: the file does not say
  std::string device;  ///< the card, as the file names it
  std::vector<std::string> notes;
  /// Ranks of the job, as the recording says; those without a file are copies of their nearest
  /// neighbours. 0: every rank has to be there.
  int world = 0;

  /// Index of the name, group or skew, added where it is new.
  std::uint32_t name(std::string_view text);
  std::uint32_t group(Group wanted);
  std::uint32_t skew(const ExchangeSkew& wanted);
  /// Adds a node; its dependencies follow with depends_on().
  Node& add(std::uint64_t id, std::string_view name_text);
  /// The last node that was added waits for another.
  void depends_on(std::uint64_t id) {
    dependencies.push_back(id);
    ++nodes.back().dependencies;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> name_index_;
};

/// Where a reader stands, for its errors.
[[noreturn]] void fail_trace(const std::string& file, std::string found, std::string allowed);
/// "node 12 (gemm)".
std::string node_text(std::uint64_t id, std::string_view name);

/// All ranks as one trace. Dependencies on nodes that a rank does not have are left out, and
/// counted. Ranks of a recording (RankTrace::world) that are missing are copies (copy_rank.hpp).
/// Throws InputError where another trace's rank is missing, or one is there twice, a number is
/// twice in a rank, or copies would make more than kMostCopiedNodes.
Trace join(std::vector<RankTrace> ranks);
/// join() for ranks that come one at a time: `give` calls its argument with every rank, from 0 to
/// the last; that call may change the rank. Throws InputError for another order too, and where a
/// rank is missing.
using AddRank = std::function<void(RankTrace&)>;
Trace join_in_order(std::size_t ranks, const std::function<void(const AddRank&)>& give);

/// The trace with all of its possible waits among its dependencies: the longest that it may take
/// where communication takes another time than it did.
Trace with_possible_waits(const Trace& trace);

}  // namespace lockstep
