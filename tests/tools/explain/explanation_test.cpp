// lockstep explain: what stands behind a number.
#include "sim/measured/explanation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/answer/formulas.hpp"
#include "sim/measured/command_formulas.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/console/table.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

ScenarioAnswer explained_answer(const std::string& name, std::vector<std::string> set = {}) {
  return answer_scenario(LOCKSTEP_SOURCE_DIR "/scenarios/" + name, presets(),
                         {.set = std::move(set), .allow_oom = true, .trajectories = 20});
}

/// The number at the path of an input of a formula.
std::optional<double> explained_input(const ScenarioAnswer& answer, const Formula& formula,
                                      std::string_view name) {
  for (const FormulaInput& input : inputs_of(formula)) {
    if (input.name == name) return answer.number(input.path);
  }
  return std::nullopt;
}

/// Paths of all numbers of an answer's members, an element of a list as "0".
std::vector<std::string> numbers_below(const std::vector<FieldInfo>& fields,
                                       const std::string& around) {
  std::vector<std::string> out;
  for (const FieldInfo& field : fields) {
    if (!field.successor.empty()) continue;
    const std::string path = around.empty() ? field.name : around + "." + field.name;
    if (field.is_number() && !around.empty()) out.push_back(path);
    if (field.kind == FieldKind::named_numbers) out.push_back(path + ".name");
    const std::vector<std::string> below =
        numbers_below(field.members, field.kind == FieldKind::objects ? path + ".0" : path);
    out.insert(out.end(), below.begin(), below.end());
  }
  return out;
}

/// Paths of all numbers of a JSON value, but of the scenario that it holds.
std::vector<std::string> number_paths(const Json& value, const std::string& around) {
  std::vector<std::string> out;
  if (value.is_number()) out.push_back(around);
  if (!value.is_structured()) return out;
  std::size_t index = 0;
  for (const auto& [name, member] : value.items()) {
    if (around.empty() && name == "scenario") continue;
    const std::string key = value.is_array() ? std::to_string(index++) : name;
    const std::vector<std::string> below =
        number_paths(member, around.empty() ? key : around + "." + key);
    out.insert(out.end(), below.begin(), below.end());
  }
  return out;
}

}  // namespace

TEST_CASE("formulas: every number of the first level of every answer has one") {
  for (const AnswerKind kind : kAnswerKinds) {
    for (const std::string& field : explained_fields(kind)) {
      CAPTURE(field);
      const Formula* const formula = formula_of(kind, field);
      REQUIRE(formula != nullptr);
      CHECK_FALSE(formula->text.empty());
    }
  }
}

TEST_CASE("formulas: an expression of the inputs is the value, wherever all of them are there") {
  std::set<std::string> tried;
  for (const ScenarioAnswer& answer :
       {explained_answer("gpt3-175b-selene.json"), explained_answer("llama3-405b-54days.json"),
        explained_answer("power/llama3-405b-16k-power.json", {"power.site_limit=30 MW"}),
        explained_answer("gpt3-175b-selective.json", {"batch.sequences=128", "batch.tokens=4096"}),
        explained_answer("power/llama3-405b-16k-power.json",
                         {R"(run={"duration": "2 d", "reliability": "llama3_54_days",
                                   "checkpoint": {"to": "storage", "interval": "30 min",
                                                  "storage": "tectonic_llama3"},
                                   "recovery": {"detects_crash": "1 min", "detects_hang": "10 min",
                                                "diagnoses": "2 min", "restarts": "5 min"}})"}),
        explained_answer("site/dataset-in-tiers.json"),
        explained_answer("rl/grpo-llama3-8b-colocated.json"),
        explained_answer("queue/slurm-recorded.json"),
        explained_answer("serving/llama3-70b-h100-chat.json", {"serving.load.requests=500"})}) {
    for (const std::string& field : explained_fields(answer.kind())) {
      const Formula& formula = *formula_of(answer.kind(), field);
      const std::optional<double> shown = answer.number(field);
      if (!formula.arithmetic || !shown) continue;
      const std::optional<double> worked_out = evaluate(formula.text, [&](std::string_view name) {
        return explained_input(answer, formula, name);
      });
      CAPTURE(field);
      CAPTURE(name_of(answer.kind()));
      REQUIRE(worked_out.has_value());
      CHECK(std::abs(*worked_out - *shown) <= 1e-9 * std::abs(*shown));
      tried.insert(field);
    }
  }
  for (const Formula& formula : formulas()) {
    CAPTURE(formula.field);
    CHECK((!formula.arithmetic || tried.contains(std::string(formula.field))));
  }
}

