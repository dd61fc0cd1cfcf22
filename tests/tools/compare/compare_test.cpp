// `lockstep compare`: which differences there are, in which steps they are made, and that what they
// move adds up.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/search/compare/differences.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::lockstep_with;

const std::string kFolder = LOCKSTEP_SOURCE_DIR "/scenarios/";

std::vector<std::string> pointers(const std::vector<Difference>& all) {
  std::vector<std::string> out;
  for (const Difference& difference : all) out.push_back(difference.pointer);
  return out;
}

Json compared(std::vector<std::string> args) {
  args.insert(args.begin(), "compare");
  args.insert(args.end(), {"--format", "json"});
  const test::Ran ran = lockstep_with(args);
  CHECK(ran.err.empty());
  REQUIRE(ran.exit == Exit::ok);
  return Json::parse(ran.out);
}

/// What every comparison keeps: the changes lead from one answer to the other.
void check_adds_up(const Json& comparison) {
  double sum = comparison["from"].get<double>();
  for (const Json& change : comparison["changes"]) sum += change["change"].get<double>();
  CHECK(sum == doctest::Approx(comparison["to"].get<double>()).epsilon(1e-9));
}

}  // namespace

TEST_CASE("differences: by key, a name as a whole, the model first") {
  const Json a = Json::parse(
      R"({"batch": {"micro": 1, "tokens": 2048}, "recompute": "full", "model": "x",
          "cluster": {"node": {"preset": "n"}, "fabric": {"kind": "k", "a/b": 1}}})");
  const Json b = Json::parse(
      R"({"model": "y", "batch": {"micro": 2, "tokens": 2048}, "precision": "bf16",
          "cluster": {"node": "n", "fabric": {"kind": "k", "a/b": 2}}})");
  const std::vector<Difference> all = differences(a, b);
  CHECK(pointers(all) == std::vector<std::string>{"/model", "/cluster/node", "/cluster/fabric/a~1b",
                                                  "/precision", "/batch/micro", "/recompute"});
  CHECK(all.back().to.is_discarded());
  Json now = a;
  for (const Difference& difference : all) make_change(difference, now);
  CHECK(differences(now, b).empty());
  CHECK(differences(a, a).empty());
}

TEST_CASE("differences: steps are the smallest that are valid, and all of them are made") {
  const Json a = Json::parse(R"({"tensor": 2, "data": 8, "micro": 1, "rest": 0})");
  const Json b = Json::parse(R"({"tensor": 4, "data": 4, "micro": 4, "rest": 1})");
  // 16 GPUs, and a micro batch only with few replicas.
  const auto valid = [](const Json& s) {
    return s["tensor"].get<int>() * s["data"].get<int>() == 16 &&
           s["micro"].get<int>() * s["data"].get<int>() <= 16;
  };
  const std::vector<Change> steps = steps_between(a, differences(a, b), valid);
  REQUIRE(steps.size() == 3);
  CHECK(pointers(steps[0]) == std::vector<std::string>{"/rest"});
  CHECK(pointers(steps[1]) == std::vector<std::string>{"/tensor", "/data"});
  CHECK(pointers(steps[2]) == std::vector<std::string>{"/micro"});
  // Where nothing on the way is valid all is one step.
  CHECK(steps_between(a, differences(a, b), [](const Json&) { return false; }).size() == 1);
}

