// Published training runs against their predictions: no row goes missing, and accuracy does not
// drift.
#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/fit.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/measured/row_validation.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tools/views/accuracy/accuracy_page.hpp"
#include "tools/views/accuracy/interval_check.hpp"

namespace lockstep {
namespace {

/// A little above what the project's README says.
struct Bound {
  const char* kind;
  std::size_t least;
  double median, p90;
};
constexpr std::array kBounds{
    Bound{"dense", 300, 0.036, 0.10},
    Bound{"sharded weights", 200, 0.043, 0.18},
    Bound{"context parallel", 100, 0.030, 0.11},
    Bound{"mixture of experts", 115, 0.080, 0.28},
};

std::string reference(const std::string& name) {
  return LOCKSTEP_SOURCE_DIR "/tests/reference/" + name;
}

/// Rows of a file with their predictions.
struct PredictedRows {
  explicit PredictedRows(const std::string& name, bool software_named = true)
      : rows(load_rows(reference(name), PresetStore{})) {
    for (ReferenceRow& row : rows) row.unnamed = !software_named;
    predictions = predict_rows(rows, PresetStore{}, 0, [] {});
  }
  std::vector<ReferenceRow> rows;
  std::vector<RowPrediction> predictions;
};

RowSummary summary_of(const PredictedRows& predicted) {
  RowSummary summary = summarise_rows(predicted.predictions);
  CHECK(summary.predicted == predicted.rows.size());
  CHECK(summary.skipped_for.empty());
  return summary;
}

void check_within(const GroupErrors& group, const Bound& bound) {
  CAPTURE(group.group);
  CHECK(group.group == bound.kind);
  CHECK(group.errors.n >= bound.least);
  CHECK(group.errors.median_abs <= bound.median);
  CHECK(group.errors.p90_abs <= bound.p90);
}

}  // namespace

namespace {

/// Of rows that ran, how many there are and how many are said not to fit.
void check_said_not_to_fit(const RowSummary& summary, double most) {
  std::size_t rows = 0, not_fitting = 0;
  for (const SaidNotToFit& source : summary.said_not_to_fit) {
    rows += source.rows;
    not_fitting += source.not_fitting;
  }
  CHECK(rows == summary.predicted);
  CHECK(static_cast<double>(not_fitting) <= most * static_cast<double>(rows));
}

}  // namespace

TEST_CASE("published runs: fine-tuning and hybrid models, to which next to nothing was fitted") {
  const RowSummary tuned = summary_of(PredictedRows("fine_tuning.json"));
  check_within(tuned.complete, {"complete", 27, 0.05, 0.16});
  // One job in three releases: 70 B on 16 GPUs in one replica, where NeMo's fused Adam may keep the
  // remainders of the weights in 2 bytes instead of copies in 4.
  check_said_not_to_fit(tuned, 0.12);
  const RowSummary hybrid = summary_of(PredictedRows("hybrid.json"));
  check_within(hybrid.complete, {"complete", 21, 0.135, 0.21});
  check_said_not_to_fit(hybrid, 0);
}

TEST_CASE(
    "published runs: steps that tools/end-to-end timed on cards, to which no law was fitted") {
  const RowSummary h200 = summarise_rows(PredictedRows("end_to_end.json").predictions);
  check_within(h200.complete, {"complete", 17, 0.055, 0.1});
  check_said_not_to_fit(h200, 0);
  // Faster than published ones: 0.90 of the bandwidth, 0.87 of the clock of a burst.
  const RowSummary h100 = summarise_rows(PredictedRows("end_to_end_h100.json").predictions);
  check_within(h100.complete, {"complete", 18, 0.11, 0.165});
  check_said_not_to_fit(h100, 0);
}

TEST_CASE("published runs: where nobody says what ran, the neutral stack is not far off") {
  const PredictedRows unnamed("training.json", false);
  const RowSummary summary = summarise_rows(unnamed.predictions);
  CHECK(summary.predicted >= 790);
  // With Megatron-Core's fitted constants for all of them it was 26 and 59 %.
  check_within(summary.complete, {"complete", 770, 0.15, 0.32});
  for (const GroupErrors& source : summary.by_source) {
    CAPTURE(source.group);
    if (source.errors.n >= 10) CHECK(source.errors.median_abs <= 0.23);
  }
}

TEST_CASE("published runs: every one is predicted, and as well as the README says") {
  const PredictedRows runs("training.json"), single_node("single_node.json");
  const RowSummary summary = summary_of(runs);
  check_within(summary.complete, {"complete", 780, 0.039, 0.15});
  REQUIRE(summary.by_kind.size() == kBounds.size());
  for (std::size_t i = 0; i < kBounds.size(); ++i) check_within(summary.by_kind[i], kBounds[i]);
  for (const GroupErrors& source : summary.by_source) {
    CAPTURE(source.group);
    if (source.errors.n >= 10) CHECK(source.errors.median_abs <= 0.09);
  }
  CHECK(summary.median_spearman > 0.88);
  check_said_not_to_fit(summary, 0.02);
  // Small models on one node: the host's time is in the prediction.
  check_within(summary_of(single_node).complete, {"complete", 750, 0.07, 0.175});
  check_said_not_to_fit(summary_of(single_node), 0);

  // The residuals that ship are those of the constants that ship, else `lockstep fit --leave-out
  // --residuals models/presets/accuracy/published.json`; then the page, with a word about each of
  // the worst rows: `lockstep validate --accuracy -o tests/reference/accuracy.md`.
  const ResidualTable residuals = load_residuals(PresetStore{});
  std::map<std::string, double> fitted;
  for (const Residual& r : residuals) fitted[r.row] = r.fitted;
  CHECK(fitted.size() == summary.complete.errors.n);
  double most = 0;
  for (const RowPrediction& p : runs.predictions) {
    if (!p.row->complete) continue;
    REQUIRE(fitted.contains(p.row->id));
    most = std::max(most, std::abs(std::log1p(*p.error) - fitted[p.row->id]));
  }
  // Written to four digits.
  CHECK(most < 1e-4);
  const std::string file = reference("explanations.json");
  const Explanations explanations = read_explanations(file, read_text_file(file));
  CHECK(accuracy_page({runs.predictions, single_node.predictions, residuals, explanations}) ==
        read_text_file(reference("accuracy.md")));

  Explanations without = explanations;
  without.erase(summary.complete.worst_id);
  CHECK_THROWS_AS(accuracy_page({runs.predictions, single_node.predictions, residuals, without}),
                  InputError);
}

TEST_CASE("intervals: with sources, and with whole vendors, left out they keep their word") {
  const IntervalCheck check = check_intervals(load_residuals(PresetStore{}));
  struct Kept {
    const std::vector<IntervalGroup>& groups;
    double least, widest;
  };
  // Of the software that nobody has fitted, the last, half of the rows are of two sources.
  for (const Kept& kept :
       {Kept{check.left_out, 0.85, 0.30}, Kept{check.vendor_left_out, 0.85, 0.60},
        Kept{check.default_stack, 0.85, 0.60}}) {
    const IntervalGroup& all = kept.groups.front();
    CAPTURE(all.half_width);
    CHECK(all.name == "all");
    CHECK(all.rows >= 770);  // the default stack cannot run all layouts
    CHECK(all.covered > kept.least);
    CHECK(all.half_width < kept.widest);
  }
  // Of software that nobody has fitted, by row and by source.
  CHECK(check.composed.front().rows == 788);
  CHECK(check.composed.front().covered > 0.9);
  CHECK(check.composed.front().by_source > 0.88);
  CHECK(check.composed.front().half_width < 0.42);
  CHECK(check.composed.front().half_width < check.default_stack.front().half_width);
  // Each measured step makes it less wrong and surer; the tails of single rows are what is missed.
  const auto after = [&](const std::string& name) {
    return *std::ranges::find(check.learnt, name, &IntervalGroup::name);
  };
  const IntervalGroup one = after("1 step"), three = after("3 steps");
  CHECK(one.error < check.composed.front().error);
  CHECK(three.error < one.error);
  CHECK(three.half_width < one.half_width);
  CHECK(one.half_width < check.composed.front().half_width);
  CHECK(one.covered > 0.85);
  CHECK(three.covered > 0.84);

  REQUIRE(check.left_out.size() == 3);
  CHECK(check.left_out[1].name == "known stack");
  CHECK(check.left_out[1].covered > 0.88);
  CHECK(check.left_out[2].name == "unknown software");
  CHECK(check.left_out[2].covered > 0.85);
  CHECK(check.left_out[1].half_width < check.left_out[2].half_width);
}

TEST_CASE("intervals: what nobody said, and machines that nobody ran, widen them") {
  const PresetStore presets;
  const StepIntervals intervals(presets);
  const auto of = [&](const std::string& node, const std::string& stack, int nodes = 2) {
    const std::string text = R"({"model": "llama3_8b", "cluster": {"node": ")" + node +
                             R"(", "nodes": )" + std::to_string(nodes) +
                             R"(}, "parallelism": {"sharding": "zero1"},
                             "batch": {"sequences": 64, "tokens": 4096}, "recompute": "full")" +
                             (stack.empty() ? "" : ", \"stack\": " + stack) + "}";
    return *intervals.of(read_scenario("job.json", text, presets));
  };
  const PredictionInterval named = of("dgx_h100", R"({"preset": "nemo", "release": "25.02.02"})");
  CHECK(named.known == SoftwareKnown::stack);
  CHECK(named.gaps == std::vector<std::string>{"one source measured this release"});
  const PredictionInterval unnamed = of("dgx_h100", "");
  CHECK(unnamed.known == SoftwareKnown::none);
  REQUIRE(unnamed.gaps.size() == 2);
  CHECK(unnamed.gaps[0] == "no stack given");
  CHECK(unnamed.gaps[1].find("% too long for published runs") != std::string::npos);
  CHECK(unnamed.half_width() > named.half_width());
  const PredictionInterval amd = of("mi300x_8", "\"megatron_core\"", 1);
  CHECK(amd.known == SoftwareKnown::none);
  CHECK(amd.gaps == std::vector<std::string>{"unvalidated: no published run on any GPU of AMD"});
  CHECK(amd.half_width() > of("dgx_h100", "\"megatron_core\"", 1).half_width());
  const PredictionInterval efa = of("aws_p5", R"({"preset": "nemo", "release": "25.02.02"})");
  CHECK(efa.known == SoftwareKnown::stack);
  CHECK(efa.gaps.back() == "no published run over efa_v2");
  CHECK(efa.half_width() > named.half_width());
}

TEST_CASE("stacks name the constants at a bound of their fit, all of them and no others") {
  const PresetStore presets;
  std::map<std::string, std::set<std::string>> expected;
  for (const FitParameter& p : read_fit_parameters(reference("fit.json"))) {
    if (p.kind != "stacks") continue;
    for (const PresetRow& row : presets.show("stacks", p.preset)) {
      if (row.path != p.path) continue;
      FitParameter shipped = p;
      shipped.value = std::stod(row.value);
      if (!at_bounds({shipped}).empty()) expected[p.preset].insert(p.path);
    }
  }
  CHECK(expected.empty());
  for (const std::string& name : presets.names("stacks")) {
    CAPTURE(name);
    const auto& listed = presets.stack(name).spec.constants_at_bounds;
    CHECK(std::set(listed.begin(), listed.end()) == expected[name]);
  }
}

}  // namespace lockstep
