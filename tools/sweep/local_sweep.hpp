/// `lockstep sweep` on this machine: progress, Ctrl-C, and what is left to do.
#pragma once

#include <string>
#include <vector>

#include "sim/search/sweep/engine.hpp"
#include "sim/search/sweep/results_db.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

/// What all ways to run a sweep need.
struct SweepRun {
  const Sweep& sweep;
  const SweepEngine& engine;
  const std::vector<std::uint32_t>& numbers;  ///< of all points
  std::string database;
  bool quiet = false;
  Console& console;
};

/// Simulates what the database lacks. Exit::interrupted after Ctrl-C, else Exit::ok.
Exit sweep_locally(const SweepRun& run);

}  // namespace lockstep
