#include "sim/measured/reference_files.hpp"

#include <filesystem>
#include <fmt/format.h>

#include "models/base/input_error.hpp"

namespace lockstep {

std::string reference_file(const PresetStore& presets, std::string_view name) {
  namespace fs = std::filesystem;
  // A folder of one's own may come first: every folder with presets is looked at.
  std::string folder;
  for (const std::string& gpu : presets.names("gpus")) {
    folder = fs::path(presets.path("gpus", gpu)).parent_path().parent_path().string();
    for (const char* place : {"../../tests/reference", "../reference"}) {
      const fs::path file = (fs::path(folder) / place / name).lexically_normal();
      std::error_code ignored;
      if (fs::is_regular_file(file, ignored)) return file.string();
    }
  }
  throw InputError({.file = folder,
                    .pointer = {},
                    .found = fmt::format("presets without the project's own {} beside them", name),
                    .allowed = "a file that is named",
                    .nearest = {}});
}

}  // namespace lockstep
