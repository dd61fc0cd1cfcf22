#include "sim/scenario/preset_files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/json_text.hpp"
#include "models/base/write_json.hpp"

/// Where the presets of an installed package lie. Programs that link it through its CMake package
/// define this (tools/package_presets.cpp); in others it is null.
extern "C" __attribute__((weak)) const char* lockstep_package_presets();

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kExtension = ".json";

/// What the field calls a preset beside its own name.
struct OtherName {
  std::string_view kind, name, preset;
};
constexpr std::array kOtherNames{
    // Sockets are what NCCL uses on a network without a plugin, whatever the network's name.
    OtherName{"transports", "tcp", "ethernet"},
    OtherName{"transports", "sockets", "ethernet"},
    OtherName{"transports", "ib", "infiniband"},
    OtherName{"transports", "opa", "omni_path"},
};

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
         std::ranges::all_of(name, [](char c) {
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
  return value.is_string() ? value.get<std::string>() : write_json(value);
}

std::string annotation(const Json& object, const char* key, std::string otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::move(otherwise);
}

bool is_list_of_scalars(const Json& value) {
  return value.is_array() &&
         std::ranges::none_of(value, [](const Json& element) { return element.is_structured(); });
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

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

/// Folder of the program.
fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

/// Folder of the shared object that holds this function; empty where the program does and was found
/// on the PATH, of which this says the bare name.
fs::path object_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&object_folder), &info) == 0) return {};
  if (std::string_view(info.dli_fname).find('/') == std::string_view::npos) return {};
  std::error_code error;
  return fs::canonical(info.dli_fname, error).parent_path();
}

std::vector<std::string> shipped_folders(const ShippedPresets& ships) {
  // The object first: an interpreter that loads it may have the presets of another version beside
  // it.
  for (const fs::path& folder : {object_folder(), program_folder()}) {
    const fs::path beside = (folder / ships.beside_program).lexically_normal();
    if (!folder.empty() && is_folder(beside)) return {beside.string()};
  }
  if (lockstep_package_presets != nullptr && is_folder(lockstep_package_presets())) {
    return {lockstep_package_presets()};
  }
  std::vector<std::string> source = split_folders(ships.source_tree);
  if (std::ranges::any_of(source, [](const std::string& f) { return is_folder(f); })) return source;
  if (is_folder(ships.installed)) return {std::string(ships.installed)};
  source.emplace_back(ships.installed);
  return source;
}

}  // namespace

std::vector<std::string> preset_folders(std::vector<std::string> own, const ShippedPresets& ships) {
  std::vector<std::string> folders = std::move(own);
  for (const std::string& folder : folders) {
    if (is_folder(folder)) continue;
    throw InputError({folder, "", "no such folder", "a folder of presets, KIND/NAME.json", ""});
  }
  if (const char* environment = std::getenv("LOCKSTEP_PRESETS")) {
    for (std::string& folder : split_folders(environment)) folders.push_back(std::move(folder));
  }
  for (std::string& folder : shipped_folders(ships)) folders.push_back(std::move(folder));
  return folders;
}

InputError no_presets(std::string_view kind, const std::vector<std::string>& folders) {
  std::vector<std::string> searched;
  searched.reserve(folders.size());
  for (const std::string& folder : folders) {
    searched.push_back(folder + (is_folder(folder) ? "" : " (no such folder)"));
  }
  return InputError({"presets of " + std::string(kind), "", "none in " + listed(searched),
                     "at least one; --presets DIR or the environment variable LOCKSTEP_PRESETS "
                     "names their folder",
                     ""});
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

std::string canonical_preset(const std::vector<std::string>& folders, std::string_view kind,
                             std::string_view name) {
  if (!find_preset_file(folders, kind, name).empty()) return std::string(name);
  std::string plain = as_preset_name(name);
  const auto* const other = std::ranges::find_if(
      kOtherNames, [&](const OtherName& each) { return each.kind == kind && each.name == plain; });
  if (other != kOtherNames.end()) plain = other->preset;
  return find_preset_file(folders, kind, plain).empty() ? std::string() : plain;
}

std::vector<std::string> other_preset_names(std::string_view kind, std::string_view name) {
  std::vector<std::string> names;
  for (const OtherName& other : kOtherNames) {
    if (other.kind == kind && other.preset == name) names.emplace_back(other.name);
  }
  return names;
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
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
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
  if (std::ranges::find(known, wanted) != known.end()) return std::string(wanted);
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
