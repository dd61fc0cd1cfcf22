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
#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 6> kEffects{"crash",  "hang",    "slow",
                                                   "silent", "planned", "degraded"};
constexpr std::array<std::string_view, kFailureScopes> kScopes{"process", "node", "rack", "switch",
                                                               "feed"};

constexpr Interval kFoundAfter{0, 1e9};
constexpr int kMostCables = 100'000'000;
/// Optics and DIMMs are sold with millions of hours, and a scenario may rule a mode out.
constexpr Interval kMeanTime{0, 1e15, true};
constexpr std::size_t kMostModes = 1000;
constexpr Interval kCount{0, 1e9, true};
constexpr Interval kSlowdown{1, 100};
constexpr std::string_view kFaultSchema =
    R"({"$ref": "#/properties/cluster/properties/fabric/anyOf/1/properties/faults/items"})";

/// What was watched while failures were counted.
struct Observed {
  std::array<double, kFailingComponents.size()> components{};  ///< how many of each
  Seconds time;
  std::vector<std::string> not_given;  ///< sizes that the counts were divided by all the same
};

/// How many of what a node, rack, ... has, by key; 0: not given.
struct ObservedSizes {
  int gpus = 0;
  int cables = 0;  ///< between switches; 0: not given
  Seconds time;
  struct Size {
    std::string_view key;
    int otherwise, most;
    std::string_view sentence;
    int given = 0;
  };
  static constexpr int kMostPer = 1024;
  std::array<Size, 6> sizes{{{"gpus_per_node", 8, kMaxGpusPerNode, "Default: 8"},
                             {"nics_per_node", 8, kMaxGpusPerNode, "Default: 8"},
                             {"cpus_per_node", 2, kMaxGpusPerNode, "Default: 2"},
                             {"nodes_per_rack", 4, kMostPer, "Default: 4"},
                             {"nodes_per_switch", 32, kMostPer, "Default: 32"},
                             {"nodes_per_feed", 64, 100 * kMostPer, "Default: 64"}}};
};

void declare_observed(const DeclaredMembers& member, ObservedSizes& out) {
  member.required("gpus", out.gpus, 1, 10'000'000, "");
  for (ObservedSizes::Size& size : out.sizes) {
    member.optional(size.key, size.given, 1, size.most, size.sentence);
  }
  member.optional("cables", out.cables, 1, kMostCables, "Between switches");
  member.required("time", out.time, kMeanTime, "");
}

Observed observed_of(const ObservedSizes& from) {
  Observed observed;
  const auto per = [&](std::size_t i) {
    const ObservedSizes::Size& size = from.sizes[i];
    if (size.given == 0) {
      observed.not_given.push_back(fmt::format("{} {}", size.otherwise, size.key));
    }
    return static_cast<double>(size.given > 0 ? size.given : size.otherwise);
  };
  const double gpus = from.gpus;
  const double nodes = gpus / per(0);
  const double nics = nodes * per(1);
  const double cables = from.cables;
  const double cpus = nodes * per(2);
  const double racks = nodes / per(3);
  const double switches = nodes / per(4);
  const double feeds = nodes / per(5);
  observed.components = {gpus, nics, cables, cpus, nodes, racks, switches, feeds, 1};
  observed.time = from.time;
  return observed;
}

/// A mode as it stands in a file: which members go together depends on the others.
struct WrittenMode {
  std::string name;
  std::optional<FailingComponent> component;
  std::optional<double> count;
  std::optional<Seconds> mean_time;
  FailureEffect effect = FailureEffect::crash;
  std::optional<FailureScope> scope;
  double shape = 1, replaced = 1;
  std::optional<double> slowdown;
  std::optional<Seconds> found_after, lasts;
  std::optional<FabricFault> fault;
};

void declare_mode(const DeclaredMembers& member, WrittenMode& out) {
  member.required("name", out.name, "");
  member.optional("component", out.component, kFailingComponents,
                  "What fails by itself; a cable is one between switches");
  member.optional("count", out.count, kCount, "Failures among \"observed\"");
  member.optional("mean_time", out.mean_time, kMeanTime,
                  "Between failures of one component, instead of \"count\"");
  member.optional("effect", out.effect, kEffects, "Default: crash");
  member.optional("scope", out.scope, kScopes,
                  "What goes down; default: all nodes of the component's rack, switch or feed, "
                  "nothing but the job for a cable, else one node");
  member.optional("shape", out.shape, Interval{0.1, 10},
                  "Weibull; below 1: most fail early; default: 1, exponential");
  member.optional("replaced", out.replaced, kShare,
                  "How likely a node has to be replaced; default: 1");
  member.optional("slowdown", out.slowdown, kSlowdown,
                  R"(Of every step, for "slow" and "degraded")");
  member.optional("found_after", out.found_after, kFoundAfter, R"(Mean, for "slow" and "silent")");
  member.optional("fault", written_type(kFaultSchema),
                  "For \"slow\" and \"degraded\", instead of \"slowdown\": what of the fabric is "
                  "broken; the step is simulated with it",
                  [&](const JsonCursor& at) { out.fault = read_fabric_fault(at); });
  member.optional("lasts", out.lasts, kMeanTime, "Mean, for \"degraded\": until it is mended");
}

/// A rate is a count of what was observed, or a mean time of one component.
Seconds mean_time_of(const JsonCursor& from, const WrittenMode& written,
                     const std::optional<Observed>& observed, FailingComponent component) {
  if (written.mean_time && written.count) {
    from.at("count").fail(R"(either "count" or "mean_time")");
  }
  if (written.mean_time) return *written.mean_time;
  const JsonCursor counted = from.at("count");
  if (!observed) counted.fail(R"("mean_time", as there is no "observed" to divide by)");
  if (observed->components[static_cast<std::size_t>(component)] <= 0) {
    counted.fail(R"("mean_time", or "cables" in "observed" to divide by)");
  }
  return observed->time * observed->components[static_cast<std::size_t>(component)] /
         counted.number(kCount);
}

