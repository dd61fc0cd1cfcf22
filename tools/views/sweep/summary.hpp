/// What `lockstep sweep` says at its end: how many points there are, and which are best.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/search/sweep/objective.hpp"
#include "sim/search/sweep/results_db.hpp"
#include "sim/search/sweep/sweep.hpp"
#include "tools/console/table.hpp"
#include "tools/views/vary/shown_numbers.hpp"

namespace lockstep {

struct SweepSummary {
  std::string database;
  std::size_t points = 0;  ///< of the sweep
  std::size_t ok = 0, failed = 0;
  std::string limit_warning{};  ///< how many of those that are ok exceed their site's limit
  std::size_t too_large = 0;    ///< of those that are ok: they do not fit in memory
  std::string first_error;      ///< of the first point that failed
  std::uint32_t first_failed = 0;
  SweepObjective objective;
  std::vector<std::string> columns;  ///< "point", axes, derived values, then metrics
  std::size_t settings = 0;          ///< of them, those before the metrics
  /// The best first; of equals the lower number. What does not fit in memory comes last. Repeats
  /// differ by chance: settings stand by the mean of theirs, and repeats of one by their own.
  std::vector<std::vector<SqlValue>> best;
  /// Of the repeats of the best setting, where there are several.
  std::optional<double> best_mean{};
  std::size_t best_repeats = 0;
  std::vector<bool> fits{};  ///< in memory, for each of `best`
  /// Of the objective, for each of `best`, where answers have one: of a step's time, and of what is
  /// in or against proportion to it (MFU, tokens a second, the price of a training), that of the
  /// step's answer; of goodput that of the mean.
  std::vector<std::optional<NumberInterval>> intervals{};
  std::string_view interval_words{};  ///< "90 % interval"

  [[nodiscard]] bool has_intervals() const;
};
/// The best with a column behind the objective that says its interval; as they are where none has.
SweepSummary with_interval_column(SweepSummary summary);

SweepSummary summarise_sweep(const Sweep& sweep, const std::string& database, std::size_t points,
                             const SweepObjective& objective, int top);

nlohmann::ordered_json summary_json(const SweepSummary& summary);
/// No wider than the terminal, or than kTextColumns: what does not fit is left out, the objective
/// and the first axes last.
std::string summary_table(const SweepSummary& plain, const TextStyle& style);

}  // namespace lockstep
