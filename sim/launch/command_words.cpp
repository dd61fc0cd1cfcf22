#include "sim/launch/command_words.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kOuterRunners{"srun", "mpirun", "mpiexec", "sbatch",
                                                        "jsrun"};

bool is_key_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

/// "key=value" as Hydra and MaxText take it, also with + in front; the length of the key.
std::size_t length_of_key(std::string_view word) {
  std::string_view name = word;
  while (name.starts_with('+')) name.remove_prefix(1);
  const std::size_t plus = word.size() - name.size();
  std::size_t length = 0;
  while (length < name.size() && is_key_letter(name[length])) ++length;
  const bool letter = length > 0 && !(name[0] >= '0' && name[0] <= '9') && name[0] != '.';
  return letter && length < name.size() && name[length] == '=' ? plus + length : 0;
}

/// Options with a blank inside a word stand in one where a script quotes them together.
std::vector<std::string> taken_apart(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    if (word.starts_with("--") && word.find_first_of(" \n\t") != std::string::npos &&
        word.find('=') > word.find_first_of(" \n\t")) {
      std::ranges::move(words_of(word), std::back_inserter(out));
    } else {
      out.push_back(word);
    }
  }
  return out;
}

/// Options that give the processes a variable of the environment, or mpirun one of its own.
bool gives_variable(std::string_view option) {
  constexpr std::array<std::string_view, 7> kGiven{"-x",    "-e",   "-mca", "--mca",
                                                   "-genv", "-env", "--env"};
  return std::ranges::find(kGiven, option) != kGiven.end();
}

std::string without_quotes(std::string text) {
  const bool quoted = text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
                      text.front() == text.back();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

bool is_module_flag(const std::string& word) { return word == "-m" || word == "--module"; }

/// Index of the word that names the program; the number of words where none does.
std::size_t program_at(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].ends_with(".py") && !words[i].starts_with("--")) return i;
    const bool module = is_module_flag(words[i]) && i + 1 < words.size();
    if (!module) continue;
    const std::string& name = words[i + 1];
    const bool launcher = name.starts_with("torch.distributed") || name.ends_with("accelerate") ||
                          name.find("accelerate.commands") != std::string::npos ||
                          name.starts_with("deepspeed");
    if (!launcher) return i + 1;
  }
  return words.size();
}

std::size_t options_in(const std::vector<std::string>& words) {
  return static_cast<std::size_t>(std::ranges::count_if(words, [](const std::string& word) {
    return word.starts_with("--") || length_of_key(word) > 0;
  }));
}

void add_runners(const std::vector<std::string>& words, std::size_t end, CommandWords& out) {
  for (std::size_t i = 0; i < end; ++i) out.runners.push_back(words[i]);
}

/// Lines that are options and nothing else: a file of arguments.
std::vector<std::string> listed_options(const ShellScript& script) {
  std::vector<std::string> out;
  for (const std::vector<std::string>& command : script.commands) {
    if (command.empty() || !command.front().starts_with("--")) continue;
    out.insert(out.end(), command.begin(), command.end());
  }
  return out;
}

/// Slurm's "-N" is its "--nodes".
std::vector<Setting> slurm_settings(std::vector<std::string> words, const std::string& file) {
  for (std::string& word : words) {
    if (word == "-N") word = "--nodes";
  }
  return settings_of(words, file);
}

CommandWords split_at_program(const std::vector<std::string>& words, const std::string& file) {
  CommandWords out;
  const std::size_t program = program_at(words);
  if (program == words.size()) {
    add_runners(words, std::min<std::size_t>(words.size(), 3), out);
    out.arguments = settings_of(words, file);
    return out;
  }
  out.program = words[program];
  add_runners(words, program, out);
  const auto at = words.begin() + static_cast<std::ptrdiff_t>(program);
  out.launcher = settings_of({words.begin(), at}, file);
  out.arguments = settings_of({at + 1, words.end()}, file);
  for (auto word = at + 1; word != words.end() && !is_option(*word); ++word) {
    const bool yaml = word->ends_with(".yml") || word->ends_with(".yaml");
    if (yaml && length_of_key(*word) == 0) out.files.push_back(*word);
  }
  return out;
}

}  // namespace

bool is_option(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  if (word[1] == '-') return word.size() > 2;
  return !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

std::vector<Setting> settings_of(const std::vector<std::string>& words, const std::string& file) {
  std::vector<Setting> out;
  bool takes_values = false;
  for (const std::string& word : taken_apart(words)) {
    const std::size_t equals = word.find('=');
    if (is_option(word)) {
      Setting setting{word.substr(0, equals), {}, file};
      if (equals != std::string::npos) setting.values = {without_quotes(word.substr(equals + 1))};
      takes_values = equals == std::string::npos;
      out.push_back(std::move(setting));
    } else if (takes_values && gives_variable(out.back().key)) {
      out.back().values.push_back(word);
    } else if (const std::size_t length = length_of_key(word); length > 0) {
      const std::size_t plus = word.find_first_not_of('+');
      out.push_back(
          {word.substr(plus, length - plus), {without_quotes(word.substr(length + 1))}, file});
      takes_values = false;
    } else if (takes_values && !out.empty()) {
      out.back().values.push_back(without_quotes(word));
    }
  }
  return out;
}

CommandWords training_command(const ShellScript& script, const ShellVariables& variables,
                              const std::string& file) {
  const std::vector<std::string>* best = nullptr;
  std::size_t most = 0;
  for (const std::vector<std::string>& command : script.commands) {
    const std::size_t options =
        options_in(command) + (program_at(command) < command.size() ? 1 : 0);
    const bool shown = !command.empty() && (command[0] == "echo" || command[0] == "printf");
    if (options > 0 && (options > most || (options == most && !shown))) {
      most = options;
      best = &command;
    }
  }
  CommandWords out;
  const std::vector<std::string> listed = listed_options(script);
  if (options_in(listed) > most) {
    out.arguments = settings_of(listed, file);
  } else if (best != nullptr) {
    out = split_at_program(*best, file);
  } else {
    std::vector<std::string> words;
    for (const auto& [name, values] : variables.all()) {
      for (const std::string& value : values) {
        if (value.find("--") == std::string::npos) continue;
        std::ranges::move(words_of(value), std::back_inserter(words));
      }
    }
    out.arguments = settings_of(words, file);
  }
  std::vector<Setting> scheduler = slurm_settings(script.scheduler, file);
  for (const std::vector<std::string>& command : script.commands) {
    if (&command == best || command.empty()) continue;
    if (std::ranges::find(kOuterRunners, std::string_view(command[0])) == kOuterRunners.end()) {
      continue;
    }
    // What it starts is a command of its own.
    const auto inner = std::ranges::find_if(command, [](const std::string& word) {
      return word == "bash" || word == "sh" || word == "python" || word == "python3" ||
             word == "singularity" || word == "torchrun";
    });
    const std::vector<std::string> own(command.begin(), inner);
    const bool slurm = command[0] == "srun" || command[0] == "sbatch";
    std::ranges::move(slurm ? slurm_settings(own, file) : settings_of(own, file),
                      std::back_inserter(scheduler));
  }
  out.launcher.insert(out.launcher.begin(), scheduler.begin(), scheduler.end());
  return out;
}

}  // namespace lockstep
