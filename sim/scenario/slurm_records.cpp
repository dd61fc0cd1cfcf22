#include "sim/scenario/slurm_records.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/scenario/named_jobs.hpp"
#include "sim/scenario/slurm_conf.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostNotedRows = 20;

std::vector<std::string> sacct_cells(std::string_view line) {
  std::vector<std::string> out;
  for (;;) {
    const std::size_t bar = line.find('|');
    out.emplace_back(line.substr(0, bar));
    if (bar == std::string_view::npos) return out;
    line.remove_prefix(bar + 1);
  }
}

/// The columns of a table by name; -1: there is none.
class SacctColumns {
 public:
  SacctColumns(const std::string& file, std::vector<std::string> heading)
      : heading_(std::move(heading)) {
    while (!heading_.empty() && heading_.back().empty()) heading_.pop_back();
    for (const char* const needed : {"JobID", "Submit", "Start", "End"}) {
      if (at(needed) < 0) fail(file, needed);
    }
    if (std::max({at("AllocTRES"), at("ReqTRES"), at("AllocGRES"), at("ReqGRES")}) < 0) {
      fail(file, "AllocTRES");
    }
  }
  [[nodiscard]] int at(std::string_view name) const {
    const auto is_it = [&](const std::string& of) { return same_key(of, name); };
    const auto found = std::ranges::find_if(heading_, is_it);
    return found == heading_.end() ? -1 : static_cast<int>(found - heading_.begin());
  }
  [[nodiscard]] std::size_t count() const { return heading_.size(); }

 private:
  [[noreturn]] void fail(const std::string& file, const std::string& needed) const {
    throw InputError({.file = file,
                      .pointer = {},
                      .found = fmt::format("no column {}", in_quotes(needed)),
                      .allowed = "what sacct -P --format=JobID,JobName,User,Account,Partition,QOS,"
                                 "Submit,Eligible,Start,End,Timelimit,AllocTRES,NodeList,State "
                                 "prints, with its heading",
                      .nearest = nearest_name(needed, heading_)});
  }
  std::vector<std::string> heading_;
};

class SacctRow {
 public:
  SacctRow(const SacctColumns& columns, const std::vector<std::string>& cells)
      : columns_(&columns), cells_(&cells) {}
  [[nodiscard]] std::string text(std::string_view name) const {
    const int at = columns_->at(name);
    const bool there = at >= 0 && static_cast<std::size_t>(at) < cells_->size();
    return there ? (*cells_)[static_cast<std::size_t>(at)] : std::string();
  }
  [[nodiscard]] double time(std::string_view name) const {
    return slurm_time(text(name)).value_or(-1);
  }

 private:
  const SacctColumns* columns_;
  const std::vector<std::string>* cells_;
};

/// "license/matlab=2" of a list of TRES, as --licenses has it.
std::string licenses_in(const std::string& tres) {
  constexpr std::string_view kLicense = "license/";
  std::string out;
  for (std::string part : split_list(tres)) {
    if (!part.starts_with(kLicense)) continue;
    part.erase(0, kLicense.size());
    std::ranges::replace(part, '=', ':');
    out += (out.empty() ? "" : ",") + part;
  }
  return out;
}

