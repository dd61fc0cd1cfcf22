// `lockstep run` of scenarios with "queue", and what other commands say to them.
#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/answer/answer.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

const std::string kQueues = LOCKSTEP_SOURCE_DIR "/scenarios/queue/";
const std::string kRecorded = kQueues + "slurm-recorded.json";
const std::string kMuri = kQueues + "muri-trace3-srtf.json";

nlohmann::json queue_answer(std::vector<std::string> args) {
  args.insert(args.begin(), "run");
  args.insert(args.end(), {"--format", "json"});
  const Ran ran = lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return nlohmann::json::parse(ran.out);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

}  // namespace

TEST_CASE("lockstep run: a queue as Slurm ran it, on the nodes and at the times that it chose") {
  const nlohmann::json answer = queue_answer({kRecorded});
  CHECK(answer["kind"] == "queue");
  const nlohmann::json& recorded = answer["recorded"];
  CHECK(recorded["same_nodes"] == 100);
  CHECK(recorded["largest_gap_s"].get<double>() <= 10);
  CHECK(std::abs(recorded["wait_error"].get<double>()) < 0.005);
  CHECK(recorded["inverted_pairs"] == 0);
  CHECK(answer["claim"]["bounds"].size() == 4);
  double shares = 0;
  for (const auto& bucket : answer["waterfall"]) shares += bucket["share"].get<double>();
  CHECK(shares == doctest::Approx(1));
}

TEST_CASE("lockstep run, queue: an option that a queue would not follow is refused") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--profile", "h100_sxm5_measured"},
        {"--hash-seeds", "3"},
        {"--explain-fabric"}}) {
    std::vector<std::string> args{"run", kRecorded};
    args.insert(args.end(), words.begin(), words.end());
    const Ran ran = lockstep_with(args);
    CAPTURE(words.front());
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    CHECK(ran.err.starts_with("lockstep run: " + words.front() + " is for a scenario "));
    CHECK(ran.err.ends_with("slurm-recorded.json has \"queue\"\n"));
  }
}

TEST_CASE("lockstep run, queue: --allow-oom is for one with trainings") {
  const Ran none = lockstep_with({"run", kRecorded, "--allow-oom"});
  CHECK(none.exit == Exit::bad_input);
  CHECK(none.out.empty());
  CHECK(none.err == "lockstep run: --allow-oom is for a scenario with trainings; the queue of " +
                        kRecorded + " has none\n");
  const std::string trains = kQueues + "two-tenants-one-spine.json";
  CHECK(lockstep_with({"run", trains, "--allow-oom"}).exit == Exit::ok);
}

TEST_CASE("lockstep run: a queue of which Slurm backfilled 60 of 100 jobs") {
  const nlohmann::json answer = queue_answer({kRecorded, "--set", "queue.order=fifo", "--set",
                                              "queue.jobs.0.trace.file=slurm_backfill_x20.csv",
                                              "--set", "queue.slurm.opens=60 s", "--set",
                                              R"(expect={"that": ["recorded.same_nodes>=40"]})"});
  // The controller's own computing time moves its passes, and with them half of the nodes.
  CHECK(std::abs(answer["recorded"]["wait_error"].get<double>()) < 0.05);
  CHECK(answer["recorded"]["same_nodes"].get<int>() >= 40);
  CHECK(answer["recorded"]["inverted_pairs"].get<double>() < 0.06);
  CHECK(answer["backfilled"].get<int>() >= 50);
  CHECK(answer["backfilled"].get<int>() <= 70);
}

