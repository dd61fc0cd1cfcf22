// A site's Slurm as a scenario: what is read acts, everything else is named in a line.
#include "sim/scenario/slurm_import.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/host_list.hpp"
#include "sim/scenario/read_queue.hpp"
#include "sim/scenario/slurm_conf.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

const std::string kSite = LOCKSTEP_SOURCE_DIR "/tests/reference/slurm/site/";

const char* const kConf = R"(# a site
ClusterName=virt
SlurmctldHost=head  # harmless
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=5000
PriorityWeightTRES=GRES/gpu=300,Mem=5
PriorityMaxAge=3-0
PriorityDecayHalfLife=14-0
PriorityFlags=SMALL_RELATIVE_TO_TIME
PreemptType=preempt/qos
PreemptMode=REQUEUE
PreemptExemptTime=00:30:00
PreemptParameters=youngest_first
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=60,\
bf_window=2880,bf_max_job_user=10
CompleteWait=30
SlurmctldDebugg=info
TopologyPlugin=topology/tree
garbage
NodeName=DEFAULT CPUs=64 Gres=gpu:a100:8
NodeName=n[01-04]
NodeName=cpu[1-2] Gres=
PartitionName=batch Nodes=n[01-04] Default=YES MaxTime=1-0
PartitionName=prime Nodes=n[03-04] PriorityTier=5
)";

const char* const kSacct =
    "JobID|JobName|User|Account|Partition|QOS|Submit|Start|End|Timelimit|AllocTRES|NodeList|State\n"
    "1|train|ann|ml|batch|high|2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-01T01:01:00|02:00:"
    "00|"
    "cpu=16,gres/gpu=16,node=2|n[03-04]|COMPLETED\n"
    "1.batch|batch|||||2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-01T01:01:00||||COMPLETED\n"
    "2|big|bob|ml|prime|high|2026-01-01T00:02:00|2026-01-01T00:03:00|2026-01-01T00:04:00|UNLIMITED|"
    "gres/gpu=64|n[01-04]|COMPLETED\n"
    "3_[1-3%2]|many|bob|ml|batch|high|2026-01-01T00:05:00|Unknown|Unknown|10:00|gres/"
    "gpu=1||PENDING\n"
    "4|gone|bob|ml|batch|high|2026-01-01T00:06:00|None|2026-01-01T00:07:00|10:00|gres/gpu=1||"
    "CANCELLED by 1\n"
    "rubbish\n";

SlurmFiles files_of(const char* conf = kConf, const char* sacct = kSacct) {
  SlurmFiles out;
  out.conf = {"slurm.conf", conf};
  out.topology = {"topology.conf",
                  "SwitchName=b Nodes=n[03-04]\nSwitchName=a Nodes=n[01-02]\n"
                  "SwitchName=top Switches=a,b\n"};
  out.accounting = {"sacct.txt", sacct};
  out.qos = {"qos.txt", "Name|Priority|Preempt\nlow|1|\nhigh|10|low\n"};
  return out;
}

ImportedSite imported(const SlurmFiles& files) {
  return import_slurm(files, "dgx_h100", "site.jobs.csv", test::presets());
}

bool has_note(const ImportedSite& site, const std::string& text) {
  return std::ranges::count(site.notes, text) == 1;
}

}  // namespace

