// lockstep check: the certificate of a scenario, as text and as JSON, and what it says of mistakes.
#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

constexpr const char* kSmallStep =
    R"({"model": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 8192, "vocabulary": 32000},
        "cluster": {"node": "dgx_h100", "nodes": 2, "fabric": "fat_tree"},
        "parallelism": {"tensor": 1, "pipeline": 2, "data": 8},
        "batch": {"sequences": 32, "tokens": 2048}, "recompute": "none",
        "stack": {"preset": "megatron_core",
          "communication": {"overlap_gradients": false, "overlap_parameters": false}}})";

TEST_CASE("check: commands agree on a step, and the certificate says so in both formats") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("job.json", kSmallStep);
  const Ran table = lockstep_with({"check", file});
  CHECK_MESSAGE(table.exit == Exit::ok, table.out);
  CHECK(table.out.find(" laws held\n") != std::string::npos);
  CHECK(table.out.find("replay") != std::string::npos);
  CHECK(table.out.find("plan: no run of weeks") != std::string::npos);
  CHECK(table.err.empty());

  const Ran json = lockstep_with({"check", file, "--format", "json"});
  const auto certificate = nlohmann::json::parse(json.out);
  CHECK(certificate.at("schema") == "lockstep-certificate/1");
  CHECK(certificate.at("broken") == 0);
  CHECK(certificate.at("stopped") == false);
  int agreements = 0;
  for (const auto& law : certificate.at("laws")) {
    if (law.at("family") == "agreement" && law.at("verdict") == "held") ++agreements;
  }
  CHECK(agreements == 5);  // all but the plan's
}

TEST_CASE("check: the same question has the same certificate, byte for byte") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("job.json", kSmallStep);
  const auto ask = [&] { return lockstep_with({"check", file, "--format", "json"}).out; };
  CHECK(ask() == ask());
}

TEST_CASE("check: --law tries some, and --set changes the scenario before") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("job.json", kSmallStep);
  const Ran ran = lockstep_with({"check", file, "--law", "time", "--law", "run", "--set",
                                 "batch.sequences=16", "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const auto certificate = nlohmann::json::parse(ran.out);
  CHECK(certificate.at("tried") == 2);
  CHECK(certificate.at("held") == 2);
}

TEST_CASE("check: --random draws scenarios, says how often each law held, and can be shared out") {
  const std::vector<std::string> words{"check",   "--random", "3",    "--seed",   "5",   "--kind",
                                       "serving", "--law",    "time", "--format", "json"};
  const Ran ran = lockstep_with(words);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const auto all = nlohmann::json::parse(ran.out);
  CHECK(all.at("schema") == "lockstep-random-certificate/1");
  CHECK(all.at("scenarios") == 3);
  CHECK(all.at("kinds").at("serving") == 3);
  CHECK(all.at("laws").size() == 1);
  CHECK(all.at("laws")[0].at("held") == 3);
  std::vector<std::string> last = words;
  last[2] = "1";
  last.insert(last.end(), {"--first", "2"});
  const auto one = nlohmann::json::parse(lockstep_with(last).out);
  CHECK(one.at("first") == 2);
  CHECK(one.at("laws")[0].at("held") == 1);
  const Ran table = lockstep_with({"check", "--random", "1", "--law", "time"});
  CHECK(table.out.find("1 random scenario of seed 1, no law broken") != std::string::npos);
}

TEST_CASE("check: mistakes are lines that say what is allowed, with status 2") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("job.json", kSmallStep);
  const auto says = [](const std::vector<std::string>& args, const std::string& words) {
    const Ran ran = lockstep_with(args);
    CAPTURE(ran.err);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    CHECK(ran.err.find(words) != std::string::npos);
  };
  says({"check"}, "lockstep check: no scenario file");
  says({"check", file, "--random", "3"}, "--random: found a scenario file beside it");
  says({"check", file, "--seed", "3"}, "--seed: found no --random beside it");
  says({"check", "--random", "0"}, "allowed: a whole number from 1");
  says({"check", "--random", "1", "--seed", "-1"}, "allowed: a whole number from 0");
  says({"check", "--random", "1", "--kind", "servng"}, "Did you mean serving?");
  says({"check", file, "--law", "tme"}, "Did you mean time?");
  says({"check", file, "--set", "batch.sequences=17"}, "#/batch/sequences");
  says({"check", folder.write("comm.json", R"({"traffic": [], "cluster": {"node": "dgx"}})")},
       "comm.json#/cluster/node");
  says({"check", folder.path() + "/none.json"}, "none.json: found no such file");
}

}  // namespace
}  // namespace lockstep
