#include "sim/scenario/shipped_scenarios.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kEnding = ".json", kSchemaEnding = ".schema.json";

/// Which command takes what lies in a folder of scenarios; `run` takes the others.
struct FolderOfCommand {
  std::string_view folder, command;
};
constexpr std::array kFolders{FolderOfCommand{"comm", "comm"}, FolderOfCommand{"plans", "plan"},
                              FolderOfCommand{"sweeps", "sweep"}};

std::string folder_of_scenarios(const PresetStore& presets) {
  // A folder of one's own may come first: every folder with presets is looked at.
  for (const std::string& gpu : presets.names("gpus")) {
    const fs::path folder = fs::path(presets.path("gpus", gpu)).parent_path().parent_path();
    for (const char* place : {"../scenarios", "../../scenarios"}) {
      const fs::path found = (folder / place).lexically_normal();
      std::error_code ignored;
      if (fs::is_regular_file(found / "scenario.schema.json", ignored)) return found.string();
    }
  }
  return {};
}

/// Up to the first full stop that ends a sentence.
std::string first_sentence(const std::string& text) {
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    const bool ends = text[i] == '.' && text[i + 1] == ' ';
    if (ends && std::isupper(static_cast<unsigned char>(text[i + 2])) != 0)
      return text.substr(0, i + 1);
  }
  return text;
}

std::string_view command_of(const std::string& folder, const Json& scenario) {
  const auto* const known = std::ranges::find(kFolders, folder, &FolderOfCommand::folder);
  if (known != kFolders.end()) return known->command;
  if (scenario.contains("filling")) return "queue fill";
  return scenario.contains("collective") || scenario.contains("traffic") ? "comm" : "run";
}

/// Those of the files whose paths end in ".json" and are no schemas.
std::vector<fs::path> scenario_files(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(kEnding) && !name.ends_with(kSchemaEnding)) files.push_back(entry->path());
  }
  return files;
}

/// The file's name without folder and ending.
std::string name_in(const std::string& written) {
  std::string name = fs::path(written).filename().string();
  if (name.ends_with(kEnding)) name.resize(name.size() - kEnding.size());
  return name;
}

}  // namespace

std::vector<ShippedScenario> shipped_scenarios(const PresetStore& presets) {
  std::vector<ShippedScenario> out;
  const std::string folder = folder_of_scenarios(presets);
  if (folder.empty()) return out;
  for (const fs::path& file : scenario_files(folder)) {
    const Json scenario = Json::parse(read_text_file(file.string()));
    out.push_back(
        {.name = file.stem().string(),
         .command = std::string(command_of(file.parent_path().filename().string(), scenario)),
         .file = file.string(),
         .sentence = first_sentence(scenario.value("about", std::string()))});
  }
  std::ranges::sort(out, {}, &ShippedScenario::name);
  return out;
}

std::string scenario_path(const std::string& written, const PresetStore& presets) {
  std::error_code ignored;
  if (written.empty() || written == kStandardInput || written.find('#') != std::string::npos ||
      fs::exists(written, ignored)) {
    return written;
  }
  const std::string folder = folder_of_scenarios(presets), name = name_in(written);
  const bool is_name = name == written, is_file = written.ends_with(kEnding);
  std::vector<std::string> names;
  for (const fs::path& file : folder.empty() ? std::vector<fs::path>() : scenario_files(folder)) {
    names.push_back(file.stem().string());
    if (is_name && names.back() == written) return file.string();
  }
  std::ranges::sort(names);
  // A path of the source tree where only names are installed, or a name with a folder. What a file
  // of one's own may be called like is no hint.
  std::string nearest = nearest_name(name, names);
  if (!is_name && (nearest.empty() || (is_file && nearest != name))) return written;
  throw InputError({.file = written,
                    .pointer = {},
                    .found = "no such file, and no scenario of that name",
                    .allowed = "a file, - for standard input, or a name of lockstep list scenarios",
                    .nearest = std::move(nearest)});
}

}  // namespace lockstep
