// The answers of the library: what the program prints of every scenario, against the output's
// schema and against the answer to the scenario that it holds.
#include "sim/answer/answer.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/schema_errors.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/source_tree.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/thorough.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const std::string kSchemaFile = LOCKSTEP_SOURCE_DIR "/scenarios/result.schema.json";

Json printed_schema() { return Json::parse(read_text_file(kSchemaFile)); }

/// Scenarios that `run` takes.
std::vector<std::string> run_files() {
  std::vector<std::string> files;
  for (const std::string& file : test::source_files({"scenarios"})) {
    const bool other = file.ends_with(".schema.json") || file.starts_with("scenarios/plans/") ||
                       file.starts_with("scenarios/sweeps/");
    if (!file.ends_with(".json") || other) continue;
    const Json root = Json::parse(read_text_file(LOCKSTEP_SOURCE_DIR "/" + file));
    const bool fills = root.contains("filling");  // lockstep queue fill
    if (!fills && !root.contains("traffic") && !root.contains("collective")) files.push_back(file);
  }
  return files;
}

/// A small job on two nodes.
Json small_job() {
  return Json::parse(R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
    "stack": "megatron_core", "parallelism": {"tensor": 8},
    "batch": {"sequences": 8, "tokens": 4096}})");
}

ScenarioAnswer answer_to(const Json& scenario, const Question& question = {}) {
  return answer_text("small.json", write_json(scenario), test::presets(), question);
}

void check_names(const std::vector<FieldInfo>& fields) {
  std::set<std::string> names;
  for (const FieldInfo& field : fields) {
    CAPTURE(field.name);
    CHECK(names.insert(field.name).second);
    CHECK((!field.sentence.empty() || !field.successor.empty()));
    const bool says_unit = field.name.ends_with("_s") || field.name.ends_with("_w") ||
                           field.name.ends_with("_usd") || field.name.ends_with("_gib");
    if (says_unit && field.kind == FieldKind::number) CHECK_FALSE(field.unit().empty());
    check_names(field.members);
  }
}

}  // namespace

// To write it: LOCKSTEP_WRITE_SCHEMA=1 build/tests/lockstep_tests -tc='result.schema.json*'
TEST_CASE("result.schema.json: is what the tables of fields say") {
  const std::string text = write_json(result_schema(), 2) + "\n";
  if (std::getenv("LOCKSTEP_WRITE_SCHEMA") != nullptr) std::ofstream(kSchemaFile) << text;
  CHECK(read_text_file(kSchemaFile) == text);
}

TEST_CASE("answer: the output of `run` fits the schema, and its scenario gives the same answer" *
          doctest::skip(test::kSlowBuild)) {
  const Json schema = printed_schema();
  const std::vector<std::string> files = run_files();
  REQUIRE(files.size() > 40);
  std::set<std::string> kinds;
  // All of them, or every third, which has all kinds.
  std::size_t number = 0;
  for (const std::string& file : files) {
    CAPTURE(file);
    const std::string path = LOCKSTEP_SOURCE_DIR "/" + file;
    if (number++ % 3 != 0 && !test::thorough()) continue;
    const test::Ran ran = test::lockstep_with({"run", path, "--format", "json"});
    REQUIRE(ran.exit == Exit::ok);
    Json printed = Json::parse(ran.out);
    for (const std::string& error : test::schema_errors(schema, printed)) FAIL_CHECK(error);
    kinds.insert(printed.at("kind").get<std::string>());
    printed.erase("lockstep_version");
    const ScenarioAnswer again =
        answer_text(path, write_json(printed.at("scenario")), test::presets());
    CHECK(write_json(again.json(), 2) == write_json(printed, 2));
  }
  CHECK(kinds == std::set<std::string>{"step", "run", "jobs", "rl", "queue", "serving"});
}

TEST_CASE("answer: with everything that can be asked for it fits the schema") {
  const Json schema = printed_schema();
  const test::TemporaryFolder folder;
  Json job = small_job();
  job["power"] = Json::object();
  job["training"] = {{"tokens", 1e9}};
  job["cost"] = {{"usd_per_gpu", 30000}};
  job["cluster"]["fabric"] = {{"preset", "rail_optimised"}, {"routing", "ecmp"}};
  const std::string step = folder.write("step.json", write_json(job));
  job["run"] = {{"duration", "2 d"},
                {"reliability", "llama3_54_days"},
                {"checkpoint", {{"to", "storage"}, {"storage", "tectonic_llama3"}}}};
  const std::string run = folder.write("run.json", write_json(job));
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"run", step, "--explain-fabric", "--hash-seeds", "2"},
        std::vector<std::string>{"run", step, "--jitter", "1 us"},
        std::vector<std::string>{"run", run, "--trajectories", "3", "--optimise",
                                 "run.checkpoint.interval"},
        std::vector<std::string>{"run", step, "--set", "batch.sequenes=3"}}) {
    CAPTURE(options.back());
    std::vector<std::string> words = options;
    words.insert(words.end(), {"--format", "json"});
    const test::Ran ran = test::lockstep_with(words);
    const Json printed = Json::parse(ran.out);
    for (const std::string& error : test::schema_errors(schema, printed)) FAIL_CHECK(error);
  }
}

