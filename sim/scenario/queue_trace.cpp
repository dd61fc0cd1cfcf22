#include "sim/scenario/queue_trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>

#include "models/base/csv_reader.hpp"
#include "models/base/input_file.hpp"
#include "sim/scenario/host_list.hpp"
#include "sim/scenario/job_licenses.hpp"
#include "sim/scenario/listed_jobs.hpp"
#include "sim/scenario/trace_row.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kTraceLimit = std::size_t{2} << 30;  // bytes: ten million rows
constexpr double kLongestJob = 4e9;                        // seconds: what RunTime adds up safely
constexpr int kMostJobGpus = 10'000'000;
constexpr Interval kTimeFactor{0, 1e9, true};
constexpr Interval kUnit{0, 1e6, true};
constexpr Interval kPlus{0, 1e6};

constexpr ValueType kTimeColumnType = written_type(R"({"anyOf": [
    {"type": "string", "minLength": 1},
    {"type": "object", "required": ["column"], "additionalProperties": false, "properties": {
      "column": {"type": "string", "minLength": 1},
      "times": {"type": "string", "minLength": 1,
                "description": "Second column, which it is multiplied by"},
      "minus": {"type": "string", "minLength": 1,
                "description": "Column that is subtracted: a start from an end"},
      "unit": {"$ref": "#/$defs/time",
               "description": "Of a bare number there; default: by the end of the column's name"},
      "factor": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9},
      "plus": {"$ref": "#/$defs/time", "description": "More, of each"}}}]})");

TimeColumn read_time_column(const JsonCursor& from) {
  TimeColumn out;
  if (!from.is_object()) {
    out.column = from.string();
    if (out.column.empty()) from.fail("the name of a column");
    return out;
  }
  out.column = from.at("column").string();
  if (const auto times = from.find("times")) out.times = times->string();
  if (const auto minus = from.find("minus")) out.minus = minus->string();
  if (const auto unit = from.find("unit")) out.unit_s = unit->seconds(kUnit).base_units();
  if (const auto factor = from.find("factor")) out.factor = factor->number(kTimeFactor);
  if (const auto plus = from.find("plus")) out.plus = plus->seconds(kPlus);
  from.finish();
  return out;
}

/// "submit_s" is in seconds, "limit_min" in minutes, "submit" in seconds.
double unit_of(std::string_view column) {
  constexpr std::array kEnds{
      std::pair{std::string_view("_ms"), 1e-3}, std::pair{std::string_view("_s"), 1.0},
      std::pair{std::string_view("_min"), 60.0}, std::pair{std::string_view("_h"), 3600.0}};
  for (const auto& [end, seconds] : kEnds) {
    if (column.ends_with(end)) return seconds;
  }
  return 1;
}

/// Columns of a trace by what they hold; -1: it has none of them.
class TraceColumns {
 public:
  TraceColumns(const JsonCursor& at, const std::string& file, const JobTrace& trace,
               std::span<const std::string> heading)
      : at_(&at), file_(&file), heading_(heading.begin(), heading.end()) {
    submit = time(trace.submit, "submit", {"submit_s"});
    runs = time(trace.runs, "runs", {"duration_s", "run_s"});
    if (trace.limit) limit = time(trace.limit, "limit", {});
    if (trace.start) start = time(trace.start, "start", {});
    gpus = named(trace.gpus, "gpus", {"gpus"});
    if (gpus < 0) fail_missing("gpus", "gpus");
    name = named(trace.name, "name", {"job", "name"});
    user = named(trace.user, "user", {"user"});
    account = named(trace.account, "account", {"account"});
    model = named(trace.model, "model", {"model"});
    priority = named(trace.priority, "priority", {"priority"});
    partition = named(trace.partition, "partition", {"partition", "vc"});
    qos = named(trace.qos, "qos", {"qos"});
    const auto given = [&](const std::string& column, std::string_view key) {
      return column.empty() ? -1 : named(column, key, {});
    };
    nodes = given(trace.nodes, "nodes");
    if (trace.begin) begin = time(trace.begin, "begin", {});
    dependency = given(trace.dependency, "dependency");
    array = given(trace.array, "array");
    array_limit = given(trace.array_limit, "array_limit");
    reservation = given(trace.reservation, "reservation");
    state = given(trace.state, "state");
    series = given(trace.series, "series");
    licenses = given(trace.licenses, "licenses");
  }

