#include "models/spec/parameter_counts.hpp"

#include <array>
#include <cmath>
#include <doctest/doctest.h>

#include "tests/support/presets.hpp"

namespace lockstep {

// As the models' cards and reports say, to the digits that they print; some cut digits off (Qwen3
// 30B has 3.35 B active and prints 3.3).
TEST_CASE("parameter_counts: total and active are those that the authors publish") {
  struct Published {
    const char* model;
    double total, active;  ///< in billions
    double rounding;
  };
  constexpr std::array kPublished{
      Published{"deepseek_v3", 671, 37.5, 0.5},  // README_WEIGHTS.md: 671B, 36.7B with both ends
      Published{"deepseek_v2", 236, 21, 0.5},     Published{"mixtral_8x7b", 46.7, 12.9, 0.05},
      Published{"mixtral_8x22b", 141, 39, 0.5},   Published{"qwen3_30b_a3b", 30.5, 3.3, 0.1},
      Published{"qwen3_235b_a22b", 235, 22, 0.5}, Published{"dbrx", 132, 36, 0.5},
      Published{"gpt_oss_120b", 116.8, 5.7, 0.1}, Published{"llama3_8b", 8.03, 8.03, 0.005},
      Published{"llama3_70b", 70.6, 70.6, 0.05},  Published{"llama3_405b", 405.9, 405.9, 0.1},
      Published{"mistral_7b", 7.24, 7.24, 0.005},
  };
  for (const Published& row : kPublished) {
    CAPTURE(row.model);
    const ParameterCounts counts = parameter_counts(test::presets().model(row.model));
    CHECK(std::abs(counts.total / 1e9 - row.total) <= row.rounding);
    CHECK(std::abs(counts.active / 1e9 - row.active) <= row.rounding);
  }
}

TEST_CASE("parameter_counts: a module that predicts further tokens is counted by itself") {
  const TransformerShape model = test::presets().model("deepseek_v3");
  const ParameterCounts counts = parameter_counts(model);
  // README_WEIGHTS.md of DeepSeek-V3 prints 11.5 B of its own. 256 experts of 3 x 7168 x 2048 alone
  // are 11.27 B; attention, the shared expert and the product over both hidden states are 0.33 B.
  CHECK(counts.prediction / 1e9 == doctest::Approx(11.5).epsilon(0.01));
  CHECK(counts.total + counts.prediction == total_parameters(model));
  CHECK(parameter_counts(test::presets().model("llama3_8b")).prediction == 0);
}

}  // namespace lockstep
