/// A folder for the files that commands hand each other; gone with the object.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

class ScratchFolder {
 public:
  /// In the folder for temporary files (TMPDIR). Throws InputError where none can be made.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  /// Path of a file in it, whether it is there or not.
  [[nodiscard]] std::string path(std::string_view name) const;
  /// Writes the file and says its path. Throws InputError.
  std::string write(std::string_view name, std::string_view text) const;

 private:
  std::string folder_;
};

}  // namespace lockstep