TEST_CASE("lockstep run: a queue in every format") {
  const Ran table = lockstep_with({"run", kRecorded});
  for (const char* text :
       {"100 jobs on 128 GPUs", "Wait", "Recorded", "the same nodes for 100 of 100",
        "Where the cluster's GPU time goes", "mean slowdown", "assumed:"}) {
    CAPTURE(text);
    CHECK(table.out.find(text) != std::string::npos);
  }
  const std::vector<std::string> rows =
      lines_of(lockstep_with({"run", kRecorded, "--format", "csv"}).out);
  REQUIRE(rows.size() == 101);
  CHECK(rows[0].starts_with("job,user,account,partition,gpus,submit_s,start_s,end_s,wait_s"));
  CHECK(rows[1].find("n[") != std::string::npos);
  CHECK(lockstep_with({"run", kRecorded, "--assert", "utilisation>=0.9"}).exit ==
        Exit::assertion_missed);
  CHECK(lockstep_with({"run", kRecorded, "--assert", "utilisation>=0.8"}).exit == Exit::ok);
  const Ran varied = lockstep_with(
      {"run", kRecorded, "--vary", "queue.admission=slurm,best_effort", "--format", "csv"});
  CHECK_MESSAGE(lines_of(varied.out).size() == 3, varied.err);
}

TEST_CASE("lockstep run: a queue's page has its waits, its GPU time and its jobs by node") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/queue.html";
  const Ran ran = lockstep_with({"run", kRecorded, "--report", file});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const std::string page = read_text_file(file);
  for (const char* text : {"A job waits", "Where the GPU time goes", "Jobs that wait",
                           "Jobs by node", "Against what was recorded", "Who waits longest"}) {
    CAPTURE(text);
    CHECK(page.find(text) != std::string::npos);
  }
}

