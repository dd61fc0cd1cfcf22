#include "models/base/json_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
         c == '+';
}

/// The word, or the single character, that contains the byte: what a person would point at.
std::string token_at(std::string_view text, std::size_t offset) {
  if (offset >= text.size()) return "the end of the text";
  std::size_t first = offset;
  std::size_t last = offset + 1;
  if (text[offset] == '"' && offset > 0) {
    // The closing quote of a string that should not be there.
    const std::size_t opening = text.rfind('"', offset - 1);
    if (opening != std::string_view::npos) {
      return in_quotes(text.substr(opening + 1, offset - opening - 1));
    }
  }
  if (is_word(text[offset])) {
    while (first > 0 && is_word(text[first - 1])) --first;
    while (last < text.size() && is_word(text[last])) ++last;
  }
  return in_quotes(text.substr(first, last - first));
}

/// Whether the text begins as YAML does and JSON cannot: "---", a list's "- ", or "key:".
bool begins_as_yaml(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') {
      const std::string_view words = line.substr(first);
      if (words.starts_with("---") || words.starts_with("- ")) return true;
      const std::size_t colon = words.find(':');
      const bool ends =
          colon != std::string_view::npos &&
          (colon + 1 == words.size() || words[colon + 1] == ' ' || words[colon + 1] == '\r');
      return ends && colon > 0 && std::ranges::all_of(words.substr(0, colon), is_word);
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return false;
}

/// What JSON allows where the parser stopped, from the parser's own words.
std::string allowed_there(std::string_view reason) {
  const auto says = [&](std::string_view words) {
    return reason.find(words) != std::string_view::npos;
  };
  if (says("ill-formed UTF-8")) return "UTF-8 text";
  if (says("control character")) return "text in which control characters are escaped (\\n, \\t)";
  if (says("forbidden character after backslash") || says("'\\u'")) return "a valid \\ escape";
  if (says("missing closing quote")) return "a closing quote";
  if (says("object key")) return "a key in double quotes";
  if (says("object separator")) return "':' after the key";
  if (says("invalid number")) return "a JSON number";
  if (says("parsing object")) return "',' or '}'";
  if (says("parsing array")) return "',' or ']'";
  if (says("; expected end of input")) return "the end of the text after one value";
  return "a JSON value (an object, array, string, number, true, false or null)";
}

/// Receives the parser's events and builds the tree.
class Builder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  Builder(const std::string& file, std::string_view text) : file_(file), text_(text) {}
  Json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add(value); }
  bool number_unsigned(number_unsigned_t value) { return add(value); }
  bool number_float(number_float_t value, const string_t& /*as_written*/) { return add(value); }
  bool string(string_t& value) { return add(std::move(value)); }
  bool binary(binary_t& value) { return add(std::move(value)); }
  bool start_object(std::size_t /*size*/) { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    Level& level = levels_.back();
    level.key = std::move(name);
    if (!level.keys.insert(level.key).second) {
      fail("the key " + in_quotes(level.key) + " a second time", "each key once");
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string& last, const Json::exception& error) {
    constexpr int kNumberOverflow = 406;
    if (levels_.empty() && begins_as_yaml(text_)) fail("YAML", "JSON");
    if (error.id == kNumberOverflow) fail(last, "a number of at most 1.79e308");
    // `position` counts the bytes that were read, the bad one included.
    std::size_t offset = position == 0 ? 0 : position - 1;
    // "tru}": the literal is wrong, and not the bracket that shows it.
    const std::string_view reason = error.what();
    const bool in_literal = reason.find("invalid literal") != std::string_view::npos;
    if (in_literal && offset > 0 && offset < text_.size() && !is_word(text_[offset]) &&
        is_word(text_[offset - 1])) {
      --offset;
    }
    fail(token_at(text_, offset) + " at " + place_in_text(text_, offset), allowed_there(reason));
  }

 private:
  struct Level {
    Json* node;
    std::string key;             ///< of the member that is being read
    std::set<std::string> keys;  ///< of an object; looking in the node itself takes linear time
  };

  Json* insert(Json&& value) {
    if (levels_.empty()) return &(root_ = std::move(value));
    Json& parent = *levels_.back().node;
    if (parent.is_array()) {
      auto& array = parent.get_ref<Json::array_t&>();
      return &array.emplace_back(std::move(value));
    }
    // Straight into the vector below: ordered_map's own insertion searches for the key each time.
    auto& members = static_cast<Json::object_t::Container&>(parent.get_ref<Json::object_t&>());
    return &members.emplace_back(levels_.back().key, std::move(value)).second;
  }

  bool add(Json value) {
    insert(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (levels_.size() == kJsonDepth) {
      fail("more than " + std::to_string(kJsonDepth) + " levels",
           "at most " + std::to_string(kJsonDepth) + " nested objects and arrays");
    }
    levels_.push_back({insert(std::move(value)), {}, {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  [[noreturn]] void fail(std::string found, std::string allowed) const {
    std::string pointer;
    for (const Level& level : levels_) {
      if (level.node->is_array()) {
        // An array that is being read inside holds its open element already.
        const bool innermost = &level == &levels_.back();
        pointer += "/" + std::to_string(level.node->size() - (innermost ? 0 : 1));
      } else if (!level.key.empty()) {
        pointer += "/" + pointer_part(level.key);
      }
    }
    throw InputError({file_, std::move(pointer), std::move(found), std::move(allowed), ""});
  }

  const std::string& file_;
  std::string_view text_;
  Json root_;
  std::vector<Level> levels_;
};

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

}  // namespace

std::string place_in_text(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " +
         std::to_string(before.size() - line_start + 1);
}

void require_json_text(const std::string& file, std::string_view text, std::string allowed) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  if (!std::ranges::all_of(without_mark(text), is_blank)) return;
  throw InputError({file, "", "an empty text", std::move(allowed), ""});
}

Json parse_json_text(const std::string& file, std::string_view text) {
  text = without_mark(text);
  require_json_text(file, text, "a JSON object");
  Builder builder(file, text);
  constexpr bool kWhole = true, kComments = true;
  Json::sax_parse(text, &builder, Json::input_format_t::json, kWhole, kComments);
  return builder.take();
}

std::string quote_non_finite(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kWords{"Infinity", "-Infinity", "NaN", "inf",
                                                          "-inf",     "nan",       "-nan"};
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 1;
    if (in_string && text[i] == '\\') {
      length = std::min<std::size_t>(2, text.size() - i);
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && is_word(text[i])) {
      while (i + length < text.size() && is_word(text[i + length])) ++length;
    }
    const std::string_view part = text.substr(i, length);
    const bool quoted = !in_string && std::ranges::find(kWords, part) != kWords.end();
    if (quoted) out += '"';
    out += part;
    if (quoted) out += '"';
    i += length;
  }
  return out;
}

std::string pointer_part(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace lockstep
