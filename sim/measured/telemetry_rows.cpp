#include "sim/measured/telemetry_rows.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_text.hpp"
#include "models/base/trimmed.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// What exporters call the fields of DCGM, and how many of theirs are one of it.
struct ExportedMetric {
  std::string_view name, field;
  double factor;
};
constexpr double kPerMega = 1e-6, kPercentOfOne = 100;
constexpr std::array kExportedMetrics{
    ExportedMetric{"nvidia_smi_power_draw_watts", "power.draw", 1},
    ExportedMetric{"nvidia_smi_clocks_current_sm_clock_hz", "clocks.sm", kPerMega},
    ExportedMetric{"nvidia_smi_clocks_max_sm_clock_hz", "clocks.max.sm", kPerMega},
    ExportedMetric{"nvidia_smi_utilization_gpu_ratio", "utilization.gpu", kPercentOfOne},
    ExportedMetric{"gpu_package_power", "socket_power", 1},
    ExportedMetric{"gpu_average_package_power", "socket_power", 1},
    ExportedMetric{"amd_gpu_package_power", "socket_power", 1},
    ExportedMetric{"gpu_clock", "gfx_clk", 1},
    ExportedMetric{"amd_gpu_clock", "gfx_clk", 1},
    ExportedMetric{"gpu_gfx_activity", "gfx_activity", 1},
    ExportedMetric{"amd_gpu_gfx_activity", "gfx_activity", 1},
};

/// Counts the looks of a log without times.
class Looks {
 public:
  std::string next(const TelemetryRow& row, const std::string& detail = {}) {
    return std::to_string(
        seen_[fmt::format("{}\n{}\n{}\n{}", row.host, row.gpu, row.field, detail)]++);
  }

 private:
  std::map<std::string, int> seen_;
};

using Labels = std::map<std::string, std::string, std::less<>>;

std::string label(const Labels& labels, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = labels.find(name);
    if (found != labels.end() && !found->second.empty()) return found->second;
  }
  return {};
}

/// A sample of a metric; false: it is of another clock than that of the products, or of a part of a
/// GPU (MIG).
bool fill_row(const std::string& name, const Labels& labels, const std::string& value,
              TelemetryRow& row) {
  row.host = label(labels, {"Hostname", "hostname", "node", "instance", "kubernetes_node"});
  row.gpu = label(labels, {"gpu", "gpu_id", "UUID", "uuid", "device"});
  row.device = label(labels, {"modelName", "card_model", "card_series", "name"});
  row.field = name;
  row.value = value;
  const std::string kind = label(labels, {"clock_type"});
  if (!kind.empty() && kind.find("SYSTEM") == std::string::npos) return false;
  const auto* const known = std::ranges::find(kExportedMetrics, name, &ExportedMetric::name);
  if (known == kExportedMetrics.end()) return true;
  row.field = known->field;
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error == std::errc{} && stop == end) row.value = fmt::format("{}", number * known->factor);
  return true;
}

[[noreturn]] void refuse_rows(const std::string& file, const std::string& found) {
  throw InputError({.file = file,
                    .pointer = {},
                    .found = found,
                    .allowed = "JSON of amd-smi metric or monitor, or of a query of Prometheus",
                    .nearest = {}});
}

[[noreturn]] void refuse_line(const std::string& file, std::string_view line, std::size_t number,
                              std::string allowed) {
  throw InputError({.file = file,
                    .pointer = {},
                    .found = fmt::format("{} in line {}", in_quotes(line), number),
                    .allowed = std::move(allowed),
                    .nearest = {}});
}

/// The values that stand behind each other at the top of a text, none of which may be cut off.
std::vector<std::string_view> json_values(const std::string& file, std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  std::size_t stop = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    stop = i;
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (depth++ == 0) begin = i;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      out.push_back(text.substr(begin, i + 1 - begin));
    }
    if (depth < 0) break;
  }
  if (depth == 0 || out.empty()) return out;
  throw InputError(
      {.file = file,
       .pointer = {},
       .found = depth > 0
                    ? fmt::format("a text that ends within the value that begins at {}",
                                  place_in_text(text, begin))
                    : fmt::format("a bracket that closes nothing at {}", place_in_text(text, stop)),
       .allowed = "whole JSON values behind each other; this file was cut off, or something wrote "
                  "into it",
       .nearest = {}});
}

std::string text_of_json(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return fmt::format("{}", value.get<double>());
  if (value.is_object() && value.contains("value")) return text_of_json(value["value"]);
  return {};
}

