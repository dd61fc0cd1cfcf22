// Published training runs against their predictions: no row goes missing, and accuracy does not
// drift.
#include <array>
#include <doctest/doctest.h>
#include <sstream>
#include <string>
#include <vector>

#include "models/input/text_file.hpp"
#include "sim/scenario/preset_store.hpp"
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

RowSummary summary_of_rows(const std::string& name) {
  const std::string file = LOCKSTEP_SOURCE_DIR "/tests/reference/" + name;
  const std::vector<ReferenceRow> rows = parse_rows(file, read_text_file(file));
  std::ostringstream quiet;
  Progress progress(quiet, "rows", rows.size(), false);
  RowSummary summary = summarise_rows(predict_rows(rows, PresetStore{}, 0, progress));
  CHECK(summary.predicted == rows.size());
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

TEST_CASE("published runs: every one is predicted, and as well as the README says") {
  const RowSummary summary = summary_of_rows("training.json");
  check_within(summary.complete, {"complete", 780, 0.039, 0.15});
  REQUIRE(summary.by_kind.size() == kBounds.size());
  for (std::size_t i = 0; i < kBounds.size(); ++i) check_within(summary.by_kind[i], kBounds[i]);
  for (const GroupErrors& source : summary.by_source) {
    CAPTURE(source.group);
    if (source.errors.n >= 10) CHECK(source.errors.median_abs <= 0.09);
  }
  CHECK(summary.median_spearman > 0.88);
}

TEST_CASE("small models on one node: the host's time is in the prediction") {
  check_within(summary_of_rows("single_node.json").complete, {"complete", 750, 0.07, 0.17});
}

}  // namespace lockstep
