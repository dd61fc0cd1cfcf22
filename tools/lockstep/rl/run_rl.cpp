#include "tools/lockstep/rl/run_rl.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <ostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/layer/memory.hpp"
#include "sim/rl/rl_step.hpp"
#include "sim/scenario/names.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLabels = 18;
constexpr int kBarColumns = 34;

/// Shares of the GPU-seconds of a step, by RlBucket; they add up to 1.
std::vector<double> shares_of(const RlReport& report) {
  const double all = report.step.base_units() * report.gpus();
  std::vector<double> shares;
  shares.reserve(report.gpu_seconds.size());
  for (const double seconds : report.gpu_seconds) shares.push_back(seconds / all);
  return shares;
}

std::string scorers_text(const RlSpec& rl) {
  std::vector<std::string> parts{"actor"};
  if (rl.critic) parts.push_back("critic " + rl.critic->job.model.name);
  if (rl.reward_model) parts.push_back("reward model " + rl.reward_model->job.model.name);
  if (rl.reference) parts.emplace_back("reference");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string pools_text(const RlScenario& s, const RlReport& r) {
  const GenerationPool& pool = s.rl.generation;
  const std::string layout = fmt::format(
      "{} replicas of TP {}{}, {}, {}", grouped(r.replicas), pool.tensor,
      pool.expert_parallel ? " (whole experts)" : "", info(pool.precision).name, pool.engine.name);
  if (r.generation_gpus == 0) return "colocated: " + layout;
  return fmt::format("{} GPUs train, {} generate ({}): {}", grouped(r.training_gpus),
                     grouped(r.generation_gpus),
                     kRlScheduleNames[static_cast<std::size_t>(s.rl.schedule)], layout);
}

std::string title(const RlScenario& s, const RlReport& r, const TextStyle& style) {
  const Scenario& t = s.training;
  std::string out = style.bold(fmt::format("{} of {} on {} GPUs", s.rl.algorithm->title,
                                           t.job.model.name, grouped(r.gpus()))) +
                    fmt::format(" ({} x {}, {})\n", grouped(t.nodes + s.rl.generation.nodes),
                                t.node.name, t.node.gpu.name);
  if (!t.about.empty()) out += wrap(t.about, kTextColumns, 0) + "\n";
  out += "\n" + labelled_line("Models", kLabels, scorers_text(s.rl));
  out += labelled_line("Pools", kLabels, pools_text(s, r));
  out += labelled_line(
      "Rollout", kLabels,
      fmt::format("{} prompts of {} tokens x {} responses of {:.0f} on average, {} at most",
                  grouped(s.rl.prompts), grouped(s.rl.prompt_tokens), grouped(s.rl.generations),
                  r.response_mean, grouped(r.response_most)));
  return out +
         labelled_line(
             "Training", kLabels,
             fmt::format("{} x {} updates of {} samples of {} tokens, {} to a micro batch",
                         grouped(s.rl.epochs), grouped(s.rl.updates),
                         grouped(r.training_batch.sequences), grouped(r.training_batch.tokens),
                         grouped(r.training_batch.micro_sequences)));
}

std::string headline(const RlScenario& s, const RlReport& r, const TextStyle& style) {
  const double gpus = r.generation_gpus > 0 ? r.generation_gpus : r.training_gpus;
  std::string out = "\n";
  out += labelled_line("Step time", kLabels, style.bold(duration_text(r.step.base_units())));
  const std::optional<Expectation>& expect = s.training.expect;
  if (expect && expect->step_time) {
    const double measured = expect->step_time->base_units();
    const double error = r.step.base_units() / measured - 1;
    out += labelled_line(
        "Measured", kLabels,
        fmt::format("{}: {}, {} the {:g} % that the scenario allows", duration_text(measured),
                    error_text(error), std::abs(error) <= expect->within ? "within" : "NOT within",
                    100 * expect->within));
  }
  out += labelled_line("Throughput", kLabels,
                       fmt::format("{} tokens/s per GPU, prompts and responses",
                                   significant(r.tokens_per_s_per_gpu())));
  out += labelled_line(
      "Generation", kLabels,
      fmt::format("{}: {} tokens/s, {} per GPU; {:.0f} sequences at once, {} at most",
                  duration_text(r.generation.base_units()), compact(r.generated_per_s()),
                  significant(r.generated_per_s() / gpus), r.sequences_mean,
                  grouped(r.sequences_most)));
  out += labelled_line(
      "Cache", kLabels,
      fmt::format("{} tokens a replica; {} times a sequence had to leave", compact(r.cache_tokens),
                  grouped(static_cast<double>(r.preempted))));
  out += labelled_line("Scores", kLabels, duration_text(r.scores.base_units()));
  out += labelled_line("Training", kLabels,
                       fmt::format("{}: {} MFU", duration_text(r.training.base_units()),
                                   percent_text(r.update.mfu_full)));
  out += labelled_line("Weights", kLabels,
                       fmt::format("{} to the engine", duration_text(r.weight_sync.base_units())));
  if (r.generation_gpus == 0) return out;
  const char* slower = r.generation_idle > r.training_idle ? "trainers" : "engine";
  return out +
         labelled_line("Idle", kLabels,
                       fmt::format("engine {}, trainers {}{}", percent_text(r.generation_idle),
                                   percent_text(r.training_idle),
                                   s.rl.schedule == RlSchedule::synchronous
                                       ? ""
                                       : fmt::format("; the {} set the pace", slower)));
}

std::string waterfall(const RlReport& r, const TextStyle& style) {
  const std::vector<double> shares = shares_of(r);
  const std::vector<double> percentages = percentages_that_add_up(shares);
  const double longest = *std::ranges::max_element(shares);
  std::size_t width = 0;
  for (const RlBucketInfo& info : rl_buckets()) width = std::max(width, info.title.size());
  std::string out = "\n" + style.bold("Where the GPU time goes") + "\n";
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] <= 0) continue;
    out += fmt::format("  {:<{}}{:>7.1f} % {:>9}  {}", rl_buckets()[i].title, width, percentages[i],
                       duration_text(shares[i] * r.step.base_units()),
                       bar(shares[i] / longest, kBarColumns, style));
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out + fmt::format("  {:<{}}{:>7.1f} % {:>9}\n", "Together", width, 100.0,
                           duration_text(r.step.base_units()));
}

