#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <boost/tokenizer.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 6> kEffects{"crash",  "hang",    "slow",
                                                   "silent", "planned", "degraded"};
constexpr std::array<std::string_view, kFailureScopes> kScopes{"process", "node", "rack", "switch",
                                                               "feed"};

constexpr Interval kFoundAfter{0, 1e9};
/// Optics and DIMMs are sold with millions of hours, and a scenario may rule a mode out.
constexpr Interval kMeanTime{0, 1e15, true};
constexpr std::size_t kMostModes = 1000;

/// What was watched while failures were counted.
struct Observed {
  std::array<double, kFailingComponents.size()> components{};  ///< how many of each
  Seconds time;
  std::vector<std::string> not_given;  ///< sizes that the counts were divided by all the same
};

Observed read_observed(const JsonCursor& from) {
  constexpr int kMostPer = 1024;
  Observed observed;
  const auto whole = [&](std::string_view key, int otherwise, int most) {
    const auto member = from.find(key);
    if (!member) observed.not_given.push_back(fmt::format("{} {}", otherwise, key));
    return static_cast<double>(member ? member->integer(1, most) : otherwise);
  };
  const double gpus = from.at("gpus").integer(1, 10'000'000);
  const double nodes = gpus / whole("gpus_per_node", 8, kMaxGpusPerNode);
  const double nics = nodes * whole("nics_per_node", 8, kMaxGpusPerNode);
  const double cpus = nodes * whole("cpus_per_node", 2, kMaxGpusPerNode);
  const double racks = nodes / whole("nodes_per_rack", 4, kMostPer);
  const double switches = nodes / whole("nodes_per_switch", 32, kMostPer);
  const double feeds = nodes / whole("nodes_per_feed", 64, 100 * kMostPer);
  observed.components = {gpus, nics, cpus, nodes, racks, switches, feeds, 1};
  observed.time = from.at("time").seconds(kMeanTime);
  from.finish();
  return observed;
}

/// A rate is a count of what was observed, or a mean time of one component.
Seconds read_mean_time(const JsonCursor& from, const std::optional<Observed>& observed,
                       FailingComponent component) {
  constexpr Interval kCount{0, 1e9, true};
  const auto mean = from.find("mean_time");
  const auto count = from.find("count");
  if (mean && count) count->fail(R"(either "count" or "mean_time")");
  if (mean) return mean->seconds(kMeanTime);
  const JsonCursor counted = from.at("count");
  if (!observed) counted.fail(R"("mean_time", as there is no "observed" to divide by)");
  return observed->time * observed->components[static_cast<std::size_t>(component)] /
         counted.number(kCount);
}

/// What shares a component goes down with it; anything else takes a node down.
FailureScope usual_scope(FailingComponent component) {
  switch (component) {
    case FailingComponent::rack:
      return FailureScope::rack;
    case FailingComponent::switch_nodes:
      return FailureScope::switch_nodes;
    case FailingComponent::feed:
      return FailureScope::feed;
    default:
      return FailureScope::node;
  }
}

/// `logged`: how often it fails is in a log.
ReliabilityMode read_mode(const JsonCursor& from, const std::optional<Observed>& observed,
                          bool logged) {
  constexpr Interval kShape{0.1, 10};
  constexpr Interval kSlowdown{1, 100};
  ReliabilityMode out;
  FailureMode& mode = out.mode;
  const MemberReader member(from, Extent::whole);
  member.required("name", mode.name);
  if (logged) {
    out.component = FailingComponent::job;
  } else {
    out.component = read_choice<FailingComponent>(from.at("component"), kFailingComponents);
    mode.mean_time = read_mean_time(from, observed, out.component);
    member.optional("shape", mode.shape, kShape);
  }
  member.optional("effect", [&](const JsonCursor& c) {
    mode.effect = read_choice<FailureEffect>(c, kEffects);
  });
  mode.scope = usual_scope(out.component);
  const bool degraded = mode.effect == FailureEffect::degraded;
  for (const char* key : {"scope", "replaced"}) {
    const auto given = from.find(key);
    if (degraded && given) given->fail("nothing: what is degraded is mended while the job runs");
  }
  member.optional("scope",
                  [&](const JsonCursor& c) { mode.scope = read_choice<FailureScope>(c, kScopes); });
  member.optional("replaced", mode.replaced, kShare);
  const bool slow = mode.effect == FailureEffect::slow;
  const auto fault = from.find("fault"), lasts = from.find("lasts");
  if (fault && !slow && !degraded) fault->fail(R"("effect": "slow" or "degraded" with it)");
  if (lasts && !degraded) lasts->fail(R"("effect": "degraded" with it)");
  if (fault) {
    if (const auto both = from.find("slowdown")) both->fail(R"(either "slowdown" or "fault")");
    out.fault = read_fabric_fault(*fault);
  } else if (slow || degraded) {
    mode.slowdown = from.at("slowdown").number(kSlowdown);
  }
  if (degraded) mode.lasts = from.at("lasts").seconds(kMeanTime);
  if (slow || mode.effect == FailureEffect::silent) {
    mode.found_after = from.at("found_after").seconds(kFoundAfter);
  }
  from.finish();
  return out;
}

