#include "tools/lockstep/reference_files.hpp"

#include <filesystem>
#include <fmt/format.h>

#include "tools/lockstep/options.hpp"

namespace lockstep {

std::string reference_file(const PresetStore& presets, std::string_view name) {
  namespace fs = std::filesystem;
  const fs::path kind_folder =
      fs::path(presets.path("gpus", presets.names("gpus").front())).parent_path();
  const fs::path folder = kind_folder.parent_path();
  for (const char* place : {"../../tests/reference", "../reference"}) {
    const fs::path file = (folder / place / name).lexically_normal();
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) return file.string();
  }
  throw UsageError(fmt::format(
      "the project's own {} is not beside its presets ({}); name a file", name, folder.string()));
}

}  // namespace lockstep