TEST_CASE("lockstep run: drawn jobs stand in for a trace that is not at hand, and it says so") {
  const Ran ran = lockstep_with(
      {"run", kMuri, "--set", "queue.jobs.0.trace.file=not-here/muri.csv", "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const nlohmann::json answer = nlohmann::json::parse(ran.out);
  CHECK(answer["jobs"] == 992);
  CHECK(answer["assumptions"].dump().find("992 drawn ones stand in") != std::string::npos);
}

TEST_CASE("lockstep run: two tenants, apart on leaves of their own and spread over all of them") {
  const std::string tenants = kQueues + "two-tenants-one-spine.json";
  const nlohmann::json packed = queue_answer({tenants});
  const nlohmann::json spread = queue_answer({tenants, "--set", "queue.placement.across=spread"});
  CHECK(packed["trainings"][1]["slowdown_most"] == 1);
  CHECK(packed["waterfall"]["slowed"]["gpu_hours"] == 0);
  CHECK(spread["trainings"][1]["slowdown_most"].get<double>() > 1.05);
  CHECK(spread["waterfall"]["slowed"]["gpu_hours"].get<double>() > 0);
  CHECK(spread["completion_mean_s"] > packed["completion_mean_s"]);
  const Ran varied =
      lockstep_with({"run", tenants, "--vary", "queue.placement.across=packed,spread"});
  CHECK_MESSAGE(varied.out.find("mean completion") != std::string::npos, varied.err);
}

TEST_CASE("lockstep run: two teams under Kueue, and what the borrower waited") {
  const std::string teams = kQueues + "kueue-two-teams.json";
  const nlohmann::json answer = queue_answer({teams});
  CHECK(answer["admission"] == "kueue");
  CHECK(answer["preemption"] == "kueue");
  CHECK(answer["ended"] == 20);
  // Eight jobs from 130 min to 6 h, of twenty.
  CHECK(answer["wait_mean_s"].get<double>() == doctest::Approx(8.0 / 20 * (6 * 3600 - 130 * 60)));
  CHECK(answer["waterfall"]["lost"]["gpu_hours"].get<double>() == doctest::Approx(64 / 6.0));
  const Ran table = lockstep_with({"run", teams});
  CHECK_MESSAGE(table.out.find("preemption by cluster queue") != std::string::npos, table.err);
  const Ran explained = lockstep_with({"queue", "explain", teams, "--job", "pretrain_15"});
  CHECK(explained.out.find("a quota of its user, account or ClusterQueue") != std::string::npos);
}

TEST_CASE("lockstep run: searches that stop early, and a training that waits for one of them") {
  const std::string searches = kQueues + "searches-then-training.json";
  const nlohmann::json answer = queue_answer({searches});
  REQUIRE(answer["campaigns"].size() == 3);
  const nlohmann::json& rate = answer["campaigns"][0];
  CHECK(rate["stopping"] == "asha");
  CHECK(rate["rungs"][0]["trials"] == 81);
  CHECK(rate["rungs"].size() == 4);
  CHECK(rate["saved_gpu_hours"].get<double>() > 0.5 * rate["unstopped_gpu_hours"].get<double>());
  CHECK(rate["makespan_ratio"].get<double>() >= 1);
  CHECK(rate["usd"].get<double>() > 0);
  CHECK(rate["energy_j"].get<double>() > 0);
  const nlohmann::json& shape = answer["campaigns"][1];
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(shape["rungs"][r]["trials"] == std::vector{27, 9, 3}[r]);
  }
  CHECK(answer["campaigns"][2]["finished"] == 12);
  CHECK(answer["never_started"] == 0);
  double gpu_hours = 3 * 24 * 128;  // the training
  for (const auto& of : answer["campaigns"]) gpu_hours += of["gpu_hours"].get<double>();
  CHECK(answer["all"]["gpu_hours"].get<double>() == doctest::Approx(gpu_hours));
  const nlohmann::json none =
      queue_answer({searches, "--set", "queue.campaigns.0.stopping.kind=none"});
  CHECK(none["campaigns"][0]["done_s"] > rate["done_s"]);
  const Ran varied = lockstep_with({"run", searches, "--vary", "queue.order=fifo,sjf,srsf",
                                    "--vary", "queue.campaigns.0.stopping.kind=none,asha"});
  CHECK_MESSAGE(varied.exit == Exit::ok, varied.err);
  const Ran table = lockstep_with({"run", searches});
  CHECK(table.out.find("trials by rung") != std::string::npos);
  CHECK(table.out.find("27 > 9 > 3") != std::string::npos);
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/queue.html";
  REQUIRE(lockstep_with({"run", searches, "--report", file}).exit == Exit::ok);
  CHECK(read_text_file(file).find("Campaigns") != std::string::npos);
}

TEST_CASE("lockstep queue: a rung that is never reached cannot be explained, nor forecast") {
  const std::string searches = kQueues + "searches-then-training.json";
  const nlohmann::json answer = queue_answer({searches});
  const Ran rung = lockstep_with({"run", searches, "--format", "csv"});
  int reached = 0, missed = -1;
  for (int t = 0; t < 27; ++t) {
    const bool is_there = rung.out.find(fmt::format("shape_{}_r1,", t)) != std::string::npos;
    reached += is_there ? 1 : 0;
    if (!is_there) missed = t;
  }
  CHECK(reached == 9);
  const Ran explained =
      lockstep_with({"queue", "explain", searches, "--job", fmt::format("shape_{}_r1", missed)});
  CHECK(explained.exit == Exit::bad_input);
  CHECK(explained.err.find("its trial is stopped before this rung") != std::string::npos);
  const Ran training =
      lockstep_with({"queue", "explain", searches, "--job", "training", "--format", "json"});
  REQUIRE_MESSAGE(training.exit == Exit::ok, training.err);
  CHECK(nlohmann::json::parse(training.out)["start_s"] >= answer["campaigns"][0]["done_s"]);
  const Ran forecast = lockstep_with({"queue", "forecast", searches, "--at", "1 h"});
  CHECK(forecast.exit == Exit::bad_input);
  CHECK(forecast.err.find("nobody recorded who goes on") != std::string::npos);
}

TEST_CASE("lockstep queue explain: every second of a wait has a reason") {
  const Ran ran = lockstep_with({"queue", "explain", kRecorded, "--job", "10", "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const nlohmann::json job = nlohmann::json::parse(ran.out);
  double sum = 0, of_spans = 0;
  for (const auto& [reason, seconds] : job["reasons_s"].items()) sum += seconds.get<double>();
  for (const auto& span : job["waits"]) {
    of_spans += span["end_s"].get<double>() - span["begin_s"].get<double>();
  }
  CHECK(sum == doctest::Approx(job["wait_s"].get<double>()));
  CHECK(of_spans == doctest::Approx(job["wait_s"].get<double>()));
  CHECK(job["start_s"].get<double>() - job["submit_s"].get<double>() ==
        doctest::Approx(job["wait_s"].get<double>()));
  const Ran table = lockstep_with({"queue", "explain", kRecorded, "--job", "10"});
  CHECK(table.out.find("Job 10 waited") != std::string::npos);
  CHECK(table.out.find("others hold the GPUs") != std::string::npos);
}

TEST_CASE("lockstep queue: mistakes are told, with what is allowed") {
  const auto says = [](const std::vector<std::string>& args, const std::string& text) {
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK_MESSAGE(ran.err.find(text) != std::string::npos, ran.err);
  };
  says({"queue"}, "nothing to do");
  says({"queue", "explian", kRecorded}, "Did you mean explain?");
  says({"queue", "explain"}, "no scenario");
  says({"queue", "explain", kRecorded}, "no --job");
  says({"queue", "explain", kRecorded, "--job", "100"}, "one of the 100 jobs of");
  says({"queue", "forecast", kRecorded, "--at", "5"},
       "--at: found \"5\"; allowed: a number with a unit of time: s, ms, us, ns, min, h, d");
  says({"queue", "forecast", kRecorded, "--at", "50000 days"},
       "--at: found \"50000 days\"; allowed: a time above 0, at most 40000 d");
  says({"queue", "explain", LOCKSTEP_SOURCE_DIR "/scenarios/llama3-405b-16k.json", "--job", "1"},
       "without \"queue\"");
}

TEST_CASE("scenarios with \"queue\": options and commands about other things say so") {
  for (const char* option : {"--unfold", "--svg=x.svg", "--trajectories=3"}) {
    CAPTURE(option);
    const Ran ran = lockstep_with({"run", kRecorded, option});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err.find("has \"queue\"") != std::string::npos);
  }
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"tune", kRecorded}, {"comm", kRecorded}}) {
    const Ran ran = lockstep_with(args);
    CAPTURE(args[0]);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err.find("#/queue") != std::string::npos);
  }
}