/// Modes that leave something open, for the list of assumptions.
class OpenModes {
 public:
  void add(const JsonCursor& from, const ReliabilityMode& of) {
    ++modes_;
    if (!from.find("effect")) crash_.push_back(of.mode.name);
    if (of.mode.effect == FailureEffect::degraded) return;  // nothing goes down or is replaced
    if (!from.find("scope"))
      scopes_[static_cast<std::size_t>(of.mode.scope)].push_back(of.mode.name);
    if (!from.find("replaced") && of.mode.scope != FailureScope::process) {
      replaced_.push_back(of.mode.name);
    }
  }
  [[nodiscard]] std::vector<std::string> assumptions() const {
    std::vector<std::string> out;
    const auto say = [&](const char* key, const Names& names, std::string_view what) {
      if (names.empty()) return;
      out.push_back(
          fmt::format("run.reliability: {}: {} (\"{}\" not given)", who(names), what, key));
    };
    for (std::size_t scope = 0; scope < scopes_.size(); ++scope) {
      const bool one = static_cast<FailureScope>(scope) == FailureScope::node;
      say("scope", scopes_[scope],
          one ? "one node goes down" : fmt::format("all nodes of the {} go down", kScopes[scope]));
    }
    say("effect", crash_, "the job crashes");
    say("replaced", replaced_, "the hardware has to be replaced every time");
    return out;
  }

 private:
  using Names = std::vector<std::string>;
  [[nodiscard]] std::string who(const Names& names) const {
    constexpr std::size_t kMostNames = 4;
    if (names.size() <= kMostNames) return fmt::format("{}", fmt::join(names, ", "));
    return fmt::format("{} of {} modes", names.size(), modes_);
  }

  std::size_t modes_ = 0;
  std::array<Names, kFailureScopes> scopes_;
  Names crash_, replaced_;
};

/// A person's mistake in a log.
class LogProblem {
 public:
  LogProblem(const std::string& file, int line) : place_(fmt::format("{}:{}", file, line)) {}
  [[noreturn]] void fail(std::string_view found, std::string allowed,
                         std::string nearest = {}) const {
    throw InputError({.file = place_,
                      .pointer = {},
                      .found = in_quotes(found),
                      .allowed = std::move(allowed),
                      .nearest = std::move(nearest)});
  }

 private:
  std::string place_;
};

using CsvCells = std::vector<std::string>;
CsvCells cells_of(const std::string& line, const LogProblem& problem) {
  using Separator = boost::escaped_list_separator<char>;
  try {
    const boost::tokenizer<Separator> cells(line, Separator('\\', ',', '"'));
    return {cells.begin(), cells.end()};
  } catch (const boost::escaped_list_error&) {
    problem.fail(line, "a line of CSV");
  }
}

/// Columns of a log that say something.
struct LogColumns {
  std::size_t time = 0, mode = 0;
  double seconds = 1;  ///< of a unit of time
};

