/// Logs of GPUs that are no tables, as rows of one value each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A value of one field of a GPU at one time. Text, as the log has it.
struct TelemetryRow {
  std::string time;  ///< of logs without times: the number of the look, from 0
  std::string host, gpu, field, value;
  std::string device;  ///< the card, where the log names it
  std::string place;  ///< of Prometheus' samples, whose value is a number: "line 7", a JSON pointer
};

/// Whether the text begins as JSON does.
bool is_telemetry_json(std::string_view text);
/// JSON of `amd-smi metric --json` and `amd-smi monitor --json`, one look or several behind each
/// other, and of Prometheus' queries (/api/v1/query and query_range). Throws InputError for
/// another, for a text that ends within a value and for a series or a point that is none.
std::vector<TelemetryRow> telemetry_rows_of_json(const std::string& file, std::string_view text);

/// Whether the text has samples as Prometheus' exporters write them: `NAME{LABEL="..."} VALUE`.
bool is_telemetry_exposition(std::string_view text);
/// Such samples, of one scrape or several: of NVIDIA's dcgm-exporter, AMD's device metrics exporter
/// and nvidia_gpu_exporter. Throws InputError for a sample of theirs without a value and for a text
/// whose last line has no end, which a scrape always has (or "# EOF").
std::vector<TelemetryRow> telemetry_rows_of_exposition(const std::string& file,
                                                       std::string_view text);

/// Whether the text is what `nvidia-smi -q` prints.
bool is_nvidia_query(std::string_view text);
std::vector<TelemetryRow> telemetry_rows_of_nvidia_query(std::string_view text);

}  // namespace lockstep
