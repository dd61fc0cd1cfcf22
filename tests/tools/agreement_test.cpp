// Commands that answer the same question give the same answer.
#include <algorithm>
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/random_scenarios.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

nlohmann::json answer(const std::vector<std::string>& args) {
  const Ran ran = lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return nlohmann::json::parse(ran.out);
}

/// The value of a column in the only line of a CSV file.
std::string csv_value(const std::string& file, const std::string& column) {
  std::ifstream in(file);
  std::string names, values, name, value;
  REQUIRE(std::getline(in, names));
  REQUIRE(std::getline(in, values));
  std::istringstream name_cells(names), value_cells(values);
  while (std::getline(name_cells, name, ',') && std::getline(value_cells, value, ',')) {
    if (name == column) return value;
  }
  FAIL("no column ", column, " in ", names);
  return {};
}

/// The same document with the members of every object in reverse order.
nlohmann::ordered_json reversed(const nlohmann::ordered_json& from) {
  if (from.is_array()) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const auto& element : from) out.push_back(reversed(element));
    return out;
  }
  if (!from.is_object()) return from;
  std::vector<std::pair<std::string, nlohmann::ordered_json>> members;
  for (const auto& [key, value] : from.items()) members.emplace_back(key, reversed(value));
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    out[member->first] = std::move(member->second);
  }
  return out;
}

/// Twelve digits are printed of each.
void check_same(const nlohmann::json& a, const nlohmann::json& b) {
  CHECK(a.get<double>() == doctest::Approx(b.get<double>()).epsilon(1e-11));
}

/// A drawn job as a file of its own, and what `lockstep run` says about it.
struct RandomJob {
  explicit RandomJob(const std::string& text)
      : document(nlohmann::ordered_json::parse(text)), file(folder.write("job.json", text)) {
    run = answer({"run", file, "--allow-oom", "--format", "json"});
  }
  [[nodiscard]] bool fits() const { return run.at("memory_fits") == true; }

  test::TemporaryFolder folder;
  nlohmann::ordered_json document;
  std::string file;
  nlohmann::json run;
};

void check_order_of_keys(const RandomJob& job) {
  const std::string turned = job.folder.write("turned.json", write_json(reversed(job.document)));
  const nlohmann::json of_turned = answer({"run", turned, "--allow-oom", "--format", "json"});
  CHECK(of_turned.at("step_s") == job.run.at("step_s"));
  CHECK(of_turned.at("waterfall") == job.run.at("waterfall"));
}

/// A sweep of one point, the job itself.
void check_sweep(const RandomJob& job) {
  const std::string sweep = job.folder.write(
      "sweep.json", fmt::format(R"({{"scenario": "job.json", "allow_oom": true, "axes": [
                        {{"at": "/batch/tokens", "name": "tokens", "values": [{}]}}]}})",
                                job.document.at("batch").at("tokens").get<int>()));
  const std::string csv = job.folder.path() + "/sweep.csv";
  const Ran swept =
      lockstep_with({"sweep", sweep, "-o", job.folder.path() + "/sweep.db", "--csv", csv});
  REQUIRE_MESSAGE(swept.exit == Exit::ok, swept.err);
  for (const char* column : {"step_s", "mfu", "needed_memory_gib"}) {
    CAPTURE(column);
    check_same(std::stod(csv_value(csv, column)), job.run.at(column));
  }
}

/// From the job to the same with a longer step: both ends are what each takes by itself.
void check_compare(const RandomJob& job) {
  nlohmann::ordered_json longer = job.document;
  const int sequences = longer.at("batch").at("sequences").get<int>();
  longer["batch"]["sequences"] = 2 * sequences;
  longer["batch"]["tokens"] = longer.at("batch").at("tokens").get<int>() / 2;
  const RandomJob other(write_json(longer));
  const nlohmann::json comparison =
      answer({"compare", job.file, other.file, "--metric", "step_s", "--format", "json"});
  check_same(comparison.at("from"), job.run.at("step_s"));
  check_same(comparison.at("to"), other.run.at("step_s"));
  double sum = comparison.at("from").get<double>();
  for (const nlohmann::json& change : comparison.at("changes")) {
    sum += change.at("change").get<double>();
  }
  check_same(sum, comparison.at("to"));
}