  struct Time {
    TimeColumn of;
    int column = -1, times = -1, minus = -1;
    double unit = 1;
  };
  Time submit, runs, limit, start, begin;
  int gpus = -1, name = -1, user = -1, account = -1, model = -1, priority = -1, partition = -1;
  int nodes = -1, qos = -1, dependency = -1, array = -1, array_limit = -1, reservation = -1;
  int state = -1, series = -1, licenses = -1;

  [[nodiscard]] bool have_terms() const {
    return std::max({begin.column, dependency, array, reservation, state, series}) >= 0;
  }
  [[nodiscard]] std::span<const std::string> heading() const { return heading_; }

 private:
  [[nodiscard]] int find(const std::string& column) const {
    const auto at = std::ranges::find(heading_, column);
    return at == heading_.end() ? -1 : static_cast<int>(at - heading_.begin());
  }
  [[noreturn]] void fail_missing(std::string_view key, const std::string& column) const {
    throw InputError({.file = *file_,
                      .pointer = {},
                      .found = fmt::format("no column {}", in_quotes(column)),
                      .allowed = fmt::format("columns: {}; {}#{}/columns/{} says which it is",
                                             listed(heading_), at_->file(), at_->pointer(), key),
                      .nearest = nearest_name(column, heading_)});
  }
  int named(const std::string& given, std::string_view key,
            std::initializer_list<const char*> usual) const {
    if (!given.empty()) {
      const int column = find(given);
      if (column < 0) fail_missing(key, given);
      return column;
    }
    for (const char* const column : usual) {
      if (const int found = find(column); found >= 0) return found;
    }
    return -1;
  }
  Time time(const std::optional<TimeColumn>& given, std::string_view key,
            std::initializer_list<const char*> usual) const {
    Time out;
    if (given) {
      out.of = *given;
    } else {
      const int column = named({}, key, usual);
      out.of.column = column < 0 ? *usual.begin() : heading_[static_cast<std::size_t>(column)];
    }
    out.column = named(out.of.column, key, {});
    if (!out.of.times.empty()) out.times = named(out.of.times, key, {});
    if (!out.of.minus.empty()) out.minus = named(out.of.minus, key, {});
    out.unit = out.of.unit_s.value_or(unit_of(out.of.column) *
                                      (out.times < 0 ? 1 : unit_of(out.of.times)));
    return out;
  }

  const JsonCursor* at_;
  const std::string* file_;
  std::vector<std::string> heading_;
};

RunTime time_in(const TraceRow& row, const TraceColumns::Time& column) {
  const double most = kLongestJob / column.unit;
  double units = row.number(column.column, 0, most);
  if (column.times >= 0) units *= row.number(column.times, 0, kLongestJob);
  if (column.minus >= 0) {
    units -= row.number(column.minus, 0, most);
    if (units < 0) row.fail(column.minus, "no more than what it is subtracted from");
  }
  const double seconds = units * column.unit * column.of.factor + column.of.plus.base_units();
  if (!(seconds <= kLongestJob)) row.fail(column.column, "a time of at most 4e9 s");
  return to_run_time(Seconds{seconds});
}

/// A partition that the scenario declares; where it declares none, all nodes are one.
std::uint16_t partition_in(const TraceRow& row, int column, const QueueSpec& out) {
  if (column < 0 || out.partitions.size() == 1) return 0;
  std::vector<std::string> names;
  for (const QueuePartition& partition : out.partitions) names.push_back(partition.name);
  const auto at = std::ranges::find(names, row.text(column));
  if (at == names.end() || at == names.begin()) {
    row.fail(column, "a partition of the scenario: " + listed(std::span(names).subspan(1)));
  }
  return static_cast<std::uint16_t>(at - names.begin());
}

/// What is known of a row beside the job itself.
struct ReadJob {
  QueueJob job;
  std::string name;
  RecordedStart recorded;
  std::optional<JobTerms> terms{};
};

/// A quality of service that the scenario declares; where it declares none, all jobs are alike.
std::uint16_t qos_in(const TraceRow& row, int column, const QueueSpec& out) {
  if (column < 0 || out.qos.size() == 1 || row.text(column).empty()) return 0;
  std::vector<std::string> names;
  for (const QualityOfService& of : out.qos) names.push_back(of.name);
  const auto at = std::ranges::find(names, row.text(column));
  if (at == names.end()) {
    row.fail(column,
             "a quality of service of the scenario: " + listed(std::span(names).subspan(1)));
  }
  return static_cast<std::uint16_t>(at - names.begin());
}