TEST_CASE("answer: a queue's numbers by name, the same from the library as from the program") {
  const ScenarioAnswer answer = answer_scenario(kRecorded, test::presets());
  CHECK(answer.kind() == AnswerKind::queue);
  CHECK(answer.number("waterfall.useful.share").value() ==
        doctest::Approx(answer.number("useful_share").value()));
  CHECK(answer.number("by_gpus.1.wait_s.mean").has_value());
  CHECK(answer.keeps("wait_mean_s<3600"));
  nlohmann::json printed = queue_answer({kRecorded});
  printed.erase("lockstep_version");
  CHECK(printed == nlohmann::json::parse(answer.json().dump()));
}

TEST_CASE("lockstep queue import: a real Slurm's files, and the window replayed") {
  const std::string site = LOCKSTEP_SOURCE_DIR "/tests/reference/slurm/site/";
  const test::TemporaryFolder folder;
  const std::string to = folder.path() + "/site.json";
  const Ran ran = lockstep_with({"queue", "import", "--slurm", site + "slurm.conf", "--topology",
                                 site + "topology.conf", "--accounting", site + "sacct.txt",
                                 "--squeue", site + "squeue.json", "--sacctmgr", site + "dump.cfg",
                                 "--qos", site + "qos.txt", "-o", to});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.err.find("SlurmctldPort is harmless") != std::string::npos);
  CHECK(ran.err.find("16 jobs taken, 0 left out; lockstep run " + to) != std::string::npos);
  CHECK(ran.err.find("/squeue.json: 15 jobs (") != std::string::npos);
  CHECK(ran.err.find(", and 10 more) that neither wait nor run, left out\n") != std::string::npos);
  const nlohmann::json answer = queue_answer({to});
  CHECK(answer["jobs"] == 16);
  // Of 15 that started: what limits made them wait is predicted, to the pace of Slurm's cycles.
  CHECK(answer["recorded"]["jobs"] == 15);
  CHECK(answer["recorded"]["largest_gap_s"].get<double>() <= 60);
  CHECK(answer["recorded"]["inverted_pairs"].get<double>() < 0.02);
  CHECK(answer["recorded"]["same_nodes"].get<int>() >= 14);
}

