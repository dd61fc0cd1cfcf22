// References between keys, as OmegaConf writes them.
#include <algorithm>
#include <map>
#include <optional>

#include "models/base/trimmed.hpp"
#include "sim/launch/arithmetic.hpp"
#include "sim/launch/tree_text.hpp"

namespace lockstep {
namespace {

constexpr int kDeepestReference = 16;
constexpr std::size_t kLongestValue = 1 << 16;
constexpr int kMostReferences = 100'000;  // that are followed in one file

class References {
 public:
  explicit References(const std::vector<Setting>& settings) {
    for (const Setting& one : settings) {
      if (one.values.size() == 1) values_[one.key] = one.values[0];
    }
  }

  std::string filled(const std::string& key, std::string_view text, int depth) const {
    std::string out;
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t begin = text.find("${", at);
      if (begin == std::string_view::npos || depth > kDeepestReference) break;
      const std::size_t end = closing(text, begin + 2);
      if (end == std::string_view::npos) break;
      out += text.substr(at, begin - at);
      const std::string_view inside = text.substr(begin + 2, end - begin - 2);
      const std::optional<std::string> value = resolved(key, inside, depth + 1);
      out += value ? *value : std::string(text.substr(begin, end + 1 - begin));
      at = end + 1;
      if (out.size() > kLongestValue) break;
    }
    return out + std::string(text.substr(std::min(at, text.size())));
  }

 private:
  static std::size_t closing(std::string_view text, std::size_t at) {
    for (int level = 1; at < text.size(); ++at) {
      if (text[at] == '{') ++level;
      if (text[at] == '}' && --level == 0) return at;
    }
    return std::string_view::npos;
  }

  [[nodiscard]] std::optional<std::string> resolved(const std::string& key, std::string_view inside,
                                                    int depth) const {
    if (++followed_ > kMostReferences) return std::nullopt;
    const std::size_t colon = inside.find(':');
    if (colon == std::string_view::npos) return looked_up(key, std::string(inside), depth);
    const std::string_view function = inside.substr(0, colon);
    const std::string rest = filled(key, inside.substr(colon + 1), depth);
    const std::size_t comma = rest.find(',');
    if (comma == std::string::npos) return std::nullopt;
    const std::string first(trimmed(std::string_view(rest).substr(0, comma)));
    std::string second(trimmed(std::string_view(rest).substr(comma + 1)));
    if (function == "oc.env" || function == "oc.decode") return second;
    char sign = ' ';
    if (function == "multiply" || function == "mul") sign = '*';
    if (function == "divide_floor" || function == "divide" || function == "div") sign = '/';
    if (function == "add" || function == "sum") sign = '+';
    if (sign == ' ') return std::nullopt;
    const auto nothing = [](std::string_view) { return std::optional<std::int64_t>(); };
    const auto worth = arithmetic("(" + first + ")" + sign + "(" + second + ")", nothing);
    return worth ? std::optional(std::to_string(*worth)) : std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> looked_up(const std::string& key, std::string name,
                                                     int depth) const {
    if (name.starts_with('.')) {
      std::size_t up = 0;
      while (up < name.size() && name[up] == '.') ++up;
      std::string parent = key;
      for (std::size_t i = 0; i < up; ++i) {
        const std::size_t point = parent.rfind('.');
        parent = point == std::string::npos ? "" : parent.substr(0, point);
      }
      name = parent.empty() ? name.substr(up) : parent + "." + name.substr(up);
    }
    // A launcher's files stand below a name of its own: "training.model.hidden_size".
    for (int i = 0; i < 2; ++i) {
      const auto found = values_.find(name);
      if (found != values_.end()) {
        const std::string out = filled(name, found->second, depth + 1);
        return out.find("${") == std::string::npos ? std::optional(out) : std::nullopt;
      }
      const std::size_t point = name.find('.');
      if (point == std::string::npos) return std::nullopt;
      name = name.substr(point + 1);
    }
    return std::nullopt;
  }

  std::map<std::string, std::string> values_;
  mutable int followed_ = 0;
};

}  // namespace

void fill_interpolations(std::vector<Setting>& settings) {
  const References references(settings);
  for (Setting& one : settings) {
    for (std::string& value : one.values) {
      if (value.find("${") != std::string::npos) value = references.filled(one.key, value, 0);
    }
  }
}

}  // namespace lockstep
