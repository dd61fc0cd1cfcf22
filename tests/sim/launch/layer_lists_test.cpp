#include "sim/launch/layer_lists.hpp"

#include <doctest/doctest.h>

#include "models/base/input_error.hpp"

namespace lockstep {

TEST_CASE("listed_numbers: sums and multiples of lists, as Python has them") {
  CHECK(listed_numbers("[0]*3+[1]*2") == std::vector{0, 0, 0, 1, 1});
  CHECK(listed_numbers("([0, 1] * 2 + [1])*2") == std::vector{0, 1, 0, 1, 1, 0, 1, 0, 1, 1});
  CHECK(listed_numbers("[]") == std::vector<int>{});
  for (const char* const text : {"1", "[1", "[1]*", "[0]*99999", "(([1]*999)*999)*999", "[1]*-1"}) {
    CAPTURE(text);
    CHECK_FALSE(listed_numbers(text).has_value());
  }
}

TEST_CASE("read_stage_layout: layers of each stage out of Megatron-Core's letters") {
  JobSketch job;
  read_stage_layout({"layout", {"Et*3|(tt|)*2,m|L"}, "f"}, job);
  CHECK(job.stage_layers == std::vector{3, 2, 2, 0, 0});
  CHECK_THROWS_AS(read_stage_layout({"layout", {"Et*3|x"}, "f"}, job), InputError);
  CHECK_THROWS_AS(read_stage_layout({"layout", {"(t"}, "f"}, job), InputError);
}

TEST_CASE("read_hybrid_pattern: marks of stages and what predicts further tokens are left out") {
  ModelSketch model;
  read_hybrid_pattern({"pattern", {"M-M*|-M/*E"}, "f"}, model);
  CHECK(model.pattern == "M-M*-M");
  CHECK(model.layers == 6);
  CHECK_THROWS_AS(read_hybrid_pattern({"pattern", {"MXM"}, "f"}, model), InputError);
}

}  // namespace lockstep
