// `lockstep plan` and `lockstep tune` of services: what they print, write and refuse.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

const std::string kPlanOfService = LOCKSTEP_SOURCE_DIR "/scenarios/plans/serve-70b.json";
const std::string kTunedService =
    LOCKSTEP_SOURCE_DIR "/scenarios/serving/llama3-70b-h100-chat.json";
const std::string kTunedClients =
    LOCKSTEP_SOURCE_DIR "/scenarios/serving/llama3-70b-b200-clients.json";

std::vector<std::string> short_tune(std::vector<std::string> more) {
  std::vector<std::string> out{
      "tune", kTunedService, "--set", "serving.load.requests=400", "--tensor", "4", "--pass-tokens",
      "8192", "--sequences", "256"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace

TEST_CASE("lockstep plan: of a service the table, JSON, CSV, Markdown and the page agree") {
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/plan.html";
  const Ran table = lockstep_with({"plan", kPlanOfService, "--report", page});
  REQUIRE_MESSAGE(table.exit == Exit::ok, table.err);
  const Ran ran = lockstep_with({"plan", kPlanOfService, "--format", "json"});
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  const std::string words = json["recommendation"];
  CHECK(words.starts_with("Take "));
  CHECK(table.out.find("Recommendation  Take ") != std::string::npos);
  CHECK(table.out.find("One pool or two") != std::string::npos);
  CHECK(json["options"].size() == 4);
  CHECK(json["map"].size() == 4);
  REQUIRE(json["curve"].size() >= 2);
  CHECK(json["curve"].front()["gpus"] < json["curve"].back()["gpus"]);
  CHECK(json["curve"].back()["kept"] == true);
  const nlohmann::json& chosen = json["options"][json["choice"].get<std::size_t>()];
  CHECK(chosen["possible"] == true);
  int gpus = 0;
  for (const auto& pool : chosen["pools"]) {
    gpus += pool["replicas"].get<int>() * pool["tensor"].get<int>() *
            pool["attention_data"].get<int>() * pool["pipeline"].get<int>();
  }
  CHECK(chosen["gpus"] == gpus);
  // No way keeps the objectives at the slow end: by how much is told, and that "take" is of
  // expected times alone.
  CHECK(chosen["surely"] == false);
  REQUIRE(chosen["objectives_at_slow_end"].size() == chosen["objectives"].size());
  const auto broken = [](const nlohmann::json& of) { return of["value"] > of["limit"]; };
  CHECK(std::ranges::any_of(chosen["objectives_at_slow_end"], broken));
  CHECK(std::ranges::none_of(chosen["objectives"], broken));
  CHECK(words.find("are not kept: TTFT 99 % ") != std::string::npos);
  CHECK(words.find("No option keeps them there: it is recommended by expected times alone.") !=
        std::string::npos);
  const Ran csv = lockstep_with({"plan", kPlanOfService, "--format", "csv"});
  CHECK(std::count(csv.out.begin(), csv.out.end(), '\n') == 5);
  const Ran markdown = lockstep_with({"plan", kPlanOfService, "--format", "markdown"});
  CHECK(markdown.out.find("| machine | way |") != std::string::npos);
  // Spares are GPUs wherever they are said, those of a whole replica too.
  for (const auto& option : json["options"]) {
    const std::string spares = std::to_string(option["spare_gpus"].get<int>());
    const std::string counts = std::to_string(option["gpus"].get<int>()) + " | " + spares + " |";
    CHECK_MESSAGE(markdown.out.find("| " + counts) != std::string::npos, counts);
  }
  const nlohmann::json& replica = json["options"][0]["pools"][0];
  CHECK(replica["tensor"].get<int>() > 1);
  CHECK(json["options"][0]["spare_gpus"] == replica["tensor"].get<int>() *
                                                replica["attention_data"].get<int>() *
                                                replica["pipeline"].get<int>());
  const std::string html = read_text_file(page);
  for (const char* part : {"Least GPUs that keep the objectives", "The capacity curve",
                           "One pool or two", "Two over one"}) {
    CHECK_MESSAGE(html.find(part) != std::string::npos, part);
  }
}

TEST_CASE("lockstep plan: of a service that nothing can serve in time it says so") {
  const Ran ran =
      lockstep_with({"plan", kPlanOfService, "--set", "scenario.serving.objectives.ttft_p99=1 us"});
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out.find("No machine keeps the objectives") != std::string::npos);
  const Ran samples = lockstep_with({"plan", kPlanOfService, "--samples", "9"});
  CHECK(samples.exit == Exit::bad_input);
  CHECK(samples.err.find("--samples: no such option for the plan of a service") !=
        std::string::npos);
}

TEST_CASE("lockstep plan and tune --vary: of a service each point is what --set gives") {
  const auto json_of = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--format", "json"});
    const Ran ran = lockstep_with(words);
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    nlohmann::json answer = nlohmann::json::parse(ran.out);
    answer.erase("lockstep_version");
    return answer;
  };
  const std::string limit = "scenario.serving.objectives.ttft_p99=";
  const nlohmann::json plans = json_of({"plan", kPlanOfService, "--vary", limit + "1 us,10 s"});
  CHECK(plans["points"][0]["answer"]["choice_gpus"].is_null());
  const nlohmann::json& planned = plans["points"][1]["answer"];
  CHECK(planned == json_of({"plan", kPlanOfService, "--set", limit + "10 s"}));
  const nlohmann::json& chosen = planned["options"][planned["choice"].get<std::size_t>()];
  CHECK(planned["choice_gpus"] == chosen["gpus"]);
  CHECK(planned["choice_spare_gpus"] == chosen["spare_gpus"]);
  const Ran table = lockstep_with({"plan", kPlanOfService, "--vary", limit + "1 us,10 s"});
  CHECK(table.out.find("GPUs") != std::string::npos);
  CHECK(table.out.find(planned["choice_words"].get<std::string>()) != std::string::npos);
  CHECK(table.out.find("none") != std::string::npos);
  const Ran samples =
      lockstep_with({"plan", kPlanOfService, "--samples", "9", "--vary", limit + "1 s"});
  CHECK(samples.exit == Exit::bad_input);
  const std::string load = "serving.load.requests=";
  const nlohmann::json tuned = json_of(short_tune({"--vary", load + "200,400"}));
  CHECK(tuned["points"][1]["answer"] == json_of(short_tune({})));
  const Ran ways = lockstep_with(short_tune({"--vary", load + "200,400"}));
  CHECK(ways.out.find("requests/s") != std::string::npos);
}

