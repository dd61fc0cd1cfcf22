#include "models/base/write_json.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace lockstep;

TEST_CASE("write_json: bytes that are not UTF-8 lose no document") {
  const nlohmann::ordered_json value{{"file", "caf\xe9.json"}, {"n", 1}};
  CHECK(write_json(value) == "{\"file\":\"caf\uFFFD.json\",\"n\":1}");
  CHECK(write_json(nlohmann::json{1, 2}, 1) == "[\n 1,\n 2\n]");
  CHECK(json_string("\u00e9\xe9", JsonLetters::ascii) == "\"\\u00e9\\ufffd\"");
}