TEST_CASE("Slurm's words: times, amounts and host lists as they write them") {
  CHECK(slurm_duration("90") == 5400);
  CHECK(slurm_duration("1:30") == 90);
  CHECK(slurm_duration("2:00:01") == 7201);
  CHECK(slurm_duration("1-12") == 129600);
  CHECK(slurm_duration("1-12:30") == 131400);
  CHECK(slurm_duration("1-00:00:05") == 86405);
  CHECK_FALSE(slurm_duration("UNLIMITED"));
  CHECK(slurm_time("1970-01-02T00:00:01") == 86401);
  CHECK_FALSE(slurm_time("Unknown"));
  CHECK_FALSE(slurm_time("2026-02-30T00:00:00"));
  CHECK(gpus_in("billing=8,cpu=8,gres/gpu=4,gres/gpu:a100=4,node=1") == 4);
  CHECK(gpus_in("gpu:a100:8(S:0-1)") == 8);
  CHECK_FALSE(gpus_in("cpu=8"));
  CHECK_FALSE(gpus_in("gres/gpu=8178822080,node=1"));
  CHECK_FALSE(gpus_in("gres/gpu=-8"));
  CHECK(gpus_in("gpu:a:1000000000,gpu:b:1000000000,gpu:c:1000000000") == 1'000'000'000);
  CHECK(host_names("a[08-10],b,c[1,3]x[1-2]", 100) ==
        Names{"a08", "a09", "a10", "b", "c1x1", "c1x2", "c3x1", "c3x2"});
  CHECK_FALSE(host_names("a[1-", 100));
  CHECK_FALSE(host_names("a[1-1000000]", 1000));
}

TEST_CASE("import: settings that are read act") {
  const ImportedSite site = imported(files_of());
  const Json scenario = Json::parse(site.scenario);
  const Json& queue = scenario["queue"];
  CHECK(queue["order"] == "multifactor");
  CHECK(queue["admission"] == "slurm");
  CHECK(queue["priority"] ==
        Json::parse(R"({"age": 1000.0, "fair_share": 5000.0, "gpu": 300.0, "max_age": "259200 s",
                        "half_life": "1209600 s", "size_relative_to_time": true})"));
  CHECK(queue["preemption"] ==
        Json::parse(R"({"mode": "qos", "exempt": "1800 s", "youngest_first": true,
                        "checkpoint": "1000 d"})"));
  CHECK(queue["slurm"] == Json::parse(R"({"bf_interval": "60 s", "bf_window": "172800 s"})"));
  CHECK(queue["placement"]["leaf_nodes"] == 2);
  // Nodes are numbered leaf by leaf: n03 and n04 are the first two.
  CHECK(queue["partitions"] == Json::parse(R"([{"name": "batch", "hosts": "n[1-4]"},
                                               {"name": "prime", "hosts": "n[1-2]", "tier": 5}])"));
  CHECK(scenario["cluster"] == Json::parse(R"({"node": "dgx_h100", "nodes": 4})"));
  CHECK(site.taken == 4);
  CHECK(site.left_out.count() == 2);
  CHECK(site.left_out.names() == "2, 4");
  CHECK(site.jobs.find("\n1,ann,ml,batch,high,16,0,3600,7200,60,0,n[1-2],,,,,COMPLETED,train\n") !=
        std::string::npos);
  CHECK(site.jobs.find("\n3_2,bob,ml,batch,high,1,300,600,600,,0,,3,2,,,PENDING,many\n") !=
        std::string::npos);
}

TEST_CASE("import: PreemptMode=SUSPEND acts where a suspended job's CPUs come free, not its Gres") {
  SlurmFiles files;
  files.conf = {"slurm.conf",
                "NodeName=n[1-2] CPUs=8\n"
                "PartitionName=spare Nodes=n[1-2] Default=YES\n"
                "PartitionName=prime Nodes=n[1-2] PriorityTier=5\n"
                "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\n"};
  files.accounting = {"sacct.txt",
                      "JobID|Partition|Submit|Start|End|Suspended|Timelimit|AllocTRES|State\n"
                      "1|spare|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:30:00|"
                      "00:30:00|02:00:00|cpu=16|COMPLETED\n"
                      "2|prime|2026-01-01T00:20:00|2026-01-01T00:20:00|2026-01-01T00:50:00|"
                      "00:00:00|01:00:00|cpu=8|COMPLETED\n"};
  const ImportedSite site = imported(files);
  CHECK(Json::parse(site.scenario)["queue"]["preemption"] ==
        Json::parse(R"({"mode": "partition", "suspends": true, "checkpoint": "1000 d"})"));
  // An hour of work in an hour and a half.
  CHECK(site.jobs.find("\n1,,,spare,,16,0,3600,7200,0,0,") != std::string::npos);

  files.conf.text.replace(0, 22, "NodeName=n[1-2] CPUs=8 Gres=gpu:8");
  files.accounting.reset();
  const ImportedSite gres = imported(files);
  CHECK(Json::parse(gres.scenario)["queue"]["preemption"]["mode"] == "none");
  CHECK(has_note(gres,
                 "PreemptMode=SUSPEND frees the CPUs of a suspended job, and none of its Gres: it "
                 "keeps its GPUs, and nobody is taken to be preempted; \"suspends\" in "
                 "\"preemption\" is for GPUs that are shared"));
}

TEST_CASE("import: licences, of which a job asks for those that slurm.conf has") {
  SlurmFiles files;
  files.conf = {"slurm.conf", "NodeName=n[1-2] CPUs=8 Gres=gpu:8\nLicenses=matlab:4,ansys\n"};
  files.accounting = {"sacct.txt",
                      "JobID|Submit|Start|End|AllocTRES|State\n"
                      "1|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|"
                      "gres/gpu=4,license/ansys=1,license/matlab=2|COMPLETED\n"
                      "2|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|"
                      "gres/gpu=4,license/matlab=5,license/other=1|COMPLETED\n"};
  files.squeue = {"squeue.json", R"({"jobs": [{"job_id": 3, "job_state": "PENDING",
      "submit_time": 1767225700, "time_limit": 5, "tres_req_str": "gres/gpu=1",
      "licenses": "matlab"}]})"};
  const ImportedSite site = imported(files);
  const Json queue = Json::parse(site.scenario)["queue"];
  CHECK(queue["licenses"] ==
        Json::parse(R"([{"name": "matlab", "count": 4}, {"name": "ansys", "count": 1}])"));
  CHECK(queue["jobs"][0]["trace"]["columns"]["licenses"] == "licenses");
  CHECK(site.jobs.find(",series,licenses\n") != std::string::npos);
  CHECK(site.jobs.find(",COMPLETED,,\"ansys:1,matlab:2\"\n") != std::string::npos);
  CHECK(site.jobs.find(",COMPLETED,,\n") != std::string::npos);
  CHECK(site.jobs.find(",PENDING,,matlab:1\n") != std::string::npos);
  CHECK(has_note(site, "taken without licences of which slurm.conf has none, or fewer: 1 job (2)"));
}

