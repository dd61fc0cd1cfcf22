// Laws that one answer keeps by itself: its parts add up, and its numbers follow from each other.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "sim/answer/formulas.hpp"
#include "sim/laws/law_subject.hpp"
#include "sim/laws/law_tables.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double number_of(const Json& object, const char* key) {
  return object.contains(key) && object.at(key).is_number() ? object.at(key).get<double>()
                                                            : std::nan("");
}

/// Sum of a member over the elements of a list or the members of an object.
double sum_of(const Json& parts, const char* key) {
  double sum = 0;
  for (const Json& part : parts) sum += number_of(part, key);
  return sum;
}
double sum_of_numbers(const Json& object) {
  double sum = 0;
  for (const Json& value : object) sum += value.get<double>();
  return sum;
}

// --- time --------------------------------------------------------------------------------------

/// Parts with a share of the whole each: together 1, none below 0.
void hold_shares(const Json& parts, std::string_view what, LawBook& book) {
  book.same(fmt::format("shares of {}", what), sum_of(parts, "share"), 1, kDigits);
  for (const Json& part : parts) {
    book.at_most(fmt::format("0 against a share of {}", what), 0, number_of(part, "share"), 0);
  }
}

void hold_step_time(const Json& answer, LawBook& book) {
  const double step = number_of(answer, "step_s");
  const Json& waterfall = answer.at("waterfall");
  book.same("seconds of all buckets", sum_of(waterfall, "seconds"), step, kDigits);
  hold_shares(waterfall, "the step", book);
  for (const Json& stage : answer.at("stages")) {
    book.same(fmt::format("buckets of stage {}", stage.at("stage").get<int>()),
              sum_of_numbers(stage.at("buckets_s")), step, kDigits);
  }
}

void hold_queue_time(const Json& answer, LawBook& book) {
  const double all = number_of(answer, "gpus") * number_of(answer, "simulated_s") / 3600;
  book.same("GPU hours of all buckets", sum_of(answer.at("waterfall"), "gpu_hours"), all, kDigits);
  hold_shares(answer.at("waterfall"), "the cluster's time", book);
}

/// Of requests that no replica has room for there is no span, and no time in it.
bool nothing_served(AnswerKind kind, const Json& answer, LawBook& book) {
  if (kind != AnswerKind::serving || answer.at("served").get<double>() > 0) return false;
  book.does_not_apply("no request was served");
  return true;
}

void hold_time(LawSubject& subject, LawBook& book) {
  const Json& answer = subject.answer();
  if (nothing_served(subject.kind(), answer, book)) return;
  switch (subject.kind()) {
    case AnswerKind::step:
      return hold_step_time(answer, book);
    case AnswerKind::run:
      book.same("seconds of all buckets", sum_of(answer.at("wall_time"), "seconds"),
                number_of(answer, "wall_s"), kDigits);
      return hold_shares(answer.at("wall_time"), "the wall time", book);
    case AnswerKind::rl:
      book.same("GPU-seconds of all buckets", sum_of(answer.at("buckets"), "gpu_s"),
                number_of(answer, "step_s") * number_of(answer, "gpus"), kDigits);
      return hold_shares(answer.at("buckets"), "the step", book);
    case AnswerKind::queue:
      return hold_queue_time(answer, book);
    case AnswerKind::serving:
      book.same("GPU-seconds of all buckets", sum_of(answer.at("waterfall"), "gpu_seconds"),
                number_of(answer, "span_s") * number_of(answer, "gpus"), kDigits);
      return hold_shares(answer.at("waterfall"), "the span", book);
    case AnswerKind::jobs:
      return book.does_not_apply("an answer of several jobs has no buckets");
  }
}

// --- work --------------------------------------------------------------------------------------

