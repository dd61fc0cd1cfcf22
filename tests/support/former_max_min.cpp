#include "tests/support/former_max_min.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lockstep::test {

namespace {
// Rates closer than this are equal: far above the rounding of a sum over a link's flows (about
// 1e-16 a term), far below anything that a picosecond clock can tell apart within a second.
constexpr double kSame = 1e-12;
constexpr std::uint32_t kNoEdge = std::numeric_limits<std::uint32_t>::max();
}  // namespace

LinkIndex FormerMaxMin::add_link(BytesPerSecond capacity) {
  assert(std::isfinite(capacity.base_units()) && capacity > BytesPerSecond{});
  Link link;
  link.capacity = capacity.base_units();
  links_.push_back(link);
  edge_of_link_.push_back(0);
  heap_.fit(links_.size());
  return static_cast<LinkIndex>(links_.size() - 1);
}

FlowIndex FormerMaxMin::add_flow(std::span<const FlowEdge> edges) {
  assert(!edges.empty() && "a flow without links would never end");
  const auto first = static_cast<std::uint32_t>(edges_.size());
  for (const auto& [link, coefficient] : edges) {
    assert(link < links_.size() && std::isfinite(coefficient) && coefficient > 0);
    std::uint32_t& known = edge_of_link_[link];
    if (known >= first && known < edges_.size() && edges_[known].link == link) {
      edges_[known].coefficient += coefficient;
      continue;
    }
    known = static_cast<std::uint32_t>(edges_.size());
    edges_.push_back({link, 0, coefficient});
    ++links_[link].degree;
  }
  first_edge_.push_back(static_cast<std::uint32_t>(edges_.size()));
  counted_.resize((edges_.size() + 63) / 64);
  flows_.emplace_back();
  return static_cast<FlowIndex>(flows_.size() - 1);
}

void FormerMaxMin::set_capacity(LinkIndex link, BytesPerSecond capacity) {
  assert(std::isfinite(capacity.base_units()) && capacity > BytesPerSecond{});
  if (links_[link].capacity == capacity.base_units()) return;
  links_[link].capacity = capacity.base_units();
  ++capacities_;
  resized_.push_back(link);
}

void FormerMaxMin::set_weight(FlowIndex flow, double weight) {
  assert(flows_[flow].level == 0 && "its links have its old weight");
  assert(std::isfinite(weight) && weight > 0);
  flows_[flow].weight = weight;
}

/// Moves a full list to the end of slots_. Flows known so far fit at once; with more added later
/// the list at least doubles, so that what it leaves behind stays below what it takes.
void FormerMaxMin::make_room(Link& link) {
  const std::uint32_t room = std::max(link.degree, 2 * link.room);
  const std::size_t first = slots_.size();
  if (slots_.capacity() < first + room) slots_.reserve(std::max(edges_.size(), 2 * first + room));
  slots_.resize(first + room);
  std::copy_n(&slots_[link.first], link.size, &slots_[first]);
  link.first = static_cast<std::uint32_t>(first);
  link.room = room;
}

void FormerMaxMin::start(FlowIndex flow) {
  const Flow& state = flows_[flow];
  assert(state.level == 0 && "started twice");
  for (std::uint32_t e = first_edge_[flow]; e < first_edge_[flow + 1]; ++e) {
    Edge& edge = edges_[e];
    Link& link = links_[edge.link];
    if (link.size == link.room) make_room(link);
    edge.slot = link.size++;
    slots_[link.first + edge.slot] = {flow, e, state.weight * edge.coefficient};
    if (edge.slot == 0) continue;
    count(e);
    if (edge.slot > 1) continue;
    const Slot& other = slots_[link.first];
    link.settled = other.coefficient * flows_[other.flow].level;
    count(other.edge);
  }
  started_.push_back(flow);
}

