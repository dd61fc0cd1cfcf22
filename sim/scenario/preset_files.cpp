#include "sim/scenario/preset_files.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/input/json_text.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kExtension = ".json";

/// Folders in "a:b"; empty parts are left out.
std::vector<std::string> split_folders(std::string_view list) {
  std::vector<std::string> folders;
  while (!list.empty()) {
    const std::size_t colon = list.find(':');
    if (colon != 0) folders.emplace_back(list.substr(0, colon));
    if (colon == std::string_view::npos) break;
    list.remove_prefix(colon + 1);
  }
  return folders;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                  c == '.';
         });
}

/// The numbers in a release name, in order.
std::vector<long> release_numbers(std::string_view release) {
  constexpr long kLargest = 1'000'000'000;
  std::vector<long> numbers;
  bool inside = false;
  for (const char c : release) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (digit && !inside) numbers.push_back(0);
    if (digit) numbers.back() = std::min(kLargest, numbers.back() * 10 + (c - '0'));
    inside = digit;
  }
  return numbers;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string annotation(const Json& object, const char* key, std::string otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::move(otherwise);
}

bool is_list_of_scalars(const Json& value) {
  return value.is_array() && std::none_of(value.begin(), value.end(), [](const Json& element) {
           return element.is_structured();
         });
}

void add_rows(const Json& value, const std::string& path, const std::string& source,
              std::vector<PresetRow>& rows) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (value.is_object() && value.contains("value")) {
    rows.push_back({path, text_of(value["value"]), annotation(value, "source", source),
                    annotation(value, "note", {})});
  } else if (value.is_object()) {
    const std::string own_source = annotation(value, "source", source);
    for (const auto& [key, member] : value.items()) {
      if (key != "source" && key != "note") add_rows(member, below(key), own_source, rows);
    }
  } else if (value.is_array() && !is_list_of_scalars(value)) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      add_rows(value[i], below(std::to_string(i)), source, rows);
    }
  } else {
    rows.push_back({path, text_of(value), source, {}});
  }
}

}  // namespace

std::vector<std::string> preset_folders(std::vector<std::string> own, std::string_view installed,
                                        std::string_view source_tree) {
  std::vector<std::string> folders = std::move(own);
  if (const char* environment = std::getenv("LOCKSTEP_PRESETS")) {
    for (std::string& folder : split_folders(environment)) folders.push_back(std::move(folder));
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = program.parent_path() / installed;
  if (!error && fs::is_directory(beside, error)) {
    folders.push_back(beside.lexically_normal().string());
  } else {
    for (std::string& folder : split_folders(source_tree)) {
      folders.push_back(std::move(folder));
    }
  }
  return folders;
}

std::string find_preset_file(const std::vector<std::string>& folders, std::string_view kind,
                             std::string_view name) {
  if (!is_plain_name(name)) return {};
  for (const std::string& folder : folders) {
    const fs::path file = fs::path(folder) / kind / (std::string(name) + std::string(kExtension));
    std::error_code error;
    if (fs::exists(file, error)) return file.string();
  }
  return {};
}

std::vector<std::string> preset_names(const std::vector<std::string>& folders,
                                      std::string_view kind) {
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (fs::directory_iterator entry(fs::path(folder) / kind, error), end; !error && entry != end;
         entry.increment(error)) {
      const fs::path& file = entry->path();
      if (file.extension() == kExtension && is_plain_name(file.stem().string())) {
        names.push_back(file.stem().string());
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string as_preset_name(std::string_view written) {
  std::string name(written);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-' || c == ' ' || c == '.') c = '_';
  }
  return name;
}

std::vector<PresetRow> preset_rows(const JsonCursor& root) {
  std::vector<PresetRow> rows;
  add_rows(root.json(), "", "", rows);
  return rows;
}

std::string nearest_release(std::string_view wanted, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), wanted) != known.end()) return std::string(wanted);
  const std::vector<long> target = release_numbers(wanted);
  const std::string* before = nullptr;
  const std::string* earliest = nullptr;
  const auto earlier = [](const std::string& a, const std::string& b) {
    return release_numbers(a) < release_numbers(b);
  };
  for (const std::string& release : known) {
    if (earliest == nullptr || earlier(release, *earliest)) earliest = &release;
    std::vector<long> numbers = release_numbers(release);
    numbers.resize(std::min(numbers.size(), target.size()));
    const bool candidate = numbers <= target;
    if (candidate && (before == nullptr || earlier(*before, release))) before = &release;
  }
  return before != nullptr ? *before : *earliest;
}

}  // namespace lockstep
