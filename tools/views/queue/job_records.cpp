#include "tools/views/queue/job_records.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/views/queue/node_names.hpp"

namespace lockstep {
namespace {

constexpr std::time_t kRecordsBegin =
    978'307'200;  // 2001-01-01, a Monday, as weeks of queues begin
constexpr std::int64_t kDaySeconds = 86'400;

std::int64_t whole_seconds(RunTime time) { return std::llround(to_seconds(time).base_units()); }

/// "2001-01-01T00:00:10"; "Unknown" for a time that has not come.
std::string slurm_date(const QueueSpec& spec, RunTime time) {
  if (time < 0) return "Unknown";
  const std::time_t at = kRecordsBegin + whole_seconds(spec.slurm.epoch) + whole_seconds(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(at));
}

/// "1-02:03:04".
std::string slurm_span(std::int64_t seconds) {
  const std::string clock = fmt::format("{:02}:{:02}:{:02}", seconds % kDaySeconds / 3600,
                                        seconds % 3600 / 60, seconds % 60);
  return seconds < kDaySeconds ? clock : fmt::format("{}-{}", seconds / kDaySeconds, clock);
}

/// A name as a cell of a table whose cells are parted by bars.
std::string without_bars(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '|' || static_cast<unsigned char>(c) < 0x20; }, '_');
  return text;
}

/// State of a job that has ended, in sacct's words.
std::string_view sacct_end(const QueueSpec& spec, std::size_t j, const JobOutcome& of) {
  if (of.cancelled >= 0) return of.start >= 0 ? "PREEMPTED" : "CANCELLED";
  if (spec.jobs[j].cut || of.stopped) return "TIMEOUT";
  const JobTerms* const terms = spec.terms_of(j);
  return terms != nullptr && terms->fails ? "FAILED" : "COMPLETED";
}

/// "12" or "12_3".
bool is_sacct_id(std::string_view name) {
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const std::size_t task = name.find('_');
  return is_number(name.substr(0, task)) &&
         (task == std::string_view::npos || is_number(name.substr(task + 1)));
}

/// Whether the names of jobs are ids already, as those of an imported site are.
bool are_ids(const std::vector<std::string>& names, std::size_t jobs) {
  const std::set<std::string_view> distinct(names.begin(), names.end());
  return distinct.size() == jobs && std::ranges::all_of(names, is_sacct_id);
}

/// Names of jobs that are ids; else numbers from 1, in the order of submission, and "12_0" of the
/// tasks of an array, whose number is that of its first one.
std::vector<std::string> sacct_ids(const QueueSpec& spec) {
  if (are_ids(spec.names, spec.jobs.size())) return spec.names;
  std::vector<std::string> out;
  std::unordered_map<std::int32_t, std::pair<std::size_t, int>> arrays;  // first task, tasks
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const JobTerms* const terms = spec.terms_of(j);
    if (terms == nullptr || terms->array < 0) {
      out.push_back(std::to_string(j + 1));
      continue;
    }
    auto& [first, tasks] = arrays.try_emplace(terms->array, j + 1, 0).first->second;
    out.push_back(fmt::format("{}_{}", first, tasks++));
  }
  return out;
}

/// A run of a job, from its start to its end, its preemption or the failure of a node. Times below
/// 0 have not come.
struct RunRow {
  RunTime submit = 0;  ///< of the job; of a later run, when it was requeued
  RunTime start = -1, end = -1;
  RunTime suspended = 0;
  std::string_view state = "PENDING";
  std::vector<int> nodes{};
};

/// The spans of each job that has held GPUs, in their order.
std::unordered_map<std::uint32_t, std::vector<const JobSpan*>> spans_by_job(
    const QueueResult& result) {
  std::unordered_map<std::uint32_t, std::vector<const JobSpan*>> out;
  for (const JobSpan& span : result.spans) out[span.job].push_back(&span);
  for (auto& [job, spans] : out) std::ranges::stable_sort(spans, {}, &JobSpan::begin);
  return out;
}

/// State of a job after a span with which it did not end.
std::string_view sacct_state(SpanEnd how) {
  switch (how) {
    case SpanEnd::preempted:
      return "PREEMPTED";
    case SpanEnd::failed:
      return "NODE_FAIL";
    case SpanEnd::suspended:
      return "SUSPENDED";
    case SpanEnd::open:
    case SpanEnd::moved:
    case SpanEnd::ended:
      break;
  }
  return "RUNNING";
}

