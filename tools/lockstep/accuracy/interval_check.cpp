#include "tools/lockstep/accuracy/interval_check.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/measured/statistics.hpp"

namespace lockstep {
namespace {

/// A run with the interval that others gave it.
struct JudgedRun {
  const Residual* run;
  SoftwareKnown known;
  double half_width;
  bool covered;
};
using JudgedRuns = std::vector<JudgedRun>;

using ErrorOf = std::optional<double> (*)(const Residual& run);

/// `left_out`: what is left out of the evidence, and of the fit by which `error` came about.
JudgedRuns judged(const ResidualTable& table, std::string Residual::* left_out, ErrorOf error,
                  bool default_stack = false) {
  JudgedRuns runs;
  for (const Residual& run : table) {
    const std::optional<double> missed = error(run);
    if (!missed) continue;
    PredictionTraits traits = run.traits;
    traits.stack_stands_in = default_stack;
    const PredictionInterval interval = predict_interval(table, traits, run.*left_out);
    const double took = std::exp(-*missed);  // over the prediction
    runs.push_back({&run, interval.known, interval.half_width(),
                    interval.low <= took && took <= interval.high});
  }
  return runs;
}

IntervalGroup summary_of(std::string name, const JudgedRuns& runs) {
  IntervalGroup out{.name = std::move(name), .rows = runs.size()};
  std::vector<double> widths;
  for (const JudgedRun& r : runs) {
    out.covered += r.covered ? 1 : 0;
    widths.push_back(r.half_width);
  }
  out.covered /= static_cast<double>(runs.size());
  out.half_width = median(widths);
  return out;
}

template <class Key>
std::vector<IntervalGroup> grouped_by(const JudgedRuns& runs, Key key) {
  std::map<std::string, JudgedRuns> groups;
  for (const JudgedRun& r : runs) groups[std::string(key(r))].push_back(r);
  std::vector<IntervalGroup> out;
  out.reserve(groups.size());
  for (const auto& [name, members] : groups) out.push_back(summary_of(name, members));
  return out;
}

nlohmann::ordered_json groups_json(const std::vector<IntervalGroup>& groups) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const IntervalGroup& g : groups) {
    out[g.name] = {{"rows", g.rows},
                   {"covered", twelve_digits(g.covered)},
                   {"median_half_width", twelve_digits(g.half_width)}};
  }
  return out;
}

}  // namespace

IntervalCheck check_intervals(const ResidualTable& table) {
  const auto with_all = [](const JudgedRuns& runs) {
    std::vector<IntervalGroup> groups{summary_of("all", runs)};
    auto classes = grouped_by(runs, [](const JudgedRun& r) { return name_of(r.known); });
    if (classes.size() > 1) groups.insert(groups.end(), classes.begin(), classes.end());
    return groups;
  };
  const JudgedRuns sources =
      judged(table, &Residual::source, [](const Residual& r) { return std::optional(r.left_out); });
  const JudgedRuns vendors = judged(
      table, &Residual::vendor, [](const Residual& r) { return std::optional(r.vendor_left_out); });
  const JudgedRuns unnamed =
      judged(table, &Residual::source, [](const Residual& r) { return r.as_default; }, true);
  IntervalCheck out;
  out.left_out = with_all(sources);
  out.vendor_left_out = with_all(vendors);
  out.default_stack = with_all(unnamed);
  out.by_kind = grouped_by(sources, [](const JudgedRun& r) { return kind_of(r.run->traits); });
  out.by_architecture =
      grouped_by(sources, [](const JudgedRun& r) { return r.run->traits.architecture; });
  out.by_source = grouped_by(sources, [](const JudgedRun& r) { return r.run->source; });
  out.by_vendor = grouped_by(vendors, [](const JudgedRun& r) { return r.run->vendor; });
  return out;
}

namespace {

/// The parts of a check, as tables and JSON name them.
struct CheckPart {
  const char *title, *key;
  std::vector<IntervalGroup> IntervalCheck::* groups;
};
constexpr std::array kCheckParts{
    CheckPart{"source left out", "left_out", &IntervalCheck::left_out},
    CheckPart{"vendor left out", "vendor_left_out", &IntervalCheck::vendor_left_out},
    CheckPart{"software not named", "default_stack", &IntervalCheck::default_stack},
    CheckPart{"kind", "by_kind", &IntervalCheck::by_kind},
    CheckPart{"GPUs", "by_architecture", &IntervalCheck::by_architecture},
    CheckPart{"source", "by_source", &IntervalCheck::by_source},
    CheckPart{"vendor", "by_vendor", &IntervalCheck::by_vendor}};

}  // namespace

std::string intervals_table(const IntervalCheck& check, const TextStyle& style) {
  std::string out;
  for (const CheckPart& part : kCheckParts) {
    TextTable table(
        {{part.title, TextTable::Align::left}, {"rows"}, {"covered"}, {"median half-width"}});
    for (const IntervalGroup& g : check.*part.groups) {
      table.add(
          {g.name, std::to_string(g.rows), percent_text(g.covered), percent_text(g.half_width)});
    }
    out += (out.empty() ? "" : "\n") + table.text(style, 0);
  }
  return out + fmt::format(
                   "\n{:.0f} % of the rows are to be covered, each by what others say. Left out "
                   "is the fit; presets and\npriors were made in sight of all rows.\n",
                   100 * kCoverage);
}

JsonText intervals_json(const IntervalCheck& check) {
  nlohmann::ordered_json out{{"coverage", kCoverage}};
  for (const CheckPart& part : kCheckParts) out[part.key] = groups_json(check.*part.groups);
  return JsonText(out, 1);
}

}  // namespace lockstep
