#include "tools/views/report/rl_page.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/rl_answer.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/scenario/names.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/claim_section.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_power_charts.hpp"
#include "tools/views/report/run_words.hpp"
#include "tools/views/rl/update_words.hpp"
#include "tools/views/run/run_facts.hpp"

namespace lockstep {
namespace {

double base(Seconds time) { return time.base_units(); }

std::vector<PageFigure> rl_figures(const RlScenario& s, const RlReport& r) {
  std::vector<PageFigure> out{
      {.value = page_duration(base(r.step)), .label = "a step", .field = "step_s"},
      {.value = page_count(r.tokens_per_s_per_gpu()),
       .label = "tokens per second and GPU, prompts and responses",
       .field = "tokens_per_s_per_gpu"},
      {.value = page_percent(r.update.mfu_full, 1),
       .label = "MFU of training",
       .field = "training_mfu"}};
  if (s.rl.algorithm->offline) return out;
  out.push_back({.value = page_count(r.generated_per_s()),
                 .label = "tokens per second generated",
                 .field = "generated_tokens_per_s"});
  if (r.generation_gpus > 0) {
    out.push_back({.value = page_percent(r.generation_idle, 1),
                   .label = "idle time of the engine",
                   .field = "generation_idle_share"});
    out.push_back({.value = page_percent(r.training_idle, 1),
                   .label = "idle time of the trainers",
                   .field = "training_idle_share"});
  }
  return out;
}

void add_phases(Page& page, const RlReport& r) {
  const AxisUnit unit = time_unit(base(r.step));
  std::vector<IntervalBar> bars;
  const auto add = [&](const char* name, Seconds time) {
    if (time <= Seconds{}) return;
    bars.push_back({.name = name,
                    .value = base(time) / unit.size,
                    .words = {name, page_duration(base(time)),
                              page_percent(base(time) / base(r.step), 1) + " of the step"}});
  };
  add("generation", r.generation);
  add(has_teacher(r) ? "teacher" : "scores", r.scores);
  add("training", r.training);
  add("offload", r.offload);
  add("weights to the engine", r.weight_sync);
  page.section("Phases", r.generation_gpus > 0
                             ? "On pools of their own phases run beside each other, and waits of a "
                               "pool are no phase."
                             : "One after the other, on shared GPUs.");
  page.chart({.title = "How long each takes",
              .about = {},
              .summary = "Bars of the time of each phase.",
              .height_px = bars_height(bars.size())},
             interval_bars(bars, unit.name));
}

void add_rl_buckets(Page& page, const RlReport& r) {
  const std::vector<double> shares = rl_shares(r);
  const double longest = *std::ranges::max_element(shares);
  PageTable table{.columns = {{.title = "What"},
                              {.title = "of the step", .numeric = true},
                              {.title = "Time", .numeric = true}}};
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] <= 0) continue;
    const double seconds = shares[i] * base(r.step);
    table.rows.push_back(
        {PageCell::text(rl_buckets()[i].title),
         {.content = with_bar(page_part(shares[i]), shares[i] / longest), .sort = shares[i]},
         PageCell::number(page_duration(seconds), seconds)});
  }
  page.section("Where the GPU time goes",
               fmt::format("Mean over all GPUs; together {}.", page_duration(base(r.step))));
  page.table(table);
}

void add_rl_power(Page& page, const RlScenario& s, const RlReport& r, const RlPower& power) {
  PageTable facts{.columns = {{.title = "What"}, {.title = "Here"}}};
  for (const Fact& fact : power_facts(powered_step(s, r, power))) {
    facts.rows.push_back({PageCell::text(fact.label), PageCell::text(fact.text)});
  }
  page.section("Power",
               "Of an iteration. What surrounds the GPUs follows its mean, and each phase "
               "has its share of that by GPU-seconds.");
  add_step_charts(page, power.site, s.training.power->meter, "an iteration");
  page.table(facts);
  PageTable phases{.columns = {{.title = "Phase"},
                               {.title = "of the energy", .numeric = true},
                               {.title = "Energy", .numeric = true},
                               {.title = "Mean GPU", .numeric = true}}};
  std::vector<double> shares;
  for (const RlPhasePower& phase : power.phases) {
    shares.push_back(phase.site / power.site.energy());
  }
  const double longest = *std::ranges::max_element(shares);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const RlPhasePower& phase = power.phases[i];
    const double joules = phase.site.base_units(), watts = phase.gpu_mean().base_units();
    phases.rows.push_back(
        {PageCell::text(phase.title),
         {.content = with_bar(page_part(shares[i]), shares[i] / longest), .sort = shares[i]},
         PageCell::number(page_energy(joules), joules),
         PageCell::number(page_watts(watts), watts)});
  }
  page.table(phases);
}

