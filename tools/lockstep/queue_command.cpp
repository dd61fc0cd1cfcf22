#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/cluster/campaign_summary.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/queue/fill_queue.hpp"
#include "tools/lockstep/queue/forecast_queue.hpp"
#include "tools/lockstep/queue/import_queue.hpp"
#include "tools/lockstep/queue/queue_input.hpp"
#include "tools/views/queue/followed_job.hpp"
#include "tools/views/queue/waiting_page.hpp"
#include "tools/views/report/assets.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kQueueFormats{"table", "json"};
constexpr std::size_t kComparedNames = 10'000;

constexpr std::array kQueueOptions{
    OptionSpec{
        "at", 0, "TIME", false,
        "forecast: now, counted from the first submission. Default: the scenario's snapshot.",
        "--at '3 d'"},
    OptionSpec{"draws", 0, "N", false,
               "forecast: how often the durations of jobs are drawn. Default: 50.", "--draws 200"},
    OptionSpec{
        "job", 0, "NAME", false,
        "explain: which job: as the trace calls it, else its number in the order of submission.",
        "--job 4711"},
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of the scenario before it is read, as lockstep run does.",
               "--set queue.admission=easy"},
    OptionSpec{"format", 0, "table|json", false,
               "How to print: a table for people (the default), or JSON.", "--format json"},
    OptionSpec{"report", 0, "FILE", false,
               "explain, forecast, fill: write one self-contained HTML page: the answer with its "
               "charts, what was simulated, inputs and assumptions with sources.",
               "--report queue.html", PathUse::writes},
    OptionSpec{"allow-oom", 0, "", false, "Also with trainings that do not fit in memory.",
               "--allow-oom"},
    OptionSpec{"slurm", 0, "FILE", false, "import: the site's slurm.conf.", "--slurm slurm.conf",
               PathUse::reads},
    OptionSpec{"topology", 0, "FILE", false, "import: its topology.conf.",
               "--topology topology.conf", PathUse::reads},
    OptionSpec{"accounting", 0, "FILE", false,
               "import: jobs as `sacct -a -X -P --format=JobID,JobName,User,Account,Partition,QOS,"
               "Submit,Eligible,Start,End,Timelimit,AllocTRES,NodeList,State` prints them.",
               "--accounting sacct.txt", PathUse::reads},
    OptionSpec{"squeue", 0, "FILE", false,
               "import: jobs that wait or run, as `squeue --json` prints them.",
               "--squeue squeue.json", PathUse::reads},
    OptionSpec{"sacctmgr", 0, "FILE", false,
               "import: accounts, shares and limits, as `sacctmgr dump CLUSTER` writes them.",
               "--sacctmgr dump.cfg", PathUse::reads},
    OptionSpec{"qos", 0, "FILE", false,
               "import: qualities of service, as `sacctmgr -P show qos` prints them.",
               "--qos qos.txt", PathUse::reads},
    OptionSpec{
        "kueue", 0, "FILE", false,
        "import: manifests of Kueue, YAML: ClusterQueues, LocalQueues, ResourceFlavors, "
        "WorkloadPriorityClasses, and Workloads as `kubectl get workloads -A -o yaml` prints "
        "them.",
        "--kueue queues.yaml", PathUse::reads},
    OptionSpec{"openb-nodes", 0, "FILE", false,
               "import: nodes as Alibaba published them (openb_node_list_*.csv), beside "
               "--openb-pods; may be compressed.",
               "--openb-nodes openb_node_list_gpu_node.csv", PathUse::reads},
    OptionSpec{"openb-pods", 0, "FILE", false,
               "import: pods as Alibaba published them (openb_pod_list_*.csv), for `lockstep queue "
               "fill`.",
               "--openb-pods openb_pod_list_default.csv", PathUse::reads},
    OptionSpec{"nodes", 0, "N", false,
               "import --kueue: the cluster's nodes. Default: as many as have the GPUs of all "
               "nominal quotas.",
               "--nodes 16"},
    OptionSpec{"node", 0, "NAME", false,
               "import: the preset of the site's nodes; `lockstep list nodes`. Default: dgx_h100.",
               "--node dgx_a100_80gb"},
    kPresetsOption,
    kOutputOption};

constexpr std::array<std::string_view, 7> kQueueExamples{
    "lockstep queue forecast research-cluster-easy --at '60 h'",
    "lockstep queue explain slurm-recorded --job 10",
    "lockstep queue explain research-cluster-easy --job 19000 --format json",
    "lockstep queue import --slurm slurm.conf --accounting sacct.txt -o site.json",
    "lockstep queue import --kueue queues.yaml --nodes 16 -o site.json",
    "lockstep queue fill fill-mixed-gpus --report filling.html",
    "lockstep queue import --openb-nodes openb_node_list_gpu_node.csv --openb-pods "
    "openb_pod_list_default.csv -o filling.json"};