TEST_CASE("lockstep queue import: jobs that are left out are named beside their number") {
  const std::string site = LOCKSTEP_SOURCE_DIR "/tests/reference/slurm/site/";
  const test::TemporaryFolder folder;
  const std::string wide =
      "99|big|games|c|all|wide|2026-11-26T03:44:10|2026-11-26T03:44:10|2026-11-26T03:44:21|"
      "2026-11-26T03:53:23|00:11:00|gres/gpu=6400|gres/gpu=6400|n2|COMPLETED\n";
  const std::string jobs = folder.write("sacct.txt", read_text_file(site + "sacct.txt") + wide);
  const std::string to = folder.path() + "/site.json";
  const Ran ran = lockstep_with(
      {"queue", "import", "--slurm", site + "slurm.conf", "--accounting", jobs, "-o", to});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.err.find("job 99: it asks for 6400 GPUs; ") != std::string::npos);
  CHECK(ran.err.find(" jobs taken, 1 left out (99); lockstep run " + to) != std::string::npos);
}

TEST_CASE("lockstep queue import: what it needs, and nothing half-written") {
  const auto says = [](const std::vector<std::string>& args, const std::string& text) {
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK_MESSAGE(ran.err.find(text) != std::string::npos, ran.err);
  };
  const std::string conf = LOCKSTEP_SOURCE_DIR "/tests/reference/slurm/site/slurm.conf";
  says({"queue", "import", "-o", "x.json"}, "no --slurm");
  says({"queue", "import", "--slurm", conf}, "-o site.json");
  says({"queue", "import", "--slurm", conf, "-o", "x.json", "--node", "dgx_h10"},
       "Did you mean dgx_h100?");
  says({"queue", "explain", kRecorded, "--job", "1", "--slurm", conf}, "--slurm is of import");
  const test::TemporaryFolder folder;
  const std::string to = folder.path() + "/site.json";
  says({"queue", "import", "--slurm", conf, "-o", to}, "no job to take");
  CHECK_FALSE(std::filesystem::exists(to));
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/site.jobs.csv"));
}

