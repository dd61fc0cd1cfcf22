#include "sim/scenario/kueue_import.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/kueue_objects.hpp"
#include "sim/scenario/read_cluster.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// LocalQueues of each ClusterQueue that is taken. Throws InputError for one that points nowhere.
std::map<std::string, std::vector<std::string>> accounts_of(const KueueObjects& site,
                                                            const std::string& file,
                                                            std::vector<std::string>& notes) {
  std::map<std::string, std::vector<std::string>> out;
  std::vector<std::string> names;
  for (const ClusterQueue& queue : site.queues) names.push_back(queue.name);
  std::set<std::string> seen;
  for (const KueueLocalQueue& of : site.local_queues) {
    if (std::ranges::count(site.without, of.cluster_queue) > 0) {
      notes.push_back(fmt::format("{}: LocalQueue {} is left out with its ClusterQueue {}", file,
                                  of.name, of.cluster_queue));
      continue;
    }
    const bool twice = !seen.insert(of.name).second;
    if (twice || std::ranges::count(names, of.cluster_queue) == 0) {
      throw InputError({.file = file,
                        .pointer = "/LocalQueue/" + of.name + "/spec/clusterQueue",
                        .found = in_quotes(of.cluster_queue),
                        .allowed = twice ? "each LocalQueue once"
                                         : "a ClusterQueue of the file: " + listed(names),
                        .nearest = twice ? std::string() : nearest_name(of.cluster_queue, names)});
    }
    out[of.cluster_queue].push_back(of.name);
  }
  // An account may be named as its queue where no LocalQueue has taken the name.
  for (const std::string& name : names) {
    if (out.contains(name)) continue;
    if (!seen.contains(name)) {
      out[name] = {name};
      notes.push_back(
          fmt::format("{}: ClusterQueue {} has no LocalQueue: jobs name it as their "
                      "account",
                      file, name));
      continue;
    }
    throw InputError({.file = file,
                      .pointer = "/ClusterQueue/" + name,
                      .found = "no LocalQueue of it, and one of its name that is another's",
                      .allowed = "a LocalQueue of each ClusterQueue",
                      .nearest = {}});
  }
  return out;
}

/// `weighs`: under fair sharing.
Json cluster_queue_json(const ClusterQueue& of, const std::vector<std::string>& accounts,
                        bool weighs) {
  Json out{{"name", of.name}, {"accounts", accounts}, {"nominal_gpus", of.nominal}};
  if (!of.cohort.empty()) out["cohort"] = of.cohort;
  if (of.borrowing_limit >= 0) out["borrowing_limit"] = of.borrowing_limit;
  if (of.lending_limit >= 0) out["lending_limit"] = of.lending_limit;
  const auto name_in = [](const auto& names, auto value) {
    return names[static_cast<std::size_t>(value)];
  };
  out["strategy"] = name_in(kQueueingStrategyNames, of.strategy);
  if (of.within != WithinClusterQueue::never) {
    out["within_cluster_queue"] = name_in(kWithinClusterQueueNames, of.within);
  }
  if (of.reclaim != ReclaimWithinCohort::never) {
    out["reclaim_within_cohort"] = name_in(kReclaimWithinCohortNames, of.reclaim);
  }
  if (of.borrow_within_cohort) out["borrow_within_cohort"] = true;
  if (of.max_priority_threshold) out["max_priority_threshold"] = *of.max_priority_threshold;
  if (weighs && of.weight != 1) out["weight"] = of.weight;
  return out;
}

