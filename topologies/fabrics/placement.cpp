#include "topologies/fabrics/placement.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace lockstep {
namespace {

struct AxisName {
  std::string_view name;
  ParallelAxis axis;
};
constexpr std::array kAxisNames{
    AxisName{"tp", ParallelAxis::tensor},
    AxisName{"dp", ParallelAxis::data},
    AxisName{"pp", ParallelAxis::pipeline},
};

/// Sizes of the runs of equal values in an ascending sequence.
class RunCounter {
 public:
  void add(int value) {
    if (runs_ == 0 || value != last_) {
      close();
      ++runs_;
      length_ = 0;
      last_ = value;
    }
    ++length_;
  }
  void close() {
    if (runs_ == 0) return;
    shortest_ = std::min(shortest_, length_);
    longest_ = std::max(longest_, length_);
  }
  [[nodiscard]] int runs() const { return runs_; }
  [[nodiscard]] int shortest() const { return shortest_; }
  [[nodiscard]] int longest() const { return longest_; }

 private:
  int runs_ = 0;
  int last_ = 0;
  int length_ = 0;
  int shortest_ = std::numeric_limits<int>::max();
  int longest_ = 0;
};

}  // namespace

std::optional<RankOrder> parse_rank_order(std::string_view text) {
  RankOrder order{};
  std::array<bool, kParallelAxes> seen{};
  constexpr std::size_t kNameLength = 2;
  if (text.size() != kParallelAxes * (kNameLength + 1) - 1) return {};
  for (std::size_t i = 0; i < kParallelAxes; ++i) {
    const std::size_t start = i * (kNameLength + 1);
    if (i > 0 && text[start - 1] != '-') return {};
    const std::string_view name = text.substr(start, kNameLength);
    const auto* found = std::ranges::find(kAxisNames, name, &AxisName::name);
    if (found == kAxisNames.end()) return {};
    order[i] = found->axis;
    bool& repeated = seen[static_cast<std::size_t>(found->axis)];
    if (repeated) return {};
    repeated = true;
  }
  return order;
}

std::string_view rank_order_rule() {
  return "tp, dp and pp in any order, innermost first, such as tp-dp-pp";
}

NicPorts nic_ports(const NodeSpec& node) {
  const int count = std::min(node.nics, node.gpus);
  if (count < 1) return {};
  return {.count = count, .bandwidth = node.nics * node.nic_bandwidth / count};
}

int domain_share(int ranks, const NodeSpec& node) {
  assert(ranks >= 1 && node.gpus >= 1);
  const int domain_nodes = node.nvlink_domain / node.gpus;
  const int job_nodes = (ranks - 1) / node.gpus + 1;
  if (domain_nodes <= 1 || job_nodes <= domain_nodes) return node.nvlink_domain;
  const int fewest = (job_nodes + domain_nodes - 1) / domain_nodes;
  for (int domains = fewest; domains <= 2 * fewest; ++domains) {
    if (job_nodes % domains == 0) return job_nodes / domains * node.gpus;
  }
  return node.nvlink_domain;
}

Placement::Placement(const PlacementSpec& spec) : spec_(spec) {
  assert(spec.tensor >= 1 && spec.data >= 1 && spec.pipeline >= 1);
  assert(spec.gpus_per_node >= 1 && spec.nvlink_domain >= 1 && spec.nic_ports >= 1);
  for (const ParallelAxis axis : spec.order) {
    strides_[static_cast<std::size_t>(axis)] = ranks_;
    assert(ranks_ <= std::numeric_limits<int>::max() / degree(axis));
    ranks_ *= degree(axis);
  }
  const int g = spec.gpus_per_node;
  if (spec.nvlink_domain < g) domains_per_node_ = (g + spec.nvlink_domain - 1) / spec.nvlink_domain;
}

int Placement::degree(ParallelAxis axis) const {
  switch (axis) {
    case ParallelAxis::tensor:
      return spec_.tensor;
    case ParallelAxis::data:
      return spec_.data;
    case ParallelAxis::pipeline:
      return spec_.pipeline;
  }
  assert(false && "an axis without a degree");
  return 1;
}

int Placement::nodes() const { return (ranks_ - 1) / spec_.gpus_per_node + 1; }

int Placement::rank(const RankCoordinates& at) const {
  assert(at.tensor >= 0 && at.tensor < spec_.tensor && at.data >= 0 && at.data < spec_.data);
  assert(at.pipeline >= 0 && at.pipeline < spec_.pipeline);
  return at.tensor * stride(ParallelAxis::tensor) + at.data * stride(ParallelAxis::data) +
         at.pipeline * stride(ParallelAxis::pipeline);
}