SlurmRecord record_of(const SacctRow& row) {
  SlurmRecord out;
  out.id = row.text("JobID");
  const std::size_t task = out.id.find('_');
  if (task != std::string::npos) out.array = out.id.substr(0, task);
  out.name = row.text("JobName");
  out.user = row.text("User");
  out.account = row.text("Account");
  out.partition = row.text("Partition");
  out.qos = row.text("QOS");
  out.state = row.text("State");
  out.state = out.state.substr(0, out.state.find(' '));  // CANCELLED by 1000
  out.reservation = row.text("Reservation");
  out.nodes = row.text("NodeList");
  if (out.nodes == "None assigned") out.nodes.clear();
  out.submit = row.time("Submit");
  out.eligible = row.time("Eligible");
  out.start = row.time("Start");
  out.end = row.time("End");
  out.limit = slurm_duration(row.text("Timelimit")).value_or(-1);
  out.suspended = slurm_duration(row.text("Suspended")).value_or(0);
  out.licenses = row.text("Licenses");
  for (const char* const column : {"AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES"}) {
    const std::string tres = row.text(column);
    if (out.licenses.empty()) out.licenses = licenses_in(tres);
    if (out.gpus == 0) out.gpus = gpus_in(tres).value_or(0);
    if (out.cpus == 0) out.cpus = amount_in(tres, "cpu").value_or(0);
  }
  return out;
}

/// "12_[3-7%2]" says of tasks that have not started yet which they are.
std::vector<SlurmRecord> tasks_of(const SlurmRecord& of) {
  const std::size_t open = of.id.find("_[");
  if (open == std::string::npos || !of.id.ends_with(']')) return {of};
  std::string list = of.id.substr(open + 2, of.id.size() - open - 3);
  SlurmRecord task = of;
  if (const std::size_t percent = list.find('%'); percent != std::string::npos) {
    task.array_limit = static_cast<int>(slurm_number(list.substr(percent + 1)).value_or(0));
    list.resize(percent);
  }
  std::vector<SlurmRecord> out;
  constexpr int kMostSacctTasks = 1'000'000;
  for (const std::string& range : split_list(list)) {
    const std::size_t dash = range.find('-');
    const auto first = slurm_number(range.substr(0, dash));
    const auto last = dash == std::string::npos ? first : slurm_number(range.substr(dash + 1));
    if (!first || !last || *last - *first >= kMostSacctTasks) return {of};
    for (auto number = static_cast<int>(*first); number <= static_cast<int>(*last); ++number) {
      task.id = fmt::format("{}_{}", of.array, number);
      out.push_back(task);
    }
  }
  return out;
}

}  // namespace

std::vector<SlurmRecord> read_sacct(const std::string& file, std::string_view text,
                                    std::vector<std::string>& notes) {
  std::optional<SacctColumns> columns;
  std::vector<SlurmRecord> out;
  std::unordered_map<std::string, std::size_t> known;
  std::size_t again = 0, bad = 0;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty()) continue;
    const std::vector<std::string> cells = sacct_cells(row);
    if (!columns) {
      columns.emplace(file, cells);
      continue;
    }
    SlurmRecord record = record_of(SacctRow(*columns, cells));
    if (record.id.find('.') != std::string::npos) continue;  // a step
    if (cells.size() < columns->count() || record.id.empty() || record.submit < 0) {
      if (++bad <= kMostNotedRows) {
        notes.push_back(fmt::format(
            "{}: found a row of {} cells{}; allowed: {} cells, with a job "
            "and when it was submitted; left out",
            csv_place(file, line), cells.size(),
            record.submit < 0 ? " without a time of submission" : "", columns->count()));
      }
      continue;
    }
    const auto [at, is_new] = known.try_emplace(record.id, out.size());
    if (is_new) {
      for (SlurmRecord& task : tasks_of(record)) out.push_back(std::move(task));
    } else {
      ++again;
      record.submit = std::min(record.submit, out[at->second].submit);
      out[at->second] = std::move(record);
    }
  }
  if (!columns) SacctColumns(file, {});
  if (bad > kMostNotedRows) {
    notes.push_back(fmt::format("{}: {} more rows of this kind", file, bad - kMostNotedRows));
  }
  if (again > 0) {
    notes.push_back(fmt::format("{}: {} of jobs that were requeued; the last one of each counts",
                                file, counted(static_cast<double>(again), "row")));
  }
  return out;
}

