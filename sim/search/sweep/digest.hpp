/// SHA-256 of texts and of everything that an answer depends on.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// 64 hexadecimal digits, as sha256sum prints them.
std::string sha256(std::string_view bytes);

/// Of all presets that the store would find: kinds, names and bytes.
std::string presets_digest(const PresetStore& presets);

/// Names answers by what they were made of: program, presets, scenario and the files that it names.
class PointHasher {
 public:
  /// `made_by`: the program's version and what else changes answers. `folder` is where relative
  /// paths of the scenario start.
  PointHasher(const std::string& made_by, const std::string& presets, std::string folder);

  /// The same for scenarios that differ in the order of their keys, or in words about them. Any
  /// string of the scenario that is the path of a file stands for its bytes too. From any thread.
  [[nodiscard]] std::string hash(const nlohmann::ordered_json& scenario);

 private:
  /// Empty where there is no such file.
  std::string file_digest(const std::string& name);
  void add_files(const nlohmann::ordered_json& node, std::string& text);

  std::string prefix_;
  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::string> files_;  ///< digests by name
};

}  // namespace lockstep