/// One GPU of amd-smi. Values stand beside their unit, {"value": 703, "unit": "W"}.
void add_amd_gpu(const Json& gpu, Looks& looks, std::vector<TelemetryRow>& out) {
  TelemetryRow row;
  row.gpu = text_of_json(gpu["gpu"]);
  const std::string time = gpu.contains("timestamp") ? text_of_json(gpu["timestamp"]) : "";
  const auto add = [&](const std::string& field, const Json& value) {
    row.value = text_of_json(value);
    if (row.value.empty()) return;
    row.field = field;
    row.time = time.empty() ? looks.next(row) : time;
    out.push_back(row);
  };
  for (const auto& [key, value] : gpu.items()) {
    add(key, value);
    const bool section = key == "power" || key == "usage" || key == "clock";
    if (!section || !value.is_object()) continue;
    for (const auto& [field, inner] : value.items()) {
      add(field, inner);
      if (key != "clock" || !inner.is_object()) continue;  // gfx_0: clk, max_clk, ...
      for (const auto& [part, number] : inner.items())
        add(fmt::format("{}_{}", field, part), number);
    }
  }
}

/// Looks at all GPUs, at whatever depth they stand: amd-smi puts them into a list, into "gpu_data",
/// and lists of looks into a list of lists.
void add_amd(const Json& value, int depth, Looks& looks, std::vector<TelemetryRow>& out) {
  constexpr int kDeepest = 4;
  if (depth > kDeepest) return;
  if (value.is_object() && value.contains("gpu")) {
    add_amd_gpu(value, looks, out);
  } else if (value.is_array() || value.is_object()) {
    for (const Json& one : value) add_amd(one, depth + 1, looks, out);
  }
}

[[noreturn]] void refuse_part(const std::string& file, const std::string& pointer,
                              const Json& found, std::string allowed) {
  throw InputError({.file = file,
                    .pointer = pointer,
                    .found = in_quotes(write_json(found)),
                    .allowed = std::move(allowed),
                    .nearest = {}});
}

/// Rows of {"metric": {...}, "values": [[time, "value"], ...]}.
void add_prometheus(const std::string& file, const Json& result, std::vector<TelemetryRow>& out) {
  constexpr std::string_view kResult = "/data/result";
  if (!result.is_array()) refuse_part(file, std::string(kResult), result, "a list of series");
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Json& series = result[i];
    const std::string at = fmt::format("{}/{}", kResult, i);
    if (!series.is_object() || !series.contains("metric") || !series["metric"].is_object()) {
      refuse_part(file, at, series, "a series, with its labels as \"metric\"");
    }
    Labels labels;
    for (const auto& [key, value] : series["metric"].items()) labels[key] = text_of_json(value);
    const auto add = [&](const Json& point, const std::string& pointer) {
      if (!point.is_array() || point.size() != 2) {
        refuse_part(file, pointer, point, "[time, \"value\"]");
      }
      TelemetryRow row;
      // A number without quotes, which others than Prometheus write, is one too.
      const std::string value =
          point[1].is_string() ? point[1].get<std::string>() : write_json(point[1]);
      if (!fill_row(labels["__name__"], labels, value, row)) return;
      row.time = text_of_json(point[0]);
      row.place = pointer + "/1";
      out.push_back(std::move(row));
    };
    if (series.contains("values")) {
      const Json& values = series["values"];
      if (!values.is_array()) refuse_part(file, at + "/values", values, "a list of points");
      for (std::size_t k = 0; k < values.size(); ++k) {
        add(values[k], fmt::format("{}/values/{}", at, k));
      }
    }
    if (series.contains("value")) add(series["value"], at + "/value");
  }
}

/// What a line of an exporter says: `NAME{a="b",...} VALUE [TIME]`, the labels or none.
struct ExportedSample {
  std::string name, value, time;
  Labels labels;
};

/// Nothing: another line.
std::optional<ExportedSample> split_sample(std::string_view line) {
  ExportedSample out;
  std::size_t at = std::min(line.find_first_of("{ \t"), line.size());
  out.name = line.substr(0, at);
  at = std::min(line.find_first_not_of(" \t", at), line.size());
  if (out.name.empty() || at == line.size()) return std::nullopt;
  if (line[at] == '{') {
    ++at;
    while (at < line.size() && line[at] != '}') {
      const std::size_t equals = line.find("=\"", at);
      if (equals == std::string_view::npos) return std::nullopt;
      const std::string key(trimmed(line.substr(at, equals - at)));
      std::string text;
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) ++at;
        text += line[at];
      }
      out.labels[key] = std::move(text);
      at = std::min(at + 1, line.size());
      while (at < line.size() && (line[at] == ',' || line[at] == ' ')) ++at;
    }
    if (at >= line.size()) return std::nullopt;
    ++at;
  }
  const std::string_view rest = trimmed(line.substr(at));
  const std::size_t blank = std::min(rest.find_first_of(" \t"), rest.size());
  out.value = rest.substr(0, blank);
  out.time = trimmed(rest.substr(blank));
  if (out.value.empty()) return std::nullopt;
  return out;
}

