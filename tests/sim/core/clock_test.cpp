#include "sim/core/clock.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <initializer_list>
#include <limits>

namespace lockstep {

TEST_CASE("to_step_time: rounds up from 0.4863 of a tick, on both sides of the edge") {
  CHECK(to_step_time(Seconds{}) == StepTime{0});
  CHECK(to_step_time(Seconds{0.4862e-12}) == StepTime{0});
  CHECK(to_step_time(Seconds{0.4864e-12}) == StepTime{1});
  CHECK(to_step_time(Seconds{1e-12}) == StepTime{1});
  CHECK(to_step_time(Seconds{1.4862e-12}) == StepTime{1});
  CHECK(to_step_time(Seconds{1.4864e-12}) == StepTime{2});
}

TEST_CASE("to_step_time: a share that misses a simple fraction by its last bit lands on one tick") {
  for (const double ticks : {0.5, 1.0 / 3, 2.0 / 3, 0.25, 0.75, 7.5, 1000.5, 123456.25}) {
    CAPTURE(ticks);
    const StepTime exact = to_step_time(Seconds{ticks * 1e-12});
    CHECK(to_step_time(Seconds{std::nextafter(ticks * 1e-12, 0.0)}) == exact);
    CHECK(to_step_time(Seconds{std::nextafter(ticks * 1e-12, 1.0)}) == exact);
  }
}

TEST_CASE("to_step_time: whole seconds and the longest duration survive the way there and back") {
  CHECK(to_step_time(Seconds{1}) == StepTime{1'000'000'000'000});
  CHECK(to_step_time(Seconds{3600}) == StepTime{3'600'000'000'000'000});
  const StepTime longest = to_step_time(Seconds{1.7e7});
  CHECK(longest == StepTime{17'000'000'000'000'000'000U});
  CHECK(to_seconds(longest) / Seconds{1.7e7} == doctest::Approx(1.0).epsilon(1e-15));
}

TEST_CASE("StepTime: spans add up and come apart again, down to nothing") {
  const StepTime start{5};
  StepTime end = start + StepTime{7};
  CHECK(end == StepTime{12});
  CHECK(end - start == StepTime{7});
  CHECK(end - end == StepTime{});
  end += StepTime{1};
  CHECK(start < end);
  CHECK(end == StepTime{13});
}

TEST_CASE("the clock: what it cannot hold is an error, never a wrapped number") {
  CHECK_THROWS_AS(to_step_time(Seconds{1.8e7}), ClockOverflow);
  CHECK_THROWS_AS(to_step_time(Seconds{std::numeric_limits<double>::infinity()}), ClockOverflow);
  const StepTime last{std::numeric_limits<std::uint64_t>::max()};
  CHECK((last - StepTime{1}) + StepTime{1} == last);
  CHECK_THROWS_AS(last + StepTime{1}, ClockOverflow);
  StepTime sum = last;
  CHECK_THROWS_AS(sum += StepTime{1}, ClockOverflow);
}

}  // namespace lockstep