TEST_CASE("answer: a member that no table has, and one that is missing, do not fit the schema") {
  Json answer = answer_to(small_job()).json();
  answer["lockstep_version"] = "0";
  const Json schema = printed_schema();
  CHECK(test::schema_errors(schema, answer).empty());
  Json other = answer;
  other["speed"] = 1;
  CHECK_FALSE(test::schema_errors(schema, other).empty());
  other = answer;
  other.erase("mfu");
  CHECK_FALSE(test::schema_errors(schema, other).empty());
  other = answer;
  other["mfu"] = "much";
  CHECK_FALSE(test::schema_errors(schema, other).empty());
}

TEST_CASE("answer: each member has one row, a sentence, and a unit where its name says one") {
  for (const AnswerKind kind : kAnswerKinds) check_names(answer_fields(kind));
}

TEST_CASE("answer: money by something has the unit of both, and titles spell USD") {
  const auto field = [](const char* name) {
    return FieldInfo{.name = name, .kind = FieldKind::number};
  };
  CHECK(field("purchase_usd_per_kwh").unit() == "USD/kWh");
  CHECK(field("capital_usd_per_node").unit() == "USD");
  CHECK(field("energy_kwh").unit() == "kWh");
  CHECK(field("usd_per_million_output_tokens").title() == "USD per million output tokens");
}

TEST_CASE("answer: numbers by name, bounds with the nearest name") {
  const ScenarioAnswer answer = answer_to(small_job());
  CHECK(answer.kind() == AnswerKind::step);
  CHECK(answer.number("gpus") == 16);
  CHECK(answer.number("waterfall.model_flops.share") > 0.1);
  CHECK_FALSE(answer.number("speed"));
  CHECK(answer.keeps("mfu>0.1"));
  CHECK_FALSE(answer.keeps("mfu>0.9"));
  CHECK_THROWS_WITH_AS((void)answer.keeps("mfuu>0.9"), doctest::Contains("Did you mean \"mfu\"?"),
                       InputError);
}

TEST_CASE("answer: a step and a run give one quantity under one name") {
  Json job = small_job();
  job["power"] = Json::object();
  job["cost"] = {{"usd_per_gpu", 30000}};
  const ScenarioAnswer step = answer_to(job);
  job["run"] = {{"duration", "1 d"}, {"reliability", "llama3_54_days"}};
  const ScenarioAnswer run = answer_to(job, {.trajectories = 2});
  CHECK(run.kind() == AnswerKind::run);
  CHECK(step.number("step_s") == run.number("step_s"));
  CHECK(step.number("step_s_low") == run.number("step_s_low"));
  CHECK(step.number("mfu") == run.number("mfu"));
  CHECK(step.number("capital_usd") == run.number("capital_usd"));
  for (const char* shared : {"facility_mean_w", "energy_j", "joules_per_token", "owned_usd"}) {
    CAPTURE(shared);
    CHECK(step.number(shared).has_value());
    CHECK(run.number(shared).has_value());
  }
}

TEST_CASE("answer: an old name still works and is said to be one") {
  CHECK(successor_of(AnswerKind::step, "power.bill.total_usd") == "power.bill.owned_usd");
  CHECK(successor_of(AnswerKind::step, "power.shares.fans.joules") == "power.shares.fans.energy_j");
  CHECK(successor_of(AnswerKind::step, "scenario.parameters") == "job.parameters");
  CHECK(successor_of(AnswerKind::jobs, "jobs.a.mfu_full") == "jobs.a.mfu");
  CHECK(successor_of(AnswerKind::step, "mfu").empty());

  const test::TemporaryFolder folder;
  const std::string file = folder.write("small.json", write_json(small_job()));
  const test::Ran ran =
      test::lockstep_with({"run", file, "--assert", "scenario.parameters>1e9", "-o", "/dev/null"});
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.err.find("write \"job.parameters\"") != std::string::npos);
}

TEST_CASE("answer: a queue's numbers by name, the same from the library as from the program") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/queue/slurm-recorded.json";
  const ScenarioAnswer answer = answer_scenario(file, test::presets());
  CHECK(answer.kind() == AnswerKind::queue);
  CHECK(answer.number("waterfall.useful.share").value() ==
        doctest::Approx(answer.number("useful_share").value()));
  CHECK(answer.number("by_gpus.1.wait_s.mean").has_value());
  CHECK(answer.keeps("wait_mean_s<3600"));
  Json printed = Json::parse(test::lockstep_with({"run", file, "--format", "json"}).out);
  printed.erase("lockstep_version");
  CHECK(printed == Json::parse(answer.json().dump()));
}

}  // namespace lockstep
