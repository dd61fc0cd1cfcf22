/// What `lockstep referee` prints.
#pragma once

#include <span>
#include <string>

#include "sim/referee/referee.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// The errors of several rows together.
struct RefereeSummary {
  std::size_t cases = 0, messages = 0;
  double median_of_messages = 0;  ///< of all messages of all cases
  double ninetieth_of_messages = 0;
  double median_of_cases = 0;  ///< of the cases' medians
  double median_of_ends = 0;   ///< of the cases' last arrivals
  double worst = 0;            ///< of all messages, signed
  const RefereeCase* worst_case = nullptr;
};
/// Requires at least one row.
RefereeSummary summary_of(std::span<const RefereeRow> rows);

/// A table for each link layer with its summary, or all rows as JSON or CSV. `format` is one of
/// kFormats; rows are sorted by layer.
Answer referee_text(std::span<const RefereeRow> rows, std::string_view format,
                    const TextStyle& style);
/// The same, message by message.
Answer referee_messages_text(std::span<const RefereeRow> rows, std::string_view format,
                             const TextStyle& style);

}  // namespace lockstep