TEST_CASE("lockstep plan: of a service, bounds on an answer are no part of it") {
  const Ran ran =
      lockstep_with({"plan", kPlanOfService, "--set", R"(scenario.expect={"that": ["served>0"]})"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("#/scenario/expect: found an object") != std::string::npos);
  CHECK(ran.err.find("no such key in a plan: \"objectives\" say what its machines keep") !=
        std::string::npos);
}

TEST_CASE("lockstep tune: of a service it writes a scenario that run takes as it is") {
  const test::TemporaryFolder folder;
  const std::string best = folder.path() + "/best.json", page = folder.path() + "/tune.html";
  const Ran ran = lockstep_with(short_tune({"-o", best, "--report", page, "--format", "json",
                                            "--set", R"(expect={"that": ["served>0"]})"}));
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  CHECK(json["objective"] == "goodput");
  REQUIRE(!json["best"].empty());
  const Ran again = lockstep_with({"run", best, "--format", "json"});
  REQUIRE_MESSAGE(again.exit == Exit::ok, again.err);
  const nlohmann::json served = nlohmann::json::parse(again.out);
  CHECK(served["gpus"] == json["best"][0]["gpus"]);
  CHECK(served["objectives_kept"] == true);
  CHECK_FALSE(nlohmann::json::parse(read_text_file(best)).contains("expect"));
  const std::string text = read_text_file(page);
  CHECK(text.find("The best ways of serving") != std::string::npos);
  CHECK(text.find("Objectives of a request: TTFT ") != std::string::npos);
  CHECK(text.find("Output tokens/<wbr>s/<wbr>GPU") != std::string::npos);
  CHECK(lockstep_with(short_tune({"--pools", "one", "--format", "csv"}))
            .out.starts_with("rank,score,gpus,pool,"));
  CHECK(lockstep_with(short_tune({"--pools", "two"})).out.find("prompts ") != std::string::npos);
}

TEST_CASE(
    "lockstep tune: of pools on unlike nodes it says which kind each is on, and run takes it") {
  const test::TemporaryFolder folder;
  const std::string best = folder.path() + "/best.json";
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/serving/llama3-70b-h100-a100-pools.json";
  std::vector<std::string> args{"tune",        file, "--set",         "serving.load.requests=300",
                                "--tensor",    "8",  "--pass-tokens", "8192",
                                "--sequences", "256"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = args;
    all.insert(all.end(), more.begin(), more.end());
    return lockstep_with(all);
  };
  const Ran ran = with({"--format", "json", "-o", best});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const nlohmann::json tuned = nlohmann::json::parse(ran.out);
  const nlohmann::json& pools = tuned.at("best").at(0).at("pools");
  REQUIRE(pools.size() == 2);
  CHECK(pools[0].at("node") != pools[1].at("node"));
  const Ran again = lockstep_with({"run", best, "--format", "json"});
  REQUIRE_MESSAGE(again.exit == Exit::ok, again.err);
  const nlohmann::json answer = nlohmann::json::parse(again.out);
  for (const std::size_t pool : {0UL, 1UL})
    CHECK(answer["pools"][pool]["node"] == pools[pool].at("node"));
  const Ran table = with({});
  CHECK(table.out.find(" on dgx_h100") != std::string::npos);
  CHECK(with({"--pools", "one"}).exit == Exit::bad_input);
}

TEST_CASE("lockstep tune: options of a training and of a service do not mix") {
  const auto refuses = [](const std::vector<std::string>& args, const std::string& part) {
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK_MESSAGE(ran.err.find(part) != std::string::npos, ran.err);
  };
  refuses(short_tune({"--sharding", "zero1"}), "--sharding: no such option for a service");
  refuses(short_tune({"--objective", "mfu"}), "goodput");
  refuses({"tune", LOCKSTEP_SOURCE_DIR "/scenarios/bloom-176b.json", "--pools", "two"},
          "--pools: no such option for a training");
  refuses({"tune", LOCKSTEP_SOURCE_DIR "/scenarios/bloom-176b.json", "--objective", "goodput"},
          "step_time");
  refuses({"tune", kTunedClients}, "--objective throughput");
  refuses({"tune", kTunedService, "--tensor", "3"}, "no layout that serves");
}

}  // namespace lockstep
