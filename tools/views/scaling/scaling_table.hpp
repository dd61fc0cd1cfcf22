/// What `lockstep run --scaling` prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/answer/scaling.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/input_tables.hpp"

namespace lockstep {

/// Throws UsageError: the numbers of GPUs are none, too many, or do not rise.
[[noreturn]] void fail_sizes(std::string_view found);

/// For people: strong and weak scaling, and what is lost to what.
std::string scaling_table(const Scaling& scaling, const TextStyle& style);

/// A header line, then a line for each size of each series.
CsvText scaling_csv(const Scaling& scaling);

/// How many sizes draw more than their site has; empty where none does.
std::string exceeded_sizes(const std::vector<ScalingPoint>& points);
/// The sections of what it rests on are there where the basis is given.
std::string scaling_page(const std::string& file, const Scaling& scaling,
                         const AnswerBasis& basis = {});

}  // namespace lockstep
