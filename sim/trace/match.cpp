#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <span>
#include <utility>

#include "sim/trace/trace.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {
namespace {

std::string text_of(const Trace& trace, std::uint32_t node) {
  return node_text(trace.ids[node], trace.strings[trace.names[node]]);
}
const std::string& file_of(const Trace& trace, int rank) {
  return trace.files[static_cast<std::size_t>(rank)];
}
std::string call_text(const Trace& trace, const TraceCollective& call) {
  return fmt::format("{} of {:.0f} bytes among {} ranks",
                     collective_kinds()[static_cast<std::size_t>(call.op)].name,
                     call.payload.base_units(), trace.groups[call.group].size());
}

// --- circles ------------------------------------------------------------------------------------

/// Goes from a node that is never ready back over nodes that are not either, until one comes twice.
[[noreturn]] void fail_circle(const Trace& trace, int rank, std::uint32_t first,
                              const std::vector<std::uint32_t>& unmet) {
  constexpr std::size_t kShown = 8;
  std::vector<std::uint32_t> way;
  std::vector<std::uint8_t> seen(unmet.size());
  std::uint32_t node = 0;
  while (unmet[node] == 0) ++node;
  while (seen[node] == 0) {
    seen[node] = 1;
    way.push_back(node);
    for (const std::uint32_t d : trace.dependencies_of(first + node)) {
      if (unmet[d - first] == 0) continue;
      node = d - first;
      break;
    }
  }
  way.erase(way.begin(), std::ranges::find(way, node));
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, way.size()); ++i) {
    text += (i == 0 ? "" : " waits for ") + text_of(trace, first + way[i]);
  }
  if (way.size() > kShown) text += fmt::format(" and on over {} more", way.size() - kShown);
  fail_trace(file_of(trace, rank), text + " waits for the first", "dependencies without a circle");
}

void check_circles(const Trace& trace) {
  std::vector<std::uint32_t> unmet, successor_first, successors, ready;
  for (int rank = 0; rank < trace.ranks; ++rank) {
    const std::uint32_t first = trace.rank_first[static_cast<std::size_t>(rank)];
    const std::uint32_t end = trace.rank_first[static_cast<std::size_t>(rank) + 1];
    bool forward = true;  // the usual case: every node after those that it waits for
    for (std::uint32_t node = first; node < end && forward; ++node) {
      for (const std::uint32_t d : trace.dependencies_of(node)) forward = forward && d < node;
    }
    if (forward) continue;
    const std::uint32_t count = end - first;
    unmet.assign(count, 0);
    successor_first.assign(count + std::size_t{1}, 0);
    for (std::uint32_t node = first; node < end; ++node) {
      unmet[node - first] = static_cast<std::uint32_t>(trace.dependencies_of(node).size());
      for (const std::uint32_t d : trace.dependencies_of(node)) ++successor_first[d - first + 1];
    }
    std::partial_sum(successor_first.begin(), successor_first.end(), successor_first.begin());
    successors.resize(successor_first.back());
    std::vector<std::uint32_t> place(successor_first.begin(), successor_first.end() - 1);
    for (std::uint32_t node = first; node < end; ++node) {
      for (const std::uint32_t d : trace.dependencies_of(node)) {
        successors[place[d - first]++] = node - first;
      }
    }
    ready.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      if (unmet[i] == 0) ready.push_back(i);
    }
    for (std::size_t i = 0; i < ready.size(); ++i) {
      for (std::uint32_t s = successor_first[ready[i]]; s < successor_first[ready[i] + 1]; ++s) {
        if (--unmet[successors[s]] == 0) ready.push_back(successors[s]);
      }
    }
    if (ready.size() < count) fail_circle(trace, rank, first, unmet);
  }
}

// --- collectives --------------------------------------------------------------------------------

class CallMatcher {
 public:
  explicit CallMatcher(const Trace& trace) : trace_(trace), of_group_(trace.groups.size()) {
    for (int rank = 0; rank < trace.ranks; ++rank) {
      const std::uint32_t end = trace.rank_first[static_cast<std::size_t>(rank) + 1];
      for (auto n = trace.rank_first[static_cast<std::size_t>(rank)]; n < end; ++n) {
        if (trace.nodes[n].kind != TraceNodeKind::collective) continue;
        of_group_[trace.collectives[trace.nodes[n].subject].group].push_back({n, rank});
      }
    }
  }

  void match(TraceMatches& out) {
    for (std::uint32_t g = 0; g < of_group_.size(); ++g) {
      if (!of_group_[g].empty()) match_group(trace_.groups[g], of_group_[g], out);
    }
  }

 private:
  struct Entry {
    std::uint32_t node;
    int rank;
  };

  /// Entries are rank by rank, so that those of a member lie together.
  void match_group(const std::vector<int>& group, const std::vector<Entry>& entries,
                   TraceMatches& out) {
    std::vector<std::size_t> first{0};
    for (const int rank : group) {
      std::size_t end = first.back();
      while (end < entries.size() && entries[end].rank == rank) ++end;
      first.push_back(end);
    }
    std::size_t calls = 0;
    for (std::size_t m = 0; m < group.size(); ++m) calls = std::max(calls, first[m + 1] - first[m]);
    for (std::size_t k = 0; k < calls; ++k) {
      const Entry* lead = nullptr;
      for (std::size_t m = 0; m < group.size() && lead == nullptr; ++m) {
        if (first[m] + k < first[m + 1]) lead = &entries[first[m] + k];
      }
      out.calls.push_back({.collective = trace_.nodes[lead->node].subject,
                           .first = static_cast<std::uint32_t>(out.nodes.size()),
                           .members = static_cast<std::uint32_t>(group.size())});
      for (std::size_t m = 0; m < group.size(); ++m) {
        if (first[m] + k >= first[m + 1]) fail_absent(*lead, group[m]);
        const std::uint32_t node = entries[first[m] + k].node;
        if (!take_larger(out.calls.back().collective, trace_.nodes[node].subject)) {
          fail_different(*lead, entries[first[m] + k]);
        }
        out.nodes.push_back(node);
      }
    }
  }