/// What is written twice about a rate: by itself, and as FLOP, tokens or memory over time.
void hold_flops(LawSubject& subject, LawBook& book) {
  if (subject.kind() != AnswerKind::step) {
    return book.does_not_apply("not one training step");
  }
  const Json& answer = subject.answer();
  if (answer.contains("pools")) {
    return book.does_not_apply("several kinds of GPU have no peak in common");
  }
  const double useful = number_of(answer.at("waterfall")[0], "share");
  // A pass is rounded to a tick, of picoseconds in some 10 microseconds.
  book.same("share of useful work, and mfu_causal", useful, number_of(answer, "mfu_causal"), 1e-6);
  book.at_most("mfu_causal", number_of(answer, "mfu_causal"), 1, 0);
  book.at_most("mfu_causal against mfu", number_of(answer, "mfu_causal"), number_of(answer, "mfu"),
               kDigits);
  book.at_most("mfu against hfu", number_of(answer, "mfu"), number_of(answer, "hfu"), kDigits);
}

void hold_tokens_of_serving(const Json& answer, LawBook& book) {
  double ended = number_of(answer, "served") + number_of(answer, "refused");
  for (const char* turned_away : {"shed", "gave_up"}) {
    if (answer.contains(turned_away)) ended += number_of(answer, turned_away);
  }
  book.at_most("requests that have ended", ended, number_of(answer, "requests"), 0);
  // Answers of one token have no time between tokens.
  if (answer.at("tpot_mean_s").is_number()) {
    book.same("1 / TPOT", number_of(answer, "tokens_per_s_per_user"),
              1 / number_of(answer, "tpot_mean_s"), kDigits);
  }
  for (const char* spread : {"ttft_s", "tpot_s", "itl_s", "e2e_s"}) {
    const Json& of = answer.at(spread);
    if (of.at("mean").is_null()) continue;
    for (const auto& [less, more] :
         {std::pair{"p50", "p90"}, std::pair{"p90", "p99"}, std::pair{"p99", "most"}}) {
      book.at_most(fmt::format("{}.{} against {}", spread, less, more), number_of(of, less),
                   number_of(of, more), 0);
    }
  }
  if (answer.at("ttft_mean_s").is_null()) return;
  book.at_most("ttft_s.mean against e2e_s.mean", number_of(answer.at("ttft_s"), "mean"),
               number_of(answer.at("e2e_s"), "mean"), kDigits);
}

/// A run's steps are its productive time, and its tokens those of the steps.
void hold_tokens_of_run(LawSubject& subject, LawBook& book) {
  if (subject.read().rl) return book.does_not_apply("updates have as many tokens as are drawn");
  const Json& answer = subject.answer();
  const double steps = number_of(answer, "steps_done");
  double productive = 0;
  for (const Json& bucket : answer.at("wall_time")) {
    if (bucket.at("bucket") == "productive") productive = number_of(bucket, "seconds");
  }
  book.same("steps that are done, times the step", steps * number_of(answer, "step_s"), productive,
            kDigits);
  const Batch& batch = subject.job()->job.batch;
  book.same("tokens that are done", number_of(answer, "tokens_done"),
            steps * static_cast<double>(batch.sequences) * static_cast<double>(batch.tokens),
            kDigits);
}

void hold_tokens(LawSubject& subject, LawBook& book) {
  const Json& answer = subject.answer();
  if (nothing_served(subject.kind(), answer, book)) return;
  if (subject.kind() == AnswerKind::serving) return hold_tokens_of_serving(answer, book);
  if (subject.kind() == AnswerKind::run) return hold_tokens_of_run(subject, book);
  if (subject.kind() != AnswerKind::step) {
    return book.does_not_apply("counted in steps, runs and serving");
  }
  const Json& batch = answer.at("job").at("batch");
  const double tokens = number_of(batch, "sequences") * number_of(batch, "tokens");
  const double step = number_of(answer, "step_s");
  book.same("tokens of a step", number_of(answer, "tokens_per_step"), tokens, kDigits);
  book.same("tokens a second, times the step", number_of(answer, "tokens_per_s") * step, tokens,
            kDigits);
}

// --- memory ------------------------------------------------------------------------------------

