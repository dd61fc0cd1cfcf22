#include "tools/laws/plan_laws.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/laws/law_subject.hpp"
#include "sim/search/evaluate_plan.hpp"
#include "sim/search/read_plan.hpp"
#include "tools/laws/document_edits.hpp"
#include "tools/laws/said.hpp"
#include "tools/views/plan/plan_output.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double number_of(const Json& of, const char* name) { return of.at(name).get<double>(); }

std::vector<const Json*> possible_candidates(const Json& answer) {
  std::vector<const Json*> out;
  for (const Json& each : answer.at("candidates")) {
    if (each.at("possible") == true) out.push_back(&each);
  }
  return out;
}

std::string candidate_name(const Json& candidate) {
  return candidate.at("name").get<std::string>();
}

// --- conservation ------------------------------------------------------------------------------

void hold_plan_money(DocumentSubject& subject, LawBook& book) {
  for (const Json* const each : possible_candidates(subject.answer())) {
    const Json& expected = each->at("expected");
    if (!expected.contains("usd")) continue;
    const std::string name = candidate_name(*each);
    book.same(name + ": capital and its parts", number_of(expected, "capital_usd"),
              number_of(expected, "capital_machines_usd") +
                  number_of(expected, "capital_network_usd") +
                  number_of(expected, "capital_building_usd"),
              1e-10);
    book.at_most(name + ": written off", number_of(expected, "write_off_usd"),
                 number_of(expected, "usd"), 1e-10);
    book.at_most(name + ": energy", number_of(expected, "energy_usd"), number_of(expected, "usd"),
                 1e-10);
  }
  if (book.comparisons() == 0) book.does_not_apply("nothing has a price");
}

/// Percentiles rise, chances are no surer than each limit alone, shares of the best are at most 1.
void hold_plan_samples(DocumentSubject& subject, LawBook& book) {
  double best = 0;
  for (const Json* const each : possible_candidates(subject.answer())) {
    const std::string name = candidate_name(*each);
    for (const char* measure : {"time_s", "usd", "energy_j", "peak_w"}) {
      if (!each->contains(measure)) continue;
      const Json& spread = each->at(measure);
      const std::string what = fmt::format("{}: {}", name, measure);
      book.at_most(what + ", 5th and 50th percentile", number_of(spread, "p05"),
                   number_of(spread, "p50"), 0);
      book.at_most(what + ", 50th and 95th percentile", number_of(spread, "p50"),
                   number_of(spread, "p95"), 0);
    }
    const Json& chances = each->at("chances");
    for (const char* limit : {"time", "power", "usd"}) {
      book.at_most(fmt::format("{}: chance of all and of {}", name, limit),
                   number_of(chances, "all"), number_of(chances, limit), 0);
    }
    best += number_of(*each, "best_share");
  }
  book.at_most("shares in which each is best", best, 1, kPrinted);
}

// --- what is chosen ----------------------------------------------------------------------------

bool better_in_all(const Json& a, const Json& b) {
  const Json &one = a.at("expected"), &other = b.at("expected");
  const bool priced = one.contains("usd") && other.contains("usd");
  return number_of(one, "time_s") < number_of(other, "time_s") &&
         number_of(one, "energy_j") < number_of(other, "energy_j") &&
         (!priced || number_of(one, "usd") < number_of(other, "usd"));
}

/// The front has nothing that another beats in everything, and the choice keeps the limits.
void hold_plan_choice(DocumentSubject& subject, LawBook& book) {
  const Json& answer = subject.answer();
  const std::vector<const Json*> all = possible_candidates(answer);
  const bool priced = std::ranges::all_of(
      all, [](const Json* each) { return each->at("expected").contains("usd"); });
  for (const Json* const each : all) {
    const std::string name = candidate_name(*each);
    if (each->at("on_front") == true && priced) {
      book.holds(name + " is on the front, and nothing beats it",
                 std::ranges::none_of(
                     all, [&](const Json* other) { return better_in_all(*other, *each); }));
    }
    if (answer.at("choice") != name) continue;
    book.at_most(name + ": confidence", number_of(answer.at("limits"), "confidence"),
                 number_of(each->at("chances"), "all"), kPrinted);
    book.same(name + ": time of the choice", number_of(answer, "choice_time_s"),
              number_of(each->at("expected"), "time_s"), 0);
  }
  if (book.comparisons() == 0) book.does_not_apply("nothing is possible");
}

