#include "tools/views/accuracy/interval_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/accuracy/learn_level.hpp"
#include "models/base/number_text.hpp"
#include "sim/answer/fields.hpp"
#include "sim/measured/statistics.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

/// A run with the interval that others gave it.
struct JudgedRun {
  const Residual* run;
  SoftwareKnown known;
  double half_width;
  double error;    ///< |predicted / measured - 1|
  double covered;  ///< 0 or 1; after measured steps, a mean over which these were
};
using JudgedRuns = std::vector<JudgedRun>;

/// Whether the measured time lies in the interval; `missed`: logarithm of predicted over measured
/// time.
bool holds(const PredictionInterval& interval, double missed) {
  const double took = std::exp(-missed);  // over the prediction
  return interval.low <= took && took <= interval.high;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Intervals by their inputs, because many rows share them.
class AlikeIntervals {
 public:
  explicit AlikeIntervals(const ResidualTable& table) : table_(table) {}

  const PredictionInterval& of(const PredictionTraits& traits, std::string_view without) {
    Knowledge known = knowledge_of(table_, traits, without);
    if (traits.learnt) known.software = SoftwareKnown::learnt;
    const Key key{without,
                  kind_of(traits),
                  traits.architecture,
                  known.strange_parts(),
                  known.maker,
                  known.software,
                  traits.stack_stands_in,
                  traits.learnt ? traits.learnt->deviation : 0};
    const auto found = intervals_.find(key);
    if (found != intervals_.end()) return found->second;
    return intervals_.emplace(key, predict_interval(table_, traits, known, without)).first->second;
  }

 private:
  using Key =
      std::tuple<std::string, std::string, std::string, int, bool, SoftwareKnown, bool, double>;
  const ResidualTable& table_;
  std::map<Key, PredictionInterval> intervals_;
};

using ErrorOf = std::optional<double> (*)(const Residual& run);

/// `left_out`: what is left out of the evidence, and of the fit by which `error` came about.
JudgedRuns judged(const ResidualTable& table, std::string Residual::* left_out, ErrorOf error,
                  bool default_stack = false, bool composed = false) {
  JudgedRuns runs;
  AlikeIntervals intervals(table);
  for (const Residual& run : table) {
    const std::optional<double> missed = error(run);
    if (!missed) continue;
    PredictionTraits traits = run.traits;
    traits.stack_stands_in = default_stack;
    traits.composed = traits.composed || composed;
    const PredictionInterval& interval = intervals.of(traits, run.*left_out);
    runs.push_back({&run, interval.known, interval.half_width(), std::abs(std::expm1(*missed)),
                    holds(interval, *missed) ? 1.0 : 0.0});
  }
  return runs;
}

/// Rows that lockstep learn would pool: of one source, GPU and kind, as many as make a choice.
std::vector<std::vector<const Residual*>> learnable(const ResidualTable& table) {
  constexpr std::size_t kFewest = 5;
  using Key = std::tuple<std::string_view, std::string_view, bool>;
  std::map<Key, std::vector<const Residual*>> groups;
  for (const Residual& r : table) {
    if (r.composed) groups[{r.source, r.traits.gpu, r.traits.experts}].push_back(&r);
  }
  std::vector<std::vector<const Residual*>> out;
  for (auto& [key, members] : groups) {
    if (members.size() >= kFewest) out.push_back(std::move(members));
  }
  return out;
}

/// Some rows of a group, by their places, and the level of the software that they teach.
struct Lesson {
  std::vector<std::size_t> rows;
  LevelPosterior level;
};

LevelPosterior taught_by(const std::vector<const Residual*>& group,
                         const std::vector<std::size_t>& rows) {
  constexpr double kPrior = 0.1;  // prior of software without a fit: lockstep learn
  std::vector<LevelWitness> witnesses;
  witnesses.reserve(rows.size());
  for (const std::size_t i : rows) {
    witnesses.push_back({.job = group[i]->row, .log_ratio = -*group[i]->composed});
  }
  return learn_level(witnesses, kPrior);
}

/// Every choice of rows that stand equally far apart, beside each other as far from it, in the
/// table as a ring: as many rows teach as there are steps.
std::vector<Lesson> lessons_of(const std::vector<const Residual*>& group, std::size_t steps) {
  const std::size_t n = group.size();
  const std::size_t farthest = steps == 1 ? 1 : (n - 1) / (steps - 1);
  std::vector<Lesson> out;
  for (std::size_t first = 0; first < n; ++first) {
    for (std::size_t apart = 1; apart <= farthest; ++apart) {
      Lesson lesson;
      for (std::size_t k = 0; k < steps; ++k) lesson.rows.push_back((first + k * apart) % n);
      lesson.level = taught_by(group, lesson.rows);
      out.push_back(std::move(lesson));
    }
  }
  return out;
}

/// Composed software after `steps` measured ones of the source.
JudgedRuns judged_after(const ResidualTable& table, std::size_t steps) {
  JudgedRuns runs;
  AlikeIntervals intervals(table);
  for (const std::vector<const Residual*>& group : learnable(table)) {
    const std::vector<Lesson> lessons = lessons_of(group, steps);
    for (std::size_t i = 0; i < group.size(); ++i) {
      PredictionTraits traits = group[i]->traits;
      traits.composed = true;
      // How sure the level is depends on the number of steps alone.
      const LevelPosterior& any = lessons.front().level;
      traits.learnt = LevelInForce{.deviation = any.deviation, .steps = any.jobs};
      const PredictionInterval& interval = intervals.of(traits, group[i]->vendor);
      std::vector<double> errors;
      double covered = 0;
      for (const Lesson& lesson : lessons) {
        if (std::ranges::find(lesson.rows, i) != lesson.rows.end()) continue;
        const double missed = *group[i]->composed + lesson.level.mean;
        errors.push_back(std::abs(std::expm1(missed)));
        covered += holds(interval, missed) ? 1 : 0;
      }
      runs.push_back({group[i], SoftwareKnown::learnt, interval.half_width(), mean_of(errors),
                      covered / static_cast<double>(errors.size())});
    }
  }
  return runs;
}

IntervalGroup summary_of(std::string name, const JudgedRuns& runs) {
  IntervalGroup out{.name = std::move(name), .rows = runs.size()};
  std::vector<double> widths, errors;
  std::map<std::string_view, std::vector<double>> sources;
  for (const JudgedRun& r : runs) {
    out.covered += r.covered;
    sources[r.run->source].push_back(r.covered);
    widths.push_back(r.half_width);
    errors.push_back(r.error);
  }
  out.covered /= static_cast<double>(runs.size());
  for (const auto& [source, covered] : sources) {
    out.by_source += mean_of(covered) / static_cast<double>(sources.size());
  }
  out.half_width = median(widths);
  out.error = median(errors);
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

const FieldTable<IntervalGroup>& interval_group_fields() {
  using Of = IntervalGroup;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("rows", "Published runs.", [](const Of& g) { return g.rows; })
          .add("median_error", Better::less, "Median of their errors, without signs.",
               [](const Of& g) { return g.error; })
          .add("covered", "Share of them that lies in its interval.",
               [](const Of& g) { return g.covered; })
          .add("covered_by_source", "The same, each source weighing one.",
               [](const Of& g) { return g.by_source; })
          .add("median_half_width", Better::less,
               "Half of an interval as a share of the prediction, median.",
               [](const Of& g) { return g.half_width; });
  return fields;
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
  const auto with_kinds = [](const std::string& name, const JudgedRuns& runs) {
    std::vector<IntervalGroup> groups{summary_of(name, runs)};
    for (IntervalGroup& g :
         grouped_by(runs, [](const JudgedRun& r) { return kind_of(r.run->traits); })) {
      g.name = name == "all" ? g.name : name + ", " + g.name;
      groups.push_back(std::move(g));
    }
    return groups;
  };
  IntervalCheck out;
  if (std::ranges::any_of(table, [](const Residual& r) { return r.composed.has_value(); })) {
    out.composed = with_kinds(
        "all",
        judged(
            table, &Residual::vendor, [](const Residual& r) { return r.composed; }, false, true));
    for (const std::size_t steps : {std::size_t{1}, std::size_t{3}}) {
      const JudgedRuns after = judged_after(table, steps);
      if (after.empty()) continue;
      const std::string name = steps == 1 ? "1 step" : std::to_string(steps) + " steps";
      for (IntervalGroup& g : with_kinds(name, after)) out.learnt.push_back(std::move(g));
    }
  }
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
  const char *title, *key, *sentence;
  std::vector<IntervalGroup> IntervalCheck::* groups;
};
constexpr std::array kCheckParts{
    CheckPart{"source left out", "left_out", "Each by what other sources say.",
              &IntervalCheck::left_out},
    CheckPart{"vendor left out", "vendor_left_out", "Each by what other vendors say.",
              &IntervalCheck::vendor_left_out},
    CheckPart{"software not named", "default_stack",
              "Each as if nobody had named its software, by what other sources say.",
              &IntervalCheck::default_stack},
    CheckPart{"composed, vendor left out", "composed",
              "Each with its software composed from what it does, by what other vendors say.",
              &IntervalCheck::composed},
    CheckPart{"learnt, vendor left out", "learnt",
              "The same after lockstep learn with steps of its own source.",
              &IntervalCheck::learnt},
    CheckPart{"kind", "by_kind", "As left_out, by kind of job.", &IntervalCheck::by_kind},
    CheckPart{"GPUs", "by_architecture", "As left_out, by generation of GPUs.",
              &IntervalCheck::by_architecture},
    CheckPart{"source", "by_source", "As left_out, by source.", &IntervalCheck::by_source},
    CheckPart{"vendor", "by_vendor", "As vendor_left_out, by vendor.", &IntervalCheck::by_vendor}};

const FieldTable<IntervalCheck>& interval_fields_of_check() {
  static const FieldTable<IntervalCheck> fields = [] {
    FieldTable<IntervalCheck> out;
    out.add("coverage", "Share of the runs that the intervals are to cover.",
            [](const IntervalCheck&) { return kCoverage; });
    for (const CheckPart& part : kCheckParts) {
      out.named(part.key, part.sentence, interval_group_fields(),
                [groups = part.groups](const IntervalCheck& check) {
                  std::vector<std::pair<std::string, IntervalGroup>> by_name;
                  for (const IntervalGroup& g : check.*groups) by_name.emplace_back(g.name, g);
                  return by_name;
                });
    }
    return out;
  }();
  return fields;
}

}  // namespace

std::string intervals_table(const IntervalCheck& check, const TextStyle& style) {
  std::string out;
  for (const CheckPart& part : kCheckParts) {
    if ((check.*part.groups).empty()) continue;
    TextTable table({{part.title, TextTable::Align::left},
                     {"rows"},
                     {"median error"},
                     {"covered"},
                     {"by source"},
                     {"median half-width"}});
    for (const IntervalGroup& g : check.*part.groups) {
      table.add({g.name, std::to_string(g.rows), percent_text(g.error), percent_text(g.covered),
                 percent_text(g.by_source), percent_text(g.half_width)});
    }
    out += (out.empty() ? "" : "\n") + table.text(style, 0);
  }
  return out + fmt::format(
                   "\n{:.0f} % of the rows are to be covered, each by what others say. Left out "
                   "is the fit; presets and\npriors were made in sight of all rows.\n",
                   100 * kCoverage);
}

JsonText intervals_json(const IntervalCheck& check) {
  return JsonText(Value(interval_fields_of_check().values(check)).json(), 1);
}

std::vector<FieldInfo> interval_check_fields() { return interval_fields_of_check().infos(); }

}  // namespace lockstep
