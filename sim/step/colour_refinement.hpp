/// Which vertices of a graph are alike: the coarsest equitable partition, by colour refinement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

/// Finalizer of SplitMix64: Steele, Lea and Flood 2014, OOPSLA, figure 14.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return mix(mix(a + 0x9e3779b97f4a7c15ULL) ^ b);
}

/// Joins two vertices, and says how. Between two vertices there may be several.
struct LabelledEdge {
  std::uint32_t one = 0, other = 0;
  std::uint64_t label = 0;
};

/// Colours vertices such that those of one colour had the same colour at first and have as many
/// edges of each label to vertices of each colour. In a round, vertices of one colour whose
/// neighbours differ part; only neighbours of those that parted are looked at in the next round,
/// and where neighbours of some did not change, those keep their colour. So an unevenness that
/// wanders along a chain of n vertices costs n steps, not n rounds over all. Neighbourhoods are
/// compared by 64-bit sums of hashes. Sources: McKay 1981, Practical graph isomorphism, Congressus
/// Numerantium 30, section 2; Paige and Tarjan 1987, SIAM J. Comput. 16(6), for what need not be
/// looked at.
class ColourRefinement {
 public:
  /// `kinds`: by vertex, what sets it apart from the beginning. Edges name vertices below its size.
  ColourRefinement(const std::vector<std::uint64_t>& kinds, std::vector<LabelledEdge> edges);

  /// Once: rounds until nothing parts, or until the first `watched` vertices, which share kinds
  /// with no others, all have colours of their own (the others' colours mean nothing then).
  void refine(std::size_t watched = 0);

  /// By vertex, in no order; the same for the same input.
  [[nodiscard]] const std::vector<std::uint32_t>& colours() const { return colour_; }

 private:
  /// Vertices of one colour whose neighbours are alike.
  struct Part {
    std::uint32_t colour;
    std::uint32_t vertex;  ///< one of them
    std::uint32_t count;
    std::uint64_t sum;
    std::uint32_t becomes;  ///< their colour after the round
  };

  void add_all_neighbours();
  void join_edges();
  void part_touched();
  void gather_parts();
  void name_parts();
  void tell_neighbours();

  std::vector<LabelledEdge> edges_;        ///< labels are mixed already
  std::vector<std::uint32_t> first_, at_;  ///< a vertex's edges: at_[first_[v]] and on
  std::vector<std::uint32_t> colour_;      ///< by vertex
  std::vector<std::uint64_t> sum_;         ///< by vertex: hashes of its neighbours
  std::vector<std::uint64_t> sum_of_;      ///< by colour: of each of its vertices
  std::vector<std::uint32_t> size_;        ///< by colour
  std::vector<std::uint32_t> touched_;     ///< vertices whose sums changed
  std::vector<char> is_touched_;           ///< by vertex
  std::vector<Part> parts_;                ///< of the touched ones
  std::vector<std::uint32_t> part_of_touched_;
  std::vector<std::uint32_t> touched_of_;  ///< by colour: how many, 0 between rounds
  std::vector<std::uint32_t> keeper_;      ///< by colour: the part that keeps it
  struct Change {
    std::uint32_t vertex, before;
  };
  std::vector<Change> changed_;
  std::size_t watched_ = 0, watched_colours_ = 0;
};

}  // namespace lockstep
