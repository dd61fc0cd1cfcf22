#include "sim/measured/telemetry_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <span>
#include <utility>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "models/base/letter_case.hpp"
#include "models/base/trimmed.hpp"
#include "sim/measured/telemetry_rows.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kTelemetryForms =
    "a log of nvidia-smi --query-gpu with its header, of nvidia-smi dmon, dcgmi dmon or amd-smi "
    "monitor, what nvidia-smi -q prints, CSV of amd-smi, rocm-smi or fields of DCGM, JSON of "
    "amd-smi, or metrics of an exporter of Prometheus, with power or clock in it";

enum class LogColumn : std::uint8_t {
  other,
  power,
  instant_power,
  clock,
  graphics_clock,
  max_clock,
  utilisation,
  reasons,
  gpu,
  gpu_uuid,
  card,
  host,
  device,
  time,
  field,
  value,
};
struct LogColumnName {
  std::string_view name;  ///< lower case, without a unit
  LogColumn column;
};
constexpr std::array kLogColumns{
    LogColumnName{"power.draw", LogColumn::power},
    LogColumnName{"power.draw.average", LogColumn::power},
    LogColumnName{"dcgm_fi_dev_power_usage", LogColumn::power},
    LogColumnName{"power", LogColumn::power},
    LogColumnName{"power_usage", LogColumn::power},
    LogColumnName{"socket_power", LogColumn::power},
    LogColumnName{"current_socket_power", LogColumn::power},
    LogColumnName{"average_socket_power", LogColumn::power},
    LogColumnName{"average graphics package power (w)", LogColumn::power},
    LogColumnName{"current socket graphics package power (w)", LogColumn::power},
    LogColumnName{"pwr", LogColumn::power},
    LogColumnName{"power.draw.instant", LogColumn::instant_power},
    LogColumnName{"dcgm_fi_dev_power_usage_instant", LogColumn::instant_power},
    LogColumnName{"clocks.current.sm", LogColumn::clock},
    LogColumnName{"clocks.sm", LogColumn::clock},
    LogColumnName{"dcgm_fi_dev_sm_clock", LogColumn::clock},
    LogColumnName{"smclk", LogColumn::clock},
    LogColumnName{"pclk", LogColumn::graphics_clock},
    LogColumnName{"clocks.current.graphics", LogColumn::graphics_clock},
    LogColumnName{"clocks.gr", LogColumn::graphics_clock},
    LogColumnName{"gfx_clk", LogColumn::graphics_clock},
    LogColumnName{"gfx_clock", LogColumn::graphics_clock},
    LogColumnName{"gfx_0_clk", LogColumn::graphics_clock},
    LogColumnName{"sclk clock speed:", LogColumn::graphics_clock},
    LogColumnName{"clocks.max.sm", LogColumn::max_clock},
    LogColumnName{"dcgm_fi_dev_max_sm_clock", LogColumn::max_clock},
    LogColumnName{"gfx_0_max_clk", LogColumn::max_clock},
    LogColumnName{"utilization.gpu", LogColumn::utilisation},
    LogColumnName{"dcgm_fi_dev_gpu_util", LogColumn::utilisation},
    LogColumnName{"gputl", LogColumn::utilisation},
    LogColumnName{"sm", LogColumn::utilisation},
    LogColumnName{"gfx", LogColumn::utilisation},
    LogColumnName{"gfx%", LogColumn::utilisation},
    LogColumnName{"gfx_activity", LogColumn::utilisation},
    LogColumnName{"gpu use (%)", LogColumn::utilisation},
    LogColumnName{"clocks_throttle_reasons.active", LogColumn::reasons},
    LogColumnName{"clocks_event_reasons.active", LogColumn::reasons},
    LogColumnName{"dcgm_fi_dev_clock_throttle_reasons", LogColumn::reasons},
    LogColumnName{"dcgm_fi_dev_clocks_event_reasons", LogColumn::reasons},
    LogColumnName{"index", LogColumn::gpu},
    LogColumnName{"gpu", LogColumn::gpu},
    LogColumnName{"gpu_id", LogColumn::gpu},
    LogColumnName{"entity", LogColumn::gpu},
    LogColumnName{"device", LogColumn::card},
    LogColumnName{"uuid", LogColumn::gpu_uuid},
    LogColumnName{"gpu_uuid", LogColumn::gpu_uuid},
    LogColumnName{"pci.bus_id", LogColumn::gpu_uuid},
    LogColumnName{"hostname", LogColumn::host},
    LogColumnName{"host", LogColumn::host},
    LogColumnName{"node", LogColumn::host},
    LogColumnName{"instance", LogColumn::host},
    LogColumnName{"name", LogColumn::device},
    LogColumnName{"gpu_name", LogColumn::device},
    LogColumnName{"modelname", LogColumn::device},
    LogColumnName{"card series", LogColumn::device},
    LogColumnName{"timestamp", LogColumn::time},
    LogColumnName{"time", LogColumn::time},
    LogColumnName{"metric", LogColumn::field},
    LogColumnName{"metric_name", LogColumn::field},
    LogColumnName{"field", LogColumn::field},
    LogColumnName{"field_name", LogColumn::field},
    LogColumnName{"value", LogColumn::value},
};

