#include "sim/measured/power_rows.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}
std::optional<double> number_of(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}
int count_of(const Json& row, const char* key, int otherwise) {
  const double value = number_of(row, key).value_or(otherwise);
  return value >= 1 && value <= 1e6 ? static_cast<int>(value) : otherwise;
}

/// A number, or the middle of a pair of them.
std::optional<double> middle_of(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end()) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  if (!found->is_array() || found->size() != 2 || !found->at(0).is_number() ||
      !found->at(1).is_number()) {
    return std::nullopt;
  }
  return (found->at(0).get<double>() + found->at(1).get<double>()) / 2;
}

std::optional<double> mean_of(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_object()) return std::nullopt;
  return number_of(*found, "mean");
}

std::vector<double> profile_of(const Json& row) {
  const auto profile = row.find("profile");
  if (profile == row.end() || !profile->is_object()) return {};
  const auto bins = profile->find("node_w_by_step_phase");
  if (bins == profile->end() || !bins->is_array()) return {};
  std::vector<double> out;
  for (const Json& bin : *bins) {
    if (!bin.is_number()) return {};
    out.push_back(bin.get<double>());
  }
  return out;
}

PowerRow row_of(const Json& json) {
  PowerRow row{.id = text_of(json, "id"),
               .topic = text_of(json, "topic"),
               .gpu = text_of(json, "gpu"),
               .workload = text_of(json, "workload"),
               .cooling = text_of(json, "cooling"),
               .dc = text_of(json, "where").starts_with("DC"),
               .nodes = count_of(json, "nodes", 1),
               .gpus_per_node = count_of(json, "gpus_per_node", 8),
               .node_mean_w = mean_of(json, "node_w"),
               .total_mean_w = mean_of(json, "total_w"),
               .node_idle_w = {},
               .gpu_idle_w = middle_of(json, "idle_w"),
               .max_node_w = number_of(json, "max_node_w"),
               .joules_per_token = number_of(json, "joules_per_token"),
               .step_profile_w = profile_of(json)};
  return row;
}

/// An idle node has a range at the input and one behind the supply: two rows.
void add_idle_rows(const Json& json, std::vector<PowerRow>& rows) {
  for (const auto& [key, dc] : {std::pair{"idle_node_w_ac", false}, {"idle_node_w_dc", true}}) {
    const std::optional<double> watts = middle_of(json, key);
    if (!watts) continue;
    PowerRow row = row_of(json);
    row.node_idle_w = watts;
    row.dc = dc;
    rows.push_back(std::move(row));
  }
}

}  // namespace

PowerFile parse_power_rows(const std::string& file, std::string_view text) {
  const JsonCursor root = JsonCursor::parse(file, text);
  PowerFile out;
  const JsonCursor records = root.at("records");
  constexpr std::size_t kMostRows = 100'000;
  for (const JsonCursor& record : records.elements(kMostRows)) {
    if (!record.is_object()) record.fail("an object");
    const Json& json = record.json();
    if (json.contains("idle_node_w_ac") || json.contains("idle_node_w_dc")) {
      add_idle_rows(json, out.rows);
    } else {
      out.rows.push_back(row_of(json));
    }
  }
  if (const auto workloads = root.find("workloads")) {
    for (const std::string& name : workloads->keys()) {
      out.workloads[name] = write_json(workloads->at(name).json());
    }
  }
  return out;
}

}  // namespace lockstep
