#include "models/base/number_text.hpp"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("error_text: a sign always, and none that says minus nothing") {
  CHECK(error_text(0.0312) == "+3.1 %");
  CHECK(error_text(-0.25) == "-25.0 %");
  CHECK(error_text(-0.0004) == "+0.0 %");
  CHECK(error_text(0) == "+0.0 %");
  CHECK(error_text(-0.0006) == "-0.1 %");
}
