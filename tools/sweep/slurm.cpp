#include "tools/sweep/slurm.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <ostream>
#include <sstream>
#include <thread>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/search/sweep/estimate.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/sweep/shards.hpp"
#include "tools/sweep/shell.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kAttempts = 3;              ///< for each shard, from this process
constexpr double kSecondsPerShard = 300;  ///< of one core: starting a task costs Slurm about one
constexpr std::chrono::milliseconds kFirstPoll{500}, kSlowestPoll{5000};

[[noreturn]] void fail_slurm(const std::string& found) {
  throw InputError({.file = "--engine slurm",
                    .pointer = {},
                    .found = found,
                    .allowed = "a machine from which sbatch and squeue reach Slurm "
                               "(--print-parallel prints the shards' commands)",
                    .nearest = {}});
}

/// The shards of one sweep on Slurm.
class SlurmArray {
 public:
  SlurmArray(const SweepRun& run, const ParsedOptions& options)
      : run_(run), options_(options), folder_(shard_folder(run)) {}

  [[nodiscard]] bool has_submitted() const { return !jobs_.empty(); }

  /// Takes back what was written for shards that Slurm never took.
  void forget() const {
    std::error_code error;
    fs::remove_all(folder_, error);
    fs::remove(run_.database + ".shards", error);  // unless others are in it
    for (const char* part : {"", "-wal", "-shm"}) fs::remove(run_.database + part, error);
  }

