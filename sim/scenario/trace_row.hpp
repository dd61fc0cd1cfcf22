/// One row of a trace in CSV, and how its cells are read.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep {

/// Columns are numbers of cells. Errors name the file, the row, the column and the cell. What it is
/// made of must outlive it.
class TraceRow {
 public:
  TraceRow(const std::string& file, std::size_t row, std::span<const std::string> heading,
           std::span<const std::string> cells)
      : file_(&file), row_(row), heading_(heading), cells_(cells) {}

  /// Throws InputError about the cell.
  [[noreturn]] void fail(int column, const std::string& allowed) const;
  [[nodiscard]] const std::string& text(int column) const {
    return cells_[static_cast<std::size_t>(column)];
  }
  [[nodiscard]] double number(int column, double low, double high) const;
  [[nodiscard]] int integer(int column, int low, int high) const;

 private:
  const std::string* file_;
  std::size_t row_;
  std::span<const std::string> heading_;
  std::span<const std::string> cells_;
};

}  // namespace lockstep
