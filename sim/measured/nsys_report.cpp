#include "sim/measured/nsys_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/trimmed.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

using Cells = std::vector<std::string>;

constexpr std::size_t kMostReportRows = 10'000'000;
constexpr double kLongestRowUs = 1e15;

/// Which titles say what. Source: the columns that NVIDIA's Post-Collection Analysis Guide lists,
/// https://docs.nvidia.com/nsight-systems/AnalysisGuide/index.html, as of Nsight Systems 2020 to
/// 2025. An empty title: the table does not say it.
struct ReportKind {
  std::string_view range, kernel, time, instances, operations;
};
// The first that fits decides.
constexpr std::array kReportKinds{
    ReportKind{"NVTX Range", "Kernel Name", "Total Time", "NVTX Inst", ""},
    ReportKind{"Range", "", "Total Proj Time", "Range Instances", "Total GPU Ops"},
    ReportKind{"Name", "", "Projected Duration", "", "NumGPUOps"},
    ReportKind{"", "Name", "Duration", "", ""},  // cuda_gpu_trace; others too: see below
    ReportKind{"", "Operation", "Total Time", "Instances", ""},
    ReportKind{"", "Name", "Total Time", "Instances", ""},
};
/// What cuda_gpu_trace has and the traces of the CPU, which are alike, have not.
constexpr std::string_view kOfGpuTrace = "GrdX";

struct NsysUnit {
  std::string_view name;
  double us;
};
constexpr std::array kNsysUnits{
    NsysUnit{"ns", 1e-3},   NsysUnit{"nsec", 1e-3}, NsysUnit{"us", 1},   NsysUnit{"\u00b5s", 1},
    NsysUnit{"\u03bcs", 1}, NsysUnit{"usec", 1},    NsysUnit{"ms", 1e3}, NsysUnit{"msec", 1e3},
    NsysUnit{"s", 1e6},     NsysUnit{"sec", 1e6},
};

/// A column's title, "Total Time (ns)", in its parts.
std::string_view title_of(std::string_view column) {
  return trimmed(column.substr(0, column.find('(')));
}
std::string_view unit_of(std::string_view column) {
  const std::size_t open = column.find('('), close = column.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return trimmed(column.substr(open + 1, close - open - 1));
}

