#include "tools/laws/serving_plan_laws.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/write_json.hpp"
#include "sim/laws/law_subject.hpp"
#include "sim/search/serving_plan.hpp"
#include "tools/laws/document_edits.hpp"
#include "tools/laws/plan_laws.hpp"
#include "tools/laws/said.hpp"
#include "tools/views/plan/serving_plan_output.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double number_in(const Json& of, const char* name) { return of.at(name).get<double>(); }

std::vector<const Json*> possible_options(const Json& answer) {
  std::vector<const Json*> out;
  for (const Json& each : answer.at("options")) {
    if (each.at("possible") == true) out.push_back(&each);
  }
  return out;
}

std::string option_words(const Json& option) {
  return option.at("name").get<std::string>() + ", " + option.at("way").get<std::string>();
}

const Json* option_like(const Json& answer, const Json& option) {
  const auto found = std::ranges::find_if(answer.at("options"), [&](const Json& of) {
    return of.at("name") == option.at("name") && of.at("way") == option.at("way");
  });
  return found == answer.at("options").end() ? nullptr : &*found;
}

/// With `change` made of "serving" wherever the plan has one.
Json with_serving(const Json& plan, const std::function<void(Json&)>& change) {
  Json out = plan;
  const auto within = [&](Json& of) {
    if (of.contains("scenario") && of["scenario"].contains("serving")) {
      change(of["scenario"]["serving"]);
    }
  };
  within(out);
  for (Json& candidate : out["candidates"]) within(candidate);
  return out;
}

// --- conservation ------------------------------------------------------------------------------

/// GPUs are those of the pools' replicas, spares too, and no pool is busy longer than it is there.
void hold_option_parts(DocumentSubject& subject, LawBook& book) {
  for (const Json* const option : possible_options(subject.answer())) {
    double gpus = 0, spares = 0;
    for (const Json& pool : option->at("pools")) {
      const double replica = number_in(pool, "tensor") * number_in(pool, "pipeline") *
                             number_in(pool, "attention_data");
      gpus += replica * number_in(pool, "replicas");
      spares += replica * number_in(pool, "spares");
      book.at_most(option_words(*option) + ": busy share", number_in(pool, "busy_share"), 1,
                   kPrinted);
    }
    book.same(option_words(*option) + ": GPUs", number_in(*option, "gpus"), gpus, 0);
    book.same(option_words(*option) + ": spare GPUs", number_in(*option, "spare_gpus"), spares, 0);
  }
  if (book.comparisons() == 0) book.does_not_apply("nothing is possible");
}

// --- exactness ---------------------------------------------------------------------------------

/// The options of another document of the plan are those of the plan.
void same_options(DocumentSubject& subject, const Json& document, LawBook& book) {
  const Json& expected = subject.answer();
  const Json found = subject.ask(document);
  for (const Json& each : found.at("options")) {
    const Json* const there = option_like(expected, each);
    book.holds(option_words(each) + " is an option of both", there != nullptr);
    if (there == nullptr) continue;
    book.same_text(option_words(each), write_json(each), write_json(*there));
  }
}

void hold_order(DocumentSubject& subject, LawBook& book) {
  const Json& candidates = subject.document().at("candidates");
  if (candidates.size() < 2) return book.does_not_apply("one candidate");
  Json turned = subject.document();
  std::ranges::reverse(turned["candidates"]);
  same_options(subject, turned, book);
}

void hold_alone(DocumentSubject& subject, LawBook& book) {
  const Json& candidates = subject.document().at("candidates");
  if (candidates.size() < 2) return book.does_not_apply("one candidate");
  Json alone = subject.document();
  alone["candidates"] = Json::array({candidates.back()});
  same_options(subject, alone, book);
}

// --- better and worse --------------------------------------------------------------------------

/// Of two ways that take as many GPUs the one whose requests take less time is chosen, so that
/// money is compared of the same way alone.
bool same_way(const Json& a, const Json& b) { return a.at("pools") == b.at("pools"); }

void hold_half_prices(DocumentSubject& subject, LawBook& book) {
  Json cheaper = subject.document();
  if (halve_prices(cheaper) == 0) return book.does_not_apply("nothing has a price");
  const std::vector<const Json*> all = possible_options(subject.answer());
  const Json answer = subject.ask(cheaper);
  for (const Json* const before : all) {
    const Json* const after = option_like(answer, *before);
    book.holds(option_words(*before) + ": the same machines at half the prices",
               after != nullptr && after->at("possible") == true && same_way(*after, *before));
    constexpr const char* kUsd = "usd_per_million_output_tokens";
    if (after == nullptr || !before->at(kUsd).is_number() || !after->at(kUsd).is_number()) continue;
    book.at_most(option_words(*before) + ": usd at half the prices", number_in(*after, kUsd),
                 number_in(*before, kUsd), kPrinted);
    book.at_most(option_words(*before) + ": half the usd", 0.5 * number_in(*before, kUsd),
                 number_in(*after, kUsd), 1e-9);
  }
}

