#include "sim/scenario/queue_campaigns.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/scenario/listed_jobs.hpp"
#include "sim/scenario/queue_parts.hpp"
#include "sim/scenario/queue_trace.hpp"
#include "sim/scenario/queue_trainings.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostCampaigns = 1000;
constexpr int kMostTrials = 1'000'000, kMostEta = 1000;

/// How the worse trials are stopped, as a file has it.
struct WrittenStopping {
  StoppingKind kind = StoppingKind::none;
  int eta = 3;
  bool resume = true;
  std::optional<JsonCursor> least;
};

struct WrittenCampaign {
  std::string name;
  int trials = 1, most_at_once = 0;
  WrittenStopping stopping;
  std::optional<ListedJob> job;
  std::optional<JsonCursor> training;
};

void declare_stopping(const DeclaredMembers& member, WrittenStopping& out) {
  member.required(
      "kind", out.kind, kStoppingNames,
      "none: all trials run to their ends; successive_halving: the best 1/eta of a rung "
      "go on when all of it has ended; asha: whoever is among the best 1/eta of those "
      "that have ended in its rung goes on at once; hyperband: successive halving from "
      "several first rungs. With none the other keys say nothing");
  member.optional("eta", out.eta, 2, kMostEta,
                  "One of so many goes on, to so many times the time; default: 3");
  member.optional(
      "least", written_type(R"({"anyOf": [
                    {"type": "number", "minimum": 1e-6, "maximum": 0.9},
                    {"$ref": "#/$defs/time"}]})"),
      "Where the first rung ends: a share of a trial, or a time; each further one is eta "
      "times as far, and the last one is the end of the trial",
      [&](const JsonCursor& at) {
        out.least = at;
        if (!at.is_string()) (void)at.number(kFirstRung);
      });
  member.optional("resume", out.resume,
                  "A trial that goes on has what it did so far; false: each rung begins anew, as "
                  "the papers count their budgets. Default: true");
}

void declare_campaign(const DeclaredMembers& member, WrittenCampaign& out) {
  member.required("name", out.name,
                  "As answers and dependencies call it; its trials are NAME_0, NAME_1 and so on");
  member.required("trials", out.trials, 1, kMostTrials, "How many are begun");
  member.optional("stopping", out.stopping, "How the worse ones are stopped early; default: none",
                  declare_stopping);
  member.optional("most_at_once", out.most_at_once, 1, kMostTrials,
                  "Jobs of it that run or wait for GPUs at a time, of which those of the furthest "
                  "rung come first; default: any number");
  member.optional("job", out.job, "Each trial, to its end: its duration is given",
                  declare_unnamed_job);
  if (member.object() != nullptr) {
    out.training = member.object()->find("training");
    return;
  }
  std::optional<QueuedTraining> described;
  member.optional(
      "training", described,
      "Each trial, to its end: a model and a layout, whose step is simulated where it is "
      "placed",
      declare_queue_training);
}

/// Where the first rung ends. `runs` is empty where that is not known yet.
double first_rung(const JsonCursor& stopping, const WrittenStopping& written,
                  std::optional<RunTime> runs) {
  if (!written.least) return stopping.at("least").number(kFirstRung);  // required here
  const JsonCursor& at = *written.least;
  if (!at.is_string()) return at.number(kFirstRung);
  const Seconds least = at.seconds(kPositiveQueueSpan);
  if (!runs) {
    at.fail(
        fmt::format("a share of a trial from {} to {}: how long a training takes follows from "
                    "where it is placed",
                    significant(kFirstRung.low), significant(kFirstRung.high)));
  }
  const double share = least / to_seconds(*runs);
  if (!(share >= kFirstRung.low) || share > kFirstRung.high) {
    const auto part = [&](double of) { return duration_text(of * to_seconds(*runs).base_units()); };
    at.fail(fmt::format("from {} to {}, of a trial that takes {}", part(kFirstRung.low),
                        part(kFirstRung.high), part(1)));
  }
  return share;
}

void add_brackets(const JsonCursor& at, const WrittenCampaign& written, std::optional<RunTime> runs,
                  QueueSpec& out) {
  const auto trials = static_cast<std::uint32_t>(written.trials);
  TrialBracket bracket{.campaign = static_cast<std::uint32_t>(out.campaigns.size() - 1),
                       .first = 0,
                       .trials = trials,
                       .ends = {1}};
  const WrittenStopping& stopping = written.stopping;
  if (stopping.kind == StoppingKind::none) return out.brackets.push_back(bracket);
  const double least = first_rung(at.at("stopping"), stopping, runs);
  if (stopping.kind != StoppingKind::hyperband) {
    bracket.ends = rung_ends(least, stopping.eta);
    return out.brackets.push_back(bracket);
  }
  const int most = hyperband_most(least, stopping.eta);
  if (written.trials <= most) {
    at.at("trials").fail(fmt::format(
        "at least {}, one for each of hyperband's brackets from this \"least\"", most + 1));
  }
  int s = most;
  for (const std::uint32_t of_bracket : hyperband_trials(trials, stopping.eta, most)) {
    double first = 1;
    for (int i = 0; i < s; ++i) first /= stopping.eta;
    bracket.trials = of_bracket;
    first = std::max(first, kFirstRung.low);  // which rounding may have left by a bit
    bracket.ends = s == 0 ? std::vector<double>{1} : rung_ends(first, stopping.eta);
    out.brackets.push_back(bracket);
    bracket.first += of_bracket;
    --s;
  }
}