TEST_CASE("formulas: every number below the first level of every answer has one") {
  for (const AnswerKind kind : kAnswerKinds) {
    for (const std::string& path : numbers_below(answer_fields(kind), "")) {
      CAPTURE(name_of(kind));
      CAPTURE(path);
      const Formula* const formula = formula_at(kind, path);
      REQUIRE(formula != nullptr);
      CHECK_FALSE(formula->text.empty());
    }
  }
}

TEST_CASE("formulas: below the first level too, an expression of the inputs is the value") {
  std::set<std::string_view> tried;
  for (const ScenarioAnswer& answer :
       {explained_answer("power/llama3-405b-16k-power.json"),
        explained_answer("gpt3-175b-selene.json"), explained_answer("site/cloud-then-own.json"),
        explained_answer("site/curtailment-two-hours.json", {"run.duration=2 d"}),
        explained_answer("queue/slurm-recorded.json"),
        explained_answer("queue/burst-to-cloud.json", {"queue.until=2 d"}),
        explained_answer("serving/llama3-70b-h100-chat.json", {"serving.load.requests=500"}),
        explained_answer("serving/beside-training.json"),
        explained_answer("rl/grpo-llama3-8b-colocated.json", {"power={}"}),
        explained_answer("congestion/two-jobs-one-spine.json")}) {
    for (const std::string& path : number_paths(answer.json(), "")) {
      const Formula* const formula = formula_at(answer.kind(), path);
      if (formula == nullptr || !formula->arithmetic || path.find('.') == std::string::npos)
        continue;
      const std::vector<FormulaInput> inputs = inputs_of(*formula, path);
      const std::optional<double> worked_out = evaluate(formula->text, [&](std::string_view name) {
        const auto input = std::ranges::find(inputs, name, &FormulaInput::name);
        return input == inputs.end() ? std::nullopt : answer.number(input->path);
      });
      CAPTURE(path);
      REQUIRE(worked_out.has_value());
      const double shown = answer.number(path).value();
      CHECK(std::abs(*worked_out - shown) <= 1e-9 * (1 + std::abs(shown)));
      tried.insert(formula->field);
    }
  }
  for (const Formula& formula : path_formulas()) {
    CAPTURE(formula.field);
    CHECK((!formula.arithmetic || tried.contains(formula.field)));
  }
}

TEST_CASE("formula_at: the longest pattern that fits, words alone for members around") {
  constexpr std::array kRows{Formula{"a", "x", false, "around", ""},
                             Formula{"a.*.c", "x", false, "element", ""},
                             Formula{"a.*.c.d", "x", true, "e / f", "e=.e f=..f g"},
                             Formula{"a", "y", false, "other", ""}};
  const auto text_of = [&](char kind, std::string_view path) {
    const Formula* const found = formula_at(kRows, kind, path);
    return found == nullptr ? std::string_view() : found->text;
  };
  CHECK(text_of('x', "a.b") == "around");
  CHECK(text_of('x', "a.0.c.z") == "element");
  CHECK(text_of('x', "a.0.c.d") == "e / f");
  CHECK(text_of('x', "a.0.c.d.z") == "element");
  CHECK(text_of('y', "a.0.c.d") == "other");
  CHECK(text_of('x', "b.a").empty());
  const std::vector<FormulaInput> inputs = inputs_of(kRows[2], "a.0.c.d");
  REQUIRE(inputs.size() == 3);
  CHECK(inputs[0].path == "a.0.c.e");
  CHECK(inputs[1].path == "a.0.f");
  CHECK(inputs[2].path == "g");
  // The first of several that there is, else the last.
  constexpr Formula kEither{"a", "x", false, "words", "b=c.1.b|c.0.b g"};
  const auto first_path = [&](const char* there) {
    const auto has = [&](std::string_view path) { return path == there; };
    return inputs_of(kEither, "a", has).front().path;
  };
  CHECK(first_path("c.1.b") == "c.1.b");
  CHECK(first_path("c.0.b") == "c.0.b");
  CHECK(inputs_of(kEither).front().path == "c.0.b");
}

