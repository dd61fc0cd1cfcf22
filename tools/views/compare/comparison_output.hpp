/// What `lockstep compare` prints.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/search/compare/comparison.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

std::string comparison_table(const Comparison& comparison, const TextStyle& style);
nlohmann::ordered_json comparison_json(const Comparison& comparison);
CsvText comparison_csv(const Comparison& comparison);

}  // namespace lockstep