/// Searches take it that more replicas never break what was kept: where that is not so, a way may
/// take a little more.
constexpr double kSearched = 0.15;

/// No option of an easier `document` takes more GPUs, and what was possible is.
void hold_no_more_gpus(DocumentSubject& subject, const Json& document, std::string_view what,
                       LawBook& book) {
  const std::vector<const Json*> all = possible_options(subject.answer());
  const Json easier = subject.ask(document);
  for (const Json* const before : all) {
    const Json* const after = option_like(easier, *before);
    const bool possible = after != nullptr && after->at("possible") == true;
    book.holds(fmt::format("{}: possible {}", option_words(*before), what), possible);
    if (!possible) continue;
    book.no_worse(fmt::format("{}: GPUs {}", option_words(*before), what),
                  number_in(*after, "gpus"), number_in(*before, "gpus"), 0, kSearched);
  }
  if (book.comparisons() == 0) book.does_not_apply("nothing is possible");
}

void hold_looser(DocumentSubject& subject, LawBook& book) {
  std::map<std::string, double> limits;
  for (const Json* const option : possible_options(subject.answer())) {
    for (const Json& each : option->at("objectives")) {
      limits[each.at("name").get<std::string>()] = number_in(each, "limit");
    }
  }
  std::erase_if(limits, [](const auto& each) { return each.first.ends_with("attained"); });
  if (limits.empty()) return book.does_not_apply("no percentile has a limit");
  const Json looser = with_serving(subject.document(), [&](Json& serving) {
    if (!serving.contains("objectives")) return;
    for (const auto& [name, limit] : limits) {
      if (serving["objectives"].contains(name)) {
        serving["objectives"][name] = fmt::format("{:.17g} s", 2 * limit);
      }
    }
  });
  hold_no_more_gpus(subject, looser, "with limits twice as loose", book);
}

void hold_half_rate(DocumentSubject& subject, LawBook& book) {
  int rates = 0;
  const Json slower = with_serving(subject.document(), [&](Json& serving) {
    if (!serving.contains("load") || !serving["load"].contains("rate")) return;
    Json& rate = serving["load"]["rate"];
    if (!rate.is_number()) return;
    rate = 0.5 * rate.get<double>();
    ++rates;
  });
  if (rates == 0) return book.does_not_apply("requests come at no rate");
  hold_no_more_gpus(subject, slower, "at half the rate", book);
}

// --- what is chosen ----------------------------------------------------------------------------

/// The choice keeps its limits, and none that does is better in what is preferred.
void hold_choice(DocumentSubject& subject, LawBook& book) {
  const Json& answer = subject.answer();
  const bool money = answer.at("prefer") == "money";
  const auto measure = [&](const Json& of) {
    return money ? number_in(of, "usd_per_million_output_tokens")
                 : number_in(of, "gpus") + number_in(of, "spare_gpus");
  };
  const std::vector<const Json*> all = possible_options(answer);
  for (const Json* const option : all) {
    for (const Json& each : option->at("objectives")) {
      const double limit = number_in(each, "limit"), value = number_in(each, "value");
      const bool share = each.at("name").get<std::string>().ends_with("attained");
      book.at_most(option_words(*option) + ": " + each.at("name").get<std::string>(),
                   share ? limit : value, share ? value : limit, kPrinted);
    }
  }
  if (!answer.at("choice").is_number()) {
    book.holds("no choice where nothing is possible", all.empty());
    return;
  }
  const Json& choice = answer.at("options").at(answer.at("choice").get<std::size_t>());
  book.holds("the choice is possible", choice.at("possible") == true);
  book.same("GPUs of the choice", number_in(answer, "choice_gpus"), number_in(choice, "gpus"), 0);
  for (const Json* const option : all) {
    book.at_most("the choice against " + option_words(*option), measure(choice), measure(*option),
                 kPrinted);
  }
}

// --- agreement ---------------------------------------------------------------------------------