/// The row that a search has for the layout that the scenario came with. Where none of the few
/// layouts of this search fits there is no answer but an error.
bool check_tune(const RandomJob& job) {
  const nlohmann::ordered_json& cut = job.document.at("parallelism");
  const auto width = [&](const char* key) { return std::to_string(cut.at(key).get<int>()); };
  const Ran tuned = lockstep_with(
      {"tune", job.file, "--tensor", width("tensor"), "--context", width("context"), "--pipeline",
       width("pipeline"), "--virtual-stages", width("virtual_stages"), "--sharding",
       cut.at("sharding").get<std::string>(), "--keep", "1", "-j", "1", "--format", "json"});
  if (tuned.exit != Exit::ok) {
    CHECK_MESSAGE(tuned.err.find("found no layout that") != std::string::npos, tuned.err);
    return false;
  }
  const nlohmann::json own = nlohmann::json::parse(tuned.out).at("own");
  REQUIRE(own.is_object());
  for (const char* value : {"step_s", "mfu", "needed_memory_gib"}) {
    CAPTURE(value);
    check_same(own.at(value), job.run.at(value));
  }
  CHECK(own.at("fits") == job.run.at("memory_fits"));
  for (const nlohmann::json& part : job.run.at("waterfall")) {
    check_same(own.at("waterfall_shares").at(part.at("bucket").get<std::string>()),
               part.at("share"));
  }
  // Bounds are below what they bound, but for the rounding of ticks.
  CHECK(own.at("lower_bound_s").get<double>() <= own.at("step_s").get<double>() * (1 + 1e-9));
  return true;
}

}  // namespace

TEST_CASE("agreement: run, sweep, compare and tune of random jobs, and any order of their keys") {
  int tuned = 0;
  const auto check = [&](const Scenario& scenario, const std::string& text) {
    const RandomJob job(text);
    check_order_of_keys(job);
    check_sweep(job);
    check_compare(job);
    if (scenario.pools.empty()) tuned += check_tune(job) ? 1 : 0;
  };
  const std::uint64_t seed = test::test_seed() + 41;
  test::hold("commands", seed, 24, {.most_nodes = 8}, check);
  test::hold("commands", seed, 16,
             {.fabrics = test::RandomFabrics::every, .straggler = true, .most_nodes = 8}, check);
  test::hold("commands", seed, 8, {.pools = true, .most_nodes = 8}, check);
  test::hold("commands", seed, 8, {.power = true, .most_nodes = 8}, check);
  CHECK(tuned >= 40);
}

// --- runs of weeks -------------------------------------------------------------------------------

