#include "sim/search/rebase_files.hpp"

#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.empty() ? "." : folder;
}

void rebase(nlohmann::ordered_json& value, const fs::path& from, const fs::path& to) {
  if (value.is_structured()) {
    for (nlohmann::ordered_json& child : value) rebase(child, from, to);
  } else if (value.is_string()) {
    const fs::path written = value.get<std::string>();
    std::error_code error;
    if (written.empty() || written.is_absolute() || !fs::is_regular_file(from / written, error))
      return;
    value = fs::proximate(from / written, to, error).generic_string();
  }
}

}  // namespace

void rebase_files(nlohmann::ordered_json& scenario, const std::string& from,
                  const std::string& to) {
  rebase(scenario, folder_of(from), folder_of(to));
}

}  // namespace lockstep
