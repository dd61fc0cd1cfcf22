// `lockstep learn`, and what takes the stack that it writes.
#include <cmath>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "models/spec/compose_stack.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

const std::string kJob = R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
  "parallelism": {"sharding": "zero3"}, "batch": {"sequences": 16, "tokens": 8192},
  "recompute": "full", "stack": "hf_trainer"})";

double predicted(const std::string& text) {
  return simulate_step(read_scenario("job.json", text, test::presets())).step_s;
}

std::string list_of(const std::string& scenario, double step, int times = 1) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (int i = 0; i < times; ++i) {
    out.push_back({{"scenario", nlohmann::ordered_json::parse(scenario)}, {"step", step}});
  }
  return out.dump();
}

}  // namespace

TEST_CASE("learn: a list in YAML is refused as YAML") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("steps.yaml", "- scenario: job.json\n  step: 1.9 s\n");
  const test::Ran ran = test::lockstep_with({"learn", file});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err == file + ": found YAML; allowed: JSON\n");
}

TEST_CASE("learn: a measured step moves the prediction towards it, and narrows its interval") {
  const test::TemporaryFolder folder;
  const double before = predicted(kJob), measured = 1.2 * before;
  const std::string runs = folder.write("runs.json", list_of(kJob, measured));
  const std::string stack = folder.path() + "/mine.json";
  const test::Ran ran = test::lockstep_with({"learn", runs, "-o", stack});
  REQUIRE(ran.err == "");
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out.find("h100_sxm5_80gb") != std::string::npos);
  CHECK(ran.out.find("they cannot tell it from:") != std::string::npos);
  CHECK(ran.out.find("next: ") != std::string::npos);

  const Scenario plain = read_scenario("job.json", kJob, test::presets());
  const ScenarioOptions own{.set = {"stack=" + stack}};
  const Scenario learnt = read_scenario("job.json", kJob, test::presets(), own);
  const double after = simulate_step(learnt).step_s;
  // Prior and noise alike: about half of the difference is believed.
  CHECK(std::log(after / before) > 0.3 * std::log(1.2));
  CHECK(std::log(after / before) < 0.7 * std::log(1.2));
  const PredictionInterval wide = interval_of(plain, test::presets());
  const PredictionInterval narrow = interval_of(learnt, test::presets());
  CHECK(narrow.known == SoftwareKnown::learnt);
  CHECK(narrow.half_width() < wide.half_width());
  CHECK(learnt.assumptions.size() > 0);

  const test::Ran run =
      test::lockstep_with({"run", folder.write("job.json", kJob), "--stack", stack});
  CHECK(run.exit == Exit::ok);
  CHECK(run.out.find("own steps") != std::string::npos);
}