LogColumn log_column(std::string_view cell) {
  const std::string name = lowered(trimmed(cell.substr(0, cell.find('['))));
  const auto* const found = std::ranges::find(kLogColumns, name, &LogColumnName::name);
  return found == kLogColumns.end() ? LogColumn::other : found->column;
}

/// The number at the beginning, whatever unit is behind it; rocm-smi has clocks in brackets.
std::optional<double> log_number(std::string_view cell) {
  std::string_view text = trimmed(cell);
  if (text.starts_with('(')) text.remove_prefix(1);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr double kMost = 1e15;
  if (error != std::errc{} || !(value >= 0 && value <= kMost)) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> log_bits(std::string_view cell) {
  std::string_view text = trimmed(cell);
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

/// Collects rows under columns that are known.
class TelemetryReader {
 public:
  explicit TelemetryReader(std::span<const std::string> heading) {
    for (const std::string& cell : heading) columns_.push_back(log_column(cell));
    // The clock of the SMs is better than that of the graphics part, an average of power better
    // than an instant.
    drop_beside(LogColumn::graphics_clock, LogColumn::clock);
    log_.instant = has(LogColumn::instant_power) && !has(LogColumn::power);
    drop_beside(LogColumn::instant_power, LogColumn::power);
    long_ = has(LogColumn::field) && has(LogColumn::value);
  }
  [[nodiscard]] bool has(LogColumn column) const {
    return std::ranges::find(columns_, column) != columns_.end();
  }
  [[nodiscard]] bool tells() const {
    return long_ || has(LogColumn::power) || has(LogColumn::instant_power) ||
           has(LogColumn::clock) || has(LogColumn::graphics_clock);
  }
  [[nodiscard]] std::size_t columns() const { return columns_.size(); }

  void add(std::span<const std::string> cells) {
    TelemetryGpu& gpu = gpu_of(cells);
    if (log_.device.empty()) log_.device = text_of(cells, LogColumn::device);
    if (long_) {
      add_value(cells, gpu);
      return;
    }
    note_time(cells);
    TelemetrySample& sample = gpu.samples.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) put(columns_[i], cells[i], sample);
  }
  /// Rows of several GPUs which no column tells apart.
  [[nodiscard]] bool mixes_gpus() const { return mixes_; }
  TelemetryLog take() {
    for (TelemetryGpu& gpu : log_.gpus) {
      std::erase_if(gpu.samples,
                    [](const TelemetrySample& s) { return !s.power_w && !s.clock_mhz; });
    }
    std::erase_if(log_.gpus, [](const TelemetryGpu& gpu) { return gpu.samples.empty(); });
    return std::move(log_);
  }

 private:
  void drop_beside(LogColumn worse, LogColumn better) {
    if (has(better)) std::ranges::replace(columns_, worse, LogColumn::other);
  }
  [[nodiscard]] std::string text_of(std::span<const std::string> cells, LogColumn column) const {
    const auto at = std::ranges::find(columns_, column);
    if (at == columns_.end()) return {};
    return std::string(trimmed(cells[static_cast<std::size_t>(at - columns_.begin())]));
  }
  TelemetryGpu& gpu_of(std::span<const std::string> cells) {
    std::string number = text_of(cells, LogColumn::gpu);
    if (number.empty()) number = text_of(cells, LogColumn::gpu_uuid);
    if (number.empty()) number = rocm_card(text_of(cells, LogColumn::card));
    const std::string host = text_of(cells, LogColumn::host);
    const auto [at, added] = index_.try_emplace({host, number}, log_.gpus.size());
    if (added) {
      log_.gpus.push_back({.name = fmt::format("{}{}GPU{}{}", host, host.empty() ? "" : " ",
                                               number.empty() ? "" : " ", number),
                           .samples = {}});
    }
    return log_.gpus[at->second];
  }
  /// "card3", as rocm-smi numbers them; other devices are none.
  static std::string rocm_card(const std::string& device) {
    constexpr std::string_view kCard = "card";
    return device.starts_with(kCard) ? device.substr(kCard.size()) : std::string();
  }
  /// A monitor stamps the rows of one look at all GPUs at once, or a few milliseconds apart.
  void note_time(std::span<const std::string> cells) {
    if (has(LogColumn::gpu) || has(LogColumn::gpu_uuid)) return;
    const std::string time = text_of(cells, LogColumn::time);
    const std::string at = text_of(cells, LogColumn::host) + time.substr(0, time.rfind('.'));
    const std::size_t dot = time.rfind('.');
    const double part =
        dot == std::string::npos ? 0 : log_number("0" + time.substr(dot)).value_or(0);
    constexpr double kOneLook = 0.02;  // seconds
    if (!time.empty() && at == last_time_ && std::abs(part - last_part_) < kOneLook) mixes_ = true;
    last_time_ = at;
    last_part_ = part;
  }
  /// A row of a time, a field and its value: those of one time are a sample. Without times the
  /// k-th row of each field is of the k-th sample.
  void add_value(std::span<const std::string> cells, TelemetryGpu& gpu) {
    const LogColumn column = log_column(text_of(cells, LogColumn::field));
    if (column == LogColumn::instant_power) log_.instant = true;
    const auto of_gpu = &gpu - log_.gpus.data();
    const std::string time = has(LogColumn::time)
                                 ? text_of(cells, LogColumn::time)
                                 : std::to_string(rows_of_field_[{of_gpu, column}]++);
    const auto key = std::pair(of_gpu, time);
    const auto [at, added] = at_time_.try_emplace(key, gpu.samples.size());
    if (added) gpu.samples.emplace_back();
    put(column, text_of(cells, LogColumn::value), gpu.samples[at->second]);
  }
  void put(LogColumn column, std::string_view cell, TelemetrySample& sample) {
    constexpr double kPercent = 0.01;
    const std::optional<double> number = log_number(cell);
    if (column == LogColumn::reasons) sample.reasons = log_bits(cell);
    if (!number) return;
    switch (column) {
      case LogColumn::power:
      case LogColumn::instant_power:
        sample.power_w = number;
        break;
      case LogColumn::clock:
      case LogColumn::graphics_clock:
        sample.clock_mhz = number;
        break;
      case LogColumn::max_clock:
        log_.max_clock_mhz = std::max(log_.max_clock_mhz.value_or(0), *number);
        break;
      case LogColumn::utilisation:
        // Whatever is above 100 % is no share of the time.
        if (*number * kPercent <= 1) sample.utilisation = *number * kPercent;
        break;
      default:
        break;
    }
  }

  std::vector<LogColumn> columns_;
  bool long_ = false;
  bool mixes_ = false;
  std::string last_time_;  ///< of the row before, but for a fraction of a second
  double last_part_ = 0;
  TelemetryLog log_;
  std::map<std::pair<std::ptrdiff_t, LogColumn>, std::size_t> rows_of_field_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
  std::map<std::pair<std::ptrdiff_t, std::string>, std::size_t> at_time_;
};

/// Words between blanks; `dmon --format csv` has a comma behind each.
std::vector<std::string> log_words(std::string_view line) {
  std::vector<std::string> out;
  while (!(line = trimmed(line)).empty()) {
    const std::size_t end = std::min(line.find_first_of(" \t,"), line.size());
    if (end > 0) out.emplace_back(line.substr(0, end));
    if (end < line.size() && line[end] == ',') line.remove_prefix(1);
    line.remove_prefix(end);
  }
  return out;
}

[[noreturn]] void refuse_telemetry(const std::string& file, const std::string& found) {
  throw InputError({.file = file,
                    .pointer = {},
                    .found = found,
                    .allowed = std::string(kTelemetryForms),
                    .nearest = {}});
}

/// Tables of dmon: headers begin with '#' and come again and again; a line of units follows them.
TelemetryLog read_dmon(const std::string& file, std::string_view text) {
  std::optional<TelemetryReader> reader;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('#')) {
      line.remove_prefix(1);
      if (!reader) reader.emplace(log_words(line));
      continue;
    }
    std::vector<std::string> words = log_words(line);
    if (!reader || words.empty()) continue;
    // "GPU 0": an entity of DCGM's in two words.
    if (words.size() == reader->columns() + 1 && words.front() == "GPU") {
      words.erase(words.begin());
    }
    if (words.size() == reader->columns() && log_number(words.front())) reader->add(words);
  }
  if (!reader || !reader->tells()) refuse_telemetry(file, "no column of power or clock");
  return reader->take();
}

