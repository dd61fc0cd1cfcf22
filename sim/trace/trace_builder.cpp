#include "sim/trace/trace_builder.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/trace/copy_rank.hpp"

namespace lockstep {
namespace {

/// Finds a node of a rank by its number. Numbers mostly count up by one.
class NodeIndex {
 public:
  explicit NodeIndex(const std::vector<RankTrace::Node>& sorted) : nodes_(sorted) {}
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t id) const {
    if (nodes_.empty() || id < nodes_.front().id) return std::nullopt;
    const std::uint64_t guess = id - nodes_.front().id;
    if (guess < nodes_.size() && nodes_[guess].id == id) return static_cast<std::uint32_t>(guess);
    const auto it = std::ranges::lower_bound(nodes_, id, {}, &RankTrace::Node::id);
    if (it == nodes_.end() || it->id != id) return std::nullopt;
    return static_cast<std::uint32_t>(it - nodes_.begin());
  }

 private:
  const std::vector<RankTrace::Node>& nodes_;
};

/// Nodes by number, and where each one's dependencies begin.
std::vector<std::size_t> sort_nodes(RankTrace& rank) {
  std::vector<std::size_t> first(rank.nodes.size());
  std::size_t sum = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i] = sum;
    sum += rank.nodes[i].dependencies;
  }
  if (std::ranges::is_sorted(rank.nodes, {}, &RankTrace::Node::id)) return first;
  std::vector<std::size_t> order(first.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return rank.nodes[i].id; });
  std::vector<RankTrace::Node> nodes;
  std::vector<std::size_t> sorted_first;
  nodes.reserve(order.size());
  sorted_first.reserve(order.size());
  for (const std::size_t i : order) {
    nodes.push_back(rank.nodes[i]);
    sorted_first.push_back(first[i]);
  }
  rank.nodes = std::move(nodes);
  return sorted_first;
}

/// What several ranks say in the same words, once.
template <class Value, class Less = std::less<Value>>
class TraceTable {
 public:
  explicit TraceTable(std::vector<Value>& values) : values_(values) {}
  std::uint32_t operator()(const Value& value) {
    for (const std::uint32_t known : recent_) {
      if (known < values_.size() && values_[known] == value) return known;
    }
    const auto [at, added] = index_.try_emplace(value, static_cast<std::uint32_t>(values_.size()));
    if (added) values_.push_back(value);
    oldest_ = (oldest_ + 1) % recent_.size();
    recent_[oldest_] = at->second;
    return at->second;
  }

 private:
  std::vector<Value>& values_;
  std::map<Value, std::uint32_t, Less> index_;
  std::array<std::uint32_t, 4> recent_{};  ///< a rank says most of them many times in a row
  std::size_t oldest_ = 0;
};

struct CollectiveLess {
  bool operator()(const TraceCollective& a, const TraceCollective& b) const {
    const auto key = [](const TraceCollective& c) {
      return std::tuple(c.group, c.op, c.payload.base_units(), c.skew.fullest, c.skew.whole_domain,
                        c.skew.back);
    };
    return key(a) < key(b);
  }
};
struct MessageLess {
  bool operator()(const TraceMessage& a, const TraceMessage& b) const {
    return std::tuple(a.peer, a.tag, a.size.base_units()) <
           std::tuple(b.peer, b.tag, b.size.base_units());
  }
};

struct WorkLess {
  bool operator()(const TraceWork& a, const TraceWork& b) const {
    return std::pair(a.flops.base_units(), a.bytes.base_units()) <
           std::pair(b.flops.base_units(), b.bytes.base_units());
  }
};

class Joiner {
 public:
  explicit Joiner(std::size_t ranks) {
    trace_.ranks = static_cast<int>(ranks);
    (void)works_({});
  }

