#include "tools/laws/command_laws.hpp"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/laws/law_subject.hpp"
#include "sim/search/rebase_files.hpp"
#include "tools/laws/said.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

void same_numbers(std::string_view who, const Json& found, const Json& expected,
                  std::initializer_list<const char*> names, LawBook& book) {
  for (const char* name : names) {
    const std::optional<double> told = number_in(found, name), wanted = number_in(expected, name);
    if (!wanted) continue;
    book.holds(fmt::format("{} says {}", who, name), told.has_value());
    if (told) book.same(fmt::format("{}: {}", who, name), *told, *wanted, kPrinted);
  }
}

/// The answer without what is of the file's name, and the scenario, whose paths moved.
std::string without_place(Json answer) {
  for (const char* member : {"scenario", "file", "lockstep_version"}) answer.erase(member);
  if (answer.contains("job")) answer["job"].erase("file");
  return write_json(answer);
}

// --- run ---------------------------------------------------------------------------------------

void hold_run(LawSubject& subject, LawBook& book, const std::vector<std::string>& presets) {
  const Commands commands(subject, presets);
  std::vector<std::string> words{"run", commands.file(), "--format", "json"};
  // The option is for trainings alone.
  const ScenarioFile& file = subject.read();
  const bool trains = !file.serving && (!file.queue || !file.queue->trainings.empty());
  if (trains) words.emplace_back("--allow-oom");
  const Said said = commands.run(words);
  if (!said.out.empty() && said.exit == Exit::assertion_missed) {
    return book.does_not_apply("the scenario's own claim is missed");
  }
  if (!answered("run", said, book)) return;
  book.same_text("the answer of run and of the library", without_place(said.json()),
                 without_place(subject.answer()));
}

/// Columns of the first line of a CSV, by name.
Json first_line(const std::string& csv) {
  std::istringstream lines(csv);
  std::string names, values, name, value;
  std::getline(lines, names);
  std::getline(lines, values);
  std::istringstream name_cells(names), value_cells(values);
  Json out = Json::object();
  while (std::getline(name_cells, name, ',') && std::getline(value_cells, value, ',')) {
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (!value.empty() && *end == '\0') out[name] = number;
  }
  return out;
}

// --- sweep, compare ----------------------------------------------------------------------------

bool is_of_job(const LawSubject& subject, LawBook& book) {
  const bool trains = subject.kind() == AnswerKind::step || subject.kind() == AnswerKind::run;
  if (trains && !subject.read().rl) return true;
  book.does_not_apply("not one training job");
  return false;
}

/// A sweep of one point, the scenario itself.
void hold_sweep(LawSubject& subject, LawBook& book, const std::vector<std::string>& presets) {
  if (!is_of_job(subject, book)) return;
  const Commands commands(subject, presets);
  const Json& answer = subject.answer();
  const Json micro = subject.job()->job.batch.micro_sequences;
  const std::string sweep = commands.write_text(
      "sweep.json",
      {{"scenario", "job.json"},
       {"allow_oom", true},
       {"axes",
        Json::array(
            {{{"at", "/batch/micro"}, {"name", "micro"}, {"values", Json::array({micro})}}})}});
  const std::string csv = commands.path("sweep.csv");
  const Said said = commands.run(
      {"sweep", sweep, "-o", commands.path("sweep.db"), "--csv", csv, "-j", "1", "--quiet"});
  if (!answered("sweep", said, book)) return;
  same_numbers("sweep", first_line(read_text_file(csv)), answer,
               {"step_s", "mfu", "goodput", "needed_memory_gib", "wall_s"}, book);
}

