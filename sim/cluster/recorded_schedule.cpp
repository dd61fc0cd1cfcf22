#include "sim/cluster/recorded_schedule.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "sim/scenario/host_list.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostOrderedRuns = 4000;  // of which all pairs are compared
constexpr std::size_t kMostHosts = 1'000'000;

/// Reads the rows of a recorded schedule.
class ScheduleRows {
 public:
  explicit ScheduleRows(const std::string& file) : file_(&file) {}

  void heading(std::span<const std::string> cells) {
    const std::vector<std::string> names(cells.begin(), cells.end());
    for (std::size_t c = 0; c < kColumns.size(); ++c) {
      const auto found = std::ranges::find(names, kColumns[c]);
      if (found != names.end()) {
        at_[c] = static_cast<std::size_t>(found - names.begin());
      } else if (c != kNodes) {
        throw InputError({.file = *file_,
                          .pointer = {},
                          .found = "the columns " + listed(names),
                          .allowed = "a column " + in_quotes(kColumns[c]),
                          .nearest = nearest_name(kColumns[c], names)});
      }
    }
  }
  void row(std::size_t number, std::span<const std::string> cells, JobSchedule& out) const {
    if (cells[*at_[kStart]].empty()) return;
    JobRun run{.start_s = time(number, cells[*at_[kStart]]),
               .end_s = time(number, cells[*at_[kEnd]])};
    if (at_[kNodes] && !cells[*at_[kNodes]].empty()) {
      const std::string& hosts = cells[*at_[kNodes]];
      std::optional<std::vector<int>> nodes = host_numbers(hosts, kMostHosts);
      if (!nodes) fail(number, hosts, R"(names of nodes, as "n[1-4,7]")");
      run.nodes = *std::move(nodes);
      std::ranges::sort(run.nodes);
    }
    out[cells[*at_[kJob]]].push_back(std::move(run));
  }

 private:
  static constexpr std::array<std::string_view, 4> kColumns{"job", "start_s", "end_s", "nodes"};
  static constexpr std::size_t kJob = 0, kStart = 1, kEnd = 2, kNodes = 3;

  [[noreturn]] void fail(std::size_t number, const std::string& found, std::string allowed) const {
    throw InputError({.file = csv_place(*file_, number),
                      .pointer = {},
                      .found = in_quotes(found),
                      .allowed = std::move(allowed),
                      .nearest = {}});
  }
  [[nodiscard]] double time(std::size_t number, const std::string& cell) const {
    double value = 0;
    const char* const end = cell.data() + cell.size();
    const auto [rest, error] = std::from_chars(cell.data(), end, value);
    if (error != std::errc() || rest != end || !std::isfinite(value)) {
      fail(number, cell, "a time in seconds");
    }
    return value;
  }

  const std::string* file_;
  std::array<std::optional<std::size_t>, 4> at_{};
};

void sort_runs(JobSchedule& schedule) {
  for (auto& [name, runs] : schedule) std::ranges::stable_sort(runs, {}, &JobRun::start_s);
}

void count_alike(AlikeCount& of, bool alike) {
  ++of.of;
  of.alike += alike ? 1 : 0;
}

/// A recorded start, and that of the same run here; nothing: it never came to that.
using StartPair = std::pair<double, std::optional<double>>;

AlikeCount order_of(const std::vector<StartPair>& starts, double gap_s) {
  AlikeCount out;
  if (starts.size() > kMostOrderedRuns) return out;
  for (std::size_t a = 0; a < starts.size(); ++a) {
    for (std::size_t b = 0; b < starts.size(); ++b) {
      if (starts[b].first - starts[a].first <= gap_s) continue;
      const auto &first = starts[a].second, &second = starts[b].second;
      count_alike(out, first && second && *first < *second);
    }
  }
  return out;
}

void match_waits(const QueueSpec& spec, const JobSchedule& recorded, const JobSchedule& simulated,
                 ScheduleMatch& out) {
  std::size_t jobs = 0;
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const std::string name = spec.job_name(j);
    const auto then = recorded.find(name), here = simulated.find(name);
    if (then == recorded.end() || here == simulated.end()) continue;
    const double submit_s = to_seconds(spec.jobs[j].submit).base_units();
    ++jobs;
    out.wait_mean_s += then->second.front().start_s - submit_s;
    out.simulated_wait_mean_s += here->second.front().start_s - submit_s;
  }
  if (jobs == 0) return;
  out.wait_mean_s /= static_cast<double>(jobs);
  out.simulated_wait_mean_s /= static_cast<double>(jobs);
}

}  // namespace

JobSchedule read_recorded_schedule(const std::string& file, std::string_view text) {
  JobSchedule out;
  ScheduleRows rows(file);
  read_csv(
      file, text, [&](auto cells) { rows.heading(cells); },
      [&](std::size_t number, auto cells) { rows.row(number, cells, out); });
  sort_runs(out);
  return out;
}

JobSchedule schedule_of(const QueueSpec& spec, const QueueResult& result) {
  JobSchedule out;
  std::set<std::uint32_t> suspended;  // whose next span is of the same run
  for (const JobSpan& span : result.spans) {
    const bool goes_on = suspended.erase(span.job) > 0;
    if (span.how == SpanEnd::suspended) suspended.insert(span.job);
    if (goes_on) {
      out[spec.job_name(span.job)].back().end_s = to_seconds(span.end).base_units();
      continue;
    }
    JobRun run{.start_s = to_seconds(span.begin).base_units(),
               .end_s = to_seconds(span.end).base_units()};
    for (const HeldGpus& held : span.held) run.nodes.push_back(held.node + 1);
    std::ranges::sort(run.nodes);
    out[spec.job_name(span.job)].push_back(std::move(run));
  }
  sort_runs(out);
  return out;
}

ScheduleMatch match_schedule(const QueueSpec& spec, const JobSchedule& recorded,
                             const JobSchedule& simulated, Seconds gap) {
  ScheduleMatch out;
  const double gap_s = gap.base_units();
  for (const auto& [name, runs] : simulated) out.simulated_runs += runs.size();
  std::vector<StartPair> starts;
  for (const auto& [name, runs] : recorded) {
    const auto found = simulated.find(name);
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const bool ran = found != simulated.end() && r < found->second.size();
      const JobRun* const here = ran ? &found->second[r] : nullptr;
      const auto near = [&](double JobRun::* time) {
        return ran && std::abs(here->*time - runs[r].*time) <= gap_s;
      };
      ++out.runs;
      count_alike(out.starts, near(&JobRun::start_s));
      count_alike(out.ends, near(&JobRun::end_s));
      if (!runs[r].nodes.empty()) count_alike(out.nodes, ran && here->nodes == runs[r].nodes);
      starts.emplace_back(runs[r].start_s, ran ? std::optional(here->start_s) : std::nullopt);
    }
  }
  out.order = order_of(starts, gap_s);
  match_waits(spec, recorded, simulated, out);
  return out;
}

}  // namespace lockstep
