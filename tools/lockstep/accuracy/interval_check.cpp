#include "tools/lockstep/accuracy/interval_check.hpp"

#include <cmath>
#include <fmt/format.h>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "tools/lockstep/statistics.hpp"

namespace lockstep {
namespace {

/// A run with the interval that others gave it.
struct JudgedRun {
  const Residual* run;
  double half_width;
  bool covered;
};
using JudgedRuns = std::vector<JudgedRun>;

JudgedRuns judged(const ResidualTable& table, double Residual::* error, bool fitted) {
  JudgedRuns out;
  for (const Residual& run : table) {
    const SoftwareKnown known = fitted ? SoftwareKnown::release : run.left_out_known;
    const PredictionInterval interval = predict_interval(table, run.traits, known, run.source);
    const double took = std::exp(-(run.*error));  // over the prediction
    out.push_back({&run, interval.half_width(), interval.low <= took && took <= interval.high});
  }
  return out;
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
  for (const JudgedRun& r : runs) groups[std::string(key(*r.run))].push_back(r);
  std::vector<IntervalGroup> out;
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
  const JudgedRuns left_out = judged(table, &Residual::left_out, false);
  IntervalCheck out;
  out.by_software = {summary_of(std::string(name_of(SoftwareKnown::release)),
                                judged(table, &Residual::fitted, true))};
  for (IntervalGroup& g :
       grouped_by(left_out, [](const Residual& r) { return name_of(r.left_out_known); })) {
    // Another source that has the very release is rare, and no different to the user.
    if (g.name == name_of(SoftwareKnown::release)) g.name += ", left out";
    out.by_software.push_back(std::move(g));
  }
  out.left_out = {summary_of("all", left_out)};
  out.by_kind = grouped_by(left_out, [](const Residual& r) { return kind_of(r.traits); });
  out.by_architecture =
      grouped_by(left_out, [](const Residual& r) { return r.traits.architecture; });
  out.by_source = grouped_by(left_out, [](const Residual& r) { return r.source; });
  return out;
}

std::string intervals_table(const IntervalCheck& check, const TextStyle& style) {
  std::string out;
  for (const auto& [title, groups] :
       {std::pair{"software", &check.by_software}, std::pair{"source left out", &check.left_out},
        std::pair{"kind", &check.by_kind}, std::pair{"GPUs", &check.by_architecture},
        std::pair{"source", &check.by_source}}) {
    TextTable table(
        {{title, TextTable::Align::left}, {"rows"}, {"covered"}, {"median half-width"}});
    for (const IntervalGroup& g : *groups) {
      table.add(
          {g.name, std::to_string(g.rows), percent_text(g.covered), percent_text(g.half_width)});
    }
    out += (out.empty() ? "" : "\n") + table.text(style, 0);
  }
  return out + fmt::format("\n{:.0f} % of the rows are to be covered, each by what others say.\n",
                           100 * kCoverage);
}

std::string intervals_json(const IntervalCheck& check) {
  const nlohmann::ordered_json out{{"coverage", kCoverage},
                                   {"by_software", groups_json(check.by_software)},
                                   {"left_out", groups_json(check.left_out)},
                                   {"by_kind", groups_json(check.by_kind)},
                                   {"by_architecture", groups_json(check.by_architecture)},
                                   {"by_source", groups_json(check.by_source)}};
  return out.dump(1) + "\n";
}

}  // namespace lockstep
