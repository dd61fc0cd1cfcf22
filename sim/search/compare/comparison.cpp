#include "sim/search/compare/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/base/usage_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/search/rebase_files.hpp"
#include "sim/search/sweep/simulate_point.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Reads one of the two; its paths then start from the folder of `base`.
Json read_document(const std::string& file, const ComparisonInput& input,
                   const PresetStore& presets) {
  const std::string text = read_text_file(file);
  const JsonCursor root = JsonCursor::parse(file, text, JsonStyle::plain, input.sets);
  require_kind(root, {ScenarioKind::run},
               "no such key: scenarios of one job each are compared, and steps of training");
  (void)complete_measured(read_job_file(file, text, presets, input.sets).draft, presets, {});
  Json document = root.json();
  drop_remarks(document);
  if (file != input.a) rebase_files(document, file, input.a);
  return document;
}

std::vector<std::string> number_names(const Json& answer) {
  std::vector<std::string> names;
  for (const auto& [name, value] : answer.items()) {
    if (value.is_number()) names.push_back(name);
  }
  return names;
}

class Comparer {
 public:
  Comparer(const ComparisonInput& input, const PresetStore& presets)
      : input_(input), presets_(presets), intervals_(presets) {}

  std::optional<Comparison> run() {
    Json a = read_document(input_.a, input_, presets_);
    Json b = read_document(input_.b, input_, presets_);
    out_.a = input_.a;
    out_.b = input_.b;
    if (a.contains("run") != b.contains("run")) {
      a.erase("run");
      b.erase("run");
      out_.notes.emplace_back(
          "one of them goes on for days, the other is a step: steps are compared");
    }
    how_.scenario_file = input_.a;
    how_.is_run = a.contains("run");
    how_.allow_oom = true;
    how_.folding = input_.folding;
    out_.metric = !input_.metric.empty() ? input_.metric : how_.is_run ? "goodput" : "step_s";

    out_.a_written = std::make_shared<const Json>(a);
    out_.b_written = std::make_shared<const Json>(b);
    const std::vector<Change> changes = steps_between(
        a, differences(a, b), [&](const Json& scenario) { return is_valid(scenario); });
    in_all_ = 1 + changes.size() + (changes.size() > 1 ? changes.size() - 1 : 0);
    if (!follow(a, changes)) return std::nullopt;
    note_memory("first", a);
    note_memory("second", b);
    return std::move(out_);
  }

