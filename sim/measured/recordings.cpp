#include "sim/measured/recordings.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_file.hpp"
#include "sim/measured/nsys_recording.hpp"
#include "sim/measured/sqlite_report.hpp"
#include "sim/trace/formats/read_kineto.hpp"
#include "sim/trace/formats/read_trace.hpp"
#include "sim/trace/pytorch/launching_operators.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {

constexpr std::size_t kRecordingLimit = std::size_t{4} << 30;

StepRecordings read_step_recordings(const std::vector<std::string>& files, const StepRequest& step,
                                    bool with_host) {
  StepRecordings out;
  const auto keep = [&](const std::string& file, KinetoRecording recording) {
    const int rank = kineto_rank(recording, kineto_rank_in_name(file, files.size() == 1));
    if (std::ranges::find(out.ranks, rank) != out.ranks.end()) {
      lockstep::fail_trace(file, fmt::format("rank {}", rank), "each rank once");
    }
    out.ranks.push_back(rank);
    out.recordings.push_back(std::move(recording));
  };
  for (const std::string& file : files) {
    if (!with_host && is_sqlite(file)) {
      for (KinetoRecording& each : read_nsys_recordings(file, true)) keep(file, std::move(each));
      continue;
    }
    const std::string text = read_maybe_gzip(file, kRecordingLimit);
    if (recognise_trace(text) != TraceFormat::kineto) {
      lockstep::fail_trace(file, "no trace of the PyTorch profiler",
                           "Kineto's Chrome trace (export_chrome_trace), one file a rank");
    }
    KinetoRecording read = read_kineto_recording(file, text, true);
    if (!with_host) {
      find_launchers(read);
      forget_host(read);
    }
    keep(file, std::move(read));
  }
  out.note = cut_to_step(out.recordings, step);
  return out;
}

}  // namespace lockstep