std::string table_text(const RlScenario& s, const RlReport& r, const TextStyle& style) {
  std::string out = title(s, r, style) + headline(s, r, style) + waterfall(r, style);
  if (s.training.assumptions.empty()) return out;
  out += "\n";
  for (const std::string& assumed : s.training.assumptions) {
    out += style.dim("  assumed: " + assumed) + "\n";
  }
  return out;
}

Json rl_json(const RlScenario& s, const RlReport& r) {
  const auto number = [](double value) { return twelve_digits(value); };
  const double generating = r.generation_gpus > 0 ? r.generation_gpus : r.training_gpus;
  Json out{{"scenario", s.training.file},
           {"model", s.training.job.model.name},
           {"algorithm", s.rl.algorithm->name},
           {"schedule", kRlScheduleNames[static_cast<std::size_t>(s.rl.schedule)]},
           {"gpus", r.gpus()},
           {"training_gpus", r.training_gpus},
           {"generation_gpus", r.generation_gpus},
           {"step_s", number(r.step.base_units())},
           {"generation_s", number(r.generation.base_units())},
           {"scores_s", number(r.scores.base_units())},
           {"training_s", number(r.training.base_units())},
           {"offload_s", number(r.offload.base_units())},
           {"weight_sync_s", number(r.weight_sync.base_units())},
           {"tokens_per_step", number(r.tokens)},
           {"tokens_per_s_per_gpu", number(r.tokens_per_s_per_gpu())},
           {"generated_tokens_per_s", number(r.generated_per_s())},
           {"generated_tokens_per_s_per_gpu", number(r.generated_per_s() / generating)},
           {"generation_idle_share", number(r.generation_idle)},
           {"training_idle_share", number(r.training_idle)},
           {"response_mean_tokens", number(r.response_mean)},
           {"response_most_tokens", r.response_most},
           {"replicas", r.replicas},
           {"sequences_mean", number(r.sequences_mean)},
           {"sequences_most", r.sequences_most},
           {"cache_tokens", number(r.cache_tokens)},
           {"preempted", r.preempted},
           {"update_s", number(r.update.step_s)},
           {"training_mfu", number(r.update.mfu_full)},
           {"training_mfu_full", number(r.update.mfu_full)},  // as it was called before
           {"training_mfu_causal", number(r.update.mfu_causal)},
           {"buckets", Json::object()},
           {"assumptions", s.training.assumptions}};
  const std::vector<double> shares = shares_of(r);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    out["buckets"][std::string(rl_buckets()[i].name)] = {{"gpu_s", number(r.gpu_seconds[i])},
                                                         {"share", number(shares[i])}};
  }
  return out;
}

/// A line for each bucket.
CsvText rl_csv(const RlReport& r) {
  const auto line = [](std::vector<std::string> cells) { return csv_line(cells); };
  CsvText out = line({"bucket", "gpu_s", "share"});
  const std::vector<double> shares = shares_of(r);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    out += line(
        {std::string(rl_buckets()[i].name), number_text(r.gpu_seconds[i]), number_text(shares[i])});
  }
  return out;
}

/// Training has to fit by itself: during a rollout its state leaves, or takes of the cache.
void require_memory(const RlScenario& s) {
  const Scenario& t = s.training;
  const MemoryVerdict memory = check_memory(t.job, t.stack, t.node.gpu);
  if (memory.fits) return;
  const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
  throw InputError(
      {.file = t.file,
       .pointer = "",
       .found = fmt::format("training that needs {} on a GPU of stage {}",
                            gib(memory.peak.needed()), memory.fullest_stage),
       .allowed = fmt::format("at most {}{} (--allow-oom predicts anyway)", gib(memory.usable),
                              memory.nearest_fit.empty() ? "" : ", as with " + memory.nearest_fit),
       .nearest = {}});
}

}  // namespace

Exit run_rl(const std::string& file, const std::string& text, const PresetStore& presets,
            const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  const RlScenario scenario = read_rl_scenario(
      file, text, presets, {.set = options.all("set"), .profiles = options.all("profile")});
  if (!options.has("allow-oom")) require_memory(scenario);
  const RlReport report = simulate_rl_step(scenario);
  const Json json = rl_json(scenario, report);
  const std::vector<std::string> misses = all_missed(assertions, json);
  const TextStyle style = output_style(options, console);
  write_output(format == "json"  ? Answer(JsonText(json))
               : format == "csv" ? Answer(rl_csv(report))
                                 : Answer::terminal(table_text(scenario, report, style)),
               options, console);
  return report_misses(misses, console);
}

}  // namespace lockstep
