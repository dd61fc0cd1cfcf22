#include "sim/search/sweep/digest.hpp"

#include <array>
#include <filesystem>
#include <openssl/evp.h>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string sha256(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("SHA-256 could not be computed");
  }
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

std::string presets_digest(const PresetStore& presets) {
  std::string text;
  for (const std::string_view kind : PresetStore::kinds()) {
    for (const std::string& name : presets.names(kind)) {
      text += std::string(kind) + "/" + name + " " +
              sha256(read_text_file(presets.path(kind, name))) + "\n";
    }
  }
  return sha256(text);
}

PointHasher::PointHasher(const std::string& made_by, const std::string& presets, std::string folder)
    : prefix_(made_by + "\n" + presets + "\n"), folder_(std::move(folder)) {}

std::string PointHasher::hash(const Json& scenario) {
  nlohmann::json sorted(scenario);
  for (const char* words : {"about", "$schema", "expect"}) sorted.erase(words);
  std::string text = prefix_ + write_json(sorted);
  add_files(scenario, text);
  return sha256(text);
}

std::string PointHasher::file_digest(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(folder_) / name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = files_.try_emplace(name);
  if (is_new) place->second = sha256(read_text_file(path.string()));
  return place->second;
}

void PointHasher::add_files(const Json& node, std::string& text) {
  if (node.is_string()) {
    const std::string digest = file_digest(node.get_ref<const std::string&>());
    if (!digest.empty()) text += "\n" + digest;
  }
  if (!node.is_structured()) return;
  for (const Json& child : node) add_files(child, text);
}

}  // namespace lockstep
