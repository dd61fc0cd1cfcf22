#include "sim/search/read_plan.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/search/compute_optimal.hpp"
#include "sim/search/plan_candidates.hpp"
#include "sim/search/read_regions.hpp"

namespace lockstep {
namespace {

constexpr Interval kTokens{1e6, 1e18};
constexpr Interval kBudget{1e18, 1e32};  // FLOP
constexpr int kMostSamples = 100'000;
constexpr int kMostSeed = 2'000'000'000;

const ScalingLaw& read_law(const JsonCursor& from) {
  std::vector<std::string_view> names;
  for (const ScalingLaw& law : scaling_laws()) names.push_back(law.name);
  return scaling_laws()[from.choice(names)];
}

/// The model that all candidates train.
double read_parameters(const JsonCursor& root, const PresetStore& presets) {
  ScenarioDraft draft;
  draft.file = root.file();
  read_model_choice(root.at("scenario").at("model"), presets, draft);
  return total_parameters(draft.model);
}

std::string law_words(const ScalingLaw& law, double parameters, double tokens) {
  const Flops compute = training_compute(parameters, tokens);
  const ComputeOptimum best = optimum_of(law, compute);
  return fmt::format(
      "By {} ({}) the {} EFLOP of this training would go furthest with {} B weights and "
      "{} T tokens: a loss of {:.3f} against {:.3f}.",
      law.name, law.source, compact(compute.base_units() * 1e-18),
      plain_number(best.parameters * 1e-9, 3), plain_number(best.tokens * 1e-12, 3),
      expected_loss(law, best.parameters, best.tokens), expected_loss(law, parameters, tokens));
}

/// Tokens as given, as a budget of compute pays for, or as a law finds best for the model.
PlanTraining read_training(const JsonCursor& from, double parameters) {
  PlanTraining out;
  const auto tokens = from.find("tokens");
  const auto budget = from.find("flops");
  const auto law = from.find("law");
  if (tokens && budget) budget->fail(R"(either "tokens" or "flops")");
  if (!tokens && !budget && !law) {
    out.tokens = from.at("tokens").quantity(Dimension::count, kTokens);
  }
  if (tokens) out.tokens = tokens->quantity(Dimension::count, kTokens);
  if (budget) {
    const Flops flops{budget->number(kBudget)};
    out.tokens = flops / training_compute(parameters, 1);
    out.words.push_back(
        fmt::format("{:.3g} FLOP at 6 for each of {} B weights and each token "
                    "(arXiv:2001.08361) are {} T tokens.",
                    flops.base_units(), plain_number(parameters * 1e-9, 4),
                    plain_number(out.tokens * 1e-12, 3)));
  }
  if (law) {
    const ScalingLaw& chosen = read_law(*law);
    out.law = chosen.name;
    if (!tokens && !budget) {
      out.tokens = optimal_tokens(chosen, parameters);
      out.words.push_back(
          fmt::format("Tokens for which {} B weights are the best use of the compute, by {} ({}).",
                      plain_number(parameters * 1e-9, 4), chosen.name, chosen.source));
    } else {
      out.words.push_back(law_words(chosen, parameters, out.tokens));
    }
  }
  from.finish();
  return out;
}

void declare_limits(const DeclaredMembers& member, PlanLimits& out) {
  member.optional("time", out.time, Interval{0, 1e9, true}, "From start to end, with all failures");
  member.optional("power", out.power, Interval{1, 1e12},
                  "Highest reading of the site's meter; of owned candidates");
  member.optional("usd", out.usd, Interval{0, 1e15, true}, "Money in all");
  member.optional("confidence", out.confidence, Dimension::share, Interval{0.01, 1},
                  "In which share of all cases all of them have to be kept; default: 90 %");
}

/// What a plan says beside its training, its candidates and their scenario.
void declare_plan(const DeclaredMembers& member, PlanSpec& out) {
  member.optional("about", out.about, "What is to be decided, in a sentence");
  member.optional("limits", out.limits, "What a candidate has to keep; default: nothing",
                  declare_limits);
  member.optional("prefer", out.goal, kPlanGoals,
                  "What is least in the best of those that keep the limits; default: money; "
                  "without prices gpus, or time where limits.time is not given");
  member.optional("samples", integer_type(10, kMostSamples),
                  "How often all uncertain inputs are drawn; default: 400",
                  [&](const JsonCursor& at) {
                    out.samples = static_cast<std::uint32_t>(at.integer(10, kMostSamples));
                  });
  member.optional("seed", integer_type(0, kMostSeed), "Of all random numbers; default: 1",
                  [&](const JsonCursor& at) {
                    out.seed = static_cast<std::uint64_t>(at.integer(0, kMostSeed));
                  });
  declare_regions(member, out);
}

std::array<Distribution, kPlanInputs> usual_inputs() {
  std::array<Distribution, kPlanInputs> out;
  for (const PlanInputInfo& info : plan_inputs()) {
    out[static_cast<std::size_t>(info.input)] = info.otherwise;
  }
  return out;
}

/// What the file leaves to us.
/// `priced`: whether any candidate has money that its inputs move.
std::vector<std::string> input_assumptions(const std::optional<JsonCursor>& uncertain,
                                           bool priced) {
  constexpr std::array kOfMoney{PlanInput::price, PlanInput::tariff, PlanInput::value_loss};
  std::vector<std::string> out;
  for (const PlanInputInfo& info : plan_inputs()) {
    const bool given = uncertain && uncertain->find(info.name);
    if (given || info.input == PlanInput::efficiency) continue;
    if (!priced && std::ranges::find(kOfMoney, info.input) != kOfMoney.end()) continue;
    out.push_back(fmt::format("{} ({}): a factor of {} to {} in nine of ten cases; {}", info.title,
                              info.about, info.otherwise.low, info.otherwise.high, info.source));
  }
  return out;
}

/// Without prices there is no answer about money: GPUs decide instead, or time where there is no
/// deadline that keeps them from being few, and the plan says which prices are missing. Throws
/// where the file asks for money all the same.
void settle_money(const JsonCursor& root, PlanSpec& out) {
  const auto unpriced = std::ranges::find_if_not(out.candidates, is_priced);
  if (unpriced == out.candidates.end()) return;
  const std::string missing =
      fmt::format("{}", fmt::join(missing_prices(unpriced->scenario.power->cost), ", "));
  const std::string rule =
      fmt::format("no such thing without prices: {} has none of {}", unpriced->name, missing);
  const auto goal = root.find("prefer");
  if (goal && out.goal == PlanGoal::money) goal->fail("time, energy or gpus; money is " + rule);
  if (out.limits.usd) root.at("limits").at("usd").fail(rule);
  if (!goal) out.goal = out.limits.time ? PlanGoal::gpus : PlanGoal::time;
  out.assumptions.push_back(
      fmt::format("money: left out of the choice, as {} has no prices ({}; of one that is rented "
                  "price.usd_per_gpu_hour, with --model: --price){}",
                  unpriced->name, missing,
                  goal              ? ""
                  : out.limits.time ? "; prefer: gpus, the fewest (not given)"
                                    : "; prefer: time (not given)"));
}

/// A price of a GPU-hour that all share is one of those that rent. Throws where nobody does.
void check_price(const JsonCursor& root, const PlanSpec& plan) {
  if (std::ranges::any_of(plan.candidates, &PlanCandidate::rented)) return;
  const auto price = root.at("scenario").find("price");
  const auto hourly = price ? price->find("usd_per_gpu_hour") : std::nullopt;
  if (!hourly) return;
  hourly->fail(
      "no such price where no candidate rents: \"pay\": \"rent\", or scenario.cost.usd_per_gpu and "
      "the like of machines that are owned");
}

PlanSpec plan_of(const JsonCursor& root, const PresetStore& presets) {
  PlanSpec out;
  out.file = root.file();
  (void)root.find("$schema");
  declare_plan({root, Extent::whole}, out);
  settle_regions(root, out);
  // One after the other: compilers differ in which argument they work out first.
  const double parameters = read_parameters(root, presets);
  out.training = read_training(root.at("training"), parameters);
  std::array<Distribution, kPlanInputs> inputs = usual_inputs();
  const auto uncertain = root.find("uncertain");
  if (uncertain) read_uncertain(*uncertain, inputs);
  out.candidates = read_candidates(root, presets, out, inputs);
  const std::vector<std::string> assumed = input_assumptions(uncertain, out.any_priced());
  out.assumptions.insert(out.assumptions.begin(), assumed.begin(), assumed.end());
  check_places(root, out);
  check_price(root, out);
  settle_money(root, out);
  root.finish();
  root.tell_unitless_sets(out.assumptions);
  for (std::size_t i = 0; i < out.candidates.size(); ++i) {
    out.candidates[i].run.seed = out.seed;
    const auto same = std::ranges::find(out.candidates.begin(),
                                        out.candidates.begin() + static_cast<std::ptrdiff_t>(i),
                                        out.candidates[i].name, &PlanCandidate::name);
    if (same != out.candidates.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw InputError({.file = root.file(),
                        .pointer = out.candidates[i].pointer + "/name",
                        .found = in_quotes(out.candidates[i].name),
                        .allowed = "a name that no other candidate has",
                        .nearest = {}});
    }
  }
  return out;
}

}  // namespace

nlohmann::ordered_json plan_members_schema() {
  nlohmann::ordered_json schema = nlohmann::ordered_json::object();
  PlanSpec plan;
  declare_plan(DeclaredMembers(schema, Extent::whole), plan);
  return schema;
}

PlanSpec read_plan(const std::string& file, std::string_view text, const PresetStore& presets,
                   const std::vector<std::string>& set) {
  const JsonCursor root = JsonCursor::parse(file, text, JsonStyle::plain, set);
  refuse_other_document(root, "plan", "a plan");
  return root.read_whole([&] { return plan_of(root, presets); });
}

}  // namespace lockstep