/// Runs that have begun.
std::vector<RunRow> runs_of(RunTime submit, const std::vector<const JobSpan*>& spans,
                            RunTime until) {
  std::vector<RunRow> out;
  bool goes_on = false;
  RunTime last_end = 0;
  for (const JobSpan* const span : spans) {
    if (!goes_on) {
      out.push_back({.submit = out.empty() ? submit : last_end, .start = span->begin});
      last_end = span->begin;
    }
    RunRow& run = out.back();
    run.suspended += span->begin - last_end;
    last_end = span->end;
    run.state = sacct_state(span->how);
    run.nodes.clear();
    for (const HeldGpus& held : span->held) run.nodes.push_back(held.node + 1);
    goes_on = span->how == SpanEnd::moved || span->how == SpanEnd::suspended;
    run.end = goes_on || span->how == SpanEnd::open ? -1 : span->end;
  }
  if (goes_on) out.back().suspended += until - last_end;
  return out;
}

/// All runs of a job as `sacct --duplicates` has them, and the row of one that waits again.
std::vector<RunRow> sacct_runs(const QueueAnswer& a, std::size_t j,
                               const std::vector<const JobSpan*>& spans) {
  const JobOutcome& of = a.result.jobs[j];
  std::vector<RunRow> out = runs_of(a.spec.jobs[j].submit, spans, a.result.end);
  const RunTime end = std::max(of.end, of.cancelled);
  const bool waits = out.empty() || (out.back().end >= 0 && out.back().end != end);
  if (waits) {
    const RunTime submit = out.empty() ? a.spec.jobs[j].submit : out.back().end;
    out.push_back({.submit = submit});
  }
  if (end >= 0) {
    out.back().end = end;
    out.back().state = sacct_end(a.spec, j, of);
  }
  return out;
}

/// The name that the user gave the job.
std::string sacct_name(const QueueSpec& spec, std::size_t j) {
  const JobTerms* const terms = spec.terms_of(j);
  const bool said = terms != nullptr && !terms->series.empty();
  return without_bars(said ? terms->series : spec.job_name(j));
}

std::string tres_text(const QueueSpec& spec, const QueueJob& job, int nodes) {
  std::string out = fmt::format("cpu={:.0f},gres/gpu={},node={}",
                                std::ceil(job.gpus * spec.cpus_of_gpu()), job.gpus, nodes);
  for (const LicenseNeed& need : spec.license_sets[job.licenses]) {
    out += fmt::format(",license/{}={}", spec.licenses[need.license].name, need.count);
  }
  return out;
}

/// `job`: job `j`, or a component of it.
std::string sacct_row(const QueueAnswer& a, std::size_t j, const QueueJob& job,
                      const std::string& id, const RunRow& run) {
  const QueueSpec& spec = a.spec;
  const bool started = run.start >= 0;
  const RunTime until = run.end < 0 ? a.result.end : run.end;
  const std::int64_t suspended = whole_seconds(run.suspended);
  const std::int64_t elapsed =
      started ? whole_seconds(until) - whole_seconds(run.start) - suspended : 0;
  const JobTerms* const terms = spec.terms_of(j);
  const RunTime eligible = std::max(run.submit, terms == nullptr ? 0 : terms->begin);
  const int asked = spec.nodes_of(job);
  const int held = are_rented(spec, run.nodes) ? static_cast<int>(run.nodes.size()) : asked;
  const std::string nodes = node_list(spec, run.nodes);
  const std::string row = fmt::format(
      "{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", id, sacct_name(spec, j),
      without_bars(spec.users[job.user]), without_bars(spec.accounts[job.account]),
      without_bars(spec.partitions[job.partition].name), without_bars(spec.qos[job.qos].name),
      run.state, slurm_date(spec, run.submit), slurm_date(spec, eligible),
      slurm_date(spec, run.start), slurm_date(spec, run.end), slurm_span(elapsed),
      slurm_span(whole_seconds(job.limit)), started ? held : 0,
      started ? tres_text(spec, job, held) : std::string(), tres_text(spec, job, asked),
      nodes.empty() ? "None assigned" : nodes);
  return row + (spec.preemption.suspends ? "|" + slurm_span(suspended) : "") + "\n";
}

