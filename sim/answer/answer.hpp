/// A scenario goes in, its answer comes out: what `lockstep run --format json` says, for programs
/// that link the library.
///
///     const lockstep::PresetStore presets;
///     const lockstep::ScenarioAnswer answer =
///         lockstep::answer_scenario("scenarios/llama3-405b-54days.json", presets);
///     const double goodput = answer.number("goodput").value();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/assertion.hpp"
#include "sim/answer/fields.hpp"
#include "sim/answer/member_names.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// What a scenario is about, and so what its answer holds.
enum class AnswerKind : std::uint8_t {
  step,     ///< one training step
  run,      ///< days to months of them, with failures and checkpoints ("run")
  jobs,     ///< several jobs on one fabric ("jobs")
  rl,       ///< a step of reinforcement learning ("rl")
  queue,    ///< many jobs under a scheduler ("queue")
  serving,  ///< requests on pools of replicas ("serving")
};
/// "step", "run", "jobs", "rl", "queue", "serving".
std::string_view name_of(AnswerKind kind);
inline constexpr AnswerKind kAnswerKinds[] = {AnswerKind::step,  AnswerKind::run,
                                              AnswerKind::jobs,  AnswerKind::rl,
                                              AnswerKind::queue, AnswerKind::serving};

/// What is asked beside the scenario; options of `lockstep run` by the same names.
struct Question {
  std::vector<std::string> set{};       ///< "cluster.nodes=384"
  std::vector<std::string> profiles{};  ///< files, or presets' names
  Folding folding = Folding::automatic;
  bool allow_oom = false;             ///< predict a job that does not fit in memory
  std::optional<int> trajectories{};  ///< of a "run"; else what the scenario says
  int jobs = 1;                       ///< threads for these; the answer is the same for any number
  bool full_fabric = true;            ///< simulate a step on switches that never limit too
  std::string shown_file{};           ///< how a job's answer calls the file; else by its name
  /// Of the first level of a step's or a run's answer the members that are wanted, which has no
  /// claims judged then; null: all.
  const MemberNames* only = nullptr;
  /// Asked after each trajectory, and now and then in a queue or a service; false stops.
  std::function<bool()> go_on{};
  /// Told now and then which share of a run's trajectories, of a queue's jobs or of a service's
  /// requests is done.
  std::function<void(double)> reached{};
};

/// An answer, complete. Copies share what they hold.
class ScenarioAnswer {
 public:
  ScenarioAnswer(AnswerKind kind, nlohmann::ordered_json json);

  [[nodiscard]] AnswerKind kind() const { return kind_; }
  /// As `lockstep run --format json` has it, without "lockstep_version".
  [[nodiscard]] const nlohmann::ordered_json& json() const { return *json_; }
  /// The number at a dotted path, as `--assert` takes it: "mfu", "power.facility.mean_w",
  /// "waterfall.pipeline_bubble.share"; truth values as 0 or 1. Nothing if there is none.
  [[nodiscard]] std::optional<double> number(std::string_view path) const;
  /// Whether it keeps a bound such as "mfu>=0.40". Throws InputError for another form and, with the
  /// nearest name, for a number that the answer lacks.
  [[nodiscard]] bool keeps(const std::string& bound) const;

 private:
  AnswerKind kind_;
  std::shared_ptr<const nlohmann::ordered_json> json_;
};

/// Reads, checks and simulates the scenario in a file. Throws InputError about the scenario, and,
/// unless that is allowed, where a job does not fit in memory.
ScenarioAnswer answer_scenario(const std::string& file, const PresetStore& presets,
                               const Question& question = {});
/// Reads, checks and simulates a scenario given as text; paths in it are relative to the folder of
/// `file`.
ScenarioAnswer answer_text(const std::string& file, const std::string& text,
                           const PresetStore& presets, const Question& question = {});

/// answer_text() with intervals that are read already, for many answers, and on several threads.
/// Returns nothing if `question.go_on` stopped it.
std::optional<ScenarioAnswer> answer_text(const std::string& file, const std::string& text,
                                          const PresetStore& presets,
                                          const StepIntervals& intervals, const Question& question);

/// The members of answers of a kind, "claim" included.
std::vector<FieldInfo> answer_fields(AnswerKind kind);
/// What an answer's JSON is the answer to; nothing for JSON that is none of these.
std::optional<AnswerKind> kind_of(const nlohmann::ordered_json& answer);
/// What replaced an old name in a dotted path: "power.facility.ramp_w_per_s" of
/// "power.facility.ramp_mw_per_s". Empty where the path has none.
std::string successor_of(AnswerKind kind, std::string_view path);

/// number_at(), by an old name of the member too.
std::optional<double> number_by_any_name(const nlohmann::ordered_json& answer,
                                         std::string_view path);

/// What an assertion finds in an answer.
struct AssertedNumber {
  std::optional<double> value;      ///< by any name; nothing where the answer has null there
  std::optional<std::string> miss;  ///< why it is not kept: missed_by(), or that it has no value
  std::string why_null{};           ///< where it has none: ": it is ...", behind "has no value"
};
/// Nothing where the answer has no such member, or one that is no number.
std::optional<AssertedNumber> held_against(const Assertion& assertion,
                                           const nlohmann::ordered_json& answer);

/// The JSON Schema of `lockstep run --format json`, errors included.
nlohmann::ordered_json result_schema();

}  // namespace lockstep
