#include "sim/traffic/flow_drain.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <functional>

namespace lockstep {

namespace {
// As in MaxMin: levels closer than this are equal.
constexpr double kEqual = 1e-12;
// Sums are added up afresh so often: what rounding leaves in them stays below kEqual.
constexpr std::uint32_t kAddUpEvery = 1024;
// Levels hardly change places from one end to the next.
constexpr std::uint32_t kOrderEvery = 4;
}  // namespace

FlowDrain::FlowDrain(const MaxMin& rates, std::span<const double> remaining, StepTime now,
                     std::size_t most_times)
    : most_times_(most_times),
      none_(static_cast<std::uint32_t>(rates.links())),
      links_(rates.links() + 1),
      details_(rates.links() + 1),
      states_(rates.flows()),
      now_(now) {
  for (std::uint32_t l = 0; l <= none_; ++l) {
    details_[l].capacity = l == none_ ? kInfinity : rates.capacity(l).base_units();
    details_[l].at = now;
    links_[l].full_at = details_[l].capacity * (1 + kEqual);
  }
  due_.fit(links_.size());
  for (FlowIndex f = 0; f < states_.size(); ++f) stride_ = std::max(stride_, rates.edges(f).size());
  links_of_.assign(states_.size() * stride_, none_);
  for (FlowIndex f = 0; f < states_.size(); ++f) {
    std::uint32_t* own = &links_of_[f * stride_];
    for (const MaxMin::Edge& edge : rates.edges(f)) {
      *own++ = edge.link;
      details_[edge.link].flows.push_back(f);
    }
    hold(f, rates.bottleneck(f), remaining[f]);
    links_[rates.bottleneck(f)].level = rates.rate(f).base_units();
  }
  for (std::uint32_t l = 0; l < none_; ++l) {
    if (details_[l].flows.empty()) continue;
    links_[l].place = static_cast<std::uint32_t>(by_level_.size());
    by_level_.push_back(l);
    if (!details_[l].held.empty()) move_ends(l);
  }
  links_[none_].place = static_cast<std::uint32_t>(by_level_.size());
  disturbed_.resize(by_level_.size() / 64 + 1);
}

double FlowDrain::clock(std::uint32_t link, StepTime now) const {
  const LinkDetail& detail = details_[link];
  if (detail.at == now) return detail.clock;
  return detail.clock + links_[link].level * to_seconds(now - detail.at).base_units();
}

void FlowDrain::advance(std::uint32_t link) {
  LinkDetail& detail = details_[link];
  if (detail.at == now_) return;
  if (!detail.held.empty()) detail.clock = clock(link, now_);
  detail.at = now_;
}

/// The link's clock must show the present.
void FlowDrain::hold(std::uint32_t flow, std::uint32_t link, double remaining) {
  LinkDetail& detail = details_[link];
  if (detail.held.empty()) {
    detail.clock = 0;
    detail.ends.clear();
  }
  State& state = states_[flow];
  state.bottleneck = link;
  state.place = static_cast<std::uint32_t>(held(detail));
  state.clock_at_end = detail.clock + remaining;
  detail.held.push_back(flow);
  const std::uint32_t* own = &links_of_[flow * stride_];
  for (std::size_t i = 0; i < stride_; ++i) {
    if (own[i] != link) detail.held.push_back(own[i]);
  }
  detail.ends.emplace_back(state.clock_at_end, flow);
  std::ranges::push_heap(detail.ends, std::greater{});
}

void FlowDrain::let_go(std::uint32_t flow) {
  State& state = states_[flow];
  std::vector<std::uint32_t>& held = details_[state.bottleneck].held;
  const std::size_t last = held.size() - stride_, at = state.place * stride_;
  if (at != last) {
    std::copy_n(&held[last], stride_, &held[at]);
    states_[held[at]].place = state.place;
  }
  held.resize(last);
  state.bottleneck = kNone;
}

void FlowDrain::disturb(std::uint32_t link) {
  const std::uint32_t place = links_[link].place;
  disturbed_[place / 64] |= std::uint64_t{1} << place % 64;
}

void FlowDrain::move_ends(std::uint32_t link) {
  if (details_[link].is_moved) return;
  details_[link].is_moved = true;
  moved_.push_back(link);
}

void FlowDrain::drop_stale_ends(LinkDetail& link, std::uint32_t index) {
  while (!link.ends.empty()) {
    const auto [at, flow] = link.ends.front();
    const State& state = states_[flow];
    if (state.bottleneck == index && state.clock_at_end == at) return;
    std::ranges::pop_heap(link.ends, std::greater{});
    link.ends.pop_back();
  }
}

void FlowDrain::take_ended(StepTime now, std::vector<FlowIndex>& ended) {
  now_ = now;
  const std::size_t first = ended.size();
  while (!due_.empty() && due_.top().key <= now) {
    const std::uint32_t link = due_.pop().index;
    LinkDetail& detail = details_[link];
    advance(link);
    // The first ends now, as do those whose end rounds to the same tick.
    for (bool is_first = true;; is_first = false) {
      drop_stale_ends(detail, link);
      if (detail.ends.empty()) break;
      const auto [at, flow] = detail.ends.front();
      const Seconds rest{std::max(0.0, at - detail.clock) / links_[link].level};
      if (!is_first && (rest > kLongestSpan || to_step_time(rest) > StepTime{})) break;
      end(flow);
      ended.push_back(flow);
    }
    move_ends(link);
  }
  std::sort(ended.begin() + static_cast<std::ptrdiff_t>(first), ended.end());
}

void FlowDrain::end(std::uint32_t flow) {
  const std::uint32_t bottleneck = states_[flow].bottleneck;
  const double rate = links_[bottleneck].level;
  let_go(flow);
  const std::uint32_t* own = &links_of_[flow * stride_];
  for (std::size_t i = 0; i < stride_; ++i) {
    if (own[i] == bottleneck) {
      disturb(bottleneck);
    } else {
      change_others(own[i], -rate, 0);
    }
  }
}

void FlowDrain::change_others(std::uint32_t link, double change, double level) {
  Link& other = links_[link];
  other.others += change;
  if (level > other.fastest) other.fastest = level;
  if (other.level < kInfinity || other.others > other.full_at) disturb(link);
}

bool FlowDrain::come_to_rest(StepTime now) {
  now_ = now;
  if (settled_++ % kAddUpEvery == 0) add_up();
  if (settled_ % kOrderEvery == 0) order_by_level();
  std::size_t left = most_times_ * by_level_.size();
  for (std::uint32_t link; (link = lowest_disturbed()) != kNone; settle_link(link)) {
    if (left-- == 0) return false;
  }
  for (const std::uint32_t link : moved_) set_due(link);
  moved_.clear();
  return true;
}

/// Sums of links, afresh.
void FlowDrain::add_up() {
  for (const std::uint32_t link : by_level_) links_[link].others = links_[link].fastest = 0;
  for (const std::uint32_t link : by_level_) {
    const std::vector<std::uint32_t>& held = details_[link].held;
    const double level = links_[link].level;
    for (std::size_t i = 0; i < held.size(); i += stride_) {
      for (std::size_t k = 1; k < stride_; ++k) change_others(held[i + k], level, level);
    }
    disturb(link);
  }
}

void FlowDrain::order_by_level() {
  bool is_sorted = true;
  for (std::size_t i = 1; i < by_level_.size() && is_sorted; ++i) {
    is_sorted = links_[by_level_[i - 1]].level <= links_[by_level_[i]].level;
  }
  if (is_sorted) return;
  found_.clear();
  for (std::uint32_t at = 0; at < by_level_.size(); ++at) {
    if ((disturbed_[at / 64] >> at % 64 & 1) != 0) found_.emplace_back(by_level_[at], 0);
  }
  std::ranges::fill(disturbed_, 0);
  // Nearly sorted already.
  for (std::size_t i = 1; i < by_level_.size(); ++i) {
    const std::uint32_t link = by_level_[i];
    const double level = links_[link].level;
    std::size_t at = i;
    for (; at > 0 && links_[by_level_[at - 1]].level > level; --at)
      by_level_[at] = by_level_[at - 1];
    by_level_[at] = link;
  }
  for (std::uint32_t at = 0; at < by_level_.size(); ++at) links_[by_level_[at]].place = at;
  for (const auto& [link, unused] : found_) disturb(link);
}

std::uint32_t FlowDrain::lowest_disturbed() {
  for (std::size_t word = 0; word < disturbed_.size(); ++word) {
    std::uint64_t& bits = disturbed_[word];
    if (bits == 0) continue;
    const std::size_t at = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
    bits &= bits - 1;
    return by_level_[at];
  }
  return kNone;
}

void FlowDrain::settle_link(std::uint32_t index) {
  const Link& link = links_[index];
  const LinkDetail& detail = details_[index];
  if (detail.held.empty()) {
    links_[index].level = kInfinity;
    if (link.others > link.full_at) search_level(index);
    return;
  }
  const double level = (detail.capacity - link.others) / static_cast<double>(held(detail));
  if (link.fastest > level * (1 + kEqual) || !(level > 0)) {
    search_level(index);
  } else {
    set_level(index, level);
  }
}

/// The level where some of the flows that other links hold may be too fast for it: it takes these
/// over.
void FlowDrain::search_level(std::uint32_t index) {
  Link& link = links_[index];
  LinkDetail& detail = details_[index];
  double slower = 0, fastest = 0, level = 0;  // slower: taken by flows that others hold
  auto free = static_cast<double>(held(detail));
  found_.clear();
  std::size_t kept = 0;
  for (const std::uint32_t flow : detail.flows) {
    const std::uint32_t bottleneck = states_[flow].bottleneck;
    if (bottleneck == kNone) continue;  // ended
    detail.flows[kept++] = flow;
    if (bottleneck == index) continue;
    found_.emplace_back(flow, links_[bottleneck].level);
    ++free;
  }
  detail.flows.resize(kept);
  while (free > 0) {
    level = (detail.capacity - slower) / free;
    const double limit = level * (1 + kEqual);
    std::size_t faster = 0;
    for (const auto& candidate : found_) {
      if (candidate.second > limit) {
        found_[faster++] = candidate;
        continue;
      }
      slower += candidate.second;
      fastest = std::max(fastest, candidate.second);
      --free;
    }
    if (faster == found_.size()) break;
    found_.resize(faster);
  }
  link.others = slower;
  link.fastest = fastest;
  if (free == 0) {
    link.level = kInfinity;
    return;
  }
  advance(index);
  if (detail.held.empty()) {
    link.level = level;
  } else {
    set_level(index, level);
    level = link.level;
  }
  if (!found_.empty()) move_ends(index);
  for (const auto& [flow, was] : found_) {
    const std::uint32_t before = states_[flow].bottleneck;
    const double rest = std::max(0.0, states_[flow].clock_at_end - clock(before, now_));
    let_go(flow);
    const std::uint32_t* own = &links_of_[flow * stride_];
    for (std::size_t i = 0; i < stride_; ++i) {
      if (own[i] == index) continue;
      if (own[i] == before) {
        links_[before].others += level;
        links_[before].fastest = std::max(links_[before].fastest, level);
        disturb(before);
        move_ends(before);
      } else {
        change_others(own[i], level - was, level);
      }
    }
    hold(flow, index, rest);
  }
}

void FlowDrain::set_level(std::uint32_t index, double level) {
  Link& link = links_[index];
  LinkDetail& detail = details_[index];
  if (std::abs(level - link.level) <= kEqual * level) return;
  if (detail.held.empty()) return;
  advance(index);
  const double change = level - link.level;
  link.level = level;
  move_ends(index);
  // change_others() of each: here is where the time goes, so that nothing is read twice.
  Link* const links = links_.data();
  std::uint64_t* const disturbed = disturbed_.data();
  const std::size_t stride = stride_;
  const std::uint32_t none = none_;
  const std::uint32_t* const end = detail.held.data() + detail.held.size();
  for (const std::uint32_t* flow = detail.held.data(); flow != end; flow += stride) {
    for (std::size_t k = 1; k < stride && flow[k] != none; ++k) {
      Link& other = links[flow[k]];
      const double others = other.others + change;
      other.others = others;
      other.fastest = std::max(other.fastest, level);
      if (other.level == kInfinity && others <= other.full_at) continue;
      disturbed[other.place / 64] |= std::uint64_t{1} << other.place % 64;
    }
  }
}

void FlowDrain::set_due(std::uint32_t index) {
  LinkDetail& detail = details_[index];
  detail.is_moved = false;
  drop_stale_ends(detail, index);
  if (detail.ends.empty()) {
    due_.remove(index);
    return;
  }
  advance(index);
  const Seconds rest{std::max(0.0, detail.ends.front().first - detail.clock) / links_[index].level};
  constexpr StepTime kLast{std::numeric_limits<std::uint64_t>::max()};
  due_.set(index, now_ + std::min(to_step_time(std::min(rest, kLongestSpan)), kLast - now_));
}

std::optional<std::vector<FlowEnd>> drain_flows(const FlowNetwork& network,
                                                std::span<const DrainedFlow> messages, StepTime now,
                                                std::size_t most_times) {
  MaxMin rates;
  for (LinkIndex link = 0; link < network.links(); ++link) rates.add_link(network.capacity(link));
  std::vector<double> amounts;
  std::vector<FlowEdge> edges;
  for (const auto& [flow, amount] : messages) {
    const std::span<const MaxMin::Edge> own = network.edges(flow);
    if (network.weight(flow) != 1 || own.size() > FlowDrain::kMostLinks) return std::nullopt;
    edges.clear();
    for (const MaxMin::Edge& edge : own) {
      if (edge.coefficient != 1) return std::nullopt;
      edges.push_back({edge.link, edge.coefficient});
    }
    rates.add_flow(edges);
    amounts.push_back(amount.base_units());
  }
  for (FlowIndex f = 0; f < rates.flows(); ++f) rates.start(f);
  rates.solve();
  FlowDrain drain(rates, amounts, now, most_times);
  std::vector<FlowEnd> ends;
  ends.reserve(messages.size());
  std::vector<FlowIndex> ended;
  while (true) {
    if (!drain.come_to_rest(now)) return std::nullopt;
    if (drain.idle()) break;
    now = drain.first_end();
    ended.clear();
    drain.take_ended(now, ended);
    for (const FlowIndex f : ended) ends.push_back({now, messages[f].flow});
  }
  std::ranges::sort(ends);
  return ends;
}

}  // namespace lockstep
