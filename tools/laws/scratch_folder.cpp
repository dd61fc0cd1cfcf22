#include "tools/laws/scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"

namespace lockstep {

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::temp_directory_path(error);
  std::string name = (root / "lockstep-check-XXXXXX").string();
  if (!error && mkdtemp(name.data()) == nullptr) {
    error = std::error_code(errno, std::generic_category());
  }
  if (error) {
    throw InputError({.file = root.empty() ? "TMPDIR" : root.string(),
                      .pointer = {},
                      .found = error.message(),
                      .allowed = "a folder for temporary files, in which commands write",
                      .nearest = {}});
  }
  folder_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string ScratchFolder::path(std::string_view name) const {
  return fmt::format("{}/{}", folder_, name);
}

std::string ScratchFolder::write(std::string_view name, std::string_view text) const {
  OutputFile file(path(name));
  file.write(text);
  file.commit();
  return path(name);
}

}  // namespace lockstep
