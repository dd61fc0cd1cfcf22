// `lockstep run` of scenarios with "rl", what other commands say to them, and `validate --rl`.
#include <doctest/doctest.h>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/measured/validate_rl.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tests/tools/summary_of.hpp"
#include "tools/console/options.hpp"
#include "tools/views/report/assets.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

const std::string kColocated = LOCKSTEP_SOURCE_DIR "/scenarios/rl/grpo-llama3-8b-colocated.json";
const std::string kPower = LOCKSTEP_SOURCE_DIR "/scenarios/rl/grpo-llama3-8b-power.json";
const std::string kPools = LOCKSTEP_SOURCE_DIR "/scenarios/rl/ppo-llama3-8b-pools.json";

nlohmann::json rl_answer(const std::string& file) {
  const Ran ran = lockstep_with({"run", file, "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return nlohmann::json::parse(ran.out);
}

}  // namespace

TEST_CASE("lockstep run: a step of reinforcement learning, in every format") {
  for (const std::string& file : {kColocated, kPools}) {
    CAPTURE(file);
    const nlohmann::json answer = rl_answer(file);
    double shares = 0;
    for (const auto& bucket : answer["buckets"]) shares += bucket["share"].get<double>();
    CHECK(shares == doctest::Approx(1));
    const double tokens = answer["tokens_per_step"].get<double>() / answer["step_s"].get<double>() /
                          answer["gpus"].get<double>();
    CHECK(answer["tokens_per_s_per_gpu"].get<double>() == doctest::Approx(tokens));
    const Ran table = lockstep_with({"run", file});
    for (const char* text : {"Where the GPU time goes", "Together", "100.0 %", "Wait for last"}) {
      CHECK(table.out.find(text) != std::string::npos);
    }
    const std::string csv = lockstep_with({"run", file, "--format", "csv"}).out;
    CHECK(csv.starts_with("bucket,gpu_s,share\nprefill,"));
  }
  CHECK(rl_answer(kPools)["training_gpus"] == 16);
  CHECK(rl_answer(kPools)["generation_gpus"] == 16);
  CHECK(lockstep_with({"run", kPools, "--assert", "step_s<1"}).exit == Exit::assertion_missed);
}

TEST_CASE("lockstep run: an update has the scenario's samples, and says what rows rounded") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/rl/dpo-llama3-8b.json";
  // 64 prompts of 512 tokens with two responses of about 800 each.
  const auto text_of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"run", file});
    std::string out = lockstep_with(words).out, joined;
    for (const char c : out) {
      const bool space = c == ' ' || c == '\n';
      if (!space || joined.empty() || joined.back() != ' ') joined += space ? ' ' : c;
    }
    return joined;
  };
  CHECK(text_of({}).find("1 x 1 update of 128 samples of 1,312 tokens on average, packed into 6 "
                         "micro batches: simulated as 144 samples of 1,167, 3 to a micro batch") !=
        std::string::npos);
  CHECK(text_of({"--set", "rl.packing=false"})
            .find("1 x 1 update of 128 samples of 1,312 tokens on average, each padded to 4,096 "
                  "tokens; 1 to a micro batch") != std::string::npos);
}

TEST_CASE("lockstep run: the CSV of a step of reinforcement learning has what phases draw") {
  const nlohmann::json answer = rl_answer(kPower);
  std::istringstream lines(lockstep_with({"run", kPower, "--format", "csv"}).out);
  std::string line;
  std::getline(lines, line);
  CHECK(line == "bucket,gpu_s,share,gpu_mean_w,gpu_energy_j,energy_j,energy_share");
  double shares = 0, joules = 0;
  std::vector<std::string> phases;
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line + ",");
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    REQUIRE(cells.size() == 7);
    if (!cells[2].empty()) shares += std::stod(cells[2]);
    if (cells[5].empty()) continue;
    joules += std::stod(cells[5]);
    phases.push_back(cells[0]);
  }
  CHECK(shares == doctest::Approx(1));
  CHECK(joules == doctest::Approx(answer.at("energy_per_step_j").get<double>()));
  CHECK(phases.size() == answer.at("power").at("phases").size());
  CHECK(phases.back() == "decode");
}

TEST_CASE("lockstep run: the page of an iteration has its power over time, where it says power") {
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/page.html";
  const auto says = [&page](const std::string& file) {
    const Ran ran = lockstep_with({"run", file, "--report", page});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return read_text_file(page).find("The site over an iteration") != std::string::npos;
  };
  try {
    (void)chart_library();
  } catch (const UsageError&) {
    return;  // this build has none
  }
  CHECK(says(kPower));
  CHECK_FALSE(says(kPools));
}

TEST_CASE("lockstep run: bounds that a step of reinforcement learning is expected to keep") {
  const nlohmann::json answer = rl_answer(kPower);
  CHECK(answer.at("claim").at("bounds").size() == 2);
  CHECK(answer.at("site_excess_w").get<double>() < 0);
  const Ran kept = lockstep_with({"run", kPower});
  CHECK(kept.exit == Exit::ok);
  CHECK(kept.out.find("\nExpected\n  site_excess_w < 0 W: it is -") != std::string::npos);
  const Ran missed = lockstep_with({"run", kPower, "--set", R"(expect.that=["step_s<1"])"});
  CHECK(missed.exit == Exit::assertion_missed);
  CHECK(missed.out.find("NOT met: step_s < 1 s: it is ") != std::string::npos);
  CHECK(missed.err.find("step_s<1") != std::string::npos);
}

TEST_CASE("scenarios with \"rl\": options and commands about other things say so") {
  for (const char* option : {"--unfold", "--trace=x.json", "--optimise=run.checkpoint.interval"}) {
    CAPTURE(option);
    const Ran ran = lockstep_with({"run", kColocated, option});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err.find("has \"rl\"") != std::string::npos);
  }
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"compare", kColocated, kColocated},
        {"tune", kColocated},
        {"run", kColocated, "--set", "model=llama3_405b"}}) {
    CAPTURE(args.front());
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err.find('\n') == ran.err.size() - 1);
  }
}

TEST_CASE("published steps and engines: predicted as well as the README says") {
  const PointTable table =
      validate_rl(LOCKSTEP_SOURCE_DIR "/tests/reference/rl.json", PresetStore{});
  CHECK(table.points.size() == 103);
  // Newer releases do without what older ones lost; neither was fitted.
  CHECK(test::group(table, "NeMo RL 0.5").median_abs < 0.32);
  CHECK(test::group(table, "NeMo RL 0.7").median_abs < 0.18);
  CHECK(test::group(table, "TensorRT-LLM 1.0").median_abs < 0.08);
  CHECK(test::group(table, "TensorRT-LLM 1.0").p90_abs < 0.18);
}

}  // namespace lockstep
