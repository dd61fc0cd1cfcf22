#include "tools/laws/document_question.hpp"

#include <fmt/format.h>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/laws/check_laws.hpp"
#include "sim/laws/check_random.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/search/serving_plan.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/laws/comm_laws.hpp"
#include "tools/laws/filling_laws.hpp"
#include "tools/laws/plan_laws.hpp"
#include "tools/laws/random_comm.hpp"
#include "tools/laws/random_filling.hpp"
#include "tools/laws/random_plan.hpp"
#include "tools/laws/serving_plan_laws.hpp"

namespace lockstep {

bool not_interrupted() { return !InterruptGuard::interrupted(); }

std::string other_kind(const JsonCursor& root) {
  const ScenarioKind kind = scenario_kind(root);
  const bool comm = kind == ScenarioKind::traffic || kind == ScenarioKind::collective;
  if (comm) return std::string(name_of(kind));
  if (!root.is_object()) return "";
  if (root.json().contains("filling")) return std::string(kFillingKind);
  if (!root.json().contains("candidates")) return "";
  return std::string(is_serving_plan(root) ? kServingPlanKind : kPlanKind);
}

DocumentQuestion document_question(const std::string& about, const PresetStore& presets) {
  DocumentQuestion out;
  out.go_on = not_interrupted;
  out.about = about;
  if (about == kFillingKind) {
    out.answer = [](const std::string& file, const std::string& text) {
      return filling_answer(file, text, not_interrupted);
    };
    return out;
  }
  if (about == kPlanKind || about == kServingPlanKind) {
    const auto plan = about == kPlanKind ? plan_answer : serving_plan_answer;
    out.answer = [&presets, plan](const std::string& file, const std::string& text) {
      return plan(file, text, presets, not_interrupted);
    };
    return out;
  }
  out.answer = [&presets](const std::string& file, const std::string& text) {
    return comm_answer(file, text, presets);
  };
  return out;
}

std::vector<DocumentLaw> document_laws(std::string_view about,
                                       const std::vector<std::string>& presets) {
  if (about == kFillingKind) return filling_laws(presets);
  if (about == kPlanKind) return plan_laws(presets);
  return about == kServingPlanKind ? serving_plan_laws(presets) : comm_laws(presets);
}

std::vector<std::string> document_sets(const JsonCursor& root, const std::string& about,
                                       const ParsedOptions& options) {
  constexpr int kFewSamples = 10;
  std::vector<std::string> out = options.all("set");
  const nlohmann::ordered_json& json = root.json();
  const bool few = json.contains("samples") && json.at("samples").is_number() &&
                   json.at("samples").get<double>() <= kFewSamples;
  if (about == kPlanKind && !options.has("deep") && !few) {
    out.push_back(fmt::format("samples={}", kFewSamples));
  }
  return out;
}

namespace {

const std::vector<DocumentKind>& document_kinds() {
  static const std::vector<DocumentKind> kinds{
      {"comm", {"traffic", "collective"}, random_comm},
      {"plan", {std::string(kPlanKind)}, random_plan},
      {"serving_plan", {std::string(kServingPlanKind)}, random_serving_plan},
      {"filling",
       {std::string(kFillingKind)},
       [](std::uint64_t seed, std::uint32_t number, const PresetStore&) {
         return random_filling(seed, number);
       }}};
  return kinds;
}

}  // namespace

KindAsked kind_asked(const ParsedOptions& options) {
  if (!options.has("kind")) return {};
  std::vector<std::string> names;
  for (const AnswerKind kind : kAnswerKinds) {
    if (options.get("kind") == name_of(kind)) return {.run = kind};
    names.emplace_back(name_of(kind));
  }
  for (const DocumentKind& kind : document_kinds()) {
    if (options.get("kind") == kind.name) return {.document = &kind};
    names.emplace_back(kind.name);
  }
  throw UsageError(fmt::format("--kind: found {}; allowed: {}{}", in_quotes(options.get("kind")),
                               listed(names), did_you_mean(options.get("kind"), names)));
}

RandomTrials document_trials(const DocumentKind& kind, const RandomCheck& check,
                             const std::vector<DocumentLaw>& laws, const PresetStore& presets) {
  RandomTrials out;
  out.kinds = kind.abouts;
  out.laws = tallies_of(laws);
  out.draw = [&](std::uint32_t number) { return kind.draw(check.seed, number, presets); };
  out.certificate = [&](const std::string& text, const std::string& law) {
    DocumentQuestion question =
        document_question(other_kind(JsonCursor::parse("random.json", text)), presets);
    question.file = "random.json";
    question.text = text;
    question.deep = check.deep;
    DocumentSubject subject(std::move(question), presets);
    return check_laws(subject, laws_named(laws, law));
  };
  return out;
}

}  // namespace lockstep
