#include "sim/scenario/preset_changes.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Of a stack: what no step time hangs on, and what "offload" says, whose runs are of unknown
/// software anyway.
constexpr std::array<std::string_view, 2> kUntimedOfStack{"memory", "offload"};
/// Of a GPU, the same.
constexpr std::array<std::string_view, 6> kUntimedOfGpu{"about", "hbm_capacity", "power_idle",
                                                        "power", "speed_spread", "kernel_jitter"};

/// Numbers that rows of published runs have beside the preset's own.
struct RowValues {
  std::string_view path;
  Interval values;
};
/// What their readers set by what a row says: CUDA graphs of all of a layer or of parts of it,
/// collectives that nothing hides, the format of gradients.
constexpr std::array kRowValues{
    RowValues{"launch_interval", {0, 0}}, RowValues{"expert_host_layer", {0, 1}},
    RowValues{"expert_host_expert", {0, 1}}, RowValues{"communication.tensor_exposed", {1, 1}},
    RowValues{"communication.gradient_bytes", {2, 4}}};

bool rows_have(std::string_view path, double value) {
  return std::ranges::any_of(kRowValues, [&](const RowValues& row) {
    return row.path == path && value >= row.values.low && value <= row.values.high;
  });
}

/// Adds the paths of the numbers below `after` that `before` has not, or has with another value.
void add_changed_numbers(const Json& before, const Json& after, const std::string& prefix,
                         std::vector<std::string>& out) {
  for (const auto& [key, value] : after.items()) {
    const std::string path = prefix + key;
    const auto known = before.find(key);
    if (value.is_object()) {
      add_changed_numbers(known == before.end() ? Json::object() : *known, value, path + ".", out);
    } else if (value.is_number() && (known == before.end() || *known != value) &&
               !rows_have(path, value.get<double>())) {
      out.push_back(path);
    }
  }
}

}  // namespace

std::vector<std::string> changed_constants(StackSpec before, StackSpec after) {
  Json old, now;
  declare_stack(DeclaredMembers::writing(old), before);
  declare_stack(DeclaredMembers::writing(now), after);
  for (const std::string_view key : kUntimedOfStack) now.erase(std::string(key));
  std::vector<std::string> out;
  add_changed_numbers(old, now, {}, out);
  return out;
}

std::vector<std::string> changed_constants(GpuSpec before, GpuSpec after,
                                           const PresetStore& presets) {
  Json old, now;
  declare_gpu(DeclaredMembers::writing(old), presets, before);
  declare_gpu(DeclaredMembers::writing(now), presets, after);
  for (const std::string_view key : kUntimedOfGpu) now.erase(std::string(key));
  std::vector<std::string> out;
  for (const auto& [key, value] : now.items()) {
    const auto known = old.find(key);
    if (known == old.end() || *known != value) out.push_back(key);
  }
  return out;
}

}  // namespace lockstep