  Exit follow() {
    const InterruptGuard guard;
    ResultsDb results(run_.database, run_.sweep, run_.engine.manifest(),
                      ResultsDb::Journal::write_ahead);
    collect_shards(run_, results, taken_);
    const std::vector<std::uint32_t> missing = run_.engine.missing(run_.numbers, results);
    if (missing.empty()) return Exit::ok;
    make_plan(missing);
    Progress progress(run_.console.err, "shards", wanted_.size(),
                      run_.console.err_is_terminal && !run_.quiet);
    std::chrono::milliseconds pause = kFirstPoll;
    while (!advance(results, progress)) {
      if (InterruptGuard::interrupted()) return leave();
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 5 / 4, kSlowestPoll);
    }
    return Exit::ok;
  }

 private:
  /// How many shards there are, and which jobs compute them, from the last time or new.
  void make_plan(const std::vector<std::uint32_t>& missing) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (fs::is_regular_file(plan_file(), error)) {
      const Json plan = Json::parse(read_text_file(plan_file()));
      count_ = plan.at("shards").get<int>();
      jobs_ = plan.at("jobs").get<std::vector<std::string>>();
    }
    const int most = std::min<int>(kMostShards, static_cast<int>(run_.numbers.size()));
    if (options_.has("shards") || count_ == 0) {
      constexpr double kLimitS = 3;
      const int asked = whole_number(options_, "shards", 0, kMostShards);
      const auto estimated = [&] {
        const auto tried = run_.engine.try_points(missing, kLimitS);
        return estimate_sweep(tried, missing.size(), 1).seconds / kSecondsPerShard;
      };
      count_ = asked > 0 ? std::min(asked, most)
                         : std::clamp(static_cast<int>(std::lround(estimated())), 1, most);
    }
    const std::vector<int> needed = shards_with(missing, run_.numbers, count_);
    wanted_.insert(needed.begin(), needed.end());
    write_script();
    save_plan();
  }

  [[nodiscard]] std::string plan_file() const { return folder_ + "/plan.json"; }

  void save_plan() const {
    OutputFile file(plan_file());
    file.write(write_json(Json{{"shards", count_}, {"jobs", jobs_}}, 2) + "\n");
    file.commit();
  }

  void write_script() const {
    OutputFile file(folder_ + "/task.sh");
    file.write(ShellText::write(
                   "#!/bin/sh\n# A shard of a sweep, written by lockstep sweep --engine slurm.\n"
                   "cd {} &&\nexec {}\n",
                   fs::current_path().string(),
                   shard_command(run_, options_, ShellText::write("\"$SLURM_ARRAY_TASK_ID\""),
                                 count_, ShellText::write("\"${{SLURM_CPUS_PER_TASK:-1}}\"")))
                   .str());
    file.commit();
  }

  void submit(const std::vector<int>& tasks) {
    ShellText command = ShellText::write(
        "sbatch --parsable --array={} --job-name=lockstep-sweep --requeue --open-mode=append "
        "--output={}",
        array_text(tasks), fs::absolute(folder_).string() + "/task-%a.log");
    for (const char* name : {"partition", "account", "time"}) {
      if (options_.has(name)) {
        command += ShellText::write(" --{}={}", name, options_.get(name));
      }
    }
    for (const std::string& word : options_.all("sbatch")) {
      command += ShellText::write(" {}", word);
    }
    const ShellAnswer answer = ask_shell(command + ShellText::write(" {}", folder_ + "/task.sh"));
    if (answer.status == 127) fail_slurm("no command sbatch");
    if (answer.status != 0) fail_slurm(in_quotes(answer.text));
    // "123", or "123;cluster"; warnings may stand before.
    const std::string last = answer.text.substr(answer.text.rfind('\n') + 1);
    jobs_.push_back(last.substr(0, last.find(';')));
    for (const int task : tasks) ++attempts_[task];
    save_plan();
  }

  /// Takes in what is there; submits what nobody computes. True when all is done.
  bool advance(ResultsDb& results, Progress& progress) {
    const std::optional<std::vector<int>> live = tasks_alive();
    collect_shards(run_, results, taken_);
    std::error_code error;
    std::vector<int> lost;
    for (auto task = wanted_.begin(); task != wanted_.end();) {
      if (taken_.contains(shard_file(run_, {*task, count_}))) {
        progress.one_done();
        task = wanted_.erase(task);
        continue;
      }
      if (live && !std::ranges::binary_search(*live, *task)) lost.push_back(*task);
      ++task;
    }
    if (wanted_.empty()) return finish(results);
    // A file may show up later than the end of its task, so a shard has to be lost twice.
    std::vector<int> again;
    std::ranges::set_intersection(lost, lost_before_, std::back_inserter(again));
    if (jobs_.empty()) again = lost;
    lost_before_ = lost;
    give_up(again);
    if (!again.empty()) {
      submit(again);
      lost_before_.clear();
    }
    return false;
  }

  /// Throws InputError when a shard had all its attempts.
  void give_up(const std::vector<int>& again) {
    for (const int task : again) {
      if (attempts_[task] < kAttempts) continue;
      const std::string log = fmt::format("{}/task-{}.log", folder_, task);
      std::string words = "no output";
      std::error_code error;
      if (fs::is_regular_file(log, error)) {
        words = read_text_file(log);
        while (words.ends_with('\n')) words.pop_back();
        words = words.substr(words.rfind('\n') + 1);
      }
      throw InputError(
          {.file = log,
           .pointer = {},
           .found = fmt::format("shard {} of {} without a result after {} attempts, "
                                "the last with {}",
                                task, count_, kAttempts, in_quotes(words)),
           .allowed = "tasks that end with their result; the others' are in " + run_.database,
           .nearest = {}});
    }
  }

  /// Tasks that wait or run; nothing when Slurm does not say.
  std::optional<std::vector<int>> tasks_alive() {
    if (jobs_.empty()) return std::vector<int>{};
    std::vector<int> all;
    for (const std::string& job : jobs_) {
      const ShellAnswer answer = ask_shell(ShellText::write("squeue -h -r -o %K -j {}", job));
      if (answer.status == 127) fail_slurm("no command squeue");
      if (answer.text.find("Invalid job id") != std::string::npos) continue;  // long over
      const auto live = answer.status == 0 ? live_tasks(answer.text) : std::nullopt;
      if (!live) return std::nullopt;  // the controller is away; it will come back
      all.insert(all.end(), live->begin(), live->end());
    }
    std::ranges::sort(all);
    return all;
  }

  bool finish(ResultsDb& results) {
    const std::vector<std::uint32_t> missing = run_.engine.missing(run_.numbers, results);
    if (!missing.empty()) {
      throw InputError({.file = run_.database,
                        .pointer = {},
                        .found = fmt::format("{} points of shards that were made of other files",
                                             missing.size()),
                        .allowed = "the same files of the scenario on all nodes",
                        .nearest = {}});
    }
    std::error_code error;
    fs::remove_all(folder_, error);
    fs::remove(run_.database + ".shards", error);  // unless others are in it
    return true;
  }

  Exit leave() {
    run_.console.err << fmt::format(
        "{} shards are left to Slurm: the same command goes on with them, scancel {} ends them\n",
        wanted_.size(), fmt::join(jobs_, " "));
    return Exit::interrupted;
  }

  const SweepRun& run_;
  const ParsedOptions& options_;
  std::string folder_;
  int count_ = 0;
  std::vector<std::string> jobs_;
  std::set<int> wanted_;          ///< shards without a result
  std::set<std::string> taken_;   ///< files that are in the database
  std::map<int, int> attempts_;   ///< by shard
  std::vector<int> lost_before_;  ///< neither computed nor waiting when last looked at
};

}  // namespace

Exit sweep_by_slurm(const SweepRun& run, const ParsedOptions& options) {
  const bool is_new = !fs::exists(run.database);
  SlurmArray array(run, options);
  try {
    return array.follow();
  } catch (const InputError&) {
    if (is_new && !array.has_submitted()) array.forget();
    throw;
  }
}

std::string array_text(const std::vector<int>& tasks) {
  std::string text;
  for (std::size_t i = 0; i < tasks.size();) {
    std::size_t end = i;
    while (end + 1 < tasks.size() && tasks[end + 1] == tasks[end] + 1) ++end;
    if (!text.empty()) text += ",";
    text += std::to_string(tasks[i]);
    if (end > i) text += "-" + std::to_string(tasks[end]);
    i = end + 1;
  }
  return text;
}

std::optional<std::vector<int>> live_tasks(const std::string& squeue) {
  std::vector<int> tasks;
  std::istringstream words(squeue);
  for (std::string word; words >> word;) {
    int task = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), task);
    if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
    tasks.push_back(task);
  }
  std::ranges::sort(tasks);
  return tasks;
}

}  // namespace lockstep
