#include "sim/measured/recordings.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_file.hpp"
#include "sim/measured/nsys_ranks.hpp"
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
    const auto same = std::ranges::find(out.ranks, rank);
    if (same != out.ranks.end()) {
      const auto index = static_cast<std::size_t>(same - out.ranks.begin());
      lockstep::fail_trace(
          file, fmt::format("rank {}", rank),
          fmt::format("each rank once; {} is of the same rank", out.recordings[index].file));
    }
    out.ranks.push_back(rank);
    out.recordings.push_back(std::move(recording));
  };
  std::vector<NsysExport> exports;
  for (const std::string& file : files) {
    if (is_sqlite(file)) {
      exports.push_back(read_nsys_export(file, with_host ? NsysHost::all : NsysHost::launchers));
    }
  }
  out.rank_note = place_nsys_ranks(exports);
  auto next = exports.begin();
  for (const std::string& file : files) {
    if (next != exports.end() && next->file == file) {
      for (NsysGpu& gpu : next->gpus) keep(file, std::move(gpu.recording));
      ++next;
      continue;
    }
    const std::string text = read_maybe_gzip(file, kRecordingLimit);
    if (recognise_trace(text) != TraceFormat::kineto) {
      lockstep::fail_trace(file, "no trace of the PyTorch profiler",
                           "Kineto's Chrome trace (export_chrome_trace), one file a rank, or an "
                           "SQLite export of Nsight Systems");
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
