#include "sim/search/sweep/points.hpp"

#include <algorithm>
#include <numeric>
#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "models/base/json_override.hpp"
#include "sim/core/random.hpp"
#include "sim/core/thread_leave.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// The seed of a repeat, the same for all points, so that they meet the same luck.
std::int64_t seed_of(std::uint64_t sweep_seed, std::uint32_t repeat) {
  constexpr std::uint32_t kSeeds = 2'000'000'000;
  RandomStream stream({.seed = sweep_seed,
                       .trajectory = repeat,
                       .component = 0,
                       .purpose = static_cast<std::uint32_t>(SweepDraws::repeats)});
  return stream.below(kSeeds);
}

std::vector<std::optional<Json>> drawn(const Sweep& sweep, std::size_t a, std::uint32_t sample) {
  const SweepAxis& axis = sweep.axes[a];
  RandomStream stream({.seed = sweep.seed,
                       .trajectory = sample,
                       .component = static_cast<std::uint32_t>(a),
                       .purpose = static_cast<std::uint32_t>(SweepDraws::samples)});
  std::vector<std::optional<Json>> row;
  for (std::size_t v = 0; v < axis.variables.size(); ++v) {
    double share = stream.uniform();
    if (!axis.cells.empty()) share = (axis.cells[v][sample] + share) / axis.samples;
    row.emplace_back(axis.variables[v].at_share(share));
  }
  return row;
}

}  // namespace

/// The values of a candidate, and what they set in the scenario.
struct PointMaker::Draft {
  std::vector<SqlValue> values;
  std::vector<std::pair<const std::string*, Json>> changes;  ///< pointer and value

  void apply(const Sweep& sweep, Json& scenario) {
    for (auto& [at, value] : changes) put_value(scenario, sweep.file, *at, std::move(value));
    changes.clear();
  }
};

PointMaker::PointMaker(const Sweep& sweep) : sweep_(sweep) {
  const std::vector<std::string> columns = sweep.columns();
  std::size_t known = 0;
  for (const SweepAxis& axis : sweep.axes) known += axis.variables.size();
  for (const DerivedValue& value : sweep.derived) {
    derived_.emplace_back();
    const std::span names(columns.data(), known++);
    if (value.is) derived_.back() = evaluator_.add(sweep.file, *value.is, names);
  }
  for (const Expression& constraint : sweep.constraints) {
    const std::span names(columns.data(), known);
    constraints_.push_back(evaluator_.add(sweep.file, constraint, names));
  }
}

PointMaker::Draft PointMaker::draft_of(std::uint32_t number) {
  Draft draft;
  std::uint64_t rest = number;
  const auto repeats = static_cast<std::uint32_t>(std::max(sweep_.repeats, 1));
  const auto repeat = static_cast<std::uint32_t>(rest % repeats);
  rest /= repeats;
  std::vector<std::uint64_t> places(sweep_.axes.size());
  for (std::size_t a = places.size(); a-- > 0;) {
    places[a] = rest % sweep_.axes[a].size();
    rest /= sweep_.axes[a].size();
  }
  for (std::size_t a = 0; a < places.size(); ++a) {
    const SweepAxis& axis = sweep_.axes[a];
    const bool listed = axis.kind == SweepAxis::Kind::list;
    const std::vector<std::optional<Json>> row =
        listed ? axis.rows[places[a]] : drawn(sweep_, a, static_cast<std::uint32_t>(places[a]));
    for (std::size_t v = 0; v < row.size(); ++v) {
      draft.values.push_back(row[v] ? sql_value(*row[v]) : SqlValue{});
      const std::string& at = axis.variables[v].at;
      if (row[v] && !at.empty()) draft.changes.emplace_back(&at, *row[v]);
    }
  }
  derive(draft);
  if (sweep_.repeats > 0) {
    static const std::string kSeedAt = "/run/seed";
    const std::int64_t seed = seed_of(sweep_.seed, repeat);
    draft.values.insert(draft.values.end(), {SqlValue{std::int64_t{repeat}}, SqlValue{seed}});
    draft.changes.emplace_back(&kSeedAt, seed);
  }
  return draft;
}

void PointMaker::derive(Draft& draft) {
  for (std::size_t d = 0; d < derived_.size(); ++d) {
    const DerivedValue& derived = sweep_.derived[d];
    if (const auto& quantity = derived.quantity_of) {
      const auto* text = std::get_if<std::string>(&draft.values[quantity->column]);
      const auto parsed = parse_quantity(text == nullptr ? "" : *text, quantity->dimension);
      const auto* number = std::get_if<double>(&parsed);
      draft.values.push_back(text == nullptr     ? draft.values[quantity->column]
                             : number == nullptr ? SqlValue{}
                                                 : SqlValue{*number});
    } else if (derived_[d]) {
      draft.values.push_back(evaluator_.evaluate(*derived_[d], draft.values));
    } else {
      Json scenario = sweep_.scenario;
      Draft copy = draft;
      copy.apply(sweep_, scenario);
      const Json::json_pointer pointer(derived.from);
      draft.values.push_back(scenario.contains(pointer) ? sql_value(scenario.at(pointer))
                                                        : SqlValue{});
    }
    if (!derived.at.empty()) draft.changes.emplace_back(&derived.at, json_of(draft.values.back()));
  }
}

SweepPoint PointMaker::make(std::uint32_t number) {
  Draft draft = draft_of(number);
  SweepPoint point{.number = number, .values = draft.values, .scenario = sweep_.scenario};
  draft.apply(sweep_, point.scenario);
  return point;
}

bool PointMaker::counts(std::uint32_t number) {
  if (constraints_.empty()) return true;
  const Draft draft = draft_of(number);
  return std::ranges::all_of(constraints_, [&](std::size_t constraint) {
    return is_true(evaluator_.evaluate(constraint, draft.values));
  });
}

std::vector<std::uint32_t> points_of(const Sweep& sweep, int jobs) {
  const auto candidates = static_cast<std::uint32_t>(sweep.candidates());
  std::vector<char> kept(candidates, 1);
  if (!sweep.constraints.empty()) {
    tbb::enumerable_thread_specific<PointMaker> makers([&] { return PointMaker(sweep); });
    const ThreadLeave leave(jobs);
    tbb::task_arena arena(jobs);
    arena.execute([&] {
      tbb::parallel_for(tbb::blocked_range<std::uint32_t>(0, candidates), [&](const auto& range) {
        PointMaker& maker = makers.local();
        for (std::uint32_t i = range.begin(); i < range.end(); ++i) kept[i] = maker.counts(i);
      });
    });
  }
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < candidates; ++i) {
    if (kept[i]) numbers.push_back(i);
  }
  return numbers;
}

}  // namespace lockstep
