/// One group of a table of validation points.
#pragma once

#include <algorithm>
#include <doctest/doctest.h>
#include <string>

#include "sim/measured/point_table.hpp"

namespace lockstep::test {

inline const PointSummary& group(const PointTable& table, const std::string& name) {
  const auto at = std::ranges::find(table.summary, name, &PointSummary::group);
  REQUIRE_MESSAGE(at != table.summary.end(), "no group " << name);
  return *at;
}

}  // namespace lockstep::test
