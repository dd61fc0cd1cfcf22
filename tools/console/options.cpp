#include "tools/console/options.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/program_options.hpp>

#include "models/base/input_error.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

namespace po = boost::program_options;

constexpr OptionSpec kHelp{"help", 'h', "", false, "Print this text.", ""};
constexpr std::string_view kPositional = "positional-word";  ///< no option can have this name
constexpr int kIndent = 6;

std::vector<OptionSpec> all_options(const CommandSpec& command) {
  std::vector<OptionSpec> options(command.options.begin(), command.options.end());
  options.push_back(kHelp);
  return options;
}

po::options_description description(const std::vector<OptionSpec>& options) {
  po::options_description all;
  for (const OptionSpec& option : options) {
    std::string names(option.name);
    if (option.letter != 0) names += fmt::format(",{}", option.letter);
    if (option.argument.empty()) {
      all.add_options()(names.c_str(), po::bool_switch());
    } else {
      all.add_options()(names.c_str(), po::value<std::vector<std::string>>()->composing());
    }
  }
  all.add_options()(std::string(kPositional).c_str(), po::value<std::vector<std::string>>());
  return all;
}

std::vector<std::string> dashed_names(const std::vector<OptionSpec>& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const OptionSpec& option : options) names.push_back(fmt::format("--{}", option.name));
  return names;
}

[[noreturn]] void fail(const CommandSpec& command, const std::string& text, UsageParts parts = {}) {
  throw UsageError(fmt::format("{}{}: {}", command.program, command.name, text), std::move(parts));
}

/// What people ask of any command that asks about a model, in the words of such commands; each with
/// the option that a command must have for it.
struct AskedHint {
  WordHint hint;
  std::string_view needs;
};
constexpr std::array kAskedHints{
    AskedHint{{"--gpu", "--node dgx_h100, a server with such GPUs (lockstep list nodes)"}, "node"},
    AskedHint{{"--lora", "--set lora.rank=16"}, "set"},
    AskedHint{{"--precision", "--set precision=fp8"}, "set"},
    AskedHint{{"--batch", "--sequences 1024"}, "sequences"},
};

std::string_view hint_for(const CommandSpec& command, const std::string& found) {
  const auto own = std::ranges::find(command.hints, found, &WordHint::option);
  if (own != command.hints.end()) return own->instead;
  const auto* const asked = std::ranges::find_if(
      kAskedHints, [&](const AskedHint& each) { return each.hint.option == found; });
  if (asked == kAskedHints.end()) return {};
  const bool has =
      std::ranges::find(command.options, asked->needs, &OptionSpec::name) != command.options.end();
  return has ? asked->hint.instead : std::string_view{};
}

[[noreturn]] void fail_unknown(const CommandSpec& command, const std::string& found,
                               const std::vector<std::string>& names) {
  const std::string_view hint = hint_for(command, found);
  const std::string nearest = hint.empty() ? nearest_name(found, names) : std::string(hint);
  const std::string allowed = fmt::format("{}", fmt::join(names, ", "));
  fail(command,
       fmt::format("unknown option {}; allowed: {}{}", found, allowed,
                   nearest.empty() ? "" : fmt::format(". Did you mean {}?", nearest)),
       {.found = in_quotes(found), .allowed = allowed, .nearest = nearest});
}

po::parsed_options parse_words(const CommandSpec& command, const std::vector<std::string>& args,
                               const std::vector<OptionSpec>& options) {
  const po::options_description known = description(options);
  po::positional_options_description positions;
  positions.add(std::string(kPositional).c_str(), -1);
  namespace style = po::command_line_style;
  try {
    return po::command_line_parser(args)
        .options(known)
        .positional(positions)
        .style(style::unix_style & ~style::allow_guessing & ~style::allow_sticky)
        .run();
  } catch (const po::unknown_option& e) {
    fail_unknown(command, e.get_option_name(), dashed_names(options));
  } catch (const po::invalid_command_line_syntax& e) {
    const bool lacks = e.kind() == po::invalid_syntax::missing_parameter ||
                       e.kind() == po::invalid_syntax::empty_adjacent_parameter;
    fail(command, lacks ? fmt::format("option {} needs an argument", e.get_option_name())
                        : fmt::format("option {} takes no argument", e.get_option_name()));
  } catch (const po::error& e) {
    fail(command, e.what());
  }
}

std::string help_of(const OptionSpec& option) {
  std::string head = option.letter != 0 ? fmt::format("  -{}, --{}", option.letter, option.name)
                                        : fmt::format("  --{}", option.name);
  if (!option.argument.empty()) head += fmt::format(" {}", option.argument);
  if (option.repeatable) head += "   (may be repeated)";
  std::string out = head + "\n" + std::string(kIndent, ' ') +
                    wrap(option.text, kTextColumns, kIndent, kIndent) + "\n";
  if (!option.example.empty()) {
    out += fmt::format("{:{}}Example: {}\n", "", kIndent, option.example);
  }
  return out;
}

}  // namespace

std::string ParsedOptions::get(std::string_view name, std::string_view otherwise) const {
  const auto at = values.find(name);
  return at == values.end() ? std::string(otherwise) : at->second.back();
}

std::optional<std::string> ParsedOptions::given(std::string_view name) const {
  const auto at = values.find(name);
  if (at == values.end()) return std::nullopt;
  return at->second.back();
}

std::vector<std::string> ParsedOptions::all(std::string_view name) const {
  const auto at = values.find(name);
  return at == values.end() ? std::vector<std::string>{} : at->second;
}

std::string ParsedOptions::choice(std::string_view name,
                                  std::span<const std::string_view> allowed) const {
  const std::string value = get(name, allowed.front());
  if (std::ranges::find(allowed, value) != allowed.end()) return value;
  const std::vector<std::string> names(allowed.begin(), allowed.end());
  throw UsageError(fmt::format("--{}: found {}; allowed: {}{}", name, in_quotes(value),
                               fmt::join(names, ", "), did_you_mean(value, names)));
}

ParsedOptions parse_options(const CommandSpec& command, const std::vector<std::string>& args) {
  const std::vector<OptionSpec> options = all_options(command);
  ParsedOptions parsed;
  for (const po::option& option : parse_words(command, args, options).options) {
    if (option.string_key == kPositional || option.position_key >= 0) {
      parsed.positionals.insert(parsed.positionals.end(), option.value.begin(), option.value.end());
      continue;
    }
    std::vector<std::string>& values = parsed.values[option.string_key];
    const auto spec = std::ranges::find_if(
        options, [&](const OptionSpec& o) { return o.name == option.string_key; });
    if (!values.empty() && !spec->repeatable && !spec->argument.empty()) {
      fail(command, fmt::format("option --{} is given twice", option.string_key));
    }
    values.push_back(option.value.empty() ? std::string() : option.value.front());
  }
  if (parsed.positionals.size() > command.positionals) {
    const std::string found = in_quotes(parsed.positionals[command.positionals]);
    fail(command,
         fmt::format("unexpected argument {}; usage: {}{}", found, command.program, command.usage),
         {.found = found, .allowed = {}, .nearest = {}});
  }
  return parsed;
}

std::string help_text(const CommandSpec& command) {
  std::string out =
      fmt::format("Usage: {}{}\n\n{}\n\nOptions:\n", command.program, command.usage, command.about);
  for (const OptionSpec& option : all_options(command)) out += help_of(option);
  if (!command.examples.empty()) out += "\nExamples:\n";
  for (const std::string_view example : command.examples) out += fmt::format("  {}\n", example);
  return out;
}

}  // namespace lockstep
