#include "sim/launch/tree_text.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <toml++/toml.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_text.hpp"
#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "models/base/yaml_documents.hpp"

namespace lockstep {
namespace {

constexpr int kDeepestTree = 64;
constexpr std::size_t kMostSettings = 200'000;

[[noreturn]] void refuse_tree(const std::string& file, const std::string& found,
                              const std::string& allowed) {
  throw InputError(
      {.file = file, .pointer = {}, .found = found, .allowed = allowed, .nearest = {}});
}

/// Collects settings, within bounds.
class Collected {
 public:
  explicit Collected(const std::string& file) : file_(file) {}

  void add(const std::string& key, std::vector<std::string> values) {
    values_ += values.size() + 1;
    if (values_ > kMostSettings) {
      refuse_tree(file_, "more than 200,000 values", "the settings of a training");
    }
    if (key.size() > 4096) refuse_tree(file_, "a key of more than 4,096 letters", "shorter ones");
    out_.push_back({key, std::move(values), file_});
  }
  void check_depth(int depth) const {
    if (depth <= kDeepestTree) return;
    refuse_tree(file_,
                fmt::format("more than {} levels, or a value that holds itself", kDeepestTree),
                fmt::format("at most {} levels", kDeepestTree));
  }
  std::vector<Setting> take() { return std::move(out_); }

 private:
  const std::string& file_;
  std::size_t values_ = 0;
  std::vector<Setting> out_;
};

std::string below(const std::string& key, const std::string& name) {
  return key.empty() ? name : key + "." + name;
}

bool all_scalars(const YAML::Node& list) {
  for (const YAML::Node& one : list) {
    if (!one.IsScalar() && !one.IsNull()) return false;
  }
  return true;
}

std::string scalar(const YAML::Node& node) { return node.IsNull() ? "null" : node.Scalar(); }

void walk_yaml(const YAML::Node& node, const std::string& key, int depth, Collected& out) {
  out.check_depth(depth);
  if (node.IsMap()) {
    if (node.size() == 0 && !key.empty()) out.add(key, {"null"});
    for (const auto& member : node) {
      if (!member.first.IsScalar()) continue;
      const std::string& name = member.first.Scalar();
      walk_yaml(member.second, name == "<<" ? key : below(key, name), depth + 1, out);
    }
  } else if (node.IsSequence()) {
    if (all_scalars(node)) {
      std::vector<std::string> values;
      values.reserve(node.size());
      for (const YAML::Node& one : node) values.push_back(scalar(one));
      out.add(key, std::move(values));
      return;
    }
    std::size_t index = 0;
    for (const YAML::Node& one : node) {
      walk_yaml(one, below(key, std::to_string(index++)), depth + 1, out);
    }
  } else {
    out.add(key, {node.IsDefined() ? scalar(node) : "null"});
  }
}

/// The end of the string that begins at `at`; a string of three quotes may have several lines.
std::size_t behind_toml_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.substr(at).starts_with(three);
  std::size_t end = at + (is_long ? 3 : 1);
  while (end < text.size()) {
    if (text[end] == '\\' && quote == '"') {
      end += 2;
    } else if (is_long ? text.substr(end).starts_with(three) : text[end] == quote) {
      return end + (is_long ? 3 : 1);
    } else if (!is_long && text[end] == '\n') {
      return end;
    } else {
      ++end;
    }
  }
  return text.size();
}

/// toml++ makes a table of each part of a key, one in another.
void check_parts(const std::string& file, int line, std::ptrdiff_t parts) {
  constexpr std::ptrdiff_t kMostParts = 2000;
  if (parts <= kMostParts) return;
  refuse_tree(file, fmt::format("at line {}: more than {} points", line, kMostParts), "TOML");
}

/// Throws InputError for a table whose name begins with no letter of one: toml++ 3.3 takes it for
/// granted that each does.
void check_table_names(const std::string& file, std::string_view text) {
  int depth = 0, line = 1, parts = 0;
  bool begins = true;
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '[' && begins && depth == 0) {
      std::size_t name = at + (text.substr(at).starts_with("[[") ? 2 : 1);
      while (name < text.size() && (text[name] == ' ' || text[name] == '\t')) ++name;
      const bool good = name < text.size() &&
                        (std::isalnum(static_cast<unsigned char>(text[name])) != 0 ||
                         std::string_view("_-\"'").find(text[name]) != std::string_view::npos);
      const std::size_t end = std::min(text.find('\n', at), text.size());
      check_parts(file, line, std::ranges::count(text.substr(at, end - at), '.'));
      if (!good) refuse_tree(file, fmt::format("at line {}: a table without a name", line), "TOML");
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      const std::size_t end = behind_toml_string(text, at);
      line += static_cast<int>(
          std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                     text.begin() + static_cast<std::ptrdiff_t>(std::min(end, text.size())), '\n'));
      at = end;
      begins = false;
    } else {
      if (c == '[' || c == '{') ++depth;
      if ((c == ']' || c == '}') && depth > 0) --depth;
      if (c == '.') check_parts(file, line, ++parts);
      if (c == '\n') {
        ++line;
        parts = 0;
      }
      begins = c == '\n' || (begins && (c == ' ' || c == '\t' || c == '\r'));
      ++at;
    }
  }
}