// --- exactness ---------------------------------------------------------------------------------

/// A candidate without what others make of it.
std::string by_itself(Json candidate) {
  for (const char* of_others : {"verdict", "best_share", "on_front"}) candidate.erase(of_others);
  return write_json(candidate);
}

void same_candidates(const Json& found, const Json& expected, LawBook& book) {
  std::map<std::string, std::string> wanted;
  for (const Json& each : expected.at("candidates")) {
    wanted[candidate_name(each)] = by_itself(each);
  }
  for (const Json& each : found.at("candidates")) {
    const auto there = wanted.find(candidate_name(each));
    book.holds(candidate_name(each) + " is a candidate of both", there != wanted.end());
    if (there != wanted.end()) book.same_text(there->first, by_itself(each), there->second);
  }
}

void hold_candidate_order(DocumentSubject& subject, LawBook& book) {
  const Json& candidates = subject.document().at("candidates");
  if (candidates.size() < 2) return book.does_not_apply("one candidate");
  Json turned = subject.document();
  turned["candidates"] = Json::array();
  for (std::size_t i = candidates.size(); i-- > 0;) turned["candidates"].push_back(candidates[i]);
  same_candidates(subject.ask(turned), subject.answer(), book);
}

/// Sample i is the same world for all candidates, so that none changes another.
void hold_candidate_alone(DocumentSubject& subject, LawBook& book) {
  const Json& candidates = subject.document().at("candidates");
  if (candidates.size() < 2) return book.does_not_apply("one candidate");
  Json alone = subject.document();
  alone["candidates"] = Json::array({candidates.back()});
  same_candidates(subject.ask(alone), subject.answer(), book);
}

// --- better and worse --------------------------------------------------------------------------

/// Searches for layouts look at the step's time, and at no price.
void hold_cheaper(DocumentSubject& subject, LawBook& book) {
  if (subject.document().contains("regions")) {
    return book.does_not_apply("prices decide where its data comes from");
  }
  Json cheaper = subject.document();
  if (halve_prices(cheaper) == 0) return book.does_not_apply("nothing has a price");
  const Json answer = subject.ask(cheaper);
  const std::vector<const Json*> before = possible_candidates(subject.answer());
  const std::vector<const Json*> after = possible_candidates(answer);
  book.same("candidates that are possible", static_cast<double>(after.size()),
            static_cast<double>(before.size()), 0);
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const Json &was = before[i]->at("expected"), &is = after[i]->at("expected");
    const std::string name = candidate_name(*before[i]);
    for (const char* other : {"time_s", "energy_j"}) {
      book.same(fmt::format("{}: {} at half the prices", name, other), number_of(is, other),
                number_of(was, other), 0);
    }
    if (!was.contains("usd")) continue;
    book.at_most(name + ": usd at half the prices", number_of(is, "usd"), number_of(was, "usd"),
                 kPrinted);
    book.at_most(name + ": half the usd", 0.5 * number_of(was, "usd"), number_of(is, "usd"), 1e-9);
  }
}

