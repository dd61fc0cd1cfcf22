/// Tests that take minutes under sanitizers run only where assertions are off, in release builds:
///     TEST_CASE("..." * doctest::skip(test::kSlowBuild))
#pragma once

namespace lockstep::test {

#ifdef NDEBUG
inline constexpr bool kSlowBuild = false;
#else
inline constexpr bool kSlowBuild = true;
#endif

}  // namespace lockstep::test
