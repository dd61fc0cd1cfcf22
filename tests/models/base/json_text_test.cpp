#include "models/base/json_text.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

/// What the parser says about a text; "fine" if nothing.
std::string complaint(std::string_view text) {
  try {
    parse_json_text("p.json", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "fine";
}

struct BadText {
  std::string_view text;
  std::string_view complaint;
};
using namespace std::string_view_literals;
constexpr std::array kBadTexts{
    BadText{""sv, "p.json: found an empty text; allowed: a JSON object"},
    BadText{" \r\n\t"sv, "p.json: found an empty text; allowed: a JSON object"},
    BadText{"\xEF\xBB\xBF"sv, "p.json: found an empty text; allowed: a JSON object"},
    BadText{"{\"a\": 1"sv,
            "p.json#/a: found the end of the text at line 1, column 8; allowed: ',' or '}'"},
    BadText{"{\n  \"a\": \"x"sv,
            "p.json#/a: found the end of the text at line 2, column 10; allowed: a closing quote"},
    BadText{"{\"a\": {\"b\": [1, NaN]}}"sv,
            "p.json#/a/b/1: found \"NaN\" at line 1, column 17; allowed: a JSON value (an object, "
            "array, string, number, true, false or null)"},
    BadText{"{\"a\": -Infinity}"sv,
            "p.json#/a: found \"-Infinity\" at line 1, column 8; allowed: a JSON number"},
    BadText{"{\"a\": 1e999}"sv, "p.json#/a: found 1e999; allowed: a number of at most 1.79e308"},
    BadText{"{\"a\": [1, {\"b\": 1, \"b\": 2}]}"sv,
            "p.json#/a/1/b: found the key \"b\" a second time; allowed: each key once"},
    BadText{"{\"a\": 1 \"b\": 2}"sv,
            "p.json#/a: found \"b\" at line 1, column 11; allowed: ',' or '}'"},
    BadText{"{\"a\": 1,}"sv,
            "p.json#/a: found \"}\" at line 1, column 9; allowed: a key in double quotes"},
    BadText{"{'a': 1}"sv,
            "p.json: found \"'\" at line 1, column 2; allowed: a key in double quotes"},
    BadText{"{\"a\" 1}"sv,
            "p.json#/a: found \"1\" at line 1, column 6; allowed: ':' after the key"},
    BadText{
        "{} x"sv,
        "p.json: found \"x\" at line 1, column 4; allowed: the end of the text after one value"},
    BadText{"\x7F"
            "ELF\x01\x00\x02"sv,
            "p.json: found \"\\x7f\" at line 1, column 1; allowed: a JSON value (an object, array, "
            "string, number, true, false or null)"},
    BadText{"\xFF\xFE{\0"sv,
            "p.json: found \"\\xff\" at line 1, column 1; allowed: a JSON value (an object, array, "
            "string, number, true, false or null)"},
    BadText{"{\"a\": \"\xC3\x28\"}"sv,
            "p.json#/a: found \"(\" at line 1, column 9; allowed: UTF-8 text"},
    BadText{"{\"a\": \"\n\"}"sv,
            "p.json#/a: found \"\\x0a\" at line 1, column 8; allowed: text in which control "
            "characters are escaped (\\n, \\t)"},
};

}  // namespace

TEST_CASE("parse_json_text: every bad text is one line that says where and what is allowed") {
  for (const BadText& row : kBadTexts) CHECK(complaint(row.text) == row.complaint);
}

TEST_CASE("parse_json_text: keeps the order of keys, and skips a byte order mark") {
  CHECK(parse_json_text("p.json", "\xEF\xBB\xBF {\"b\": [1, {}], \"a\": 1e300}").dump() ==
        R"({"b":[1,{}],"a":1e+300})");
}

TEST_CASE("parse_json_text: 64 levels are taken, 65 are not, nor is a megabyte of brackets") {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  CHECK(complaint(nested(kJsonDepth)) == "fine");
  const std::string deep = complaint(nested(kJsonDepth + 1));
  CHECK(
      deep.ends_with(": found more than 64 levels; allowed: at most 64 nested objects and arrays"));
  CHECK(complaint(std::string(1'000'000, '[')) == deep);
  CHECK(complaint(R"({"a":)" + nested(kJsonDepth) + "}").starts_with("p.json#/a/0/0/0"));
}

TEST_CASE("pointer_part: escapes as RFC 6901 says") {
  CHECK(pointer_part("a/b~c") == "a~1b~0c");
  CHECK(complaint(R"({"a/b": {"c~d": tru}})").starts_with("p.json#/a~1b/c~0d: found \"tru\""));
}

TEST_CASE("JSON text: YAML in its place is called YAML, other mistakes are not") {
  const auto found = [](std::string_view text) -> std::string {
    try {
      (void)parse_json_text("p.yaml", text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  const std::string yaml = "p.yaml: found YAML; allowed: JSON";
  CHECK(found("# steps\n\n- scenario: job.json\n  step: 1.9 s\n") == yaml);
  CHECK(found("---\nscenario: a\n") == yaml);
  CHECK(found("scenario:\n  model: llama3_8b\n") == yaml);
  CHECK(found("a: 1\r\n") == yaml);
  for (const char* text : {"-1x", "a", "{a: 1}", "[- 1]", "\"a\": 1", "http://x"}) {
    CAPTURE(text);
    CHECK(found(text).find("YAML") == std::string::npos);
    CHECK(found(text) != "none");
  }
}

TEST_CASE("quote_non_finite: numbers that JSON lacks become strings, and strings stay") {
  CHECK(quote_non_finite(R"({"a": [0.0, Infinity, -Infinity, NaN], "b": nan})") ==
        R"({"a": [0.0, "Infinity", "-Infinity", "NaN"], "b": "nan"})");
  const std::string strings = R"({"NaN": "Infinity, \"NaN\", -inf", "inf": [1e5, -2, true, null]})";
  CHECK(quote_non_finite(strings) == strings);
  CHECK(quote_non_finite("[-inf,-nan,inf]") == R"(["-inf","-nan","inf"])");
  CHECK(quote_non_finite("[Infinity2, \"") == "[Infinity2, \"");
}

}  // namespace lockstep
