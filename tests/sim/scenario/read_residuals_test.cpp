#include "sim/scenario/read_residuals.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/residuals_file.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/scenario/built_in_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

/// One group with these rows.
std::string residuals_with(const std::string& rows) {
  return R"({"groups": [{"source": "a", "vendor": "b", "stack": "megatron_core", "release": "",
    "gpu": "h100_sxm5_80gb", "architecture": "hopper", "network": "", "fabric": "",
    "experts": false, "sharded_weights": true, "context": false, "rows": [)" +
         rows + "]}]}";
}

/// The interval of a job on 8 DGX H100 under NeMo, with changes.
PredictionInterval interval_with(const std::vector<std::string>& changes) {
  const std::string job = R"({"model": "llama3_8b", "stack": {"preset": "nemo"},
    "cluster": {"node": "dgx_h100", "nodes": 8},
    "parallelism": {"tensor": 2, "sharding": "zero1"}, "recompute": "full",
    "batch": {"sequences": 8192, "micro": 1, "tokens": 4096}})";
  return interval_of(read_scenario("job.json", job, test::presets(), {.set = changes}),
                     test::presets());
}

/// Whether one of the gaps says so.
bool has_gap(const PredictionInterval& interval, const std::string& words) {
  return std::ranges::any_of(
      interval.gaps, [&](const std::string& gap) { return gap.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("residuals: what somebody changed of a stack, a card or a job widens, and is named") {
  const PredictionInterval own = interval_with({});
  CHECK(own.known == SoftwareKnown::stack);
  const std::vector<std::pair<std::string, std::string>> changes{
      {"stack.elementwise.slowdown=0.1", "elementwise.slowdown changed"},
      {"cluster.node.gpu.hbm_bandwidth=6 TB/s", "h100_sxm5_80gb with another hbm_bandwidth"},
      {"power.cap=400 W", "h100_sxm5_80gb at 400 W"},
      {"lora.rank=16", "low-rank adapters"},
      {"cluster.nodes=65536", "more than 16,384 GPUs"}};
  for (const auto& [change, words] : changes) {
    CAPTURE(change);
    std::vector<std::string> set{change};
    if (change.starts_with("cluster.nodes")) set.emplace_back("batch.sequences=262144");
    const PredictionInterval changed = interval_with(set);
    CHECK(has_gap(changed, words));
    CHECK_FALSE(has_gap(own, words));
    CHECK(changed.half_width() > 1.1 * own.half_width());
  }
  CHECK(interval_with({"stack.elementwise.slowdown=0.1"}).known == SoftwareKnown::none);
}

TEST_CASE("residuals: no diffusion model and no encoder is among the published runs") {
  const auto interval_for = [](const std::string& model) {
    const std::string job = R"({"model": ")" + model + R"(", "stack": {"preset": "torchtitan"},
      "cluster": {"node": "dgx_h100", "nodes": 1}, "parallelism": {"sharding": "zero3"},
      "batch": {"sequences": 64, "micro": 1, "tokens": 512}})";
    return interval_of(read_scenario("job.json", job, test::presets()), test::presets());
  };
  const std::string none = "no run among these of ";
  CHECK(has_gap(interval_for("flux1_dev"), none + "a diffusion model"));
  CHECK(has_gap(interval_for("bert_large"), none + "an encoder"));
  CHECK_FALSE(has_gap(interval_for("llama3_8b"), none));
}

TEST_CASE("residuals: choices and values that presets or published runs have change nothing") {
  const PredictionInterval own = interval_with({});
  const StackSpec& nemo = test::presets().stack("nemo").spec;
  const std::string same = fmt::format("{}", nemo.elementwise.slowdown);
  for (const std::string& change :
       {"stack.elementwise.slowdown=" + same, std::string("stack.launch_interval=0 s"),
        std::string("stack.communication.overlap_gradients=false"),
        std::string("stack.memory.fragmentation=1.2"), std::string("power.cap=700 W"),
        std::string("cluster.node.gpu.hbm_capacity=94 GiB"), std::string("cluster.nodes=256")}) {
    CAPTURE(change);
    const PredictionInterval changed = interval_with({change});
    CHECK(changed.low == own.low);
    CHECK(changed.high == own.high);
  }
}

TEST_CASE("residuals: no published run has more GPUs than the largest that counts") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/tests/reference/training.json";
  int most = 0;
  for (const ReferenceRow& row : load_rows(file, test::presets())) {
    most = std::max(most, row.gpus);
  }
  CHECK(most == kMostPublishedGpus);
}

