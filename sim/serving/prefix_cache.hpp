/// Beginnings of prompts whose keys and values a replica holds: those in use, and those that nobody
/// uses until their room is needed, the longest unused first.
///
/// Whole blocks count. A beginning is held with all before it; of one that is given back, its end
/// is older than its start, so that ends leave first (as vLLM and SGLang free them).
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "sim/scenario/failure_mode.hpp"
#include "sim/scenario/prefix_tree.hpp"

namespace lockstep {

/// A beginning without what is before it.
struct PrefixPiece {
  std::int32_t node = -1;
  std::int64_t blocks = 0;
};

class PrefixCache {
 public:
  /// `nodes` outlives it; null: no prompt shares anything.
  PrefixCache(const std::vector<PrefixNode>* nodes, int block) : nodes_(nodes), block_(block) {}

  /// The longest beginning of `node` that is held and has at most so many tokens; below 0: none.
  [[nodiscard]] std::int32_t longest(std::int32_t node, std::int64_t most_tokens) const;
  /// Blocks of a beginning; 0 of none.
  [[nodiscard]] std::int64_t blocks(std::int32_t node) const;
  /// Those of them that are held and not in use.
  [[nodiscard]] std::int64_t unused_of(std::int32_t node) const;

  /// The one that it begins with, and the blocks behind that; below 0: none.
  [[nodiscard]] std::int32_t parent(std::int32_t node) const { return of(node).parent; }
  [[nodiscard]] std::int64_t own_blocks(std::int32_t node) const {
    return blocks(node) - blocks(of(node).parent);
  }
  [[nodiscard]] int block() const { return block_; }
  /// When all of a held beginning is there.
  [[nodiscard]] RunTime ready(std::int32_t node) const;

  /// Takes a beginning in use, which is held from now on if it was not: what is new is there at
  /// `ready`.
  void take(std::int32_t node, RunTime ready = 0);
  /// Gives it back.
  void give(std::int32_t node);
  /// Lets go of unused ones until at most so many blocks of them are left; these are appended to
  /// `left`, where it is given.
  void shrink(std::int64_t most_unused, std::vector<PrefixPiece>* left = nullptr) {
    if (unused_ > most_unused) let_go(most_unused, left);  // twice a pass, and hardly ever so
  }
  /// Lets go of all: the replica has lost its memory. Requires that nothing is in use.
  void clear();

  [[nodiscard]] std::int64_t used() const { return used_; }      ///< blocks in use
  [[nodiscard]] std::int64_t unused() const { return unused_; }  ///< blocks held beside them

 private:
  struct Held {
    std::int32_t users = 0;
    RunTime ready = 0;
    std::list<std::int32_t>::iterator at;  ///< in unused ones, where nobody uses it
  };

  [[nodiscard]] const PrefixNode& of(std::int32_t node) const {
    return (*nodes_)[static_cast<std::size_t>(node)];
  }
  void let_go(std::int64_t most_unused, std::vector<PrefixPiece>* left);

  const std::vector<PrefixNode>* nodes_;
  int block_;
  std::unordered_map<std::int32_t, Held> held_;  // never gone through: its order is nobody's
  std::list<std::int32_t> order_;                ///< unused ones, the oldest first
  std::vector<std::int32_t> chain_;
  std::int64_t used_ = 0, unused_ = 0;
};

}  // namespace lockstep