/// From the scenario to one of twice the sequences: both ends are what run says, and all changes
/// add up to their difference. Compared with itself nothing differs.
void hold_compare(LawSubject& subject, LawBook& book, const std::vector<std::string>& presets) {
  if (subject.kind() != AnswerKind::step) return book.does_not_apply("not one training step");
  const Commands commands(subject, presets);
  const Said same = commands.run({"compare", commands.file(), commands.file(), "--format", "json"});
  if (answered("compare", same, book)) {
    const Json itself = same.json();
    book.same("changes against itself", static_cast<double>(itself.at("changes").size()), 0, 0);
    book.same("compare: from", itself.at("from").get<double>(),
              subject.answer().at("step_s").get<double>(), kPrinted);
  }
  const int sequences = subject.job()->job.batch.sequences;
  const Json* const twice = subject.changed({fmt::format("batch.sequences={}", 2 * sequences)});
  if (twice == nullptr) return;
  Json longer = subject.document();
  longer["batch"]["sequences"] = 2 * sequences;
  const Said said = commands.run({"compare", commands.file(), commands.write("b.json", longer),
                                  "--metric", "step_s", "--format", "json"});
  if (!answered("compare", said, book)) return;
  const Json comparison = said.json();
  double sum = comparison.at("from").get<double>();
  for (const Json& change : comparison.at("changes")) sum += change.at("change").get<double>();
  book.same("compare: to", comparison.at("to").get<double>(), twice->at("step_s").get<double>(),
            kPrinted);
  book.same("compare: from and all changes", sum, comparison.at("to").get<double>(), kPrinted);
}

// --- tune --------------------------------------------------------------------------------------

/// The row that a search has for the scenario's own layout.
void hold_tune(LawSubject& subject, LawBook& book, const std::vector<std::string>& presets) {
  if (subject.kind() != AnswerKind::step) return book.does_not_apply("not one training step");
  const Scenario& job = *subject.job();
  if (job.unequal()) return book.does_not_apply("tune takes one kind of node and an even batch");
  const Parallelism& cut = job.job.parallelism;
  const Commands commands(subject, presets);
  const auto text = [](int width) { return std::to_string(width); };
  const Said said = commands.run({"tune", commands.file(), "--tensor", text(cut.tensor),
                                  "--context", text(cut.context), "--pipeline", text(cut.pipeline),
                                  "--virtual-stages", text(cut.virtual_stages), "--keep", "1", "-j",
                                  "1", "--quiet", "--format", "json"});
  if (said.exit != Exit::ok) return book.does_not_apply(said.complaint());
  const Json tuned = said.json();
  const Json& own = tuned.at("own");
  if (!own.is_object()) return book.does_not_apply("no candidate of the search");
  same_numbers("tune", own, subject.answer(), {"step_s", "mfu", "needed_memory_gib"}, book);
  for (const Json& part : subject.answer().at("waterfall")) {
    const auto bucket = part.at("bucket").get<std::string>();
    book.same("tune: share of " + bucket, own.at("waterfall_shares").at(bucket).get<double>(),
              part.at("share").get<double>(), kPrinted);
  }
  book.at_most("tune: lower bound", own.at("lower_bound_s").get<double>(),
               own.at("step_s").get<double>(), 1e-9);
}

// --- threads ---------------------------------------------------------------------------------

/// A search and a sweep of two batches and two ways to recompute, on one thread and on two.
void hold_command_threads(LawSubject& subject, LawBook& book,
                          const std::vector<std::string>& presets) {
  if (subject.kind() != AnswerKind::step) return book.does_not_apply("not one training step");
  const Commands commands(subject, presets);
  const int sequences = subject.job()->job.batch.sequences;
  const std::string sweep = commands.write_text(
      "threads.json", {{"scenario", "job.json"},
                       {"allow_oom", true},
                       {"axes", Json::array({{{"at", "/batch/sequences"},
                                              {"name", "sequences"},
                                              {"values", Json::array({sequences, 2 * sequences})}},
                                             {{"at", "/recompute"},
                                              {"name", "recompute"},
                                              {"values", Json::array({"none", "full"})}}})}});
  const auto swept = [&](const std::string& threads) -> std::optional<std::string> {
    const std::string csv = commands.path("threads" + threads + ".csv");
    const Said said =
        commands.run({"sweep", sweep, "-o", commands.path("threads" + threads + ".db"), "--csv",
                      csv, "-j", threads, "--quiet"});
    if (said.exit != Exit::ok) return std::nullopt;
    return read_text_file(csv);
  };
  const std::optional<std::string> one = swept("1");
  if (one) book.same_text("points on two threads", swept("2").value_or("an error"), *one);
  if (subject.job()->unequal()) return;
  const Parallelism& cut = subject.job()->job.parallelism;
  const auto tuned = [&](const std::string& threads) {
    return commands.run({"tune", commands.file(), "--tensor", std::to_string(cut.tensor),
                         "--context", std::to_string(cut.context), "--pipeline",
                         std::to_string(cut.pipeline), "--virtual-stages",
                         std::to_string(cut.virtual_stages), "--keep", "3", "-j", threads,
                         "--quiet", "--format", "json"});
  };
  const Said alone = tuned("1");
  if (alone.exit != Exit::ok) return;
  book.same_text("a search on two threads", tuned("2").out, alone.out);
}