/// Cohorts in whose tree a queue is. Throws InputError for one that is above itself.
Json cohorts_json(const KueueObjects& site, const std::string& file,
                  std::vector<std::string>& notes) {
  std::map<std::string, std::string> parents;
  for (const QueueCohort& of : site.cohorts) parents[of.name] = of.parent;
  const auto root_of = [&](std::string name) {
    const std::string first = name;
    for (std::size_t steps = 0; parents.contains(name) && !parents.at(name).empty(); ++steps) {
      name = parents.at(name);
      if (steps <= parents.size()) continue;
      throw InputError({.file = file,
                        .pointer = "/Cohort/" + first + "/spec/parentName",
                        .found = in_quotes(parents.at(first)),
                        .allowed = "a cohort that is not below this one",
                        .nearest = {}});
    }
    return name;
  };
  std::set<std::string> roots;
  for (const ClusterQueue& of : site.queues) {
    if (!of.cohort.empty()) roots.insert(root_of(of.cohort));
  }
  Json out = Json::array();
  for (const QueueCohort& of : site.cohorts) {
    if (!roots.contains(root_of(of.name))) {
      notes.push_back(fmt::format(
          "{}: Cohort {} is left out: no ClusterQueue with a quota of GPUs is in its tree", file,
          of.name));
      continue;
    }
    Json one{{"name", of.name}};
    if (!of.parent.empty()) one["parent"] = of.parent;
    if (of.nominal > 0) one["nominal_gpus"] = of.nominal;
    if (of.borrowing_limit >= 0) one["borrowing_limit"] = of.borrowing_limit;
    if (of.lending_limit >= 0) one["lending_limit"] = of.lending_limit;
    if (!site.fair_sharing.empty() && of.weight != 1) one["weight"] = of.weight;
    out.push_back(std::move(one));
  }
  return out;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

/// The Workloads that become jobs.
class TakenWorkloads {
 public:
  TakenWorkloads(const KueueObjects& site,
                 const std::map<std::string, std::vector<std::string>>& accounts,
                 std::int64_t cluster_gpus)
      : site_(&site), cluster_gpus_(cluster_gpus) {
    for (const auto& [queue, names] : accounts) known_.insert(names.begin(), names.end());
  }

  void take() {
    std::vector<const KueueWorkload*> taken;
    for (const KueueWorkload& of : site_->workloads) {
      if (NamedJobs* const why = left_out_for(of)) {
        why->add(of.name);
        left_out.add(of.name);
      } else {
        taken.push_back(&of);
      }
    }
    std::ranges::stable_sort(taken, {}, &KueueWorkload::submit);
    count = taken.size();
    csv = "job,account,priority,gpus,submit_s,duration_s,limit_s,start_s\n";
    for (const KueueWorkload* of : taken) csv += row(*of, taken.front()->submit);
  }

  void tell(const std::string& file, std::vector<std::string>& notes) const {
    const auto one = [&](std::string_view what, const NamedJobs& jobs) {
      if (jobs.count() > 0) notes.push_back(fmt::format("{}: {}: {}", file, what, jobs.words()));
    };
    one("left out, as they ask for no GPU", without_);
    one("left out, as they are not active", inactive_);
    one("left out, as no LocalQueue of the file is theirs", elsewhere_);
    one("left out, as they have no creationTimestamp", untimed_);
    one("left out, as they ask for more than the cluster has", large_);
    one("left out, as they have not ended and have no maximumExecutionTimeSeconds", endless_);
    one("taken to run as long as they may, as they had not ended", open_);
  }

  std::string csv;
  std::size_t count = 0;
  NamedJobs left_out;
  double latest = 0;  ///< that anything was recorded, after the first submission

  [[nodiscard]] bool any_open() const { return open_.count() > 0; }

 private:
  NamedJobs* left_out_for(const KueueWorkload& of) {
    if (of.gpus == 0) return &without_;
    if (!of.active && of.end < 0) return &inactive_;
    if (!known_.contains(of.local_queue)) return &elsewhere_;
    if (of.submit < 0) return &untimed_;
    if (of.gpus > cluster_gpus_) return &large_;
    const bool ended = of.start >= 0 && of.end >= of.start;
    if (!ended && (of.limit < 0 || of.end >= 0)) return &endless_;
    return nullptr;
  }

  std::string row(const KueueWorkload& of, double zero) {
    const bool ended = of.end >= 0;
    if (!ended) open_.add(of.name);
    const double runs = ended ? of.end - of.start : of.limit;
    latest = std::max({latest, of.submit - zero, of.start - zero, of.end - zero});
    const auto found = site_->priorities.find(of.priority_class);
    const int of_class = found == site_->priorities.end() ? 0 : found->second;
    return fmt::format("{},{},{},{},{:.15g},{:.15g},{:.15g},{}\n", csv_cell(of.name),
                       csv_cell(of.local_queue), of.priority.value_or(of_class), of.gpus,
                       of.submit - zero, runs, std::max(runs, of.limit),
                       of.start < 0 ? std::string() : fmt::format("{:.15g}", of.start - zero));
  }

  const KueueObjects* site_;
  std::int64_t cluster_gpus_;
  std::set<std::string> known_;
  NamedJobs without_, inactive_, elsewhere_, untimed_, large_, endless_, open_;
};

/// Null: the queue's cohort has no settings of its own.
const QueueCohort* cohort_of(const KueueObjects& site, const ClusterQueue& queue) {
  const auto of = std::ranges::find(site.cohorts, queue.cohort, &QueueCohort::name);
  return of == site.cohorts.end() ? nullptr : &*of;
}

/// Jobs of an hour in the mean that would use 90 % of all nominal quotas, by their sizes.
Json drawn_jobs(const KueueObjects& site,
                const std::map<std::string, std::vector<std::string>>& accounts, int node_gpus,
                std::int64_t nominal) {
  constexpr int kDrawn = 1000;
  constexpr double kLoad = 0.9, kMean_s = 3600;
  Json owners = Json::array(), priorities = Json::array();
  std::int64_t widest = node_gpus;
  for (const ClusterQueue& queue : site.queues) {
    auto weight = static_cast<double>(queue.nominal);
    if (queue.nominal > 0) {
      widest = std::min(widest, queue.nominal);
    } else if (const QueueCohort* const of = cohort_of(site, queue)) {
      // What its cohort has is for the queues in it alike.
      const auto same = [&](const ClusterQueue& one) { return one.cohort == queue.cohort; };
      weight = static_cast<double>(of->nominal) /
               static_cast<double>(std::ranges::count_if(site.queues, same));
      if (of->nominal > 0) widest = std::min(widest, of->nominal);
    }
    if (weight == 0) continue;
    const std::vector<std::string>& names = accounts.at(queue.name);
    for (const std::string& name : names) {
      owners.push_back({name, weight / static_cast<double>(names.size())});
    }
  }
  std::set<int> values;
  for (const auto& [name, value] : site.priorities) values.insert(value);
  for (const int value : values) priorities.push_back({value, 1.0});
  const double mean_gpus = (1 + static_cast<double>(widest)) / 2;
  const double every = kMean_s * mean_gpus / (kLoad * static_cast<double>(nominal));
  Json widths = Json::array({{1, 1.0}});
  if (widest > 1) widths.push_back({widest, 1.0});
  Json out{{"count", kDrawn},
           {"every", fmt::format("{:.6g} s", every)},
           {"gpus", std::move(widths)},
           {"mean", "1 h"},
           {"sigma", 1.0},
           {"accounts", std::move(owners)}};
  if (!priorities.empty()) out["priorities"] = std::move(priorities);
  return out;
}

std::int64_t nominal_of(const KueueObjects& site, const std::string& file) {
  std::int64_t out = 0;
  for (const ClusterQueue& queue : site.queues) out += queue.nominal;
  if (!site.queues.empty()) {
    for (const QueueCohort& cohort : site.cohorts) out += cohort.nominal;
  }
  if (out > 0) return out;
  throw InputError({.file = file,
                    .pointer = {},
                    .found = site.queues.empty() ? "no ClusterQueue with a quota of GPUs"
                                                 : "ClusterQueues with a nominalQuota of 0 GPUs",
                    .allowed = "kind: ClusterQueue with a nominalQuota of nvidia.com/gpu, or of "
                               "another resource whose name ends in /gpu",
                    .nearest = {}});
}

}  // namespace

