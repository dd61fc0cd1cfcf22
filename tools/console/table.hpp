/// Text for people: aligned tables, bars, wrapped lines. Every printed table of the program goes
/// through here, so that all of them look alike.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/console/written.hpp"

namespace lockstep {

/// Width of every text of the program; tables may be wider, but for a terminal's.
inline constexpr int kTextColumns = 100;

/// What the terminal can show.
struct TextStyle {
  bool utf8 = false;    ///< else plain ASCII
  bool colour = false;  ///< bold and dim; never in a pipe or file
  int columns = 0;      ///< of the terminal; 0: there is none, and a table is as wide as its cells
  [[nodiscard]] std::string bold(std::string_view text) const;
  [[nodiscard]] std::string dim(std::string_view text) const;
};

/// Style of a stream from its environment: UTF-8 by locale (LC_ALL, LC_CTYPE, LANG), colours only
/// on a terminal without NO_COLOR.
TextStyle style_of_terminal(bool is_terminal);

/// Lines as a terminal may have them: whatever it would obey, but for line breaks and the styles of
/// TextStyle, becomes visible, as printable() says.
std::string terminal_text(std::string_view lines);
/// One line of them: line breaks and tabs become spaces.
std::string terminal_line(std::string_view text);

/// A bar of `share` (0 to 1) of `width` columns: eighth blocks in UTF-8, else '#'.
std::string bar(double share, int width, const TextStyle& style);
/// Columns that the text takes on a terminal (UTF-8 counted by code point).
int text_width(std::string_view text);
/// The text as one terminal_line(), broken at spaces so that no line reaches beyond `width`
/// columns, unless one word does. The first begins `at` a column that something stands before, the
/// others with `indent` spaces. Blanks that the text begins with are left out.
std::string wrap(std::string_view whole, int width, int indent, int at = 0);
/// "  label   text", the text in a column of its own behind `columns` for labels.
std::string labelled_line(std::string_view label, int columns, std::string_view text);
/// "  assumed: TEXT" of each, wrapped and dim.
std::string assumed_lines(std::span<const std::string> assumptions, const TextStyle& style);

/// Rows of cells; column widths come from the widest cell. Numbers are aligned right, text left.
/// Where the terminal is narrower, bars go first, then the widest text is cut, then go the last
/// columns. A last column that `wraps` goes on below itself instead, at the terminal's width or,
/// without one, at kTextColumns.
class TextTable {
 public:
  enum class Align : unsigned char { left, right };
  struct Column {
    std::string title;  ///< may have several lines
    Align align = Align::right;
    bool wraps = false;  ///< of the last column: sentences
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Requires one cell per column; each is shown as one terminal_line().
  void add(std::vector<std::string> cells);
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  /// Breaks each title that is wider than its cells in two, behind a dot or at a blank or a slash,
  /// where that leaves it narrowest.
  void fold_titles();
  /// Of its widest line, where nothing cuts it.
  [[nodiscard]] int width(int indent = 2) const;
  /// The table, each line indented by `indent` and ended by a newline; the titles first.
  [[nodiscard]] std::string text(const TextStyle& style, int indent = 2) const;

 private:
  /// Of the columns that are shown; only where the terminal `cuts` are these at most `most` wide.
  [[nodiscard]] std::vector<int> widths_within(int most, bool cuts) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// The table, with words below each row, for words that have no room beside the numbers; they are
/// broken at table_columns().
std::string text_with_words(const TextTable& table, std::span<const std::string> words,
                            const TextStyle& style);
/// What a table is held to: the terminal's columns, or without one kTextColumns.
int table_columns(const TextStyle& style);

/// One CSV line with a newline; each cell is escaped.
CsvText csv_line(std::span<const std::string> cells);

}  // namespace lockstep
