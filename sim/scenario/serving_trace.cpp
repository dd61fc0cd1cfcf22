#include "sim/scenario/serving_trace.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kRequestTraceLimit = std::size_t{4} << 30;
constexpr double kLongestTrace = 4e9;  // seconds

[[noreturn]] void fail_row(const std::string& file, std::size_t row, const std::string& found,
                           const std::string& allowed) {
  throw InputError({.file = csv_place(file, row),
                    .pointer = {},
                    .found = found,
                    .allowed = allowed,
                    .nearest = {}});
}

std::optional<double> plain_number(std::string_view cell) {
  double out = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
  if (error != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return out;
}

/// Days from 1970 to a date of the Gregorian calendar (Hinnant, days_from_civil).
std::int64_t days_of(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t of_era = year - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/// "2023-11-16 18:15:46.6805900" as seconds; nothing: it is no such time.
std::optional<double> clock_time(const std::string& cell) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, used = 0;
  if (std::sscanf(cell.c_str(), "%4d-%2d-%2d%*1[ T]%2d:%2d:%n", &year, &month, &day, &hour, &minute,
                  &used) != 5 ||
      used == 0) {
    return std::nullopt;
  }
  std::string_view rest = std::string_view(cell).substr(static_cast<std::size_t>(used));
  const std::size_t zone = rest.find_first_of("+Z");
  const std::optional<double> second = plain_number(rest.substr(0, zone));
  if (!second) return std::nullopt;
  return static_cast<double>(days_of(year, month, day)) * 86400 + hour * 3600 + minute * 60 +
         *second;
}

/// Builds requests row by row, with the checks that all forms have in common.
class RequestRows {
 public:
  explicit RequestRows(std::string file) : file_(std::move(file)) {}

  void add(std::size_t row, double seconds, double input, double output) {
    if (requests_.empty()) first_s_ = seconds;
    const double since = seconds - first_s_;
    if (since < last_s_) {
      fail_row(file_, row,
               fmt::format("an arrival {:.6g} s before that of the row above", last_s_ - since),
               "times in order");
    }
    if (since > kLongestTrace) fail_row(file_, row, "a later time", "at most 4e9 s");
    last_s_ = since;
    requests_.push_back({.arrival = to_run_time(Seconds{since}),
                         .input = tokens(row, "prompt", input),
                         .output = tokens(row, "answer", output)});
  }
  /// The next block of the prompt of the row above.
  void add_block(std::int64_t id) {
    constexpr std::int32_t kBlock = 512;  // tokens, as Mooncake hashes them
    ServedRequest& r = requests_.back();
    const std::int32_t before =
        r.prefix < 0 ? 0 : tree_.nodes()[static_cast<std::size_t>(r.prefix)].tokens;
    if (before < r.input) r.prefix = tree_.child(r.prefix, id, std::min(before + kBlock, r.input));
  }
  [[nodiscard]] std::vector<PrefixNode> take_prefixes() { return tree_.take(); }
  std::vector<ServedRequest> take() {
    if (requests_.empty()) fail_row(file_, 1, "no request", "at least one");
    return std::move(requests_);
  }
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  [[nodiscard]] std::int32_t tokens(std::size_t row, std::string_view what, double count) const {
    if (count >= 1 && count <= kMaxTokens) return static_cast<std::int32_t>(count);
    fail_row(file_, row, fmt::format("{} of {:.15g} tokens", what, count),
             fmt::format("1 to {} tokens", kMaxTokens));
  }

  std::string file_;
  std::vector<ServedRequest> requests_;
  PrefixTree tree_;
  double first_s_ = 0, last_s_ = 0;
};

int column_of(const std::string& file, std::span<const std::string> heading,
              std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto at = std::ranges::find(heading, name);
    if (at != heading.end()) return static_cast<int>(at - heading.begin());
  }
  throw InputError({.file = file,
                    .pointer = {},
                    .found = fmt::format("no column {}", in_quotes(std::string(*names.begin()))),
                    .allowed = "it, or another name of it in known traces",
                    .nearest = {}});
}

