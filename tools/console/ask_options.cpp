#include "tools/console/ask_options.hpp"

#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/json_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/search/rebase_files.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {

bool asks_without_file(const ParsedOptions& options, std::string_view first,
                       std::span<const std::string_view> parts, std::string_view what) {
  if (!options.has(first)) {
    for (const std::string_view part : parts) {
      if (!options.has(part)) continue;
      throw UsageError(
          options.positionals.empty()
              ? fmt::format("--{0}: found it without --{1}; allowed: beside --{1}", part, first)
              : fmt::format("--{}: found it beside the {} {}; allowed: beside --{}, or --set", part,
                            what, options.positionals.front(), first));
    }
    return false;
  }
  if (options.positionals.empty()) return true;
  const bool sets_model = first == "model" && what == "scenario";
  throw UsageError(
      fmt::format("--{}: found it beside the {} {}; allowed: one of them{}", first, what,
                  options.positionals.front(),
                  sets_model ? ", or --set model=" + options.get("model") : std::string()));
}

std::string model_option(const ParsedOptions& options) {
  std::string written = options.get("model");
  std::error_code none;
  if (written != kStandardInput && !std::filesystem::is_fifo(written, none)) return written;
  const JsonCursor root = JsonCursor::parse(written, quote_non_finite(read_text_file(written)));
  (void)root.keys();  // throws where it is no object
  return write_json(root.json());
}

std::optional<Ask> ask_of(const ParsedOptions& options, std::string_view first) {
  constexpr std::array<std::string_view, 8> kNames{"model", "node",   "cluster",   "nodes",
                                                   "gpus",  "fabric", "sequences", "tokens"};
  if (!asks_without_file(options, first, kNames)) return std::nullopt;
  return Ask{.model = model_option(options),
             .cluster = options.get("cluster"),
             .node = options.get("node"),
             .nodes = options.get("nodes"),
             .gpus = options.get("gpus"),
             .fabric = options.get("fabric"),
             .sequences = options.get("sequences"),
             .tokens = options.get("tokens")};
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