std::optional<double> cell_number(std::string_view cell) {
  cell = trimmed(cell);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

/// Cells of a line of CSV (RFC 4180, without line breaks in cells).
Cells cells_of(std::string_view line) {
  Cells cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += c;
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

/// Where in its rows a table has what is needed.
class ReportColumns {
 public:
  /// Nothing for titles of no table of kernels. Throws InputError for an unknown unit of time.
  static std::optional<ReportColumns> find(const std::string& file, const Cells& titles) {
    for (const ReportKind& kind : kReportKinds) {
      ReportColumns out;
      const bool found = out.place(kind.range, titles, out.range_) &&
                         out.place(kind.kernel, titles, out.kernel_) &&
                         out.place(kind.time, titles, out.time_) &&
                         out.place(kind.instances, titles, out.instances_) &&
                         out.place(kind.operations, titles, out.operations_);
      if (!found) continue;
      if (kind.time == "Duration" && !out.place(kOfGpuTrace, titles, out.ignored_)) continue;
      (void)out.place("PID", titles, out.process_);
      (void)out.place("TID", titles, out.thread_);
      const std::string_view unit = unit_of(titles[*out.time_]);
      const auto* const known = std::ranges::find(kNsysUnits, unit, &NsysUnit::name);
      if (known == kNsysUnits.end()) {
        throw InputError({.file = file,
                          .pointer = {},
                          .found = "a column " + in_quotes(titles[*out.time_]),
                          .allowed = "ns, us, ms or s in brackets",
                          .nearest = {}});
      }
      out.unit_us_ = known->us;
      out.count_ = titles.size();
      return out;
    }
    return std::nullopt;
  }

  /// Nothing for a row that does not fit.
  [[nodiscard]] std::optional<NsysRow> row(const Cells& cells) const {
    if (cells.size() != count_) return std::nullopt;
    NsysRow out;
    if (range_) out.range = text(cells, range_);
    for (const auto& place : {process_, thread_}) {
      if (range_ && place) out.range += fmt::format("\n{}", text(cells, place));
    }
    if (kernel_) out.kernel = text(cells, kernel_);
    const auto total = cell_number(cells[*time_]);
    const auto instances = instances_ ? cell_number(cells[*instances_]) : std::optional(1.0);
    const auto operations = operations_ ? cell_number(cells[*operations_]) : std::optional(0.0);
    if (!total || !instances || !operations) return std::nullopt;
    out.total_us = *total * unit_us_;
    out.instances = *instances;
    out.operations = *operations;
    const bool sane = out.total_us >= 0 && out.total_us <= kLongestRowUs && out.instances >= 1 &&
                      out.instances <= kLongestRowUs;
    return sane ? std::optional(out) : std::nullopt;
  }

 private:
  using Place = std::optional<std::size_t>;

  /// Whether the title is there, or not asked for.
  static bool place(std::string_view title, const Cells& titles, Place& out) {
    if (title.empty()) return true;
    for (std::size_t i = 0; i < titles.size(); ++i) {
      if (title_of(titles[i]) != title) continue;
      out = i;
      return true;
    }
    return false;
  }
  static std::string text(const Cells& cells, const Place& place) {
    return std::string(trimmed(cells[*place]));
  }

  Place range_, kernel_, time_, instances_, operations_, process_, thread_, ignored_;
  std::size_t count_ = 0;
  double unit_us_ = 1;
};

/// Takes rows one after the other.
class ReportReader {
 public:
  explicit ReportReader(const std::string& file) : file_(file) {}

  void titles(const Cells& cells) {
    columns_ = ReportColumns::find(file_, cells);
    found_ = found_ || columns_.has_value();
  }
  [[nodiscard]] bool inside() const { return columns_.has_value(); }
  void leave() { columns_.reset(); }
  void row(const Cells& cells) {
    if (auto row = columns_->row(cells)) {
      out_.rows.push_back(std::move(*row));
    } else {
      ++out_.broken;
    }
  }
  NsysReport finish() && {
    if (found_) return std::move(out_);
    throw InputError({.file = file_,
                      .pointer = {},
                      .found = "no table of kernels",
                      .allowed = "what nsys stats --format csv or json writes of nvtx_kern_sum, "
                                 "cuda_gpu_kern_sum, cuda_gpu_trace or nvtx_gpu_proj_sum",
                      .nearest = {}});
  }

 private:
  const std::string& file_;
  std::optional<ReportColumns> columns_;
  NsysReport out_;
  bool found_ = false;
};

/// A JSON value as CSV would have it.
std::string json_cell(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_primitive() && !value.is_null() ? write_json(value) : std::string();
}

void read_json(const std::string& file, std::string_view text, ReportReader& reader) {
  Cells titles;
  for (const JsonCursor& row : JsonCursor::parse(file, text).elements(kMostReportRows)) {
    if (!row.is_object()) row.fail("an object for each row of a table");
    Cells keys = row.keys();
    if (keys != titles) {
      titles = std::move(keys);
      reader.titles(titles);
    }
    if (!reader.inside()) continue;
    Cells cells;
    for (const auto& [key, value] : row.json().items()) cells.push_back(json_cell(value));
    reader.row(cells);
  }
}

void read_csv(std::string_view text, ReportReader& reader) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    // A blank line, or what nsys says of the next report, ends a table.
    if (line.find(',') == std::string_view::npos) {
      reader.leave();
    } else if (reader.inside()) {
      reader.row(cells_of(line));
    } else {
      reader.titles(cells_of(line));
    }
  }
}

/// Whether rows in JSON begin here, and no line such as "[5/8] Executing ...".
bool is_json(std::string_view text) {
  if (text.front() != '[') return false;
  const std::size_t first = text.find_first_not_of(" \t\r\n", 1);
  return first == std::string_view::npos || text[first] == '{' || text[first] == ']';
}

}  // namespace

NsysReport parse_nsys(const std::string& file, std::string_view text) {
  ReportReader reader(file);
  // What nsys says before a table, it says on lines of their own.
  std::size_t start = 0;
  while (start < text.size() && !is_json(text.substr(start))) {
    const std::size_t next = text.find('\n', start);
    start = next == std::string_view::npos ? text.size() : next + 1;
  }
  if (start < text.size()) {
    read_json(file, text.substr(start), reader);
  } else {
    read_csv(text, reader);
  }
  return std::move(reader).finish();
}

}  // namespace lockstep