TEST_CASE("lockstep explain: behind the time per token stands the pool that decodes") {
  const auto paths_of = [](const std::string& scenario, const char* field) {
    const Ran ran = lockstep_with({"explain", LOCKSTEP_SOURCE_DIR "/scenarios/serving/" + scenario,
                                   field, "--set", "serving.load.requests=50", "--format", "json"});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    const Json explained = Json::parse(ran.out);
    std::set<std::string> out;
    for (const Json& input : explained["inputs"]) out.insert(input["path"]);
    return out;
  };
  const std::string two = "llama3-70b-h100-a100-pools.json";
  CHECK(paths_of(two, "tpot_mean_s").contains("pools.1.busy_s"));
  CHECK_FALSE(paths_of(two, "tpot_mean_s").contains("pools.0.busy_s"));
  CHECK(paths_of(two, "ttft_mean_s").contains("pools.0.busy_s"));
  CHECK(paths_of("llama3-70b-h100-chat.json", "tpot_mean_s").contains("pools.0.busy_s"));
}

TEST_CASE("formulas: an expression without one of its values has none") {
  const auto of = [](std::string_view name) {
    return name == "a" ? std::optional(6.0) : std::nullopt;
  };
  CHECK(evaluate("2 * (a - 1) / 4 + a", of) == 8.5);
  CHECK(evaluate("a - 1 - 1", of) == 4);
  CHECK_FALSE(evaluate("a + b", of).has_value());
}

TEST_CASE("lockstep explain: an input is from its preset with its source, or from the scenario") {
  const ScenarioAnswer answer = explained_answer("gpt3-175b-selene.json");
  const FieldExplanation mfu = explain_field("f", answer, "mfu", presets());
  REQUIRE(mfu.inputs.size() == 2);
  CHECK(mfu.inputs[1].from.starts_with("gpus/a100_sxm4_80gb.json: peak_fp16 312 TFLOP/s, "));
  CHECK(mfu.low.value() < mfu.value);
  CHECK(mfu.high.value() > mfu.value);
  const FieldExplanation tokens = explain_field("f", answer, "tokens_per_step", presets());
  CHECK(tokens.inputs[0].from == "scenario: batch.sequences");
  CHECK(tokens.nearest.empty());
  CHECK_FALSE(tokens.low.has_value());
}

TEST_CASE("lockstep explain: the nearest published run of a published job is that run") {
  const FieldExplanation step =
      explain_field("f", explained_answer("gpt3-175b-selene.json"), "step_s", presets());
  REQUIRE(step.nearest.size() == 5);
  CHECK(step.nearest.front().gpu == "a100_sxm4_80gb");
  CHECK(step.nearest.front().gpus == 1536);
  CHECK(step.nearest.front().distance <= step.nearest.back().distance);
}

TEST_CASE("lockstep explain: a number below the first level, with inputs beside it") {
  const ScenarioAnswer answer = explained_answer("gpt3-175b-selene.json");
  const FieldExplanation weights =
      explain_field("f", answer, "stages.0.memory.weights_gib", presets());
  CHECK(weights.unit == "GiB");
  CHECK(weights.value > 0);
  CHECK(weights.formula.starts_with("parameters of the stage's layers on a rank"));
  const auto layers = std::ranges::find(weights.inputs, "stages.0.layers", &ExplainedInput::path);
  REQUIRE(layers != weights.inputs.end());
  CHECK(layers->value == answer.number("stages.0.layers"));
  CHECK(explain_field("f", answer, "stages.0.layers", presets()).formula.starts_with("layers "));
  const FieldExplanation bubble =
      explain_field("f", answer, "waterfall.pipeline_bubble.share", presets());
  CHECK(bubble.arithmetic);
  CHECK(bubble.inputs.front().path == "waterfall.pipeline_bubble.seconds");
  CHECK(bubble.sentence ==
        field_at(answer_fields(AnswerKind::step), "waterfall.0.share")->sentence);
  const Ran wrong = lockstep_with({"explain", "gpt3-175b-selective", "stages.0.memory.weight_gib"});
  CHECK(wrong.exit == Exit::bad_input);
  CHECK(wrong.err.find("allowed: a number of its answer's \"stages.0.memory\": "
                       "stages.0.memory.total_gib, ") != std::string::npos);
  CHECK(wrong.err.ends_with("Did you mean \"stages.0.memory.weights_gib\"?\n"));
}

