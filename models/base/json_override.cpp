#include "models/base/json_override.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_text.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Undoes the escapes of a JSON pointer.
std::string unescaped(std::string_view part) {
  std::string out;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const bool escape = part[i] == '~' && i + 1 < part.size();
    if (escape && part[i + 1] == '0') {
      out += '~';
      ++i;
    } else if (escape && part[i + 1] == '1') {
      out += '/';
      ++i;
    } else {
      out += part[i];
    }
  }
  return out;
}

std::vector<std::string> split_path(std::string_view path) {
  const bool is_pointer = path.starts_with('/');
  if (is_pointer) path.remove_prefix(1);
  const char separator = is_pointer ? '/' : '.';
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = path.find(separator);
    const std::string_view part = path.substr(0, end);
    parts.push_back(is_pointer ? unescaped(part) : std::string(part));
    if (end == std::string_view::npos) return parts;
    path.remove_prefix(end + 1);
  }
}

Json parse_value(const std::string& option, std::string_view text) {
  try {
    return parse_json_text(option, text);
  } catch (const InputError&) {
    // What begins like an object, an array or a string in quotes is meant to be one.
    if (text.starts_with('{') || text.starts_with('[') || text.starts_with('"')) throw;
    return std::string(text);  // --set model=gpt3_175b needs no quotes
  }
}

/// The member or element that a step of the path leads to.
Json& step_into(Json& node, const std::string& part, const InputProblem& where) {
  if (node.is_null()) node = Json::object();
  if (node.is_string()) node = Json{{"preset", node}};
  if (node.is_object()) return node[part];
  const auto refuse = [&](std::string found, std::string allowed) {
    InputProblem problem = where;
    problem.found = std::move(found);
    problem.allowed = std::move(allowed);
    throw InputError(std::move(problem));
  };
  if (!node.is_array())
    refuse(write_json(node), "an object or array, for " + in_quotes(part) + " to be in");
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error != std::errc{} || end != part.data() + part.size() || index >= node.size()) {
    refuse("an array of " + std::to_string(node.size()) + " elements",
           "an index below that instead of " + in_quotes(part));
  }
  return node[index];
}

/// The shortest beginning of the pointer that leads nowhere yet; the whole one where none does.
std::string first_missing(const Json& root, const std::string& pointer) {
  for (std::size_t end = pointer.find('/', 1); end < pointer.size();
       end = pointer.find('/', end + 1)) {
    std::string begin = pointer.substr(0, end);
    if (!root.contains(Json::json_pointer(begin))) return begin;
  }
  return pointer;
}

}  // namespace

std::string pointer_of_path(std::string_view path) {
  std::string pointer;
  for (const std::string& part : split_path(path)) {
    if (part.empty()) return {};
    pointer += "/" + pointer_part(part);
  }
  return pointer;
}

std::string put_value(Json& root, const std::string& origin, std::string_view path, Json value) {
  const std::vector<std::string> parts = split_path(path);
  if (parts.size() > kJsonDepth) {
    throw InputError({origin, "", "a path of " + std::to_string(parts.size()) + " parts",
                      "at most " + std::to_string(kJsonDepth), ""});
  }
  Json* node = &root;
  std::string pointer;
  for (const std::string& part : parts) {
    if (part.empty()) {
      throw InputError({origin, "", in_quotes(path), "a path without empty parts", ""});
    }
    node = &step_into(*node, part, {origin, pointer, "", "", ""});
    pointer += "/" + pointer_part(part);
  }
  *node = std::move(value);
  return pointer;
}

JsonOverride apply_override(Json& root, std::string_view set) {
  const std::string option = "--set " + std::string(set);
  const std::size_t equals = set.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw InputError({"--set", "", in_quotes(set), "path=value, such as cluster.nodes=384", ""});
  }
  const std::string_view value = set.substr(equals + 1);
  const std::string_view path = set.substr(0, equals);
  if (!path.starts_with('/') && path.find('/') != std::string_view::npos) {
    std::string with_dots(path);
    std::ranges::replace(with_dots, '/', '.');
    throw InputError({option, "", in_quotes(path),
                      "keys with dots between them, or a JSON pointer, which begins with / and "
                      "has ~1 for one within a key",
                      std::move(with_dots)});
  }
  std::string made = first_missing(root, pointer_of_path(path));
  std::string pointer = put_value(root, option, path, parse_value(option, value));
  return {std::move(pointer), option, std::string(value), std::move(made)};
}

bool is_inside(std::string_view pointer, std::string_view place) {
  return pointer.starts_with(place) &&
         (pointer.size() == place.size() || pointer[place.size()] == '/');
}

const JsonOverride* last_override(std::span<const JsonOverride> overrides,
                                  std::string_view pointer) {
  const JsonOverride* last = nullptr;
  for (const JsonOverride& candidate : overrides) {
    if (is_inside(pointer, candidate.pointer)) last = &candidate;
  }
  return last;
}

}  // namespace lockstep