/// A run that has less to do is over sooner, and costs no more energy.
void hold_fewer_tokens(DocumentSubject& subject, LawBook& book) {
  const Json* const fewer = subject.changed(
      {fmt::format("training.tokens={:.17g}", 0.5 * number_of(subject.answer(), "tokens"))});
  if (fewer == nullptr) return book.does_not_apply("half the tokens are out of bounds");
  const std::vector<const Json*> before = possible_candidates(subject.answer());
  const std::vector<const Json*> after = possible_candidates(*fewer);
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const std::string name = candidate_name(*before[i]);
    if (candidate_name(*after[i]) != name) continue;
    for (const char* measure : {"time_s", "energy_j"}) {
      book.at_most(fmt::format("{}: {} with half the tokens", name, measure),
                   number_of(after[i]->at("expected"), measure),
                   number_of(before[i]->at("expected"), measure), 0);
    }
    book.same(name + ": step with half the tokens", number_of(*after[i], "step_s"),
              number_of(*before[i], "step_s"), 0);
  }
  if (book.comparisons() == 0) book.does_not_apply("nothing is possible");
}

/// An input that is uncertain, and the measure that it makes worse as it rises.
struct InputEffect {
  const char* input;
  const char* measure;
  bool better = false;     ///< makes it better
  bool by_chance = false;  ///< moves failures, which are drawn
};
constexpr InputEffect kEffects[] = {{"efficiency", "time_s", true},
                                    {"power", "energy_j"},
                                    {"failure_rate", "time_s", false, true},
                                    {"recovery", "time_s", false, true},
                                    {"price", "usd"},
                                    {"tariff", "usd"}};

/// A run whose failures fall at other moments may be over sooner by chance, which is named up to
/// this share, or as far as its samples lie apart.
constexpr double kChanceOfRuns = 0.02;
double chance_of(const Json& candidate, const char* measure) {
  if (!candidate.contains(measure)) return kChanceOfRuns;
  const Json& spread = candidate.at(measure);
  const double apart = number_of(spread, "p95") - number_of(spread, "p05");
  return std::max(kChanceOfRuns, apart / number_of(spread, "p50"));
}

/// Each candidate when one input alone is at its 5th and at its 95th percentile.
void hold_plan_inputs(DocumentSubject& subject, LawBook& book) {
  for (const Json* const each : possible_candidates(subject.answer())) {
    for (const Json& swing : each->at("sensitivity")) {
      const auto* const effect = std::ranges::find_if(
          kEffects, [&](const InputEffect& of) { return swing.at("input") == of.input; });
      if (effect == std::end(kEffects) || !swing.at("at_low").contains(effect->measure)) continue;
      const double low = number_of(swing.at("at_low"), effect->measure);
      const double high = number_of(swing.at("at_high"), effect->measure);
      book.no_worse(
          fmt::format("{}: {} by {}", candidate_name(*each), effect->measure, effect->input),
          effect->better ? high : low, effect->better ? low : high, 0,
          effect->by_chance ? chance_of(*each, effect->measure) : kChanceOfRuns);
    }
  }
  if (book.comparisons() == 0) book.does_not_apply("nothing is uncertain");
}

// --- agreement ---------------------------------------------------------------------------------

/// The scenario of a candidate's step, as `lockstep run` takes it; nothing where its layout is
/// searched for, or it is several.
std::optional<Json> step_of(const Json& plan, const Json& candidate) {
  const bool several = candidate.contains("nodes") && candidate.at("nodes").size() > 1;
  const bool tuned = candidate.contains("layout") && candidate.at("layout") != "given";
  if (tuned || several || plan.contains("regions")) return std::nullopt;
  Json out = plan.contains("scenario") ? plan.at("scenario") : Json::object();
  if (candidate.contains("scenario")) merge_changes(out, candidate.at("scenario"));
  if (!out.contains("cluster") || !out["cluster"].is_object()) return std::nullopt;
  if (candidate.contains("nodes")) {
    const Json& nodes = candidate.at("nodes");
    out["cluster"]["nodes"] = nodes.is_array() ? nodes.at(0) : nodes;
  }
  for (const char* key : {"run", "cost", "price", "training"}) out.erase(key);
  return out;
}