TEST_CASE("a run's GPU-hours without lots are those of its GPUs over its wall time") {
  const ScenarioAnswer answer = explained_answer("llama3-405b-54days.json", {"run.trajectories=2"});
  const double hours = answer.number("gpus").value() * answer.number("wall_s").value() / 3600;
  CHECK(answer.number("gpu_hours").value() == doctest::Approx(hours).epsilon(1e-11));
}

TEST_CASE("lockstep explain: of a service the model, its interval and the nearest services") {
  const ScenarioAnswer answer =
      explained_answer("serving/llama3-70b-h100-chat.json", {"serving.load.requests=200"});
  const FieldExplanation p99 = explain_field("f", answer, "ttft_s.p99", presets());
  CHECK(p99.unit == "s");
  CHECK(p99.formula.find("ttft_mean_s") != std::string::npos);
  CHECK_FALSE(p99.low.has_value());
  REQUIRE(p99.nearest.size() == 5);
  for (const NearbyRun& service : p99.nearest) {
    CHECK(service.figure == "ttft_s");
    CHECK_FALSE(service.statistic.empty());
    CHECK(service.measured > 0);
    CHECK(service.predicted > 0);
  }
  CHECK(p99.nearest.front().gpu.find("H100") != std::string::npos);
  CHECK(p99.nearest.front().distance <= p99.nearest.back().distance);
  const FieldExplanation mean = explain_field("f", answer, "tpot_mean_s", presets());
  CHECK(mean.low == answer.number("interval.tpot_low_s"));
  CHECK(mean.high == answer.number("interval.tpot_high_s"));
  CHECK(mean.formula.find("HBM") != std::string::npos);
  CHECK(mean.nearest.front().figure == "tpot_s");
  CHECK(explain_field("f", answer, "served", presets()).nearest.empty());
}

TEST_CASE("lockstep explain: collectives, traffic and plans") {
  const std::string folder = LOCKSTEP_SOURCE_DIR "/scenarios/";
  const auto explained = [&](const std::string& file, const std::string& field,
                             const std::string& set = "about=tried") {
    const Ran ran =
        lockstep_with({"explain", folder + file, field, "--format", "json", "--set", set});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return Json::parse(ran.out);
  };
  const Json nic = explained("comm/alltoall-16-nodes.json", "nic_bytes_per_s");
  CHECK(nic["inputs"][0]["from"].get<std::string>().starts_with("nodes/"));
  CHECK(nic["about"] == "What a member has of its node's NICs.");
  const Json row = explained("comm/alltoall-16-nodes.json", "rows.0.algbw_bytes_per_s");
  CHECK(row["arithmetic"] == true);
  CHECK(std::abs(row["inputs"][0]["value"].get<double>() / row["inputs"][1]["value"].get<double>() /
                     row["value"].get<double>() -
                 1) < 1e-9);
  CHECK(explained("comm/incast-32.json", "end_s")["unit"] == "s");
  const Json time = explained("plans/train-70b-15t-tokens.json", "choice_time_s", "samples=20");
  CHECK(time["formula"].get<std::string>().find("expected.time_s") != std::string::npos);
  const Json of_first =
      explained("plans/train-70b-15t-tokens.json", "candidates.0.expected.time_s", "samples=20");
  CHECK(of_first["inputs"][1]["path"] == "candidates.0.step_s");
}

