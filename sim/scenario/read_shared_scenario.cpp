#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "models/base/quantity.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/scenario/feature_rules.hpp"
#include "sim/scenario/read_machine_power.hpp"
#include "sim/scenario/read_profile.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/shared_scenario.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "sim/scenario/traffic_process_extension.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostEntries = 10'000;
constexpr Interval kSharedSeconds{0, 1e5};
constexpr Interval kPeriod{0, 1e5, true};

Seconds time_or_zero(const JsonCursor& from, std::string_view key, const Interval& allowed) {
  const auto member = from.find(key);
  return member ? member->seconds(allowed) : Seconds{};
}

std::string read_name(const JsonCursor& from, std::set<std::string>& names) {
  const JsonCursor member = from.at("name");
  std::string name = member.string();
  if (name.empty()) member.fail("a name");
  if (!names.insert(name).second) member.fail("a name that no other job or traffic has");
  return name;
}

/// A job as its file says it; complete_job() makes a scenario of the draft.
struct DraftedJob {
  SharedJob job;
  ScenarioDraft draft;
};

DraftedJob read_job(const JsonCursor& from, const Cluster& cluster, const PresetStore& presets,
                    std::set<std::string>& names) {
  SharedJob job;
  job.name = read_name(from, names);
  job.nodes = read_node_list(from.at("nodes"), cluster.nodes);
  job.start = time_or_zero(from, "start", kSharedSeconds);
  ScenarioDraft draft = draft_training(from, cluster, static_cast<int>(job.nodes.size()), presets);
  return {.job = std::move(job), .draft = std::move(draft)};
}

SharedJob complete_job(DraftedJob of, const Cluster& cluster, const PresetStore& presets,
                       std::span<const Profile> profiles) {
  SharedJob job = std::move(of.job);
  job.scenario = complete_training(of.draft, cluster, presets, profiles);
  return job;
}

BackgroundTraffic read_background(const JsonCursor& from, const Cluster& cluster,
                                  std::set<std::string>& names) {
  constexpr Interval kSize{1, 1e18};
  BackgroundTraffic traffic;
  traffic.name = read_name(from, names);
  traffic.from = read_node_list(from.at("from"), cluster.nodes);
  traffic.to = read_node_list(from.at("to"), cluster.nodes);
  traffic.size = from.at("size").bytes(kSize);
  traffic.start = time_or_zero(from, "start", kSharedSeconds);
  const auto every = from.find("every");
  if (every) traffic.every = every->seconds(kPeriod);
  if (const auto process = from.find("process")) {
    traffic.process = traffic_process(process->choice(traffic_process_names()));
  }
  from.finish();
  if (every && traffic.process != nullptr) {
    every->fail("no such key beside \"process\", which says when its rounds begin");
  }
  for (const int node : traffic.from) {
    if (std::ranges::find(traffic.to, node) == traffic.to.end()) continue;
    from.at("to").fail(fmt::format("nodes that do not send; node {} does", node));
  }
  return traffic;
}

FabricEvent read_event(const JsonCursor& from) {
  FabricEvent event;
  event.fault = read_fabric_fault(from.at("fault"));
  event.at = from.at("at").seconds(kSharedSeconds);
  event.lasts = time_or_zero(from, "lasts", kPeriod);
  event.every = time_or_zero(from, "every", kPeriod);
  event.reroute_after = time_or_zero(from, "reroute_after", kSharedSeconds);
  from.finish();
  if (event.every > Seconds{} && !(event.lasts > Seconds{} && event.lasts < event.every)) {
    from.at("every").fail("more than \"lasts\", which has to be there");
  }
  return event;
}