constexpr CommandSpec kQueueSpec{
    .name = "queue",
    .usage =
        "queue explain FILE|NAME --job NAME | queue forecast FILE|NAME [--at TIME] | queue "
        "fill FILE|NAME | queue import (--slurm FILE | --kueue FILE | --openb-nodes FILE "
        "--openb-pods FILE) -o FILE [options]",
    .summary =
        "Explain why a job of a queue waited, forecast when those that wait will start; "
        "fill a cluster with pods that share GPUs; import a site's Slurm or Kueue as a scenario.",
    .about =
        R"(explain: simulates a scenario with "queue" as lockstep run does, and follows one of its
jobs. Each stretch of its waiting has the first of these reasons that holds: it is held; it
depends on a job; its time has not come; its array is full; a limit of its quality of service
or association, a quota or the licences would be exceeded; an advance reservation is in the way;
it fits, but the order, a reservation or the scheduler's cycle holds it back; enough GPUs
are free, but not on the nodes that it needs; it lacks no more than is in repair; others
hold the GPUs. The stretches add up to its wait. While it is suspended, a job that
preempted it holds its GPUs.
forecast: takes the queue as it is at a moment, up to then as it was recorded (where nothing was:
as the rules have it), and says when each job that waits will start, and with what spread: nobody
knows how long jobs run, so that this is drawn from how much of their limits ended ones ran,
those of the same user where there are ten. With --set, what a change would do. Where a job was
evicted, suspended or stopped by a failure, the order may not go by durations.
fill: puts pods that ask for CPUs, memory and GPUs, or a share of one, on nodes of any kinds,
as each of six policies does it, until so many of the GPUs have been asked for, and says how
many are allocated, and how many are free in fragments. It takes a document with "filling".
import: writes a scenario with "queue" of a site's files, and its jobs beside it; lockstep
run then says what they waited and what the rules make of them. Settings that the scenario
lacks are said on standard error, a line each: harmless, or matters.)",
    .positionals = 2,
    .options = kQueueOptions,
    .examples = kQueueExamples,
};

/// Throws InputError for a name that no job has.
std::uint32_t job_of(const QueueSpec& spec, const std::string& name) {
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    if (spec.job_name(j) == name) return static_cast<std::uint32_t>(j);
  }
  std::vector<std::string> names;
  for (std::size_t j = 0; j < std::min(spec.jobs.size(), kComparedNames); ++j) {
    names.push_back(spec.job_name(j));
  }
  throw InputError(
      {.file = "--job",
       .pointer = {},
       .found = in_quotes(name),
       .allowed = fmt::format("one of the {} of {}",
                              counted(static_cast<double>(spec.jobs.size()), "job"), spec.file),
       .nearest = nearest_name(name, names)});
}

Exit explain_job(const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kQueueFormats);
  const bool reports = wants_report(options);
  const PresetStore presets(options.all("presets"));
  QueueInput input = timed_queue(options, presets);
  QueueSpec& spec = input.spec;
  std::uint32_t job = job_of(spec, options.get("job"));
  QueueResult result;
  {
    Progress progress(console.err, "jobs", spec.jobs.size(), console.err_is_terminal);
    result = simulate_queue(spec, {.watch = job, .go_on = [&](std::size_t ended, std::size_t all) {
                                     if (ended > 0) progress.update(ended, all);
                                     return true;
                                   }});
  }
  if (!spec.campaigns.empty()) {
    if (spec.jobs[job].submit == kNotSubmitted && result.jobs[job].submitted < 0) {
      throw InputError({.file = "--job",
                        .pointer = {},
                        .found = in_quotes(options.get("job")),
                        .allowed = "a job that is submitted: its trial is stopped before this rung",
                        .nearest = {}});
    }
    settle_campaigns(spec, result);
    job = job_of(spec, options.get("job"));
  }
  const Followed followed{spec, result, job};
  if (reports) write_report(options, followed_page(followed, input.written, presets));
  write_output(format == "json"
                   ? Answer(JsonText(followed_json(followed)))
                   : Answer::terminal(followed_table(followed, output_style(options, console))),
               options, console);
  return Exit::ok;
}

Exit run_queue_command(const ParsedOptions& options, Console& console) {
  const auto usage = [](const std::string& wrong) {
    return UsageError(
        fmt::format("lockstep queue: {}; usage: lockstep {}", wrong, kQueueSpec.usage));
  };
  if (options.positionals.empty()) throw usage("nothing to do");
  const std::string& action = options.positionals[0];
  const std::vector<std::string> actions{"explain", "forecast", "fill", "import"};
  if (action == "import") {
    if (options.positionals.size() > 1) throw usage("files to import are given by options");
    if (options.has("report")) throw usage("--report is not of import");
    return import_queue(options, console);
  }
  const bool forecasts = action == "forecast";
  const bool fills = action == "fill";
  if (action != "explain" && !forecasts && !fills) {
    throw UsageError(
        fmt::format("lockstep queue: unknown action {}; allowed: explain, forecast, fill, import{}",
                    in_quotes(action), did_you_mean(action, actions)));
  }
  for (const std::string_view option :
       {"slurm", "topology", "accounting", "squeue", "sacctmgr", "qos", "node", "kueue", "nodes",
        "openb-nodes", "openb-pods"}) {
    if (options.has(option)) throw usage(fmt::format("--{} is of import", option));
  }
  if (options.positionals.size() < 2) throw usage("no scenario");
  if (forecasts) {
    if (options.has("job")) throw usage("--job is of explain");
    return forecast_starts(options, console);
  }
  if (fills) {
    for (const std::string_view option : {"job", "at", "draws", "allow-oom"}) {
      if (options.has(option)) throw usage(fmt::format("--{} is not of fill", option));
    }
    return fill_queue(options, console);
  }
  for (const std::string_view option : {"at", "draws"}) {
    if (options.has(option)) throw usage(fmt::format("--{} is of forecast", option));
  }
  if (!options.has("job")) throw usage("no --job");
  return explain_job(options, console);
}

constexpr Command kQueueCommand{&kQueueSpec, run_queue_command};

}  // namespace

const Command& queue_command() { return kQueueCommand; }

}  // namespace lockstep