// --- plan --------------------------------------------------------------------------------------

/// A plan of one candidate, the scenario itself, for some days of its steps.
void hold_plan(LawSubject& subject, LawBook& book, const std::vector<std::string>& presets) {
  if (subject.kind() != AnswerKind::run) return book.does_not_apply("no run of weeks");
  if (subject.read().rl) return book.does_not_apply("plans are of training steps");
  const Json& document = subject.document();
  if (!document.at("run").contains("duration")) {
    return book.does_not_apply("its end is a number of tokens");
  }
  const Commands commands(subject, presets);
  Json alone = document;
  for (const char* key : {"run", "expect"}) alone.erase(key);
  constexpr double kDays = 5 * 86'400.0;
  const Json step = subject.ask(alone);
  if (!step.at("memory_fits").get<bool>()) return book.does_not_apply("it does not fit in memory");
  const Json training{{"tokens", std::round(kDays * step.at("tokens_per_s").get<double>())}};
  Json scenario = document;
  for (const char* key : {"expect", "$schema", "about"}) scenario.erase(key);
  scenario["run"].erase("duration");
  scenario["training"] = training;
  const Json seed = scenario["run"].contains("seed") ? scenario["run"]["seed"] : Json(1);
  const std::string run_file = commands.write("run.json", scenario);
  scenario["run"].erase("seed");
  scenario.erase("training");
  rebase_files(scenario, subject.file(), commands.path("plan.json"));
  const std::string plan_file = commands.write_text(
      "plan.json", {{"training", training},
                    {"samples", 10},
                    {"seed", seed},
                    {"scenario", scenario},
                    {"candidates", Json::array({{{"name", "a"}, {"pay", "own"}}})}});
  const Said ran = commands.run({"run", run_file, "--format", "json", "-j", "1"});
  const Said said = commands.run({"plan", plan_file, "--format", "json", "-j", "1"});
  if (said.exit != Exit::ok) return book.does_not_apply(said.complaint());
  if (!answered("run", ran, book)) return;
  const Json run = ran.json(), answer = said.json();
  const Json& planned = answer.at("candidates").at(0);
  if (planned.at("possible") != true) return book.does_not_apply("no plan can keep its limits");
  same_numbers("plan", planned, run, {"step_s", "mfu"}, book);
  // A plan gives up at 10 times a run's work: some may not finish.
  constexpr double kSurelyFinished = 0.5;
  if (run.at("goodput").get<double>() < kSurelyFinished) return;
  book.same("plan: wall time", planned.at("time_s").at("point").get<double>(),
            run.at("wall_s").get<double>(), 1e-6);
  book.same("plan: interruptions", planned.at("interruptions").get<double>(),
            run.at("interruptions").get<double>(), 1e-6);
}

// --- replay ------------------------------------------------------------------------------------

/// How far a trace says what the step does.
struct Told {
  double least = 1, most = 1;  ///< of the replayed step over the step
};