/// The rows of a heterogeneous job, "12+0" and so on: components have their nodes in their order,
/// and the first has the licences of all.
std::string sacct_rows(const QueueAnswer& a, std::size_t j, const std::string& id,
                       const RunRow& run) {
  const QueueJob& job = a.spec.jobs[j];
  if (job.shape == 0) return sacct_row(a, j, job, id, run);
  std::string out;
  std::size_t from = 0, component = 0;
  for (const JobPart& part : a.spec.shapes[job.shape]) {
    QueueJob of = job;
    of.gpus = part.gpus;
    of.partition = part.partition;
    of.shape = 0;
    if (component > 0) of.licenses = 0;
    RunRow row = run;
    const auto nodes = static_cast<std::size_t>(a.spec.nodes_of(of));
    if (!run.nodes.empty()) {
      const auto first = run.nodes.begin() + static_cast<std::ptrdiff_t>(from);
      row.nodes.assign(first, first + static_cast<std::ptrdiff_t>(nodes));
    }
    from += nodes;
    out += sacct_row(a, j, of, fmt::format("{}+{}", id, component++), row);
  }
  return out;
}

/// Status in SWF: 1 done, 0 failed or stopped by its limit, 5 cancelled, -1 not known yet.
int workload_status(const QueueSpec& spec, std::size_t j, const JobOutcome& of) {
  if (of.cancelled >= 0) return 5;
  if (of.end < 0) return -1;
  return sacct_end(spec, j, of) == "COMPLETED" ? 1 : 0;
}

/// A name's number; -1: not said.
int workload_label(std::uint16_t number) { return number == 0 ? -1 : number; }

std::string workload_heading(const QueueAnswer& a, std::size_t left_out) {
  const QueueSpec& spec = a.spec;
  const std::time_t begin = kRecordsBegin + whole_seconds(spec.slurm.epoch);
  std::string out = fmt::format(
      "; Version: 2.2\n; Computer: {} ({} x {})\n; Note: simulated by lockstep; processors are "
      "GPUs\n; MaxJobs: {}\n; MaxRecords: {}\n; UnixStartTime: {}\n; MaxNodes: {}\n; MaxProcs: "
      "{}\n",
      spec.cluster.node.name, spec.cluster.nodes, spec.cluster.node.gpu.name,
      spec.jobs.size() - left_out, spec.jobs.size() - left_out, begin, spec.cluster.nodes,
      spec.cluster.gpus());
  for (std::size_t p = 1; p < spec.partitions.size(); ++p) {
    out += fmt::format("; Partition: {} {}\n", p, without_bars(spec.partitions[p].name));
  }
  const auto tell = [&out](std::string_view what, const NameTable& names) {
    for (std::size_t n = 1; n < names.size(); ++n) {
      out += fmt::format("; Note: {} {} is {}\n", what, n, without_bars(names[n]));
    }
  };
  tell("user", spec.users);
  tell("group", spec.accounts);
  if (left_out > 0) out += fmt::format("; Note: {} that never started left out\n", left_out);
  return out;
}

}  // namespace

std::string accounting_table(const QueueAnswer& a) {
  const QueueSpec& spec = a.spec;
  const std::vector<std::string> ids = sacct_ids(spec);
  auto spans = spans_by_job(a.result);
  std::string out =
      "JobID|JobName|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|Elapsed|Timelimit|"
      "AllocNodes|AllocTRES|ReqTRES|NodeList";
  out += spec.preemption.suspends ? "|Suspended\n" : "\n";
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    if (spec.jobs[j].submit > a.result.end) break;  // they are in the order of their submission
    for (const RunRow& run : sacct_runs(a, j, spans[static_cast<std::uint32_t>(j)])) {
      out += sacct_rows(a, j, ids[j], run);
    }
  }
  return out;
}

std::string workload_log(const QueueAnswer& a) {
  const QueueSpec& spec = a.spec;
  const auto left_out = static_cast<std::size_t>(
      std::ranges::count_if(a.result.jobs, [](const JobOutcome& of) { return of.start < 0; }));
  std::string out = workload_heading(a, left_out);
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const QueueJob& job = spec.jobs[j];
    const JobOutcome& of = a.result.jobs[j];
    if (of.start < 0) continue;
    const std::int64_t submit = whole_seconds(job.submit);
    const double held = held_seconds(job, of, a.result.end);
    // In order: job, submission, wait, run time, processors, CPU time, memory; processors, time
    // and memory asked for; status, user, group, executable, queue, partition, the job before it
    // and the time from its end.
    out += fmt::format("{} {} {} {} {} -1 -1 {} {} -1 {} {} {} {} {} {} -1 -1\n", j + 1, submit,
                       whole_seconds(of.start) - submit, std::llround(held), job.gpus, job.gpus,
                       whole_seconds(job.limit), workload_status(spec, j, of),
                       workload_label(job.user), workload_label(job.account),
                       workload_label(job.model), workload_label(job.qos),
                       workload_label(job.partition));
  }
  return out;
}

}  // namespace lockstep
