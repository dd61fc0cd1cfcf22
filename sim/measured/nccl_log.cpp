#include "sim/measured/nccl_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/letter_case.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using Words = std::vector<std::string_view>;

Words words_in(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  Words words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(kBlank), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<double> number_in(std::string_view word) {
  double value = 0;
  const char* const end = std::to_address(word.end());
  const auto [rest, error] = std::from_chars(std::to_address(word.begin()), end, value);
  if (error != std::errc{} || rest != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Without what `mpirun --tag-output` ("[1,0]<stdout>:") or `srun --label` ("0: ") put before it.
std::string_view untagged(std::string_view line) {
  constexpr std::size_t kLongestTag = 100;
  if (line.starts_with('[')) {
    const std::size_t end = line.find(">:");
    return end < kLongestTag ? line.substr(end + 2) : line;
  }
  const std::size_t digits = std::min(line.find_first_not_of(" 0123456789"), line.size());
  const bool label = digits > 0 && is_digit(line[digits - 1]) && line.substr(digits, 2) == ": ";
  return label ? line.substr(digits + 2) : line;
}

/// Letters of an operation's name: "all_reduce", "All-Reduce" -> "allreduce".
std::string letters_of(std::string_view text) {
  std::string out = lowered(text);
  std::erase_if(out, [](char c) { return c < 'a' || c > 'z'; });
  return out;
}

/// The columns of a table, by its title line.
struct NcclColumns {
  std::size_t time = 0, wrong = 0, variation = 0;  ///< 0: there is none
  double unit_us = 1;
  bool of_cpu = false;
};

std::optional<NcclColumns> columns_of(const Words& words) {
  if (words.size() < 4 || words[0] != "#") return std::nullopt;
  const bool in_ms = words[1] == "bytes";  // 1.0 printed milliseconds
  if (words[1] != "size" && !in_ms) return std::nullopt;
  NcclColumns columns;
  if (in_ms) columns.unit_us = 1000;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const bool of_cpu = words[i] == "cputime";
    if (words[i] == "time" || of_cpu) {
      if (columns.time > 0) break;  // in place
      columns.time = i - 1;
      columns.of_cpu = of_cpu;
    }
    if (words[i] == "#wrong") columns.wrong = i - 1;
    if (words[i] == "i_cv%") columns.variation = i - 1;
  }
  if (columns.time == 0) return std::nullopt;
  return columns;
}

class LogParser {
 public:
  LogParser(const std::string& file, const NcclLogOptions& options)
      : file_(file), options_(options) {}

  void read(std::string_view line) {
    const Words words = words_in(untagged(line));
    if (words.empty()) return;
    if (!words[0].starts_with('#')) {
      if (!read_row(words)) read_op(line);
      return;
    }
    if (const auto columns = columns_of(words)) {
      close_table();
      columns_ = columns;
      table_op_ = std::exchange(op_, {});
      return;
    }
    if (line.find("Using devices") != std::string_view::npos) {
      close_table();
      ranks_.clear();
      group_.clear();
    }
    if (!read_rank(words)) read_op(line);
  }

  NcclLog finish() {
    close_table();
    if (!any_table_) {
      throw InputError(
          {.file = file_,
           .pointer = {},
           .found = "no table of nccl-tests",
           .allowed = "what nccl-tests or rccl-tests printed, from \"# size count\" on",
           .nearest = {}});
    }
    return std::move(log_);
  }

 private:
  void read_op(std::string_view line) {
    if (line.find("concluded") != std::string_view::npos) return;
    std::string op = op_of_program(line);
    if (!op.empty()) op_ = std::move(op);
  }

  /// "#  Rank  0 Group  0 Pid 68 on HOST device  0 [0000:04:00] NVIDIA H100 80GB HBM3".
  bool read_rank(const Words& words) {
    const auto rank = std::ranges::find(words, "Rank");
    const auto on = std::find(rank, words.end(), "on");
    const auto device = std::find(on, words.end(), "device");
    if (device == words.end() || words.end() - device < 3 || device - on != 2) return false;
    // Groups that the ranks were split into run side by side; the table is of the first.
    const auto group = std::find(rank, on, "Group");
    const std::string number(group != on && group + 1 != on ? *(group + 1) : "0");
    if (group_.empty()) group_ = number;
    if (number != group_) return true;
    const std::string_view name = device + 3 < words.end() ? *(device + 3) : std::string_view{};
    const std::string_view last = words.back();
    ranks_.add(*(on + 1), 1, name.empty() ? name : std::string_view(name.begin(), last.end()));
    return true;
  }

  bool read_row(const Words& words) {
    if (!columns_) return false;
    const NcclColumns& c = *columns_;
    if (words.size() < c.time + 3 || !std::ranges::all_of(words[0], is_digit)) return false;
    const std::optional<double> size = number_in(words[0]), count = number_in(words[1]);
    const std::optional<double> time = number_in(words[c.time]),
                                rate = number_in(words[c.time + 1]);
    if (!size || !count || !time || !rate) return false;
    any_row_ = true;
    const auto wrong = c.wrong > 0 && c.wrong < words.size() ? number_in(words[c.wrong]) : 0;
    const auto variation =
        c.variation > 0 && c.variation < words.size() ? number_in(words[c.variation]) : 0;
    NcclSample sample;
    sample.size = Bytes{*size};
    sample.time_us = *time * c.unit_us;
    sample.spread = variation.value_or(0) / 100;
    const char* why = *size < 1 || *time <= 0 ? "nothing was sent"
                      : c.of_cpu              ? "time of the CPU"
                      : wrong && *wrong > 0   ? "wrong results"
                      : !bandwidth_agrees(sample.size, *sample.time_us, *rate)
                          ? "time and bandwidth disagree"
                          : nullptr;
    if (why == nullptr) {
      samples_.push_back(sample);
    } else {
      ++log_.left_out[why];
    }
    return true;
  }

  void close_table() {
    if (columns_ && any_row_) {
      any_table_ = true;
      NcclSeries series;
      series.system = file_;
      series.op = op_of_log(table_op_, options_, file_);
      const std::string why = ranks_.fill(options_, series);
      series.samples = std::move(samples_);
      if (why.empty()) {
        log_.series.push_back(std::move(series));
      } else {
        log_.left_out[why] += series.samples.size();
      }
    }
    columns_.reset();
    samples_.clear();
    any_row_ = false;
  }

  const std::string& file_;
  const NcclLogOptions& options_;
  NcclLog log_;
  bool any_table_ = false;
  NcclRanks ranks_;
  std::string group_;  ///< of the table's communicator; empty: no rank yet
  std::string op_;     ///< of the program that was named last
  // Of the table that is open.
  std::optional<NcclColumns> columns_;
  std::string table_op_;
  std::vector<NcclSample> samples_;
  bool any_row_ = false;
};

}  // namespace

void NcclRanks::add(std::string_view host, int ranks, std::string_view device) {
  hosts_[std::string(host)] += ranks;
  if (device_.empty()) device_ = device;
}

std::string NcclRanks::fill(const NcclLogOptions& options, NcclSeries& series) const {
  series.gpu = device_;
  series.nodes = options.nodes > 0 ? options.nodes : std::max(1, static_cast<int>(hosts_.size()));
  if (options.gpus_per_node > 0) {
    series.gpus_per_node = options.gpus_per_node;
  } else {
    if (hosts_.empty()) {
      throw InputError({.file = series.system,
                        .pointer = {},
                        .found = "no lines \"# Rank 0 ... on HOST device 0\"",
                        .allowed = "them, or --gpus-per-node and --nodes",
                        .nearest = {}});
    }
    int ranks = 0;
    for (const auto& [host, count] : hosts_) ranks += count;
    if (ranks % series.nodes != 0) return "ranks spread unevenly over nodes";
    series.gpus_per_node = ranks / series.nodes;
    const auto uneven = [&](const auto& host) { return host.second != series.gpus_per_node; };
    if (options.nodes == 0 && std::ranges::any_of(hosts_, uneven)) {
      return "ranks spread unevenly over nodes";
    }
  }
  constexpr int kMostLogRanks = 1'000'000;
  if (series.gpus_per_node > kMostLogRanks / series.nodes) return "more than a million ranks";
  series.ranks = series.nodes * series.gpus_per_node;
  return series.ranks < 2 ? "a single rank" : "";
}

std::string op_of_program(std::string_view text) {
  constexpr std::string_view kSuffix = "_perf";
  const std::size_t end = text.find(kSuffix);
  if (end == std::string_view::npos) return {};
  std::size_t begin = end;
  while (begin > 0 &&
         ((text[begin - 1] >= 'a' && text[begin - 1] <= 'z') || text[begin - 1] == '_')) {
    --begin;
  }
  return std::string(text.substr(begin, end - begin));
}

std::string op_of_log(const std::string& found, const NcclLogOptions& options,
                      const std::string& file) {
  if (!found.empty()) return found;
  if (!options.op.empty()) return options.op;
  const std::string letters = letters_of(std::filesystem::path(file).filename().string());
  std::string_view best;
  for (const std::string_view name : kNcclTestsNames) {
    // "all_reduce" and "reduce_scatter" contain "reduce".
    if (name.size() > best.size() && letters.find(letters_of(name)) != std::string::npos)
      best = name;
  }
  if (!best.empty()) return std::string(best);
  throw InputError({.file = file,
                    .pointer = {},
                    .found = "a table without the name of its program, such as all_reduce_perf",
                    .allowed = "--op with the operation",
                    .nearest = {}});
}

bool bandwidth_agrees(Bytes size, double time_us, double algbw_gb_per_s) {
  constexpr double kRounding = 0.006, kSlack = 0.05;  // long times have two digits
  const double rate = size.base_units() / (time_us * 1e3);
  return std::abs(rate - algbw_gb_per_s) <= kRounding + kSlack * algbw_gb_per_s ||
         time_us < 1;  // printed with few digits
}

NcclLog parse_nccl_log(const std::string& file, std::string_view text,
                       const NcclLogOptions& options) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    return parse_nccl_json(file, text, options);
  }
  LogParser parser(file, options);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    parser.read(text.substr(0, end + 1 - (text[end] == '\n' ? 1 : 0)));
    text.remove_prefix(end + 1);
  }
  return parser.finish();
}

}  // namespace lockstep