void hold_memory(LawSubject& subject, LawBook& book) {
  if (subject.kind() != AnswerKind::step) return book.does_not_apply("not one training step");
  const Json& answer = subject.answer();
  double most = 0, needed = 0;
  for (const Json& stage : answer.at("stages")) {
    const Json& memory = stage.at("memory");
    double sum = 0;
    for (const char* part : {"weights_gib", "gradients_gib", "optimiser_gib", "activations_gib",
                             "logits_gib", "communication_gib", "framework_gib", "cached_gib"}) {
      sum += number_of(memory, part);
      book.at_most(fmt::format("0 against {}", part), 0, number_of(memory, part), 0);
    }
    const double total = number_of(memory, "total_gib");
    book.same(fmt::format("memory of stage {}", stage.at("stage").get<int>()), sum, total, kDigits);
    book.at_most("needed against all", number_of(memory, "needed_gib"), total, kDigits);
    most = std::max(most, total);
    needed = std::max(needed, number_of(memory, "needed_gib"));
  }
  if (answer.contains("pools")) return;  // the pool that decides has the least to spare
  book.same("the fullest stage", number_of(answer, "peak_memory_gib"), most, kDigits);
  book.at_most("needed_memory_gib", number_of(answer, "needed_memory_gib"), needed, kDigits);
  const bool fits =
      number_of(answer, "needed_memory_gib") <= number_of(answer, "usable_memory_gib");
  book.holds("memory_fits, of needed and usable memory",
             answer.at("memory_fits").get<bool>() == fits);
}

// --- energy and money --------------------------------------------------------------------------

void hold_step_energy(const Json& power, double step, LawBook& book) {
  const Json& facility = power.at("facility");
  const double energy = number_of(power, "energy_per_step_j");
  book.same("mean power of the site, times the step", number_of(facility, "mean_w") * step, energy,
            kDigits);
  book.same("energy of all parts", sum_of(power.at("shares"), "energy_j"), energy, 1e-9);
  hold_shares(power.at("shares"), "the energy", book);
  for (const char* place : {"gpu", "node", "facility"}) {
    const Json& at = power.at(place);
    book.at_most(fmt::format("{}: trough against mean", place), number_of(at, "trough_w"),
                 number_of(at, "mean_w"), kDigits);
    book.at_most(fmt::format("{}: mean against peak", place), number_of(at, "mean_w"),
                 number_of(at, "peak_w"), kDigits);
    if (!at.contains("meter")) continue;
    book.at_most(fmt::format("{}: meter against peak", place), number_of(at.at("meter"), "high_w"),
                 number_of(at, "peak_w"), kDigits);
    book.at_most(fmt::format("{}: trough against meter", place), number_of(at, "trough_w"),
                 number_of(at.at("meter"), "low_w"), kDigits);
  }
  book.at_most("1 against the PUE", 1, number_of(facility, "pue"), 0);
  if (!power.contains("phases")) return;
  book.same("energy of all phases", sum_of(power.at("phases"), "energy_j"), energy, 1e-9);
  hold_shares(power.at("phases"), "the energy by phase", book);
}

void hold_run_energy(const Json& answer, LawBook& book) {
  const double energy = number_of(answer, "energy_j"), wall = number_of(answer, "wall_s");
  book.same("mean power of the site, times the wall time",
            number_of(answer, "facility_mean_w") * wall, energy, 1e-9);
  if (answer.contains("site")) return;  // whose air is not that of the levels
  const Json& levels = answer.at("facility_power");
  book.at_most("energy", energy, number_of(levels, "training_w") * wall, kDigits);
  book.at_most("energy at idle", number_of(levels, "idle_w") * wall, energy, kDigits);
}

