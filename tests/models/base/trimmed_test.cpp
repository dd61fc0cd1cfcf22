#include "models/base/trimmed.hpp"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("trimmed: blanks go at both ends, and stay inside") {
  CHECK(trimmed("\t 15.6  T tokens \r\n") == "15.6  T tokens");
  CHECK(trimmed("whole") == "whole");
  CHECK(trimmed(" \t\r\n").empty());
  CHECK(trimmed("").empty());
  // No-break spaces are bytes of UTF-8, whatever the locale.
  CHECK(trimmed("\u00a0GPU ") == "\u00a0GPU");
}
