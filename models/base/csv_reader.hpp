/// Reads the rows of a CSV text (RFC 4180) one by one, however many there are.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// What a row is called with: its number, from 1 behind the heading, and its cells.
using CsvRowUse = std::function<void(std::size_t, std::span<const std::string>)>;

/// Calls `heading` with the cells of the first row, then `row` with those of each that follows;
/// empty rows are none, and a byte order mark at the front of the text (UTF-8) is none of its.
/// Throws InputError for a text without a heading, with a quote that is never closed or that stands
/// in the middle of a cell, or with a row of another number of cells than the heading has.
void read_csv(const std::string& file, std::string_view text,
              const std::function<void(std::span<const std::string>)>& heading,
              const CsvRowUse& row);

/// "trace.csv, row 12": as errors name a row.
std::string csv_place(const std::string& file, std::size_t row);
/// "trace.csv, row 12 (line 13)": with the line of the text on which it begins, from 1.
std::string csv_place(const std::string& file, std::size_t row, std::string_view text);

}  // namespace lockstep
