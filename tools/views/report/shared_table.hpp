/// What `lockstep run` prints of several jobs on one fabric.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/answer/hash_answer.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/power/shared_power.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// What steps in one rhythm make of the site's power, and what that costs. Requires several jobs.
std::string staggered_words(const SharedScenario& scenario, const SharedPower& power);

/// The numbers that draws of the hashes change: each job's steps, then the transfers.
std::vector<double> drawn_numbers(const SharedResult& result);

/// What went down or came back, when, and whom it met, a sentence for each.
std::vector<std::string> event_sentences(const CongestionReport& report);

/// For people: jobs, their steps, transfers and links.
std::string shared_table(const SharedScenario& scenario, const SharedResult& result,
                         const std::optional<SharedPower>& power,
                         const std::optional<HashAnswer>& hash, const TextStyle& style);

/// A header line, then a line for each job.
CsvText shared_csv(const SharedScenario& scenario, const SharedResult& result,
                   const std::optional<SharedPower>& power, const std::optional<HashAnswer>& hash);

}  // namespace lockstep
