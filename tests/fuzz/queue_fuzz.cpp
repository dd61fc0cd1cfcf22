// Fuzz target: whatever bytes a trace of jobs has, as CSV and in the Standard Workload Format,
// reading it gives jobs or an InputError of one line; and what it gives can be simulated for a
// while.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "sim/scenario/queue_trace.hpp"

namespace {

constexpr int kNodes = 4, kGpus = 8;

void read_and_simulate(std::string_view text, const lockstep::JobTrace& trace) {
  lockstep::QueueSpec spec;
  spec.file = "fuzz.json";
  spec.cluster.nodes = kNodes;
  spec.cluster.node.gpus = kGpus;
  spec.admission = lockstep::QueueAdmission::easy;
  const auto at = lockstep::JsonCursor::parse("fuzz.json", "{}");
  try {
    lockstep::read_trace_text(at, "fuzz.csv", text, trace, spec);
  } catch (const lockstep::InputError& error) {
    const std::string_view line = error.what();
    if (line.find('\n') != std::string_view::npos || line.empty()) std::abort();
    return;
  }
  std::erase_if(spec.jobs, [](const lockstep::QueueJob& job) { return job.gpus > kNodes * kGpus; });
  spec.names.clear();
  spec.recorded.clear();
  std::ranges::stable_sort(spec.jobs, {}, &lockstep::QueueJob::submit);
  if (!spec.jobs.empty()) (void)lockstep::simulate_queue(spec);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  lockstep::JobTrace csv;
  csv.file = "fuzz.csv";
  csv.limit = lockstep::TimeColumn{.column = "limit_min"};
  read_and_simulate(text, csv);
  csv.limit.reset();
  csv.start = lockstep::TimeColumn{.column = "start_s"};
  csv.nodes = "nodes";
  read_and_simulate(text, csv);
  csv.start.reset();
  csv.nodes.clear();
  read_and_simulate(text, csv);
  lockstep::JobTrace swf;
  swf.file = "fuzz.swf";
  read_and_simulate(text, swf);
  return 0;
}