LogColumns columns_of(const CsvCells& heading, const LogProblem& problem) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kTimes{
      {{"time_s", 1}, {"time_min", 60}, {"time_h", 3600}, {"time_d", 86'400}}};
  LogColumns out;
  bool timed = false;
  for (std::size_t i = 0; i < heading.size(); ++i) {
    for (const auto& [name, seconds] : kTimes) {
      if (heading[i] != name) continue;
      out.time = i;
      out.seconds = seconds;
      timed = true;
    }
  }
  const auto mode = std::ranges::find(heading, "mode");
  if (!timed || mode == heading.end()) {
    problem.fail(fmt::format("{}", fmt::join(heading, ",")),
                 "a heading with \"mode\" and one of time_s, time_min, time_h, time_d");
  }
  out.mode = static_cast<std::size_t>(mode - heading.begin());
  return out;
}

RunTime time_of(const std::string& cell, double unit, const LogProblem& problem) {
  constexpr double kMostSeconds = 1e9;
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool whole = error == std::errc{} && end == cell.data() + cell.size();
  if (!whole || !(value >= 0 && value * unit <= kMostSeconds)) {
    problem.fail(cell, fmt::format("a time from 0 to {:g}", kMostSeconds / unit));
  }
  return to_run_time(Seconds{value * unit});
}

/// Where in `modes` it is; a new one where modes come from the log alone.
std::uint32_t mode_of(const std::string& name, bool closed, std::vector<ReliabilityMode>& modes,
                      const LogProblem& problem) {
  std::vector<std::string> names;
  names.reserve(modes.size());
  for (const ReliabilityMode& of : modes) names.push_back(of.mode.name);
  const auto known = std::ranges::find(names, name);
  if (known != names.end()) return static_cast<std::uint32_t>(known - names.begin());
  if (closed || name.empty()) {
    problem.fail(name, names.empty() ? "the name of a mode" : listed(names),
                 nearest_name(name, names));
  }
  if (modes.size() == kMostModes) problem.fail(name, fmt::format("at most {} modes", kMostModes));
  modes.push_back({.mode = {.name = name}, .component = FailingComponent::job});
  return static_cast<std::uint32_t>(modes.size() - 1);
}

/// Lines of CSV under a heading; those that are empty or begin with '#' count for nothing.
void read_log(const std::string& file, bool closed, ReliabilitySpec& out) {
  std::istringstream lines(read_text_file(file));
  std::optional<LogColumns> columns;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const LogProblem problem(file, ++number);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const CsvCells cells = cells_of(line, problem);
    if (!columns) {
      columns = columns_of(cells, problem);
      continue;
    }
    if (cells.size() <= std::max(columns->time, columns->mode)) {
      problem.fail(line, "as many cells as the heading has");
    }
    out.log.push_back({.at = time_of(cells[columns->time], columns->seconds, problem),
                       .mode = mode_of(cells[columns->mode], closed, out.modes, problem)});
  }
  if (out.log.empty()) LogProblem(file, number).fail("", "at least one failure below a heading");
  std::ranges::stable_sort(out.log, {}, &LoggedFailure::at);
  // What closed forms ask for: how often each of them came.
  const Seconds span = to_seconds(std::max<RunTime>(1, out.log.back().at));
  for (std::uint32_t m = 0; m < out.modes.size(); ++m) {
    const auto count = std::ranges::count(out.log, m, &LoggedFailure::mode);
    if (count > 0) out.modes[m].mode.mean_time = span / static_cast<double>(count);
  }
}

}  // namespace

void read_reliability(const JsonCursor& from, ReliabilitySpec& out) {
  if (const auto about = from.find("about")) out.about = about->string();
  const auto log = from.find("log");
  std::optional<Observed> observed;
  if (const auto seen = from.find("observed")) observed = read_observed(*seen);
  std::set<std::string> names;
  OpenModes open;
  const auto modes = log ? from.find("modes") : std::optional(from.at("modes"));
  if (modes) {
    for (const JsonCursor& element : modes->elements(kMostModes)) {
      out.modes.push_back(read_mode(element, observed, log.has_value()));
      if (!names.insert(out.modes.back().mode.name).second) {
        element.at("name").fail("a name that no other mode has");
      }
      open.add(element, out.modes.back());
    }
  }
  out.assumptions = open.assumptions();
  if (observed && !observed->not_given.empty()) {
    out.assumptions.push_back(fmt::format("run.reliability.observed: {} (not given)",
                                          fmt::join(observed->not_given, ", ")));
  }
  if (!log) return;
  const std::string written = log->string();
  if (written.find('\0') != std::string::npos) log->fail("the name of a CSV file");
  const auto folder = std::filesystem::path(from.file()).parent_path();
  read_log((folder / written).string(), modes.has_value(), out);
}

}  // namespace lockstep