TEST_CASE("lockstep queue import: Kueue's manifests, with drawn jobs or with Workloads") {
  const test::TemporaryFolder folder;
  const std::string queues =
      "kind: ClusterQueue\n"
      "metadata: {name: team}\n"
      "spec:\n"
      "  fairSharing: {weight: 2}\n"
      "  resourceGroups:\n"
      "  - flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 16}]}]\n";
  const std::string workload =
      "---\n"
      "kind: Workload\n"
      "metadata: {name: fit, creationTimestamp: \"2026-01-01T00:00:00Z\"}\n"
      "spec:\n"
      "  queueName: team\n"
      "  maximumExecutionTimeSeconds: 3600\n"
      "  podSets:\n"
      "  - template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}}\n";
  const std::string yaml = folder.write("q.yaml", queues), to = folder.path() + "/site.json";
  const Ran drawn = lockstep_with({"queue", "import", "--kueue", yaml, "-o", to});
  REQUIRE_MESSAGE(drawn.exit == Exit::ok, drawn.err);
  CHECK(drawn.err.find("ClusterQueue/spec/fairSharing of team matters") != std::string::npos);
  CHECK(drawn.err.find("drawn jobs stand in") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/site.jobs.csv"));
  CHECK(queue_answer({to})["jobs"] == 1000);

  const std::string both = folder.write("both.yaml", queues + workload);
  const Ran taken = lockstep_with({"queue", "import", "--kueue", both, "--nodes", "4", "-o", to});
  REQUIRE_MESSAGE(taken.exit == Exit::ok, taken.err);
  CHECK(taken.err.find("1 job taken, 0 left out; lockstep run " + to) != std::string::npos);
  CHECK(queue_answer({to})["jobs"] == 1);

  const auto says = [&](const std::vector<std::string>& args, const std::string& text) {
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK_MESSAGE(ran.err.find(text) != std::string::npos, ran.err);
  };
  says({"queue", "import", "--kueue", yaml, "--slurm", yaml, "-o", to}, "not beside --kueue");
  says({"queue", "import", "--slurm", yaml, "--nodes", "3", "-o", to}, "is of import --kueue");
  says({"queue", "import", "--kueue", yaml}, "-o site.json");
  says({"queue", "explain", kRecorded, "--job", "1", "--kueue", yaml}, "--kueue is of import");
  says({"queue", "import", "--kueue", folder.write("bad.yaml", "kind: Pod\n"), "-o", to},
       "no ClusterQueue with a quota of GPUs");
}

TEST_CASE("lockstep run, queue: a timeline of each job on its nodes, and metrics over time") {
  const test::TemporaryFolder folder;
  const std::string scenario = folder.path() + "/queue.json", trace = folder.path() + "/t.json",
                    metrics = folder.path() + "/m.prom";
  std::ofstream(scenario) << R"({
    "cluster": {"node": "dgx_h100", "nodes": 2, "fabric": "fat_tree"}, "power": {},
    "queue": {"order": "fifo", "admission": "strict", "gpu_draw": "500 W", "jobs": [
      {"job": {"name": "a \"quoted\" name", "gpus": 16, "runs": "30 min"}},
      {"job": {"name": "second", "gpus": 4, "runs": "30 min"}}]}})";
  const Ran ran = lockstep_with({"run", scenario, "--trace", trace, "--metrics", metrics});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.out.find("at the site's meter") != std::string::npos);
  const nlohmann::json events = nlohmann::json::parse(read_text_file(trace)).at("traceEvents");
  // Two nodes; the first job begins and ends on both, the second on one.
  REQUIRE(events.size() == 2 + 4 + 2);
  CHECK(events[0]["args"]["name"] == "n1");
  CHECK(events[2]["name"] == "a \"quoted\" name");
  CHECK(events[2]["ts"] == 0);
  CHECK(events[3]["ts"] == 30 * 60 * 1e6);
  const std::vector<std::string> lines = lines_of(read_text_file(metrics));
  CHECK(lines.back() == "# EOF");
  for (const char* name : {"slurm_gpus_alloc", "slurm_queue_pending", "lockstep_power_watts"}) {
    CHECK(std::ranges::count(lines, fmt::format("# TYPE {} gauge", name)) == 1);
  }
  // A second job waits while the first holds all.
  const auto first = [&](const std::string& name) {
    return *std::ranges::find_if(lines, [&](const auto& l) { return l.starts_with(name + " "); });
  };
  CHECK(first("slurm_gpus_alloc").starts_with("slurm_gpus_alloc 16 "));
  CHECK(first("slurm_gpus_idle").starts_with("slurm_gpus_idle 0 "));
  CHECK(first("slurm_queue_pending").starts_with("slurm_queue_pending 1 "));
}