/// What was measured of such a step, where the scenario says it.
void add_rl_expected(Page& page, const RlScenario& s, const RlReport& r) {
  const std::optional<Expectation>& expect = s.training.expect;
  if (!expect || !expect->step_time) return;
  const double measured = base(*expect->step_time), error = base(r.step) / measured - 1;
  page.section("Predicted and measured", expect->source.empty()
                                             ? std::string()
                                             : fmt::format("Measured: {}.", expect->source));
  page.list(std::vector{fmt::format(
      "step time {} against {} measured: {}, {} the {:g} % that the scenario allows",
      page_duration(base(r.step)), page_duration(measured), error_text(error),
      std::abs(error) <= expect->within ? "within" : "NOT within", 100 * expect->within)});
}

}  // namespace

std::vector<NamedWords> rl_words(const RlScenario& s, const RlReport& r) {
  std::vector<NamedWords> out;
  const auto add = [&](const char* what, const std::string& text) { out.push_back({what, text}); };
  add("Algorithm", std::string(s.rl.algorithm->title));
  add("GPUs", r.generation_gpus > 0 ? fmt::format("{} train, {} generate", grouped(r.training_gpus),
                                                  grouped(r.generation_gpus))
                                    : fmt::format("{}, shared", grouped(r.training_gpus)));
  add("Samples", fmt::format("{} prompts of {} tokens, {} each of {} on average, {} at most",
                             grouped(s.rl.prompts), grouped(s.rl.prompt_tokens),
                             counted(s.rl.generations, "response"),
                             grouped(std::round(r.response_mean)), grouped(r.response_most)));
  if (!s.rl.algorithm->offline) {
    add("Engine",
        fmt::format("{} replicas of TP {} of {}, {:.0f} sequences at once, {} at most",
                    grouped(r.replicas), s.rl.generation.tensor, s.rl.generation.engine.name,
                    r.sequences_mean, grouped(r.sequences_most)));
    add("Cache", fmt::format("{} tokens a replica; {} times a sequence had to leave",
                             compact(r.cache_tokens), grouped(static_cast<double>(r.preempted))));
  }
  add("Training", update_words(s, r));
  return out;
}

void add_iteration(Page& page, const RlReport& r) {
  add_phases(page, r);
  add_rl_buckets(page, r);
}

std::string rl_page(const RlScenario& s, const RlResult& result, const WrittenScenario& written,
                    const Behind* behind, const ClaimCheck* claim) {
  const RlReport& r = result.report;
  Page page("Reinforcement learning",
            fmt::format("{} of {} on {}", s.rl.algorithm->title, s.training.job.model.name,
                        counted(r.gpus(), "GPU")));
  if (behind != nullptr) behind->open_figures(page);
  if (!s.training.about.empty()) page.about(s.training.about);
  const std::vector<double> shares = rl_shares(r);
  const auto largest = static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin());
  Html warning;
  if (result.power) {
    const std::string words = limit_warning(result.power->site, *s.training.power);
    if (!words.empty()) warning = escaped("Power limit ") + strong(words) + escaped(". ");
  }
  page.headline(warning + escaped("A step takes ") + strong(page_duration(base(r.step))) +
                escaped(". The largest part of the GPU time: ") +
                strong(in_sentence(rl_buckets()[largest].title)) +
                escaped(fmt::format(", {}.", page_part(shares[largest]))));
  page.figures(rl_figures(s, r));
  add_claim_section(page, claim);
  add_rl_expected(page, s, r);
  add_iteration(page, r);
  if (result.power) add_rl_power(page, s, r, *result.power);
  AnswerBasis basis{
      .simulated = rl_words(s, r), .written = written, .assumptions = s.training.assumptions};
  if (behind != nullptr) {
    basis.presets = &behind->presets();
    basis.named = presets_of(s.training, *basis.presets);
  }
  add_basis(page, basis);
  if (behind != nullptr) behind->add_to(page);
  page.foot(fmt::format("Scenario: {}.", s.training.file));
  return page.html(chart_library());
}

}  // namespace lockstep