bool is_exported_name(std::string_view name) {
  return name.starts_with("DCGM_FI_") ||
         std::ranges::find(kExportedMetrics, name, &ExportedMetric::name) != kExportedMetrics.end();
}

template <class Use>
void each_line_of(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

bool is_telemetry_json(std::string_view text) {
  const std::string_view begin = trimmed(text);
  if (!begin.starts_with('{') && !begin.starts_with('[')) return false;
  const std::string_view inside = trimmed(begin.substr(1));
  return inside.starts_with('"') || inside.starts_with('{') || inside.starts_with('[') ||
         inside.starts_with('}') || inside.starts_with(']');
}

std::vector<TelemetryRow> telemetry_rows_of_json(const std::string& file, std::string_view text) {
  std::vector<TelemetryRow> out;
  Looks looks;
  const std::vector<std::string_view> values = json_values(file, text);
  if (values.empty()) (void)parse_json_text(file, text);  // which says where it ends
  for (const std::string_view part : values) {
    const Json value = parse_json_text(file, part);
    if (value.is_object() && value.contains("data") && value["data"].is_object() &&
        value["data"].contains("result")) {
      add_prometheus(file, value["data"]["result"], out);
    } else {
      add_amd(value, 0, looks, out);
    }
  }
  if (out.empty()) refuse_rows(file, "no GPU");
  return out;
}

bool is_telemetry_exposition(std::string_view text) {
  bool found = false;
  each_line_of(text, [&](std::string_view line) {
    if (found || line.starts_with('#')) return;
    const std::size_t open = line.find('{');
    const std::string_view name = line.substr(0, open);
    found = open != std::string_view::npos && is_exported_name(name);
  });
  return found;
}

std::vector<TelemetryRow> telemetry_rows_of_exposition(const std::string& file,
                                                       std::string_view text) {
  std::vector<TelemetryRow> out;
  Looks looks;
  std::size_t number = 0;
  std::string_view last;
  each_line_of(text, [&](std::string_view line) {
    ++number;
    line = trimmed(line);
    last = line;
    if (line.starts_with('#')) return;
    std::optional<ExportedSample> sample = split_sample(line);
    if (!sample) {
      if (is_exported_name(line.substr(0, line.find_first_of("{ \t")))) {
        refuse_line(file, line, number, "NAME{LABEL=\"...\"} VALUE");
      }
      return;
    }
    TelemetryRow row;
    if (!fill_row(sample->name, sample->labels, sample->value, row)) return;
    row.time = sample->time.empty() ? looks.next(row, label(sample->labels, {"clock_index"}))
                                    : std::move(sample->time);
    row.place = fmt::format("line {}", number);
    out.push_back(std::move(row));
  });
  if (!text.ends_with('\n') && last != "# EOF") {
    refuse_line(file, last, number,
                "a last line that ends, as exporters write it: this file was cut off");
  }
  return out;
}

bool is_nvidia_query(std::string_view text) {
  return text.find("NVSMI LOG") != std::string_view::npos;
}

std::vector<TelemetryRow> telemetry_rows_of_nvidia_query(std::string_view text) {
  std::vector<TelemetryRow> out;
  Looks looks;
  TelemetryRow row;
  std::string section;
  each_line_of(text, [&](std::string_view line) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t colon = line.find(" : ");
    const std::string_view key = trimmed(line.substr(0, colon));
    if (key.starts_with("GPU ") && indent == 0) row.gpu = key.substr(4);
    if (colon == std::string_view::npos) {
      section = key;
      return;
    }
    const std::string_view value = trimmed(line.substr(colon + 3));
    constexpr std::size_t kSectionIndent = 4;
    if (indent <= kSectionIndent) section.clear();
    if (key == "Product Name") row.device = value;
    // Other sections of power are of the module or of the memory.
    const bool power = section == "GPU Power Readings" || section == "Power Readings";
    if (power && (key == "Power Draw" || key == "Average Power Draw")) {
      row.field = "power.draw";
    } else if (power && key == "Instantaneous Power Draw") {
      row.field = "power.draw.instant";
    } else if (section == "Clocks" && key == "SM") {
      row.field = "clocks.sm";
    } else if (section == "Max Clocks" && key == "SM") {
      row.field = "clocks.max.sm";
    } else if (section == "Utilization" && (key == "Gpu" || key == "GPU")) {
      row.field = "utilization.gpu";
    } else {
      return;
    }
    row.value = value;
    row.time = looks.next(row);
    out.push_back(row);
  });
  // An average beside an instant is the better one.
  const bool average = std::ranges::any_of(out, [](const TelemetryRow& one) {
    return one.field == "power.draw" && !one.value.starts_with("N/A") &&
           !one.value.starts_with("[");
  });
  if (average) {
    std::erase_if(out, [](const TelemetryRow& one) { return one.field == "power.draw.instant"; });
  }
  return out;
}

}  // namespace lockstep