std::string scalar(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  return "a date";
}

void walk_toml(const toml::node& node, const std::string& key, int depth, Collected& out) {
  out.check_depth(depth);
  if (const toml::table* table = node.as_table()) {
    for (const auto& [name, value] : *table) {
      walk_toml(value, below(key, std::string(name.str())), depth + 1, out);
    }
  } else if (const toml::array* list = node.as_array()) {
    std::vector<std::string> values;
    std::size_t index = 0;
    for (const toml::node& one : *list) {
      if (one.is_table() || one.is_array()) {
        walk_toml(one, below(key, std::to_string(index)), depth + 1, out);
      } else {
        values.push_back(scalar(one));
      }
      ++index;
    }
    if (!values.empty() || list->empty()) out.add(key, std::move(values));
  } else {
    out.add(key, {scalar(node)});
  }
}

std::string scalar(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return number_text(value.get<double>());
  return write_json(value);
}

void walk_json(const nlohmann::ordered_json& value, const std::string& key, Collected& out) {
  if (value.is_object()) {
    if (value.empty() && !key.empty()) out.add(key, {"null"});
    for (const auto& [name, member] : value.items()) walk_json(member, below(key, name), out);
    return;
  }
  if (!value.is_array()) return out.add(key, {scalar(value)});
  std::vector<std::string> values;
  std::size_t index = 0;
  for (const auto& one : value) {
    if (one.is_structured()) {
      walk_json(one, below(key, std::to_string(index)), out);
    } else {
      values.push_back(scalar(one));
    }
    ++index;
  }
  if (!values.empty() || value.empty()) out.add(key, std::move(values));
}

}  // namespace

std::vector<Setting> read_yaml_settings(const std::string& file, std::string_view text) {
  Collected out(file);
  try {
    for (const YAML::Node& document : yaml_documents(text)) {
      if (document.IsMap()) walk_yaml(document, "", 0, out);
    }
  } catch (const YAML::Exception& error) {
    const bool placed = error.mark.line >= 0;
    refuse_tree(file,
                placed ? fmt::format("at line {}, column {}: {}", error.mark.line + 1,
                                     error.mark.column + 1, in_quotes(error.msg))
                       : in_quotes(error.msg),
                "YAML");
  }
  std::vector<Setting> settings = out.take();
  fill_interpolations(settings);
  return settings;
}

std::vector<Setting> read_toml_settings(const std::string& file, std::string_view text) {
  Collected out(file);
  check_table_names(file, text);
  try {
    const toml::table table = toml::parse(text);
    walk_toml(table, "", 0, out);
  } catch (const toml::parse_error& error) {
    refuse_tree(file,
                fmt::format("at line {}, column {}: {}", error.source().begin.line,
                            error.source().begin.column, in_quotes(error.description())),
                "TOML");
  }
  return out.take();
}

std::vector<Setting> read_json_settings(const std::string& file, std::string_view text) {
  Collected out(file);
  walk_json(parse_json_text(file, text), "", out);
  return out.take();
}

}  // namespace lockstep
