/// What `lockstep comm` prints of traffic.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/hash_answer.hpp"
#include "sim/traffic/simulate_traffic.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// The last end, then each entry's time: what draws of the hashes change.
std::vector<double> times_of(const TrafficReport& report);

/// The last end over the scenario's expectation, less 1. Requires expect->time.
double traffic_error(const TrafficScenario& scenario, const TrafficReport& report);

/// A table for people: an entry a line, then the fullest links and the notes. `hash`, where hashes
/// decide, has a band for each of times_of().
std::string traffic_table(const TrafficScenario& scenario, const TrafficReport& report,
                          const TextStyle& style, const std::optional<HashAnswer>& hash = {});
/// The members of traffic_fields().
nlohmann::ordered_json traffic_json(const TrafficScenario& scenario, const TrafficReport& report,
                                    const std::optional<HashAnswer>& hash = {});
/// A header line, then an entry a line.
CsvText traffic_csv(const TrafficReport& report, const std::optional<HashAnswer>& hash = {});

/// Every message: a header line, then a line each in the order of their ends.
CsvText flows_csv(const TrafficSimulation& simulation);

/// What another simulator needs to run the same: every link with its capacity, every message with
/// its bytes, its way and when it may start, and when it ended here. tests/peers/README.md has the
/// format.
std::string paths_text(const TrafficSimulation& simulation);

}  // namespace lockstep
