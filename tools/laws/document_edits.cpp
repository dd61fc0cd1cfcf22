#include "tools/laws/document_edits.hpp"

#include <nlohmann/json.hpp>

namespace lockstep {

int halve_prices(nlohmann::ordered_json& value) {
  int count = 0;
  if (value.is_array()) {
    for (nlohmann::ordered_json& element : value) count += halve_prices(element);
  } else if (value.is_object()) {
    for (auto& [key, member] : value.items()) {
      const bool price = key.starts_with("usd_per_") && member.is_number();
      if (price) member = 0.5 * member.get<double>();
      count += price ? 1 : halve_prices(member);
    }
  }
  return count;
}

void merge_changes(nlohmann::ordered_json& into, const nlohmann::ordered_json& from) {
  for (const auto& [key, value] : from.items()) {
    if (value.is_object() && into.contains(key) && into[key].is_object()) {
      merge_changes(into[key], value);
    } else {
      into[key] = value;
    }
  }
}

}  // namespace lockstep
