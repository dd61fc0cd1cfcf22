#include "sim/core/max_min.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <ranges>
#include <utility>

namespace lockstep {

namespace {
// Rates closer than this are equal: far above the rounding of a sum over a link's flows (about
// 1e-16 a term), far below anything that a picosecond clock can tell apart within a second.
constexpr double kSame = 1e-12;
constexpr std::uint32_t kNoEdge = std::numeric_limits<std::uint32_t>::max();
}  // namespace

LinkIndex MaxMin::add_link(BytesPerSecond capacity) {
  assert(std::isfinite(capacity.base_units()) && capacity > BytesPerSecond{});
  Link link;
  link.capacity = capacity.base_units();
  links_.push_back(link);
  edge_of_link_.push_back(0);
  heap_.fit(links_.size());
  return static_cast<LinkIndex>(links_.size() - 1);
}

FlowIndex MaxMin::add_flow(std::span<const FlowEdge> edges) {
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
  counted_.resize((edges_.size() + 63) / 64);
  flows_.emplace_back();
  details_.push_back({.first_edge = first, .end_edge = static_cast<std::uint32_t>(edges_.size())});
  return static_cast<FlowIndex>(flows_.size() - 1);
}

void MaxMin::set_capacity(LinkIndex link, BytesPerSecond capacity) {
  assert(std::isfinite(capacity.base_units()) && capacity > BytesPerSecond{});
  if (links_[link].capacity == capacity.base_units()) return;
  links_[link].capacity = capacity.base_units();
  ++capacities_;
  resized_.push_back(link);
}

void MaxMin::set_weight(FlowIndex flow, double weight) {
  assert(flows_[flow].seen == 0 && "its links have its old weight");
  assert(std::isfinite(weight) && weight > 0);
  details_[flow].weight = weight;
}

/// Moves a full list to the end of slots_. Flows known so far fit at once; with more added later
/// the list at least doubles, so that what it leaves behind stays below what it takes.
void MaxMin::make_room(Link& link) {
  const std::uint32_t room = std::max(link.degree, 2 * link.room);
  const std::size_t first = slots_.size();
  if (slots_.capacity() < first + room) slots_.reserve(std::max(edges_.size(), 2 * first + room));
  slots_.resize(first + room);
  held_.resize(slots_.size() / 64 + 1);
  std::copy_n(&slots_[link.first], link.size, &slots_[first]);
  const Link before = link;
  link.first = static_cast<std::uint32_t>(first);
  link.room = room;
  for (std::uint32_t slot = 0; slot < link.size; ++slot) {
    if (marked_held(before, slot)) mark_held(link, slot);
  }
}

void MaxMin::start(FlowIndex flow) {
  assert(flows_[flow].seen == 0 && "started twice");
  const FlowDetail& detail = details_[flow];
  for (std::uint32_t e = detail.first_edge; e < detail.end_edge; ++e) {
    Edge& edge = edges_[e];
    Link& link = links_[edge.link];
    if (link.size == link.room) make_room(link);
    edge.slot = link.size++;
    slots_[link.first + edge.slot] = {flow, e, detail.weight * edge.coefficient};
    if (edge.slot == 0) continue;
    count(e);
    if (edge.slot > 1) continue;
    const Slot& other = slots_[link.first];
    link.settled = other.coefficient * flows_[other.flow].seen;
    count(other.edge);
  }
  started_.push_back(flow);
}

void MaxMin::stop(FlowIndex flow, Bytes moved) {
  Flow& state = flows_[flow];
  assert(state.seen > 0 && !state.lifted() && "stopped before it was solved for");
  const FlowDetail& detail = details_[flow];
  discount_all(detail);
  for (std::uint32_t e = detail.first_edge; e < detail.end_edge; ++e) {
    const Edge& edge = edges_[e];
    Link& link = links_[edge.link];
    link.carried += edge.coefficient * moved.base_units();
    const bool full = link.level != kInfinity;
    if (full) unmark_held(link, edge.slot);
    if (--link.size == 0) {
      link.level = kInfinity;
      continue;
    }
    const Slot last = slots_[link.first + link.size];
    slots_[link.first + edge.slot] = last;
    edges_[last.edge].slot = edge.slot;
    if (full && edge.slot != link.size && marked_held(link, link.size)) {
      mark_held(link, edge.slot);
      unmark_held(link, link.size);
    }
    if (link.size == 1) {
      discount(slots_[link.first].edge);
    } else {
      link.settled -= detail.weight * edge.coefficient * state.seen;
    }
    if (full) disturbed_.push_back(edge.link);
  }
  state.seen = 0;
  state.bottleneck = kNoLink;
}

const std::vector<FlowIndex>& MaxMin::solve() {
  changed_.clear();
  begin_pass();
  if (disturbed_.empty() && resized_.empty() && settle_where_room()) return changed_;
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

std::uint64_t MaxMin::part_of_word(std::size_t word, std::uint32_t first, std::uint32_t last) {
  std::uint64_t bits = ~std::uint64_t{};
  if (word == first / 64) bits &= ~std::uint64_t{} << first % 64;
  if (word == last / 64) bits &= (std::uint64_t{1} << last % 64) - 1;
  return bits;
}

void MaxMin::discount_all(const FlowDetail& detail) {
  const std::uint32_t first = detail.first_edge, last = detail.end_edge;
  for (std::size_t word = first / 64; word <= (last - 1) / 64; ++word) {
    counted_[word] &= ~part_of_word(word, first, last);
  }
}

bool MaxMin::shares_all(const FlowDetail& detail) const {
  const std::uint32_t first = detail.first_edge, last = detail.end_edge;
  for (std::size_t word = first / 64; word <= (last - 1) / 64; ++word) {
    if ((~counted_[word] & part_of_word(word, first, last)) != 0) return false;
  }
  return true;
}

template <typename Visit>
void MaxMin::for_each_counted(const FlowDetail& detail, Visit&& visit) {
  const std::uint32_t first = detail.first_edge, last = detail.end_edge;
  if (shares_all(detail)) {
    for (std::uint32_t e = first; e < last; ++e) visit(e);
    return;
  }
  for (std::size_t word = first / 64; word <= (last - 1) / 64; ++word) {
    std::uint64_t bits = counted_[word] & part_of_word(word, first, last);
    for (; bits != 0; bits &= bits - 1) {
      visit(static_cast<std::uint32_t>(64 * word) +
            static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
}

bool MaxMin::alone(FlowIndex flow) const {
  const std::uint32_t first = details_[flow].first_edge, last = details_[flow].end_edge;
  for (std::size_t word = first / 64; word <= (last - 1) / 64; ++word) {
    if ((counted_[word] & part_of_word(word, first, last)) != 0) return false;
  }
  return true;
}

/// Of edges whose links tie, the first: its own pace, where that is what the NIC carries too.
std::uint32_t MaxMin::lowest_edge(FlowDetail& detail) {
  if (detail.lowest_of == capacities_) return detail.lowest;
  double lowest = kInfinity;
  for (std::uint32_t e = detail.first_edge; e < detail.end_edge; ++e) {
    const double level = filled_by(detail, edges_[e]);
    if (level >= lowest * (1 - kSame)) continue;
    lowest = level;
    detail.lowest = e;
  }
  detail.lowest_of = capacities_;
  return detail.lowest;
}

/// The same among the links that the flow has to itself; kNoEdge where it has none.
std::uint32_t MaxMin::lowest_alone(FlowDetail& detail) {
  if (shares_all(detail)) return kNoEdge;
  const std::uint32_t of_all = lowest_edge(detail);
  if (!counted(of_all)) return of_all;
  const double least = filled_by(detail, edges_[of_all]);
  std::uint32_t found = kNoEdge;
  double lowest = kInfinity;
  for (std::uint32_t e = detail.first_edge; e < detail.end_edge && lowest > least; ++e) {
    if (counted(e)) continue;
    const double level = filled_by(detail, edges_[e]);
    if (level >= lowest * (1 - kSame)) continue;
    lowest = level;
    found = e;
  }
  return found;
}

void MaxMin::settle_alone(FlowIndex flow) {
  FlowDetail& detail = details_[flow];
  const Edge& lowest = edges_[lowest_edge(detail)];
  Flow& state = flows_[flow];
  detail.previous = 0;
  state.seen = filled_by(detail, lowest);
  state.bottleneck = lowest.link;
  links_[lowest.link].level = state.seen;
  mark_held(links_[lowest.link], lowest.slot);
  changed_.push_back(flow);
}

/// Most starts slow nobody down: each flow is held by a link that it has to itself, and the links
/// that it shares have room for that. None of them then needs the heap. False, and all as before,
/// where one does.
bool MaxMin::settle_where_room() {
  taken_.clear();
  fitting_.clear();
  bool fits = true;
  for (std::size_t i = 0; fits && i < started_.size(); ++i) {
    FlowDetail& detail = details_[started_[i]];
    const std::uint32_t lowest = lowest_edge(detail);
    const double level = filled_by(detail, edges_[lowest]);
    const std::size_t before = taken_.size();
    fits = !counted(lowest);
    for_each_counted(detail, [&](std::uint32_t e) {
      Link& link = links_[edges_[e].link];
      const double settled = link.settled + detail.weight * edges_[e].coefficient * level;
      taken_.push_back({edges_[e].link, std::exchange(link.settled, settled)});
      fits = fits && settled <= link.capacity * (1 - kSame);
    });
    if (taken_.size() > before) fitting_.push_back({level, edges_[lowest].link, started_[i]});
  }
  if (!fits) {
    for (const Taken& taken : std::views::reverse(taken_)) {
      links_[taken.link].settled = taken.settled;
    }
    return false;
  }
  // In the order in which the water would reach them, after those that share nothing.
  for (const FlowIndex flow : started_) {
    if (fitting_.empty() || alone(flow)) settle_alone(flow);
  }
  std::ranges::sort(fitting_, {}, [](const Fitting& f) { return std::pair(f.level, f.link); });
  for (const Fitting& fitting : fitting_) settle_alone(fitting.flow);
  started_.clear();
  return true;
}

void MaxMin::begin_pass() {
  water_ = 0;
  if (++pass_ != 0) return;
  for (Flow& flow : flows_) flow.final_in = 0;
  pass_ = 1;
}

/// Takes a flow out of what its links count as settled, until the water reaches its level. Of the
/// links that carry nobody else the lowest stands for all: their keys are exact, not bounds, and
/// all of them leave the heap with this flow. On a large fabric most links are such.
void MaxMin::lift(FlowIndex flow) {
  Flow& state = flows_[flow];
  FlowDetail& detail = details_[flow];
  const std::uint32_t own = lowest_alone(detail);
  const double level = state.seen;
  detail.previous = level;
  state.seen = kInfinity;
  state.bottleneck = kNoLink;
  for_each_counted(detail, [&](std::uint32_t e) {
    const Edge& edge = edges_[e];
    Link& link = links_[edge.link];
    const double coefficient = detail.weight * edge.coefficient;
    link.settled -= coefficient * level;
    link.lifted_weight += coefficient;
    ++link.lifted;
    touch(edge.link);
  });
  if (own == kNoEdge) return;
  Link& link = links_[edges_[own].link];
  link.settled = 0;
  link.lifted_weight = detail.weight * edges_[own].coefficient;
  link.lifted = 1;
  count(own);
  touch(edges_[own].link);
}

/// Lifts the flows that a bottleneck held: it is full no longer. Those that this pass has settled
/// there stay, and it stays known as full, or their later stops would free nothing: where shares
/// tie up to rounding, a flow may give way by a hair after a link has filled.
void MaxMin::open(LinkIndex index) {
  Link& link = links_[index];
  if (link.level == kInfinity) return;
  opened_.clear();
  bool holds = false;
  const std::uint32_t end = link.first + link.size;
  for (std::size_t word = link.first / 64; word <= (end - 1) / 64; ++word) {
    std::uint64_t bits = held_[word] & part_of_word(word, link.first, end);
    for (; bits != 0; bits &= bits - 1) {
      const std::size_t at = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
      const FlowIndex flow = slots_[at].flow;
      const Flow& state = flows_[flow];
      const bool held = state.bottleneck == index && !state.lifted();
      if (held && state.final_in == pass_) {
        holds = true;
        continue;
      }
      held_[word] &= ~(bits & -bits);
      if (held) opened_.push_back(flow);
    }
  }
  for (std::size_t i = 0; i < opened_.size(); ++i) {
    load_ahead(i, opened_.size(), [this](std::size_t k) { return opened_[k]; });
    lift(opened_[i]);
  }
  if (!holds) link.level = kInfinity;
}

/// A link of another capacity: those that it held may rise or fall, and where it held nobody but
/// has become too small, it is queued under the level that it would have if all its flows were as
/// fast.
void MaxMin::open_resized(LinkIndex index) {
  Link& link = links_[index];
  open(index);
  double load = 0, weight = 0;
  for (const Slot& slot : slots(link)) {
    const Flow& state = flows_[slot.flow];
    if (!state.lifted()) load += slot.coefficient * state.seen;
    weight += slot.coefficient;
  }
  if (load <= link.capacity * (1 + kSame)) return;
  heap_.lower(index, link.capacity / weight);
  if (link.size > 1) return;
  link.settled = load;
  count(slots(link).front().edge);
}

void MaxMin::touch(LinkIndex index) {
  if (links_[index].touched) return;
  links_[index].touched = true;
  touched_.push_back(index);
}

/// Gives each link that lift() has touched a key: a lower bound of the level at which it fills,
/// since flows that are not lifted can only fall. The bound holds until the link is popped, for
/// each lifted flow that settles elsewhere does so at or below it.
void MaxMin::queue_touched() {
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
/// holds are winners_. False where every flow gets less elsewhere.
bool MaxMin::find_level(Link& link, double& level) {
  const std::size_t size = link.size;
  if (candidates_.size() < size) {
    candidates_.resize(2 * size);
    fixed_.resize(2 * size);
  }
  // Which are fixed changes from slot to slot: a branch for each would be guessed wrong.
  Candidate* const candidates = candidates_.data();
  double* const taken = fixed_.data();
  const Flow* const flows = flows_.data();
  const double water = water_;
  const std::uint32_t pass = pass_;
  std::size_t count = 0;
  std::size_t fixed_count = 0;
  std::uint32_t at = 0;
  for (const Slot& slot : slots(link)) {
    const Flow& flow = flows[slot.flow];
    const std::size_t is_fixed = static_cast<std::size_t>(flow.final_in == pass) |
                                 static_cast<std::size_t>(flow.seen <= water);
    taken[fixed_count] = slot.coefficient * flow.seen;
    fixed_count += is_fixed;
    candidates[count] = {slot.flow, at++, slot.coefficient, flow.seen};
    count += 1 - is_fixed;
  }
  double fixed = 0;
  for (std::size_t i = 0; i < fixed_count; ++i) fixed += taken[i];
  double elsewhere = 0;  // of candidates that are not lifted
  double weight = 0;
  double slowest = kInfinity;  // of candidates
  for (std::size_t i = 0; i < count; ++i) {
    const double seen = candidates[i].seen, coefficient = candidates[i].coefficient;
    elsewhere += seen < kInfinity ? coefficient * seen : 0.0;
    weight += coefficient;
    slowest = seen < slowest ? seen : slowest;
  }
  link.settled = fixed + elsewhere;  // afresh: running sums drift

  while (count > 0) {
    level = (link.capacity - fixed) / weight;
    const double limit = level * (1 + kSame);
    if (slowest > limit) {
      winners_ = {candidates, count};
      return true;
    }
    slowest = kInfinity;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Candidate candidate = candidates[i];
      const bool gone = candidate.seen <= limit;
      fixed += gone ? candidate.coefficient * candidate.seen : 0.0;
      weight -= gone ? candidate.coefficient : 0.0;
      candidates[kept] = candidate;
      kept += gone ? 0 : 1;
    }
    count = kept;
    for (std::size_t i = 0; i < count; ++i) slowest = std::min(slowest, candidates[i].seen);
  }
  return false;
}

/// The water reaches a link: its candidates are held there, and what they give up elsewhere is
/// free.
void MaxMin::raise_to(LinkIndex index, double level) {
  water_ = level;
  links_[index].level = level;
  freed_.clear();
  for (std::size_t i = 0; i < winners_.size(); ++i) {
    load_ahead(i, winners_.size(), [this](std::size_t at) { return winners_[at].flow; });
    mark_held(links_[index], winners_[i].slot);
    settle(winners_[i].flow, index, level);
  }
  for (const LinkIndex link : freed_) open(link);
}

void MaxMin::settle(FlowIndex flow, LinkIndex bottleneck, double level) {
  Flow& state = flows_[flow];
  FlowDetail& detail = details_[flow];
  const bool was_lifted = state.lifted();
  const double before = was_lifted ? detail.previous : state.seen;
  const double now = std::abs(level - before) <= kSame * level ? before : level;
  if (state.bottleneck != kNoLink && state.bottleneck != bottleneck &&
      links_[state.bottleneck].size == 1) {
    Link& left = links_[state.bottleneck];  // it held nobody else
    left.level = kInfinity;
    unmark_held(left, 0);
  }
  detail.previous = before;
  state.seen = now;
  state.bottleneck = bottleneck;
  state.final_in = pass_;
  if (now != before) changed_.push_back(flow);
  const bool slower = now < before;
  for_each_counted(detail, [&](std::uint32_t e) {
    const Edge& edge = edges_[e];
    Link& link = links_[edge.link];
    const double coefficient = detail.weight * edge.coefficient;
    if (link.size == 1) {
      discount(e);
    } else if (slower && link.level != kInfinity && edge.link != bottleneck) {
      freed_.push_back(edge.link);
    }
    if (!was_lifted) {
      link.settled += coefficient * (now - before);
      return;
    }
    link.settled += coefficient * now;
    link.lifted_weight -= coefficient;
    if (--link.lifted > 0) return;
    link.lifted_weight = 0;
    // Nobody is left to raise here. The link stays queued only where others must give way.
    if (link.settled <= link.capacity * (1 + kSame)) heap_.remove(edge.link);
  });
}

BytesPerSecond MaxMin::load(LinkIndex link) const {
  double sum = 0;
  for (const Slot& slot : slots(links_[link])) sum += slot.coefficient * flows_[slot.flow].seen;
  return BytesPerSecond{sum};
}

}  // namespace lockstep