TEST_CASE("lockstep run, queue: a peak above the site's limit stands first") {
  const std::string research = kQueues + "research-cluster-easy.json";
  const auto lines_with_limit = [&](const char* limit) {
    const Ran ran = lockstep_with({"run", research, "--set", "queue.until=1 d", "--set",
                                   std::string("power.site_limit=") + limit});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return ran.out;
  };
  CHECK(lines_with_limit("300 kW").find("EXCEEDED: the site draws ") != std::string::npos);
  CHECK(lines_with_limit("30 MW").find("EXCEEDED") == std::string::npos);
}

TEST_CASE("lockstep queue fill: what each policy allocates of shared GPUs") {
  const std::string mixed = kQueues + "fill-mixed-gpus.json";
  const Ran ran = lockstep_with({"queue", "fill", mixed, "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const nlohmann::json answer = nlohmann::json::parse(ran.out);
  CHECK(answer["gpus"] == 260);
  REQUIRE(answer["policies"].size() == 6);
  const auto allocated = [&](const char* policy) {
    return answer["policies"][policy]["allocated"].get<double>();
  };
  CHECK(allocated("random") < allocated("fgd"));
  CHECK(allocated("fgd") <= 1);
  CHECK(answer["policies"]["fgd"]["allocated_by_asked"].size() == answer["asked"].size());
  CHECK(lockstep_with({"queue", "fill", mixed, "--format", "json"}).out == ran.out);
  const Ran table =
      lockstep_with({"queue", "fill", "fill-mixed-gpus", "--set", "filling.policies=[\"fgd\"]"});
  CHECK_MESSAGE(table.out.find("fragmented") != std::string::npos, table.err);
  CHECK(table.out.find("best_fit") == std::string::npos);
}

TEST_CASE("lockstep queue fill: another document, another option, and a file for another command") {
  const std::string mixed = kQueues + "fill-mixed-gpus.json";
  const auto says = [](const std::vector<std::string>& args, const std::string& text) {
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK_MESSAGE(ran.err.find(text) != std::string::npos, ran.err);
  };
  says({"queue", "fill", kRecorded}, "lockstep run " + kRecorded + " takes this file");
  says({"run", mixed}, "lockstep queue fill " + mixed + " takes this file");
  says({"queue", "fill", mixed, "--job", "1"}, "--job is not of fill");
  says({"queue", "fill", mixed, "--openb-pods", "x.csv"}, "--openb-pods is of import");
  says({"queue", "fill"}, "no scenario");
}

TEST_CASE("lockstep queue import: openb's nodes and pods as a cluster to fill") {
  const test::TemporaryFolder folder;
  const std::string nodes = folder.write(
      "n.csv", "sn,cpu_milli,memory_mib,gpu,model\na,96000,393216,8,G2\nb,96000,393216,8,G2\n");
  const std::string pods =
      folder.write("p.csv",
                   "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\nx,6000,12288,1,460,\n"
                   "y,12000,16384,1,1000,G2\nz,4000,64,0,0,\n");
  const std::string to = folder.path() + "/f.json";
  const Ran ran =
      lockstep_with({"queue", "import", "--openb-nodes", nodes, "--openb-pods", pods, "-o", to});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.err.find("2 nodes and 3 pods taken, 1 kind of nodes, 3 kinds of pods") !=
        std::string::npos);
  CHECK(lockstep_with({"queue", "fill", to}).exit == Exit::ok);
  const auto says = [](const std::vector<std::string>& args, const std::string& text) {
    const Ran refused = lockstep_with(args);
    CHECK(refused.exit == Exit::bad_input);
    CHECK_MESSAGE(refused.err.find(text) != std::string::npos, refused.err);
  };
  says({"queue", "import", "--openb-nodes", nodes}, "no --openb-pods");
  says({"queue", "import", "--openb-nodes", nodes, "--openb-pods", pods, "--node", "dgx_h100"},
       "--node is not of import --openb-nodes");
}

}  // namespace lockstep
