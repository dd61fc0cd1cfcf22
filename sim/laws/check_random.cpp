#include "sim/laws/check_random.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/laws/random_scenario.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Of one scenario.
struct Outcome {
  bool tried = false;
  AnswerKind kind = AnswerKind::step;
  std::size_t simulations = 0;
  std::vector<LawResult> laws;
  std::vector<BrokenScenario> broken;
  std::optional<RefusedScenario> refused;
};

class RandomTrial {
 public:
  RandomTrial(const RandomCheck& check, const std::vector<Law>& laws, const PresetStore& presets,
              const StepIntervals& intervals)
      : check_(check), laws_(laws), presets_(presets), intervals_(intervals) {}

  /// Not tried where somebody stopped it.
  [[nodiscard]] Outcome outcome(std::uint32_t number) const {
    Outcome out;
    const std::string text =
        random_scenario({.seed = check_.seed, .number = number, .kind = check_.kind}, presets_);
    try {
      const Certificate certificate = certificate_of(text, laws_);
      if (certificate.stopped) return out;
      out.kind = certificate.kind;
      out.simulations = certificate.simulations;
      out.laws = certificate.laws;
      for (const LawResult& law : certificate.laws) {
        if (law.book.verdict() != LawVerdict::broken) continue;
        out.broken.push_back({number, law.name, law.book.breaks().front(), smallest(text, law)});
      }
    } catch (const InputError& error) {
      out.refused = {number, error.what()};
    }
    out.tried = true;
    return out;
  }

 private:
  [[nodiscard]] Certificate certificate_of(const std::string& text,
                                           const std::vector<Law>& laws) const {
    LawSubject subject({.file = "random.json",
                        .text = text,
                        .deep = check_.deep,
                        .go_on = check_.go_on,
                        .plant = check_.plant},
                       presets_, intervals_);
    return check_laws(subject, laws);
  }

  [[nodiscard]] std::shared_ptr<const Json> smallest(const std::string& text,
                                                     const LawResult& broken) const {
    constexpr int kMostTrials = 400;
    std::vector<Law> laws = laws_;
    std::erase_if(laws, [&](const Law& law) { return law.name != broken.name; });
    const auto fails = [&](const Json& document) {
      try {
        return certificate_of(write_json(document), laws).broken();
      } catch (const InputError&) {
        return false;
      }
    };
    return std::make_shared<const Json>(shrunk(Json::parse(text), fails, kMostTrials));
  }

  const RandomCheck& check_;
  const std::vector<Law>& laws_;
  const PresetStore& presets_;
  const StepIntervals& intervals_;
};

void add(const LawResult& law, std::uint32_t number, LawTally& tally) {
  tally.comparisons += law.book.comparisons();
  switch (law.book.verdict()) {
    case LawVerdict::held:
      ++tally.held;
      break;
    case LawVerdict::held_with_anomalies:
      ++tally.anomalies;
      break;
    case LawVerdict::broken:
      ++tally.broken;
      break;
    case LawVerdict::does_not_apply:
      ++tally.does_not_apply;
      break;
  }
  const std::vector<LawAnomaly> anomalies = law.book.anomalies();
  if (anomalies.empty() || anomalies.front().size <= tally.largest.size) return;
  tally.largest = anomalies.front();
  tally.largest_in = number;
}

void add(Outcome outcome, std::uint32_t number, RandomCertificate& out) {
  ++out.scenarios;
  out.simulations += outcome.simulations;
  if (outcome.refused) {
    out.refused.push_back(*std::move(outcome.refused));
    return;
  }
  ++std::ranges::find(out.kinds, outcome.kind, &std::pair<AnswerKind, std::size_t>::first)->second;
  for (std::size_t i = 0; i < outcome.laws.size(); ++i) add(outcome.laws[i], number, out.laws[i]);
  std::ranges::move(outcome.broken, std::back_inserter(out.broken));
}

}  // namespace

RandomCertificate check_random(const RandomCheck& check, const std::vector<Law>& laws,
                               const PresetStore& presets, const StepIntervals& intervals) {
  const RandomTrial trial(check, laws, presets, intervals);
  std::vector<Outcome> outcomes(check.count);
  std::atomic<std::uint32_t> next{0};
  std::atomic<std::size_t> done{0};
  const auto work = [&] {
    for (std::uint32_t i; (i = next++) < check.count;) {
      if (check.go_on && !check.go_on()) return;
      outcomes[i] = trial.outcome(check.first + i);
      if (check.done) check.done(++done);
    }
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < check.threads; ++thread) others.emplace_back(work);
    work();
  }
  RandomCertificate out;
  out.seed = check.seed;
  out.first = check.first;
  out.deep = check.deep;
  for (const AnswerKind kind : kAnswerKinds) out.kinds.emplace_back(kind, 0);
  for (const Law& law : laws) {
    LawTally tally;
    tally.name = law.name;
    tally.family = law.family;
    tally.sentence = law.sentence;
    out.laws.push_back(std::move(tally));
  }
  for (std::uint32_t i = 0; i < check.count; ++i) {
    if (outcomes[i].tried) {
      add(std::move(outcomes[i]), check.first + i, out);
    } else {
      out.stopped = true;
    }
  }
  return out;
}

}  // namespace lockstep
