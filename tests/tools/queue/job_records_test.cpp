// `lockstep run --accounting`: what became of jobs as sacct prints it and in the Standard Workload
// Format, read again.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

const std::string kOfSlurm = LOCKSTEP_SOURCE_DIR "/scenarios/queue/slurm-recorded.json";
const std::string kSlurmSite = LOCKSTEP_SOURCE_DIR "/tests/reference/slurm/site/";

/// Two nodes of 8 GPUs for 20 hours: the first job has both for half an hour, the second runs on
/// at the end, and so the third waits.
constexpr const char* kThreeJobs = R"({
  "cluster": {"node": "dgx_h100", "nodes": 2},
  "queue": {"order": "fifo", "admission": "strict", "until": "20 h", "jobs": [
    {"job": {"name": "a|b", "user": "u", "account": "x", "gpus": 16, "runs": "30 min",
             "limit": "1 h"}},
    {"job": {"name": "second", "gpus": 4, "runs": "25 h"}},
    {"job": {"name": "third", "gpus": 16, "runs": "1 h", "submit": "2 h"}}]}})";

std::string records_of(const std::string& scenario, const std::string& to,
                       std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"run", scenario, "--accounting", to});
  const Ran ran = lockstep_with(options);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return read_text_file(to);
}

nlohmann::json answer_with(std::vector<std::string> args) {
  args.insert(args.begin(), "run");
  args.insert(args.end(), {"--format", "json"});
  const Ran ran = lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return nlohmann::json::parse(ran.out);
}

/// A site of the accounting in a file, and of that Slurm's other files.
void import_site(const std::string& accounting, const std::string& to) {
  const Ran ran =
      lockstep_with({"queue", "import", "--slurm", kSlurmSite + "slurm.conf", "--topology",
                     kSlurmSite + "topology.conf", "--accounting", accounting, "--sacctmgr",
                     kSlurmSite + "dump.cfg", "--qos", kSlurmSite + "qos.txt", "-o", to});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
}

}  // namespace

TEST_CASE("lockstep run --accounting: a row for each run of a job, as sacct -P has it") {
  const test::TemporaryFolder folder;
  const std::string scenario = folder.write("queue.json", kThreeJobs);
  CHECK(records_of(scenario, folder.path() + "/sacct.txt") ==
        "JobID|JobName|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|Elapsed|"
        "Timelimit|AllocNodes|AllocTRES|ReqTRES|NodeList\n"
        "1|a_b|u|x|||COMPLETED|2001-01-01T00:00:00|2001-01-01T00:00:00|2001-01-01T00:00:00|"
        "2001-01-01T00:30:00|00:30:00|01:00:00|2|cpu=16,gres/gpu=16,node=2|"
        "cpu=16,gres/gpu=16,node=2|n[1-2]\n"
        "2|second|||||RUNNING|2001-01-01T00:00:00|2001-01-01T00:00:00|2001-01-01T00:30:00|"
        "Unknown|19:30:00|1-01:00:00|1|cpu=4,gres/gpu=4,node=1|cpu=4,gres/gpu=4,node=1|n1\n"
        "3|third|||||PENDING|2001-01-01T02:00:00|2001-01-01T02:00:00|Unknown|Unknown|00:00:00|"
        "01:00:00|0||cpu=16,gres/gpu=16,node=2|None assigned\n");
}

TEST_CASE("lockstep run --accounting: states of jobs, and the tasks of an array") {
  const test::TemporaryFolder folder;
  const std::string slurm = LOCKSTEP_SOURCE_DIR "/tests/reference/slurm/";
  const std::string rows =
      records_of(slurm + "dependencies.json", folder.path() + "/dependencies.txt");
  for (const char* row : {"\n2|bad|||||FAILED|", "\n3_4|arr|||||COMPLETED|",
                          "\n9|after_bad|||||CANCELLED|", "\n24|held|||||PENDING|"}) {
    CAPTURE(row);
    CHECK_MESSAGE(rows.find(row) != std::string::npos, rows);
  }
  CHECK(records_of(slurm + "reserved.json", folder.path() + "/reserved.txt")
            .find("\n5|exam|||||TIMEOUT|") != std::string::npos);
}

