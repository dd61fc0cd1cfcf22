/// `lockstep run X --scaling 64,128,...`: options in, tables of efficiencies out.
#pragma once

#include <string>

#include "sim/answer/scaling.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/report/input_tables.hpp"

namespace lockstep {

/// As a table, JSON, CSV, and a page where --report asks for one. Throws UsageError for options
/// about one answer alone, and for numbers of GPUs that do not rise.
Exit run_scaling(const std::string& path, const std::string& text, const PresetStore& presets,
                 const ParsedOptions& options, Console& console);

/// How many sizes draw more than their site has; empty where none does.
std::string exceeded_sizes(const std::vector<ScalingPoint>& points);
std::string scaling_table(const Scaling& scaling, const TextStyle& style);
CsvText scaling_csv(const Scaling& scaling);
/// The sections of what it rests on are there where the basis is given.
std::string scaling_page(const std::string& file, const Scaling& scaling,
                         const AnswerBasis& basis = {});

}  // namespace lockstep