  void add(RankTrace& rank) {
    trace_.rank_first.push_back(static_cast<std::uint32_t>(trace_.size()));
    trace_.begins.push_back(rank.begin);
    trace_.files.push_back(rank.file);
    const std::vector<std::size_t> dependency_first = sort_nodes(rank);
    check_ids(rank);
    std::vector<std::uint32_t> names, groups;
    for (const std::string& text : rank.names) names.push_back(strings_(text));
    for (const RankTrace::Group& group : rank.groups) groups.push_back(group_of(rank, group));
    const NodeIndex index(rank.nodes);
    const auto base = static_cast<std::uint32_t>(trace_.size());
    for (std::size_t i = 0; i < rank.nodes.size(); ++i) {
      const RankTrace::Node& node = rank.nodes[i];
      add_node(rank, node, groups);
      trace_.names.push_back(names[node.name]);
      trace_.dependency_first.push_back(static_cast<std::uint32_t>(trace_.dependencies.size()));
      for (std::uint32_t d = 0; d < node.dependencies; ++d) {
        const std::uint64_t id = rank.dependencies[dependency_first[i] + d];
        const auto found = index.find(id);
        if (!found) {
          drop_dependency(rank, node, id);
          continue;
        }
        trace_.dependencies.push_back(base + *found);
      }
    }
    add_possible_waits(rank, index, base);
    repaired_ += rank.repaired;
    links_.kernels += rank.links.kernels;
    links_.unlinked += rank.links.unlinked;
    links_.contradicted += rank.links.contradicted;
    if (links_.missing == 0 && rank.links.missing > 0) {
      links_.first_missing = fmt::format("{} of rank {}", rank.links.first_missing, rank.rank);
    }
    links_.missing += rank.links.missing;
    add_unknown(rank);
    trace_.recorded = std::max(trace_.recorded, rank.recorded);
    if (trace_.device.empty()) trace_.device = rank.device;
    for (const std::string& note : rank.notes) {
      if (std::ranges::count(trace_.notes, note) == 0) trace_.notes.push_back(note);
    }
  }
  void repaired(std::string sentence) { trace_.repaired.push_back(std::move(sentence)); }

  Trace finish() {
    trace_.rank_first.push_back(static_cast<std::uint32_t>(trace_.size()));
    trace_.dependency_first.push_back(static_cast<std::uint32_t>(trace_.dependencies.size()));
    if (repaired_ > 0) {
      trace_.repaired.push_back(
          fmt::format("{} dependencies that the files do not have: nodes of one stream run in the "
                      "order in which they started",
                      grouped(static_cast<double>(repaired_))));
    }
    add_links();
    if (dropped_ > 0) {
      trace_.repaired.push_back(fmt::format(
          "{} left out on nodes that the files lack; the first is {}",
          dropped_ == 1 ? std::string("1 dependency")
                        : fmt::format("{} dependencies", grouped(static_cast<double>(dropped_))),
          first_dropped_));
    }
    if (unknown_.calls > 0) {
      trace_.repaired.push_back(fmt::format(
          "{} of communication at the recorded length, waits for other ranks in it: {:.4g} ms "
          "of each rank on average; the first is {}",
          counted(static_cast<double>(unknown_.calls), "kernel"),
          to_seconds(unknown_.time).base_units() * 1e3 / trace_.ranks, unknown_.first));
    }
    return std::move(trace_);
  }

 private:
  void add_unknown(const RankTrace& rank) {
    if (unknown_.first.empty()) unknown_.first = rank.unknown.first;
    unknown_.calls += rank.unknown.calls;
    unknown_.time += rank.unknown.time;
  }

  void add_possible_waits(const RankTrace& rank, const NodeIndex& index, std::uint32_t base) {
    std::vector<PossibleWait>& waits = trace_.possible_waits;
    const auto first = static_cast<std::ptrdiff_t>(waits.size());
    for (const auto& [id, on] : rank.possible_waits) {
      waits.push_back({base + index.find(id).value(), base + index.find(on).value()});
    }
    std::ranges::stable_sort(waits.begin() + first, waits.end(), {}, &PossibleWait::node);
  }

  void add_links() {
    if (links_.unlinked > 0) {
      trace_.repaired.push_back(
          fmt::format("{} of {} kernels without an operator: they keep their recorded times",
                      grouped(static_cast<double>(links_.unlinked)),
                      grouped(static_cast<double>(links_.kernels))));
    }
    if (links_.missing > 0) {
      trace_.repaired.push_back(
          fmt::format("{} products and collectives without a kernel, which are left out; the first "
                      "is {}",
                      grouped(static_cast<double>(links_.missing)), links_.first_missing));
    }
    if (links_.contradicted > 0) {
      trace_.repaired.push_back(
          fmt::format("{} dependencies left out that the recorded times contradict",
                      grouped(static_cast<double>(links_.contradicted))));
    }
  }

  static void check_ids(const RankTrace& rank) {
    const auto twice = std::ranges::adjacent_find(rank.nodes, {}, &RankTrace::Node::id);
    if (twice == rank.nodes.end()) return;
    fail_trace(rank.file, node_text(twice->id, rank.names[twice->name]) + " twice",
               "each number once in a rank");
  }
  /// Converters leave out nodes that others wait for.
  void drop_dependency(const RankTrace& rank, const RankTrace::Node& node, std::uint64_t id) {
    if (dropped_++ > 0) return;
    first_dropped_ = fmt::format("that of {} on node {} in {}",
                                 node_text(node.id, rank.names[node.name]), id, rank.file);
  }

