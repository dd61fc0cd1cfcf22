/// Where the jobs of a queue come from: traces of real clusters, and drawn ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// The most jobs of a queue.
constexpr std::size_t kMostQueueJobs = 10'000'000;

/// A column that holds times, and how they are meant: (cell x cell of `times` - cell of `minus`) x
/// unit x factor + plus.
struct TimeColumn {
  std::string column;
  std::string times{};             ///< a second column to multiply by; empty: none
  std::string minus{};             ///< a column to subtract, in the same unit; empty: none
  std::optional<double> unit_s{};  ///< seconds; else by the end of the name: _ms, _s, _min, _h
  double factor = 1;
  Seconds plus{};
};

enum class TraceFormat : std::uint8_t { csv, swf };

/// A trace of jobs.
struct JobTrace {
  std::string file;  ///< as the scenario names it
  std::optional<TraceFormat> format{};
  std::optional<TimeColumn> submit{}, runs{}, limit{}, start{}, begin{};
  /// Columns by name; empty: a column of the usual name, where there is one.
  std::string gpus{}, name{}, user{}, account{}, model{}, priority{}, partition{}, nodes{};
  std::string qos{}, dependency{}, array{}, array_limit{}, reservation{}, state{}, series{};
  std::string licenses{};
  std::optional<int> rows{};  ///< only so many are read; none: all
};

/// Jobs that are drawn: independent gaps, widths, durations, owners.
struct DrawnJobs {
  int count = 1;
  Seconds every{};          ///< mean gap between submissions, exponential; 0: all at once
  std::vector<double> day;  ///< weights of the 24 hours of a day; empty: all alike
  double weekend = 1;       ///< weight of days 6 and 7 of a week, which begins with the queue
  std::vector<std::pair<int, double>> gpus;  ///< widths with their weights
  Seconds mean{3600};
  double sigma = 0;  ///< log-normal: of the logarithm
  bool exponential = false;
  double limit_factor = 1;  ///< of the duration: what users ask for; drawn up to it from 1
  std::vector<std::pair<std::string, double>> accounts, users, models;
  std::vector<std::pair<int, double>> priorities;
  std::vector<DrawnWidth> widths;  ///< rising, one of them as wide as asked for; empty: no others
};

void declare_trace(const DeclaredMembers& member, JobTrace& out);
void declare_drawn_jobs(const DeclaredMembers& member, DrawnJobs& out);

/// Adds the jobs of a trace; `path` is where its file lies, `at` its place in the scenario. Throws
/// InputError about the trace's file, with its row.
void read_trace(const JsonCursor& at, const std::string& path, const JobTrace& trace,
                QueueSpec& out);

/// Reads the trace from a text; its errors name the text `path`.
void read_trace_text(const JsonCursor& at, const std::string& path, std::string_view text,
                     const JobTrace& trace, QueueSpec& out);

/// Adds drawn jobs; `number` is that of the list's entry, which its draws are named by.
void draw_jobs(const DrawnJobs& drawn, std::uint32_t number, QueueSpec& out);

/// Number of a name; it is added where it is new. Throws InputError (`file`) for too many names.
std::uint16_t label_of(const std::string& name, NameTable& names, const std::string& file);

}  // namespace lockstep
