// Scenarios out of published rows.
#include "sim/measured/row_scenario.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/measured/row_validation.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/pool_memory.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/views/tables/validation_output.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::vector<ReferenceRow> reference_rows(const std::string& name) {
  return load_rows(fmt::format("{}/tests/reference/{}.json", LOCKSTEP_SOURCE_DIR, name),
                   test::presets());
}

/// In the format of published rows, at least one of each kind of job that its reader knows.
std::vector<ReferenceRow> published_rows() { return reference_rows("formats/published-rows"); }

/// The project's own rows of these names, in the scenario's words, in the same order.
std::vector<ReferenceRow> own_rows_of(const std::vector<ReferenceRow>& published) {
  std::vector<ReferenceRow> all, out;
  for (const char* file : {"training", "fine_tuning", "hybrid"}) {
    std::ranges::move(reference_rows(file), std::back_inserter(all));
  }
  for (const ReferenceRow& row : published) {
    const auto own = std::ranges::find(all, row.id, &ReferenceRow::id);
    CAPTURE(row.id);
    REQUIRE(own != all.end());
    out.push_back(*own);
  }
  return out;
}

std::string predicted_json(const std::vector<ReferenceRow>& rows) {
  return rows_json(predict_rows(rows, test::presets(), 0, [] {})).str();
}

/// A row of one's own, as a user writes it.
Json own_row(const ReferenceRow& row) {
  Json scenario = row_document(row, test::presets());
  scenario.erase("expect");
  return {{"row", "mine-1"},
          {"scenario", scenario},
          {"measured", {{"step_time", *row.measured_step_s}}},
          {"source", "a log"}};
}

}  // namespace

TEST_CASE("row_document: the scenario of a row is the same job in the scenario's own words") {
  struct Set {
    const char* name;
    std::size_t every;
    bool steps;  ///< else memory is compared, which takes no simulation
  };
  for (const Set& set : {Set{"formats/published-rows", 1, true}, Set{"memory", 7, false}}) {
    const std::vector<ReferenceRow> rows = reference_rows(set.name);
    std::size_t compared = 0;
    for (std::size_t i = 0; i < rows.size(); i += set.every) {
      const ReferenceRow& row = rows[i];
      if (!row.obstacle.empty()) continue;
      CAPTURE(row.id);
      const Scenario direct = row_scenario(row, test::presets());
      const std::string text = write_json(row_document(row, test::presets()));
      CAPTURE(text);
      const Scenario read = read_scenario(row.id, text, test::presets());
      CHECK(check_memory(read).peak.needed() == check_memory(direct).peak.needed());
      if (set.steps) CHECK(simulate_step(read).step_s == simulate_step(direct).step_s);
      ++compared;
    }
    CAPTURE(set.name);
    CHECK(compared > 5);
  }
}

TEST_CASE("rows: those of the project are what published ones come to, in the scenario's words") {
  std::vector<ReferenceRow> published = published_rows();
  std::vector<ReferenceRow> own = own_rows_of(published);
  for (std::size_t i = 0; i < own.size(); ++i) {
    CAPTURE(own[i].id);
    Json document = row_document(published[i], test::presets());
    document.erase("about");
    document.erase("expect");
    CHECK(Json::parse(own[i].scenario) == document);
    CHECK(own[i].published == published[i].published);
    CHECK(own[i].release == published[i].release);
    CHECK(own[i].gpus_per_node == published[i].gpus_per_node);
    CHECK(own[i].virtual_stages == published[i].virtual_stages);
    CHECK(own[i].recompute == published[i].recompute);
    CHECK(own[i].complete == published[i].complete);
  }
  // Predictions, intervals, memory, errors, groups and assumptions, to the last digit.
  CHECK(predicted_json(own) == predicted_json(published));
  for (std::vector<ReferenceRow>* rows : {&published, &own}) {
    for (ReferenceRow& row : *rows) row.composed = true;
  }
  CHECK(predicted_json(own) == predicted_json(published));
  // With software that nobody named; attention is then what the card has kernels for (V100: none).
  for (std::vector<ReferenceRow>* rows : {&published, &own}) {
    for (ReferenceRow& row : *rows) {
      row.composed = false;
      row.unnamed = true;
    }
  }
  const auto predicted = [](const std::vector<ReferenceRow>& rows) {
    return predict_rows(rows, test::presets(), 0, [] {});
  };
  const std::vector<RowPrediction> as_published = predicted(published), as_own = predicted(own);
  for (std::size_t i = 0; i < own.size(); ++i) {
    CAPTURE(own[i].id);
    CHECK(as_own[i].predicted_step_s == as_published[i].predicted_step_s);
    CHECK(as_own[i].needed_memory_gib == as_published[i].needed_memory_gib);
  }
}

