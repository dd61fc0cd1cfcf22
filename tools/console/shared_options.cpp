#include "tools/console/shared_options.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <ostream>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"
#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/shipped_scenarios.hpp"

namespace lockstep {

std::vector<std::string> changes_of(const ParsedOptions& options) {
  std::vector<std::string> out;
  if (options.has("stack")) out.push_back("stack=" + json_string(options.get("stack")));
  for (const std::string& set : options.all("set")) out.push_back(set);
  return out;
}

int whole_number(const ParsedOptions& options, std::string_view name, int otherwise, int high) {
  return options.has(name) ? asked_count(name, options.get(name), high) : otherwise;
}

Seconds time_option(const ParsedOptions& options, std::string_view name, Seconds most) {
  const std::string text = options.get(name);
  const auto parsed = parse_quantity(text, Dimension::time);
  if (const auto* mistake = std::get_if<QuantityMistake>(&parsed)) {
    const std::string nearest =
        mistake->nearest.empty() ? "" : fmt::format(". Did you mean \"{}\"?", mistake->nearest);
    throw UsageError(fmt::format("--{}: found {}; allowed: {}{}", name, in_quotes(text),
                                 mistake->allowed, nearest));
  }
  const Seconds time{std::get<double>(parsed)};
  if (time > Seconds{} && time <= most) return time;
  throw UsageError(fmt::format("--{}: found {}; allowed: a time above 0, at most {}", name,
                               in_quotes(text),
                               format_quantity(most.base_units(), Dimension::time)));
}

std::string preset_option(const ParsedOptions& options, std::string_view name,
                          std::string_view kind, const PresetStore& presets) {
  const std::string written = options.get(name);
  std::string meant = presets.meant(kind, written);
  if (!meant.empty()) return meant;
  const std::vector<std::string> names = presets.names(kind);
  throw UsageError(fmt::format("--{}: found {}; allowed: {}{}", name, in_quotes(written),
                               listed(names), did_you_mean(written, names)));
}

Folding folding_of(const ParsedOptions& options) {
  const bool fold = options.has("fold"), unfold = options.has("unfold");
  if (fold && unfold) throw UsageError("--fold: found --unfold beside it; allowed: one of them");
  return fold ? Folding::folded : unfold ? Folding::unfolded : Folding::automatic;
}

namespace {

/// "-" is the console, as everywhere.
bool goes_to_file(const ParsedOptions& options) {
  return options.has("output") && options.get("output") != kStandardInput;
}

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(one, ignored) ==
         std::filesystem::weakly_canonical(other, ignored);
}

/// Refuses an output that would take the place of another, or of what is read.
void check_apart(const CommandSpec& command, const ParsedOptions& options) {
  std::vector<std::pair<std::string, std::string>> taken;  // what it is, and its path
  for (const std::string& word : options.positionals) taken.emplace_back("what is read", word);
  for (const OptionSpec& option : command.options) {
    if (option.path != PathUse::reads) continue;
    for (const std::string& path : options.all(option.name)) {
      taken.emplace_back(fmt::format("what --{} reads", option.name), path);
    }
  }
  for (const OptionSpec& option : command.options) {
    const bool written = option.path != PathUse::none && option.path != PathUse::reads;
    if (!written || !options.has(option.name)) continue;
    const std::string path = options.get(option.name);
    if (path == kStandardInput) continue;
    for (const auto& [what, other] : taken) {
      if (other == kStandardInput || !is_same_file(path, other)) continue;
      throw UsageError(fmt::format("--{}: found {}, which is {}; allowed: another name",
                                   option.name, in_quotes(path), what));
    }
    taken.emplace_back(fmt::format("what --{} writes", option.name), path);
  }
}

[[noreturn]] void refuse_path(const std::string& path, std::string found, std::string allowed) {
  throw InputError({.file = path,
                    .pointer = {},
                    .found = std::move(found),
                    .allowed = std::move(allowed),
                    .nearest = {}});
}

/// By the file system's word: the system may still say no, as where a disk is full.
bool may_write_in(const std::filesystem::path& folder) {
  return ::access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
}

void check_file_can_be_written(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    refuse_path(path, "no folder " + in_quotes(folder.string()), "a file in a folder that exists");
  }
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status)) refuse_path(path, "a folder", "a file");
  // A pipe or a device is written as it is; all else gets its name when it is complete.
  const bool direct = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (!direct && !may_write_in(folder)) {
    refuse_path(path, "a folder that cannot be written", "a file in a folder that can");
  }
}

/// The first part of the path that exists has to be a folder to make the others in.
void check_folder_can_be_made(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path there = std::filesystem::absolute(path, ignored).lexically_normal();
  while (!std::filesystem::exists(std::filesystem::symlink_status(there, ignored)) &&
         there.has_relative_path()) {
    there = there.parent_path();
  }
  if (!std::filesystem::is_directory(there, ignored)) {
    refuse_path(path, "a file " + in_quotes(there.string()), "a folder, or a name for a new one");
  }
  if (!may_write_in(there)) {
    refuse_path(path, "a folder " + in_quotes(there.string()) + " that cannot be written",
                "a folder that can");
  }
}

}  // namespace

void check_written_files(const CommandSpec& command, const ParsedOptions& options) {
  check_apart(command, options);
  for (const OptionSpec& option : command.options) {
    const PathUse use = option.path;
    if (use == PathUse::none || use == PathUse::reads || !options.has(option.name)) continue;
    const std::string path = options.get(option.name);
    const bool folder_is_made = use == PathUse::writes_folder;
    if (path == kStandardInput) {
      if (use == PathUse::prints) continue;
      throw UsageError(fmt::format("--{}: found \"-\"; allowed: the name of a {}", option.name,
                                   folder_is_made ? "folder" : "file"));
    }
    if (folder_is_made) {
      check_folder_can_be_made(path);
    } else {
      check_file_can_be_written(path);
    }
  }
}

CommandInput read_scenario_input(const std::string& written, const PresetStore& presets) {
  std::string file = scenario_path(written, presets);
  std::string text = read_text_file(file);
  return {.file = std::move(file), .text = std::move(text)};
}

Exit answer_first_word(const Command& command, std::string_view what, const ParsedOptions& options,
                       Console& console) {
  if (options.positionals.empty()) {
    throw UsageError(fmt::format("lockstep {}: no {}; usage: lockstep {}", command.spec->name, what,
                                 command.spec->usage));
  }
  const PresetStore presets(options.all("presets"));
  return command.answer(command.read(options.positionals.front(), presets), presets, options,
                        console);
}

TextStyle output_style(const ParsedOptions& options, const Console& console) {
  TextStyle style = console.style;
  if (goes_to_file(options)) {
    style.colour = false;
    style.columns = 0;
  }
  return style;
}

void write_output(const Answer& answer, const ParsedOptions& options, Console& console) {
  if (!goes_to_file(options)) {
    console.out << answer.str();
    return;
  }
  OutputFile file(options.get("output"));
  file.write(answer.str());
  file.commit();
}

void write_option_file(const ParsedOptions& options, std::string_view option,
                       const std::function<std::string()>& text) {
  if (!options.has(option)) return;
  OutputFile file(options.get(option));
  file.write(text());
  file.commit();
}

}  // namespace lockstep
