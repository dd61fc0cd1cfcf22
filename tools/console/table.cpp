#include "tools/console/table.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <numeric>
#include <sstream>
#include <sys/ioctl.h>
#include <unistd.h>

#include "models/base/printable.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kBold = "\033[1m", kDim = "\033[2m", kPlain = "\033[0m";

/// The style that the text begins with; empty: none.
std::string_view style_at(std::string_view text) {
  for (const std::string_view style : {kBold, kDim, kPlain}) {
    if (text.starts_with(style)) return style;
  }
  return {};
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value =
        std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread starts
    if (value == nullptr || *value == '\0') continue;
    std::string text = value;
    std::ranges::transform(text, text.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

std::string padded(const std::string& text, int width, TextTable::Align align) {
  const std::string space(static_cast<std::size_t>(std::max(0, width - text_width(text))), ' ');
  return align == TextTable::Align::left ? text + space : space + text;
}

/// The text, or as much of it as `width` columns take with a mark that it goes on.
std::string cut(const std::string& text, int width, const TextStyle& style) {
  if (text_width(text) <= width) return text;
  const std::string_view mark = style.utf8 ? "…" : "..";
  std::string out;
  int columns = text_width(mark);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
    if (++columns > width) break;
    out.append(text, at, end - at);
    at = end;
  }
  return out.append(mark);
}

/// 0 where it does not say.
int columns_of_terminal() {
  constexpr int kFewest = 40;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 0;
  return std::max<int>(kFewest, size.ws_col);
}

std::vector<std::string> lines_of(const std::string& title) {
  std::vector<std::string> lines(1);
  for (const char c : title) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

int title_width(const std::string& title) {
  int width = 0;
  for (const std::string& line : lines_of(title)) width = std::max(width, text_width(line));
  return width;
}

/// Over two lines, the wider of them as narrow as can be; as it is where there is no place to
/// break.
std::string folded_title(const std::string& title) {
  std::string best = title;
  for (std::size_t at = 1; at + 1 < title.size(); ++at) {
    const bool behind = title[at] == '.', instead = title[at] == ' ';
    if (!behind && !instead && title[at] != '/') continue;
    const std::string folds = title.substr(0, behind ? at + 1 : at) + '\n' +
                              title.substr(behind || instead ? at + 1 : at);
    if (title_width(folds) < title_width(best)) best = folds;
  }
  return best;
}

std::string trimmed_right(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// What a last column that wraps takes beside the others, of `most` columns in all.
int wrapped_width(std::span<const int> widths, int most) {
  constexpr int kNarrowest = 30;
  const int gaps = 2 * (static_cast<int>(widths.size()) - 1);
  const int others = std::accumulate(widths.begin(), widths.end() - 1, gaps);
  return std::min(widths.back(), std::max(kNarrowest, most - others));
}

}  // namespace

std::string TextStyle::bold(std::string_view text) const {
  return colour ? fmt::format("{}{}{}", kBold, text, kPlain) : std::string(text);
}
std::string TextStyle::dim(std::string_view text) const {
  return colour ? fmt::format("{}{}{}", kDim, text, kPlain) : std::string(text);
}

TextStyle style_of_terminal(bool is_terminal) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread starts
  return {.utf8 = locale_is_utf8(),
          .colour = is_terminal && std::getenv("NO_COLOR") == nullptr,
          .columns = is_terminal ? columns_of_terminal() : 0};
}

std::string terminal_text(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find_first_of("\n\033"), lines.size());
    out += printable(lines.substr(0, end));
    lines.remove_prefix(end);
    if (lines.empty()) break;
    const std::string_view style = style_at(lines);
    const std::size_t taken = std::max<std::size_t>(1, style.size());
    out +=
        style.empty() && lines[0] != '\n' ? printable(lines.substr(0, 1)) : lines.substr(0, taken);
    lines.remove_prefix(taken);
  }
  return out;
}

std::string terminal_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return terminal_text(line);
}

std::string bar(double share, int width, const TextStyle& style) {
  constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double columns = std::clamp(share, 0.0, 1.0) * width;
  if (!style.utf8) {
    // Not {count, '#'}: that would be a list of two characters.
    return std::string(  // NOLINT(modernize-return-braced-init-list)
        static_cast<std::size_t>(std::lround(columns)), '#');
  }
  const auto eighths = static_cast<std::size_t>(std::lround(columns * 8));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  out += kEighths[eighths % 8];
  return out;
}

