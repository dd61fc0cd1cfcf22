#include "tools/laws/document_question.hpp"

#include <fmt/format.h>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/laws/check_laws.hpp"
#include "sim/laws/check_random.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/laws/comm_laws.hpp"
#include "tools/laws/filling_laws.hpp"
#include "tools/laws/plan_laws.hpp"
#include "tools/laws/random_comm.hpp"

namespace lockstep {

bool not_interrupted() { return !InterruptGuard::interrupted(); }

std::string other_kind(const JsonCursor& root) {
  const ScenarioKind kind = scenario_kind(root);
  const bool comm = kind == ScenarioKind::traffic || kind == ScenarioKind::collective;
  if (comm) return std::string(name_of(kind));
  if (!root.is_object()) return "";
  if (root.json().contains("filling")) return std::string(kFillingKind);
  return root.json().contains("candidates") ? "plan" : "";
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
  out.answer = [&presets, plan = about == "plan"](const std::string& file,
                                                  const std::string& text) {
    return plan ? plan_answer(file, text, presets, not_interrupted)
                : comm_answer(file, text, presets);
  };
  return out;
}

std::vector<std::string> document_sets(const JsonCursor& root, const std::string& about,
                                       const ParsedOptions& options) {
  constexpr int kFewSamples = 10;
  std::vector<std::string> out = options.all("set");
  const nlohmann::ordered_json& json = root.json();
  const bool few = json.contains("samples") && json.at("samples").is_number() &&
                   json.at("samples").get<double>() <= kFewSamples;
  if (about == "plan" && !options.has("deep") && !few) {
    out.push_back(fmt::format("samples={}", kFewSamples));
  }
  return out;
}

std::optional<AnswerKind> kind_asked(const ParsedOptions& options) {
  if (!options.has("kind") || options.get("kind") == kCommKind) return std::nullopt;
  std::vector<std::string> names{std::string(kCommKind)};
  for (const AnswerKind kind : kAnswerKinds) {
    if (options.get("kind") == name_of(kind)) return kind;
    names.emplace_back(name_of(kind));
  }
  throw UsageError(fmt::format("--kind: found {}; allowed: {}{}", in_quotes(options.get("kind")),
                               listed(names), did_you_mean(options.get("kind"), names)));
}

RandomTrials comm_trials(const RandomCheck& check, const std::vector<DocumentLaw>& laws,
                         const PresetStore& presets) {
  RandomTrials out;
  out.kinds = {"traffic", "collective"};
  out.laws = tallies_of(laws);
  out.draw = [&](std::uint32_t number) { return random_comm(check.seed, number, presets); };
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
