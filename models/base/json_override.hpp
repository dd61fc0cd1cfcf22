/// Changes to a JSON document that come from the command line: `--set cluster.nodes=384`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"

namespace lockstep {

/// Applies "path=value": a dotted path ("cluster.nodes") or a JSON pointer ("/cluster/nodes"); the
/// value is JSON, or else a string. Objects that are missing on the way are made; a string on the
/// way is taken as the name of a preset, so that "cluster.fabric.levels=3" refines a fabric given
/// by name. Throws InputError that names the option.
JsonOverride apply_override(nlohmann::ordered_json& root, std::string_view set);

/// The JSON pointer of a path as --set takes it: "cluster.nodes" is "/cluster/nodes"; a pointer
/// stays. Empty for a path that has an empty part.
std::string pointer_of_path(std::string_view path);

/// Puts `value` at `path` as apply_override() does, and returns the pointer of the place. Errors
/// are those of the file or option `origin`.
std::string put_value(nlohmann::ordered_json& root, const std::string& origin,
                      std::string_view path, nlohmann::ordered_json value);

/// Whether a pointer is `place` or leads to something in it.
bool is_inside(std::string_view pointer, std::string_view place);

/// The last change of the value at `pointer`, or of something around it; null if there is none.
const JsonOverride* last_override(std::span<const JsonOverride> overrides,
                                  std::string_view pointer);

}  // namespace lockstep