TEST_CASE("import: what does not act, is not known, or does not fit has a line of its own") {
  const ImportedSite site = imported(files_of());
  for (const std::string note :
       {"slurm.conf:3: SlurmctldHost is harmless: it does not bear on waits",
        "slurm.conf:16: SchedulerParameters.bf_max_job_user=10 matters and is not modelled: jobs "
        "of "
        "a user that backfill plans",
        "slurm.conf:18: CompleteWait=30 matters and is not modelled: how long the scheduler waits "
        "for jobs that complete",
        "slurm.conf:19: SlurmctldDebugg is no setting that is known here (of another version?): "
        "left "
        "out; is it SlurmctldDebug?",
        "slurm.conf:21: found \"garbage\"; allowed: KEY=VALUE; left out",
        "slurm.conf: 2 nodes without 8 GPUs are left out: nodes of one kind are modelled",
        "PriorityWeightTRES: Mem=5 matters and is not modelled",
        "job 2: it asks for 64 GPUs; partition prime has 16: left out",
        "left out, as they were cancelled before they started: 1 job (4)",
        "taken to run to their time limits, as they had not ended: 3 jobs (3_1, 3_2, 3_3)"}) {
    CAPTURE(note);
    CHECK(has_note(site, note));
  }
}

TEST_CASE("import: the scenario that is written is read, and its jobs are compared") {
  const ImportedSite site = imported(files_of());
  test::TemporaryFolder folder;
  (void)folder.write("site.jobs.csv", site.jobs);
  const QueueSpec spec =
      read_queue(JsonCursor::parse(folder.path() + "/site.json", site.scenario), test::presets());
  CHECK(spec.jobs.size() == 4);
  CHECK(spec.recorded.at(0).start == to_run_time(Seconds{60}));
  CHECK(spec.recorded.at(0).nodes == std::vector<int>{1, 2});
  CHECK(spec.arrays.at(0).most_running == 2);
  CHECK(spec.qos.at(2).preempts == std::vector<std::uint16_t>{1});
}

TEST_CASE("import: files of which nothing can be made") {
  CHECK_THROWS_WITH_AS(imported(files_of("ClusterName=x\n")),
                       "slurm.conf: found no NodeName line; allowed: at least one node",
                       InputError);
  CHECK_THROWS_AS(imported(files_of(kConf, "JobID|Submit\n1|2026-01-01T00:00:00\n")), InputError);
  SlurmFiles yaml = files_of();
  yaml.topology->text = "---\n- topology: default\n";
  CHECK_THROWS_AS(imported(yaml), InputError);
  SlurmFiles squeue = files_of();
  squeue.squeue = {"squeue.json", "{"};
  CHECK_THROWS_WITH_AS(imported(squeue),
                       "squeue.json: found no JSON; allowed: what squeue --json prints",
                       InputError);
}

// Written by Slurm 22.05.8 itself: sacctmgr dump, sacctmgr -P show qos, squeue --json, sacct.
TEST_CASE("import: files of a real Slurm, every limit of them") {
  SlurmFiles files;
  const auto file = [](const char* name) { return SlurmFile{name, read_text_file(kSite + name)}; };
  files.conf = file("slurm.conf");
  files.topology = file("topology.conf");
  files.accounting = file("sacct.txt");
  files.squeue = file("squeue.json");
  files.sacctmgr = file("dump.cfg");
  files.qos = file("qos.txt");
  const ImportedSite site = imported(files);
  const Json scenario = Json::parse(site.scenario);
  const Json& queue = scenario["queue"];
  CHECK(queue["accounts"][0]["limits"] == Json::parse(R"({"grp_jobs": 3})"));
  CHECK(queue["accounts"][1]["limits"] == Json::parse(R"({"max_submit_jobs": 4})"));
  CHECK(queue["accounts"][0]["users"].size() == 2);
  CHECK(queue["qos"][1] ==
        Json::parse(R"({"name": "wide", "priority": 10, "limits": {"grp_tres": "gres/gpu=16"}})"));
  CHECK(queue["qos"][2]["limits"] ==
        Json::parse(R"({"max_tres_per_user": "gres/gpu=12", "max_jobs_per_user": 2})"));
  CHECK(queue["qos"][3]["limits"] == Json::parse(R"({"max_wall": "600 s"})"));
  CHECK(queue["placement"]["leaf_nodes"] == 2);
  for (const std::string& note : site.notes) {
    CAPTURE(note);
    CHECK(note.find("no setting that is known") == std::string::npos);
    CHECK(note.find("KEY=VALUE") == std::string::npos);
  }
}

}  // namespace lockstep