/// Words of a line without the units that amd-smi writes behind its numbers.
std::vector<std::string> words_without_units(std::string_view line) {
  constexpr std::string_view kDegrees = "\xC2\xB0\x43";
  constexpr std::array<std::string_view, 9> kUnits{"W",  "MHz", "%",    "C",   kDegrees,
                                                   "GB", "MB",  "KB/s", "Mb/s"};
  std::vector<std::string> words = log_words(line);
  std::erase_if(words, [&](const std::string& word) {
    return std::ranges::find(kUnits, std::string_view(word)) != kUnits.end();
  });
  return words;
}

/// Whether the text begins with the titles of `amd-smi monitor`.
bool is_amd_monitor(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  const std::vector<std::string> words =
      log_words(text.substr(first, text.find('\n', first) - first));
  const auto has = [&](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  return has("GPU") && (has("POWER") || has("GFX_CLK") || has("GFX_CLOCK"));
}

/// Tables of `amd-smi monitor`, whose titles come again with each look.
TelemetryLog read_amd_monitor(const std::string& file, std::string_view text) {
  std::optional<TelemetryReader> reader;
  std::vector<std::string> titles;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string> words = words_without_units(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty() || words == titles) continue;
    if (!reader) {
      titles = words;
      reader.emplace(titles);
    } else if (words.size() == reader->columns()) {
      reader->add(words);
    }
  }
  if (!reader || !reader->tells()) refuse_telemetry(file, "no column of power or clock");
  return reader->take();
}

