#include "sim/launch/launch_changes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_error.hpp"

namespace lockstep {

bool mentions(std::string_view text, std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !letter(text[at - 1]);
    const std::size_t end = at + name.size();
    if (begins && (end == text.size() || !letter(text[end]))) return true;
  }
  return false;
}

LaunchChanges::LaunchChanges(const std::vector<std::string>& set, LaunchFiles& files)
    : files_(files) {
  constexpr std::array<std::string_view, 14> kTop{
      "cluster", "model", "parallelism", "batch", "stack", "recompute", "routing",
      "offload", "about", "precision",   "lora",  "power", "training",  "frozen"};
  for (const std::string& one : set) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError({.file = "--set",
                        .pointer = {},
                        .found = in_quotes(one),
                        .allowed = "NAME=VALUE: a variable of a script, a key of a file, or a "
                                   "path of the scenario",
                        .nearest = {}});
    }
    const std::string name = one.substr(0, equals);
    const std::string top = name.substr(0, name.find('.'));
    const bool of_scenario = std::ranges::find(kTop, std::string_view(top)) != kTop.end();
    if (of_scenario && !mentions(files_.texts, name)) {
      files_.scenario.push_back(one);
    } else {
      // What the files mention, positional words of a script ($1), or a key that they lack.
      changes_.push_back({name, one.substr(equals + 1), false});
    }
  }
}

std::vector<Setting> LaunchChanges::filled(std::vector<Setting> settings) {
  for (const Change& change : changes_) {
    const std::string name = fmt::format("${{{}}}", change.name);
    for (Setting& one : settings) {
      for (std::string& value : one.values) {
        if (value.find(name) != std::string::npos) variables_used_.insert(change.name);
        for (std::size_t at = value.find(name); at != std::string::npos;
             at = value.find(name, at + change.value.size())) {
          value.replace(at, name.size(), change.value);
        }
        // "${NAME:default}", as Primus has it.
        const std::string begin = fmt::format("${{{}:", change.name);
        const std::size_t at = value.find(begin), end = value.find('}', at);
        if (at == std::string::npos || end == std::string::npos) continue;
        variables_used_.insert(change.name);
        value.replace(at, end + 1 - at, change.value);
      }
    }
  }
  return settings;
}

void LaunchChanges::fix(const std::string& text, ShellVariables& variables) {
  for (const Change& change : changes_) {
    if (!mentions(text, change.name) && !(change.name[0] >= '0' && change.name[0] <= '9')) continue;
    variables.fix(change.name, change.value);
    variables_used_.insert(change.name);
  }
}

bool LaunchChanges::has_key(const std::string& name) const {
  return std::ranges::any_of(files_.parts, [&](const LaunchPart& part) {
    return std::ranges::any_of(
        part.settings, [&](const Setting& one) { return plain_key(one.key) == plain_key(name); });
  });
}

void LaunchChanges::take_keys_of_sections() {
  std::vector<std::string> paths;
  for (const std::string& one : files_.scenario) {
    const std::size_t equals = one.find('=');
    if (has_key(one.substr(0, equals))) {
      changes_.push_back({one.substr(0, equals), one.substr(equals + 1), false});
    } else {
      paths.push_back(one);
    }
  }
  files_.scenario = std::move(paths);
}

void LaunchChanges::apply() {
  take_keys_of_sections();
  for (Change& change : changes_) {
    const std::string wanted = plain_key(change.name);
    for (LaunchPart& part : files_.parts) {
      for (std::vector<Setting>* list : {&part.launcher, &part.settings}) {
        for (Setting& one : *list) {
          const std::string key = plain_key(one.key);
          if (key != wanted && last_part(key) != wanted) continue;
          one.values = {change.value};
          change.used = true;
        }
      }
    }
    if (change.used || variables_used_.contains(change.name) || files_.parts.empty()) continue;
    files_.parts.back().settings.push_back({change.name, {change.value}, "--set"});
  }
}

}  // namespace lockstep
