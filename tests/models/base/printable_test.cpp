#include "models/base/printable.hpp"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("printable: what a terminal would obey is seen, and letters stay") {
  CHECK(printable("caf\u00e9 \u2588 \U0001F680") == "caf\u00e9 \u2588 \U0001F680");
  CHECK(printable("\033[31mred\a\n") == "\\x1b[31mred\\x07\\x0a");
  CHECK(printable("\u202egpj.exe") == "\\u202egpj.exe");
  CHECK(printable("\u2066a\u2069") == "\\u2066a\\u2069");
  CHECK(printable("a\u200bb\ufeff\u2060") == "a\\u200bb\\ufeff\\u2060");  // of zero width
  CHECK(printable("\u009b31m") == "\\u009b31m");                          // C1: CSI in one letter
  CHECK(printable("caf\xe9") == "caf\\xe9");
  CHECK(printable("\xC0\x80") == "\\xc0\\x80");           // overlong
  CHECK(printable("\xED\xA0\x80") == "\\xed\\xa0\\x80");  // half a surrogate pair
  CHECK(printable("\xE2\x80") == "\\xe2\\x80");           // cut
}

TEST_CASE("printable_lines: line breaks and tabs stay") {
  CHECK(printable_lines("a\tb\r\n\033c\n") == "a\tb\r\n\\x1bc\n");
  CHECK(printable_lines("").empty());
}

TEST_CASE("valid_utf8: a byte that begins no letter is replaced, the rest stays") {
  CHECK(valid_utf8("caf\xe9 x") == "caf\uFFFD x");
  CHECK(valid_utf8("caf\u00e9") == "caf\u00e9");
}