namespace {

/// The same training, as `lockstep run` takes it and as a plan of one candidate.
struct RandomTraining {
  explicit RandomTraining(const std::string& text) {
    nlohmann::ordered_json scenario = nlohmann::ordered_json::parse(text);
    scenario["run"].erase("duration");
    scenario["cost"] = {{"usd_per_gpu", 25000}, {"usd_per_node", 60000}, {"usd_per_kwh", 0.1}};
    const nlohmann::json step = [&] {
      nlohmann::ordered_json alone = scenario;
      alone.erase("run");
      return answer(
          {"run", folder.write("step.json", write_json(alone)), "--allow-oom", "--format", "json"});
    }();
    fits = step.at("memory_fits") == true;
    // Five days of steps.
    const double tokens = std::round(5 * 86'400 * step.at("tokens_per_s").get<double>());
    nlohmann::ordered_json plan{{"training", nlohmann::ordered_json::object({{"tokens", tokens}})},
                                {"samples", 10},
                                {"seed", scenario.at("run").at("seed")},  // of all candidates
                                {"scenario", scenario},
                                {"candidates", nlohmann::ordered_json::array()}};
    plan["scenario"]["run"].erase("seed");
    plan["candidates"].push_back({{"name", "a"}, {"pay", "own"}});
    plan_file = folder.write("plan.json", write_json(plan));
    scenario["training"] = plan["training"];
    run_file = folder.write("run.json", write_json(scenario));
  }

  test::TemporaryFolder folder;
  bool fits = false;
  std::string plan_file, run_file;
};

/// A plan gives up at 10 times a run's work. Of eight runs none can have come to that where all of
/// them together took twice their work.
constexpr double kSurelyFinished = 0.5;

/// False: it fails so often that some may not finish.
bool check_plan(const RandomTraining& training) {
  const nlohmann::json run = answer({"run", training.run_file, "--format", "json", "-j", "1"});
  const nlohmann::json planned =
      answer({"plan", training.plan_file, "--format", "json", "-j", "1"}).at("candidates")[0];
  REQUIRE(planned.at("possible") == true);
  check_same(planned.at("step_s"), run.at("step_s"));
  check_same(planned.at("mfu"), run.at("mfu"));
  if (run.at("wall_time")[0].at("share").get<double>() < kSurelyFinished) return false;
  // A median of an input is 1 but for the rounding of a quantile.
  const auto same = [](const nlohmann::json& a, const nlohmann::json& b) {
    CHECK(a.get<double>() == doctest::Approx(b.get<double>()).epsilon(1e-6));
  };
  same(planned.at("time_s").at("point"), run.at("wall_s"));
  same(planned.at("interruptions"), run.at("interruptions"));
  same(planned.at("energy_j").at("point"), run.at("energy_j"));
  same(planned.at("usd").at("point"), run.at("owned_usd"));
  return true;
}

}  // namespace

TEST_CASE("agreement: a plan's point is what run says about the same training") {
  int planned = 0;
  const auto check = [&](const Scenario&, const std::string& text) {
    const RandomTraining training(text);
    if (training.fits) planned += check_plan(training) ? 1 : 0;
  };
  test::hold("plans", test::test_seed() + 42, 30, {.power = true, .weeks = true, .most_nodes = 6},
             check);
  CHECK(planned >= 20);
}

// --- replay --------------------------------------------------------------------------------------

namespace {

/// How far a trace says what the step does.
enum class Told : std::uint8_t {
  exactly,
  /// Exchanges inside layers are one collective for each segment, of as long a transfer when alone;
  /// ZeRO's gathers and the gradients beside it find other shares of NVLink and NICs, mostly larger
  /// ones. Groups that shard apart wait for each other's slowest in a step alone; those that lie
  /// unevenly over nodes have a ring for each rank there, in a trace for each of the smallest part.
  roughly,
  /// A group of tensor- and context-parallel ranks leaves its NVLink domain: one collective takes
  /// the ways that NCCL gives it, where what it stands for is rings of keys and values.
  hardly,
};

Told told_of(const Scenario& scenario) {
  const Parallelism& cut = scenario.job.parallelism;
  const CommunicationPolicy& policy = scenario.stack.communication;
  const int lanes = cut.tensor * cut.context;
  const int ranks = std::max(lanes, cut.expert * cut.expert_tensor);
  if (lanes > scenario.node.nvlink_domain || scenario.node.nvlink_domain < scenario.node.gpus) {
    return Told::hardly;
  }
  const bool beside =
      policy.overlap_gradients || policy.overlap_parameters || cut.sharding == Sharding::zero3;
  const bool experts = scenario.job.model.experts.count > 0;
  const auto uneven = [](int width) { return !std::has_single_bit(static_cast<unsigned>(width)); };
  return (ranks > 1 && beside) || experts || cut.shard_group > 0 || uneven(scenario.nodes) ||
                 uneven(cut.pipeline)
             ? Told::roughly
             : Told::exactly;
}

double replayed_over_run(const test::TemporaryFolder& folder, const std::string& file,
                         const std::string& format) {
  const std::string trace = folder.path() + "/trace";
  const nlohmann::json run =
      answer({"run", file, "--allow-oom", "--" + format, trace, "--format", "json"});
  const nlohmann::json replay = answer({"replay", trace, "--cluster", file, "--format", "json"});
  return replay.at("step_s").get<double>() / run.at("step_s").get<double>();
}

/// Of 2,500 jobs those told exactly were within 0.1 % (rounding, and messages that share a pair of
/// ranks), those told roughly from 0.90 to 1.013.
Told check_chakra(const Scenario& scenario, const std::string& text) {
  const Told told = told_of(scenario);
  if (told == Told::hardly) return told;
  const test::TemporaryFolder folder;
  const double ratio = replayed_over_run(folder, folder.write("job.json", text), "chakra");
  CHECK(ratio >= (told == Told::exactly ? 0.998 : 0.88));
  CHECK(ratio <= (told == Told::exactly ? 1.002 : 1.02));
  return told;
}

/// The job's model and schedule on GPUs of one node, each a stage: GOAL has messages and
/// computation, and no collectives.
std::string lone_pipeline(const std::string& text, int pipeline) {
  nlohmann::ordered_json job = nlohmann::ordered_json::parse(text);
  const int data = job.at("parallelism").at("data").get<int>();
  job["batch"]["sequences"] = job.at("batch").at("sequences").get<int>() / data;
  job["cluster"] = {{"node", "dgx_h100"}, {"nodes", 1}};
  job["model"].erase("experts");
  job.erase("routing");
  job["model"]["tied"] = false;
  nlohmann::ordered_json cut{{"tensor", 1}, {"pipeline", pipeline}, {"data", 1}};
  for (const char* key : {"schedule", "virtual_stages"}) {
    if (job.at("parallelism").contains(key)) cut[key] = job["parallelism"][key];
  }
  job["parallelism"] = cut;
  return write_json(job);
}

/// But for copies of weights on two stages (DualPipe), whose reduction is a ring in GOAL, and for
/// the gradient norm: small messages around all ranks, of some microseconds each.
int check_goal(const Scenario& scenario, const std::string& text) {
  const Parallelism& cut = scenario.job.parallelism;
  if (cut.pipeline == 1 || cut.schedule == Schedule::dualpipe) return 0;
  const test::TemporaryFolder folder;
  const std::string file = folder.write("job.json", lone_pipeline(text, cut.pipeline));
  CAPTURE(read_text_file(file));
  CHECK(std::abs(replayed_over_run(folder, file, "goal") - 1) <= 0.005);
  return 1;
}

}  // namespace

TEST_CASE("agreement: a step's own export, replayed, takes the step's time") {
  std::map<Told, int> chakra;
  int goal = 0;
  const auto check = [&](const Scenario& scenario, const std::string& text) {
    ++chakra[check_chakra(scenario, text)];
    goal += check_goal(scenario, text);
  };
  test::hold("replays", test::test_seed() + 43, 90, {.most_nodes = 4}, check);
  CHECK(chakra[Told::exactly] >= 3);
  CHECK(chakra[Told::exactly] + chakra[Told::roughly] >= 30);
  CHECK(goal >= 20);
}

}  // namespace lockstep