TEST_CASE("lockstep explain: a point of a sweep, its columns, and what of its answer they set") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", R"({
    "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 4},
    "parallelism": {"data": 32}, "batch": {"sequences": 32, "micro": 1, "tokens": 8192},
    "recompute": "full"})");
  const std::string sweep = folder.write("sweep.json", R"({
    "scenario": "job.json",
    "axes": [{"at": "/parallelism/tensor", "values": [4, 2, 8]},
             {"at": "/batch/sequences", "values": [64, 128]}],
    "derived": [{"name": "data", "is": "32 / tensor", "at": "/parallelism/data"}],
    "constraints": ["tensor < 8"]})");
  const auto explained = [&](const std::string& field) {
    const Ran ran = lockstep_with({"explain", sweep, field, "--point", "3", "--format", "json"});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return Json::parse(ran.out);
  };
  const Ran run = lockstep_with({"run", job, "--format", "json", "--set", "parallelism.tensor=2",
                                 "--set", "parallelism.data=16", "--set", "batch.sequences=128"});
  REQUIRE_MESSAGE(run.exit == Exit::ok, run.err);
  const Json answer = Json::parse(run.out);
  CHECK(explained("step_s")["value"] == answer["step_s"]);
  const Json tokens = explained("tokens_per_step");
  CHECK(tokens["value"] == 128 * 8192);
  CHECK(tokens["point"] == "point 3 of sweep.json: tensor 2, sequences 128, data 16");
  const auto from = [&](const std::string& path) {
    for (const Json& input : tokens["inputs"]) {
      if (input["path"] == path) return input["from"].get<std::string>();
    }
    return std::string();
  };
  CHECK(from("job.batch.sequences") == "column sequences of sweep.json: batch.sequences");
  CHECK(from("job.batch.tokens") == "scenario: batch.tokens");
  CHECK(explained("model_flops_share")["value"] == answer["waterfall"][0]["share"]);
  CHECK(explained("waterfall.launch.share")["point"] == tokens["point"]);
  const Json data = explained("data");
  CHECK(data["value"] == 16);
  CHECK(data["formula"].get<std::string>().ends_with("whole ones: 32 / tensor"));
  CHECK(data["inputs"].size() == 1);
  CHECK(data["inputs"][0]["value"] == 2);
  CHECK(data["about"] == "A column of the sweep, which sets parallelism.data of job.json.");

  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"explain", sweep, "mfu"});
    const Ran ran = lockstep_with(more);
    CHECK(ran.exit == Exit::bad_input);
    return ran.err;
  };
  CHECK(refused({}).ends_with(
      "sweep.json is a sweep, and --point is missing; allowed: a whole number from 0 to 5\n"));
  CHECK(refused({"--point", "6"}) == "--point: found \"6\"; allowed: a whole number from 0 to 5\n");
  CHECK(refused({"--point", "4"})
            .ends_with("sweep.json#/constraints: found --point 4, which they leave out; allowed: a "
                       "point that keeps them all\n"));
  CHECK(refused({"--point", "1", "--set", "recompute=full"}) ==
        "lockstep explain: found --set beside a sweep; allowed: --point, --stack, --presets\n");
  CHECK(lockstep_with({"explain", job, "mfu", "--point", "1"}).err ==
        "lockstep explain: --point is for a sweep\n");
}

TEST_CASE("lockstep explain: every number of a trace's replay, on the first level and below") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("t.goal",
                                         "num_ranks 2\nrank 0 {\na: calc 500000\nb: send 1000000b "
                                         "to 1 tag 3\nb requires a\n}\nrank 1 {\nc: recv 1000000b "
                                         "from 0 tag 3\n}\n");
  const auto explained = [&](const std::string& field) {
    const Ran ran =
        lockstep_with({"explain", trace, field, "--node", "dgx_h100", "--format", "json"});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return Json::parse(ran.out);
  };
  const Ran replay = lockstep_with({"replay", trace, "--node", "dgx_h100", "--format", "json"});
  REQUIRE_MESSAGE(replay.exit == Exit::ok, replay.err);
  const Json answer = Json::parse(replay.out);
  CHECK(explained("step_s")["value"] == answer["step_s"]);
  for (const auto& [name, value] : answer.items()) {
    CAPTURE(name);
    if (value.is_number()) CHECK(explained(name)["about"] != "");
  }
  CHECK(explained("rank_times.1.waiting_s")["value"] == answer["rank_times"][1]["waiting_s"]);
  CHECK(explained("trace_nodes")["inputs"][0]["path"] == "ranks");
  const Ran nothing = lockstep_with({"explain", folder.path(), "step_s"});
  CHECK(nothing.exit == Exit::bad_input);
  const std::string none = folder.write("none.goal", "no trace");
  CHECK(lockstep_with({"explain", none, "step_s", "--nodes", "4"}).err ==
        "lockstep explain: --nodes is for a trace, beside --node or --cluster\n");
}

