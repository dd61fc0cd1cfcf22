/// What `lockstep tune` prints and writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/accuracy/prediction_interval.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/search/tune.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

struct TuneStudy {
  Scenario base;
  TuneResult result;
  /// Of the step times, as `lockstep run` prints them: of each of the best, and of the own layout.
  std::vector<PredictionInterval> intervals{};
  std::optional<PredictionInterval> own_interval{};
  LimitTally limits{};  ///< of the best: which exceed their site's power
  bool by_mfu = false;  ///< the table leads with MFU instead of the step's time
};

/// A layout in few words: "TP 8 CP 2 PP 4x16 DP 256 micro 1 zero2".
std::string layout_words(const TrainingJob& job);

/// "The scenario's own layout"; where options stand for a scenario nobody wrote one: which it is.
std::string own_layout_name(const TuneStudy& study);

/// What "close" means beside a layout, and that the first may be slower than one of those; empty
/// where none is close.
std::string close_sentence(const TuneStudy& study);
/// What the answers of the best layouts leave out, each sentence with the ranks that it is about.
std::vector<std::string> tune_notes(const TuneStudy& study);

/// For people, at most 100 columns wide.
std::string tune_table(const TuneStudy& study, const TextStyle& style);
/// The members of tune_fields().
nlohmann::ordered_json tune_json(const TuneStudy& study);
/// A header line and a line for each of the best.
CsvText tune_csv(const TuneStudy& study);

}  // namespace lockstep
