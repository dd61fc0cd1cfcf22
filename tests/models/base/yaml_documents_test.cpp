#include "models/base/yaml_documents.hpp"

#include <doctest/doctest.h>
#include <yaml-cpp/yaml.h>

namespace lockstep {
namespace {

TEST_CASE("yaml_documents: all of a text") {
  CHECK(yaml_documents("").empty());
  CHECK(yaml_documents("# nothing\n").empty());
  const std::vector<YAML::Node> found = yaml_documents("a: 1\n---\nb: [2, 3]\n...\n---\n- c\n");
  REQUIRE(found.size() == 3);
  CHECK(found[0]["a"].as<int>() == 1);
  CHECK(found[1]["b"][1].as<int>() == 3);
  CHECK(found[2][0].as<std::string>() == "c");
}

TEST_CASE("yaml_documents: a stray comma is no end of documents, and not endless ones") {
  for (const char* text : {",", ", a", "{a: 1}\n,", "a: 1\n---\n,"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(yaml_documents(text), YAML::ParserException);
  }
}

}  // namespace
}  // namespace lockstep