TEST_CASE("compare: what a step's time is made of, difference by difference") {
  const test::TemporaryFolder folder;
  const std::string small = folder.write("small.json", R"({
    "model": "llama2_7b", "cluster": {"node": "dgx_h100", "nodes": 2},
    "parallelism": {"tensor": 2, "data": 8}, "batch": {"sequences": 64, "tokens": 4096},
    "recompute": "none", "expect": {"step_time": "1 s"}})");
  const std::string other = folder.write("deeper/other.json", R"({
    "model": "llama2_7b", "cluster": {"node": "dgx_a100_80gb", "nodes": 2},
    "parallelism": {"tensor": 4, "data": 4}, "batch": {"sequences": 64, "tokens": 4096},
    "recompute": "full"})");
  const Json step = compared({small, other});
  CHECK(step["metric"] == "step_s");
  check_adds_up(step);
  REQUIRE(step["changes"].size() == 3);
  CHECK(step["changes"][0]["differences"][0]["pointer"] == "/cluster/node");
  CHECK(step["changes"][0]["alone"] == step["changes"][0]["change"]);
  CHECK(step["changes"][1]["differences"][0]["pointer"] == "/recompute");
  CHECK(step["changes"][1]["bucket"] == "recompute");
  CHECK(step["changes"][2]["differences"].size() == 2);

  const Json memory = compared({small, other, "--metric", "needed_memory_gib"});
  check_adds_up(memory);
  CHECK(memory["from"] != memory["to"]);

  const test::Ran table = lockstep_with({"compare", small, other});
  CHECK(table.out.find("cluster.node: dgx_h100 -> dgx_a100_80gb") != std::string::npos);
  CHECK(table.out.find("  + parallelism.data: 8 -> 4\n") != std::string::npos);
  const std::string page = folder.path() + "/compared.html";
  REQUIRE(lockstep_with({"compare", small, other, "--report", page}).exit == Exit::ok);
  const std::string html = read_text_file(page);
  CHECK(html.find("<h1>llama2_7b in two scenarios</h1>") != std::string::npos);
  CHECK(html.find("other.json against small.json.") != std::string::npos);
  CHECK(lockstep_with({"compare", small, small}).out.find("They say the same.") !=
        std::string::npos);
  CHECK(lockstep_with({"compare", small, other, "--format", "csv"})
            .out.starts_with("step,pointer,from,to,value,change,alone,metric\n"));
}

TEST_CASE("compare: runs of days by their goodput, a run with a step by the step") {
  const test::TemporaryFolder folder;
  const std::string scenario = R"({
    "model": "llama2_7b", "cluster": {"node": "dgx_h100", "nodes": 2},
    "parallelism": {"tensor": 2, "data": 8}, "batch": {"sequences": 64, "tokens": 4096},
    "recompute": "none")";
  const auto run = [&](const char* name, const char* interval) {
    return folder.write(name, scenario + R"(, "run": {"duration": "5 d", "trajectories": 4,
              "reliability": "llama3_54_days",
              "checkpoint": {"to": "storage", "mode": "synchronous",
                             "storage": "tectonic_llama3", "interval": ")" +
                                  interval + "\"}}}");
  };
  const std::string often = run("often.json", "10 min"), seldom = run("seldom.json", "4 h");
  const Json goodput = compared({often, seldom});
  CHECK(goodput["metric"] == "goodput");
  check_adds_up(goodput);
  CHECK(goodput["changes"][0]["differences"][0]["pointer"] == "/run/checkpoint/interval");

  const Json step = compared({often, folder.write("step.json", scenario + "}")});
  CHECK(step["metric"] == "step_s");
  CHECK(step["changes"].empty());
  CHECK(step["notes"].size() == 1);
}

TEST_CASE("compare: a note says which of the two does not fit in memory") {
  const test::TemporaryFolder folder;
  const auto file = [&](const std::string& name, const std::string& tensor) {
    return folder.write(name, R"({"model": "llama3_8b", "stack": "megatron_core",
        "cluster": {"node": "dgx_h100", "nodes": 1}, "parallelism": {"tensor": )" +
                                  tensor + R"(},
        "batch": {"sequences": 8, "micro": 1, "tokens": 4096},
        "run": {"duration": "1 d", "trajectories": 1,
            "reliability": {"modes": [{"name": "node", "component": "node", "mean_time": "5 d"}]},
            "checkpoint": {"interval": "1 h",
                "storage": {"write": "9 GB/s", "read": "9 GB/s"}}}})");
  };
  const Json notes = compared({file("narrow.json", "1"), file("wide.json", "8")})["notes"];
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].get<std::string>().starts_with(
      "the first does not fit in memory and is simulated all the same: found a job that needs "));
}

TEST_CASE("compare: mistakes are one line") {
  const std::string bloom = kFolder + "bloom-176b.json";
  const auto error = [](const std::vector<std::string>& args) {
    const test::Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(error({"compare", bloom}) ==
        "lockstep compare: found 1 scenario files; usage: lockstep compare FILE|NAME FILE|NAME "
        "[options]\n");
  CHECK(error({"compare", bloom, bloom, "--metric", "step"}).find("Did you mean step_s?") !=
        std::string::npos);
  CHECK(error({"compare", bloom, kFolder + "congestion/spine-dies.json"}).find("#/jobs") !=
        std::string::npos);
}

}  // namespace lockstep