TEST_CASE("rows in the scenario's words: what else a row says of itself") {
  const test::TemporaryFolder folder;
  Json own = own_row(published_rows().front());
  const auto read = [&] {
    return load_rows(folder.write("mine.json", write_json(Json::array({own}))), test::presets());
  };
  const ReferenceRow plain = read().front();
  CHECK(plain.complete);
  CHECK(plain.gpu == "gb300_288gb");
  CHECK(plain.stack == "megatron_bridge");
  own["gpu"] = "GB300";
  own["software"] = "Megatron-Bridge";
  own["suspect"] = "its throughput is not its step time";
  own["assumed"] = {"network: 400 Gb/s per GPU"};
  own["notes"] = {{"mfu", 0.4}};
  const ReferenceRow row = read().front();
  CHECK_FALSE(row.complete);
  CHECK(row.gpu == "GB300");
  CHECK(row.stack == "Megatron-Bridge");
  CHECK(row_scenario(row, test::presets()).assumptions.front() == "network: 400 Gb/s per GPU");
  own["notes"] = "mfu 0.4";
  CHECK_THROWS_WITH_AS(read(), doctest::Contains("mine.json#/0/notes: found \"mfu 0.4\""),
                       InputError);
  own.erase("notes");
  own["sourse"] = "a log";
  CHECK_THROWS_WITH_AS(read(), doctest::Contains("Did you mean \"source\""), InputError);

  // A list of rows is one of measured steps too.
  own.erase("sourse");
  CHECK(test::lockstep_with({"learn", folder.write("steps.json", write_json(Json::array({own})))})
            .exit == Exit::ok);
}

TEST_CASE("recompute: \"least\" is the first of the stack's ladder that fits in memory") {
  const auto with = [](int sequences, const char* recompute) {
    const Json scenario{
        {"model", "llama3_8b"},
        {"cluster", {{"node", "dgx_h100"}, {"nodes", 1}}},
        {"parallelism", {{"tensor", 2}, {"sharding", "zero1"}}},
        {"batch", {{"sequences", 4 * sequences}, {"micro", sequences}, {"tokens", 8192}}},
        {"recompute", recompute}};
    return read_scenario("job.json", write_json(scenario), test::presets());
  };
  const Scenario small = with(1, "least"), large = with(8, "least");
  CHECK(small.job.recompute == Recompute::none);
  CHECK(large.job.recompute != Recompute::none);
  CHECK(simulate_step(small).step_s == simulate_step(with(1, "none")).step_s);
  CHECK(std::ranges::count(small.assumptions, "recompute: none (the least that fits in memory)") ==
        1);
  CHECK_THROWS_WITH_AS(with(1, "leest"), doctest::Contains("Did you mean \"least\""), InputError);
}

TEST_CASE("stack: partial_graphs leaves a share of the experts' host time") {
  const auto with = [](const Json& stack) {
    const Json scenario{{"model", "mixtral_8x7b"},
                        {"cluster", {{"node", "dgx_h100"}, {"nodes", 1}}},
                        {"parallelism", {{"expert", 8}}},
                        {"batch", {{"sequences", 8}, {"micro", 1}, {"tokens", 4096}}},
                        {"stack", stack}};
    return read_scenario("job.json", write_json(scenario), test::presets()).stack;
  };
  const StackSpec whole = with({{"preset", "megatron_bridge"}});
  const StackSpec parts = with({{"preset", "megatron_bridge"}, {"partial_graphs", true}});
  REQUIRE(whole.expert_host_layer.base_units() > 0);
  REQUIRE(whole.expert_partial_graph < 1);
  CHECK(parts.expert_host_layer == whole.expert_partial_graph * whole.expert_host_layer);
  CHECK(parts.expert_host_expert == whole.expert_partial_graph * whole.expert_host_expert);
}

TEST_CASE("run FILE#ROW: prints what was measured beside what is predicted") {
  const ReferenceRow row = reference_rows("fine_tuning").front();
  const std::string file = LOCKSTEP_SOURCE_DIR "/tests/reference/fine_tuning.json";
  const test::Ran ran = test::lockstep_with({"run", file + "#" + row.id, "--format", "json"});
  REQUIRE(ran.exit == Exit::ok);
  const Json answer = Json::parse(ran.out);
  CHECK(answer.at("step_s").get<double>() ==
        doctest::Approx(simulate_step(row_scenario(row, test::presets())).step_s).epsilon(1e-11));
  CHECK(answer.at("expectation").at("checks")[0].at("expected").get<double>() ==
        doctest::Approx(*row.measured_step_s));
  // Its scenario, saved, is one that runs.
  const test::TemporaryFolder folder;
  const std::string saved = folder.write("saved.json", write_json(answer.at("scenario")));
  CHECK(test::lockstep_with({"run", saved}).exit == Exit::ok);

  const test::Ran wrong = test::lockstep_with({"run", file + "#" + row.id + "x"});
  CHECK(wrong.exit == Exit::bad_input);
  CHECK(wrong.err.find("Did you mean \"" + row.id) != std::string::npos);
}

