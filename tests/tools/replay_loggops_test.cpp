// `lockstep replay --loggops`: its three outputs, its bounds, and what it refuses.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/trace/loggops/parameters.hpp"
#include "tests/support/near.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr const char* kTwoRanks =
    "num_ranks 2\nrank 0 {\na: calc 1000\nb: send 101b to 1 tag 7\nb requires a\n}\n"
    "rank 1 { recv 101b from -1 tag -1 }\n";

Ran loggops_with(const std::string& goal, const std::string& parameters,
                 const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"replay", goal, "--loggops", parameters};
  words.insert(words.end(), more.begin(), more.end());
  return lockstep_with(words);
}

}  // namespace

TEST_CASE("lockstep replay --loggops: when each rank ends, as table, JSON and CSV, with bounds") {
  const TemporaryFolder folder;
  const std::string goal = folder.write("plan.goal", kTwoRanks);
  const std::string parameters = "S=100,G=0.5,g=10,o=1500,L=2500";
  const Ran ran = loggops_with(goal, parameters, {"--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const nlohmann::json answer = nlohmann::json::parse(ran.out);
  // 1,000 ns, then o + L + o + 100 bytes.
  CHECK(answer["step_s"].get<double>() == near(6550e-9).epsilon(1e-9));
  CHECK(answer["ranks"] == 2);
  CHECK(answer["operations"] == 3);
  CHECK(answer["messages"] == 1);
  CHECK(answer["rendezvous_messages"] == 1);
  CHECK(answer["loggops"]["gap_per_byte_s"].get<double>() == near(0.5e-9).epsilon(1e-9));
  CHECK(answer["loggops"]["overhead_per_byte_s"] == 0.0);
  CHECK(answer["loggops"]["largest_eager_bytes"] == 100);
  // The sender of a message that is longer than S ends when the first byte is met.
  CHECK(answer["rank_times"][0]["end_s"].get<double>() == near(5000e-9).epsilon(1e-9));
  CHECK(answer["rank_times"][1]["rank"] == 1);

  CHECK(loggops_with(goal, parameters, {"--format", "csv"}).out ==
        "rank,end_s\n0,5e-06\n1,6.55e-06\n");
  const std::string table = loggops_with(goal, parameters).out;
  CHECK(table.find("2 ranks, 3 operations, by LogGOPS") != std::string::npos);
  CHECK(table.find("of rank 1") != std::string::npos);
  CHECK(table.find("1 of them by rendezvous") != std::string::npos);
  CHECK(loggops_with(goal, parameters, {"--assert", "step_s<7e-6"}).exit == Exit::ok);
  CHECK(loggops_with(goal, parameters, {"--assert", "step_s<6e-6"}).exit == Exit::assertion_missed);
}

TEST_CASE("lockstep replay --loggops: of many ranks the table has the last ones") {
  const TemporaryFolder folder;
  std::string text = "num_ranks 40\n";
  for (int r = 0; r < 40; ++r) {
    text += "rank " + std::to_string(r) + " { calc " + std::to_string(1000 + 10 * r) + " }\n";
  }
  const std::string table = loggops_with(folder.write("plan.goal", text), "L=1").out;
  CHECK(table.find("rank (the last)") != std::string::npos);
  CHECK(table.find("of rank 39") != std::string::npos);
}

TEST_CASE("lockstep replay --loggops: parameters in any order, and those left out as LogGOPSim's") {
  const LogGopsParameters some = parse_loggops("G=0.02,L=7");
  CHECK(some.latency == StepTime{7000});
  CHECK(some.gap_per_byte_ps == near(20).epsilon(1e-12));
  CHECK(some.overhead == StepTime{1'500'000});
  CHECK(some.gap == StepTime{1'000'000});
  CHECK(some.overhead_per_byte_ps == 0);
  CHECK(some.largest_eager == 65'535);
}

TEST_CASE("lockstep replay --loggops: what it does not take is named") {
  const TemporaryFolder folder;
  const std::string goal = folder.write("plan.goal", kTwoRanks);
  const std::string allowed =
      "; allowed: L, o and g up to 1e9 ns, G and O up to 1e6 ns a byte, and whole bytes S up to "
      "1000000000000000, as in L=2500,o=1500,g=1000,G=0.02,O=0,S=65535";
  for (const char* part : {"P=8", "L=-1", "L=", "L", "L=1x", "S=1.5", "G=1e7", "L=nan", "l=3"}) {
    CAPTURE(part);
    const Ran ran = loggops_with(goal, std::string("o=1,") + part);
    CHECK(ran.exit != Exit::ok);
    CHECK(ran.err.find("--loggops: found \"" + std::string(part) + "\"" + allowed) !=
          std::string::npos);
  }
  const Ran twice = loggops_with(goal, "L=1,o=2,L=2");
  CHECK(twice.exit != Exit::ok);
  CHECK(twice.err.find("--loggops: found \"L=2\", a second L; allowed: each letter once") !=
        std::string::npos);
  struct Refused {
    std::vector<std::string> more;
    std::string error;
  };
  const std::string kineto = folder.write("kineto.json", R"({"traceEvents": []})");
  const std::array refused{
      Refused{{"--node", "dgx_h100"},
              "--loggops: found --node beside it; allowed: --assert, --format, --from and "
              "--output, since its parameters stand for the whole cluster"},
      Refused{{"--from", "kineto"},
              "--from: found \"kineto\"; allowed beside --loggops: goal, goal-bin"},
      Refused{{kineto}, "--loggops: found 2 files; allowed: one, a GOAL schedule"}};
  for (const auto& [more, error] : refused) {
    const Ran ran = loggops_with(goal, "L=1", more);
    CHECK(ran.exit != Exit::ok);
    CHECK(ran.err.find(error) != std::string::npos);
  }
  CHECK(loggops_with(kineto, "L=1").err ==
        kineto +
            ": found a trace of the format kineto; allowed: a GOAL schedule, which --loggops "
            "is for\n");
  const std::string empty = folder.write("empty.goal", " \n");
  CHECK(loggops_with(empty, "L=1").err ==
        empty + ": found an empty file; allowed: a GOAL schedule, which --loggops is for\n");
}