 private:
  bool is_valid(const Json& scenario) const {
    try {
      const JobFile file = read_job_file(input_.a, write_json(scenario), presets_);
      (void)complete_measured(file.draft, presets_, {});
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  /// The answer to a valid scenario; nothing when somebody said stop.
  std::optional<Json> answer_of(const Json& scenario) {
    if (!input_.go_on()) return std::nullopt;
    std::optional<PointAnswer> answer =
        simulate_point(how_, scenario, presets_, intervals_, input_.go_on);
    if (!answer) return std::nullopt;
    if (!answer->error.empty()) throw UsageError("lockstep compare: " + answer->error);
    input_.progress(++done_, in_all_);
    if (const auto notes = answer->json.find("notes"); notes != answer->json.end()) {
      for (const Json& note : *notes) add_note(note.get<std::string>());
    }
    return std::move(answer->json);
  }
  void add_note(const std::string& text) {
    if (std::ranges::find(out_.notes, text) == out_.notes.end()) out_.notes.push_back(text);
  }
  /// What run says of a job that does not fit in memory, where it refuses to answer.
  void note_memory(std::string_view which, const Json& document) {
    const JobFile file = read_job_file(input_.a, write_json(document), presets_);
    try {
      require_memory(step_to_answer(complete_measured(file.draft, presets_, {}), nullptr));
    } catch (const InputError& error) {
      add_note(
          fmt::format("the {} does not fit in memory and is simulated all the same: found {}; "
                      "allowed: {}",
                      which, error.problem().found, error.problem().allowed));
    }
  }
  double metric_of(const Json& answer) const {
    const auto at = answer.find(out_.metric);
    if (at != answer.end() && at->is_number()) return at->get<double>();
    const std::vector<std::string> names = number_names(answer);
    throw UsageError(fmt::format("--metric: found {}; allowed: {}{}", in_quotes(out_.metric),
                                 listed(names), did_you_mean(out_.metric, names)));
  }

  static std::optional<double> excess_of(const Json& answer) {
    const auto at = answer.find("site_excess_w");
    return at != answer.end() ? std::optional(at->get<double>()) : std::nullopt;
  }
  /// What the site draws over its limit, where that moved from one end to the other, or is above 0.
  void note_excess(const std::optional<double>& from, const std::optional<double>& to) {
    const bool exceeded = from.value_or(0) > 0 || to.value_or(0) > 0;
    if (!exceeded && from == to) return;
    const auto words = [](const std::optional<double>& excess) {
      if (!excess) return std::string("no limit");
      return power_text(Watts{*excess}) + (*excess > 0 ? " (EXCEEDED)" : "");
    };
    add_note(fmt::format("site_excess_w, what the site draws above its limit: {} -> {}",
                         words(from), words(to)));
  }

  static std::vector<std::string> assumed_in(const Json& answer) {
    const auto at = answer.find("assumptions");
    return at != answer.end() ? at->get<std::vector<std::string>>() : std::vector<std::string>();
  }
  void assume(const std::vector<std::string>& first, const std::vector<std::string>& second) {
    const auto has = [](const std::vector<std::string>& all, const std::string& one) {
      return std::ranges::find(all, one) != all.end();
    };
    for (const std::string& one : first) {
      out_.assumptions.push_back((has(second, one) ? "" : "first: ") + one);
    }
    for (const std::string& one : second) {
      if (!has(first, one)) out_.assumptions.push_back("second: " + one);
    }
  }

  /// The step time with its interval, whatever is compared.
  static std::optional<ComparedStep> step_of(const Json& answer) {
    if (!answer.contains("step_s_low")) return std::nullopt;
    return ComparedStep{.step_s = answer.at("step_s").get<double>(),
                        .low_s = answer.at("step_s_low").get<double>(),
                        .high_s = answer.at("step_s_high").get<double>(),
                        .why = answer.at("interval").at("why").get<std::string>()};
  }

  bool follow(const Json& a, const std::vector<Change>& changes) {
    std::optional<Json> before = answer_of(a);
    if (!before) return false;
    out_.from = out_.to = metric_of(*before);
    out_.from_step = out_.to_step = step_of(*before);
    const double whole = total(*before);
    const std::vector<std::string> first_assumed = assumed_in(*before);
    const std::optional<double> first_excess = excess_of(*before);
    Json now = a;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      for (const Difference& difference : changes[i]) make_change(difference, now);
      std::optional<Json> after = answer_of(now);
      if (!after) return false;
      ComparedChange row{.differences = changes[i], .value = metric_of(*after)};
      row.change = row.value - out_.to;
      row.moves_excess = excess_of(*before) != excess_of(*after);
      find_bucket(*before, *after, whole, row);
      if (i == 0) row.alone = row.change;
      if (i > 0 && !made_alone(a, changes[i], row)) return false;
      out_.to = row.value;
      out_.to_step = step_of(*after);
      out_.changes.push_back(std::move(row));
      before = std::move(after);
    }
    note_excess(first_excess, excess_of(*before));
    assume(first_assumed, assumed_in(*before));
    std::vector<ComparedChange> moved, still;
    for (ComparedChange& row : out_.changes) {
      (row.change != 0 ? moved : still).push_back(std::move(row));
    }
    out_.changes = std::move(moved);
    for (ComparedChange& row : still) out_.changes.push_back(std::move(row));
    return true;
  }
  /// False: stopped.
  bool made_alone(const Json& a, const Change& change, ComparedChange& row) {
    Json alone = a;
    for (const Difference& difference : change) make_change(difference, alone);
    if (!is_valid(alone)) return true;
    const std::optional<Json> answer = answer_of(alone);
    if (answer) row.alone = metric_of(*answer) - out_.from;
    return answer.has_value();
  }

  /// The parts of the step, or of the wall time of a run.
  [[nodiscard]] const Json& parts(const Json& answer) const {
    return answer.at(how_.is_run ? "wall_time" : "waterfall");
  }
  [[nodiscard]] double total(const Json& answer) const {
    double sum = 0;
    for (const Json& part : parts(answer)) sum += part.at("seconds").get<double>();
    return sum;
  }
  void find_bucket(const Json& before, const Json& after, double whole, ComparedChange& row) const {
    for (const Json& part : parts(after)) {
      double moved = part.at("seconds").get<double>();
      for (const Json& old : parts(before)) {
        if (old.at("bucket") == part.at("bucket")) moved -= old.at("seconds").get<double>();
      }
      if (std::abs(moved) / whole <= std::abs(row.bucket_change)) continue;
      row.bucket = part.at("bucket").get<std::string>();
      row.bucket_change = moved / whole;
    }
  }

  const ComparisonInput& input_;
  const PresetStore& presets_;
  StepIntervals intervals_;
  Sweep how_;
  std::size_t done_ = 0, in_all_ = 1;
  Comparison out_;
};

}  // namespace

std::optional<Comparison> compare(const ComparisonInput& input, const PresetStore& presets) {
  return Comparer(input, presets).run();
}

}  // namespace lockstep
