/// The scenario that laws are tried on: asks it, or it with changes, and counts the answers.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/answer.hpp"
#include "sim/run/run_work.hpp"
#include "sim/scenario/scenario_file.hpp"

namespace lockstep {

/// Whoever asked for the laws has had enough: thrown out of a law, caught by check_laws().
struct LawsStopped : std::exception {};

/// A scenario as it was written, and what is asked beside it.
struct LawQuestion {
  std::string file;  ///< how messages call it; paths in the text start from its folder
  std::string text;
  std::vector<std::string> set{};  ///< "cluster.nodes=384"
  bool deep = false;               ///< large jobs, more values of each kind
  std::function<bool()> go_on{};   ///< asked before each answer; false stops
  /// Sees every answer before laws do, with the number of answers before it and what was asked:
  /// tests plant mistakes here.
  std::function<void(nlohmann::ordered_json& answer, std::size_t number, const Question& asked)>
      plant{};
};

class LawSubject {
 public:
  using Json = nlohmann::ordered_json;

  /// Throws InputError about the scenario, and where it is none that `lockstep run` answers.
  LawSubject(LawQuestion question, const PresetStore& presets, const StepIntervals& intervals);
  ~LawSubject();
  LawSubject(const LawSubject&) = delete;
  LawSubject& operator=(const LawSubject&) = delete;

  [[nodiscard]] const std::string& file() const { return question_.file; }
  [[nodiscard]] bool deep() const { return question_.deep; }
  [[nodiscard]] AnswerKind kind() const { return kind_; }
  /// That of a certificate: what the scenario is about.
  [[nodiscard]] std::string_view about() const { return name_of(kind_); }
  [[nodiscard]] const PresetStore& presets() const { return presets_; }
  /// As it was written, with what LawQuestion::set changed.
  [[nodiscard]] const Json& document() const { return *document_; }
  /// Read, completed and checked.
  [[nodiscard]] const ScenarioFile& read() const { return *read_; }
  /// The scenario without its power cap, which changes what a card's values are read as.
  [[nodiscard]] const ScenarioFile& uncapped() const { return uncapped_ ? *uncapped_ : *read_; }
  /// The job of a step, of a run, or that reinforcement learning trains; else null.
  [[nodiscard]] const Scenario* job() const;
  /// What its run repeats. Requires a run.
  [[nodiscard]] RunWork work() const;

  /// Its answer, complete; asked once.
  const Json& answer();
  /// The answer to another document under the same file's name. Throws InputError about it.
  Json ask(const Json& document, const Question& asked = {});
  /// The answer with values changed, without what the full fabric would give; nothing where such a
  /// scenario is refused. The same changes are asked once.
  const Json* changed(const std::vector<std::string>& sets);

  /// Says that a law simulates by itself. Throws LawsStopped.
  void count(std::size_t simulations = 1);
  [[nodiscard]] std::size_t simulations() const { return simulations_; }

 private:
  LawQuestion question_;
  const PresetStore& presets_;
  const StepIntervals& intervals_;
  AnswerKind kind_ = AnswerKind::step;
  std::shared_ptr<const Json> document_, answer_;
  std::unique_ptr<ScenarioFile> read_, uncapped_;
  std::map<std::vector<std::string>, std::shared_ptr<const Json>> changed_;
  std::size_t simulations_ = 0, answers_ = 0;
};

/// The job of a step, of a run, or that reinforcement learning trains; else null.
const Scenario* job_of(const ScenarioFile& file);

/// The same document, with the keys of each object in the opposite order.
nlohmann::ordered_json with_keys_reversed(const nlohmann::ordered_json& from);

/// The number at a dotted path of an answer; nothing if there is none.
std::optional<double> number_in(const nlohmann::ordered_json& answer, std::string_view path);

}  // namespace lockstep