  std::uint32_t group_of(const RankTrace& rank, const RankTrace::Group& group) {
    std::vector<int> ranks = group.ranks;
    if (group.all) {
      ranks.resize(static_cast<std::size_t>(trace_.ranks));
      std::iota(ranks.begin(), ranks.end(), 0);
    }
    if (!ranks.empty() && (ranks.front() < 0 || ranks.back() >= trace_.ranks)) {
      fail_trace(rank.file,
                 fmt::format("process group {} with rank {}", in_quotes(group.name),
                             ranks.front() < 0 ? ranks.front() : ranks.back()),
                 fmt::format("ranks from 0 to {}, which have a trace", trace_.ranks - 1));
    }
    // Communicators of the same ranks stay apart: each has an order of its own.
    const auto [at, added] = groups_.try_emplace(std::pair(group.name, ranks),
                                                 static_cast<std::uint32_t>(trace_.groups.size()));
    if (added) trace_.groups.push_back(std::move(ranks));
    return at->second;
  }

  void add_node(const RankTrace& rank, const RankTrace::Node& node,
                const std::vector<std::uint32_t>& groups) {
    TraceNode out{.duration = node.duration, .stream = node.stream, .kind = node.kind};
    if (node.kind == TraceNodeKind::collective) {
      const std::uint32_t group = groups[node.group];
      const std::vector<int>& members = trace_.groups[group];
      if (!std::ranges::binary_search(members, rank.rank)) {
        fail_trace(rank.file,
                   fmt::format("{} in process group {}, where rank {} is not",
                               node_text(node.id, rank.names[node.name]),
                               in_quotes(rank.groups[node.group].name), rank.rank),
                   "collectives of groups that the rank belongs to");
      }
      const double factor = node.payload_of_rank ? static_cast<double>(members.size()) : 1;
      out.subject = collectives_({.op = node.op,
                                  .payload = factor * node.size,
                                  .group = group,
                                  .skew = rank.skews[node.skew]});
    } else if (node.kind == TraceNodeKind::send || node.kind == TraceNodeKind::receive) {
      if (node.peer < 0 || node.peer >= trace_.ranks || node.peer == rank.rank) {
        fail_trace(rank.file,
                   fmt::format("{} between rank {} and rank {}",
                               node_text(node.id, rank.names[node.name]), rank.rank, node.peer),
                   fmt::format("another rank, from 0 to {}", trace_.ranks - 1));
      }
      out.subject = messages_({node.peer, node.tag, node.size});
    } else if (node.kind == TraceNodeKind::compute &&
               (node.size > Bytes{} || node.flops > Flops{})) {
      out.subject = works_({node.flops, node.size});
    }
    trace_.nodes.push_back(out);
    trace_.ids.push_back(node.id);
  }

  Trace trace_;
  std::size_t repaired_ = 0;
  TraceTable<std::string> strings_{trace_.strings};
  std::map<std::pair<std::string, std::vector<int>>, std::uint32_t> groups_;
  TraceTable<TraceCollective, CollectiveLess> collectives_{trace_.collectives};
  TraceTable<TraceMessage, MessageLess> messages_{trace_.messages};
  TraceTable<TraceWork, WorkLess> works_{trace_.works};
  RankTrace::Links links_;      ///< of all ranks
  RankTrace::Unknown unknown_;  ///< the same
  std::size_t dropped_ = 0;     ///< dependencies
  std::string first_dropped_;
};

/// How many ranks a recording is of; 0: the files have to be all of them.
int ranks_of_job(std::vector<RankTrace>& ranks) {
  if (std::ranges::any_of(ranks, [](const RankTrace& rank) { return rank.world == 0; })) return 0;
  int world = 0;
  bool groups = false;
  for (const RankTrace& rank : ranks) {
    world = std::max(world, rank.world);
    for (const RankTrace::Group& group : rank.groups) {
      groups = true;
      if (!group.ranks.empty()) world = std::max(world, group.ranks.back() + 1);
    }
  }
  // The only file of a job of one: its number is a name.
  if (ranks.size() == 1 && world == 1 && !groups) ranks.front().rank = 0;
  return std::max(world, ranks.back().rank + 1);
}

Trace join_with_copies(std::vector<RankTrace> ranks, int world) {
  for (RankTrace& rank : ranks) keep_messages(rank);
  Joiner joiner(static_cast<std::size_t>(world));
  std::size_t next = 0;
  for (int rank = 0; rank < world; ++rank) {
    while (next + 1 < ranks.size() && ranks[next].rank < rank) ++next;
    // Of two that are equally near, the lower one.
    const bool lower = next > 0 && rank - ranks[next - 1].rank <= ranks[next].rank - rank;
    RankTrace copy = copy_rank(ranks[lower ? next - 1 : next], rank, world);
    joiner.add(copy);
  }
  const auto absent = static_cast<std::size_t>(world) - ranks.size();
  joiner.repaired(
      fmt::format("{} of {} ranks were recorded; {} a copy of the nearest one that was{}",
                  ranks.size(), world, absent == 1 ? "the other is" : "each of the others is",
                  ranks.size() == 1 ? fmt::format(", rank {}", ranks.front().rank) : ""));
  return joiner.finish();
}

}  // namespace