int text_width(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string wrap(std::string_view whole, int width, int indent, int at) {
  const std::string line = terminal_line(whole);
  std::string_view text = line;
  std::string out;
  int column = at;
  bool begun = false;  // a word stands in this line
  while (!text.empty()) {
    std::size_t end = std::min(text.find(' '), text.size());
    // A sign of per cent stays at its number.
    if (text.substr(end).starts_with(" %")) end = std::min(text.find(' ', end + 1), text.size());
    const std::string_view word = text.substr(0, end);
    if (begun && column + 1 + text_width(word) > width) {
      out += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      column = indent;
      begun = false;
    } else if (begun) {
      out += ' ';
      ++column;
    }
    out += word;
    column += text_width(word);
    begun = begun || !word.empty();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string labelled_line(std::string_view label, int columns, std::string_view text) {
  return fmt::format("  {:<{}}{}\n", label, columns,
                     wrap(text, kTextColumns, columns + 2, columns + 2));
}

std::string assumed_lines(std::span<const std::string> assumptions, const TextStyle& style) {
  std::string out;
  for (const std::string& assumed : assumptions) {
    out += style.dim("  " + wrap("assumed: " + assumed, kTextColumns, 4, 2)) + "\n";
  }
  return out;
}

void TextTable::add(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = terminal_line(cell);
  rows_.push_back(std::move(cells));
}

std::vector<int> TextTable::widths_within(int most, bool cuts) const {
  constexpr int kShortest = 16;  // that text is cut to
  constexpr std::size_t kFewest = 2;
  std::vector<int> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    int width = title_width(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, text_width(row[c]));
    widths.push_back(width);
  }
  if (columns_.back().wraps) widths.back() = wrapped_width(widths, most);
  if (!cuts) return widths;
  const auto excess = [&] {
    return std::accumulate(widths.begin(), widths.end(), 2 * (std::ssize(widths) - 1)) - most;
  };
  while (excess() > 0 && widths.size() > kFewest && columns_[widths.size() - 1].title.empty()) {
    widths.pop_back();
  }
  while (excess() > 0) {
    int* widest = nullptr;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (columns_[c].align == Align::right || widths[c] <= kShortest) continue;
      if (widest == nullptr || widths[c] > *widest) widest = &widths[c];
    }
    if (widest == nullptr) break;
    *widest = std::max(kShortest, *widest - static_cast<int>(excess()));
  }
  while (excess() > 0 && widths.size() > kFewest) widths.pop_back();
  return widths;
}

void TextTable::fold_titles() {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    int cells = 0;
    for (const auto& row : rows_) cells = std::max(cells, text_width(row[c]));
    std::string& title = columns_[c].title;
    if (title_width(title) > cells && title.find('\n') == std::string::npos)
      title = folded_title(title);
  }
}

int TextTable::width(int indent) const {
  int widest = 0;
  for (const std::string& line : lines_of(text({}, indent)))
    widest = std::max(widest, text_width(line));
  return widest;
}

std::string TextTable::text(const TextStyle& style, int indent) const {
  const bool cuts = style.columns > 0;
  const std::vector<int> widths =
      widths_within((cuts ? style.columns : kTextColumns) - indent, cuts);
  const bool wraps = columns_.back().wraps && widths.size() == columns_.size();
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  const int before = std::accumulate(widths.begin(), widths.end() - 1,
                                     indent + 2 * (static_cast<int>(widths.size()) - 1));
  const auto line = [&](auto&& cell) {
    std::string joined = margin;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (c > 0) joined += "  ";
      const bool goes_on = wraps && c + 1 == widths.size();
      joined += goes_on ? wrap(cell(c), before + widths[c], before, before)
                        : padded(cut(cell(c), widths[c], style), widths[c], columns_[c].align);
    }
    return trimmed_right(std::move(joined));
  };
  std::vector<std::vector<std::string>> titles;
  std::size_t lines = 1;
  for (const Column& column : columns_) {
    titles.push_back(lines_of(column.title));
    lines = std::max(lines, titles.back().size());
  }
  std::string out;
  for (std::size_t left = lines; left > 0; --left) {
    // The last lines stand beside each other.
    const auto title = [&](std::size_t c) {
      return left > titles[c].size() ? std::string() : titles[c][titles[c].size() - left];
    };
    out += style.dim(line(title)) + "\n";
  }
  for (const auto& row : rows_) out += line([&](std::size_t c) { return row[c]; }) + "\n";
  return out;
}

std::string text_with_words(const TextTable& table, std::span<const std::string> words,
                            const TextStyle& style) {
  std::istringstream lines(table.text(style));
  std::string line;
  std::getline(lines, line);
  std::string out = line + "\n";
  for (const std::string& each : words) {
    std::getline(lines, line);
    out += line + "\n    " + wrap(each, table_columns(style), 6, 4) + "\n";
  }
  return out;
}

int table_columns(const TextStyle& style) {
  return style.columns > 0 ? style.columns : kTextColumns;
}

CsvText csv_line(std::span<const std::string> cells) {
  CsvText out;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += CsvText::write(",");
    out += cells[i];
  }
  return out += CsvText::write("\n");
}

}  // namespace lockstep
