/// What prompts have in common: the tree of their beginnings.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace lockstep {

/// A beginning that some prompts share, and the shorter one that it begins with.
struct PrefixNode {
  std::int32_t parent = -1;  ///< below 0: nothing is before it
  std::int32_t tokens = 0;   ///< from a prompt's first token to its end
};

/// Builds the tree from pieces with ids: equal ids behind equal ones are the same beginning.
class PrefixTree {
 public:
  /// The node of `id` behind `parent` (below 0: at the start), which ends after `tokens`; made
  /// where there is none.
  std::int32_t child(std::int32_t parent, std::int64_t id, std::int32_t tokens) {
    const auto [at, added] =
        children_.try_emplace({parent, id}, static_cast<std::int32_t>(nodes_.size()));
    if (added) nodes_.push_back({.parent = parent, .tokens = tokens});
    return at->second;
  }
  /// One that no other prompt can name.
  std::int32_t own(std::int32_t parent, std::int32_t tokens) {
    nodes_.push_back({.parent = parent, .tokens = tokens});
    return static_cast<std::int32_t>(nodes_.size() - 1);
  }
  [[nodiscard]] const std::vector<PrefixNode>& nodes() const { return nodes_; }
  [[nodiscard]] std::vector<PrefixNode> take() { return std::move(nodes_); }

 private:
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> children_;
  std::vector<PrefixNode> nodes_;
};

}  // namespace lockstep
