/// Simulates the points of a sweep on this machine's cores.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/search/sweep/digest.hpp"
#include "sim/search/sweep/points.hpp"
#include "sim/search/sweep/results_db.hpp"
#include "sim/search/sweep/sweep.hpp"

namespace lockstep {

class SweepEngine {
 public:
  /// The sweep and the presets have to outlive it. Answers are looked up in `reused` first.
  SweepEngine(const Sweep& sweep, const PresetStore& presets, int jobs,
              std::vector<std::string> reused = {});
  ~SweepEngine();
  SweepEngine(const SweepEngine&) = delete;
  SweepEngine& operator=(const SweepEngine&) = delete;

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }

  /// Those of `numbers` (in order) that the database does not hold, made of the same things. Rows
  /// that are no points of the sweep any more are removed from it.
  [[nodiscard]] std::vector<std::uint32_t> missing(const std::vector<std::uint32_t>& numbers,
                                                   ResultsDb& results) const;

  /// Adds the points to the database, each at once when it is finished, until `go_on` says no.
  /// `one_done` is called from any thread.
  void simulate(const std::vector<std::uint32_t>& numbers, ResultsDb& results,
                const std::function<bool()>& go_on, const std::function<void()>& one_done) const;

  /// Seconds that points of a sample take each, simulated on as many threads at once as simulate()
  /// has; at least one point, and none begun after `limit_s`, but while there are very few.
  [[nodiscard]] std::vector<double> try_points(const std::vector<std::uint32_t>& numbers,
                                               double limit_s) const;

 private:
  [[nodiscard]] std::string hash_of(const SweepPoint& point) const;
  [[nodiscard]] std::optional<StoredPoint> known(const std::string& hash, ResultsDb& results) const;

  const Sweep& sweep_;
  const PresetStore& presets_;
  StepIntervals intervals_;
  int jobs_;
  Manifest manifest_;
  std::unique_ptr<PointHasher> hasher_;
  std::vector<SweepMetric> metrics_;
  MemberNames members_;  ///< of answers that metrics_ are in
  std::vector<std::unique_ptr<ResultsReader>> reused_;
};

}  // namespace lockstep
