/// Options that several commands have, and what they do.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "tools/console/console.hpp"
#include "tools/console/written.hpp"

namespace lockstep {

inline constexpr std::array<std::string_view, 3> kFormats{"table", "json", "csv"};
inline constexpr OptionSpec kFormatOption{
    "format",
    0,
    "table|json|csv",
    false,
    "How to print: a table for people (the default), JSON with the unit in every name, or CSV.",
    "--format json"};
inline constexpr OptionSpec kFoldOption{
    "fold",
    0,
    "",
    false,
    "Simulate replicas that look alike once, also where hashed paths (ECMP) tell them apart: fast, "
    "and too fast a step there, which the output says.",
    "--fold"};
inline constexpr OptionSpec kUnfoldOption{
    "unfold",
    0,
    "",
    false,
    "Simulate every replica on its own, whatever it takes. By default those that do the same are "
    "simulated once where that is exact, else each on its own, and above a budget of work a "
    "sample of them, with a band that holds the exact answer.",
    "--unfold"};
inline constexpr OptionSpec kPresetsOption{
    "presets",
    0,
    "DIR",
    true,
    "Look for presets in this folder first (DIR/gpus/my_gpu.json and so on), then in the program's "
    "own.",
    "--presets ./my-presets",
    PathUse::reads};
inline constexpr OptionSpec kStackOption{
    "stack",
    0,
    "FILE|NAME",
    false,
    "Take this software instead of the scenario's: a stack that lockstep learn or lockstep import "
    "recording wrote, or a preset (lockstep list stacks).",
    "--stack my-stack.json",
    PathUse::reads};
inline constexpr OptionSpec kOutputOption{
    "output",
    'o',
    "FILE",
    false,
    "Write to this file instead of the terminal (- is the terminal); it appears only when it is "
    "complete, and is compressed if its name ends in .gz.",
    "-o result.json",
    PathUse::prints};

constexpr int kMostJobs = 1024;

/// What --stack and --set change, in this order.
std::vector<std::string> changes_of(const ParsedOptions& options);

/// The option's whole number from 1 to `high`; `otherwise` without it. Throws UsageError.
int whole_number(const ParsedOptions& options, std::string_view name, int otherwise, int high);

/// The option's time, above 0 and at most `most`. Throws UsageError, which lists the units where
/// one is missing or unknown. Requires that it is given.
Seconds time_option(const ParsedOptions& options, std::string_view name, Seconds most);

/// The preset whose name, or another word for it, the option gives. Throws UsageError where it is
/// none. Requires that it is given.
std::string preset_option(const ParsedOptions& options, std::string_view name,
                          std::string_view kind, const PresetStore& presets);

/// What --fold and --unfold say. Throws UsageError where both are given.
Folding folding_of(const ParsedOptions& options);

/// Before the work: files to be written are in folders that exist and can be written, a folder of
/// files is one or can be made, and "-" is only what prints the answer. Throws InputError or
/// UsageError.
void check_written_files(const CommandSpec& command, const ParsedOptions& options);

/// What Command::read is for commands that take a scenario: a file, standard input, or the name of
/// one that ships.
CommandInput read_scenario_input(const std::string& written, const PresetStore& presets);
/// What Command::run is for commands that answer one text: reads what the first word names and
/// answers it. Throws UsageError where there is none; `what` is then missing: "scenario file".
Exit answer_first_word(const Command& command, std::string_view what, const ParsedOptions& options,
                       Console& console);

/// Style of what a command prints: that of the console, or plain text without colours for --output.
TextStyle output_style(const ParsedOptions& options, const Console& console);
/// Writes the answer to --output or to the console.
void write_output(const Answer& answer, const ParsedOptions& options, Console& console);
/// Writes the file that `option` names, whole or not at all, where it is given.
void write_option_file(const ParsedOptions& options, std::string_view option,
                       const std::function<std::string()>& text);

}  // namespace lockstep
