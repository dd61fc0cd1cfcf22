#include "sim/scenario/read_schedule.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/pipeline/order_check.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

std::shared_ptr<const FixedOrder> read_order(std::string_view text) {
  const test::TemporaryFolder folder;
  return read_schedule_file(folder.write("order.json", text));
}

/// Without the name of the file.
std::string order_complaint(std::string_view text) {
  try {
    (void)read_order(text);
  } catch (const InputError& error) {
    const std::string line = error.what();
    return line.substr(line.find("order.json") + 10);
  }
  return "fine";
}

/// A file that says what a schedule's name says.
std::string written_order(Schedule schedule, std::string_view layout, int ranks, int virtual_stages,
                          int micro_batches) {
  Parallelism cut;
  cut.schedule = schedule;
  cut.pipeline = ranks;
  cut.virtual_stages = virtual_stages;
  std::string lists;
  for (int r = 0; r < ranks; ++r) {
    std::string passes;
    for (const WorkItem& item : rank_order(cut, micro_batches, r)) {
      passes += passes.empty() ? "\"" : passes.back() == '+' ? "" : ", \"";
      passes += pass_text(item) + (item.pairs ? "+" : "\"");
    }
    lists += fmt::format("{}[{}]", lists.empty() ? "" : ", ", passes);
  }
  return fmt::format(R"({{"about": "written", "layout": "{}", "ranks": [{}]}})", layout, lists);
}

}  // namespace

TEST_CASE("schedules: texts of passes are an order, and the first that is none is named") {
  const std::vector<std::string> zero_bubble{"F0", "F1+B0", "W0", "B1@0"};
  const std::vector<WorkItem> order = order_of_texts(zero_bubble);
  REQUIRE(order.size() == 5);
  CHECK(order[1] == WorkItem{Pass::forward, true, 0, 1});
  CHECK(order[2] == WorkItem{Pass::backward_input, false, 0, 0});
  CHECK(order[4] == WorkItem{Pass::backward, false, 0, 1});
  const std::vector<std::string> wrong{"F0", "B0 "};
  CHECK_THROWS_WITH_AS(
      order_of_texts(wrong),
      R"(pass 1: found "B0 "; allowed: one pass, or a pair of them with + in between)",
      std::invalid_argument);
}

TEST_CASE("schedule files: what is written out is what a schedule's name says") {
  struct Case {
    Schedule schedule;
    std::string_view layout;
    int virtual_stages;
  };
  for (const Case& c :
       {Case{Schedule::one_f_one_b, "loop", 1}, Case{Schedule::interleaved, "loop", 3},
        Case{Schedule::zb_h1, "loop", 1}, Case{Schedule::zb_v, "v", 2},
        Case{Schedule::dualpipe, "two_way", 1}, Case{Schedule::dualpipev, "v", 2}}) {
    CAPTURE(info(c.schedule).name);
    const auto order = read_order(written_order(c.schedule, c.layout, 4, c.virtual_stages, 16));
    Parallelism cut;
    cut.schedule = c.schedule;
    cut.pipeline = 4;
    cut.virtual_stages = c.virtual_stages;
    CHECK(order->micro_batches == 16);
    CHECK(order->shape.chunks == pipeline_shape(cut).chunks);
    for (int r = 0; r < 4; ++r) {
      CHECK(order->ranks[static_cast<std::size_t>(r)] == rank_order(cut, 16, r));
    }
  }
}

TEST_CASE("schedule files: a step takes as long as under the schedule's name") {
  constexpr std::string_view kPipelineJob = R"({{
    "model": {{"layers": 16, "hidden": 2048, "heads": 16, "ffn": 8192, "vocabulary": 32000}},
    "cluster": {{"node": "dgx_h100"}},
    "parallelism": {{"pipeline": 4, "data": 2, "sharding": "zero1", {}}},
    "batch": {{"sequences": 32, "tokens": 2048}}}})";
  const test::TemporaryFolder folder;
  folder.write("order.json", written_order(Schedule::dualpipev, "v", 4, 2, 16));
  const PresetStore presets;
  const auto job = [&](std::string_view schedule) {
    const std::string file = folder.path() + "/plan.json";
    return read_scenario(file, fmt::format(fmt::runtime(kPipelineJob), schedule), presets);
  };
  const Scenario by_file = job(R"("schedule_file": "order.json")");
  const Scenario by_name = job(R"("schedule": "dualpipev")");
  CHECK(by_file.job.parallelism.virtual_stages == 2);
  CHECK(simulate_step(by_file).step_s == simulate_step(by_name).step_s);
  CHECK(peak_memory(by_file.job, by_file.stack, 0).total() ==
        peak_memory(by_name.job, by_name.stack, 0).total());
}