TEST_CASE("validate --rows: rows in the scenario's own words count like published ones") {
  const ReferenceRow published = published_rows().front();
  const test::TemporaryFolder folder;
  const Json own = own_row(published);
  const std::string file = folder.write("mine.json", write_json(Json::array({own})));
  std::vector<ReferenceRow> rows = load_rows(file, test::presets());
  REQUIRE(rows.size() == 1);
  rows.push_back(published);
  const std::vector<RowPrediction> predictions = predict_rows(rows, test::presets(), 1, [] {});
  REQUIRE(predictions[1].error);
  CHECK(predictions[0].error == predictions[1].error);
  CHECK(rows[0].gpus == published.gpus);
  CHECK(test::lockstep_with({"validate", "--rows", file}).exit == Exit::ok);
  CHECK(test::lockstep_with({"run", file + "#mine-1"}).out.find("measured") != std::string::npos);

  Json wrong = own;
  wrong["scenario"]["parallelism"]["tensr"] = 2;
  const std::string bad = folder.write("bad.json", write_json(Json{{"rows", {wrong}}}));
  const test::Ran ran = test::lockstep_with({"validate", "--rows", bad});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("bad.json#/rows/0/scenario/parallelism/tensr") != std::string::npos);
}

TEST_CASE(
    "run FILE#ROW: a row that was measured is predicted where its memory is said not to fit") {
  const std::string row = LOCKSTEP_SOURCE_DIR
      "/tests/reference/training.json#dgxc-v24.11.1-h100-paxml-gpt3-175b-fp8-g128-b256";
  const test::Ran ran = test::lockstep_with({"run", row});
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out.find("DOES NOT FIT") != std::string::npos);
  CHECK(ran.out.find("predicted all the same") != std::string::npos);
  CHECK(ran.out.find("  step time ") != std::string::npos);  // measured beside predicted
  CHECK(test::lockstep_with({"explain", row, "tokens_per_s"}).exit == Exit::ok);

  // A changed row is another job, without a measurement.
  const test::Ran changed =
      test::lockstep_with({"run", row, "--set", "batch.micro=4", "--set", "batch.sequences=512"});
  CHECK(changed.exit == Exit::bad_input);
  CHECK(changed.err.find("--allow-oom predicts anyway") != std::string::npos);
}

TEST_CASE("validate --rows: a bound that a row states is kept, or gives exit status 1") {
  const test::TemporaryFolder folder;
  Json own = own_row(published_rows().front());
  const auto validated = [&](const Json& expect) {
    own["scenario"]["expect"] = expect;
    return test::lockstep_with(
        {"validate", "--rows", folder.write("mine.json", write_json(Json::array({own})))});
  };
  const double measured = own.at("measured").at("step_time").get<double>();
  CHECK(validated({{"step_time", measured}, {"within", 5}}).exit == Exit::ok);
  const test::Ran ran = validated({{"step_time", 10 * measured}, {"within", 0.5}});
  CHECK(ran.exit == Exit::assertion_missed);
  CHECK(ran.err.find("mine-1: expectation missed: a step takes ") != std::string::npos);
  CHECK(ran.err.find("allowed: within 50 %") != std::string::npos);
  CHECK_FALSE(ran.out.empty());  // the table is there nevertheless
  CHECK(validated({{"fits", false}}).exit == Exit::assertion_missed);

  const test::Ran bare =
      test::lockstep_with({"validate", "--rows", folder.write("bare.json", "[{}]")});
  CHECK(bare.exit == Exit::bad_input);
  CHECK(bare.err.find("bare.json#/0: found a row that says nothing") != std::string::npos);
  const test::Ran untold = test::lockstep_with(
      {"validate", "--rows",
       folder.write("untold.json", R"([{"gpu": 8, "measured": {"step_seconds": 1.5}}])")});
  CHECK(untold.exit == Exit::bad_input);
  CHECK(untold.err.find(
            "untold.json#/0: found \"gpu is no object\": none of 1 row can be predicted") !=
        std::string::npos);
}

TEST_CASE("every published run is something that its software can run") {
  for (const char* name : {"training", "fine_tuning", "hybrid", "single_node", "memory"}) {
    std::size_t allowed = 0;
    for (const ReferenceRow& row : reference_rows(name)) {
      if (!row.obstacle.empty()) continue;
      CAPTURE(row.id);
      try {
        const Scenario scenario = row_scenario(row, test::presets());
        CHECK(scenario.beyond_stack.empty());
        ++allowed;
      } catch (const InputError& error) {
        // What breaks another rule says nothing about the software.
        CHECK(std::string(error.what()).find("can do no more") == std::string::npos);
      }
    }
    CAPTURE(name);
    CHECK(allowed > 15);
  }
}

}  // namespace lockstep