std::uint16_t reservation_in(const TraceRow& row, int column, const QueueSpec& out) {
  if (column < 0 || row.text(column).empty()) return 0;
  std::vector<std::string> names;
  for (const AdvanceReservation& of : out.reservations) names.push_back(of.name);
  const auto at = std::ranges::find(names, row.text(column));
  if (at == names.end()) row.fail(column, "a reservation of the scenario: " + listed(names));
  return static_cast<std::uint16_t>(at - names.begin() + 1);
}

/// Whether a job's command came to its end without a failure, by Slurm's word or a trace's own, or
/// nobody knows yet.
bool went_well(std::string_view state) {
  constexpr std::array<std::string_view, 12> kWell{
      "",  "COMPLETED", "completed", "Completed",  "Succeeded", "Pass",
      "0", "PENDING",   "RUNNING",   "COMPLETING", "SUSPENDED", "REQUEUED"};
  return std::ranges::count(kWell, state) > 0;
}

JobTerms terms_in(const TraceRow& row, const TraceColumns& columns, QueueSpec& out) {
  JobTerms terms;
  if (columns.begin.column >= 0 && !row.text(columns.begin.column).empty()) {
    terms.begin = time_in(row, columns.begin);
  }
  if (columns.dependency >= 0) terms.written = row.text(columns.dependency);
  if (columns.series >= 0) terms.series = row.text(columns.series);
  terms.reservation = reservation_in(row, columns.reservation, out);
  if (columns.state >= 0) terms.fails = !went_well(row.text(columns.state));
  if (columns.array < 0 || row.text(columns.array).empty()) return terms;
  terms.array = array_number(row.text(columns.array), out);
  if (columns.array_limit >= 0 && !row.text(columns.array_limit).empty()) {
    out.arrays[static_cast<std::size_t>(terms.array)].most_running =
        row.integer(columns.array_limit, 0, kMostJobGpus);
  }
  return terms;
}

ReadJob job_in(const TraceRow& row, const TraceColumns& columns, const std::string& file,
               QueueSpec& out) {
  ReadJob read;
  QueueJob& job = read.job;
  job.submit = time_in(row, columns.submit);
  job.runs = time_in(row, columns.runs);
  job.gpus = row.integer(columns.gpus, 0, kMostJobGpus);
  job.limit = job.runs;
  if (columns.limit.column >= 0) {
    job.limit = time_in(row, columns.limit);
    job.cut = job.limit < job.runs;
    job.runs = std::min(job.runs, job.limit);
  }
  const auto label = [&](int column, NameTable& names) {
    return column < 0 ? std::uint16_t{0} : label_of(row.text(column), names, file);
  };
  job.user = label(columns.user, out.users);
  job.account = label(columns.account, out.accounts);
  job.model = label(columns.model, out.models);
  if (columns.priority >= 0) {
    job.priority = row.integer(columns.priority, std::numeric_limits<std::int32_t>::min(),
                               std::numeric_limits<std::int32_t>::max());
  }
  job.partition = partition_in(row, columns.partition, out);
  job.qos = qos_in(row, columns.qos, out);
  if (columns.licenses >= 0) {
    const auto set = license_set(row.text(columns.licenses), out);
    if (!set) row.fail(columns.licenses, allowed_licenses(out));
    job.licenses = *set;
  }
  if (columns.have_terms()) read.terms = terms_in(row, columns, out);
  if (columns.name >= 0) read.name = row.text(columns.name);
  const auto says = [&](int column) { return column >= 0 && !row.text(column).empty(); };
  if (says(columns.start.column)) read.recorded.start = time_in(row, columns.start);
  if (says(columns.nodes)) {
    const auto nodes =
        host_numbers(row.text(columns.nodes), static_cast<std::size_t>(out.cluster.nodes));
    if (!nodes) row.fail(columns.nodes, "a host list such as n[1-4], of the cluster's nodes");
    read.recorded.nodes = *nodes;
  }
  return read;
}