  /// Whether a member calls what the others do. In an all-to-all with sizes of its own each sends
  /// as much as it likes: the one that sends most counts.
  bool take_larger(std::uint32_t& collective, std::uint32_t other) const {
    if (collective == other) return true;
    const TraceCollective& known = trace_.collectives[collective];
    const TraceCollective& of = trace_.collectives[other];
    if (known.op != CollectiveOp::all_to_all || of.op != known.op) return false;
    if (of.payload > known.payload) collective = other;
    return true;
  }

  [[noreturn]] void fail_absent(const Entry& lead, int absent) const {
    fail_trace(file_of(trace_, absent),
               fmt::format("no call by rank {} to go with {} of rank {}, {}", absent,
                           text_of(trace_, lead.node), lead.rank, call_text(trace_, spec(lead))),
               "every rank of a process group in each of its collectives");
  }
  [[noreturn]] void fail_different(const Entry& lead, const Entry& other) const {
    fail_trace(file_of(trace_, other.rank),
               fmt::format("{}, {}", text_of(trace_, other.node), call_text(trace_, spec(other))),
               fmt::format("what rank {} calls at that place, {}: {}", lead.rank,
                           text_of(trace_, lead.node), call_text(trace_, spec(lead))));
  }
  [[nodiscard]] const TraceCollective& spec(const Entry& entry) const {
    return trace_.collectives[trace_.nodes[entry.node].subject];
  }

  const Trace& trace_;
  std::vector<std::vector<Entry>> of_group_;
};

// --- messages -----------------------------------------------------------------------------------

/// Of messages of one rank.
struct MessageEnd {
  int to;
  std::uint32_t tag, node;
  [[nodiscard]] auto key() const { return std::pair(to, tag); }
};

[[noreturn]] void fail_alone(const Trace& trace, int from, const MessageEnd& end, bool sends) {
  fail_trace(file_of(trace, sends ? from : end.to),
             fmt::format("{}, a message {} rank {} with tag {}", text_of(trace, end.node),
                         sends ? "to" : "from", sends ? end.to : from, end.tag),
             fmt::format("as many {} on that rank; one is missing", sends ? "receives" : "sends"));
}

void sort_ends(std::span<MessageEnd> ends) {
  if (!std::ranges::is_sorted(ends, {}, &MessageEnd::key)) {
    std::ranges::stable_sort(ends, {}, &MessageEnd::key);
  }
}

/// Receives by sender, rank by rank of the receivers'.
class ReceivesBySender {
 public:
  explicit ReceivesBySender(const Trace& trace)
      : first_(static_cast<std::size_t>(trace.ranks) + 1) {
    const auto sender_of = [&](const TraceNode& node) {
      return static_cast<std::size_t>(trace.messages[node.subject].peer);
    };
    for (const TraceNode& node : trace.nodes) {
      if (node.kind == TraceNodeKind::receive) ++first_[sender_of(node) + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    ends_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (int rank = 0; rank < trace.ranks; ++rank) {
      const std::uint32_t end = trace.rank_first[static_cast<std::size_t>(rank) + 1];
      for (auto n = trace.rank_first[static_cast<std::size_t>(rank)]; n < end; ++n) {
        const TraceNode& node = trace.nodes[n];
        if (node.kind != TraceNodeKind::receive) continue;
        ends_[next[sender_of(node)]++] = {rank, trace.messages[node.subject].tag, n};
      }
    }
  }
  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  [[nodiscard]] std::span<MessageEnd> of(int sender) {
    const auto rank = static_cast<std::size_t>(sender);
    return std::span(ends_).subspan(first_[rank], first_[rank + 1] - first_[rank]);
  }

 private:
  std::vector<std::size_t> first_;  ///< by sender, and the end
  std::vector<MessageEnd> ends_;
};

void match_messages(const Trace& trace, std::vector<TraceMatches::Message>& out) {
  ReceivesBySender received(trace);
  out.reserve(received.size());
  std::vector<MessageEnd> sends;
  for (int rank = 0; rank < trace.ranks; ++rank) {
    sends.clear();
    const std::uint32_t end = trace.rank_first[static_cast<std::size_t>(rank) + 1];
    for (auto n = trace.rank_first[static_cast<std::size_t>(rank)]; n < end; ++n) {
      if (trace.nodes[n].kind != TraceNodeKind::send) continue;
      const TraceMessage& message = trace.messages[trace.nodes[n].subject];
      sends.push_back({message.peer, message.tag, n});
    }
    const std::span<MessageEnd> receives = received.of(rank);
    sort_ends(sends);
    sort_ends(receives);
    for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
      if (i == receives.size()) fail_alone(trace, rank, sends[i], true);
      if (i == sends.size()) fail_alone(trace, rank, receives[i], false);
      if (sends[i].key() < receives[i].key()) fail_alone(trace, rank, sends[i], true);
      if (receives[i].key() < sends[i].key()) fail_alone(trace, rank, receives[i], false);
      out.push_back({sends[i].node, receives[i].node});
    }
  }
}

}  // namespace

int Trace::rank_of(std::uint32_t node) const {
  const auto after = std::ranges::upper_bound(rank_first, node);
  return static_cast<int>(after - rank_first.begin()) - 1;
}

TraceMatches match(const Trace& trace) {
  check_circles(trace);
  TraceMatches out;
  CallMatcher(trace).match(out);
  match_messages(trace, out.messages);
  return out;
}

}  // namespace lockstep
