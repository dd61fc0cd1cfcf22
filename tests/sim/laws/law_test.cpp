// The book of a law: what counts as held, as an anomaly, as broken, and what is not counted at all.
#include "sim/laws/law.hpp"

#include <cmath>
#include <doctest/doctest.h>

namespace lockstep {
namespace {

TEST_CASE("law book: a law that compared nothing has not held") {
  LawBook book;
  CHECK(book.verdict() == LawVerdict::does_not_apply);
  book.does_not_apply("one node: no fabric");
  CHECK(book.verdict() == LawVerdict::does_not_apply);
  CHECK(book.why() == "one node: no fabric");
}

TEST_CASE("law book: numbers are the same up to what is allowed, from both sides") {
  LawBook book;
  book.same("just within", 1.0, 1.0 - 0.9e-9, 1e-9);
  CHECK(book.verdict() == LawVerdict::held);
  CHECK(book.largest() == doctest::Approx(0.9e-9).epsilon(1e-6));
  CHECK(book.largest_of() == "just within");
  book.same("just beyond", 1.0, 1.0 - 1.1e-9, 1e-9);
  CHECK(book.verdict() == LawVerdict::broken);
  CHECK(book.broken() == 1);
  CHECK(book.breaks().front().what == "just beyond");
  CHECK(book.comparisons() == 2);
}

TEST_CASE("law book: what is no number breaks every law") {
  for (const bool upper : {false, true}) {
    CAPTURE(upper);
    LawBook book;
    if (upper) {
      book.at_most("a bound", std::nan(""), 1, 1);
    } else {
      book.same("a number", std::nan(""), 1, 1);
    }
    CHECK(book.verdict() == LawVerdict::broken);
  }
}

TEST_CASE("law book: a bound is kept below, at, and a little above it") {
  LawBook book;
  book.at_most("below", 1, 2, 0);
  book.at_most("at", 2, 2, 0);
  book.at_most("a little above", 2 + 1e-12, 2, 1e-12);
  CHECK(book.verdict() == LawVerdict::held);
  book.at_most("above", 2.1, 2, 1e-12);
  CHECK(book.verdict() == LawVerdict::broken);
  CHECK(book.breaks().front().expected == "at most 2");
}

TEST_CASE("law book: an anomaly is named with its size, beyond the largest it is a break") {
  LawBook book;
  book.no_worse("no change", 1, 1, 1e-6, 0.02);
  CHECK(book.verdict() == LawVerdict::held);
  book.no_worse("small", 1.001, 1, 1e-6, 0.02);
  book.no_worse("larger", 1.019, 1, 1e-6, 0.02);
  CHECK(book.verdict() == LawVerdict::held_with_anomalies);
  REQUIRE(book.anomalies().size() == 2);
  CHECK(book.anomalies().front().what == "larger");
  CHECK(book.anomalies().front().size == doctest::Approx(0.019));
  book.no_worse("too large", 1.021, 1, 1e-6, 0.02);
  CHECK(book.verdict() == LawVerdict::broken);
}

TEST_CASE("law book: texts that differ are shown around the letter where they do") {
  LawBook book;
  book.same_text("an answer", std::string(200, 'a') + "x", std::string(200, 'a') + "y");
  REQUIRE(book.breaks().size() == 1);
  CHECK(book.breaks().front().found == std::string(40, 'a') + "x");
  CHECK(book.breaks().front().expected == std::string(40, 'a') + "y");
}

TEST_CASE("law book: of many breaks the first are kept, and all counted") {
  LawBook book;
  for (int i = 0; i < 20; ++i) book.same("a number", i, i + 1, 0);
  CHECK(book.broken() == 20);
  CHECK(book.breaks().size() == LawBook::kShownBreaks);
}

}  // namespace
}  // namespace lockstep