void add_job(ReadJob read, QueueSpec& out) {
  if (out.jobs.size() == kMostQueueJobs) {
    throw InputError({.file = out.file,
                      .pointer = "/queue/jobs",
                      .found = "more jobs",
                      .allowed = fmt::format("at most {} together", kMostQueueJobs),
                      .nearest = {}});
  }
  if (!read.name.empty()) {
    out.names.resize(out.jobs.size());
    out.names.push_back(std::move(read.name));
  }
  if (read.recorded.start >= 0 || !read.recorded.nodes.empty()) {
    out.recorded.resize(out.jobs.size());
    out.recorded.push_back(std::move(read.recorded));
  }
  if (read.terms) new_terms(out) = *std::move(read.terms);
  out.jobs.push_back(read.job);
}

/// What rows ask for that no GPU cluster has to give.
struct PassedOver {
  std::size_t without_gpus = 0, rows = 0;
};

void note_passed_over(const PassedOver& passed, const std::string& file, QueueSpec& out) {
  if (passed.without_gpus == 0) return;
  out.assumptions.push_back(fmt::format("trace {}: {} of {} jobs ask for no GPU and are left out",
                                        file, passed.without_gpus, passed.rows));
}

void read_csv_trace(const JsonCursor& at, const std::string& path, std::string_view text,
                    const JobTrace& trace, QueueSpec& out) {
  std::optional<TraceColumns> columns;
  PassedOver passed;
  read_csv(
      path, text,
      [&](std::span<const std::string> heading) { columns.emplace(at, path, trace, heading); },
      [&](std::size_t row, std::span<const std::string> cells) {
        if (trace.rows && row > static_cast<std::size_t>(*trace.rows)) return;
        ++passed.rows;
        ReadJob read = job_in(TraceRow(path, row, columns->heading(), cells), *columns, path, out);
        if (read.job.gpus == 0) {
          ++passed.without_gpus;
        } else {
          add_job(std::move(read), out);
        }
      });
  note_passed_over(passed, trace.file, out);
}

// Columns of the Standard Workload Format, version 2.2: Feitelson's Parallel Workloads Archive,
// swf.html. Unknown values are -1.
constexpr int kSwfColumns = 18;
constexpr int kSwfJob = 0, kSwfSubmit = 1, kSwfRuns = 3, kSwfAllocated = 4, kSwfRequested = 7,
              kSwfLimit = 8, kSwfUser = 11, kSwfGroup = 12;

ReadJob swf_job(const TraceRow& row, const std::string& path, QueueSpec& out) {
  ReadJob read;
  QueueJob& job = read.job;
  const auto seconds = [&](int column) { return Seconds{row.number(column, -1, kLongestJob)}; };
  job.submit = to_run_time(Seconds{row.number(kSwfSubmit, 0, kLongestJob)});
  job.runs = to_run_time(std::max(Seconds{}, seconds(kSwfRuns)));
  const int requested = row.integer(kSwfRequested, -1, kMostJobGpus);
  job.gpus = std::max(0, requested > 0 ? requested : row.integer(kSwfAllocated, -1, kMostJobGpus));
  const Seconds limit = seconds(kSwfLimit);
  job.limit = limit > Seconds{} ? to_run_time(limit) : job.runs;
  job.cut = job.limit < job.runs;
  job.runs = std::min(job.runs, job.limit);
  const auto label = [&](int column, NameTable& names) {
    return row.text(column) == "-1" ? std::uint16_t{0} : label_of(row.text(column), names, path);
  };
  job.user = label(kSwfUser, out.users);
  job.account = label(kSwfGroup, out.accounts);
  read.name = row.text(kSwfJob);
  return read;
}

void read_swf_trace(const std::string& path, std::string_view text, const JobTrace& trace,
                    QueueSpec& out) {
  const std::vector<std::string> heading{"job",
                                         "submit",
                                         "wait",
                                         "run time",
                                         "processors",
                                         "CPU time",
                                         "memory",
                                         "requested processors",
                                         "requested time",
                                         "requested memory",
                                         "status",
                                         "user",
                                         "group",
                                         "executable",
                                         "queue",
                                         "partition",
                                         "preceding job",
                                         "think time"};
  PassedOver passed;
  std::vector<std::string> cells;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    cells.clear();
    for (std::size_t from = rest.find_first_not_of(" \t\r"); from != std::string_view::npos;
         from = rest.find_first_not_of(" \t\r")) {
      rest.remove_prefix(from);
      const std::size_t to = std::min(rest.find_first_of(" \t\r"), rest.size());
      cells.emplace_back(rest.substr(0, to));
      rest.remove_prefix(to);
    }
    if (cells.empty() || cells.front().starts_with(';')) continue;
    if (cells.size() != kSwfColumns) {
      throw InputError({.file = csv_place(path, line),
                        .pointer = {},
                        .found = fmt::format("{} columns", cells.size()),
                        .allowed = "the 18 of the Standard Workload Format",
                        .nearest = {}});
    }
    if (trace.rows && passed.rows == static_cast<std::size_t>(*trace.rows)) return;
    ++passed.rows;
    ReadJob read = swf_job(TraceRow(path, line, heading, cells), path, out);
    if (read.job.gpus == 0) {
      ++passed.without_gpus;
    } else {
      add_job(std::move(read), out);
    }
  }
  note_passed_over(passed, trace.file, out);
}

}  // namespace

