/// Whether one pool or two get more out of a GPU, as measured and as predicted: each row of two
/// pools against the best rows of one pool at the same time per token.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep {

/// What a closed loop of clients gets: the time that a token takes it, and tokens of answers that a
/// GPU yields in a second.
struct ServedPace {
  double tpot_s = 0;
  double per_gpu = 0;

  /// Of so many clients with answers of so many tokens, which see their first token after `ttft_s`:
  /// Little's law.
  static ServedPace of_clients(double clients, double tokens, double ttft_s, double tpot_s,
                               int gpus);
};

/// A row; rows with the same configuration (model, GPU, formats, engine, lengths) compare.
struct PacedRow {
  std::string configuration;
  bool two_pools = false;
  ServedPace measured, predicted;
};

struct WinnerCount {
  std::size_t configurations = 0;   ///< that have rows of one pool and of two to compare
  std::size_t rows = 0, right = 0;  ///< of two pools; those that win or lose as they are predicted
  std::size_t apart = 0, right_apart = 0;  ///< of those, measured at least a tenth apart
};
/// Between the best rows of one pool, those that no other row beats in both, throughput is linear
/// in the time per token, and beyond the slowest as at it. A row that is faster than all of one
/// pool, as measured or as predicted, has none to compare with and is left out.
WinnerCount count_winners(std::span<const PacedRow> rows);

/// The same in a sentence; empty where nothing compares.
std::string winner_note(std::span<const PacedRow> rows);

}  // namespace lockstep