TEST_CASE("schedule files: mistakes are found where they are") {
  CHECK(order_complaint(R"({"ranks": [["F0", "B0", "G1"]]})") ==
        "#/ranks/0/2: found \"G1\"; allowed: a pass such as \"F0\", \"B3@1\", \"W2\" or a pair "
        "\"F3+B1@1\"");
  CHECK(order_complaint(R"({"ranks": [["F0", "B0+F1"]]})") ==
        "#/ranks/0/1: found \"B0+F1\"; allowed: a pair that begins with a forward pass");
  CHECK(order_complaint(R"({"ranks": [["F0", "B0 "]]})") ==
        "#/ranks/0/1: found \"B0 \"; allowed: one pass, or a pair of them with + in between");
  CHECK(order_complaint(R"({"ranks": []})") ==
        "#/ranks: found an array; allowed: the passes of every rank");
  CHECK(order_complaint(R"({"layout": "ring", "ranks": [["F0", "B0"]]})") ==
        "#/layout: found \"ring\"; allowed: loop, v, two_way");
  CHECK(order_complaint(R"({"ranks": [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1"]]})") ==
        "#/ranks/1: found no more passes; allowed: B1, every pass of every chunk and micro batch");
  CHECK(order_complaint(R"({"ranks": [["F1", "F0", "B0", "B1"]]})") ==
        "#/ranks/0/0: found \"F1\"; allowed: F0, forward passes of a chunk in rising order");
  CHECK(order_complaint(R"({"ranks": [["F0", "B0", "F0"]]})") ==
        "#/ranks/0/2: found \"F0\"; allowed: every pass once, forward passes of a chunk in rising "
        "order");
  CHECK(order_complaint(R"({"ranks": [["F0", "B0", "B1", "F1"]]})") ==
        "#/ranks/0/2: found \"B1\"; allowed: a forward pass before its backward pass");
  CHECK(order_complaint(R"({"ranks": [["F0", "W0", "B0"]]})") ==
        "#/ranks/0/1: found \"W0\"; allowed: gradients of weights once, behind those of inputs");
  CHECK(order_complaint(R"({"ranks": [["F0", "F1+W0", "B0", "B1"]]})") ==
        "#/ranks/0/1: found \"F1+W0\"; allowed: a backward pass behind the forward pass of a pair");
  // Each waits for the other: rank 0 for gradients of micro batch 0, rank 1 for micro batch 1.
  CHECK(order_complaint(R"({"ranks": [["F0", "B0", "F1", "B1"], ["F0", "F1", "B0", "B1"]]})") ==
        "#/ranks/0/1: found \"B0\"; allowed: orders that come to an end: this pass waits for ever "
        "for its neighbour");
}

TEST_CASE("schedule files: ranks, chunks and micro batches are those of the job") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write(
      "order.json", R"({"ranks": [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]]})");
  const PresetStore presets;
  const auto problem = [&](const std::vector<std::string>& sets) {
    try {
      (void)read_scenario(folder.path() + "/plan.json", R"({
        "model": "llama3_8b", "cluster": {"node": "dgx_h100"},
        "parallelism": {"pipeline": 2, "schedule_file": "order.json"},
        "batch": {"sequences": 2, "tokens": 4096}})",
                          presets, {.set = sets});
    } catch (const InputError& error) {
      return error.problem();
    }
    return InputProblem{};
  };
  CHECK(problem({}).file.empty());
  CHECK(problem({"parallelism.pipeline=4"}).pointer == "/parallelism/pipeline");
  CHECK(problem({"parallelism.pipeline=4"}).allowed == "2 (ranks of " + file + ")");
  CHECK(problem({"parallelism.virtual_stages=2"}).allowed == "1 (chunks of " + file + ")");
  CHECK(problem({"batch.sequences=4"}).allowed ==
        "2 (micro 1 x data 1 x 2 micro batches of " + file + ")");
  CHECK(problem({"parallelism.schedule=1f1b"}).allowed ==
        "either \"schedule\" or \"schedule_file\"");
}

}  // namespace lockstep
