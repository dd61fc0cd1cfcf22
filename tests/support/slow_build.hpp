/// Tests that take seconds in a release build, and minutes under sanitizers, run only in the former:
///     TEST_CASE("..." * doctest::skip(test::kSlowBuild))
#pragma once

namespace lockstep::test {

#ifdef NDEBUG
inline constexpr bool kSlowBuild = false;
#else
inline constexpr bool kSlowBuild = true;
#endif

}  // namespace lockstep::test
