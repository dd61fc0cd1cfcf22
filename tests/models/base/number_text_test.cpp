#include "models/base/number_text.hpp"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("plain_number: as somebody would write it, without an exponent where digits do") {
  CHECK(plain_number(2.5) == "2.5");
  CHECK(plain_number(0) == "0");
  CHECK(plain_number(0.125) == "0.125");
  CHECK(plain_number(1e-4) == "0.0001");
  CHECK(plain_number(999999) == "999999");
  CHECK(plain_number(1e6) == "1,000,000");
  CHECK(plain_number(999999.7) == "1,000,000");
  CHECK(plain_number(1e9) == "1,000,000,000");
  CHECK(plain_number(-557123, 3) == "-557,000");
  CHECK(plain_number(12800, 4) == "12,800");
  CHECK(plain_number(99, 2) == "99");
  CHECK(plain_number(100, 2) == "100");
  CHECK(plain_number(1e15) == "1e+15");
  CHECK(plain_number(1e-6) == "1e-06");
}

TEST_CASE("error_text: a sign always, and none that says minus nothing") {
  CHECK(error_text(0.0312) == "+3.1 %");
  CHECK(error_text(-0.25) == "-25.0 %");
  CHECK(error_text(-0.0004) == "+0.0 %");
  CHECK(error_text(0) == "+0.0 %");
  CHECK(error_text(-0.0006) == "-0.1 %");
}