/// What shares a component goes down with it; a cable between switches takes no node down, anything
/// else one.
FailureScope usual_scope(FailingComponent component) {
  switch (component) {
    case FailingComponent::rack:
      return FailureScope::rack;
    case FailingComponent::switch_nodes:
      return FailureScope::switch_nodes;
    case FailingComponent::feed:
      return FailureScope::feed;
    case FailingComponent::cable:
      return FailureScope::process;
    default:
      return FailureScope::node;
  }
}

/// `logged`: how often it fails is in a log.
ReliabilityMode read_mode(const JsonCursor& from, const std::optional<Observed>& observed,
                          bool logged) {
  const auto refuse = [&from](std::string_view key, const char* allowed) {
    if (const auto given = from.find(key)) given->fail(allowed);
  };
  WrittenMode written;
  declare_mode({from, Extent::whole}, written);
  ReliabilityMode out;
  FailureMode& mode = out.mode;
  mode.name = written.name;
  if (logged) {
    out.component = FailingComponent::job;
    for (const char* key : {"component", "count", "mean_time", "shape"}) {
      refuse(key, "nothing: the log says what failed, and when");
    }
  } else {
    out.component = written.component
                        ? *written.component
                        : read_choice<FailingComponent>(from.at("component"), kFailingComponents);
    mode.mean_time = mean_time_of(from, written, observed, out.component);
    mode.shape = written.shape;
  }
  mode.effect = written.effect;
  const bool degraded = mode.effect == FailureEffect::degraded;
  const bool slow = mode.effect == FailureEffect::slow;
  const bool found = slow || mode.effect == FailureEffect::silent;
  if (degraded) {
    refuse("scope", "nothing: what is degraded is mended while the job runs");
    refuse("replaced", "nothing: what is degraded is mended while the job runs");
  } else {
    refuse("lasts", R"("effect": "degraded" with it)");
  }
  mode.scope = written.scope.value_or(usual_scope(out.component));
  mode.replaced = written.replaced;
  if (!slow && !degraded) {
    refuse("fault", R"("effect": "slow" or "degraded" with it)");
    refuse("slowdown", R"("effect": "slow" or "degraded" with it)");
  } else if (written.fault) {
    refuse("slowdown", R"(either "slowdown" or "fault")");
    out.fault = written.fault;
  } else {
    mode.slowdown = from.at("slowdown").number(kSlowdown);
  }
  if (degraded) mode.lasts = from.at("lasts").seconds(kMeanTime);
  if (found) {
    mode.found_after = from.at("found_after").seconds(kFoundAfter);
  } else {
    refuse("found_after", R"("effect": "slow" or "silent" with it)");
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
      const auto of = static_cast<FailureScope>(scope);
      say("scope", scopes_[scope],
          of == FailureScope::node ? "one node goes down"
          : of == FailureScope::process
              ? "no node goes down"
              : fmt::format("all nodes of the {} go down", kScopes[scope]));
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
    problem.fail(cell, fmt::format("a time from 0 to {}", plain_number(kMostSeconds / unit)));
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

/// Without "modes" whatever else is said of failures has to be said as modes.
void refuse_other_words(const JsonCursor& from) {
  constexpr std::array<std::string_view, 7> kWords{"preset", "about",    "source", "note",
                                                   "log",    "observed", "modes"};
  if (from.find("modes")) return;
  for (const std::string& key : from.keys()) {
    if (std::ranges::find(kWords, key) != kWords.end()) continue;
    const std::string option = from.at(key).making_option();
    throw InputError(
        {.file = from.file(),
         .pointer = from.pointer(),
         .found = fmt::format("the unknown key {}{} and no \"modes\"", in_quotes(key),
                              option.empty() ? "" : " (" + option + ")"),
         .allowed =
             R"(the name of a preset (lockstep list reliability), or "modes" with what was )"
             R"("observed": {"observed": {"gpus": 16384, "time": "3 h"}, "modes": [{"name": )"
             R"("GPU", "component": "gpu", "count": 1}]} is a GPU of 16,384 every 3 h)",
         .nearest = {}});
  }
}

void read_modes(const JsonCursor& from, const std::optional<Observed>& observed,
                ReliabilitySpec& out) {
  const auto log = from.find("log");
  std::set<std::string> names;
  OpenModes open;
  if (!log) refuse_other_words(from);
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

}  // namespace

void declare_reliability(const DeclaredMembers& member, ReliabilitySpec& out) {
  // The modes depend on what was observed, and on whether there is a log.
  const auto later = [](const JsonCursor&) {};
  std::optional<ObservedSizes> observed;
  member.optional("about", out.about, "");
  member.optional("log", text_type(),
                  "CSV file with known failures instead of rates, from the folder of this file: "
                  "columns mode, and time_s, time_min, time_h or time_d since the run began. Modes "
                  "that are not listed below are crashes of a node",
                  later);
  member.optional("observed", observed, "What was watched while failures were counted",
                  declare_observed);
  member.optional(
      "modes", kMostModes, "", "",
      [](const DeclaredMembers& mode) {
        WrittenMode written;
        declare_mode(mode, written);
      },
      later);
  if (member.object() == nullptr) return;
  const auto counts = observed ? std::optional(observed_of(*observed)) : std::nullopt;
  read_modes(*member.object(), counts, out);
}

}  // namespace lockstep