TEST_CASE("residuals: what ships is what the writer makes of it") {
  const std::string file = test::presets().path("accuracy", "published");
  const std::string text = read_text_file(file);
  CHECK(residuals_json(read_residuals(file, text)) == text);
}

TEST_CASE("residuals: what the program was built with is what reading the file gives") {
  const std::string file = test::presets().path("accuracy", "published");
  CHECK(has_built_in_residuals(file));
  const std::string text = read_text_file(file);
  const ResidualTable built_in = built_in_residuals(), read = read_residuals(file, text);
  CHECK(residuals_json(built_in) == text);
  REQUIRE(built_in.size() == read.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(built_in[i].left_out_known == read[i].left_out_known);
    CHECK(built_in[i].vendor_left_out_known == read[i].vendor_left_out_known);
  }
}

TEST_CASE("residuals: those of a folder of one's own are read, by whatever they differ") {
  const test::TemporaryFolder folder;
  std::string file;
  const std::string text = read_text_file(test::presets().path("accuracy", "published"));
  const auto rows = [&](const std::string& bytes) {
    file = folder.write("accuracy/published.json", bytes);
    return load_residuals(PresetStore({folder.path()}));
  };
  CHECK(residuals_json(rows(text)) == text);
  CHECK(has_built_in_residuals(file));
  std::string changed = text;
  changed[changed.rfind('.') - 1] = '1';  // of the same length
  CHECK(residuals_json(rows(changed)) == changed);
  CHECK_FALSE(has_built_in_residuals(file));
  CHECK(rows(residuals_with(R"(["x", 0, 0, 0, null, null])")).size() == 1);
  CHECK_FALSE(has_built_in_residuals(folder.path()));
  CHECK_FALSE(has_built_in_residuals(folder.path() + "/none"));
}

TEST_CASE("residuals: rows have what their group has, and errors of their own") {
  const ResidualTable table = read_residuals(
      "r.json", residuals_with(R"(["x", 0.1, 0.2, 0.3, null, null], ["y", 0, 0, 0, 1, 2])"));
  REQUIRE(table.size() == 2);
  CHECK(table[0].row == "x");
  CHECK(table[0].left_out == 0.2);
  CHECK_FALSE(table[0].as_default);
  CHECK(table[1].vendor == "b");
  CHECK(table[1].traits.sharded_weights);
  CHECK(table[1].as_default == 1.0);
  CHECK_FALSE(table[0].composed);
  CHECK(table[1].composed == 2.0);
}

TEST_CASE("residuals: a mistake is told at its place") {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {R"(["x", 0, 0, 0, null])",
       "r.json#/groups/0/rows/0: found an array; allowed: [row, fitted, left_out, "
       "vendor_left_out, as_default, composed]"},
      {R"(["x", 0, 0, 0, null, null], ["y", 0, 99, 0, null, null])",
       "r.json#/groups/0/rows/1/2: found 99; allowed: a number from -20 to 20"},
      {R"([7, 0, 0, 0, null, null])", "r.json#/groups/0/rows/0/0: found 7; allowed: a string"},
      {"", "r.json#/groups: found an array; allowed: at least one row"}};
  for (const auto& [rows, message] : mistakes) {
    std::string said;
    try {
      (void)read_residuals("r.json", residuals_with(rows));
    } catch (const InputError& error) {
      said = error.what();
    }
    CHECK(said == message);
  }
}

}  // namespace lockstep
