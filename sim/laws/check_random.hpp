/// Laws on random scenarios: how often each held, and the smallest scenario in which one did not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/laws/check_laws.hpp"

namespace lockstep {

struct RandomCheck {
  std::uint64_t seed = 1;
  std::uint32_t first = 0;           ///< number of the first scenario
  std::uint32_t count = 100;         ///< at least 1
  std::optional<AnswerKind> kind{};  ///< else any
  bool deep = false;
  int threads = 1;  ///< the result is the same for any number
  std::function<bool()> go_on{};
  /// Told after each scenario, from any thread: how many are done.
  std::function<void(std::size_t)> done{};
  /// As LawQuestion::plant.
  std::function<void(nlohmann::ordered_json&, std::size_t, const Question&)> plant{};
};

/// A law over all scenarios.
struct LawTally {
  std::string name;
  LawFamily family = LawFamily::conservation;
  std::string sentence;
  std::size_t held = 0, anomalies = 0, broken = 0, does_not_apply = 0, comparisons = 0;
  LawAnomaly largest;            ///< of the anomalies
  std::uint32_t largest_in = 0;  ///< number of its scenario
};

/// A law that did not hold.
struct BrokenScenario {
  std::uint32_t number = 0;
  std::string law;
  LawBreak first;
  std::shared_ptr<const nlohmann::ordered_json> scenario;  ///< the smallest that was found
};
/// A scenario that the reader takes and that has no answer.
struct RefusedScenario {
  std::uint32_t number = 0;
  std::string why;
};

struct RandomCertificate {
  std::uint64_t seed = 1;
  std::uint32_t first = 0;
  std::size_t scenarios = 0;  ///< tried
  bool deep = false, stopped = false;
  std::size_t simulations = 0;
  std::vector<std::pair<std::string, std::size_t>> kinds;  ///< how many of each
  std::vector<LawTally> laws;
  std::vector<BrokenScenario> broken;  ///< by number
  std::vector<RefusedScenario> refused;
};

/// What is drawn, and the laws that it is tried under: more kinds of scenarios than `lockstep run`
/// answers.
struct RandomTrials {
  std::vector<std::string> kinds;  ///< that a certificate's `about` may say
  std::vector<LawTally> laws;      ///< their names, families and sentences
  std::function<std::string(std::uint32_t number)> draw;
  /// Under all laws or, where that is not empty, under the law of that name. Throws InputError.
  std::function<Certificate(const std::string& text, const std::string& law)> certificate;
};

template <class Subject>
std::vector<LawTally> tallies_of(const std::vector<LawOf<Subject>>& laws) {
  std::vector<LawTally> out(laws.size());
  for (std::size_t i = 0; i < laws.size(); ++i) {
    out[i].name = laws[i].name;
    out[i].family = laws[i].family;
    out[i].sentence = laws[i].sentence;
  }
  return out;
}

/// The laws, or the one of that name where it is not empty.
template <class Subject>
std::vector<LawOf<Subject>> laws_named(std::vector<LawOf<Subject>> laws, const std::string& name) {
  if (!name.empty()) {
    std::erase_if(laws, [&](const LawOf<Subject>& law) { return law.name != name; });
  }
  return laws;
}

/// Draws and checks; a scenario that breaks a law is shrunk to what still breaks it. Of `check`
/// everything but its kind and its plant is used.
RandomCertificate check_random(const RandomCheck& check, const RandomTrials& trials);

/// Draws scenarios and checks what `lockstep run` answers to them.
RandomCertificate check_random(const RandomCheck& check, const std::vector<Law>& laws,
                               const PresetStore& presets, const StepIntervals& intervals);

std::vector<FieldInfo> random_certificate_fields();
nlohmann::ordered_json random_certificate_json(const RandomCertificate& certificate);

}  // namespace lockstep
