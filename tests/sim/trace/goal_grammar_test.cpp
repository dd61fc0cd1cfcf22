// The grammar of LogGOPSim's txt2bin, state by state, held against our exports: it reads less than
// our own reader does (no ';', no leading blanks).
// Source: github.com/spcl/LogGOPSim, src/LogGOPSim/txt2bin.re at d5bb14a851e0 (states s_0 to s_24),
// Goal.hpp at 14dddeb5f155.
#include <cstdint>
#include <doctest/doctest.h>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "sim/scenario/read_scenario.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/trace_of_step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

std::string exported_goal(const std::string& layout) {
  const std::string text =
      R"({"model": "llama2_7b", "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},)"
      R"( "parallelism": )" +
      layout + R"(, "batch": {"sequences": 8, "micro": 1, "tokens": 1024}})";
  std::string out;
  write_goal(trace_of_step(read_scenario("step.json", text, test::presets())),
             [&](std::string_view part) { out += part; });
  return out;
}

}  // namespace

TEST_CASE("LogGOPSim: every line is one that txt2bin reads, with numbers that its fields hold") {
  // s_0 to s_1, s_4; s_3, s_7 to s_9: a calculation; s_2, s_10 to s_19: a message.
  const std::regex operation(
      "([a-zA-Z][a-zA-Z0-9_]*): (?:calc ([0-9]+)|(send|recv) ([0-9]+)b (to|from) ([0-9]+)"
      "(?: tag ([0-9]+))?)(?: cpu ([0-9]+))?");
  const std::regex dependency("([a-zA-Z][a-zA-Z0-9_]*) requires ([a-zA-Z][a-zA-Z0-9_]*)");  // s_5
  const std::regex rank_begins("rank ([0-9]+) \\{");                                        // s_20
  const std::regex ranks_line("num_ranks ([0-9]+)");                                        // s_22
  for (const char* layout :
       {R"({"tensor": 2, "pipeline": 2, "data": 2})", R"({"data": 8, "sharding": "zero3"})"}) {
    std::istringstream lines(exported_goal(layout));
    std::string line;
    std::smatch parts;
    REQUIRE(std::getline(lines, line));
    REQUIRE(std::regex_match(line, parts, ranks_line));
    const unsigned long ranks = std::stoul(parts[1]);
    std::set<std::string> labels;
    unsigned long next = 0;
    bool inside = false;
    while (std::getline(lines, line)) {
      CAPTURE(line);
      if (line.empty()) continue;
      if (std::regex_match(line, parts, rank_begins)) {
        // SerializeSchedule() opens its file with rank 0 and closes it with the last one.
        CHECK(std::stoul(parts[1]) == next++);
        labels.clear();
        inside = true;
      } else if (line == "}") {
        CHECK(inside);
        inside = false;
      } else if (std::regex_match(line, parts, dependency)) {
        // retrieve_id(): "references label ..., which is undefined".
        CHECK(labels.contains(parts[1]));
        CHECK(labels.contains(parts[2]));
      } else {
        REQUIRE(std::regex_match(line, parts, operation));
        CHECK(labels.insert(parts[1]).second);
        if (parts[3].matched) {
          CHECK((parts[3] == "send") == (parts[5] == "to"));  // s_11
          CHECK(std::stoul(parts[6]) < ranks);
          CHECK(std::stoull(parts[4]) >= 1);
        }
        // Goal.hpp: a tag has 32 bits, and the largest is "any"; a cpu has 8.
        if (parts[7].matched) CHECK(std::stoull(parts[7]) < 0xFFFFFFFFULL);
        if (parts[8].matched) CHECK(std::stoul(parts[8]) < 256);
      }
    }
    CHECK_FALSE(inside);
    CHECK(next == ranks);
  }
}

}  // namespace lockstep
