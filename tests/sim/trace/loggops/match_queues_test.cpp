// Messages and receives find each other as if all that wait were gone through in order of coming.
#include "sim/trace/loggops/match_queues.hpp"

#include <algorithm>
#include <cstdint>
#include <doctest/doctest.h>
#include <optional>
#include <random>
#include <vector>

using namespace lockstep;

namespace {

constexpr std::uint32_t kAny = MatchKey::kAny;

/// The plain way: the first in a list that fits.
class PlainQueue {
 public:
  void push(const MatchKey& key, int what) { waiting_.push_back({key, what}); }
  std::optional<int> take(const MatchKey& key) {
    const auto found =
        std::ranges::find_if(waiting_, [&key](const Item& item) { return item.key.fits(key); });
    if (found == waiting_.end()) return std::nullopt;
    const int out = found->what;
    waiting_.erase(found);
    return out;
  }
  [[nodiscard]] std::optional<int> first() const {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_.front().what);
  }

 private:
  struct Item {
    MatchKey key;
    int what = 0;
  };
  std::vector<Item> waiting_;
};

}  // namespace

TEST_CASE("match queues: what is taken is what the plain way finds, any peers and tags included") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](std::uint32_t count) {
      return static_cast<std::uint32_t>(random() % count);
    };
    const std::uint32_t peers = 1 + below(4), tags = 1 + below(4), any_in = 2 + below(5);
    const auto one_of = [&](std::uint32_t count) {
      return below(any_in) == 0 ? kAny : below(count);
    };
    MatchQueues<int> queues({.any_tag = true, .any_peer = true});
    PlainQueue plain;
    for (int i = 0; i < 300; ++i) {
      const MatchKey key{.peer = one_of(peers), .tag = one_of(tags)};
      if (below(2) == 0) {
        queues.push(key, i);
        plain.push(key, i);
      } else {
        REQUIRE(queues.take(key) == plain.take(key));
      }
      REQUIRE(queues.first() == plain.first());
    }
  }
}

TEST_CASE("match queues: without wildcards in the asking none of their queues is needed") {
  MatchQueues<int> queues;
  queues.push({.peer = 1, .tag = 7}, 0);
  queues.push({.peer = kAny, .tag = 7}, 1);
  queues.push({.peer = 1, .tag = kAny}, 2);
  queues.push({}, 3);
  CHECK(queues.take({.peer = 2, .tag = 7}) == 1);
  CHECK(queues.take({.peer = 1, .tag = 8}) == 2);
  CHECK(queues.take({.peer = 1, .tag = 7}) == 0);
  CHECK(queues.take({.peer = 5, .tag = 5}) == 3);
  CHECK_FALSE(queues.take({.peer = 1, .tag = 7}));
  CHECK_FALSE(queues.first());
}