TEST_CASE(
    "lockstep explain: options of a trace beside a scenario say what it takes in their place") {
  const auto said = [](const std::string& document, const std::string& option,
                       const std::string& value) {
    const Ran ran = lockstep_with({"explain", document, "mfu", option, value});
    CHECK(ran.exit == Exit::bad_input);
    return ran.err;
  };
  const std::string of_trace = "; --node, --cluster and the like are of a trace\n";
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/llama3-405b-16k.json";
  for (const std::string& document : {file, std::string("llama3-405b-16k")}) {
    CHECK(said(document, "--node", "dgx_h100") ==
          "lockstep explain: found --node beside a scenario; allowed: --set "
          "cluster.node=dgx_h100" +
              of_trace);
  }
  CHECK(said("gpt3-175b-selective", "--nodes", "4") ==
        "lockstep explain: found --nodes beside a scenario; allowed: --set cluster.nodes=4" +
            of_trace);
  CHECK(said(LOCKSTEP_SOURCE_DIR "/scenarios/plans/serve-70b.json", "--cluster", file) ==
        "lockstep explain: found --cluster beside a scenario; allowed: --set PATH=VALUE, --stack" +
            of_trace);
  // What is neither is told as the replay tells it.
  CHECK(said("no-such-file", "--node", "dgx_h100").find("beside a scenario") == std::string::npos);
}

TEST_CASE("formulas of commands: every one says what its number is") {
  for (const Formula& formula : command_formulas()) {
    CAPTURE(formula.field);
    CHECK_FALSE(formula.about.empty());
    CHECK_FALSE(formula.text.empty());
    CHECK(formula.kinds.find_first_not_of("ctpwy") == std::string_view::npos);
  }
  // What plans say of their choice on the first level.
  for (const std::string_view of_choice :
       {"choice_time_s_p05", "choice_time_s_p95", "choice_usd_p05", "choice_usd_p95", "choice_gpus",
        "choice_spare_gpus", "choice_ttft_p99_s", "choice_tpot_p99_s",
        "choice_usd_per_million_output_tokens"}) {
    CAPTURE(of_choice);
    CHECK(std::ranges::find(command_formulas(), of_choice, &Formula::field) !=
          command_formulas().end());
  }
}

TEST_CASE("lockstep explain: measured memory, power and collectives stand beside such numbers") {
  const auto nearest = [](const std::string& file, const std::string& field) {
    const Ran ran = lockstep_with(
        {"explain", LOCKSTEP_SOURCE_DIR "/scenarios/" + file, field, "--format", "json"});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return Json::parse(ran.out)["nearest"];
  };
  struct Case {
    const char *file, *field, *measured;
  };
  for (const Case& each :
       {Case{"gpt3-175b-selene.json", "peak_memory_gib", "peak_memory_gib"},
        Case{"gpt3-175b-selene.json", "stages.0.memory.weights_gib", "peak_memory_gib"},
        Case{"power/llama3-405b-16k-power.json", "power.gpu.mean_w", "gpu_mean_w"},
        Case{"power/llama3-405b-16k-power.json", "power.node.mean_w", "node_w"},
        Case{"comm/alltoall-16-nodes.json", "largest_time_s", "time_s"},
        Case{"comm/allreduce-dgxh100.json", "best_busbw_bytes_per_s", "busbw_bytes_per_s"}}) {
    CAPTURE(each.field);
    const Json rows = nearest(each.file, each.field);
    REQUIRE(rows.size() >= 2);
    double before = 0;
    for (const Json& row : rows) {
      const double measured = row[std::string("measured_") + each.measured];
      const double predicted = row[std::string("predicted_") + each.measured];
      // Of another order of magnitude it would be of another quantity or unit.
      CHECK(measured / predicted == doctest::Approx(1).epsilon(0.7));
      CHECK(row["distance"].get<double>() >= before);
      before = row["distance"];
    }
  }
}

