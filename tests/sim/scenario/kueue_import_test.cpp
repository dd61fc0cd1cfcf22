// Kueue's manifests as a scenario: what is read acts, everything else is named in a line.
#include "sim/scenario/kueue_import.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "sim/scenario/kueue_objects.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const char* const kManifests = R"(apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: h100}
spec:
  nodeLabels: {gpu: h100}
  topologyName: racks
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: vision}
spec:
  namespaceSelector: {}
  cohort: research
  queueingStrategy: StrictFIFO
  fairSharing: {weight: 2}
  preemption:
    withinClusterQueue: LowerPriority
    reclaimWithinCohort: Any
    borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: h100
      resources:
      - {name: cpu, nominalQuota: 400}
      - {name: nvidia.com/gpu, nominalQuota: "24", borrowingLimit: 8, lendingLimit: 16}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: language}
spec:
  cohortName: research
  shinyNewThing: 3
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources: [{name: nvidia.com/gpu, nominalQuota: 8}]
---
kind: ClusterQueue
metadata: {name: web}
spec:
  resourceGroups:
  - flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 10}]}]
---
kind: LocalQueue
metadata: {name: train, namespace: seg}
spec: {clusterQueue: vision}
---
kind: LocalQueue
metadata: {name: serve, namespace: www}
spec: {clusterQueue: web}
---
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
description: for papers
---
kind: Topology
metadata: {name: racks}
)";

const char* const kWorkloadList = R"(---
kind: List
items:
- kind: Workload
  metadata: {name: late, namespace: seg, creationTimestamp: "2026-01-01T01:00:00Z"}
  spec:
    queueName: train
    priority: 7
    maximumExecutionTimeSeconds: 7200
    podSets:
    - {count: 2, template: {spec: {containers: [{resources: {requests: {nvidia.com/gpu: 8}}}]}}}
- kind: Workload
  metadata: {name: first, namespace: seg, creationTimestamp: "2026-01-01T00:00:00Z"}
  spec:
    queueName: train
    priorityClassRef: {name: urgent}
    podSets:
    - {template: {spec: {containers: [{}, {resources: {limits: {nvidia.com/gpu: "4"}}}]}}}
  status:
    conditions:
    - {type: Admitted, status: "True", lastTransitionTime: "2026-01-01T00:10:00Z"}
    - {type: Finished, status: "True", lastTransitionTime: "2026-01-01T01:10:00Z"}
- kind: Workload
  metadata: {name: none, namespace: seg, creationTimestamp: "2026-01-01T00:00:00Z"}
  spec: {queueName: train, podSets: [{template: {spec: {containers: [{}]}}}]}
- kind: Workload
  metadata: {name: lost, namespace: www, creationTimestamp: "2026-01-01T00:00:00Z"}
  spec:
    queueName: serve
    podSets: [{template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}}]
)";

ImportedSite kueue_of(const std::string& text, std::optional<int> nodes = {}) {
  return import_kueue({.manifests = {.name = "q.yaml", .text = text},
                       .node = "dgx_h100",
                       .nodes = nodes,
                       .trace = "q.jobs.csv"},
                      test::presets());
}

