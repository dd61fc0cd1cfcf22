/// YAML, TOML and JSON as one flat list of keys: "model.num_layers".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/setting.hpp"

namespace lockstep {

// Each throws InputError, with line and column, for text that is none; a text with cycles, more
// than 64 levels or more than 200,000 values is refused. Lists of plain values are one setting;
// elements of other lists have their place in the key, "data.0.path".
std::vector<Setting> read_yaml_settings(const std::string& file, std::string_view text);
std::vector<Setting> read_toml_settings(const std::string& file, std::string_view text);
std::vector<Setting> read_json_settings(const std::string& file, std::string_view text);

/// Fills in what refers to other keys, as OmegaConf does: "${model.hidden_size}", "${.name}",
/// "${multiply:4, ${.hidden_size}}", "${oc.env:NAME,default}". What does not resolve stays.
void fill_interpolations(std::vector<Setting>& settings);

}  // namespace lockstep
