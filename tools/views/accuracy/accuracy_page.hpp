/// The page that says how well predictions match published runs: tests/reference/accuracy.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/accuracy/residuals.hpp"
#include "sim/measured/row_validation.hpp"

namespace lockstep {

/// What makes a row as wrong as it is, and how that is known.
struct Explanation {
  std::string words, evidence;
};
/// By the id of the row: tests/reference/explanations.json. Throws InputError.
using Explanations = std::map<std::string, Explanation>;
Explanations read_explanations(const std::string& file, std::string_view text);

/// Rows whose twins (the same model, machine, layout, batch and format) of another release took a
/// time that differs by more than 20 %: no constant of a kind of GPU or of a stack explains both.
std::vector<const ReferenceRow*> contradicted_by_twins(const std::vector<RowPrediction>& rows);

struct AccuracyFigures {
  const std::vector<RowPrediction>& runs;         ///< of training.json
  const std::vector<RowPrediction>& single_node;  ///< of single_node.json
  const ResidualTable& residuals;
  const Explanations& explanations;
};

/// Markdown. Throws InputError if one of the ten worst rows has no explanation, or an explanation
/// is of no row.
std::string accuracy_page(const AccuracyFigures& figures);

}  // namespace lockstep