TelemetryLog read_telemetry_csv(const std::string& file, std::string_view text) {
  // A log that somebody stopped ends within a line.
  if (!text.ends_with('\n')) text = text.substr(0, text.rfind('\n') + 1);
  std::optional<TelemetryReader> reader;
  std::vector<std::string> titles;
  read_csv(
      file, text,
      [&](std::span<const std::string> heading) {
        titles.assign(heading.begin(), heading.end());
        reader.emplace(heading);
        if (!reader->tells()) refuse_telemetry(file, "no column of power or clock");
      },
      [&](std::size_t, std::span<const std::string> cells) {
        if (!std::ranges::equal(cells, titles)) reader->add(cells);  // a log that was begun anew
      });
  if (reader->mixes_gpus()) {
    throw InputError(
        {.file = file,
         .pointer = {},
         .found = "several rows of one time, and no column that tells GPUs apart",
         .allowed = "a column index or uuid, as nvidia-smi --query-gpu=index,... gives",
         .nearest = {}});
  }
  return reader->take();
}

/// Whether a sample of Prometheus has a value: "NaN" says that there was none. Throws InputError
/// for what is no number that power, a clock or a share can have.
bool has_value(const std::string& file, const TelemetryRow& row) {
  if (row.value == "NaN") return false;
  const std::string_view text = row.value;
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && stop == text.data() + text.size() && log_number(text)) return true;
  const bool pointer = row.place.starts_with('/');
  throw InputError(
      {.file = file,
       .pointer = pointer ? row.place : std::string(),
       .found = pointer ? in_quotes(text)
                        : fmt::format("{} of {} in {}", in_quotes(text), row.field, row.place),
       .allowed = "a number of at least 0, or NaN for a sample that is missing",
       .nearest = {}});
}

TelemetryLog read_telemetry_rows(const std::string& file, const std::vector<TelemetryRow>& rows) {
  const std::vector<std::string> heading{"time", "host", "gpu", "field", "value", "gpu_name"};
  TelemetryReader reader(heading);
  bool tells = false;
  std::size_t missing = 0;
  for (const TelemetryRow& row : rows) {
    const LogColumn column = log_column(row.field);
    if (column == LogColumn::other) continue;
    const bool counts = column == LogColumn::power || column == LogColumn::instant_power ||
                        column == LogColumn::clock || column == LogColumn::graphics_clock;
    tells = tells || counts;
    if (!row.place.empty() && !has_value(file, row)) {
      ++missing;
      continue;
    }
    reader.add(std::vector{row.time, row.host, row.gpu, row.field, row.value, row.device});
  }
  if (!tells) refuse_telemetry(file, "no metric of power or clock");
  TelemetryLog out = reader.take();
  out.missing = missing;
  return out;
}

}  // namespace

TelemetryLog read_telemetry(const std::string& file, std::string_view text) {
  const bool dmon =
      text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size())).starts_with('#');
  const bool json = is_telemetry_json(text);
  TelemetryLog out = json ? read_telemetry_rows(file, telemetry_rows_of_json(file, text))
                     : is_telemetry_exposition(text)
                         ? read_telemetry_rows(file, telemetry_rows_of_exposition(file, text))
                     : is_nvidia_query(text)
                         ? read_telemetry_rows(file, telemetry_rows_of_nvidia_query(text))
                     : dmon                 ? read_dmon(file, text)
                     : is_amd_monitor(text) ? read_amd_monitor(file, text)
                                            : read_telemetry_csv(file, text);
  if (out.gpus.empty()) refuse_telemetry(file, "no sample of power or clock");
  return out;
}

}  // namespace lockstep
