/// Drawn scenarios in which a law did not hold. What made them fail is mended, and they are tried
/// before new ones are drawn, as what a seed draws changes with the generator.
#pragma once

#include <span>
#include <string_view>

namespace lockstep::test {

struct FailedScenario {
  std::string_view law;  ///< as hold() names it
  std::string_view why;  ///< what was wrong
  std::string_view text;
};
std::span<const FailedScenario> failed_scenarios();

}  // namespace lockstep::test