TEST_CASE("lockstep explain: names that are none, with the nearest") {
  const Ran ran = lockstep_with({"explain", "gpt3-175b-selective", "mfu_casual"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("found \"mfu_casual\"; allowed: a number of the first level of its answer") !=
        std::string::npos);
  CHECK(ran.err.ends_with("Did you mean \"mfu_causal\"?\n"));
  CHECK(lockstep_with({"explain", "gpt3-175b-selective"}).exit == Exit::bad_input);
  for (const char* const path : {"stages..forward_s", "stages.", ".stages", ".", ""}) {
    const Ran empty_part = lockstep_with({"explain", "gpt3-175b-selective", path});
    CHECK(empty_part.exit == Exit::bad_input);
    CHECK(empty_part.err.find("; allowed: a number of ") != std::string::npos);
  }
  CHECK(lockstep_with({"explain", "gpt3-175b-selective", "stages.0..layers"})
            .err.find("a number of its answer's \"stages.0\": stages.0.stage, ") !=
        std::string::npos);
  const Ran good = lockstep_with({"explain", "gpt3-175b-selective", "mfu"});
  CHECK(good.exit == Exit::ok);
  CHECK(good.out.find("Formula\n  mfu = tflops_per_gpu * 1e12 / peak") != std::string::npos);
  CHECK(good.out.find("Nearest published runs") != std::string::npos);
}

TEST_CASE("lockstep explain: weeks of a job that does not fit have no number unless asked for") {
  const TemporaryFolder folder;
  const std::string file = folder.write("weeks.json", R"({"model": "llama3_8b",
      "stack": "megatron_core", "cluster": {"node": "dgx_h100", "nodes": 1},
      "parallelism": {"tensor": 1}, "batch": {"sequences": 8, "micro": 1, "tokens": 4096},
      "run": {"duration": "1 d", "trajectories": 1,
          "reliability": {"modes": [{"name": "node", "component": "node", "mean_time": "5 d"}]},
          "checkpoint": {"interval": "1 h", "storage": {"write": "9 GB/s", "read": "9 GB/s"}}}})");
  const Ran refused = lockstep_with({"explain", file, "goodput"});
  CHECK(refused.exit == Exit::bad_input);
  CHECK(refused.out.empty());
  CHECK(refused.err.find("found a job that needs ") != std::string::npos);
  CHECK(refused.err == lockstep_with({"run", file}).err);
  CHECK(lockstep_with({"explain", file, "goodput", "--allow-oom"}).exit == Exit::ok);
  CHECK(lockstep_with({"explain", file, "goodput", "--set", "parallelism.tensor=8"}).exit ==
        Exit::ok);
  CHECK(lockstep_with({"explain", LOCKSTEP_SOURCE_DIR "/scenarios/plans/serve-70b.json", "usd",
                       "--allow-oom"})
            .err.starts_with("lockstep explain: found --allow-oom beside what lockstep plan"));
}

TEST_CASE("lockstep explain: a run's name that has no room beside its numbers is below them") {
  const Ran ran = lockstep_with({"explain", "llama3-405b-16k", "mfu"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const std::size_t at = ran.out.find("Nearest published runs\n");
  REQUIRE(at != std::string::npos);
  std::istringstream lines(ran.out.substr(at));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    CHECK(text_width(line) <= kTextColumns);
  }
  CHECK(count == 2 + 2 * 5);
  CHECK(ran.out.find("\n    llama3-405b-16384-s8192\n", at) != std::string::npos);
}

}  // namespace lockstep::test
