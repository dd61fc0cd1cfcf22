#include "tools/console/manual_page.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <string_view>

namespace lockstep {
namespace {

/// Text of a line as roff takes it: no hyphen is a line break, no dot or quote begins a request.
std::string roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string manual_head(std::string_view name, std::string_view summary) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH {} 1 \"\" \"lockstep " LOCKSTEP_VERSION
                     "\" \"Lockstep\"\n.SH NAME\n{} \\- {}\n",
                     roff(upper), roff(name), roff(summary));
}

std::string manual_option(const OptionSpec& option) {
  std::string head = option.letter != 0 ? fmt::format(R"(\fB\-{}\fR, )", option.letter) : "";
  head += fmt::format("\\fB{}\\fR", roff(fmt::format("--{}", option.name)));
  if (!option.argument.empty()) head += fmt::format(" \\fI{}\\fR", roff(option.argument));
  std::string out = fmt::format(".TP\n{}\n{}", head, roff(option.text));
  if (option.repeatable) out += " It may be repeated.";
  if (!option.example.empty())
    out += fmt::format("\n.br\nExample: \\fB{}\\fR", roff(option.example));
  return out + "\n";
}

std::string manual_examples(std::span<const std::string_view> examples) {
  std::string out = ".SH EXAMPLES\n.nf\n";
  for (const std::string_view example : examples) out += roff(example) + "\n";
  return out + ".fi\n";
}

constexpr std::string_view kExits =
    ".SH EXIT STATUS\n0: done. 1: an \\-\\-assert was missed. 2: a mistake in the input. 3: a "
    "mistake of the program. 130: interrupted by Ctrl\\-C.\n";

}  // namespace

std::string program_manual(std::span<const Command* const> commands) {
  std::string out =
      manual_head("lockstep", "predicts what a GPU cluster does with a training job") +
      ".SH SYNOPSIS\n\\fBlockstep\\fR \\fICOMMAND\\fR [options]\n.SH DESCRIPTION\n"
      "Step time, MFU, memory, and where the rest of the time goes; weeks with failures, queues, "
      "serving, power and money. Each command has a page of its own.\n.SH COMMANDS\n";
  std::string see;
  for (const Command* command : commands) {
    const CommandSpec& spec = *command->spec;
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(spec.name), roff(spec.summary));
    see += fmt::format(R"({}\fBlockstep\-{}\fR(1))", see.empty() ? "" : ", ", roff(spec.name));
  }
  return out + std::string(kExits) + ".SH SEE ALSO\n" + see + "\n";
}

std::string command_manual(const CommandSpec& command) {
  std::string out = manual_head(fmt::format("lockstep-{}", command.name), command.summary) +
                    fmt::format(".SH SYNOPSIS\n\\fBlockstep\\fR {}\n.SH DESCRIPTION\n{}\n",
                                roff(command.usage), roff(command.about));
  if (!command.options.empty()) out += ".SH OPTIONS\n";
  for (const OptionSpec& option : command.options) out += manual_option(option);
  return out + manual_examples(command.examples) + std::string(kExits) +
         ".SH SEE ALSO\n\\fBlockstep\\fR(1)\n";
}

}  // namespace lockstep
