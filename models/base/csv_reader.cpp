#include "models/base/csv_reader.hpp"

#include <csv.h>
#include <exception>
#include <fmt/format.h>
#include <vector>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kPiece = 1 << 16;  // bytes that libcsv gets at once

/// libcsv calls with each cell and each end of a row; no exception may pass through it.
class CsvRows {
 public:
  CsvRows(const std::string& file, const std::function<void(std::span<const std::string>)>& heading,
          const CsvRowUse& row)
      : file_(&file), heading_(&heading), row_(&row) {
    // Requires memory only; its options are known ones.
    (void)csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL);
  }
  ~CsvRows() { csv_free(&parser_); }
  CsvRows(const CsvRows&) = delete;
  CsvRows& operator=(const CsvRows&) = delete;

  void parse(std::string_view text) {
    text_ = text;
    for (std::size_t at = 0; at < text.size(); at += kPiece) {
      const std::string_view piece = text.substr(at, kPiece);
      const std::size_t taken =
          csv_parse(&parser_, piece.data(), piece.size(), on_cell, on_row, this);
      if (failure_) std::rethrow_exception(failure_);
      if (taken != piece.size()) fail_here("a quote within a cell", "cells in quotes as a whole");
    }
    if (csv_fini(&parser_, on_cell, on_row, this) != 0) {
      fail_here("a quote that is never closed", "quotes in pairs");
    }
    if (failure_) std::rethrow_exception(failure_);
    if (columns_ == 0) {
      throw InputError({.file = *file_,
                        .pointer = {},
                        .found = "no rows",
                        .allowed = "a row of column names, and rows of values",
                        .nearest = {}});
    }
  }

 private:
  [[noreturn]] void fail_here(std::string found, std::string allowed) const {
    throw InputError({.file = csv_place(*file_, rows_, text_),
                      .pointer = {},
                      .found = std::move(found),
                      .allowed = std::move(allowed),
                      .nearest = {}});
  }

  static void on_cell(void* text, std::size_t size, void* self) {
    auto& rows = *static_cast<CsvRows*>(self);
    if (rows.used_ == rows.cells_.size()) rows.cells_.emplace_back();
    rows.cells_[rows.used_++].assign(static_cast<const char*>(text), size);
  }
  static void on_row(int /*terminator*/, void* self) {
    auto& rows = *static_cast<CsvRows*>(self);
    if (!rows.failure_) {
      try {
        rows.end_row();
      } catch (...) {
        rows.failure_ = std::current_exception();
      }
    }
    rows.used_ = 0;
  }

  void end_row() {
    const std::span<const std::string> cells(cells_.data(), used_);
    if (columns_ == 0) {
      columns_ = used_;
      (*heading_)(cells);
      rows_ = 1;
      return;
    }
    if (used_ != columns_) {
      fail_here(fmt::format("{} cell{}", used_, used_ == 1 ? "" : "s"),
                fmt::format("{}, as the heading has", columns_));
    }
    (*row_)(rows_++, cells);
  }

  const std::string* file_;
  std::string_view text_;
  const std::function<void(std::span<const std::string>)>* heading_;
  const CsvRowUse* row_;
  csv_parser parser_{};
  std::vector<std::string> cells_;
  std::size_t used_ = 0, columns_ = 0, rows_ = 0;
  std::exception_ptr failure_;
};

/// On which a row begins; empty lines are no rows, and cells in quotes may hold ends of lines.
std::size_t line_of(std::string_view text, std::size_t row) {
  std::size_t line = 1, ended = 0;
  bool begun = false, quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\r' && at + 1 < text.size() && text[at + 1] == '\n') continue;
    if (c == '\n' || c == '\r') {
      if (begun && !quoted) ++ended;
      begun = begun && quoted;
      ++line;
      continue;
    }
    if (!begun && ended == row) return line;
    begun = true;
    if (c == '"') quoted = !quoted;
  }
  return line;
}

}  // namespace

std::string csv_place(const std::string& file, std::size_t row) {
  return fmt::format("{}, row {}", file, row);
}

std::string csv_place(const std::string& file, std::size_t row, std::string_view text) {
  return fmt::format("{} (line {})", csv_place(file, row), line_of(text, row));
}

void read_csv(const std::string& file, std::string_view text,
              const std::function<void(std::span<const std::string>)>& heading,
              const CsvRowUse& row) {
  constexpr std::string_view kSpreadsheetMark = "\xef\xbb\xbf";  // as spreadsheets write it
  if (text.starts_with(kSpreadsheetMark)) text.remove_prefix(kSpreadsheetMark.size());
  CsvRows(file, heading, row).parse(text);
}

}  // namespace lockstep
