#include "sim/scenario/trace_row.hpp"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <system_error>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"

namespace lockstep {

void TraceRow::fail(int column, const std::string& allowed) const {
  const auto c = static_cast<std::size_t>(column);
  throw InputError({.file = csv_place(*file_, row_),
                    .pointer = {},
                    .found = fmt::format("{} {}", heading_[c], in_quotes(cells_[c])),
                    .allowed = allowed,
                    .nearest = {}});
}

double TraceRow::number(int column, double low, double high) const {
  const std::string& cell = text(column);
  double out = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
  const bool whole = error == std::errc() && end == cell.data() + cell.size();
  if (!whole || !(out >= low && out <= high)) {
    fail(column, fmt::format("a number from {:.15g} to {:.15g}", low, high));
  }
  return out;
}

int TraceRow::integer(int column, int low, int high) const {
  const double out = number(column, low, high);
  if (out != std::floor(out)) fail(column, "a whole number");
  return static_cast<int>(out);
}

}  // namespace lockstep