TEST_CASE("learn: JSON says what the table says, and holds the stack") {
  const test::TemporaryFolder folder;
  const std::string runs = folder.write("runs.json", list_of(kJob, 1.2 * predicted(kJob)));
  const std::string stack = folder.path() + "/mine.json";
  const test::Ran ran = test::lockstep_with({"learn", runs, "-o", stack, "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const auto answer = nlohmann::ordered_json::parse(ran.out);
  CHECK(answer["preset"] == nlohmann::ordered_json::parse(read_text_file(stack)));
  CHECK(answer["steps"] == 1);
  const auto& kind = answer["kinds"].at(0);
  CHECK(kind["gpu"] == "h100_sxm5_80gb");
  CHECK(kind["kernels_take"].get<double>() > 1.05);
  CHECK(kind["kernels_take"].get<double>() < 1.2);
  CHECK(kind["half_width_after"].get<double>() < kind["half_width_before"].get<double>());
}

TEST_CASE("learn: the page has what the table says, and what was not learnt") {
  const test::TemporaryFolder folder;
  const std::string runs = folder.write("runs.json", list_of(kJob, 1.2 * predicted(kJob)));
  const std::string file = folder.path() + "/learnt.html";
  const test::Ran ran = test::lockstep_with({"learn", runs, "--report", file, "--format", "json"});
  if (ran.err.find("chart library") != std::string::npos) return;  // built without it
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const std::string page = read_text_file(file);
  const auto kind = nlohmann::ordered_json::parse(ran.out)["kinds"].at(0);
  const double level = kind["kernels_take"].get<double>();
  const auto has = [&](const std::string& words) {
    CHECK_MESSAGE(page.find(words) != std::string::npos, words);
  };
  has("<h1>huggingface_fsdp2, from 1 measured step</h1>");
  has(fmt::format("{:+.1f}\u00a0%</td>", 100 * (level - 1)));
  // Before, nine of ten levels lie within 1.645 prior deviations of the description's.
  const double prior = kind["half_width_before"].get<double>();
  CHECK(prior > kind["half_width_after"].get<double>());
  has(fmt::format("±\u00a0{:.1f}\u00a0%</td>", 100 * prior));
  for (const auto& part : kind["cannot_tell_from"]) has(part["part"].get<std::string>());
  has(kind["next"]["measure"].get<std::string>());
  has("measured, ");
  has("Llama 3 and 3.1 8B.");  // a source of what was measured
}

TEST_CASE("learn: without a file it says what it takes") {
  const test::Ran ran = test::lockstep_with({"learn"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err == "lockstep learn: no measured steps; usage: lockstep learn FILE [-o STACK]\n");
}

TEST_CASE("learn: what is neither a step nor a row is named, with what was found") {
  const test::TemporaryFolder folder;
  const auto error_of = [&folder](std::string_view text) {
    const test::Ran ran = test::lockstep_with({"learn", folder.write("l.json", text)});
    CHECK(ran.exit == Exit::bad_input);
    return ran.err;
  };
  CHECK(error_of("[1, 2]").find("l.json#/0: found 1; allowed: a step ({\"scenario\", \"step\"}), "
                                "or a row of measurements\n") != std::string::npos);
  CHECK(error_of("").find("found an empty text; allowed: a list of steps") != std::string::npos);
  // Keys that neither has are of a step that is misspelt, in the first as in any other.
  CHECK(error_of(R"([{"steps": "3 s"}])").find("l.json#/0/steps: found the unknown key") !=
        std::string::npos);
  CHECK(error_of(R"([{"scenarios": "a.json", "step": "3 s"}])").find("mean \"scenario\"?") !=
        std::string::npos);
  CHECK(error_of("[{}]").find("l.json#/0: found an object without \"scenario\"") !=
        std::string::npos);
  const std::string lacking = error_of(R"([{"id": "mine"}, {"id": "other"}])");
  CHECK(lacking.find("found no step that can be predicted: mine: ") != std::string::npos);
  CHECK(lacking.find("(and 1 more); allowed: at least one") != std::string::npos);
}

TEST_CASE("learn: a stack composed from a framework runs the job that taught it") {
  const test::TemporaryFolder folder;
  nlohmann::ordered_json job = nlohmann::ordered_json::parse(kJob);
  // As a preset this one has no zero3.
  job["stack"] = {{"framework", "pytorch_eager"}};
  const std::string file = folder.write("job.json", job.dump());
  const std::string runs = folder.write("runs.json", list_of(job.dump(), predicted(job.dump())));
  const std::string stack = folder.path() + "/mine.json";
  REQUIRE(test::lockstep_with({"learn", runs, "-o", stack}).exit == Exit::ok);
  const test::Ran run = test::lockstep_with({"run", file, "--stack", stack});
  CHECK(run.err == "");
  CHECK(run.exit == Exit::ok);
}

TEST_CASE("learn: another model, or another GPU, is farther away and less sure") {
  const test::TemporaryFolder folder;
  const std::string runs = folder.write("runs.json", list_of(kJob, 1.2 * predicted(kJob)));
  const std::string stack = folder.path() + "/mine.json";
  REQUIRE(test::lockstep_with({"learn", runs, "-o", stack}).exit == Exit::ok);
  const auto in_force = [&](const std::string& change) {
    return read_scenario("job.json", kJob, test::presets(), {.set = {"stack=" + stack, change}})
        .stack;
  };
  const StackSpec same = in_force("model=llama3_8b"), model = in_force("model=llama2_7b"),
                  card = in_force("cluster.node=dgx_h200");
  CHECK(same.in_force->distance == 0);
  CHECK(model.in_force->distance == 1);
  CHECK(model.in_force->deviation > same.in_force->deviation);
  CHECK(card.in_force->deviation > model.in_force->deviation);
  // Of another kind of job half is taken to hold.
  CHECK(std::log(card.level / test::presets().operator_costs().level) ==
        doctest::Approx(std::log(same.level / test::presets().operator_costs().level) / 2));
}

TEST_CASE("learn: one file teaches one stack, and says what is wrong with a step") {
  const test::TemporaryFolder folder;
  const std::string other = R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
    "batch": {"sequences": 16, "tokens": 8192}, "stack": "torchtune"})";
  const auto refused = [&](const std::string& text) {
    const std::string file = folder.write("runs.json", text);
    const test::Ran ran = test::lockstep_with({"learn", file, "-o", folder.path() + "/out.json"});
    CHECK(ran.exit != Exit::ok);
    CHECK_FALSE(std::filesystem::exists(folder.path() + "/out.json"));
    return ran.err;
  };
  nlohmann::ordered_json two = nlohmann::ordered_json::parse(list_of(kJob, 3));
  two.push_back(nlohmann::ordered_json::parse(list_of(other, 3)).front());
  CHECK(refused(two.dump()).find("one file teaches one") != std::string::npos);
  CHECK(refused(R"([{"scenario": "absent.json"}])").find("runs.json#/0/scenario: found") !=
        std::string::npos);
  CHECK(refused("[]").find("at least one row") != std::string::npos);
  nlohmann::ordered_json timeless = nlohmann::ordered_json::parse(list_of(kJob, 3));
  timeless.front().erase("step");
  CHECK(refused(timeless.dump()).find("runs.json#/0: found an object") != std::string::npos);
  // What is wrong in a scenario is told at its place: in the list that it stands in, or in its
  // file.
  nlohmann::ordered_json misspelt = nlohmann::ordered_json::parse(list_of(kJob, 3));
  misspelt.front()["scenario"]["model"] = "llama3_8c";
  CHECK(refused(misspelt.dump()).find("runs.json#/0/scenario/model: found \"llama3_8c\"") !=
        std::string::npos);
  (void)folder.write("job.json", R"({"model": "llama3_8c"})");
  CHECK(refused(R"([{"scenario": "job.json", "step": "3 s"}])").find("job.json#/model: found") !=
        std::string::npos);
}

TEST_CASE("learn: the same steps again count once") {
  const test::TemporaryFolder folder;
  const double step = 1.2 * predicted(kJob);
  const auto learnt = [&](int times) {
    const std::string file = folder.write("runs.json", list_of(kJob, step, times));
    const std::string stack = folder.path() + "/mine.json";
    REQUIRE(test::lockstep_with({"learn", file, "-o", stack}).exit == Exit::ok);
    return nlohmann::ordered_json::parse(read_text_file(stack))["learnt"][0];
  };
  const auto once = learnt(1), often = learnt(5);
  CHECK(once["steps"] == 1);
  CHECK(often["steps"] == 1);
  CHECK(often["deviation"].get<double>() < once["deviation"].get<double>());
  CHECK(often["deviation"].get<double>() > 0.97 * once["deviation"].get<double>());
}

}  // namespace lockstep
