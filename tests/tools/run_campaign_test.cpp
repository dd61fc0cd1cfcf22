// lockstep run of a scenario with "run": days to months.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/lockstep/table.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

constexpr const char* kWeeks = R"({
  "model": "llama3_8b",
  "cluster": {"node": "dgx_h100", "nodes": 4},
  "parallelism": {"data": 32, "sharding": "zero1"},
  "batch": {"sequences": 32, "micro": 1, "tokens": 8192},
  "recompute": "full",
  "price": {"usd_per_gpu_hour": 2},
  "power": {"facility": "air_chiller"},
  "run": {
    "duration": "20 d",
    "reliability": {"modes": [
      {"name": "node", "component": "node", "mean_time": "4 d"},
      {"name": "slow node", "component": "node", "mean_time": "20 d", "effect": "slow",
       "slowdown": 1.2, "found_after": "1 h"}]},
    "checkpoint": {"interval": "1 h", "mode": "synchronous",
                   "storage": {"write": "1 GB/s", "read": "1 GB/s"}},
    "spares": {"hot": 1, "repair": "1 d"},
    "trajectories": 20
  }
})";

nlohmann::json json_of(const std::vector<std::string>& args) {
  const Ran ran = lockstep_with(args);
  REQUIRE(ran.exit == Exit::ok);
  return nlohmann::json::parse(ran.out);
}

}  // namespace

TEST_CASE("lockstep run, weeks: shares add up, and counts are those of the rates") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("weeks.json", kWeeks);
  const auto json = json_of({"run", file, "--format", "json", "--trajectories", "200"});
  double together = 0;
  for (const auto& bucket : json["wall_time"]) together += bucket["share"].get<double>();
  CHECK(together == doctest::Approx(1).epsilon(1e-9));
  CHECK(json["wall_s"] == 20 * 86400.0);
  CHECK(json["gpu_hours"] == 20 * 24 * 32.0);
  CHECK(json["price_usd"] == 2 * 20 * 24 * 32.0);
  // Four nodes, one failure each in four days.
  CHECK(json["causes"][0]["failures"].get<double>() == doctest::Approx(20).epsilon(0.05));
  CHECK(json["useful_flops_share"].get<double>() ==
        doctest::Approx(json["mfu"].get<double>() * json["goodput"].get<double>()));
  const double mean_w = json["facility_mean_w"];
  CHECK(json["energy_j"].get<double>() == doctest::Approx(mean_w * 20 * 86400));
  CHECK(mean_w > 4 * 3000);
  CHECK(mean_w < 4 * 15000);
}

TEST_CASE("lockstep run, weeks: the same bytes for any number of threads, another seed differs") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("weeks.json", kWeeks);
  for (const char* format : {"table", "json", "csv"}) {
    const std::string one = lockstep_with({"run", file, "--format", format, "-j", "1"}).out;
    CHECK(one == lockstep_with({"run", file, "--format", format, "-j", "4"}).out);
    CHECK(one != lockstep_with({"run", file, "--format", format, "--set", "run.seed=2"}).out);
  }
}

TEST_CASE("lockstep run, weeks: the table fits on a screen and says what was assumed") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("weeks.json", kWeeks);
  const std::string table =
      lockstep_with({"run", file, "--optimise", "run.checkpoint.interval"}).out;
  for (std::size_t begin = 0; begin < table.size();) {
    const std::size_t end = table.find('\n', begin);
    const std::string line = table.substr(begin, end - begin);
    CAPTURE(line);
    CHECK(text_width(line) <= 100);
    CHECK_FALSE(line.ends_with(' '));
    begin = end + 1;
  }
  CHECK(table.find("best simulated") != std::string::npos);
  CHECK(table.find("run.recovery: ") != std::string::npos);
}

TEST_CASE("lockstep run: an option that says nothing about the scenario is refused") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("weeks.json", kWeeks);
  for (const char* option : {"--trace", "--report", "--power-trace"}) {
    const Ran ran = lockstep_with({"run", file, option, folder.path() + "/x"});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err.starts_with("lockstep run: " + std::string(option) + " is for a scenario "));
    CHECK(ran.err.ends_with(" has \"run\"\n"));
  }
  const Ran step = lockstep_with(
      {"run", LOCKSTEP_SOURCE_DIR "/scenarios/llama3-405b-16k.json", "--trajectories", "3"});
  CHECK(step.err.ends_with("llama3-405b-16k.json has none\n"));
  const Ran path = lockstep_with({"run", file, "--optimise", "run.spares.hot"});
  CHECK(path.err == "--optimise: found \"run.spares.hot\"; allowed: run.checkpoint.interval\n");
}

TEST_CASE("lockstep run, weeks: --assert knows the first level") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("weeks.json", kWeeks);
  CHECK(lockstep_with({"run", file, "--assert", "goodput>0.5"}).exit == Exit::ok);
  const Ran missed = lockstep_with({"run", file, "--assert", "goodput>0.999"});
  CHECK(missed.exit == Exit::assertion_missed);
  CHECK(missed.err.starts_with("assertion missed: goodput>0.999"));
}

}  // namespace lockstep
