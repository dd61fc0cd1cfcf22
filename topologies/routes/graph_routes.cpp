#include "topologies/routes/graph_routes.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "topologies/routes/flow_hash.hpp"
#include "topologies/routes/merge_hops.hpp"

namespace lockstep {
namespace {

/// The decision that a vertex takes when it sends on `link`, as the layers of a tree name theirs.
HashLayer hash_layer(const ClusterGraph& graph, GraphLink link) {
  const GraphVertex& from = graph.vertices()[graph.source()[link]];
  if (from.is_port()) return HashLayer::port;
  const bool up = graph.vertices()[graph.target()[link]].level > from.level;
  if (from.level == 1) return HashLayer::leaf;
  if (from.level == 2) return up ? HashLayer::spine_up : HashLayer::spine_down;
  return from.level == 3 ? HashLayer::core : HashLayer::other;
}

std::vector<std::uint32_t> numbers_in_layers(const ClusterGraph& graph) {
  std::map<int, std::uint32_t> next;
  std::vector<std::uint32_t> out;
  out.reserve(graph.vertex_count());
  for (const GraphVertex& v : graph.vertices()) out.push_back(next[v.level]++);
  return out;
}

/// The switches of each group that has any, by group number.
std::vector<std::vector<Vertex>> groups_of(const ClusterGraph& graph) {
  std::vector<std::vector<Vertex>> groups;
  for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) {
    const int group = graph.vertices()[v].group;
    if (group < 0) continue;
    if (groups.size() <= static_cast<std::size_t>(group)) {
      groups.resize(static_cast<std::size_t>(group) + 1);
    }
    groups[static_cast<std::size_t>(group)].push_back(v);
  }
  return groups;
}

}  // namespace

GraphRoutes::GraphRoutes(std::shared_ptr<const ClusterGraph> graph, const RoutePolicy& policy)
    : graph_(std::move(graph)),
      policy_(policy),
      distances_(*graph_),
      number_(numbers_in_layers(*graph_)) {
  assert(policy.queue_pairs >= 1);
  if (policy.routing != Routing::adaptive || policy.nonminimal_share <= 0) return;
  const std::vector<std::vector<Vertex>> groups = groups_of(*graph_);
  groups_ = groups.size();
  group_distances_ = SetDistances(*graph_, groups, 0);
}

template <class Use>
bool GraphRoutes::follow_tables(Vertex from, Vertex to, Use use) const {
  const GraphLink first = graph_->first_link()[from];
  if (first == graph_->first_link()[from + 1]) return false;
  Vertex at = graph_->target()[first];
  use(first);
  for (std::uint32_t steps = 0; steps <= graph_->vertex_count(); ++steps) {
    if (at == to) return true;
    if (at < graph_->port_count()) return false;
    const GraphLink link = policy_.tables->egress(at, to);
    if (link == kNoRoute) return false;
    use(link);
    at = graph_->target()[link];
  }
  return false;
}

bool GraphRoutes::reaches(Vertex from, Vertex to) const {
  if (from == to) return true;
  if (policy_.tables) return follow_tables(from, to, [](GraphLink) {});
  return distances_.between(*graph_, from, to) <= SetDistances::kMax;
}

int GraphRoutes::switches_crossed(Vertex from, Vertex to) const {
  if (from == to) return 0;
  if (!policy_.tables) return distances_.between(*graph_, from, to) - 1;
  int links = 0;
  const bool arrives = follow_tables(from, to, [&](GraphLink) { ++links; });
  assert(arrives);
  return arrives ? links - 1 : 0;
}

void GraphRoutes::hashed(Vertex from, Vertex to, std::uint64_t queue_pair, double share,
                         std::vector<RouteHop>& out) const {
  const Goal towards = goal(to);
  const std::uint64_t flow =
      flow_hash(from, to, graph_->port_count(), queue_pair, hash_salt(policy_.hash_draw));
  for (Vertex at = from; at != to;) {
    std::uint32_t links = 0;
    GraphLink chosen = kNoRoute;
    for_next_links(*graph_, at, towards, [&](GraphLink link) {
      if (links++ == 0) chosen = link;
    });
    assert(links > 0 && "check() refuses fabrics where NICs cannot reach each other");
    if (links > 1) {
      std::uint32_t left =
          pick_link(flow, policy_.hash_seed, hash_layer(*graph_, chosen), number_[at], links);
      for_next_links(*graph_, at, towards, [&](GraphLink link) {
        if (left-- == 0) chosen = link;
      });
    }
    out.push_back({chosen, share});
    at = graph_->target()[chosen];
  }
}

int GraphRoutes::group_of(Vertex port) const {
  const GraphLink first = graph_->first_link()[port];
  return graph_->vertices()[graph_->target()[first]].group;
}

bool GraphRoutes::detours(Vertex from, Vertex to) const {
  if (groups_ < 3) return false;
  const int a = group_of(from), b = group_of(to);
  return a >= 0 && b >= 0 && a != b;
}

void GraphRoutes::detour(Vertex from, Vertex to, double share, std::vector<RouteHop>& out) const {
  const int a = group_of(from), b = group_of(to);
  std::vector<std::size_t> through;
  for (std::size_t group = 0; group < groups_; ++group) {
    if (std::cmp_equal(group, a) || std::cmp_equal(group, b)) continue;
    const auto row = group_distances_.row(group);
    const Vertex leaf = graph_->target()[graph_->first_link()[from]] - graph_->port_count();
    if (row[leaf] != SetDistances::kUnreachable) through.push_back(group);
  }
  MessageSpread first_leg(*graph_), second_leg(*graph_);
  second_leg.aim(goal(to));
  const double each = share / static_cast<double>(std::max<std::size_t>(1, through.size()));
  for (const std::size_t group : through) {
    first_leg.aim({.distance = group_distances_.row(group)});
    first_leg.add(from, each);
    first_leg.send(true, out);
    first_leg.for_arrivals([&](Vertex at, double part) { second_leg.add(at, part); });
  }
  if (through.empty()) second_leg.add(from, share);
  second_leg.send(true, out);
}

void GraphRoutes::spread(Vertex from, Vertex to, std::vector<RouteHop>& out) const {
  const bool adaptive = policy_.routing == Routing::adaptive;
  const double nonminimal = adaptive && detours(from, to) ? policy_.nonminimal_share : 0;
  const std::size_t first = out.size();
  if (nonminimal < 1) {
    MessageSpread direct(*graph_);
    direct.aim(goal(to));
    direct.add(from, 1 - nonminimal);
    direct.send(adaptive, out);
  }
  if (nonminimal <= 0) return;
  detour(from, to, nonminimal, out);
  merge_hops(out, first);
}

void GraphRoutes::route(Vertex from, Vertex to, std::uint64_t queue_pair,
                        std::vector<RouteHop>& out) const {
  if (from == to) return;
  if (policy_.tables) {
    const bool arrives = follow_tables(from, to, [&](GraphLink link) { out.push_back({link, 1}); });
    assert(arrives);
    (void)arrives;
  } else if (policy_.routing != Routing::ecmp) {
    spread(from, to, out);
  } else {
    const auto pairs = static_cast<std::uint64_t>(policy_.queue_pairs);
    const std::size_t first = out.size();
    for (std::uint64_t i = 0; i < pairs; ++i) {
      hashed(from, to, queue_pair * pairs + i, 1 / static_cast<double>(pairs), out);
    }
    if (pairs > 1) merge_hops(out, first);
  }
}

}  // namespace lockstep