/// GPUs belong to one job at a time.
void check_overlap(const JsonCursor& jobs, const SharedScenario& shared) {
  std::map<int, std::size_t> owners;
  for (std::size_t j = 0; j < shared.jobs.size(); ++j) {
    for (const int node : shared.jobs[j].nodes) {
      const auto [at, is_new] = owners.try_emplace(node, j);
      if (is_new) continue;
      jobs.elements(kMostEntries)[j].at("nodes").fail(fmt::format(
          "nodes that no other job has; node {} is {}'s", node, shared.jobs[at->second].name));
    }
  }
}

void complete_jobs(std::vector<DraftedJob> drafts, const PresetStore& presets,
                   std::span<const Profile> profiles, SharedScenario& shared) {
  for (DraftedJob& draft : drafts) {
    draft.draft.power = shared.power;
    shared.jobs.push_back(complete_job(std::move(draft), shared.cluster, presets, profiles));
    for (const std::string& assumed : shared.jobs.back().scenario.assumptions) {
      shared.assumptions.push_back(shared.jobs.back().name + ": " + assumed);
    }
  }
}

/// Whether experts of both exchange tokens, and not the same at the same pace.
bool exchange_unlike(const SharedJob& a, const SharedJob& b) {
  const auto rhythm = [](const SharedJob& of) {
    const TrainingJob& job = of.scenario.job;
    return std::tuple(job.model.name, job.batch.micro_sequences, job.batch.tokens,
                      job.parallelism.expert, of.nodes.size());
  };
  return a.scenario.job.parallelism.expert > 1 && b.scenario.job.parallelism.expert > 1 &&
         rhythm(a) != rhythm(b);
}

/// How far flows are from packets where jobs that are not alike meet: tests/sim/fabric/
/// unlike_jobs_test.cpp holds it for DCQCN, sim/packet/README.md has both.
void tell_unlike_exchanges(SharedScenario& shared) {
  if (shared.cluster.fabric.kind == FabricKind::ideal) return;
  const bool dcqcn = shared.cluster.transport.congestion_control == CongestionControl::dcqcn;
  bool unlike = false;
  for (std::size_t a = 0; a < shared.jobs.size(); ++a) {
    for (std::size_t b = a + 1; b < shared.jobs.size(); ++b) {
      unlike = unlike || exchange_unlike(shared.jobs[a], shared.jobs[b]);
    }
  }
  const auto with_experts = std::ranges::count_if(
      shared.jobs, [](const SharedJob& job) { return job.scenario.job.parallelism.expert > 1; });
  const bool mixed = with_experts > 0 && std::cmp_less(with_experts, shared.jobs.size());
  if (mixed && !dcqcn && shared.cluster.fabric.routing == Routing::ecmp) {
    shared.assumptions.emplace_back(
        "jobs with exchanges of experts beside jobs without, hashed: in the case tried the "
        "exchanges are slowed 30 % more than packets on credits say, since a ring sends only what "
        "has reached it");
  }
  if (!unlike) return;
  if (dcqcn) {
    shared.assumptions.emplace_back(
        "jobs whose exchanges of experts are not alike: in 19 of 24 cases tried their slowdown is "
        "within 10 % of what packets under DCQCN say; in the others, where an exchange is short or "
        "meets several, it was 14 % less to 57 % more");
  } else if (shared.cluster.fabric.routing == Routing::ecmp) {
    shared.assumptions.emplace_back(
        "jobs whose exchanges of experts are not alike, hashed: their slowdown is up to 27 % less "
        "and 5 % more than what packets on credits say, whose ports share a full link in turn");
  }
}

/// The parts that events name have to be there: the fabric is checked with each of them.
void check_events(const JsonCursor& root, const SharedScenario& shared) {
  const NicPorts ports = nic_ports(shared.cluster.node);
  for (std::size_t e = 0; e < shared.events.size(); ++e) {
    FabricSpec spec = shared.cluster.fabric;
    FabricFault fault = shared.events[e].fault;
    fault.rate = 0.5;  // that nothing is cut off is no condition here
    spec.faults.push_back(fault);
    const auto problem = check(spec, shared.cluster.nodes, ports.count, ports.bandwidth);
    if (!problem) continue;
    throw InputError({root.file(), fmt::format("/events/{}/fault", e), problem->found,
                      problem->allowed, problem->nearest});
  }
}

