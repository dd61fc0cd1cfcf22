#include "sim/search/sweep/objective.hpp"

#include <algorithm>
#include <optional>

#include "models/base/input_error.hpp"
#include "sim/search/sweep/results_db.hpp"

namespace lockstep {

SweepObjective read_objective(const Sweep& sweep, const std::string& text,
                              const std::string& origin) {
  if (text.empty() && !sweep.objective.empty()) {
    return read_objective(sweep, sweep.objective, sweep.file + "#/objective");
  }
  if (text.empty()) return {.column = sweep.is_run ? "goodput" : "mfu", .larger_is_better = true};
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const std::string way = colon == std::string::npos ? "" : text.substr(colon + 1);
  std::vector<std::string> known = sweep.columns();
  int better = 0;
  for (const SweepMetric& metric : metrics_of(sweep)) {
    known.push_back(metric.name);
    if (metric.name == name) better = metric.better;
  }
  if (std::ranges::find(known, name) == known.end()) {
    throw InputError({.file = origin,
                      .pointer = {},
                      .found = in_quotes(name),
                      .allowed = listed(known),
                      .nearest = nearest_name(name, known)});
  }
  if (way == "max") better = 1;
  if (way == "min") better = -1;
  const bool known_way = way.empty() || way == "max" || way == "min";
  if (better == 0 || !known_way) {
    throw InputError({.file = origin,
                      .pointer = {},
                      .found = in_quotes(text),
                      .allowed = name + ":max or " + name + ":min",
                      .nearest = {}});
  }
  return {.column = name, .larger_is_better = better > 0};
}

}  // namespace lockstep