/// Of a queue, and of requests, whose span begins after that of the power.
void hold_span_energy(AnswerKind kind, const Json& answer, LawBook& book) {
  const Json& power = answer.at("power");
  const double mean = number_of(power, "facility_mean_w"), energy = number_of(power, "energy_j");
  if (kind == AnswerKind::queue) {
    book.same("mean power of the site, times the time", mean * number_of(answer, "simulated_s"),
              energy, 1e-9);
  } else {
    book.at_most("mean power of the site, times the span of the requests",
                 mean * number_of(answer, "span_s"), energy, kDigits);
  }
  book.at_most("mean against peak", mean, number_of(power, "facility_peak_w"), kDigits);
  book.at_most("1 against the PUE", 1, number_of(power, "pue"), 0);
}

void hold_energy_of_jobs(const Json& answer, LawBook& book) {
  double site = number_of(answer, "idle_w");
  for (const Json& job : answer.at("jobs")) {
    if (!job.contains("power")) continue;
    const Json& power = job.at("power");
    const double mean = number_of(power, "facility_mean_w");
    site += mean;
    book.same(job.at("name").get<std::string>() + ": mean power, times the step",
              mean * number_of(job, "step_s"), number_of(power, "energy_per_step_j"), kDigits);
  }
  book.same("power of all jobs and of idle nodes", site, number_of(answer, "facility_mean_w"),
            kDigits);
}

void hold_energy(LawSubject& subject, LawBook& book) {
  const Json& answer = subject.answer();
  const AnswerKind kind = subject.kind();
  if (kind == AnswerKind::jobs && answer.contains("facility_mean_w")) {
    return hold_energy_of_jobs(answer, book);
  }
  if (kind == AnswerKind::run && answer.contains("facility_power")) {
    return hold_run_energy(answer, book);
  }
  if (!answer.contains("power")) return book.does_not_apply("the scenario asks for no power");
  if (kind == AnswerKind::queue || kind == AnswerKind::serving) {
    return hold_span_energy(kind, answer, book);
  }
  hold_step_energy(answer.at("power"), number_of(answer, "step_s"), book);
}

/// Every number of the first level whose formula is arithmetic follows from the others.
void hold_formulas(LawSubject& subject, LawBook& book) {
  const Json& answer = subject.answer();
  if (nothing_served(subject.kind(), answer, book)) return;
  for (const std::string& field : explained_fields(subject.kind())) {
    const Formula* const formula = formula_of(subject.kind(), field);
    if (formula == nullptr || !formula->arithmetic) continue;
    const std::optional<double> value = number_in(answer, field);
    if (!value) continue;
    double scale = std::abs(*value);
    const bool subtracts = formula->text.find(" - ") != std::string_view::npos;
    std::vector<FormulaInput> inputs = inputs_of(*formula);
    const std::optional<double> expected =
        evaluate(formula->text, [&](std::string_view name) -> std::optional<double> {
          const auto input = std::ranges::find(inputs, name, &FormulaInput::name);
          if (input == inputs.end()) return std::nullopt;
          const std::optional<double> of = number_in(answer, input->path);
          if (of && subtracts) scale = std::max(scale, std::abs(*of));
          return of;
        });
    if (!expected || !std::isfinite(*expected)) continue;
    book.same_of(fmt::format("{} = {}", field, formula->text), *value, *expected,
                 std::max(scale, std::abs(*expected)), kDigits);
  }
}

// --- many at once ------------------------------------------------------------------------------

/// What was rented is in one bucket each, those of jobs are what jobs held, and groups pay for all.
void hold_rented(const Json& answer, LawBook& book) {
  const Json& burst = answer.at("burst");
  const Json& all = answer.at("all");
  const Json& waterfall = burst.at("waterfall");
  const double rented = number_of(burst, "rented_gpu_hours");
  book.same("GPU hours of rented nodes", sum_of(waterfall, "gpu_hours"), rented, 1e-9);
  double held = 0;
  for (const char* bucket : {"useful", "slowed", "starting", "moving"}) {
    held += number_of(waterfall.at(bucket), "gpu_hours");
  }
  book.same("GPU hours that jobs held on rented nodes", held, number_of(all, "burst_gpu_hours"),
            1e-9);
  book.at_most("held on rented nodes", held, rented, 1e-9);
  for (const char* grouping : {"by_gpus", "by_account", "by_user"}) {
    if (!answer.contains(grouping) || answer.at(grouping).empty()) continue;
    for (const char* member : {"burst_jobs", "burst_gpu_hours"}) {
      book.same(fmt::format("{} of {}", member, grouping), sum_of(answer.at(grouping), member),
                number_of(all, member), kDigits);
    }
  }
}