/// What cards can keep to.
void check_cards(const JsonCursor& power, const PowerSpec& spec, const GpuSpec& gpu) {
  const auto watts = [](Watts w) { return format_quantity(w.base_units(), Dimension::power); };
  if (spec.cap && (*spec.cap < lowest_cap(gpu) || *spec.cap > gpu.power_limit)) {
    power.at("cap").fail("from " + watts(lowest_cap(gpu)) + ", at its lowest clock, to " +
                         watts(gpu.power_limit) + ", the limit of " + gpu.name);
  }
  if (spec.smoothing.floor > gpu.power_limit) {
    power.at("smoothing")
        .at("floor")
        .fail("at most " + watts(gpu.power_limit) + ", the limit of " + gpu.name);
  }
}

/// "power", "cost" and "price" of the machines.
void take_power(const JsonCursor& root, const PresetStore& presets, SharedScenario& shared) {
  const bool priced = root.find("price").has_value();
  MachinePower machines =
      read_machine_power(root, presets, shared.cluster, PowerKeys::cards, shared.assumptions);
  shared.power = std::move(machines.power);
  if (priced || shared.power) shared.usd_per_gpu_hour = machines.usd_per_gpu_hour;
  if (!shared.power) return;
  if (const auto window = root.at("power").find("ramp_window")) {
    window->fail("no ramp_window beside jobs, whose answer has no ramp");
  }
  const auto smoothing = root.at("power").find("smoothing");
  if (const auto stagger = smoothing ? smoothing->find("stagger") : std::nullopt) {
    stagger->fail("no stagger beside jobs, whose steps go on each by itself");
  }
  if (const auto ramp = smoothing ? smoothing->find("ramp_w_per_s") : std::nullopt) {
    ramp->fail("no ramp_w_per_s beside jobs, whose steps meet on links");
  }
  check_cards(root.at("power"), *shared.power, shared.cluster.node.gpu);
  shared.power->gpu_nameplate = shared.cluster.node.gpu.power_limit;
  shared.power->cost.usd_per_gpu_hour = shared.usd_per_gpu_hour;
}

SharedScenario shared_scenario_of(const JsonCursor& root, const PresetStore& presets,
                                  std::span<const std::string> profiles) {
  SharedScenario shared;
  shared.file = root.file();
  const JsonCursor cluster = root.at("cluster");
  check_features(root, cluster.is_object() && cluster.find("pools"), false);
  if (const auto schema = root.find("$schema")) (void)schema->string();
  if (const auto about = root.find("about")) shared.about = about->string();
  shared.cluster = read_cluster(root.at("cluster"), presets);
  shared.assumptions = shared.cluster.assumptions;
  const std::vector<Profile> measured = load_profiles(profiles, presets, shared.assumptions);
  if (const auto steps = root.find("steps")) shared.steps = steps->integer(1, 10'000);
  std::set<std::string> names;
  const JsonCursor jobs = root.at("jobs");
  std::vector<DraftedJob> drafts;
  for (const JsonCursor& job : jobs.elements(kMostEntries)) {
    drafts.push_back(read_job(job, shared.cluster, presets, names));
  }
  if (drafts.empty()) jobs.fail("at least one job");
  if (const auto background = root.find("background")) {
    for (const JsonCursor& traffic : background->elements(kMostEntries)) {
      shared.background.push_back(read_background(traffic, shared.cluster, names));
    }
  }
  if (const auto events = root.find("events")) {
    for (const JsonCursor& event : events->elements(kMostEntries)) {
      shared.events.push_back(read_event(event));
    }
  }
  take_power(root, presets, shared);
  root.finish();
  complete_jobs(std::move(drafts), presets, measured, shared);
  for (SharedJob& job : shared.jobs) {
    if (!shared.power) continue;
    const SmoothingSpec smoothing = job.scenario.power->smoothing;  // as its cap allows
    job.scenario.power = shared.power;
    job.scenario.power->smoothing = smoothing;
  }
  if (shared.power && shared.power->site_limit && shared.jobs.size() > 1) {
    shared.assumptions.emplace_back(
        "power.site_limit: held against the highest power of every job at once");
  }
  tell_unlike_exchanges(shared);
  check_overlap(jobs, shared);
  check_events(root, shared);
  root.tell_unitless_sets(shared.assumptions);
  return shared;
}

}  // namespace

