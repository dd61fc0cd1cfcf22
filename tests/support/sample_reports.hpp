/// Made-up congestion reports, for tests of the pages and for looking at them.
#pragma once

#include <cstddef>

#include "sim/congestion/congestion_report.hpp"

namespace lockstep::test {

/// Two trainings and a checkpoint on one spine: the second training is slowed 1.42 times.
CongestionReport busy_report();
/// Two jobs that do not slow each other.
CongestionReport calm_report();
/// As many of everything as asked for; names hold what HTML and JSON have to escape.
CongestionReport large_report(std::size_t jobs, std::size_t links, std::size_t bins,
                              std::size_t transfers);

}  // namespace lockstep::test
