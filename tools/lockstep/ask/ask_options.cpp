#include "tools/lockstep/ask/ask_options.hpp"

#include <array>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/output_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/search/rebase_files.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {

std::optional<Ask> ask_of(const ParsedOptions& options, std::string_view first) {
  struct Member {
    std::string_view option;
    std::string Ask::* text;
  };
  constexpr std::array kMembers{
      Member{"model", &Ask::model},         Member{"node", &Ask::node},
      Member{"cluster", &Ask::cluster},     Member{"nodes", &Ask::nodes},
      Member{"gpus", &Ask::gpus},           Member{"fabric", &Ask::fabric},
      Member{"sequences", &Ask::sequences}, Member{"tokens", &Ask::tokens}};
  Ask ask;
  for (const Member& member : kMembers) {
    if (!options.has(member.option)) continue;
    if (!options.has(first)) {
      throw UsageError(
          options.positionals.empty()
              ? fmt::format("--{0}: found it without --{1}; allowed: beside --{1}", member.option,
                            first)
              : fmt::format("--{}: found it beside the scenario {}; allowed: beside --{}, or --set",
                            member.option, options.positionals.front(), first));
    }
    ask.*member.text = options.get(member.option);
  }
  if (!options.has(first)) return std::nullopt;
  if (!options.positionals.empty()) {
    const std::string set =
        first == "model" ? ", or --set model=" + options.get("model") : std::string();
    throw UsageError(fmt::format("--{}: found it beside the scenario {}; allowed: one of them{}",
                                 first, options.positionals.front(), set));
  }
  return ask;
}

std::string asked_text(const Ask& ask, const std::vector<std::string>& sets,
                       const ParsedOptions& options, const PresetStore& presets, Console& console) {
  Progress progress(console.err, "layouts", 1, console.err_is_terminal);
  return ask_scenario(
      ask, sets, presets,
      {.profiles = options.all("profile"),
       .folding = folding_of(options),
       .progress = [&](std::size_t done, std::size_t most) { progress.update(done, most); }});
}

void write_asked(const std::string& text, const std::string& path) {
  nlohmann::ordered_json scenario = nlohmann::ordered_json::parse(text);
  rebase_files(scenario, std::string(kAskedFile), path);
  OutputFile file(path);
  file.write(write_json(scenario, 2) + "\n");
  file.commit();
}

}  // namespace lockstep