void hold_plan_steps(DocumentSubject& subject, LawBook& book,
                     const std::vector<std::string>& presets) {
  const Commands commands(subject, presets);
  for (const Json& candidate : subject.document().at("candidates")) {
    const std::optional<Json> step = step_of(subject.document(), candidate);
    const auto found = std::ranges::find_if(subject.answer().at("candidates"), [&](const Json& of) {
      return of.at("name") == candidate.at("name");
    });
    if (!step || found == subject.answer().at("candidates").end() || found->at("possible") != true)
      continue;
    const Said said = commands.run({"run", commands.write("step.json", *step), "--format", "json"});
    if (said.exit != Exit::ok) continue;
    const Json run = said.json();
    for (const char* name : {"step_s", "mfu"}) {
      book.same(fmt::format("{}: {} of run", candidate_name(*found), name), number_of(*found, name),
                number_of(run, name), kPrinted);
    }
  }
  if (book.comparisons() == 0) book.does_not_apply("no candidate is one scenario as it stands");
}

}  // namespace

void hold_plan_asked_twice(DocumentSubject& subject, LawBook& book) {
  const Json& answer = subject.answer();
  book.same_text("the answer", write_json(subject.ask(subject.document())), write_json(answer));
}

void hold_plan_threads(DocumentSubject& subject, LawBook& book,
                       const std::vector<std::string>& presets) {
  const Commands commands(subject, presets);
  const Said said =
      commands.run({"plan", commands.file(), "--format", "json", "-j", "2", "--quiet"});
  if (!answered("plan", said, book)) return;
  Json found = said.json(), expected = subject.answer();
  for (Json* const each : {&found, &expected}) {
    for (const char* member : {"lockstep_version", "plan"}) each->erase(member);
  }
  book.same_text("the answer of plan on two threads and of the library on one", write_json(found),
                 write_json(expected));
}

Json plan_answer(const std::string& file, const std::string& text, const PresetStore& presets,
                 const std::function<bool()>& go_on) {
  const PlanSpec spec = read_plan(file, text, presets);
  const auto stops = [&] { return go_on && !go_on(); };
  const PlanReport report =
      evaluate_plan(spec, {.jobs = 1, .progress = [&] { return !stops(); }, .interrupted = stops});
  if (report.interrupted) throw LawsStopped();
  return plan_json(PlanAnswer{spec, report});
}

std::vector<DocumentLaw> plan_laws(const std::vector<std::string>& presets) {
  using enum LawFamily;
  return {
      {"money", conservation, "Parts of a plan's money add up, and none is above all.",
       hold_plan_money},
      {"samples", conservation, "Percentiles rise; chances and shares fit each other.",
       hold_plan_samples},
      {"asked_twice", exactness, "The same question has the same answer, byte for byte.",
       hold_plan_asked_twice},
      {"candidate_order", exactness, "The order of the candidates changes none of them.",
       hold_candidate_order},
      {"candidate_alone", exactness, "A candidate alone is what it is among others.",
       hold_candidate_alone},
      {"cheaper", monotony, "Half of all prices cost less, and change no time and no energy.",
       hold_cheaper},
      {"fewer_tokens", monotony, "Fewer tokens take no longer and no more energy.",
       hold_fewer_tokens},
      {"inputs", monotony, "More failures, slower recovery and higher prices make nothing better.",
       hold_plan_inputs},
      {"choice", closed_form, "Nothing beats the front; the choice keeps the limits.",
       hold_plan_choice},
      {"plan", agreement, "lockstep plan on several threads says what the library answers.",
       [presets](DocumentSubject& subject, LawBook& book) {
         hold_plan_threads(subject, book, presets);
       }},
      {"steps", agreement, "A candidate's step is what run says of its scenario.",
       [presets](DocumentSubject& subject, LawBook& book) {
         hold_plan_steps(subject, book, presets);
       }},
  };
}

}  // namespace lockstep
