#include "sim/laws/law_subject.hpp"

#include <ranges>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/assertion.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

AnswerKind answered(ScenarioKind kind) {
  switch (kind) {
    case ScenarioKind::run:
      return AnswerKind::run;
    case ScenarioKind::jobs:
      return AnswerKind::jobs;
    case ScenarioKind::rl:
      return AnswerKind::rl;
    case ScenarioKind::queue:
      return AnswerKind::queue;
    case ScenarioKind::serving:
      return AnswerKind::serving;
    default:
      return AnswerKind::step;
  }
}

}  // namespace

const Scenario* job_of(const ScenarioFile& file) {
  if (file.job) return &*file.job;
  return file.rl ? &file.rl->training : nullptr;
}

LawSubject::LawSubject(LawQuestion question, const PresetStore& presets,
                       const StepIntervals& intervals)
    : question_(std::move(question)), presets_(presets), intervals_(intervals) {
  const ParsedScenario parsed = parse_scenario(question_.file, question_.text, question_.set);
  require_kind(parsed.root,
               {ScenarioKind::run, ScenarioKind::jobs, ScenarioKind::rl, ScenarioKind::queue,
                ScenarioKind::serving},
               "no such key: laws are tried on what lockstep run answers");
  kind_ = answered(parsed.kind);
  document_ = std::make_shared<const Json>(parsed.root.json());
  read_ = std::make_unique<ScenarioFile>(read_scenario_file(parsed, presets));
  if (read_->rl && read_->run) kind_ = AnswerKind::run;
  const Scenario* const of = job();
  if (of == nullptr || !of->power || !of->power->cap) return;
  Json whole = *document_;
  whole["power"].erase("cap");
  uncapped_ = std::make_unique<ScenarioFile>(
      read_scenario_file(parse_scenario(question_.file, write_json(whole)), presets));
}

LawSubject::~LawSubject() = default;

const Scenario* LawSubject::job() const { return job_of(*read_); }

RunWork LawSubject::work() const { return repeated_work(*read_); }

void LawSubject::count(std::size_t simulations) {
  if (question_.go_on && !question_.go_on()) throw LawsStopped();
  simulations_ += simulations;
}

const Json& LawSubject::answer() {
  if (!answer_) answer_ = std::make_shared<const Json>(ask(*document_, {.full_fabric = true}));
  return *answer_;
}

Json LawSubject::ask(const Json& document, const Question& asked) {
  count();
  Question question = asked;
  question.allow_oom = true;
  question.go_on = question_.go_on;
  const std::optional<ScenarioAnswer> answer =
      answer_text(question_.file, write_json(document), presets_, intervals_, question);
  if (!answer) throw LawsStopped();
  Json json = answer->json();
  if (question_.plant) question_.plant(json, answers_++, question);
  return json;
}

const Json* LawSubject::changed(const std::vector<std::string>& sets) {
  const auto [known, is_new] = changed_.try_emplace(sets);
  if (!is_new) return known->second.get();
  try {
    known->second =
        std::make_shared<const Json>(ask(*document_, {.set = sets, .full_fabric = false}));
  } catch (const InputError&) {
    // A value beyond its bounds, or a rule: there is nothing to compare.
    known->second.reset();
  } catch (const LawsStopped&) {
    changed_.erase(known);
    throw;
  }
  return known->second.get();
}

Json with_keys_reversed(const Json& from) {
  if (from.is_array()) {
    Json out = Json::array();
    for (const Json& element : from) out.push_back(with_keys_reversed(element));
    return out;
  }
  if (!from.is_object()) return from;
  std::vector<std::pair<std::string, Json>> members;
  for (const auto& [key, value] : from.items()) {
    members.emplace_back(key, with_keys_reversed(value));
  }
  Json out = Json::object();
  for (auto& [key, value] : std::views::reverse(members)) out[key] = std::move(value);
  return out;
}

std::optional<double> number_in(const Json& answer, std::string_view path) {
  return number_at(answer, path);
}

}  // namespace lockstep
