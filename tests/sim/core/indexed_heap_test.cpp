#include "sim/core/indexed_heap.hpp"

#include <algorithm>
#include <cstdint>
#include <doctest/doctest.h>
#include <map>
#include <utility>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {

namespace {

/// The entry that has to be on top: least key, then least index.
std::pair<int, std::uint32_t> least(const std::map<std::uint32_t, int>& keys) {
  const auto lower = [](const auto& a, const auto& b) {
    return std::pair(a.second, a.first) < std::pair(b.second, b.first);
  };
  const auto found = std::ranges::min_element(keys, lower);
  return {found->second, found->first};
}

}  // namespace

TEST_CASE("IndexedHeap: the least key is on top, whatever is set, lowered, removed and popped") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  constexpr std::uint32_t kIndices = 60;
  RandomStream random({.seed = seed});
  IndexedHeap<int> heap;
  heap.fit(kIndices);
  std::map<std::uint32_t, int> expected;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint32_t index = random.below(kIndices);
    const int key = static_cast<int>(random.below(40));
    switch (random.below(4)) {
      case 0:
        heap.set(index, key);
        expected[index] = key;
        break;
      case 1: {
        heap.lower(index, key);
        const auto known = expected.try_emplace(index, key).first;
        known->second = std::min(known->second, key);
        break;
      }
      case 2:
        heap.remove(index);
        expected.erase(index);
        break;
      default:
        if (expected.empty()) break;
        const auto top = heap.pop();
        REQUIRE(std::pair(top.key, top.index) == least(expected));
        expected.erase(top.index);
    }
    REQUIRE(heap.empty() == expected.empty());
    if (!expected.empty()) {
      REQUIRE(std::pair(heap.top().key, heap.top().index) == least(expected));
    }
  }
}

TEST_CASE("IndexedHeap: adding many and ordering once sorts them") {
  for (std::uint32_t count = 0; count < 40; ++count) {
    CAPTURE(count);
    RandomStream random({.seed = test::test_seed(), .trajectory = count});
    IndexedHeap<int> heap;
    heap.fit(count);
    std::vector<std::pair<int, std::uint32_t>> expected;
    for (std::uint32_t index = 0; index < count; ++index) {
      expected.emplace_back(random.below(10), index);
      heap.add(index, expected.back().first);
    }
    heap.order();
    std::ranges::sort(expected);
    for (const auto& [key, index] : expected) {
      REQUIRE_FALSE(heap.empty());
      const auto top = heap.pop();
      REQUIRE(std::pair(top.key, top.index) == std::pair(key, index));
    }
    REQUIRE(heap.empty());
  }
}

}  // namespace lockstep
