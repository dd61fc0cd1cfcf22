// Published training runs against their predictions: no row goes missing, and accuracy does not
// drift.
#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "models/input/input_error.hpp"
#include "models/input/text_file.hpp"
#include "sim/accuracy/read_residuals.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/lockstep/accuracy/accuracy_page.hpp"
#include "tools/lockstep/accuracy/interval_check.hpp"
#include "tools/lockstep/progress.hpp"
#include "tools/lockstep/row_validation.hpp"

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
  explicit PredictedRows(const std::string& name)
      : rows(parse_rows(reference(name), read_text_file(reference(name)))) {
    std::ostringstream quiet;
    Progress progress(quiet, "rows", rows.size(), false);
    predictions = predict_rows(rows, PresetStore{}, 0, progress);
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
  check_within(summary_of(PredictedRows("fine_tuning.json")).complete,
               {"complete", 27, 0.05, 0.16});
  check_within(summary_of(PredictedRows("hybrid.json")).complete, {"complete", 21, 0.12, 0.21});
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
  check_within(summary_of(single_node).complete, {"complete", 750, 0.07, 0.17});
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
  CHECK(most < 0.005);
  const std::string file = reference("explanations.json");
  const Explanations explanations = read_explanations(file, read_text_file(file));
  CHECK(accuracy_page({runs.predictions, single_node.predictions, residuals, explanations}) ==
        read_text_file(reference("accuracy.md")));

  Explanations without = explanations;
  without.erase(summary.complete.worst_id);
  CHECK_THROWS_AS(accuracy_page({runs.predictions, single_node.predictions, residuals, without}),
                  InputError);
}

TEST_CASE("intervals: with each source left out they cover about 90 % and stay narrow") {
  const IntervalCheck check = check_intervals(load_residuals(PresetStore{}));
  const IntervalGroup& all = check.left_out.front();
  CHECK(all.covered > 0.85);
  CHECK(all.covered < 0.95);
  REQUIRE(check.by_software.size() == 4);
  CHECK(check.by_software[0].name == "known release");
  CHECK(check.by_software[0].covered > 0.88);
  CHECK(check.by_software[0].half_width < 0.16);
  CHECK(check.by_software[2].name == "other release");
  CHECK(check.by_software[2].covered > 0.88);
  CHECK(check.by_software[2].half_width < 0.15);
  CHECK(check.by_software[3].name == "unknown");
  CHECK(check.by_software[3].covered > 0.85);
  CHECK(check.by_software[3].half_width < 0.30);
}

}  // namespace lockstep