ImportedSite import_kueue(const KueueSource& source, const PresetStore& presets) {
  ImportedSite out;
  const std::string& file = source.manifests.name;
  const KueueObjects site = read_kueue_objects(file, source.manifests.text, out.notes);
  const std::int64_t nominal = nominal_of(site, file);
  for (const std::string& name : site.without) {
    out.notes.push_back(
        fmt::format("{}: ClusterQueue {} has no quota of GPUs: left out", file, name));
  }
  const auto accounts = accounts_of(site, file, out.notes);
  const int node_gpus = presets.node(source.node).gpus;
  const std::int64_t needed = (nominal + node_gpus - 1) / node_gpus;
  if (needed > kMaxNodes && !source.nodes) {
    throw InputError(
        {.file = file,
         .pointer = {},
         .found = fmt::format("nominal quotas of {} GPUs", nominal),
         .allowed = fmt::format("at most {} nodes of {} GPUs together", kMaxNodes, node_gpus),
         .nearest = {}});
  }
  const int nodes =
      source.nodes.value_or(static_cast<int>(std::min<std::int64_t>(needed, kMaxNodes)));
  if (!source.nodes) {
    out.notes.push_back(
        fmt::format("{}: the cluster is taken to have the {} GPUs of all nominal "
                    "quotas, {} of {}: --nodes says otherwise",
                    file, nominal, counted(nodes, "node"), node_gpus));
  }
  TakenWorkloads jobs(site, accounts, static_cast<std::int64_t>(nodes) * node_gpus);
  jobs.take();
  jobs.tell(file, out.notes);

  Json queues = Json::array();
  for (const ClusterQueue& of : site.queues)
    queues.push_back(cluster_queue_json(of, accounts.at(of.name), !site.fair_sharing.empty()));
  const bool preempts = std::ranges::any_of(site.queues, &ClusterQueue::preempts);
  Json queue{{"order", "priority"},
             {"admission", "kueue"},
             {"preemption", {{"mode", preempts ? "kueue" : "none"}}},
             {"cluster_queues", std::move(queues)}};
  if (Json cohorts = cohorts_json(site, file, out.notes); !cohorts.empty()) {
    queue["cohorts"] = std::move(cohorts);
  }
  if (!site.fair_sharing.empty()) {
    Json strategies = Json::array();
    for (const FairStrategy of : site.fair_sharing) {
      strategies.push_back(kFairStrategyNames[static_cast<std::size_t>(of)]);
    }
    queue["fair_sharing"] = {{"strategies", std::move(strategies)}};
  } else if (site.weighted) {
    out.notes.push_back(fmt::format(
        "{}: fairSharing/weight acts under fair sharing alone, which no Configuration of the file "
        "enables",
        file));
  }
  if (site.workloads.empty()) {
    out.notes.push_back(
        fmt::format("{}: no Workload: drawn jobs stand in; kubectl get workloads "
                    "-A -o yaml has the real ones",
                    file));
    queue["jobs"] = Json::array({{{"generate", drawn_jobs(site, accounts, node_gpus, nominal)}}});
  } else {
    if (jobs.any_open() && jobs.latest > 0) queue["snapshot"] = jobs.latest;
    const Json columns{{"runs", "duration_s"}, {"limit", "limit_s"}, {"start", "start_s"}};
    queue["jobs"] = Json::array({{{"trace", {{"file", source.trace}, {"columns", columns}}}}});
    out.jobs = std::move(jobs.csv);
  }
  out.taken = jobs.count;
  out.left_out = jobs.left_out;
  const Json scenario{
      {"about", fmt::format("Imported from {}: its cluster queues{}.", file,
                            site.workloads.empty() ? ", with drawn jobs" : " and workloads")},
      {"cluster", {{"node", source.node}, {"nodes", nodes}}},
      {"queue", std::move(queue)}};
  out.scenario = write_json(scenario, 2) + "\n";
  return out;
}

}  // namespace lockstep