void fail_trace(const std::string& file, std::string found, std::string allowed) {
  throw InputError({.file = file,
                    .pointer = {},
                    .found = std::move(found),
                    .allowed = std::move(allowed),
                    .nearest = {}});
}

std::string node_text(std::uint64_t id, std::string_view name) {
  return name.empty() ? fmt::format("node {}", id)
                      : fmt::format("node {} ({})", id, in_quotes(name));
}

std::uint32_t RankTrace::name(std::string_view text) {
  const auto [at, added] =
      name_index_.try_emplace(std::string(text), static_cast<std::uint32_t>(names.size()));
  if (added) names.emplace_back(text);
  return at->second;
}

std::uint32_t RankTrace::group(Group wanted) {
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    if (groups[i].name == wanted.name && groups[i].ranks == wanted.ranks &&
        groups[i].all == wanted.all) {
      return i;
    }
  }
  groups.push_back(std::move(wanted));
  return static_cast<std::uint32_t>(groups.size() - 1);
}

std::uint32_t RankTrace::skew(const ExchangeSkew& wanted) {
  const auto at = std::ranges::find(skews, wanted);
  const auto number = static_cast<std::uint32_t>(at - skews.begin());
  if (at == skews.end()) skews.push_back(wanted);
  return number;
}

RankTrace::Node& RankTrace::add(std::uint64_t id, std::string_view name_text) {
  Node& node = nodes.emplace_back();
  node.id = id;
  node.name = name(name_text);
  return node;
}

Trace join(std::vector<RankTrace> ranks) {
  std::ranges::stable_sort(ranks, {}, &RankTrace::rank);
  const int world = ranks_of_job(ranks);
  const bool copies = world > static_cast<int>(ranks.size());
  std::size_t nodes = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int rank = ranks[i].rank;
    if (i > 0 && rank == ranks[i - 1].rank) {
      fail_trace(ranks[i].file, fmt::format("rank {}", rank),
                 fmt::format("each rank once; {} is of the same rank", ranks[i - 1].file));
    }
    if (world == 0 && rank != static_cast<int>(i)) {
      fail_trace(ranks[i].file, fmt::format("rank {}", rank),
                 fmt::format("ranks from 0 without a gap; rank {} is missing", i));
    }
    nodes += ranks[i].nodes.size();
  }
  if (copies) nodes = nodes / ranks.size() * static_cast<std::size_t>(world);
  const std::size_t most = copies ? kMostCopiedNodes : kMostTraceNodes;
  if (nodes > most) {
    fail_trace(ranks.front().file,
               fmt::format("{} nodes in all {} ranks{}", nodes,
                           std::max<std::size_t>(ranks.size(), static_cast<std::size_t>(world)),
                           copies ? fmt::format(", of which {} were recorded", ranks.size()) : ""),
               fmt::format("at most {}", most));
  }
  if (copies) return join_with_copies(std::move(ranks), world);
  Joiner joiner(ranks.size());
  for (RankTrace& rank : ranks) {
    joiner.add(rank);
    rank = {};  // its memory goes as the trace's comes
  }
  return joiner.finish();
}

Trace join_in_order(std::size_t ranks, const std::function<void(const AddRank&)>& give) {
  Joiner joiner(ranks);
  std::size_t next = 0, nodes = 0;
  give([&](RankTrace& rank) {
    nodes += rank.nodes.size();
    if (next >= ranks || rank.rank != static_cast<int>(next) || nodes > kMostTraceNodes) {
      fail_trace(rank.file, fmt::format("rank {} with {} nodes up to it", rank.rank, nodes),
                 fmt::format("rank {} of {} and at most {}", next, ranks, kMostTraceNodes));
    }
    joiner.add(rank);
    ++next;
  });
  if (next < ranks || ranks == 0) {
    fail_trace({}, fmt::format("{} ranks", next), fmt::format("{}, at least one", ranks));
  }
  return joiner.finish();
}

Trace with_possible_waits(const Trace& trace) {
  Trace out = trace;
  out.dependencies.clear();
  out.possible_waits.clear();
  auto possible = trace.possible_waits.begin();
  for (std::uint32_t n = 0; n < trace.size(); ++n) {
    out.dependency_first[n] = static_cast<std::uint32_t>(out.dependencies.size());
    const auto known = trace.dependencies_of(n);
    out.dependencies.insert(out.dependencies.end(), known.begin(), known.end());
    for (; possible != trace.possible_waits.end() && possible->node == n; ++possible) {
      out.dependencies.push_back(possible->on);
    }
  }
  out.dependency_first[trace.size()] = static_cast<std::uint32_t>(out.dependencies.size());
  return out;
}

}  // namespace lockstep
