#include "sim/step/colour_refinement.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint32_t kNoPart = std::numeric_limits<std::uint32_t>::max();

}  // namespace

ColourRefinement::ColourRefinement(const std::vector<std::uint64_t>& kinds,
                                   std::vector<LabelledEdge> edges)
    : edges_(std::move(edges)),
      colour_(kinds.size()),
      sum_(kinds.size()),
      is_touched_(kinds.size()) {
  // Not mix(label) alone, in which 0 stays 0.
  for (LabelledEdge& edge : edges_) edge.label = mix(edge.label, 0);
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  for (std::size_t v = 0; v < kinds.size(); ++v) {
    colour_[v] =
        known.try_emplace(kinds[v], static_cast<std::uint32_t>(known.size())).first->second;
  }
  size_.resize(known.size());
  sum_of_.resize(known.size());
  for (const std::uint32_t colour : colour_) ++size_[colour];
}

void ColourRefinement::refine(std::size_t watched) {
  watched_ = watched;
  std::vector<char> seen(size_.size());
  for (std::size_t v = 0; v < watched; ++v) {
    watched_colours_ += seen[colour_[v]] == 0 ? 1 : 0;
    seen[colour_[v]] = 1;
  }
  if (watched > 0 && watched_colours_ == watched) return;
  add_all_neighbours();
  touched_.resize(colour_.size());
  std::iota(touched_.begin(), touched_.end(), std::uint32_t{0});
  for (bool first = true;; first = false) {
    part_touched();
    if (changed_.empty() || (watched > 0 && watched_colours_ == watched)) return;
    if (first) join_edges();
    tell_neighbours();
  }
}

void ColourRefinement::add_all_neighbours() {
  for (const LabelledEdge& edge : edges_) {
    sum_[edge.one] += mix(edge.label ^ colour_[edge.other]);
    sum_[edge.other] += mix(edge.label ^ colour_[edge.one]);
  }
}

void ColourRefinement::join_edges() {
  first_.assign(colour_.size() + 1, 0);
  for (const LabelledEdge& edge : edges_) {
    ++first_[edge.one];
    ++first_[edge.other];
  }
  // Counts become ends, and filling from the back makes beginnings of them.
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  at_.resize(2 * edges_.size());
  for (std::size_t i = edges_.size(); i-- > 0;) {
    at_[--first_[edges_[i].other]] = static_cast<std::uint32_t>(i);
    at_[--first_[edges_[i].one]] = static_cast<std::uint32_t>(i);
  }
}

void ColourRefinement::part_touched() {
  gather_parts();
  name_parts();
  changed_.clear();
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const std::uint32_t v = touched_[i], becomes = parts_[part_of_touched_[i]].becomes;
    is_touched_[v] = 0;
    if (becomes == colour_[v]) continue;
    changed_.push_back({v, colour_[v]});
    colour_[v] = becomes;
  }
  touched_.clear();
}

void ColourRefinement::gather_parts() {
  parts_.clear();
  part_of_touched_.resize(touched_.size());
  touched_of_.resize(size_.size());
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const std::uint32_t v = touched_[i], colour = colour_[v];
    ++touched_of_[colour];
    const auto [part, is_new] =
        known.try_emplace(mix(sum_[v] ^ mix(colour)), static_cast<std::uint32_t>(parts_.size()));
    if (is_new) parts_.push_back({colour, v, 0, sum_[v], colour});
    ++parts_[part->second].count;
    part_of_touched_[i] = part->second;
  }
}

/// The vertices of a colour that were not touched keep it; where all were, the largest part does.
void ColourRefinement::name_parts() {
  keeper_.resize(size_.size(), kNoPart);
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    std::uint32_t& keeper = keeper_[part.colour];
    if (touched_of_[part.colour] < size_[part.colour]) {
      if (part.sum == sum_of_[part.colour]) keeper = static_cast<std::uint32_t>(p);
    } else if (keeper == kNoPart || parts_[keeper].count < part.count) {
      keeper = static_cast<std::uint32_t>(p);
    }
  }
  // New colours are numbered beyond those of this round.
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    Part& part = parts_[p];
    if (keeper_[part.colour] == p) {
      sum_of_[part.colour] = part.sum;
      continue;
    }
    part.becomes = static_cast<std::uint32_t>(size_.size());
    size_.push_back(part.count);
    sum_of_.push_back(part.sum);
    size_[part.colour] -= part.count;
    watched_colours_ += part.vertex < watched_ ? 1 : 0;
  }
  for (const Part& part : parts_) {
    touched_of_[part.colour] = 0;
    keeper_[part.colour] = kNoPart;
  }
}

void ColourRefinement::tell_neighbours() {
  const auto add = [this](std::uint32_t neighbour, std::uint64_t difference) {
    sum_[neighbour] += difference;
    if (is_touched_[neighbour] != 0) return;
    is_touched_[neighbour] = 1;
    touched_.push_back(neighbour);
  };
  for (const auto [v, before] : changed_) {
    for (std::uint32_t i = first_[v]; i < first_[v + 1]; ++i) {
      const LabelledEdge& edge = edges_[at_[i]];
      add(edge.one == v ? edge.other : edge.one,
          mix(edge.label ^ colour_[v]) - mix(edge.label ^ before));
    }
  }
}

}  // namespace lockstep