/// Groups of a queue's jobs are all of its jobs.
void hold_groups(LawSubject& subject, LawBook& book) {
  if (subject.kind() != AnswerKind::queue) return book.does_not_apply("no queue of jobs");
  const Json& answer = subject.answer();
  const Json& all = answer.at("all");
  for (const char* grouping : {"by_gpus", "by_account", "by_user"}) {
    if (!answer.contains(grouping) || answer.at(grouping).empty()) continue;
    for (const char* member : {"jobs", "ended", "gpu_hours"}) {
      book.same(fmt::format("{} of {}", member, grouping), sum_of(answer.at(grouping), member),
                number_of(all, member), kDigits);
    }
  }
  book.at_most("ended", number_of(all, "ended"), number_of(all, "jobs"), 0);
  const Json& waterfall = answer.at("waterfall");
  double held = 0;
  for (const char* bucket : {"useful", "starting", "lost", "slowed"}) {
    held += number_of(waterfall.at(bucket), "gpu_hours");
  }
  book.same("GPU hours that jobs held", held, number_of(all, "gpu_hours"), 1e-9);
  if (answer.contains("burst")) hold_rented(answer, book);
  book.same("utilisation, times the cluster's time",
            number_of(answer, "utilisation") * number_of(answer, "gpus") *
                number_of(answer, "simulated_s") / 3600,
            held, 1e-9);
}

/// No link carries more than it can, and no job is faster for having neighbours.
void hold_shared_links(LawSubject& subject, LawBook& book) {
  if (subject.kind() != AnswerKind::jobs) return book.does_not_apply("not several jobs");
  const Json& answer = subject.answer();
  for (const Json& link : answer.at("links")) {
    const auto name = link.at("name").get<std::string>();
    book.at_most(name + ": mean against peak", number_of(link, "mean_utilisation"),
                 number_of(link, "peak_utilisation"), kDigits);
    book.at_most(name + ": peak", number_of(link, "peak_utilisation"), 1, kDigits);
  }
  double most = 0;
  for (const Json& job : answer.at("jobs")) {
    const double slowdown = number_of(job, "step_s") / number_of(job, "alone_s");
    book.same(job.at("name").get<std::string>() + ": slowdown", number_of(job, "slowdown"),
              slowdown, kDigits);
    most = std::max(most, number_of(job, "slowdown"));
  }
  book.same("slowdown_max", number_of(answer, "slowdown_max"), most, kDigits);
}

}  // namespace

std::vector<Law> conservation_laws() {
  constexpr LawFamily kFamily = LawFamily::conservation;
  return {
      {"time", kFamily, "Every GPU-second is in one bucket; all of them are the whole time.",
       hold_time},
      {"flop", kFamily, "Useful work at the GPUs' peak is the model's FLOP, and MFU its share.",
       hold_flops},
      {"tokens", kFamily, "Tokens that go in come out, at the rates that are told.", hold_tokens},
      {"memory", kFamily, "Memory is the sum of its parts, and the fullest GPU decides.",
       hold_memory},
      {"energy", kFamily, "Energy is power over time, and the sum of what draws it.", hold_energy},
      {"formulas", kFamily,
       "Rates, GPU hours, energy and money follow from each other as their formulas say.",
       hold_formulas},
      {"groups", kFamily, "Groups of jobs add up to all jobs, and what they held to the buckets.",
       hold_groups},
      {"links", kFamily,
       "No link carries more than its capacity; slowdowns are of the jobs' steps.",
       hold_shared_links},
  };
}

}  // namespace lockstep