void add_rung(const JsonCursor& at, const ReadJob& trial, const TrialPlace& place, QueueSpec& out) {
  if (out.jobs.size() == kMostQueueJobs) {
    at.fail(fmt::format("at most {} jobs of all rungs together", kMostQueueJobs));
  }
  const TrialBracket& bracket = out.brackets[static_cast<std::size_t>(place.bracket)];
  const TrialCampaign& campaign = out.campaigns[bracket.campaign];
  JobTerms& terms = new_terms(out) = trial.terms;
  out.places.resize(out.jobs.size());
  out.places.push_back(place);
  out.names.resize(out.jobs.size());
  std::string name = fmt::format("{}_{}", campaign.name, place.trial);
  QueueJob job = trial.job;
  if (place.rung > 0) {
    job.submit = kNotSubmitted;
    name += fmt::format("_r{}", place.rung);
    // Its trial has waited for what it had to.
    terms.written.clear();
    terms.series.clear();
  }
  job.runs = rung_length(bracket, place.rung, campaign.resume, trial.job.runs);
  if (job.training < 0) {
    if (job.limit == 0) job.limit = job.runs;
    job.cut = job.limit < job.runs;
    job.runs = std::min(job.runs, job.limit);
  }
  out.names.push_back(std::move(name));
  out.jobs.push_back(job);
}

ReadJob trial_of(const JsonCursor& at, const WrittenCampaign& written, const PresetStore& presets,
                 QueueSpec& out) {
  if (written.job.has_value() == written.training.has_value()) {
    at.fail(R"(either "job" or "training")");
  }
  if (written.job) {
    ListedJob one = *written.job;
    one.name = written.name;
    ReadJob read = read_listed_job(at.at("job"), one, out);
    read.job.runs = to_run_time(one.runs);
    if (one.limit == Seconds{}) read.job.limit = 0;  // of each rung, as long as it runs
    return read;
  }
  QueuedTraining training;
  ReadJob read{.job = add_training(*written.training, presets, training, out), .terms = {}};
  for (const std::string_view key : {"count", "every"}) {
    if (const auto of = written.training->find(key))
      of->fail("no such key: \"trials\" says how many");
  }
  return read;
}

void add_campaign(const JsonCursor& at, const PresetStore& presets, QueueSpec& out) {
  WrittenCampaign written;
  declare_campaign({at, Extent::whole}, written);
  at.finish();
  if (written.name.empty()) at.at("name").fail("a name");
  if (out.array_numbers.contains(written.name)) {
    at.at("name").fail("a name that no other campaign or array has");
  }
  ReadJob trial = trial_of(at, written, presets, out);
  trial.terms.array = array_number(written.name, out);
  out.arrays.back().most_running = written.most_at_once;
  const auto first_bracket = static_cast<std::int32_t>(out.brackets.size());
  out.campaigns.push_back({.name = written.name,
                           .stopping = written.stopping.kind,
                           .trials = written.trials,
                           .eta = written.stopping.eta,
                           .most_at_once = written.most_at_once,
                           .resume = written.stopping.resume,
                           .whole = trial.job.runs});
  const bool timed = trial.job.training < 0;
  add_brackets(at, written, timed ? std::optional(trial.job.runs) : std::nullopt, out);
  for (auto b = first_bracket; b < static_cast<std::int32_t>(out.brackets.size()); ++b) {
    const TrialBracket& bracket = out.brackets[static_cast<std::size_t>(b)];
    for (std::uint32_t t = 0; t < bracket.trials; ++t) {
      for (std::uint32_t rung = 0; rung < bracket.ends.size(); ++rung) {
        add_rung(at, trial, {.bracket = b, .trial = bracket.first + t, .rung = rung}, out);
      }
    }
  }
  if (written.stopping.kind == StoppingKind::none) return;
  out.assumptions.push_back(fmt::format(
      "campaigns: which trial of {} is better is drawn once for each, with the scenario's seed; "
      "that of real ones may change from rung to rung",
      written.name));
}

}  // namespace

void declare_campaigns(const DeclaredMembers& member, const PresetStore& presets, QueueSpec& out) {
  member.optional(
      "campaigns", kMostCampaigns, "Many trials of one job",
      "Searches, variants, seeds: trials that are jobs of the queue, the worse of which may be "
      "stopped early",
      [](const DeclaredMembers& one) {
        WrittenCampaign campaign;
        declare_campaign(one, campaign);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostCampaigns)) add_campaign(at, presets, out);
      });
}

}  // namespace lockstep
