#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <set>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/json_override.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/search/sweep/digest.hpp"
#include "sim/search/sweep/sweep.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostAxes = 64;
constexpr std::size_t kMostValues = 1'000'000;  ///< of one axis
constexpr int kMostSamples = 1'000'000;
constexpr int kMostRepeats = 100'000;

/// Columns of every results table that no axis may be called.
constexpr std::array<std::string_view, 7> kReserved{"point", "repeat", "seed", "status",
                                                    "error", "hash",   "json"};

std::string pointer_of(const JsonCursor& from, std::string_view path) {
  std::string pointer = pointer_of_path(path);
  if (pointer.empty()) {
    from.fail("a path into the scenario, such as parallelism.tensor or /parallelism/tensor");
  }
  return pointer;
}
std::string pointer_of(const JsonCursor& from) { return pointer_of(from, from.string()); }

bool is_column_name(std::string_view name) {
  return !name.empty() && name.size() <= 60 && name.front() >= 'a' && name.front() <= 'z' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

/// The columns so far; each new one is checked.
class ColumnNames {
 public:
  std::string take(const JsonCursor& from, std::string name) {
    if (!is_column_name(name)) {
      from.fail("a \"name\" of lower-case letters, digits and _ for the column, not " +
                in_quotes(name));
    }
    if (std::ranges::find(kReserved, name) != kReserved.end() || !taken_.insert(name).second) {
      from.fail("a \"name\" that is no other column's, not " + in_quotes(name));
    }
    return name;
  }
  /// Reads "at" and "name" of a variable. What has no place in the scenario is for formulas alone;
  /// what has no name takes the last part of its pointer.
  void take_for(const JsonCursor& from, SweepVariable& variable) {
    const auto at = from.find("at");
    if (at) variable.at = pointer_of(*at);
    const JsonCursor name = at && !from.find("name") ? *at : from.at("name");
    variable.name = take(
        name, from.find("name") ? name.string() : variable.at.substr(variable.at.rfind('/') + 1));
  }

 private:
  std::set<std::string> taken_;
};

SweepAxis read_grid(const JsonCursor& from, ColumnNames& names) {
  SweepAxis axis;
  SweepVariable variable;
  names.take_for(from, variable);
  const JsonCursor values = from.at("values");
  for (const JsonCursor& value : values.elements(kMostValues)) axis.rows.push_back({value.json()});
  if (axis.rows.empty()) values.fail("at least one value");
  axis.variables.push_back(std::move(variable));
  return axis;
}

SweepAxis read_list(const JsonCursor& from, ColumnNames& names) {
  SweepAxis axis;
  const JsonCursor list = from.at("list");
  const std::optional<JsonCursor> renamed = from.find("names");
  const std::vector<JsonCursor> entries = list.elements(kMostValues);
  if (entries.empty()) list.fail("at least one entry");
  for (const JsonCursor& entry : entries) {
    for (const std::string& path : entry.keys()) {
      const JsonCursor value = entry.at(path);
      const std::string at = pointer_of(value, path);
      const bool known = std::ranges::any_of(
          axis.variables, [&](const SweepVariable& variable) { return variable.at == at; });
      if (known) continue;
      const auto name = renamed ? renamed->find(path) : std::nullopt;
      SweepVariable variable;
      variable.at = at;
      variable.name =
          names.take(name ? *name : value, name ? name->string() : at.substr(at.rfind('/') + 1));
      axis.variables.push_back(std::move(variable));
    }
  }
  for (const JsonCursor& entry : entries) {
    auto& row = axis.rows.emplace_back();
    row.resize(axis.variables.size());
    for (const std::string& path : entry.keys()) {
      const auto variable =
          std::ranges::find(axis.variables, pointer_of(entry, path), &SweepVariable::at);
      row[static_cast<std::size_t>(variable - axis.variables.begin())] = entry.at(path).json();
    }
  }
  if (renamed) renamed->finish();
  return axis;
}

void read_range(const JsonCursor& from, SweepVariable& variable) {
  const bool is_log = variable.law == SweepVariable::Law::log_uniform;
  const std::vector<JsonCursor> ends = from.elements(2);
  if (ends.size() != 2) from.fail("two numbers, [low, high]");
  const Interval bounds{is_log ? 0 : -1e15, 1e15, is_log};
  variable.low = ends[0].number(bounds);
  variable.high = ends[1].number(bounds);
  if (!(variable.low < variable.high)) from.fail("[low, high] with low below high");
}

SweepVariable read_variable(const JsonCursor& from, ColumnNames& names) {
  SweepVariable variable;
  names.take_for(from, variable);
  const auto uniform = from.find("uniform"), log_uniform = from.find("log_uniform"),
             choice = from.find("choice");
  if (uniform.has_value() + log_uniform.has_value() + choice.has_value() != 1) {
    from.fail(R"(one of "uniform", "log_uniform" and "choice" in it)");
  }
  if (choice) {
    for (const JsonCursor& value : choice->elements(kMostValues)) {
      variable.choices.push_back(value.json());
    }
    if (variable.choices.empty()) choice->fail("at least one value");
  } else {
    using Law = SweepVariable::Law;
    variable.law = uniform ? Law::uniform : Law::log_uniform;
    read_range(uniform ? *uniform : *log_uniform, variable);
    if (const auto whole = from.find("whole")) variable.whole = whole->boolean();
    if (const auto unit = from.find("unit")) variable.unit = unit->string();
    const auto is_whole = [](double x) { return x == static_cast<double>(static_cast<long>(x)); };
    if (variable.whole && !(is_whole(variable.low) && is_whole(variable.high))) {
      (uniform ? *uniform : *log_uniform).fail("whole numbers, as \"whole\" is true");
    }
  }
  from.finish();
  return variable;
}

/// The cells 0 to n - 1 in random order, after Fisher and Yates.
std::vector<std::uint32_t> shuffled(std::uint32_t n, RandomStream stream) {
  std::vector<std::uint32_t> cells(n);
  std::iota(cells.begin(), cells.end(), 0U);
  for (std::uint32_t i = n; i > 1; --i) std::swap(cells[i - 1], cells[stream.below(i)]);
  return cells;
}

SweepAxis read_samples(const JsonCursor& from, bool stratified, const Sweep& sweep,
                       ColumnNames& names) {
  SweepAxis axis;
  axis.kind = stratified ? SweepAxis::Kind::latin_hypercube : SweepAxis::Kind::random;
  axis.samples = static_cast<std::uint32_t>(
      from.at(stratified ? "latin_hypercube" : "random").integer(1, kMostSamples));
  const JsonCursor of = from.at("of");
  for (const JsonCursor& variable : of.elements(kMostAxes)) {
    axis.variables.push_back(read_variable(variable, names));
  }
  if (axis.variables.empty()) of.fail("at least one variable");
  if (!stratified) return axis;
  for (std::size_t v = 0; v < axis.variables.size(); ++v) {
    axis.cells.push_back(shuffled(
        axis.samples, RandomStream({.seed = sweep.seed,
                                    .trajectory = static_cast<std::uint32_t>(v),
                                    .component = static_cast<std::uint32_t>(sweep.axes.size()),
                                    .purpose = static_cast<std::uint32_t>(SweepDraws::cells)})));
  }
  return axis;
}

SweepAxis read_axis(const JsonCursor& from, const Sweep& sweep, ColumnNames& names) {
  const bool list = from.find("list").has_value(), random = from.find("random").has_value(),
             cube = from.find("latin_hypercube").has_value(),
             grid = from.find("values").has_value();
  if (list + random + cube + grid != 1) {
    from.fail(R"(one of "values", "list", "random" and "latin_hypercube" in it)");
  }
  SweepAxis axis = grid   ? read_grid(from, names)
                   : list ? read_list(from, names)
                          : read_samples(from, cube, sweep, names);
  from.finish();
  return axis;
}

DerivedValue read_derived(const JsonCursor& from, ColumnNames& names) {
  DerivedValue value;
  const JsonCursor name = from.at("name");
  value.name = names.take(name, name.string());
  const auto is = from.find("is"), copied = from.find("from");
  if (is.has_value() == copied.has_value()) from.fail(R"(either "is" or "from" in it)");
  if (is) value.is = Expression{is->string(), is->pointer()};
  if (copied) value.from = pointer_of(*copied);
  if (const auto at = from.find("at")) value.at = pointer_of(*at);
  from.finish();
  return value;
}

struct QuantityColumn {
  Dimension dimension;
  std::string_view suffix;  ///< of the column's name
};
constexpr std::array kQuantityColumns{
    QuantityColumn{Dimension::time, "_s"},
    QuantityColumn{Dimension::data, "_bytes"},
    QuantityColumn{Dimension::data_rate, "_bytes_per_s"},
    QuantityColumn{Dimension::flops_rate, "_flop_per_s"},
    QuantityColumn{Dimension::power, "_w"},
    QuantityColumn{Dimension::share, "_share"},
};

/// Texts among the values of a variable.
std::vector<std::string> texts_among(const SweepAxis& axis, std::size_t v) {
  const SweepVariable& variable = axis.variables[v];
  std::vector<Json> values = variable.choices;
  for (const auto& row : axis.rows) {
    if (row[v]) values.push_back(*row[v]);
  }
  std::vector<std::string> texts;
  for (const Json& value : values) {
    if (value.is_string()) texts.push_back(value.get<std::string>());
  }
  if (!variable.unit.empty()) texts.push_back("1 " + variable.unit);
  return texts;
}

/// What all the texts are quantities of; nothing where there is none, or where it could be two.
const QuantityColumn* quantity_of(const std::vector<std::string>& texts) {
  const auto are = [&](Dimension dimension) {
    return std::ranges::all_of(texts, [&](const std::string& text) {
      return std::holds_alternative<double>(parse_quantity(text, dimension));
    });
  };
  if (texts.empty() || are(Dimension::count)) return nullptr;
  const auto found = std::ranges::find_if(
      kQuantityColumns, [&](const QuantityColumn& column) { return are(column.dimension); });
  return found == kQuantityColumns.end() ? nullptr : found;
}

/// Adds a column of numbers for every axis that gives a quantity as text, so that results can be
/// plotted: "nic" has "nic_bytes_per_s" beside it.
void add_quantity_columns(Sweep& sweep) {
  std::vector<std::string> taken = sweep.columns();
  std::size_t column = 0;
  for (const SweepAxis& axis : sweep.axes) {
    for (std::size_t v = 0; v < axis.variables.size(); ++v, ++column) {
      const QuantityColumn* of = quantity_of(texts_among(axis, v));
      if (of == nullptr) continue;
      std::string name = axis.variables[v].name + std::string(of->suffix);
      if (std::ranges::find(taken, name) != taken.end()) continue;
      taken.push_back(name);
      sweep.derived.push_back({.name = std::move(name),
                               .is = {},
                               .from = {},
                               .at = {},
                               .quantity_of = {{column, of->dimension}}});
    }
  }
}

/// Reads the scenario's text; what was measured of it says nothing about the points.
void read_base(const JsonCursor& from, Sweep& sweep) {
  if (from.is_missing()) {
    (void)from.string();  // there is no file to read
    return;
  }
  const std::filesystem::path folder = std::filesystem::path(sweep.file).parent_path();
  sweep.scenario_file = (folder / from.string()).lexically_normal().string();
  const std::string text = read_text_file(sweep.scenario_file);
  sweep.scenario_digest = sha256(text);
  const JsonCursor root = JsonCursor::parse(sweep.scenario_file, text);
  if (!root.is_object()) root.fail("a scenario");
  require_kind(root, {ScenarioKind::run}, "a scenario of one step, or one with \"run\"");
  sweep.scenario = root.json();
  sweep.scenario.erase("expect");
  sweep.is_run = sweep.scenario.contains("run");
}

/// Puts a stack in the place of the scenario's. A file is named from the root, for points that are
/// simulated elsewhere.
void take_stack(const std::string& stack, Sweep& sweep) {
  const bool is_file = std::filesystem::is_regular_file(stack);
  sweep.scenario["stack"] = is_file ? std::filesystem::absolute(stack).string() : stack;
}

/// An axis that chooses the stack, or a part of it, and a stack that is to take its place.
void check_stack_stays(const Sweep& sweep, const std::string& stack) {
  for (const SweepAxis& axis : sweep.axes) {
    for (const SweepVariable& variable : axis.variables) {
      if (variable.at != "/stack" && !variable.at.starts_with("/stack/")) continue;
      throw InputError({.file = sweep.file,
                        .pointer = "/axes",
                        .found = "an axis at " + variable.at,
                        .allowed = "axes that leave the stack to --stack " + stack,
                        .nearest = {}});
    }
  }
}

/// What the rest of the sweep says has no bearing on which points there are.
std::string digest_of(const Json& root, const std::string& stack) {
  nlohmann::json sorted(root);
  for (const char* words : {"$schema", "about", "objective"}) sorted.erase(words);
  return sha256(write_json(sorted) + (stack.empty() ? "" : "\n" + stack));
}

/// Every formula compiles, over the columns that are there when it is evaluated.
void check_formulas(const Sweep& sweep) {
  Evaluator evaluator;
  std::vector<std::string> names;
  for (const SweepAxis& axis : sweep.axes) {
    for (const SweepVariable& variable : axis.variables) names.push_back(variable.name);
  }
  for (const DerivedValue& value : sweep.derived) {
    if (value.is) evaluator.add(sweep.file, *value.is, names);
    names.push_back(value.name);
  }
  for (const Expression& constraint : sweep.constraints) {
    evaluator.add(sweep.file, constraint, names);
  }
}

/// Every value has a place in the scenario.
void check_pointers(const Sweep& sweep) {
  Json scratch = sweep.scenario;
  for (const SweepAxis& axis : sweep.axes) {
    for (const SweepVariable& variable : axis.variables) {
      if (!variable.at.empty()) put_value(scratch, sweep.scenario_file, variable.at, nullptr);
    }
  }
}

Sweep sweep_of(const JsonCursor& root, const std::string& stack) {
  Sweep sweep;
  sweep.file = root.file();
  if (const auto schema = root.find("$schema")) (void)schema->string();  // for editors
  if (const auto about = root.find("about")) sweep.about = about->string();
  read_base(root.at("scenario"), sweep);
  if (!stack.empty()) take_stack(stack, sweep);
  if (const auto seed = root.find("seed")) {
    sweep.seed = static_cast<std::uint64_t>(seed->integer(0, 2'000'000'000));
  }
  ColumnNames names;
  const JsonCursor axes = root.at("axes");
  for (const JsonCursor& axis : axes.elements(kMostAxes)) {
    sweep.axes.push_back(read_axis(axis, sweep, names));
  }
  if (sweep.axes.empty()) axes.fail("at least one axis");
  if (const auto derived = root.find("derived")) {
    for (const JsonCursor& value : derived->elements(kMostAxes)) {
      sweep.derived.push_back(read_derived(value, names));
    }
  }
  add_quantity_columns(sweep);
  if (const auto constraints = root.find("constraints")) {
    for (const JsonCursor& constraint : constraints->elements(kMostAxes)) {
      sweep.constraints.push_back({constraint.string(), constraint.pointer()});
    }
  }
  if (const auto repeats = root.find("repeats")) {
    sweep.repeats = repeats->integer(1, kMostRepeats);
    if (!sweep.is_run)
      repeats->fail("no such key: one step of " + sweep.scenario_file +
                    " is the same for every seed");
  }
  if (const auto oom = root.find("allow_oom")) sweep.allow_oom = oom->boolean();
  if (const auto objective = root.find("objective")) sweep.objective = objective->string();
  const auto answers = root.find("answers");
  if (answers) sweep.keeps_answers = answers->boolean();
  root.finish();
  if (sweep.candidates() > kMostCandidates) {
    axes.fail("axes with at most " + std::to_string(kMostCandidates) + " combinations");
  }
  if (!answers) sweep.keeps_answers = sweep.candidates() <= kMostKept;
  check_formulas(sweep);
  check_pointers(sweep);
  if (!stack.empty()) check_stack_stays(sweep, stack);
  sweep.digest = digest_of(root.json(), stack);
  return sweep;
}

}  // namespace

Sweep load_sweep(const std::string& path, const std::string& stack) {
  const JsonCursor root = JsonCursor::parse(path, read_text_file(path));
  refuse_other_document(root, "sweep", "a sweep");
  return root.read_whole([&] { return sweep_of(root, stack); });
}

}  // namespace lockstep
