// How far a predicted ratio may be off: errors that a source's runs share cancel.
#include "models/accuracy/paired_interval.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <string>

#include "sim/scenario/read_residuals.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep::test {
namespace {

Residual row(const std::string& source, const std::string& gpu, double error) {
  Residual out{.row = source + gpu, .source = source, .vendor = source, .traits = {}};
  out.traits.stack = "megatron_core";
  out.traits.gpu = gpu;
  out.left_out = error;
  return out;
}

}  // namespace

TEST_CASE("paired error: what all runs of a source miss by cancels") {
  ResidualTable table;
  for (const char* const source : {"a", "b", "c"}) {
    const double shared = source[0] == 'a' ? 0.5 : source[0] == 'b' ? -0.3 : 0.1;
    for (int i = 0; i < 10; ++i) table.push_back(row(source, "h100", shared));
  }
  CHECK(paired_error(table, true) == 0.0);
}

TEST_CASE("paired error: nine of ten pairs lie within, each source with the same weight") {
  ResidualTable table;
  // Source a: 45 pairs that agree. Sources b and c: one pair each, 0.1 and 0.4 apart.
  for (int i = 0; i < 10; ++i) table.push_back(row("a", "h100", 0));
  table.push_back(row("b", "h100", 0.1));
  table.push_back(row("b", "h100", 0.2));
  table.push_back(row("c", "h100", 0.0));
  table.push_back(row("c", "h100", -0.4));
  CHECK(paired_error(table, true).value() == Near(0.4).epsilon(1e-12));
}

TEST_CASE("paired error: one source is no evidence, and two cards are another question") {
  ResidualTable table{row("a", "h100", 0), row("a", "h100", 1)};
  CHECK_FALSE(paired_error(table, true));
  table.push_back(row("b", "h100", 0));
  table.push_back(row("b", "b200", 0.2));
  table.push_back(row("a", "b200", 0.1));
  CHECK(paired_error(table, false).value() > 0);
  CHECK_FALSE(paired_error(ResidualTable{}, true));
}

TEST_CASE("paired error: published runs give one below their own error") {
  const ResidualTable table = load_residuals(presets());
  const double same = paired_error(table, true).value();
  CHECK(same > 0.02);
  CHECK(same < 0.5);
  CHECK(paired_error(table, false).has_value());
}

}  // namespace lockstep::test