void FormerMaxMin::stop(FlowIndex flow) {
  Flow& state = flows_[flow];
  assert(state.level > 0 && "stopped before it was solved for");
  for (std::uint32_t e = first_edge_[flow]; e < first_edge_[flow + 1]; ++e) {
    const Edge& edge = edges_[e];
    Link& link = links_[edge.link];
    discount(e);
    if (--link.size == 0) {
      link.level = kInfinity;
      continue;
    }
    const Slot last = slots_[link.first + link.size];
    slots_[link.first + edge.slot] = last;
    edges_[last.edge].slot = edge.slot;
    if (link.size == 1) {
      discount(slots_[link.first].edge);
    } else {
      link.settled -= state.weight * edge.coefficient * state.level;
    }
    if (link.level != kInfinity) disturbed_.push_back(edge.link);
  }
  state.level = 0;
  state.seen = 0;
  state.bottleneck = kNoLink;
}

const std::vector<FlowIndex>& FormerMaxMin::solve() {
  changed_.clear();
  begin_pass();
  for (const FlowIndex flow : started_) alone(flow) ? settle_alone(flow) : lift(flow);
  started_.clear();
  if (touched_.empty() && disturbed_.empty() && resized_.empty()) return changed_;

  for (const LinkIndex link : disturbed_) open(link);
  disturbed_.clear();
  for (const LinkIndex link : resized_) open_resized(link);
  resized_.clear();
  for (queue_touched(); !heap_.empty(); queue_touched()) {
    const auto [key, index] = heap_.pop();
    double level = 0;
    if (!find_level(links_[index], level)) continue;
    level = std::max(level, water_);
    if (level > key * (1 + kSame) && !heap_.empty() && heap_.top().key < level) {
      assert(links_[index].size > 1 && "it stands for others, which are not in the heap");
      heap_.set(index, level);
      continue;
    }
    raise_to(index, level);
  }
  return changed_;
}

std::uint64_t FormerMaxMin::edges_in_word(std::size_t word, std::uint32_t first,
                                          std::uint32_t last) {
  std::uint64_t bits = ~std::uint64_t{};
  if (word == first / 64) bits &= ~std::uint64_t{} << first % 64;
  if (word == last / 64) bits &= (std::uint64_t{1} << last % 64) - 1;
  return bits;
}