/// Exchanges inside layers are one collective for each segment, of as long a transfer when alone;
/// ZeRO's gathers and the gradients beside it find other shares of NVLink and NICs. Groups that
/// shard apart wait for each other's slowest in a step alone. Of 2,500 random jobs
/// those told exactly were within 0.1 % (rounding, and messages that share a pair of ranks), others
/// from 0.90 to 1.013.
std::optional<Told> told_of(const Scenario& scenario) {
  const Parallelism& cut = scenario.job.parallelism;
  const CommunicationPolicy& policy = scenario.stack.communication;
  const int lanes = cut.tensor * cut.context;
  // Rings of keys and values that cross the network are replayed member by member, each at its own
  // pace, where a step has one for all.
  if (lanes > scenario.node.nvlink_domain || scenario.node.nvlink_domain < scenario.node.gpus) {
    return std::nullopt;
  }
  // Nor does a trace say over which hashed paths its collectives go.
  const FabricSpec& fabric = scenario.fabric;
  if (fabric.routing != Routing::spray || !fabric.faults.empty() || fabric.graph) {
    return std::nullopt;
  }
  const int ranks = std::max(lanes, cut.expert * cut.expert_tensor);
  const bool beside =
      policy.overlap_gradients || policy.overlap_parameters || cut.sharding == Sharding::zero3;
  const auto uneven = [](int width) { return !std::has_single_bit(static_cast<unsigned>(width)); };
  const bool roughly = (ranks > 1 && beside) || scenario.job.model.experts.count > 0 ||
                       cut.shard_group > 0 || uneven(scenario.nodes) || uneven(cut.pipeline);
  return roughly ? Told{0.88, 1.02} : Told{0.998, 1.002};
}

void hold_replay(LawSubject& subject, LawBook& book, const std::vector<std::string>& presets) {
  if (subject.kind() != AnswerKind::step) return book.does_not_apply("not one training step");
  const Scenario& job = *subject.job();
  constexpr int kMostRanks = 64, kMostRanksDeep = 512;
  const int most = subject.deep() ? kMostRanksDeep : kMostRanks;
  if (job.gpus() > most) {
    return book.does_not_apply(fmt::format("{} ranks are many files: at most {}{}", job.gpus(),
                                           most, subject.deep() ? "" : " without --deep"));
  }
  const std::optional<Told> told = job.unequal() ? std::nullopt : told_of(job);
  if (!told) return book.does_not_apply("a trace does not say what its layout does");
  const Commands commands(subject, presets);
  const std::string trace = commands.path("trace");
  const Said wrote =
      commands.run({"run", commands.file(), "--allow-oom", "--chakra", trace, "--format", "json"});
  if (wrote.exit == Exit::assertion_missed) return book.does_not_apply("its own claim is missed");
  if (!answered("run --chakra", wrote, book)) return;
  const Said said =
      commands.run({"replay", trace, "--cluster", commands.file(), "--format", "json"});
  if (!answered("replay", said, book)) return;
  const double replayed = said.json().at("step_s").get<double>();
  const double step = subject.answer().at("step_s").get<double>();
  book.at_most("replay over run", replayed / step, told->most, 0);
  book.at_most("least of replay over run", told->least, replayed / step, 0);
}

}  // namespace

std::vector<Law> command_laws(const std::vector<std::string>& presets) {
  using Hold = void (*)(LawSubject&, LawBook&, const std::vector<std::string>&);
  const auto law = [&](std::string name, std::string sentence, Hold hold) {
    return Law{.name = std::move(name),
               .family = LawFamily::agreement,
               .sentence = std::move(sentence),
               .hold = [hold, presets](LawSubject& subject, LawBook& book) {
                 hold(subject, book, presets);
               }};
  };
  return {
      law("run", "lockstep run says what the library answers.", hold_run),
      law("sweep", "A sweep's point is what run says of it.", hold_sweep),
      law("compare", "Both ends of a comparison are what run says; its changes add up.",
          hold_compare),
      law("tune", "A search's row of the scenario's own layout is what run says.", hold_tune),
      law("command_threads", "Searches and sweeps say the same on any number of threads.",
          hold_command_threads),
      law("plan", "A plan's point is what run says of the same training.", hold_plan),
      law("replay", "A step's own export, replayed, takes the step's time.", hold_replay),
  };
}

}  // namespace lockstep
