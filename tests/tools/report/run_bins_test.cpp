#include "tools/views/report/run_bins.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <numeric>
#include <string>

#include "sim/power/power_series.hpp"
#include "tools/views/report/run_power_charts.hpp"

using namespace lockstep;

namespace {

/// Phases of odd lengths in every bucket, and the books that they add up to.
TrajectoryResult patchwork(RunTime wall, RunTime step) {
  TrajectoryResult run;
  run.wall = wall;
  RunTime at = 0;
  for (std::size_t i = 0; at < wall; ++i) {
    const auto bucket = static_cast<RunBucket>(i % kRunBuckets);
    const RunTime next = std::min(wall, at + step + static_cast<RunTime>(i * i % 977));
    run.phases.push_back({at, bucket});
    run.buckets[i % kRunBuckets] += next - at;
    at = next;
  }
  return run;
}

}  // namespace

TEST_CASE("run bins: they hold every nanosecond of the books, and are of one length") {
  for (const RunTime wall : {RunTime{1}, RunTime{599}, RunTime{86'400'000'000'007}}) {
    const TrajectoryResult run = patchwork(wall, wall / 5000 + 1);
    const RunBins bins = bin_phases(run, 600);
    CAPTURE(wall);
    std::array<RunTime, kRunBuckets> sums{};
    for (std::size_t bin = 0; bin < bins.spent.size(); ++bin) {
      RunTime all = 0;
      for (std::size_t b = 0; b < kRunBuckets; ++b) {
        sums[b] += bins.spent[bin][b];
        all += bins.spent[bin][b];
      }
      CHECK(all == bins.begin(bin + 1) - bins.begin(bin));
    }
    CHECK(sums == run.buckets);
    CHECK(bins.begin(0) == 0);
    CHECK(bins.begin(bins.spent.size()) == wall);
  }
}

TEST_CASE("run bins: as many as a round length gives, never more than asked for") {
  const auto bins_of = [](Seconds wall, std::size_t most) {
    TrajectoryResult run;
    run.wall = to_run_time(wall);
    run.phases = {{0, RunBucket::productive}};
    return bin_phases(run, most).spent.size();
  };
  CHECK(bins_of(Seconds{54.0 * 86'400}, 600) == 432);  // 3 h
  CHECK(bins_of(Seconds{600}, 600) == 600);
  CHECK(bins_of(Seconds{601}, 600) == 301);
  CHECK(bins_of(Seconds{0.5}, 600) == 1);
  CHECK(bins_of(Seconds{200.0 * 365 * 86'400}, 600) == 600);  // longer than any round bins
}

TEST_CASE("run bins: a hundred years do not overflow") {
  const TrajectoryResult run = patchwork(std::numeric_limits<RunTime>::max() / 2,
                                         std::numeric_limits<RunTime>::max() / 1000);
  const RunBins bins = bin_phases(run, 600);
  CHECK(bins.begin(300) > bins.begin(299));
  CHECK(bins.begin(600) == run.wall);
}

TEST_CASE("cause rows: eight causes have one each, of nine the two cheapest share the last") {
  RunSummary summary;
  for (int i = 0; i < 8; ++i) summary.modes.push_back({std::to_string(i), 1.0, 1.0 * i});
  CHECK(cause_rows(summary).names.size() == 8);
  CHECK(cause_rows(summary).names.front() == "7");
  summary.modes.push_back({"8", 1.0, 0.5});
  const CauseRows rows = cause_rows(summary);
  CHECK(rows.names ==
        std::vector<std::string>{"7", "6", "5", "4", "3", "2", "1", "all other causes"});
  CHECK(rows.row_of_mode == std::vector<std::size_t>{7, 6, 5, 4, 3, 2, 1, 0, 7});
}

TEST_CASE("power bins: their means hold the energy, and their extremes every level") {
  PowerSeries series;
  series.add(Seconds{2.5}, Watts{100});
  series.add(Seconds{0.25}, Watts{7});
  series.add(Seconds{1.25}, Watts{40});
  const PowerBins bins = bin_power(series, 4);
  CHECK(bins.width == Seconds{1});
  CHECK(bins.mean == std::vector<Watts>{Watts{100}, Watts{100}, Watts{61.75}, Watts{40}});
  CHECK(bins.low == std::vector<Watts>{Watts{100}, Watts{100}, Watts{7}, Watts{40}});
  CHECK(bins.high == std::vector<Watts>{Watts{100}, Watts{100}, Watts{100}, Watts{40}});
  for (const std::size_t count : {1UL, 3UL, 7UL, 600UL}) {
    const PowerBins some = bin_power(series, count);
    Joules sum;
    for (const Watts mean : some.mean) sum += mean * some.width;
    CHECK(sum / energy(series) == doctest::Approx(1).epsilon(1e-12));
  }
}