RankCoordinates Placement::coordinates(int rank) const {
  assert(rank >= 0 && rank < ranks_);
  return {.tensor = rank / stride(ParallelAxis::tensor) % spec_.tensor,
          .data = rank / stride(ParallelAxis::data) % spec_.data,
          .pipeline = rank / stride(ParallelAxis::pipeline) % spec_.pipeline};
}

int Placement::domain_of(int rank) const {
  const int node = node_of(rank);
  if (spec_.nvlink_domain < spec_.gpus_per_node) {
    return node * domains_per_node_ + local_gpu_of(rank) / spec_.nvlink_domain;
  }
  return node / (spec_.nvlink_domain / spec_.gpus_per_node);
}

int Placement::nic_of(int rank) const {
  return local_gpu_of(rank) * std::min(spec_.nic_ports, spec_.gpus_per_node) / spec_.gpus_per_node;
}

int Placement::turn_at_nic(int rank) const {
  // Nodes without a NIC have one port that nothing leaves by.
  const int nics = std::clamp(spec_.nic_ports, 1, spec_.gpus_per_node);
  const int first = (nic_of(rank) * spec_.gpus_per_node + nics - 1) / nics;
  return local_gpu_of(rank) - first;
}

Reach Placement::reach(int from_rank, int to_rank) const {
  if (from_rank == to_rank) return Reach::self;
  if (domain_of(from_rank) == domain_of(to_rank)) return Reach::nvlink_domain;
  return node_of(from_rank) == node_of(to_rank) ? Reach::node : Reach::fabric;
}

RankGroup Placement::group(ParallelAxis axis, const RankCoordinates& member) const {
  RankCoordinates first = member;
  switch (axis) {
    case ParallelAxis::tensor:
      first.tensor = 0;
      break;
    case ParallelAxis::data:
      first.data = 0;
      break;
    case ParallelAxis::pipeline:
      first.pipeline = 0;
      break;
  }
  return {.first = rank(first), .count = degree(axis), .stride = stride(axis)};
}

GroupSpread Placement::spread(const RankGroup& group) const {
  std::vector<int> members(static_cast<std::size_t>(group.count));
  for (int member = 0; member < group.count; ++member) {
    members[static_cast<std::size_t>(member)] = member * group.stride;
  }
  return spread(group.first, members);
}

GroupSpread Placement::spread(int first, const std::vector<int>& members) const {
  RunCounter by_node, by_domain;
  for (const int member : members) {
    by_node.add(node_of(first + member));
    by_domain.add(domain_of(first + member));
  }
  by_node.close();
  by_domain.close();
  return {.nodes = by_node.runs(),
          .domains = by_domain.runs(),
          .per_node_min = by_node.shortest(),
          .per_node_max = by_node.longest(),
          .per_domain_min = by_domain.shortest(),
          .per_domain_max = by_domain.longest()};
}

int Placement::period() const {
  const int g = spec_.gpus_per_node, domain = spec_.nvlink_domain;
  return domain < g ? g : domain / g * g;
}

std::vector<GroupSpread> Placement::spreads(const GroupFamily& family) const {
  assert(!family.members.empty());
  const int g = spec_.gpus_per_node, domain = spec_.nvlink_domain;
  const int period = this->period();
  std::set<int> firsts{family.first % period};
  for (const GroupFamily::Repeat& repeat : family.repeats) {
    const int copies = std::min(repeat.count, period / std::gcd(period, repeat.stride));
    std::set<int> moved;
    for (const int first : firsts) {
      for (std::int64_t copy = 0; copy < copies; ++copy) {
        moved.insert(static_cast<int>((first + copy * repeat.stride) % period));
      }
    }
    firsts = std::move(moved);
  }
  // Nodes and domains begin at multiples of `unit`. Where members are whole units apart, a group
  // crosses the same borders wherever in a unit its first member is.
  int unit = domain < g ? std::gcd(g, domain) : g;
  for (const int member : family.members) unit = std::gcd(unit, member);
  std::vector<GroupSpread> ways;
  int last_unit = -1;
  for (const int first : firsts) {
    if (first / unit == last_unit) continue;
    last_unit = first / unit;
    const GroupSpread way = spread(first, family.members);
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  }
  return ways;
}

Reach Placement::next_stage_reach(const RankCoordinates& from) const {
  RankCoordinates to = from;
  to.pipeline = (from.pipeline + 1) % spec_.pipeline;
  return reach(rank(from), rank(to));
}

}  // namespace lockstep