/// "3 17 18".
void add_blocks(const std::string& path, std::size_t row, std::string_view cell,
                RequestRows& rows) {
  while (true) {
    const std::size_t begin = cell.find_first_not_of(' ');
    if (begin == std::string_view::npos) return;
    const std::string_view word = cell.substr(begin, cell.find(' ', begin) - begin);
    std::int64_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size()) {
      fail_row(path, row, "prefix_blocks " + in_quotes(std::string(word)), "whole numbers");
    }
    rows.add_block(id);
    cell.remove_prefix(begin + word.size());
  }
}

void read_csv_requests(const std::string& path, std::string_view text, RequestRows& rows) {
  std::size_t blocks = 0;  // column behind the others, from 1; 0: none
  std::array<int, 3> columns{};
  std::array<std::string, 3> names;
  const auto heading = [&](std::span<const std::string> cells) {
    columns[0] = column_of(path, cells, {"arrival_s", "TIMESTAMP", "Timestamp", "timestamp"});
    columns[1] = column_of(path, cells, {"input_tokens", "ContextTokens", "Request tokens"});
    columns[2] = column_of(path, cells, {"output_tokens", "GeneratedTokens", "Response tokens"});
    for (std::size_t c = 0; c < 3; ++c) names[c] = cells[static_cast<std::size_t>(columns[c])];
    const auto at = std::ranges::find(cells, "prefix_blocks");
    if (at != cells.end()) blocks = static_cast<std::size_t>(at - cells.begin()) + 1;
  };
  read_csv(path, text, heading, [&](std::size_t row, std::span<const std::string> cells) {
    std::array<double, 3> values{};
    for (std::size_t c = 0; c < 3; ++c) {
      const std::string& cell = cells[static_cast<std::size_t>(columns[c])];
      std::optional<double> value = plain_number(cell);
      if (!value && c == 0) value = clock_time(cell);
      if (!value) fail_row(path, row, names[c] + " " + in_quotes(cell), "a number");
      values[c] = *value;
    }
    rows.add(row, values[0], values[1], values[2]);
    if (blocks > 0) add_blocks(path, row, cells[blocks - 1], rows);
  });
}

void read_json_requests(const std::string& path, std::string_view text, RequestRows& rows) {
  constexpr double kMillisecond = 1e-3;
  std::size_t row = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \r\t") == std::string_view::npos) continue;
    ++row;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const auto number = [&](const char* key) {
      const auto at = json.is_object() ? json.find(key) : json.end();
      if (!json.is_object() || at == json.end() || !at->is_number()) {
        fail_row(path, row, fmt::format("no number {}", in_quotes(key)),
                 "an object with timestamp, input_length and output_length");
      }
      return at->get<double>();
    };
    const double at = kMillisecond * number("timestamp");
    const double input = number("input_length");
    rows.add(row, at, input, number("output_length"));
    const auto blocks = json.find("hash_ids");
    if (blocks == json.end()) continue;
    for (const nlohmann::json& id : *blocks) {
      if (!id.is_number_integer())
        fail_row(path, row, "hash_ids with other things", "whole numbers");
      rows.add_block(id.get<std::int64_t>());
    }
  }
}

}  // namespace

std::vector<ServedRequest> read_request_trace(const std::string& path,
                                              std::vector<PrefixNode>* prefixes,
                                              ClientDraws* clients) {
  const std::string text = read_maybe_gzip(path, kRequestTraceLimit);
  if (has_client_rates(text)) {
    ClientDraws draws = clients != nullptr ? *clients : ClientDraws{};
    if (clients != nullptr) clients->drawn = true;
    return draw_client_requests(path, text, draws);
  }
  const std::size_t first = text.find_first_not_of(" \r\n\t");
  RequestRows rows(path);
  const bool json = first != std::string::npos && text[first] == '{';
  json ? read_json_requests(path, text, rows) : read_csv_requests(path, text, rows);
  if (prefixes != nullptr) *prefixes = rows.take_prefixes();
  return rows.take();
}

}  // namespace lockstep
