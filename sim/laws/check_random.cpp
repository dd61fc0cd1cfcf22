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
  std::string about;
  std::size_t simulations = 0;
  std::vector<LawResult> laws;
  std::vector<BrokenScenario> broken;
  std::optional<RefusedScenario> refused;
};

std::shared_ptr<const Json> smallest(const RandomTrials& trials, const std::string& text,
                                     const LawResult& broken) {
  constexpr int kMostTrials = 400;
  const auto fails = [&](const Json& document) {
    try {
      return trials.certificate(write_json(document), broken.name).broken();
    } catch (const InputError&) {
      return false;
    }
  };
  return std::make_shared<const Json>(shrunk(Json::parse(text), fails, kMostTrials));
}

/// Not tried where somebody stopped it.
Outcome outcome_of(const RandomTrials& trials, std::uint32_t number) {
  Outcome out;
  const std::string text = trials.draw(number);
  try {
    Certificate certificate = trials.certificate(text, {});
    if (certificate.stopped) return out;
    for (const LawResult& law : certificate.laws) {
      if (law.book.verdict() != LawVerdict::broken) continue;
      out.broken.push_back(
          {number, law.name, law.book.breaks().front(), smallest(trials, text, law)});
    }
    out.about = std::move(certificate.about);
    out.simulations = certificate.simulations;
    out.laws = std::move(certificate.laws);
  } catch (const InputError& error) {
    out.refused = {number, error.first_line()};
  }
  out.tried = true;
  return out;
}

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
  ++std::ranges::find(out.kinds, outcome.about, &std::pair<std::string, std::size_t>::first)
        ->second;
  for (std::size_t i = 0; i < outcome.laws.size(); ++i) add(outcome.laws[i], number, out.laws[i]);
  std::ranges::move(outcome.broken, std::back_inserter(out.broken));
}

}  // namespace

RandomCertificate check_random(const RandomCheck& check, const RandomTrials& trials) {
  std::vector<Outcome> outcomes(check.count);
  std::atomic<std::uint32_t> next{0};
  std::atomic<std::size_t> done{0};
  const auto work = [&] {
    for (std::uint32_t i; (i = next++) < check.count;) {
      if (check.go_on && !check.go_on()) return;
      outcomes[i] = outcome_of(trials, check.first + i);
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
  for (const std::string& kind : trials.kinds) out.kinds.emplace_back(kind, 0);
  out.laws = trials.laws;
  for (std::uint32_t i = 0; i < check.count; ++i) {
    if (outcomes[i].tried) {
      add(std::move(outcomes[i]), check.first + i, out);
    } else {
      out.stopped = true;
    }
  }
  return out;
}

RandomCertificate check_random(const RandomCheck& check, const std::vector<Law>& laws,
                               const PresetStore& presets, const StepIntervals& intervals) {
  RandomTrials trials;
  trials.laws = tallies_of(laws);
  for (const AnswerKind kind : kAnswerKinds) trials.kinds.emplace_back(name_of(kind));
  trials.draw = [&](std::uint32_t number) {
    return random_scenario({.seed = check.seed, .number = number, .kind = check.kind}, presets);
  };
  trials.certificate = [&](const std::string& text, const std::string& law) {
    LawSubject subject({.file = "random.json",
                        .text = text,
                        .deep = check.deep,
                        .go_on = check.go_on,
                        .plant = check.plant},
                       presets, intervals);
    return check_laws(subject, laws_named(laws, law));
  };
  return check_random(check, trials);
}

}  // namespace lockstep