TEST_CASE(
    "lockstep run --accounting: each run of a job that was preempted, as sacct --duplicates") {
  const test::TemporaryFolder folder;
  const std::string rows = records_of(LOCKSTEP_SOURCE_DIR "/tests/reference/slurm/preempt.json",
                                      folder.path() + "/preempt.txt");
  // The first run until it was preempted, and the last one, from 30 to 70 minutes.
  for (const char* row :
       {"\n1|l16||||low|PREEMPTED|2001-01-01T00:00:00|2001-01-01T00:00:00|",
        "|2001-01-01T00:20:00|2001-01-01T00:30:00|2001-01-01T01:10:00|00:40:00|"}) {
    CAPTURE(row);
    CHECK_MESSAGE(rows.find(row) != std::string::npos, rows);
  }
}

TEST_CASE("lockstep run --accounting: failures of nodes, and jobs that wait again") {
  const test::TemporaryFolder folder;
  const std::string scenario = folder.write("queue.json", R"({
    "cluster": {"node": "dgx_h100", "nodes": 1},
    "queue": {"order": "fifo", "admission": "strict", "until": "1 h",
              "breaks": [{"node": 0, "at": "10 min", "repair": "20 min"},
                         {"node": 0, "at": "50 min", "repair": "20 min"}],
              "jobs": [{"job": {"name": "a", "gpus": 8, "runs": "2 h"}}]}})");
  const std::string rows = records_of(scenario, folder.path() + "/sacct.txt");
  const std::string day = "2001-01-01T";
  for (const std::string& row :
       {"\n1|a|||||NODE_FAIL|" + day + "00:00:00|" + day + "00:00:00|" + day + "00:00:00|" + day +
            "00:10:00|00:10:00|02:00:00|",
        "\n1|a|||||NODE_FAIL|" + day + "00:10:00|" + day + "00:10:00|" + day + "00:30:00|" + day +
            "00:50:00|00:20:00|02:00:00|",
        "\n1|a|||||PENDING|" + day + "00:50:00|" + day + "00:50:00|Unknown|Unknown|00:00:00|"}) {
    CAPTURE(row);
    CHECK_MESSAGE(rows.find(row) != std::string::npos, rows);
  }
}

TEST_CASE("lockstep run --accounting: a job that was suspended has one run, which is shorter") {
  const test::TemporaryFolder folder;
  const std::string scenario = folder.write("queue.json", R"({
    "cluster": {"node": "dgx_h100", "nodes": 1},
    "queue": {"order": "fifo", "admission": "best_effort", "until": "2 h",
              "preemption": {"mode": "partition", "suspends": true},
              "partitions": [{"name": "spare", "hosts": "n1"},
                             {"name": "prime", "hosts": "n1", "tier": 2}],
              "jobs": [{"job": {"name": "a", "gpus": 8, "runs": "1 h", "partition": "spare"}},
                       {"job": {"name": "b", "gpus": 8, "runs": "10 min", "submit": "20 min",
                                "partition": "prime"}},
                       {"job": {"name": "c", "gpus": 8, "runs": "2 h", "submit": "110 min",
                                "partition": "prime"}},
                       {"job": {"name": "d", "gpus": 8, "runs": "1 h", "submit": "75 min",
                                "partition": "spare"}}]}})");
  const std::string rows = records_of(scenario, folder.path() + "/sacct.txt");
  CHECK(rows.find("|NodeList|Suspended\n") != std::string::npos);
  CHECK_MESSAGE(rows.find("\n1|a|||spare||COMPLETED|2001-01-01T00:00:00|2001-01-01T00:00:00|"
                          "2001-01-01T00:00:00|2001-01-01T01:10:00|01:00:00|01:00:00|1|") !=
                    std::string::npos,
                rows);
  CHECK_MESSAGE(rows.find("|n1|00:10:00\n") != std::string::npos, rows);
  CHECK_MESSAGE(rows.find("\n3|d|||spare||SUSPENDED|2001-01-01T01:15:00|2001-01-01T01:15:00|"
                          "2001-01-01T01:15:00|Unknown|00:35:00|01:00:00|1|") != std::string::npos,
                rows);
  const nlohmann::json answer = answer_with({scenario});
  CHECK(answer["suspensions"] == 2);
  CHECK(answer["suspended_jobs"] == 1);
  CHECK(answer["suspended_s"] == 1200);
  double shares = 0;
  for (const auto& [name, bucket] : answer["waterfall"].items()) {
    shares += bucket["share"].get<double>();
  }
  CHECK(shares == doctest::Approx(1).epsilon(1e-9));
  CHECK_FALSE(answer_with({kOfSlurm})["waterfall"].contains("suspended"));
}

