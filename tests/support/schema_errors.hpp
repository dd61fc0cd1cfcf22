/// Holds JSON against a JSON Schema, as far as ours use it.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace lockstep::test {

/// Where `value` is not as `schema` says, a line each: type, const, properties, required,
/// additionalProperties, items, oneOf and $ref within the document.
std::vector<std::string> schema_errors(const nlohmann::ordered_json& schema,
                                       const nlohmann::ordered_json& value);

}  // namespace lockstep::test
