/// What `--vary PATH=V1,V2,...` says.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/input_error.hpp"

namespace lockstep {

/// A value of the scenario, and what to try in its place, as --set would have it.
struct VaryAxis {
  std::string path;                 ///< "run.checkpoint.interval"
  std::vector<std::string> values;  ///< as they were given
};

/// One or two axes. Throws UsageError for another form, an empty value, one that is given twice, a
/// third axis, two of one path, and more than 400 points.
std::vector<VaryAxis> parse_axes(const std::vector<std::string>& options);

/// Points of the grid; 0 without axes.
std::size_t points_of(const std::vector<VaryAxis>& axes);

/// The values of a point, one of each axis; those of the last axis change first.
std::vector<std::string> values_at(const std::vector<VaryAxis>& axes, std::size_t point);

/// The point's changes as --set has them: "cluster.nodes=64".
std::vector<std::string> sets_at(const std::vector<VaryAxis>& axes, std::size_t point);

/// A sentence on what bare names of presets take away, where the scenario as it is written has at
/// the axis' path a preset with changes: which they are, and how to keep them. Empty: nothing.
std::string lost_changes(const VaryAxis& axis, const nlohmann::ordered_json& written);

/// The error of a point with these changes, told of --vary.
InputError told_of_vary(InputError error, const std::vector<std::string>& sets);

}  // namespace lockstep
