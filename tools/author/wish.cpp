#include "tools/author/wish.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <string>
#include <system_error>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "sim/search/ask.hpp"
#include "tools/author/new_scenario.hpp"
#include "tools/author/questions.hpp"
#include "tools/console/ask_options.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {
namespace {

/// What is wrong with the name or file of a model; nothing: empty.
std::string model_mistake(const std::string& written, const PresetStore& presets) {
  try {
    (void)asked_model(written, presets);
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

void ask_for_rest(const ParsedOptions& options, const PresetStore& presets, std::string& kind,
                  NewWish& wish) {
  Questions questions(std::cin, std::cerr);
  const auto node = [&presets](const std::string& answer) {
    if (!presets.meant("nodes", answer).empty()) return std::string();
    return fmt::format("found {}; allowed: a name of lockstep list nodes{}", in_quotes(answer),
                       did_you_mean(answer, presets.names("nodes")));
  };
  if (kind.empty()) {
    std::vector<std::string> names;
    for (const NewKind& each : new_kinds()) names.emplace_back(each.name);
    kind = questions.ask(
        fmt::format("What ({})?", fmt::join(names, ", ")), "step", [&](const std::string& answer) {
          return std::ranges::find(names, answer) != names.end()
                     ? std::string()
                     : fmt::format("found {}; allowed: {}{}", in_quotes(answer),
                                   fmt::join(names, ", "), did_you_mean(answer, names));
        });
  }
  if (kind == "sweep") return;
  if (!options.has("model") && kind != "queue") {
    wish.model = questions.ask("Which model?", wish.model, [&presets](const std::string& answer) {
      return model_mistake(answer, presets);
    });
  }
  if (!options.has("node")) wish.node = questions.ask("On which server?", wish.node, node);
  if (options.has("nodes")) return;
  const std::string nodes =
      questions.ask("How many of them?", std::to_string(wish.nodes), [](const std::string& answer) {
        const bool whole = !answer.empty() && answer.size() < 6 &&
                           answer.find_first_not_of("0123456789") == std::string::npos &&
                           answer.front() != '0';
        return whole ? std::string()
                     : fmt::format("found {}; allowed: a whole number from 1 to 99999",
                                   in_quotes(answer));
      });
  wish.nodes = std::stoi(nodes);
}

std::string varied_scenario(const NewWish& wish, const PresetStore& presets) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (fs::exists(wish.scenario, none)) return wish.scenario;
  if (fs::exists(fs::path(wish.file).parent_path() / wish.scenario, none)) return wish.scenario;
  const std::string installed = scenario_path(wish.scenario, presets);
  (void)read_text_file(installed);
  return fs::absolute(installed).string();
}

}  // namespace lockstep
