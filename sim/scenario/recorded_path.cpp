#include "sim/scenario/recorded_path.hpp"

#include <cstdlib>
#include <filesystem>

namespace lockstep {

std::optional<std::string> recorded_path(const std::string& scenario, const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path beside = fs::path(scenario).parent_path() / file;
  std::error_code ignored;
  if (fs::path(file).is_absolute() || fs::exists(beside, ignored)) return beside.string();
  const char* const data = std::getenv("LOCKSTEP_DATA");  // NOLINT(concurrency-mt-unsafe)
  if (data == nullptr || *data == '\0') return std::nullopt;
  const fs::path there = fs::path(data) / file;
  if (!fs::exists(there, ignored)) return std::nullopt;
  return there.string();
}

}  // namespace lockstep
