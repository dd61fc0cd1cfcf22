#include "sim/core/event_queue.hpp"

#include <cstdint>
#include <doctest/doctest.h>
#include <set>
#include <tuple>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {

namespace {

std::vector<std::uint32_t> drain(EventQueue& queue) {
  std::vector<std::uint32_t> subjects;
  while (!queue.empty()) subjects.push_back(queue.pop().subject);
  return subjects;
}

/// What the queue promises, by other means: a set sorted by time, then by order of pushing.
class SortedEvents {
 public:
  void push(StepTime at, std::uint32_t subject) { events_.emplace(at.ps, pushed_++, subject); }
  [[nodiscard]] StepTime next_time() const { return {std::get<0>(*events_.begin())}; }
  std::uint32_t pop() {
    const std::uint32_t subject = std::get<2>(*events_.begin());
    events_.erase(events_.begin());
    return subject;
  }
  [[nodiscard]] std::size_t size() const { return events_.size(); }

 private:
  std::multiset<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>> events_;
  std::uint64_t pushed_ = 0;
};

/// Delays of very different lengths: ties, neighbours, and every bit of the clock.
std::uint64_t random_delay(RandomStream& random) {
  switch (random.below(4)) {
    case 0:
      return 0;
    case 1:
      return random.below(4);
    case 2:
      return random.below(1000);
    default:
      return random.bits() >> (8 + random.below(50));
  }
}

}  // namespace

TEST_CASE("EventQueue: earlier first, equal times in the order of pushing") {
  EventQueue queue;
  queue.push({20}, 0, 1);
  queue.push({10}, 0, 2);
  queue.push({20}, 0, 3);
  queue.push({10}, 0, 4);
  queue.push({19}, 0, 5);
  queue.push({21}, 0, 6);
  CHECK(drain(queue) == std::vector<std::uint32_t>{2, 4, 5, 1, 3, 6});
}

TEST_CASE("EventQueue: an event of the present instant comes after those already there") {
  EventQueue queue;
  queue.push({7}, 0, 1);
  queue.push({7}, 0, 2);
  CHECK(queue.pop().subject == 1);
  queue.push({7}, 0, 3);
  CHECK(drain(queue) == std::vector<std::uint32_t>{2, 3});
  queue.push({7}, 0, 4);
  CHECK(queue.pop().at == StepTime{7});
}

TEST_CASE("EventQueue: looking ahead does not keep an earlier event out") {
  EventQueue queue;
  queue.push({100}, 0, 1);
  CHECK(queue.next_time() == StepTime{100});
  queue.push({50}, 0, 2);
  CHECK(queue.next_time() == StepTime{50});
  queue.push({0}, 0, 3);
  CHECK(queue.next_time() == StepTime{0});
  CHECK(drain(queue) == std::vector<std::uint32_t>{3, 2, 1});
}

TEST_CASE("EventQueue: the first and the last tick of the clock") {
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  EventQueue queue;
  queue.push({kLast}, 0, 1);
  queue.push({0}, 0, 2);
  queue.push({kLast - 1}, 0, 3);
  queue.push({kLast}, 0, 4);
  CHECK(drain(queue) == std::vector<std::uint32_t>{2, 3, 1, 4});
}

TEST_CASE("EventQueue: a crowd pushed between two pending events leaves in order") {
  // 100 events, two of a time and each pair before the last, leave in time order, ties as pushed.
  EventQueue queue;
  queue.push({10}, 0, 1000);
  queue.push({90}, 0, 1001);
  CHECK(queue.pop().subject == 1000);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 100; ++i) queue.push({80 - i / 2}, 0, i);
  for (std::uint32_t pair = 50; pair-- > 0;) {
    expected.push_back(2 * pair);
    expected.push_back(2 * pair + 1);
  }
  expected.push_back(1001);
  CHECK(drain(queue) == expected);
}

TEST_CASE("EventQueue: a cleared queue is a new one") {
  EventQueue queue;
  queue.push({100}, 3, 1);
  queue.push({200}, 3, 2);
  CHECK(queue.pop().kind == 3);
  CHECK(queue.next_time() == StepTime{200});
  queue.clear();
  CHECK(queue.empty());
  queue.push({300}, 0, 3);
  queue.push({5}, 0, 4);
  CHECK(queue.next_time() == StepTime{5});
  CHECK(drain(queue) == std::vector<std::uint32_t>{4, 3});
}

TEST_CASE("EventQueue: the same order as a sorted set, with looks ahead in between") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  for (std::uint32_t trial = 0; trial < 40; ++trial) {
    CAPTURE(trial);
    RandomStream random({.seed = seed, .trajectory = trial});
    EventQueue queue;
    SortedEvents expected;
    std::uint64_t now = 0;
    const std::uint32_t crowd = 1 + random.below(300);
    for (std::uint32_t step = 0; step < 5000; ++step) {
      if (random.below(2 * crowd) >= expected.size()) {
        const StepTime at{now + random_delay(random)};
        queue.push(at, 0, step);
        expected.push(at, step);
      } else {
        if (random.below(3) == 0) REQUIRE(queue.next_time() == expected.next_time());
        now = expected.next_time().ps;
        const Event event = queue.pop();
        REQUIRE(event.at.ps == now);
        REQUIRE(event.subject == expected.pop());
      }
      if (random.below(3) == 0 && !queue.empty()) {
        REQUIRE(queue.next_time() == expected.next_time());
      }
      REQUIRE(queue.size() == expected.size());
    }
  }
}

}  // namespace lockstep
