/// Recordings and files that other people made, which the repository does not hold: the folder that
/// the environment variable LOCKSTEP_DATA names has them. Tests of them are skipped without it, and
/// counted as skipped:
///     TEST_CASE("..." * doctest::skip(!test::has_real_files()))
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::test {

/// The path of a file of the folder, "kineto/a100-alexnet.json.gz"; empty without the folder.
inline std::string real_file(const std::string& name) {
  const char* const folder = std::getenv("LOCKSTEP_DATA");  // NOLINT(concurrency-mt-unsafe)
  return folder == nullptr || *folder == '\0' ? std::string() : std::string(folder) + "/" + name;
}
inline bool has_real_files() {
  const std::string folder = real_file("kineto");
  return !folder.empty() && std::filesystem::is_directory(folder);
}

inline bool has_real_file(const std::string& name) {
  const std::string file = real_file(name);
  return !file.empty() && std::filesystem::exists(file);
}

}  // namespace lockstep::test
