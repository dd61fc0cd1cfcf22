#include "sim/launch/layer_lists.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>

namespace lockstep {
namespace {

constexpr std::size_t kMostListed = 10'000;
constexpr int kDeepestList = 16;

class NumberList {
 public:
  explicit NumberList(std::string_view text) {
    for (const char c : text) {
      if (c != ' ') text_ += c;
    }
  }

  std::optional<std::vector<int>> whole() {
    std::vector<int> out;
    if (!sum(out, 0) || at_ != text_.size()) return std::nullopt;
    return out;
  }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool number(int& out) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    std::int64_t whole = 0;
    if (at_ == begin || at_ - begin > 6) return false;
    if (!parse_whole(std::string_view(text_).substr(begin, at_ - begin), whole)) return false;
    out = static_cast<int>(whole);
    return true;
  }

  bool sum(std::vector<int>& out, int depth) {
    do {
      std::vector<int> part;
      if (!term(part, depth) || out.size() + part.size() > kMostListed) return false;
      out.insert(out.end(), part.begin(), part.end());
    } while (take('+'));
    return true;
  }

  bool term(std::vector<int>& out, int depth) {
    if (depth > kDeepestList) return false;
    if (take('(')) {
      if (!sum(out, depth + 1) || !take(')')) return false;
    } else if (!list(out)) {
      return false;
    }
    int times = 0;
    if (!take('*')) return true;
    if (!number(times) || out.size() * static_cast<std::size_t>(times) > kMostListed) return false;
    const std::vector<int> once = out;
    out.clear();
    for (int i = 0; i < times; ++i) out.insert(out.end(), once.begin(), once.end());
    return true;
  }

  bool list(std::vector<int>& out) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      int value = 0;
      if (!number(value)) return false;
      out.push_back(value);
    } while (take(','));
    return take(']');
  }

  std::string text_;
  std::size_t at_ = 0;
};

/// "(tt|)*3" written out, and "t*3"; nothing for what is too long or has no end.
std::optional<std::string> written_out(std::string_view text, int depth) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    std::string part(1, text[at++]);
    if (part == "(") {
      std::size_t end = at;
      for (int level = 1; end < text.size(); ++end) {
        if (text[end] == '(') ++level;
        if (text[end] == ')' && --level == 0) break;
      }
      if (end >= text.size() || depth > kDeepestList) return std::nullopt;
      const std::optional<std::string> inner = written_out(text.substr(at, end - at), depth + 1);
      if (!inner) return std::nullopt;
      part = *inner;
      at = end + 1;
    }
    std::size_t times = 1;
    if (at < text.size() && text[at] == '*') {
      times = 0;
      for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
        times = times * 10 + static_cast<std::size_t>(text[at] - '0');
        if (times > kMostListed) return std::nullopt;
      }
    }
    if (out.size() + times * part.size() > 4 * kMostListed) return std::nullopt;
    for (std::size_t i = 0; i < times; ++i) out += part;
  }
  return out;
}

}  // namespace

std::optional<std::vector<int>> listed_numbers(std::string_view text) {
  return NumberList(text).whole();
}

void read_expert_layers(const Setting& from, ModelSketch& model) {
  if (from.is_null()) return;
  std::int64_t every = 0;
  if (from.values.size() == 1 && parse_whole(from.values[0], every)) {
    model.expert_interval = from.count();
    return;
  }
  std::string text = from.text();
  if (from.values.size() > 1 && text.find('[') == std::string::npos) {
    std::ranges::replace(text, ' ', ',');
    text = "[" + text + "]";
  }
  const std::optional<std::vector<int>> found = listed_numbers(text);
  if (!found || found->empty()) from.fail(R"(a whole number, or a list such as "[0]*3+[1]*58")");
  model.expert_layers = *found;
}

void read_hybrid_pattern(const Setting& from, ModelSketch& model) {
  if (from.is_null()) return;
  const std::string text = from.text();
  std::string letters = text.substr(0, text.find('/'));
  std::erase(letters, '|');
  if (letters.empty() || letters.find_first_not_of("M*-E") != std::string::npos) {
    from.fail("letters M (Mamba), * (attention), - (MLP) and E (experts)");
  }
  model.pattern = letters;
  if (!model.layers) model.layers = static_cast<int>(letters.size());
}

void read_stage_layout(const Setting& from, JobSketch& job) {
  const char* const allowed = R"(stages such as "Et*3|(tt|)*29,m|L": t, E, L, m and bars)";
  std::string plain = from.text();
  std::erase_if(plain, [](char c) { return c == ',' || c == ' ' || c == '\'' || c == '"'; });
  const std::optional<std::string> text = written_out(plain, 0);
  if (!text || text->find_first_not_of("EtLm|") != std::string::npos) from.fail(allowed);
  std::vector<int> layers{0};
  for (const char c : *text) {
    if (c == '|') layers.push_back(0);
    if (c == 't') ++layers.back();
  }
  job.stage_layers = layers;
  job.remarks.push_back(
      fmt::format("{}: embedding, loss and what predicts further tokens are on the first and the "
                  "last stage",
                  from.key));
}

}  // namespace lockstep
