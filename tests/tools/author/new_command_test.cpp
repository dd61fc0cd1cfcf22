// What `lockstep new` writes with, and asks with; what it writes is in tests/golden/new.test.
#include <array>
#include <doctest/doctest.h>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/json_text.hpp"
#include "tools/author/commented_json.hpp"
#include "tools/author/questions.hpp"

namespace lockstep::test {

TEST_CASE("new: a comment stands above its member, and the text reads back as the document") {
  const nlohmann::ordered_json document = nlohmann::ordered_json::parse(
      R"({"a": 1, "b": {"c": [1, 2], "d": "// no comment"}, "e": [{"f": 2}]})");
  constexpr std::array comments{JsonComment{"/a", "first"}, JsonComment{"/b/d", "second"},
                                JsonComment{"/e/*/f", "third"}};
  const std::string text = commented_json(document, comments);
  CHECK(text == R"({
  // first
  "a": 1,
  "b": {
    "c": [1, 2],
    // second
    "d": "// no comment"
  },
  "e": [
    {
      // third
      "f": 2
    }
  ]
}
)");
  CHECK(parse_json_text("text", text) == document);
}

TEST_CASE("new: questions come again until an answer will do, and an empty line is the default") {
  std::istringstream in("x\n\n7\n");
  std::ostringstream out;
  Questions questions(in, out);
  const auto digit = [](const std::string& answer) {
    return answer == "x" ? std::string("found \"x\"; allowed: a digit") : std::string();
  };
  CHECK(questions.ask("One?", "4", digit) == "4");
  CHECK(questions.ask("Two?", "4", digit) == "7");
  CHECK(out.str() == "One? [4] found \"x\"; allowed: a digit\nOne? [4] Two? [4] ");
  CHECK_THROWS_WITH(questions.ask("Three?", "4", digit),
                    "lockstep new: the answers ended before the questions");
}

}  // namespace lockstep::test
