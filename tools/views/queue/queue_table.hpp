/// What `lockstep run` prints of a queue.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/queue_answer.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// "1,024 jobs".
std::string jobs_text(std::size_t count);

/// For people: rules, waits, use, groups, trainings and campaigns.
std::string queue_table(const QueueAnswer& a, const TextStyle& style);

/// A header line, then a line for each group of jobs.
CsvText queue_csv(const QueueAnswer& a);

/// What was rented for jobs that waited too long, what that cost, and where that GPU time went.
std::string burst_words(const BurstSummary& of);
/// The waits without, and the price of what was saved. Requires that they were simulated.
std::string unburst_words(const BurstSummary& of);

/// What was done for the nodes' health; empty where the scenario says nothing of it.
std::string health_words(const QueueAnswer& a);

/// In which order campaigns, and brackets of each, have their results earliest, and how much
/// earlier than as written; a sentence each.
std::vector<std::string> order_sentences(const QueueAnswer& a);

/// "992 drawn jobs stand in for a trace that is not here"; empty where all are as the file says.
std::string stand_in_words(const QueueSpec& spec);

}  // namespace lockstep