TEST_CASE("lockstep run --accounting: what a site's import makes of it is the same queue again") {
  const test::TemporaryFolder folder;
  const std::string first = folder.path() + "/first.json", again = folder.path() + "/again.json";
  import_site(kSlurmSite + "sacct.txt", first);
  const std::string written = records_of(first, folder.path() + "/sacct.txt");
  import_site(folder.path() + "/sacct.txt", again);
  const nlohmann::json recorded = answer_with({again})["recorded"];
  CHECK(recorded["jobs"] == 15);
  CHECK(recorded["largest_gap_s"] == 0);
  CHECK(recorded["same_nodes"] == 15);
  CHECK(records_of(again, folder.path() + "/again.txt") == written);
}

TEST_CASE("lockstep run --accounting: a heterogeneous job's licences are those of its first part") {
  const test::TemporaryFolder folder;
  const std::string scenario = folder.write("queue.json", R"({
    "cluster": {"node": "dgx_h100", "nodes": 2},
    "queue": {"order": "fifo", "admission": "strict", "licenses": [{"name": "matlab", "count": 4}],
              "jobs": [{"job": {"name": "both", "runs": "1 h", "licenses": "matlab:2",
                                "components": [{"gpus": 8}, {"gpus": 4}]}}]}})");
  const std::string rows = records_of(scenario, folder.path() + "/sacct.txt");
  CHECK_MESSAGE(rows.find("|cpu=8,gres/gpu=8,node=1,license/matlab=2|"
                          "cpu=8,gres/gpu=8,node=1,license/matlab=2|n1\n1+1|") != std::string::npos,
                rows);
  CHECK_MESSAGE(rows.ends_with("|cpu=4,gres/gpu=4,node=1|cpu=4,gres/gpu=4,node=1|n2\n"), rows);
}

TEST_CASE("lockstep run --accounting: the Standard Workload Format, for a name in .swf") {
  const test::TemporaryFolder folder;
  const std::string scenario = folder.write("queue.json", kThreeJobs);
  const std::string log = records_of(scenario, folder.path() + "/log.swf");
  CHECK(log.starts_with("; Version: 2.2\n"));
  CHECK(log.find("; MaxJobs: 2\n") != std::string::npos);
  CHECK(log.find("; MaxProcs: 16\n") != std::string::npos);
  CHECK(log.find("; Note: user 1 is u\n; Note: group 1 is x\n; Note: 1 that never started left "
                 "out\n") != std::string::npos);
  CHECK(
      log.ends_with("\n1 0 0 1800 16 -1 -1 16 3600 -1 1 1 1 -1 -1 -1 -1 -1\n"
                    "2 0 1800 70200 4 -1 -1 4 90000 -1 -1 -1 -1 -1 -1 -1 -1 -1\n"));
}

TEST_CASE("lockstep run --accounting: a queue's log as a trace is the same queue again") {
  const test::TemporaryFolder folder;
  const std::string log = folder.path() + "/log.swf";
  const std::vector<std::string> rules{"--set", "queue.order=fifo", "--set",
                                       R"(expect={"that": ["jobs==100"]})"};
  const std::string written = records_of(kOfSlurm, log, rules);
  std::vector<std::string> of_trace = rules, of_log = rules;
  of_trace.insert(of_trace.begin(), kOfSlurm);
  of_log.insert(of_log.begin(), kOfSlurm);
  of_log.insert(of_log.end(), {"--set", R"(queue.jobs.0.trace={"file": ")" + log + "\"}"});
  const nlohmann::json first = answer_with(of_trace), again = answer_with(of_log);
  CHECK(again["jobs"] == 100);
  CHECK(again["wait_mean_s"] == first["wait_mean_s"]);
  CHECK(again["completion_mean_s"] == first["completion_mean_s"]);
  CHECK(again["slowdown_mean"] == first["slowdown_mean"]);
  CHECK_FALSE(again.contains("recorded"));
}

TEST_CASE("lockstep run --accounting: is for queues") {
  const Ran ran = lockstep_with(
      {"run", LOCKSTEP_SOURCE_DIR "/scenarios/bloom-176b.json", "--accounting", "jobs.txt"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("--accounting is for a scenario with \"queue\"") != std::string::npos);
}

}  // namespace lockstep