bool notes_have(const ImportedSite& site, const std::string& text) {
  return std::ranges::any_of(
      site.notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

std::string manifest_with(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("import of Kueue: cohorts, weights and a Configuration with fair sharing") {
  const std::string more = R"(---
apiVersion: config.kueue.x-k8s.io/v1beta1
kind: Configuration
fairSharing:
  enable: true
  preemptionStrategies: [LessThanInitialShare]
waitForPodsReady: {enable: true}
---
kind: Cohort
metadata: {name: research}
spec:
  parentName: company
  fairSharing: {weight: 500m}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources: [{name: nvidia.com/gpu, nominalQuota: 16, borrowingLimit: 8, lendingLimit: 40}]
---
kind: Cohort
metadata: {name: elsewhere}
)";
  const ImportedSite site = kueue_of(kManifests + more);
  const Json scenario = Json::parse(site.scenario);
  const Json& queue = scenario["queue"];
  CHECK(scenario["cluster"]["nodes"] == 6);  // 24 + 8 + 16 GPUs
  CHECK(queue["fair_sharing"] == Json::parse(R"({"strategies": ["less_than_initial_share"]})"));
  CHECK(queue["cohorts"] == Json::parse(R"([
    {"name": "research", "parent": "company", "nominal_gpus": 16, "borrowing_limit": 8,
     "lending_limit": 40, "weight": 0.5}])"));
  CHECK(queue["cluster_queues"][0]["weight"] == 2);
  CHECK_FALSE(queue["cluster_queues"][1].contains("weight"));
  CHECK(notes_have(site, "Cohort elsewhere is left out"));
  CHECK(notes_have(site, "Configuration/waitForPodsReady matters and is not modelled"));
  const QueueSpec spec = read_queue(JsonCursor::parse("k.json", site.scenario), test::presets());
  CHECK(spec.cohorts[0].weight == 0.5);
  CHECK(spec.fair_sharing == std::vector{FairStrategy::less_than_initial_share});

  const auto says = [&](const std::string& what, const std::string& by, const std::string& text) {
    CHECK_THROWS_WITH_AS((void)kueue_of(manifest_with(kManifests + more, what, by)),
                         doctest::Contains(text.c_str()), InputError);
  };
  says("[LessThanInitialShare]", "[LessThanInitialShar]", "LessThanInitialShare");
  says("[LessThanInitialShare]", "[LessThanInitialShare, LessThanInitialShare]",
       "one, or both with LessThanInitialShare last");
  says("weight: 500m", "weight: -1", "/Cohort/research/spec/fairSharing/weight");
  says("parentName: company", "parentName: research", "not below this one");
  says("  parentName: company\n", "", "none without a cohort above it");
  says("metadata: {name: elsewhere}", "metadata: {name: research}", "no other Cohort has");
}

TEST_CASE("import of Kueue: settings that are read act") {
  const ImportedSite site = kueue_of(kManifests);
  const Json scenario = Json::parse(site.scenario);
  CHECK(scenario["cluster"] == Json({{"node", "dgx_h100"}, {"nodes", 4}}));
  const Json& queue = scenario["queue"];
  CHECK(queue["admission"] == "kueue");
  CHECK(queue["order"] == "priority");
  CHECK(queue["preemption"]["mode"] == "kueue");
  CHECK(queue["cluster_queues"] == Json::parse(R"([
    {"name": "vision", "accounts": ["seg/train"], "nominal_gpus": 24, "cohort": "research",
     "borrowing_limit": 8, "lending_limit": 16, "strategy": "strict",
     "within_cluster_queue": "lower_priority", "reclaim_within_cohort": "any",
     "borrow_within_cohort": true, "max_priority_threshold": 100},
    {"name": "language", "accounts": ["language"], "nominal_gpus": 8, "cohort": "research",
     "strategy": "best_effort"}])"));
  CHECK(queue["jobs"][0]["generate"]["priorities"] == Json::parse("[[1000, 1.0]]"));
  CHECK(site.jobs.empty());
  const QueueSpec spec = read_queue(JsonCursor::parse("site.json", site.scenario), test::presets());
  CHECK(spec.jobs.size() == 1000);
  CHECK(simulate_queue(spec).jobs.size() == 1000);
}

TEST_CASE("import of Kueue: what does not act is named once") {
  const ImportedSite site = kueue_of(kManifests);
  CHECK(notes_have(site, "fairSharing/weight acts under fair sharing alone"));
  CHECK_FALSE(Json::parse(site.scenario)["queue"].contains("fair_sharing"));
  CHECK(notes_have(site, "ResourceFlavor/spec/topologyName of h100 matters and is not modelled"));
  CHECK(notes_have(site, "ResourceFlavor/spec/nodeLabels is harmless"));
  CHECK(notes_have(site, "ClusterQueue/spec/shinyNewThing of language is not known: not read"));
  CHECK(notes_have(site, "quotas of cpu matter and are not modelled"));
  CHECK(notes_have(site, "q.yaml: Topology is not read"));
  CHECK(notes_have(site, "ClusterQueue web has no quota of GPUs: left out"));
  CHECK(notes_have(site, "LocalQueue www/serve is left out with its ClusterQueue web"));
  CHECK(notes_have(site, "ClusterQueue language has no LocalQueue"));
  CHECK(notes_have(site, "32 GPUs of all nominal quotas, 4 nodes of 8"));
  CHECK(notes_have(site, "no Workload: drawn jobs stand in"));
  CHECK_FALSE(notes_have(site, "namespaceSelector"));  // {} is every namespace
  CHECK_FALSE(notes_have(kueue_of(kManifests, 6), "--nodes"));
  CHECK(Json::parse(kueue_of(kManifests, 6).scenario)["cluster"]["nodes"] == 6);
}

TEST_CASE("import of Kueue: workloads are jobs, with what they waited in truth") {
  const ImportedSite site = kueue_of(std::string(kManifests) + kWorkloadList);
  CHECK(site.taken == 2);
  CHECK(site.left_out.count() == 2);
  CHECK(notes_have(site, "they ask for no GPU: 1 job (seg/none)"));
  CHECK(notes_have(site, "no LocalQueue of the file is theirs: 1 job (www/lost)"));
  CHECK(notes_have(site,
                   "taken to run as long as they may, as they had not ended: 1 job (seg/late)"));
  CHECK(site.jobs ==
        "job,account,priority,gpus,submit_s,duration_s,limit_s,start_s\n"
        "seg/first,seg/train,1000,4,0,3600,3600,600\n"
        "seg/late,seg/train,7,16,3600,7200,7200,\n");
  const test::TemporaryFolder folder;
  folder.write("q.jobs.csv", site.jobs);
  const std::string file = folder.write("site.json", site.scenario);
  const QueueSpec spec = read_queue(JsonCursor::parse(file, site.scenario), test::presets());
  REQUIRE(spec.jobs.size() == 2);
  CHECK(spec.jobs[0].priority == 1000);
  CHECK(spec.snapshot == to_run_time(Seconds{4200}));
  CHECK(spec.recorded.at(0).start == to_run_time(Seconds{600}));
}

TEST_CASE("import of Kueue: several flavors are added, and a limit only where each has one") {
  const ImportedSite site = kueue_of(R"(
kind: ClusterQueue
metadata: {name: a}
spec:
  cohort: x
  resourceGroups:
  - flavors:
    - {name: old, resources: [{name: nvidia.com/gpu, nominalQuota: 8, borrowingLimit: 2,
                               lendingLimit: 3}]}
    - {name: new, resources: [{name: nvidia.com/gpu, nominalQuota: 4, borrowingLimit: 1}]}
)");
  const Json queue = Json::parse(site.scenario)["queue"]["cluster_queues"][0];
  CHECK(queue["nominal_gpus"] == 12);
  CHECK(queue["borrowing_limit"] == 3);
  CHECK_FALSE(queue.contains("lending_limit"));
  CHECK(
      notes_have(site, "several flavors of GPUs matter and are not modelled: quotas of old, new"));
  CHECK(Json::parse(site.scenario)["queue"]["preemption"]["mode"] == "none");
}

TEST_CASE("import of Kueue: mistakes are told by place, with what is allowed") {
  const auto says = [](const std::string& what, const std::string& by, const std::string& text) {
    std::string message = "nothing";
    try {
      (void)kueue_of(manifest_with(kManifests, what, by));
    } catch (const InputError& error) {
      message = error.what();
    }
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  says("StrictFIFO", "StrictFifo",
       "q.yaml#/ClusterQueue/vision/spec/queueingStrategy: found \"StrictFifo\" in line 14; "
       "allowed: BestEffortFIFO, StrictFIFO. Did you mean \"StrictFIFO\"?");
  says("withinClusterQueue: LowerPriority", "withinClusterQueue: Any", "LowerOrNewerEqualPriority");
  says("reclaimWithinCohort: Any", "reclaimWithinCohort: Never",
       "Never where reclaimWithinCohort is Never");
  says("\"24\"", "many", "a whole number from 0 to");
  says("lendingLimit: 16", "lendingLimit: 25", "at most 24, its nominalQuota");
  says("  cohort: research\n", "", "none without a cohort");
  says("{clusterQueue: vision}", "{clusterQueue: visoin}", "Did you mean \"vision\"?");
  says("{name: language}", "{name: vision}", "a name that no other ClusterQueue has");
  says("value: 1000", "value: high", "q.yaml#/WorkloadPriorityClass/urgent/value");
  says("kind: Topology", "knd: Topology", "a mapping with \"kind\"");
  says("metadata: {name: h100}", "metadata: {}", "a ResourceFlavor with metadata/name");
  says("kind: ResourceFlavor", "kind: [ResourceFlavor", "allowed: YAML");
  CHECK_THROWS_WITH_AS((void)kueue_of("kind: Topology\n"),
                       doctest::Contains("no ClusterQueue with a quota of GPUs"), InputError);
}

}  // namespace lockstep
