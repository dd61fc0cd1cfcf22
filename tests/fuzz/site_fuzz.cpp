// Fuzz target: whatever bytes a site's own files have, each reader of them gives what its header
// says or an InputError of one line: tables of sacct, squeue and sacctmgr, slurm.conf and
// topology.conf, Kueue's objects, nodes and pods of a published cluster, hours of tariffs and
// weather, a recorded schedule.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/power/hourly.hpp"
#include "sim/cluster/recorded_schedule.hpp"
#include "sim/scenario/hourly_file.hpp"
#include "sim/scenario/kueue_objects.hpp"
#include "sim/scenario/openb_trace.hpp"
#include "sim/scenario/slurm_records.hpp"
#include "sim/scenario/slurm_site.hpp"

namespace {

using namespace lockstep;

void require(bool holds) {
  if (!holds) std::abort();
}

/// What is told of lines that do not act is a line each.
void require_lines(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) require(note.find('\n') == std::string::npos);
}

void require_records(const std::vector<SlurmRecord>& records) {
  for (const SlurmRecord& record : records) {
    require(record.gpus >= 0 && record.cpus >= 0 && record.array_limit >= 0);
    for (const double time : {record.submit, record.start, record.end, record.limit}) {
      require(std::isfinite(time));
    }
  }
}

void sacct(std::string_view text) {
  std::vector<std::string> notes;
  require_records(read_sacct("fuzz.txt", text, notes));
  require_lines(notes);
}
void squeue(std::string_view text) {
  std::vector<std::string> notes;
  require_records(read_squeue("fuzz.json", text, notes));
  require_lines(notes);
}
void slurm_conf(std::string_view text) {
  std::vector<std::string> notes;
  (void)read_slurm_conf("slurm.conf", text, notes);
  (void)read_slurm_leaves("topology.conf", text, notes);
  require_lines(notes);
}
void sacctmgr(std::string_view text) {
  std::vector<std::string> notes;
  (void)read_sacctmgr_dump("fuzz.cfg", text, notes);
  require_lines(notes);
}
void sacctmgr_qos(std::string_view text) { (void)read_sacctmgr_qos("fuzz.txt", text); }
void kueue(std::string_view text) {
  std::vector<std::string> notes;
  (void)read_kueue_objects("fuzz.yaml", text, notes);
  require_lines(notes);
}
void openb_nodes(std::string_view text) {
  std::vector<NodeShape> nodes;
  read_openb_nodes("fuzz.csv", text, nodes);
  unite_shapes(nodes);
}
void openb_pods(std::string_view text) {
  std::vector<PodShape> pods;
  read_openb_pods("fuzz.csv", text, pods);
  unite_shapes(pods);
}
void hourly(std::string_view text) {
  constexpr double kMost = 100;
  const HourlySeries series = parse_hourly("fuzz.csv", text, kMost);
  require(!series.values.empty());
  for (const double value : series.values) require(value >= 0 && value <= kMost);
  require(series.integral(Seconds{0}, Seconds{1e6}) >= 0);
}
void hourly_file(std::string_view text) {
  const HourlyFile file = read_hourly_file("fuzz.csv", text);
  require(file.times.size() == file.hours.size());
}
void schedule(std::string_view text) {
  for (const auto& [job, runs] : read_recorded_schedule("fuzz.csv", text)) {
    for (const JobRun& run : runs) require(std::isfinite(run.start_s) && std::isfinite(run.end_s));
  }
}

constexpr void (*kReaders[])(std::string_view) = {sacct,       squeue,      slurm_conf,  sacctmgr,
                                                  kueue,       openb_nodes, openb_pods,  hourly,
                                                  hourly_file, schedule,    sacctmgr_qos};

}  // namespace

// The first byte names a reader: 'a' the first of kReaders.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t reader = (data[0] >= 'a' ? data[0] - std::size_t{'a'} : data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    kReaders[reader % std::size(kReaders)](text);
  } catch (const InputError& error) {
    const std::string_view line = error.what();
    require(!line.empty() && line.find('\n') == std::string_view::npos);
  }
  return 0;
}