/// The service of an option, as `lockstep run` takes it; nothing where its load comes at no rate.
std::optional<Json> service_of_option(const Json& plan, const Json& option) {
  const auto candidate = std::ranges::find_if(
      plan.at("candidates"), [&](const Json& of) { return of.at("name") == option.at("name"); });
  Json out = plan.contains("scenario") ? plan.at("scenario") : Json::object();
  if (candidate->contains("scenario")) merge_changes(out, candidate->at("scenario"));
  if (!out.contains("serving") || !out["serving"].contains("load")) return std::nullopt;
  if (out.contains("cost") && !out.contains("power")) out["power"] = Json::object();
  Json& serving = out["serving"];
  if (!serving["load"].contains("rate")) return std::nullopt;
  serving["load"]["requests"] = option.at("requests");
  const Json given = serving.contains("pools") ? serving["pools"] : Json::object();
  const Json like = given.empty() ? Json::object() : *given.begin();
  serving["pools"] = Json::object();
  for (const Json& pool : option.at("pools")) {
    Json layout = like;
    for (const char* key : {"replicas", "tensor", "pipeline", "attention_data", "expert"}) {
      layout[key] = pool.at(key);
    }
    serving["pools"][pool.at("name").get<std::string>()] = std::move(layout);
  }
  return out;
}

void hold_services(DocumentSubject& subject, LawBook& book,
                   const std::vector<std::string>& presets) {
  const Commands commands(subject, presets);
  constexpr const char* kUsd = "usd_per_million_output_tokens";
  constexpr const char* kRate = "output_tokens_per_s_per_gpu";
  for (const Json* const option : possible_options(subject.answer())) {
    const std::optional<Json> service = service_of_option(subject.document(), *option);
    if (!service) continue;
    const Said said =
        commands.run({"run", commands.write("service.json", *service), "--format", "json"});
    if (!answered("run", said, book)) return;
    const Json run = said.json();
    for (const char* name : {"ttft_p99_s", "tpot_p99_s"}) {
      const Json &planned = option->at(name), &found = run.at(name);
      book.holds(fmt::format("{}: {} is in both, or in neither", option_words(*option), name),
                 planned.is_number() == found.is_number());
      if (!planned.is_number() || !found.is_number()) continue;
      book.same(fmt::format("{}: {} of run", option_words(*option), name), planned.get<double>(),
                found.get<double>(), kPrinted);
    }
    if (option->at("billed") != "rent" || !option->at(kRate).is_number()) continue;
    // Both are for an hour of its GPUs: the plan's figures are of a service that goes on.
    const double gpus = number_in(*option, "gpus");
    book.same(option_words(*option) + ": what an hour costs, spares with it",
              number_in(*option, kUsd) * number_in(*option, kRate),
              number_in(run, kUsd) * number_in(run, kRate) *
                  (gpus + number_in(*option, "spare_gpus")) / gpus,
              1e-9);
  }
  if (book.comparisons() == 0) book.does_not_apply("no option is a service at a rate");
}

}  // namespace

Json serving_plan_answer(const std::string& file, const std::string& text,
                         const PresetStore& presets, const std::function<bool()>& go_on) {
  const ServingPlanSpec spec = read_serving_plan(JsonCursor::parse(file, text), presets);
  const auto stops = [&] { return go_on && !go_on(); };
  const ServingPlanReport report = evaluate_serving_plan(spec, {.jobs = 1, .interrupted = stops});
  if (report.interrupted) throw LawsStopped();
  return serving_plan_json(ServingPlanAnswer{spec, report});
}

std::vector<DocumentLaw> serving_plan_laws(const std::vector<std::string>& presets) {
  using enum LawFamily;
  return {
      {"parts", conservation, "GPUs are those of pools and spares; no pool is busy all the time.",
       hold_option_parts},
      {"asked_twice", exactness, "The same question has the same answer, byte for byte.",
       hold_plan_asked_twice},
      {"candidate_order", exactness, "The order of the candidates changes none of them.",
       hold_order},
      {"candidate_alone", exactness, "A candidate alone is what it is among others.", hold_alone},
      {"cheaper", monotony, "Half of all prices cost less, and change no machine.",
       hold_half_prices},
      {"looser", monotony, "Limits twice as loose take no more GPUs.", hold_looser},
      {"half_rate", monotony, "Half as many requests a second take no more GPUs.", hold_half_rate},
      {"choice", closed_form, "Options keep the limits; none is better than the choice.",
       hold_choice},
      {"plan", agreement, "lockstep plan on several threads says what the library answers.",
       [presets](DocumentSubject& subject, LawBook& book) {
         hold_plan_threads(subject, book, presets);
       }},
      {"services", agreement, "An option's service is what run says of its scenario.",
       [presets](DocumentSubject& subject, LawBook& book) {
         hold_services(subject, book, presets);
       }},
  };
}

}  // namespace lockstep
