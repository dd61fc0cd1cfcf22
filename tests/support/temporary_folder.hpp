/// A folder that exists as long as the object does, for tests that need files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep::test {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }
  /// Writes a file below the folder, with the folders that it needs; returns its path.
  std::string write(const std::string& name, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep::test
