/// A set of a cluster's nodes, in the order of their numbers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

/// A bit for each node, and a bit for each word that has any: the first of 10,000 nodes is found in
/// three steps.
class NodeSet {
 public:
  NodeSet() = default;
  explicit NodeSet(int nodes)
      : words_(words_for(static_cast<std::size_t>(nodes))), summary_(words_for(words_.size())) {}

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] bool has(int node) const { return (words_[word(node)] >> bit(node) & 1U) != 0; }

  void add(int node) {
    std::uint64_t& at = words_[word(node)];
    count_ += (at >> bit(node) & 1U) == 0 ? 1 : 0;
    at |= std::uint64_t{1} << bit(node);
    summary_[word(node) / kBits] |= std::uint64_t{1} << word(node) % kBits;
  }
  void remove(int node) {
    std::uint64_t& at = words_[word(node)];
    count_ -= (at >> bit(node) & 1U) != 0 ? 1 : 0;
    at &= ~(std::uint64_t{1} << bit(node));
    if (at == 0) summary_[word(node) / kBits] &= ~(std::uint64_t{1} << word(node) % kBits);
  }

  /// The first node of the set from `from` on that is also in `within` (null: any); -1: there is
  /// none.
  [[nodiscard]] int first(int from = 0, const NodeSet* within = nullptr) const {
    for (std::size_t w = word(from); w < words_.size(); w = next_word(w + 1)) {
      std::uint64_t bits = words_[w] & (within == nullptr ? ~std::uint64_t{0} : within->words_[w]);
      if (w == word(from)) bits &= ~std::uint64_t{0} << bit(from);
      if (bits != 0) return static_cast<int>(w * kBits) + std::countr_zero(bits);
    }
    return -1;
  }
  /// How many of its nodes are in the other set, up to `enough`.
  [[nodiscard]] int count_within(const NodeSet& other, int enough) const {
    int found = 0;
    for (std::size_t w = next_word(0); w < words_.size() && found < enough; w = next_word(w + 1)) {
      found += std::popcount(words_[w] & other.words_[w]);
    }
    return found;
  }
  NodeSet& operator&=(const NodeSet& other) {
    return combine(other, [](std::uint64_t a, std::uint64_t b) { return a & b; });
  }
  NodeSet& operator|=(const NodeSet& other) {
    return combine(other, [](std::uint64_t a, std::uint64_t b) { return a | b; });
  }
  NodeSet& operator-=(const NodeSet& other) {
    return combine(other, [](std::uint64_t a, std::uint64_t b) { return a & ~b; });
  }
  [[nodiscard]] bool within(const NodeSet& other) const {
    for (std::size_t w = next_word(0); w < words_.size(); w = next_word(w + 1)) {
      if ((words_[w] & ~other.words_[w]) != 0) return false;
    }
    return true;
  }
  /// Whether a node is in both of the first two sets and not in both of the others.
  static bool adds(const NodeSet& a, const NodeSet& b, const NodeSet& lacks_a,
                   const NodeSet& lacks_b) {
    for (std::size_t w = 0; w < a.words_.size(); ++w) {
      if ((a.words_[w] & b.words_[w] & ~(lacks_a.words_[w] & lacks_b.words_[w])) != 0) return true;
    }
    return false;
  }
  friend bool operator==(const NodeSet& a, const NodeSet& b) { return a.words_ == b.words_; }

 private:
  static constexpr std::size_t kBits = 64;

  static std::size_t words_for(std::size_t bits) { return (bits + kBits - 1) / kBits; }
  static std::size_t word(int node) { return static_cast<std::size_t>(node) / kBits; }
  static std::size_t bit(int node) { return static_cast<std::size_t>(node) % kBits; }

  /// The first word from `from` on that has a node; words_.size(): none has.
  [[nodiscard]] std::size_t next_word(std::size_t from) const {
    for (std::size_t s = from / kBits; s < summary_.size(); ++s) {
      std::uint64_t bits = summary_[s];
      if (s == from / kBits) bits &= ~std::uint64_t{0} << from % kBits;
      if (bits != 0) return s * kBits + static_cast<std::size_t>(std::countr_zero(bits));
    }
    return words_.size();
  }
  template <class Combine>
  NodeSet& combine(const NodeSet& other, Combine of) {
    count_ = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      words_[w] = of(words_[w], other.words_[w]);
      count_ += std::popcount(words_[w]);
      const std::uint64_t mark = std::uint64_t{1} << w % kBits;
      if (words_[w] != 0) {
        summary_[w / kBits] |= mark;
      } else {
        summary_[w / kBits] &= ~mark;
      }
    }
    return *this;
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> summary_;
  int count_ = 0;
};

}  // namespace lockstep