std::uint16_t label_of(const std::string& name, NameTable& names, const std::string& file) {
  const std::optional<std::uint16_t> number = names.number_of(name);
  if (number) return *number;
  throw InputError({.file = file,
                    .pointer = {},
                    .found = "one more name of a user, an account or a model",
                    .allowed = fmt::format("at most {} of each", NameTable::kMost - 1),
                    .nearest = {}});
}

void declare_trace(const DeclaredMembers& member, JobTrace& out) {
  constexpr std::array<std::string_view, 2> kFormats{"csv", "swf"};
  member.required("file", out.file,
                  "CSV with a heading, or the Standard Workload Format; may be compressed (.gz). "
                  "From the scenario's folder, else from the one that LOCKSTEP_DATA names");
  member.optional("format", out.format, kFormats, "Default: swf where the name ends so, else csv");
  member.optional("rows", out.rows, 1, static_cast<int>(kMostQueueJobs), "Only so many are read");
  struct Columns {};
  Columns columns;
  member.optional(
      "columns", columns, "Of a CSV: which hold what", [&](const DeclaredMembers& of, Columns&) {
        const auto time = [&](std::string_view key, std::optional<TimeColumn>& to,
                              std::string_view sentence) {
          of.optional(key, kTimeColumnType, sentence,
                      [&to](const JsonCursor& at) { to = read_time_column(at); });
        };
        time("submit", out.submit, "Default: submit_s");
        time("runs", out.runs, "How long it runs undisturbed; default: duration_s or run_s");
        time("limit", out.limit, "Its time limit; default: as long as it runs");
        time("start", out.start, "When it started in truth: compared with what is simulated");
        of.optional("nodes", out.nodes, "Its nodes in truth, \"n[1-4]\", counted from 1");
        of.optional("gpus", out.gpus, "Default: gpus");
        of.optional("name", out.name, "Default: job or name, if there is one; else its number");
        of.optional("user", out.user, "Default: user, if there is one");
        of.optional("account", out.account, "Default: account, if there is one");
        of.optional("model", out.model, "Default: model, if there is one");
        of.optional("priority", out.priority, "Higher first; default: priority, if there is one");
        of.optional("partition", out.partition, "Default: partition or vc, if there is one");
        of.optional("qos", out.qos, "Default: qos, if there is one and the scenario has any");
        time("begin", out.begin, "A time before which it does not start");
        of.optional("dependency", out.dependency, "As in \"afterok:4711\", by names of jobs");
        of.optional("array", out.array, "Rows with the same name here are tasks of one array");
        of.optional("array_limit", out.array_limit,
                    "Tasks of it that run at a time; 0: any number");
        of.optional("reservation", out.reservation, "Which one it runs in");
        of.optional("state", out.state,
                    "How it ended: anything but COMPLETED is a failure to jobs that depend on it");
        of.optional("series", out.series, "What its user calls it, for \"singleton\"");
        of.optional("licenses", out.licenses, "Licences, as of a job: \"matlab:2,ansys\"");
      });
}

void read_trace(const JsonCursor& at, const std::string& path, const JobTrace& trace,
                QueueSpec& out) {
  read_trace_text(at, path, read_maybe_gzip(path, kTraceLimit), trace, out);
}

void read_trace_text(const JsonCursor& at, const std::string& path, std::string_view text,
                     const JobTrace& trace, QueueSpec& out) {
  const bool named_swf = trace.file.ends_with(".swf") || trace.file.ends_with(".swf.gz");
  const TraceFormat format = trace.format.value_or(named_swf ? TraceFormat::swf : TraceFormat::csv);
  if (format == TraceFormat::swf) {
    read_swf_trace(path, text, trace, out);
  } else {
    read_csv_trace(at, path, text, trace, out);
  }
}

}  // namespace lockstep