namespace {

using SqueueValue = nlohmann::json;

/// A number as squeue writes it: bare, or {"set", "infinite", "number"}.
double squeue_number(const SqueueValue& job, const char* key) {
  const auto at = job.find(key);
  if (at == job.end()) return -1;
  if (at->is_number()) return at->get<double>();
  if (!at->is_object() || at->value("infinite", false) || !at->value("set", true)) return -1;
  const auto number = at->find("number");
  return number != at->end() && number->is_number() ? number->get<double>() : -1;
}

std::string squeue_text(const SqueueValue& job, const char* key) {
  const auto at = job.find(key);
  if (at == job.end()) return {};
  if (at->is_string()) return at->get<std::string>();
  if (at->is_array() && !at->empty() && at->front().is_string()) return at->front();
  return {};
}

SlurmRecord record_of(const SqueueValue& job) {
  SlurmRecord out;
  out.id = fmt::format("{:.0f}", squeue_number(job, "job_id"));
  const double array = squeue_number(job, "array_job_id"),
               task = squeue_number(job, "array_task_id");
  if (array > 0) {
    out.array = fmt::format("{:.0f}", array);
    const std::string tasks = squeue_text(job, "array_task_string");
    out.id = task >= 0 ? fmt::format("{}_{:.0f}", out.array, task)
                       : fmt::format("{}_[{}]", out.array, tasks);
    out.array_limit = static_cast<int>(std::max(0.0, squeue_number(job, "array_max_tasks")));
  }
  out.name = squeue_text(job, "name");
  out.user = squeue_text(job, "user_name");
  out.account = squeue_text(job, "account");
  out.partition = squeue_text(job, "partition");
  out.qos = squeue_text(job, "qos");
  out.nodes = squeue_text(job, "nodes");
  out.state = squeue_text(job, "job_state");
  out.reservation = squeue_text(job, "resv_name");
  out.dependency = squeue_text(job, "dependency");
  out.licenses = squeue_text(job, "licenses");
  out.submit = squeue_number(job, "submit_time");
  out.eligible = squeue_number(job, "eligible_time");
  const bool runs = out.state == "RUNNING" || out.state == "SUSPENDED" || out.state == "COMPLETING";
  if (runs) out.start = squeue_number(job, "start_time");
  const double minutes = squeue_number(job, "time_limit");
  if (minutes > 0) out.limit = minutes * 60;
  for (const char* const key : {"tres_alloc_str", "tres_req_str", "tres_per_job"}) {
    const std::string tres = squeue_text(job, key);
    if (out.gpus == 0) out.gpus = gpus_in(tres).value_or(0);
    if (out.cpus == 0) out.cpus = amount_in(tres, "cpu").value_or(0);
  }
  return out;
}

}  // namespace

std::vector<SlurmRecord> read_squeue(const std::string& file, std::string_view text,
                                     std::vector<std::string>& notes) {
  const SqueueValue root = SqueueValue::parse(text, nullptr, false);
  const auto jobs = root.is_object() ? root.find("jobs") : root.end();
  if (!root.is_object() || jobs == root.end() || !jobs->is_array()) {
    throw InputError({.file = file,
                      .pointer = {},
                      .found = root.is_discarded() ? "no JSON" : "no list \"jobs\"",
                      .allowed = "what squeue --json prints",
                      .nearest = {}});
  }
  std::vector<SlurmRecord> out;
  NamedJobs left_out;
  for (const SqueueValue& job : *jobs) {
    const SlurmRecord record = job.is_object() ? record_of(job) : SlurmRecord{};
    const bool open = record.state == "PENDING" || record.start >= 0;
    if (record.submit < 0 || !open) {
      left_out.add(record.id.empty() ? "?" : record.id);
      continue;
    }
    for (SlurmRecord& task : tasks_of(record)) out.push_back(std::move(task));
  }
  if (left_out.count() > 0) {
    notes.push_back(
        fmt::format("{}: {} that neither wait nor run, left out", file, left_out.words()));
  }
  return out;
}

}  // namespace lockstep