std::vector<int> read_node_list(const JsonCursor& from, int cluster_nodes) {
  std::vector<int> nodes;
  if (from.is_array()) {
    for (const JsonCursor& element : from.elements(static_cast<std::size_t>(cluster_nodes))) {
      nodes.push_back(element.integer(0, cluster_nodes - 1));
    }
    if (nodes.empty()) from.fail("at least one node");
  } else {
    const auto first = from.find("first");
    const auto stride = from.find("stride");
    const int start = first ? first->integer(0, cluster_nodes - 1) : 0;
    const int step = stride ? stride->integer(1, cluster_nodes) : 1;
    const int most = (cluster_nodes - 1 - start) / step + 1;
    const int count = from.at("count").integer(1, most);
    for (int i = 0; i < count; ++i) nodes.push_back(start + i * step);
    from.finish();
  }
  const std::set<int> unique(nodes.begin(), nodes.end());
  if (unique.size() != nodes.size()) from.fail("each node once");
  return nodes;
}

SharedScenario read_jobs_beside(const JsonCursor& jobs, const Cluster& cluster,
                                std::span<const int> taken, const PresetStore& presets) {
  SharedScenario shared;
  shared.file = jobs.file();
  shared.cluster = cluster;
  shared.steps = 1;
  std::set<std::string> names;
  std::vector<DraftedJob> drafts;
  for (const JsonCursor& job : jobs.elements(kMostEntries)) {
    drafts.push_back(read_job(job, cluster, presets, names));
    for (const int node : drafts.back().job.nodes) {
      if (std::ranges::find(taken, node) == taken.end()) continue;
      job.at("nodes").fail(fmt::format("nodes on which nothing is served; node {} serves", node));
    }
  }
  if (drafts.empty()) jobs.fail("at least one job");
  complete_jobs(std::move(drafts), presets, {}, shared);
  check_overlap(jobs, shared);
  return shared;
}

ScenarioDraft draft_training(const JsonCursor& from, const Cluster& cluster, int nodes,
                             const PresetStore& presets) {
  ScenarioDraft draft;
  draft.file = from.file();
  draft.place = from.pointer();
  draft.overrides.assign(from.overrides().begin(), from.overrides().end());
  draft.node = cluster.node;
  draft.nodes = nodes;
  // Whether the cluster's fabric is sound has been checked for all of its nodes.
  draft.fabric = FabricSpec{};
  draft.fabric->kind = FabricKind::ideal;
  draft.fabric->transport = cluster.transport.name;
  draft.fabric->sharp = cluster.fabric.sharp;
  read_model_choice(from.at("model"), presets, draft);
  read_job_draft(from, presets, draft);
  from.finish();
  return draft;
}

Scenario complete_training(ScenarioDraft& draft, const Cluster& cluster, const PresetStore& presets,
                           std::span<const Profile> profiles) {
  Scenario out = complete_scenario(draft, presets, profiles);
  out.fabric = cluster.fabric;
  out.transport = cluster.transport;
  return out;
}

SharedScenario read_shared_scenario(const JsonCursor& root, const PresetStore& presets,
                                    std::span<const std::string> profiles) {
  return root.read_whole([&] { return shared_scenario_of(root, presets, profiles); });
}

}  // namespace lockstep
