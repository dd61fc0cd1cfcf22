#include "topologies/infiniband/text_lines.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "models/base/input_error.hpp"

namespace lockstep {

bool TextLines::next() {
  if (rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  line_ = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  ++number_;
  return true;
}

void TextLines::refuse_line(int number, std::string found, std::string allowed,
                            std::string nearest) const {
  throw InputError({.file = number == 0 ? file_ : file_ + ":" + std::to_string(number),
                    .pointer = "",
                    .found = std::move(found),
                    .allowed = std::move(allowed),
                    .nearest = std::move(nearest)});
}

namespace {
bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
}  // namespace

void LineCursor::skip_spaces() {
  while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
}

bool LineCursor::skip(std::string_view text) {
  if (!rest_.starts_with(text)) return false;
  rest_.remove_prefix(text.size());
  return true;
}

std::optional<std::string_view> LineCursor::until(char end) {
  const std::size_t at = rest_.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view found = rest_.substr(0, at);
  rest_.remove_prefix(at + 1);
  return found;
}

std::optional<std::string_view> LineCursor::quoted() {
  if (!rest_.starts_with('"') || rest_.find('"', 1) == std::string_view::npos) return std::nullopt;
  rest_.remove_prefix(1);
  return until('"');
}

std::string_view LineCursor::word() {
  skip_spaces();
  const auto end = std::ranges::find_if(rest_, is_space);
  const auto length = static_cast<std::size_t>(end - rest_.begin());
  const std::string_view found = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return found;
}

std::optional<std::uint64_t> LineCursor::number(int base) {
  std::uint64_t value = 0;
  const char* begin = rest_.data();
  const auto parsed = std::from_chars(begin, begin + rest_.size(), value, base);
  if (parsed.ec != std::errc{}) return std::nullopt;
  rest_.remove_prefix(static_cast<std::size_t>(parsed.ptr - begin));
  return value;
}

bool natural_less(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (!is_digit(a.front()) || !is_digit(b.front())) {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const auto digits = [](std::string_view& text) {
      const auto end = std::ranges::find_if_not(text, is_digit);
      std::string_view run = text.substr(0, static_cast<std::size_t>(end - text.begin()));
      text.remove_prefix(run.size());
      while (run.size() > 1 && run.front() == '0') run.remove_prefix(1);
      return run;
    };
    const std::string_view x = digits(a), y = digits(b);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  return a.size() < b.size();
}

}  // namespace lockstep
