/// What `lockstep tune` prints of a service.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/search/tune_serving.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/input_tables.hpp"

namespace lockstep {

struct ServingTuneStudy {
  const ServingSpec& base;
  const ServingTune& result;
  ServingGoal goal = ServingGoal::goodput;
};

/// For people, at most 100 columns wide where layouts are short.
std::string serving_tune_table(const ServingTuneStudy& study, const TextStyle& style);
/// The members of serving_tune_fields().
nlohmann::ordered_json serving_tune_json(const ServingTuneStudy& study);
/// A header line and a line for each of the best.
CsvText serving_tune_csv(const ServingTuneStudy& study);
/// The sections of what it rests on are there where the basis is given.
std::string serving_tune_page(const ServingTuneStudy& study, const AnswerBasis& basis = {});

}  // namespace lockstep
