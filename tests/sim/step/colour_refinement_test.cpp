#include "sim/step/colour_refinement.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <random>
#include <utility>

namespace lockstep {
namespace {

/// Vertices numbered by colour, in the order of their first appearance.
std::vector<std::uint32_t> numbered(const std::vector<std::uint32_t>& colours) {
  std::map<std::uint32_t, std::uint32_t> number;
  std::vector<std::uint32_t> out;
  for (const std::uint32_t colour : colours) {
    out.push_back(
        number.try_emplace(colour, static_cast<std::uint32_t>(number.size())).first->second);
  }
  return out;
}

std::vector<std::uint32_t> refined(const std::vector<std::uint64_t>& kinds,
                                   const std::vector<LabelledEdge>& edges) {
  ColourRefinement refinement{kinds, edges};
  refinement.refine();
  return numbered(refinement.colours());
}

std::size_t distinct(const std::vector<std::uint32_t>& numbers) {
  return std::size_t{*std::ranges::max_element(numbers)} + 1;
}

/// By definition: all vertices again in each round, with whole neighbourhoods, until nothing parts.
std::vector<std::uint32_t> by_definition(const std::vector<std::uint64_t>& kinds,
                                         const std::vector<LabelledEdge>& edges) {
  using Neighbours = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  std::vector<std::uint64_t> colours = kinds;
  std::size_t known = 0;
  for (;;) {
    std::vector<std::pair<std::uint64_t, Neighbours>> seen(kinds.size());
    for (std::size_t v = 0; v < kinds.size(); ++v) seen[v].first = colours[v];
    for (const LabelledEdge& edge : edges) {
      seen[edge.one].second.emplace_back(edge.label, colours[edge.other]);
      seen[edge.other].second.emplace_back(edge.label, colours[edge.one]);
    }
    std::map<std::pair<std::uint64_t, Neighbours>, std::uint64_t> number;
    for (std::size_t v = 0; v < kinds.size(); ++v) {
      std::ranges::sort(seen[v].second);
      colours[v] = number.try_emplace(seen[v], number.size()).first->second;
    }
    if (number.size() == known) break;
    known = number.size();
  }
  return numbered({colours.begin(), colours.end()});
}

std::vector<LabelledEdge> chain(std::uint32_t vertices) {
  std::vector<LabelledEdge> edges;
  for (std::uint32_t v = 0; v + 1 < vertices; ++v) edges.push_back({v, v + 1, 0});
  return edges;
}

TEST_CASE("colour refinement: a chain is a palindrome, a ring is of one colour, a star of two") {
  const std::vector<std::uint64_t> alike(1001);
  const std::vector<std::uint32_t> numbers = refined(alike, chain(1001));
  CHECK(distinct(numbers) == 501);
  CHECK(numbers.front() == numbers.back());
  CHECK(numbers[300] == numbers[700]);
  // Each round only its ends are looked at: by rounds over all, this one would take an hour.
  CHECK(distinct(refined(std::vector<std::uint64_t>(400'001), chain(400'001))) == 200'001);
  std::vector<LabelledEdge> ring = chain(1001);
  ring.push_back({1000, 0, 0});
  CHECK(distinct(refined(alike, ring)) == 1);
  std::vector<LabelledEdge> star;
  for (std::uint32_t v = 1; v < 1001; ++v) star.push_back({0, v, 0});
  CHECK(distinct(refined(alike, star)) == 2);
}

TEST_CASE("colour refinement: labels, kinds and how many edges there are set vertices apart") {
  CHECK(refined({0, 0, 0, 0}, {{0, 1, 5}, {2, 3, 6}}) == std::vector<std::uint32_t>{0, 0, 1, 1});
  CHECK(refined({0, 0, 1, 0}, {{0, 1, 5}, {2, 3, 5}}) == std::vector<std::uint32_t>{0, 0, 1, 2});
  CHECK(refined({0, 0, 0, 0}, {{0, 1, 5}, {2, 3, 5}, {2, 3, 5}}) ==
        std::vector<std::uint32_t>{0, 0, 1, 1});
}

TEST_CASE("colour refinement: 500 random graphs, as by definition") {
  std::mt19937 random{7};
  const auto below = [&random](std::uint32_t n) {
    return static_cast<std::uint32_t>(random() % n);
  };
  for (int graph = 0; graph < 500; ++graph) {
    CAPTURE(graph);
    const std::uint32_t vertices = 1 + below(60);
    std::vector<std::uint64_t> kinds(vertices);
    const std::uint32_t of_kinds = 1 + below(3), labels = 1 + below(3);
    for (std::uint64_t& kind : kinds) kind = below(10) == 0 ? below(of_kinds) : 0;
    std::vector<LabelledEdge> edges;
    // Copies of one piece, and a few edges beside: much is alike, and some is not.
    const std::uint32_t piece = 1 + below(vertices);
    for (std::uint32_t i = below(2 * piece); i-- > 0;) {
      const std::uint32_t a = below(piece), b = below(piece), label = below(labels);
      for (std::uint32_t v = 0; v + piece <= vertices; v += piece) {
        if (a != b) edges.push_back({v + a, v + b, label});
      }
    }
    if (vertices > 1 && below(2) == 0) edges.push_back({0, vertices - 1, 0});
    CHECK(refined(kinds, edges) == by_definition(kinds, edges));
  }
}

TEST_CASE("colour refinement: ends as soon as all that are watched are on their own") {
  // Three watched vertices of their own kinds; what hangs on them is not told apart any more.
  const std::vector<std::uint64_t> kinds{1, 2, 3, 0, 0, 0};
  const std::vector<LabelledEdge> edges{{0, 3, 0}, {1, 4, 0}, {2, 5, 0}};
  ColourRefinement watched{kinds, edges};
  watched.refine(3);
  CHECK(numbered(watched.colours()) == std::vector<std::uint32_t>{0, 1, 2, 3, 3, 3});
  CHECK(refined(kinds, edges) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5});
  // Found by two rounds: what the one hangs on has two neighbours, the other three.
  ColourRefinement found{{0, 0, 1, 1, 1}, {{0, 2, 0}, {2, 3, 0}, {3, 4, 0}, {1, 3, 0}}};
  found.refine(2);
  CHECK(found.colours()[0] != found.colours()[1]);
}

}  // namespace
}  // namespace lockstep