template <typename Visit>
void FormerMaxMin::for_each_counted(FlowIndex flow, Visit&& visit) {
  const std::uint32_t first = first_edge_[flow], last = first_edge_[flow + 1];
  for (std::size_t word = first / 64; word <= (last - 1) / 64; ++word) {
    std::uint64_t bits = counted_[word] & edges_in_word(word, first, last);
    for (; bits != 0; bits &= bits - 1) {
      visit(static_cast<std::uint32_t>(64 * word) +
            static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
}

bool FormerMaxMin::alone(FlowIndex flow) const {
  const std::uint32_t first = first_edge_[flow], last = first_edge_[flow + 1];
  for (std::size_t word = first / 64; word <= (last - 1) / 64; ++word) {
    if ((counted_[word] & edges_in_word(word, first, last)) != 0) return false;
  }
  return true;
}

/// Of edges whose links tie, the first: its own pace, where that is what the NIC carries too.
std::uint32_t FormerMaxMin::lowest_edge(FlowIndex flow) {
  Flow& state = flows_[flow];
  if (state.lowest_of == capacities_) return state.lowest;
  double lowest = kInfinity;
  for (std::uint32_t e = first_edge_[flow]; e < first_edge_[flow + 1]; ++e) {
    const double level = filled_by(state, edges_[e]);
    if (level >= lowest * (1 - kSame)) continue;
    lowest = level;
    state.lowest = e;
  }
  state.lowest_of = capacities_;
  return state.lowest;
}

/// The same among the links that the flow has to itself; kNoEdge where it has none.
std::uint32_t FormerMaxMin::lowest_alone(FlowIndex flow) {
  const std::uint32_t of_all = lowest_edge(flow);
  if (!counted(of_all)) return of_all;
  const Flow& state = flows_[flow];
  const double least = filled_by(state, edges_[of_all]);
  std::uint32_t found = kNoEdge;
  double lowest = kInfinity;
  for (std::uint32_t e = first_edge_[flow]; e < first_edge_[flow + 1] && lowest > least; ++e) {
    if (counted(e)) continue;
    const double level = filled_by(state, edges_[e]);
    if (level >= lowest * (1 - kSame)) continue;
    lowest = level;
    found = e;
  }
  return found;
}

void FormerMaxMin::settle_alone(FlowIndex flow) {
  const Edge& lowest = edges_[lowest_edge(flow)];
  Flow& state = flows_[flow];
  state.previous = 0;
  state.level = filled_by(state, lowest);
  state.bottleneck = lowest.link;
  state.seen = state.level;
  links_[lowest.link].level = state.level;
  changed_.push_back(flow);
}

void FormerMaxMin::begin_pass() {
  water_ = 0;
  if (++pass_ != 0) return;
  for (Flow& flow : flows_) flow.final_in = 0;
  pass_ = 1;
}

/// Takes a flow out of what its links count as settled, until the water reaches its level. Of the
/// links that carry nobody else the lowest stands for all: their keys are exact, not bounds, and
/// all of them leave the heap with this flow. On a large fabric most links are such.
void FormerMaxMin::lift(FlowIndex flow) {
  Flow& state = flows_[flow];
  const std::uint32_t own = lowest_alone(flow);
  state.previous = state.level;
  state.seen = kInfinity;
  state.bottleneck = kNoLink;
  for_each_counted(flow, [&](std::uint32_t e) {
    const Edge& edge = edges_[e];
    Link& link = links_[edge.link];
    link.settled -= state.weight * edge.coefficient * state.level;
    link.lifted_weight += state.weight * edge.coefficient;
    ++link.lifted;
    touch(edge.link);
  });
  if (own == kNoEdge) return;
  Link& link = links_[edges_[own].link];
  link.settled = 0;
  link.lifted_weight = state.weight * edges_[own].coefficient;
  link.lifted = 1;
  count(own);
  touch(edges_[own].link);
}

/// Lifts the flows that a bottleneck held: it is full no longer. Those that this pass has settled
/// there stay, and it stays known as full, or their later stops would free nothing: where shares
/// tie up to rounding, a flow may give way by a hair after a link has filled.
void FormerMaxMin::open(LinkIndex index) {
  Link& link = links_[index];
  if (link.level == kInfinity) return;
  bool holds = false;
  for (const Slot& slot : slots(link)) {
    const Flow& state = flows_[slot.flow];
    if (state.bottleneck != index || state.lifted()) continue;
    if (state.final_in == pass_) {
      holds = true;
    } else {
      lift(slot.flow);
    }
  }
  if (!holds) link.level = kInfinity;
}

/// A link of another capacity: those that it held may rise or fall, and where it held nobody but
/// has become too small, it is queued under the level that it would have if all its flows were as
/// fast.
void FormerMaxMin::open_resized(LinkIndex index) {
  Link& link = links_[index];
  open(index);
  double load = 0, weight = 0;
  for (const Slot& slot : slots(link)) {
    const Flow& state = flows_[slot.flow];
    if (!state.lifted()) load += slot.coefficient * state.level;
    weight += slot.coefficient;
  }
  if (load <= link.capacity * (1 + kSame)) return;
  heap_.lower(index, link.capacity / weight);
  if (link.size > 1) return;
  link.settled = load;
  count(slots(link).front().edge);
}

void FormerMaxMin::touch(LinkIndex index) {
  if (links_[index].touched) return;
  links_[index].touched = true;
  touched_.push_back(index);
}

/// Gives each link that lift() has touched a key: a lower bound of the level at which it fills,
/// since flows that are not lifted can only fall. The bound holds until the link is popped, for
/// each lifted flow that settles elsewhere does so at or below it.
void FormerMaxMin::queue_touched() {
  constexpr std::size_t kWorthHeapify = 64;
  const bool many = heap_.empty() && touched_.size() > kWorthHeapify;
  for (const LinkIndex index : touched_) {
    Link& link = links_[index];
    link.touched = false;
    assert(link.lifted > 0);
    const double key = lower_bound(link);
    many ? heap_.add(index, key) : heap_.lower(index, key);
  }
  touched_.clear();
  if (many) heap_.order();
}

/// The level at which the link fills, given what its flows get elsewhere; the flows that it then
/// holds stay in candidates_. False where every flow gets less elsewhere.
bool FormerMaxMin::find_level(Link& link, double& level) {
  candidates_.clear();
  double fixed = 0;
  double elsewhere = 0;  // of candidates that are not lifted
  double weight = 0;
  for (const Slot& slot : slots(link)) {
    const Flow& flow = flows_[slot.flow];
    if (flow.final_in == pass_ || flow.seen <= water_) {
      fixed += slot.coefficient * flow.seen;
      continue;
    }
    candidates_.push_back({slot.flow, slot.coefficient, flow.seen});
    weight += slot.coefficient;
    if (!flow.lifted()) elsewhere += slot.coefficient * flow.seen;
  }
  link.settled = fixed + elsewhere;  // afresh: running sums drift

  while (!candidates_.empty()) {
    level = (link.capacity - fixed) / weight;
    const double limit = level * (1 + kSame);
    std::size_t kept = 0;
    for (const Candidate& candidate : candidates_) {
      if (candidate.seen <= limit) {
        fixed += candidate.coefficient * candidate.seen;
        weight -= candidate.coefficient;
      } else {
        candidates_[kept++] = candidate;
      }
    }
    if (kept == candidates_.size()) return true;
    candidates_.resize(kept);
  }
  return false;
}

/// The water reaches a link: its candidates are held there, and what they give up elsewhere is
/// free.
void FormerMaxMin::raise_to(LinkIndex index, double level) {
  water_ = level;
  links_[index].level = level;
  for (const Candidate& candidate : candidates_) settle(candidate.flow, index, level);
  for (const Candidate& candidate : candidates_) {
    const Flow& flow = flows_[candidate.flow];
    if (flow.level >= flow.previous) continue;
    for_each_counted(candidate.flow, [&](std::uint32_t e) {
      const LinkIndex link = edges_[e].link;
      if (link != index && links_[link].level != kInfinity) open(link);
    });
  }
}

void FormerMaxMin::settle(FlowIndex flow, LinkIndex bottleneck, double level) {
  Flow& state = flows_[flow];
  const bool was_lifted = state.lifted();
  const double before = was_lifted ? state.previous : state.level;
  const double now = std::abs(level - before) <= kSame * level ? before : level;
  if (state.bottleneck != kNoLink && state.bottleneck != bottleneck &&
      links_[state.bottleneck].size == 1) {
    links_[state.bottleneck].level = kInfinity;  // it held nobody else
  }
  state.previous = before;
  state.level = now;
  state.seen = now;
  state.bottleneck = bottleneck;
  state.final_in = pass_;
  if (now != before) changed_.push_back(flow);
  for_each_counted(flow, [&](std::uint32_t e) {
    const Edge& edge = edges_[e];
    Link& link = links_[edge.link];
    if (link.size == 1) discount(e);
    if (!was_lifted) {
      link.settled += state.weight * edge.coefficient * (now - before);
      return;
    }
    link.settled += state.weight * edge.coefficient * now;
    link.lifted_weight -= state.weight * edge.coefficient;
    if (--link.lifted > 0) return;
    link.lifted_weight = 0;
    // Nobody is left to raise here. The link stays queued only where others must give way.
    if (link.settled <= link.capacity * (1 + kSame)) heap_.remove(edge.link);
  });
}

BytesPerSecond FormerMaxMin::load(LinkIndex link) const {
  double sum = 0;
  for (const Slot& slot : slots(links_[link])) sum += slot.coefficient * flows_[slot.flow].level;
  return BytesPerSecond{sum};
}

}  // namespace lockstep::test
