#include "tools/console/percent.hpp"

#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

namespace lockstep {

std::string few_percent(double share, int decimals) {
  constexpr double kNothing = 1e-9;  // what sums leave where nothing is
  std::string text = fmt::format("{:.{}f} %", 100 * share, decimals);
  if (std::strtod(text.c_str(), nullptr) != 0) return text;
  if (share <= kNothing) return fmt::format("{:.{}f} %", 0.0, decimals);
  return fmt::format("<{:.{}f} %", std::pow(0.1, decimals), decimals);
}

std::string part_percent(double share) {
  constexpr double kNothing = 1e-9, kAll = 100, kRounds = 0.05;
  constexpr int kMostDecimals = 4;
  if (kAll * share > kAll - kRounds && share < 1 - kNothing) {
    // Beside other parts it is not all: digits follow until that shows.
    for (int decimals = 1; decimals <= kMostDecimals; ++decimals) {
      if (kAll * (1 - share) >= 0.5 * std::pow(10.0, -decimals)) {
        return few_percent(share, decimals);
      }
    }
    return fmt::format(">{:.{}f} %", kAll - std::pow(0.1, kMostDecimals), kMostDecimals);
  }
  return few_percent(share, 1);
}

}  // namespace lockstep
