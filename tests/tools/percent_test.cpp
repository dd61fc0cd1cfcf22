#include "tools/console/percent.hpp"

#include <doctest/doctest.h>

#include "models/base/number_text.hpp"
#include "tools/views/report/page_numbers.hpp"

using namespace lockstep;

TEST_CASE("a share that is there is never printed as nothing") {
  CHECK(few_percent(0.61, 0) == "61 %");
  CHECK(few_percent(0.0004, 1) == "<0.1 %");
  CHECK(few_percent(0.00004, 2) == "<0.01 %");
  CHECK(few_percent(0.004, 0) == "<1 %");
  CHECK(few_percent(0, 1) == "0.0 %");
  CHECK(percent_text(0.0004) == "<0.1 %");
  CHECK(percent_text(0) == "0.0 %");
  CHECK(page_percent(0.0004, 1) == "<\u00a00.1\u00a0%");
  CHECK(page_percent(0.0006, 1) == "0.1\u00a0%");
}

TEST_CASE("what a sum leaves in its last digits is nothing") {
  CHECK(few_percent(1e-12, 1) == "0.0 %");
  CHECK(few_percent(-1e-12, 1) == "0.0 %");
  CHECK(percent_text(1e-12) == "0.0 %");
  CHECK(percent_text(-1e-12) == "0.0 %");
}

TEST_CASE("a part of a whole is the nearest tenth, and of little less than one") {
  CHECK(part_percent(0.1234) == "12.3 %");
  CHECK(part_percent(0.00342) == "0.3 %");
  CHECK(part_percent(0.0006) == "0.1 %");
  CHECK(part_percent(0.0004) == "<0.1 %");
  CHECK(part_percent(0) == "0.0 %");
  CHECK(page_part(0.0004) == "<\u00a00.1\u00a0%");
}

TEST_CASE("a part beside others is never printed as all") {
  CHECK(part_percent(0.99952) == "99.95 %");
  CHECK(part_percent(0.99997) == "99.997 %");
  CHECK(part_percent(1 - 1e-8) == ">99.9999 %");
  CHECK(part_percent(1) == "100.0 %");
  CHECK(part_percent(0.9994) == "99.9 %");
  CHECK(page_part(0.99952) == "99.95\u00a0%");
}

TEST_CASE("an error is within what is printed") {
  CHECK(page_within(0.0312) == "3.1\u00a0%");
  CHECK(page_within(1e-5) == "0.1\u00a0%");
  CHECK(page_within(0) == "0.0\u00a0%");
}
