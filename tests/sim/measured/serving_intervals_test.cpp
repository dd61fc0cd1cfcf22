// Intervals of serving: by hand on made-up groups, and how many measured rows they hold that they
// were not read off.
#include "sim/measured/serving_intervals.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/measured/validate_serving.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/real_files.hpp"

namespace lockstep {
namespace {

/// Groups whose offsets and rows are drawn from normal laws.
std::vector<ServedResidual> drawn_groups(int groups, int rows, double between, double within) {
  RandomStream random({.seed = 5, .purpose = 900});
  const auto normal = [&] {  // Box and Muller
    return std::sqrt(2 * random.exponential()) * std::cos(6.283185307179586 * random.uniform());
  };
  std::vector<ServedResidual> out;
  for (int g = 0; g < groups; ++g) {
    const double offset = between * normal();
    for (int r = 0; r < rows; ++r) {
      out.push_back({.source = "s" + std::to_string(g),
                     .engine = "e",
                     .family = "f",
                     .kind = "dense",
                     .log_ratio = offset + within * normal()});
    }
  }
  return out;
}

}  // namespace

TEST_CASE("residual_band: a group that nobody has seen lies in it nine times out of ten") {
  const std::vector<ServedResidual> all = drawn_groups(400, 20, 0.1, 0.05);
  const ResidualBand band = residual_band(all, "dense");
  CHECK(std::log(band.high) == test::near(1.645 * std::hypot(0.1, 0.05)).epsilon(0.1));
  CHECK(band.low * band.high == test::near(1.0).epsilon(0.03));
  CHECK(band.rows == 8000);
  CHECK(band.groups == 400);
  const LeftOut left = leave_out(drawn_groups(60, 20, 0.1, 0.05), &ServedResidual::source);
  CHECK(left.groups == 60);
  CHECK(left.coverage > 0.85);
  CHECK(left.coverage < 0.95);
}

TEST_CASE("residual_band: few groups know little of the next one") {
  // Offsets -0.1, 0, 0 and 0.1 of groups whose rows are all alike: variance 0.02 / 3, a quarter
  // more for the new group. Student's t of three degrees of freedom: 2.353 at 95 %.
  std::vector<ServedResidual> all;
  for (const double offset : {-0.1, 0.0, 0.0, 0.1}) {
    const std::string source = "s" + std::to_string(all.size());
    for (int r = 0; r < 5; ++r) all.push_back({source, "e", "f", "dense", offset});
  }
  const ResidualBand band = residual_band(all, "dense");
  CHECK(std::log(band.high) == test::near(2.3534 * std::sqrt(1.25 * 0.02 / 3)).epsilon(1e-3));
  CHECK(band.low * band.high == test::near(1.0));
  // A single group, whose rows differ: as wide as they.
  const std::vector<ServedResidual> one = drawn_groups(1, 2000, 0, 0.05);
  CHECK(std::log(residual_band(one, "dense").high) == test::near(1.645 * 0.05).epsilon(0.1));
}

TEST_CASE("leave_out: the left-out source says nothing about its own interval") {
  std::vector<ServedResidual> all = drawn_groups(8, 10, 0, 0.01);
  for (int r = 0; r < 10; ++r) all.push_back({"far", "e", "f", "dense", 1.0});
  const LeftOut left = leave_out(all, &ServedResidual::source);
  // Eight sources lie near 1; the ninth is e times off, and no interval of the others holds it.
  CHECK(left.coverage == test::near(80.0 / 90));
  CHECK(left.rows == 90);
}

TEST_CASE("family_of: a model's name up to its size") {
  CHECK(family_of("llama3_70b") == "llama3");
  CHECK(family_of("mixtral_8x7b") == "mixtral");
  CHECK(family_of("gpt_oss_120b") == "gpt_oss");
  CHECK(family_of("deepseek_v3") == "deepseek_v3");
}

TEST_CASE("serving intervals: measured rows of sources, engines and families that are left out" *
          doctest::skip(!test::has_real_file("published/serving.open.json"))) {
  const PointTable table =
      validate_serving(test::real_file("published/serving.open.json"), test::presets());
  const std::vector<ServedResidual> pace = pace_residuals(table.points);
  CHECK(pace.size() > 1500);
  const std::vector<ServedResidual> first = first_token_residuals(table.points);
  CHECK(first.size() > 1000);
  for (const auto& [what, key] :
       {std::pair{"source", &ServedResidual::source}, std::pair{"engine", &ServedResidual::engine},
        std::pair{"family", &ServedResidual::family}}) {
    for (const std::vector<ServedResidual>* rows : {&pace, &first}) {
      CAPTURE(what);
      CAPTURE(rows == &pace);
      const LeftOut left = leave_out(*rows, key);
      CAPTURE(left.coverage);
      CHECK(left.coverage >= 0.85);
      CHECK(left.coverage <= 0.95);
    }
  }
}

TEST_CASE("engine presets: their intervals are those of the measured rows that ship, or wider") {
  const PointTable table =
      validate_serving(LOCKSTEP_SOURCE_DIR "/tests/reference/serving.json", test::presets());
  const std::vector<ServedResidual> pace = pace_residuals(table.points);
  CHECK(pace.size() > 100);
  double held = 0;
  for (const ServedResidual& r : pace) {
    const EngineSpec engine = engine_preset(test::presets(), r.engine);
    for (const ServingResidual& band : engine.serving->residuals) {
      if (band.kind != r.kind) continue;
      const double ratio = std::exp(r.log_ratio);
      held += ratio >= band.tpot_low && ratio <= band.tpot_high ? 1 : 0;
    }
  }
  held /= static_cast<double>(pace.size());
  CHECK(held >= 0.85);
  CHECK(held <= 0.97);
}

}  // namespace lockstep
