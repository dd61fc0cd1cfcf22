#include "tools/author/commented_json.hpp"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kStep = 2;           // spaces of a level
constexpr std::size_t kLine = 72;  // what is shorter stands on one line

class CommentWriter {
 public:
  explicit CommentWriter(std::span<const JsonComment> comments) : comments_(comments) {}

  void value(const Json& json, const std::string& pointer, int level) {
    if (json.is_object() && opens(json, pointer)) return object(json, pointer, level);
    if (json.is_array() && opens(json, pointer)) return array(json, pointer, level);
    out += one_line(json);
  }
  std::string out;

 private:
  /// Whether it takes lines of its own: something in it has a comment, or it is long.
  [[nodiscard]] bool opens(const Json& json, const std::string& pointer) const {
    const std::string within = pointer + "/";
    return std::ranges::any_of(
               comments_,
               [&](const JsonComment& each) { return each.pointer.starts_with(within); }) ||
           one_line(json).size() > kLine;
  }

  /// {"a": 1, "b": [2, 3]}
  static std::string one_line(const Json& json) {
    std::string text;
    if (json.is_object()) {
      for (const auto& [key, each] : json.items()) {
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", json_string(key), one_line(each));
      }
      return "{" + text + "}";
    }
    if (!json.is_array()) return write_json(json);
    for (const Json& each : json) text += (text.empty() ? "" : ", ") + one_line(each);
    return "[" + text + "]";
  }

  void indent(int level) { out += std::string(static_cast<std::size_t>(level * kStep), ' '); }

  void comment(const std::string& pointer, int level) {
    const auto said = std::ranges::find(comments_, pointer, &JsonComment::pointer);
    if (said == comments_.end()) return;
    std::string lines =
        wrap(said->text, kTextColumns - level * kStep - 3, 0);  // 3: what opens a comment
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', at), lines.size());
      indent(level);
      out += "// " + lines.substr(at, end - at) + "\n";
      at = end + 1;
    }
  }

  void object(const Json& json, const std::string& pointer, int level) {
    out += "{\n";
    std::size_t left = json.size();
    for (const auto& [key, each] : json.items()) {
      const std::string place = fmt::format("{}/{}", pointer, key);
      comment(place, level + 1);
      indent(level + 1);
      out += json_string(key) + ": ";
      value(each, place, level + 1);
      out += --left > 0 ? ",\n" : "\n";
    }
    indent(level);
    out += "}";
  }

  void array(const Json& json, const std::string& pointer, int level) {
    out += "[\n";
    std::size_t left = json.size();
    for (const Json& each : json) {
      indent(level + 1);
      value(each, pointer + "/*", level + 1);
      out += --left > 0 ? ",\n" : "\n";
    }
    indent(level);
    out += "]";
  }

  std::span<const JsonComment> comments_;
};

}  // namespace

std::string commented_json(const Json& document, std::span<const JsonComment> comments) {
  CommentWriter writer(comments);
  writer.value(document, "", 0);
  return writer.out + "\n";
}

}  // namespace lockstep
