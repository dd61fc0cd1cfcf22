#include "sim/scenario/slurm_import.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/host_list.hpp"
#include "sim/scenario/job_licenses.hpp"
#include "sim/scenario/slurm_records.hpp"
#include "sim/scenario/slurm_rules.hpp"
#include "sim/scenario/slurm_site.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostListed = 1'000'000;

/// The site's nodes in the order of its leaves, and what of them jobs ask for.
class SiteNodes {
 public:
  SiteNodes(const SlurmSite& site, const std::vector<std::vector<std::string>>& leaves,
            const std::string& file, std::vector<std::string>& notes) {
    by_cpus_ = std::ranges::none_of(site.nodes, [](const SlurmNode& of) { return of.gpus > 0; });
    std::map<int, int> kinds;
    for (const SlurmNode& of : site.nodes) {
      if (units_of(of) > 0) ++kinds[units_of(of)];
    }
    if (kinds.empty()) {
      throw InputError({.file = file,
                        .pointer = {},
                        .found = "no NodeName line",
                        .allowed = "at least one node",
                        .nearest = {}});
    }
    units_ =
        std::ranges::max_element(kinds, {}, [](const auto& kind) { return kind.second; })->first;
    std::set<std::string> taken;
    std::size_t unlike = 0;
    for (const SlurmNode& of : site.nodes) {
      if (units_of(of) == units_) {
        taken.insert(of.name);
      } else {
        ++unlike;
      }
    }
    if (unlike > 0) {
      notes.push_back(fmt::format(
          "{}: {} without {} {} are left out: nodes of one kind are modelled", file,
          counted(static_cast<double>(unlike), "node"), units_, by_cpus_ ? "CPUs" : "GPUs"));
    }
    if (by_cpus_) {
      notes.push_back(file + ": no node has Gres=gpu: CPUs stand in the place of GPUs");
    }
    number_nodes(site, leaves, taken, notes);
  }

  [[nodiscard]] int count() const { return static_cast<int>(numbers_.size()); }
  /// GPUs, or CPUs, of a node.
  [[nodiscard]] int units() const { return units_; }
  [[nodiscard]] bool by_cpus() const { return by_cpus_; }
  [[nodiscard]] int leaf_nodes() const { return leaf_nodes_; }
  [[nodiscard]] double node_cpus() const { return node_cpus_; }
  /// From 1 on, in rising order; nodes that were left out are not among them.
  [[nodiscard]] std::vector<int> numbers_of(const std::string& list) const {
    std::vector<int> out;
    if (same_key(list, "ALL")) {
      for (int n = 1; n <= count(); ++n) out.push_back(n);
      return out;
    }
    const auto names = host_names(list, kMostListed);
    if (!names) return out;
    for (const std::string& name : *names) {
      const auto found = numbers_.find(name);
      if (found != numbers_.end()) out.push_back(found->second);
    }
    std::ranges::sort(out);
    return out;
  }

 private:
  [[nodiscard]] int units_of(const SlurmNode& of) const { return by_cpus_ ? of.cpus : of.gpus; }

  void number_nodes(const SlurmSite& site, const std::vector<std::vector<std::string>>& leaves,
                    const std::set<std::string>& taken, std::vector<std::string>& notes) {
    std::map<std::size_t, int> sizes;
    const auto number = [&](const std::string& name) {
      return taken.contains(name) &&
             numbers_.try_emplace(name, static_cast<int>(numbers_.size()) + 1).second;
    };
    for (const std::vector<std::string>& leaf : leaves) {
      const auto size = static_cast<std::size_t>(std::ranges::count_if(leaf, number));
      if (size > 0) ++sizes[size];
    }
    for (const SlurmNode& of : site.nodes) {
      number(of.name);
      if (taken.contains(of.name)) node_cpus_ = of.cpus;
    }
    if (sizes.empty()) return;
    leaf_nodes_ = static_cast<int>(
        std::ranges::max_element(sizes, {}, [](const auto& of) { return of.second; })->first);
    if (sizes.size() > 1) {
      notes.push_back(
          fmt::format("leaves of unlike sizes matter and are not modelled: all are "
                      "taken to have {}",
                      counted(leaf_nodes_, "node")));
    }
  }

  bool by_cpus_ = false;
  int units_ = 0, leaf_nodes_ = 0;
  double node_cpus_ = 1;
  std::unordered_map<std::string, int> numbers_;
};

Json partitions_json(const SlurmSite& site, const SiteNodes& nodes, const std::string& file,
                     std::vector<std::string>& notes) {
  Json out = Json::array();
  for (const SlurmPartition& of : site.partitions) {
    const std::vector<int> numbers = nodes.numbers_of(of.nodes);
    if (numbers.empty()) {
      notes.push_back(
          fmt::format("{}: partition {} has none of the nodes, left out", file, of.name));
      continue;
    }
    Json one{{"name", of.name}, {"hosts", host_list("n", numbers)}};
    if (of.tier != 1) one["tier"] = of.tier;
    if (of.priority != 1) one["priority"] = of.priority;
    if (!of.qos.empty()) one["qos"] = of.qos;
    if (of.grace > 0) one["grace"] = fmt::format("{} s", of.grace);
    out.push_back(std::move(one));
  }
  return out;
}

std::string trace_line(const std::vector<std::string>& cells) {
  std::string out;
  for (const std::string& cell : cells) {
    if (&cell != cells.data()) out += ',';
    if (cell.find_first_of(",\"\n") == std::string::npos) {
      out += cell;
      continue;
    }
    out += '"';
    for (const char c : cell) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    out += '"';
  }
  return out + "\n";
}

/// A job that is taken, in the words of the scenario's trace.
class TraceRows {
 public:
  TraceRows(const SlurmSite& site, const SiteNodes& nodes, const Json& partitions)
      : site_(&site), nodes_(&nodes) {
    for (const Json& of : partitions) names_.insert(of["name"].get<std::string>());
    for (const SlurmPartition& of : site.partitions) {
      if (of.is_default && names_.contains(of.name)) default_ = of.name;
    }
    if (const auto has = license_amounts(site.get("Licenses"))) licenses_ = *has;
    if (default_.empty() && !names_.empty()) default_ = *names_.begin();
  }

  [[nodiscard]] std::string heading() const {
    return std::string(
               "job,user,account,partition,qos,gpus,submit_s,duration_s,limit_s,start_s,begin_s,"
               "nodes,array,array_limit,dependency,reservation,state,series") +
           (licenses_.empty() ? "\n" : ",licenses\n");
  }
  /// Those that slurm.conf declares.
  [[nodiscard]] const LicenseAmounts& licenses() const { return licenses_; }
  /// Of these, what a job asks for; `all_known`: whether there are so many of each.
  [[nodiscard]] std::string licenses_of(const SlurmRecord& of, bool& all_known) const {
    const std::optional<LicenseAmounts> asks = license_amounts(of.licenses);
    all_known = asks.has_value();
    std::string out;
    for (const auto& [name, count] : asks.value_or(LicenseAmounts{})) {
      const auto has = std::ranges::find(licenses_, name, &std::pair<std::string, int>::first);
      if (has == licenses_.end() || count > has->second) {
        all_known = false;
      } else {
        out += fmt::format("{}{}:{}", out.empty() ? "" : ",", name, count);
      }
    }
    return out;
  }

  /// The units that a job asks for; nothing, with a reason, where it cannot be taken.
  [[nodiscard]] std::optional<int> units_of(const SlurmRecord& of, std::string& why) const {
    const int asks = nodes_->by_cpus() ? of.cpus : of.gpus;
    const std::int64_t has = static_cast<std::int64_t>(nodes_->count()) * nodes_->units();
    if (asks <= 0) {
      why = nodes_->by_cpus() ? "it asks for no CPU" : "it asks for no GPU";
      return std::nullopt;
    }
    std::int64_t most = has;
    std::string where = "the cluster";
    for (const SlurmPartition& partition : site_->partitions) {
      if (partition.name != partition_of(of)) continue;
      most =
          static_cast<std::int64_t>(nodes_->numbers_of(partition.nodes).size()) * nodes_->units();
      where = "partition " + partition.name;
    }
    if (asks > most) {
      why = fmt::format("it asks for {} {}; {} has {}", asks, nodes_->by_cpus() ? "CPUs" : "GPUs",
                        where, most);
      return std::nullopt;
    }
    return asks;
  }

  [[nodiscard]] std::string partition_of(const SlurmRecord& of) const {
    const std::string first = of.partition.substr(0, of.partition.find(','));
    return names_.contains(first) ? first : default_;
  }
  [[nodiscard]] double limit_of(const SlurmRecord& of) const {
    constexpr double kYear = 365.0 * 86400;  // what Slurm plans an unlimited job with
    if (of.limit > 0) return of.limit;
    for (const SlurmPartition& partition : site_->partitions) {
      if (partition.name == partition_of(of) && partition.max_time > 0) return partition.max_time;
    }
    return kYear;
  }

  std::string row(const SlurmRecord& of, int units, double zero, double runs) const {
    const auto after = [&](double time) {
      return time < 0 ? std::string() : fmt::format("{:.15g}", std::max(0.0, time - zero));
    };
    const double begin =
        of.eligible > of.submit && of.array.empty() && of.dependency.empty() ? of.eligible : zero;
    std::vector<std::string> cells{
        of.id,
        of.user,
        of.account,
        partition_of(of),
        of.qos,
        std::to_string(units),
        after(of.submit),
        fmt::format("{:.15g}", runs),
        fmt::format("{:.15g}", std::max(limit_of(of), runs)),
        after(of.start),
        after(begin),
        host_list("n", nodes_->numbers_of(of.nodes)),
        of.array,
        of.array.empty() ? std::string() : std::to_string(of.array_limit),
        of.dependency,
        {},
        of.state,
        of.name};
    bool all_known = true;
    if (!licenses_.empty()) cells.push_back(licenses_of(of, all_known));
    return trace_line(cells);
  }

 private:
  const SlurmSite* site_;
  const SiteNodes* nodes_;
  std::set<std::string> names_;
  std::string default_;
  LicenseAmounts licenses_;
};

/// How long a job is taken to run once it has started; below 0: it never did, nor will it.
double duration_of(const SlurmRecord& of, const TraceRows& rows) {
  if (of.start >= 0 && of.end >= of.start) {
    return std::max(0.0, of.end - of.start - of.suspended);
  }
  const bool open = of.state == "PENDING" || of.state == "RUNNING" || of.state == "SUSPENDED" ||
                    of.state == "COMPLETING" || of.state == "REQUEUED";
  return open ? rows.limit_of(of) : -1;
}

/// What is done with the records, counted.
struct TakenJobs {
  std::string csv;
  std::size_t taken = 0;
  NamedJobs left_out, open, never, without, untold, unlicensed;
  double latest = 0;  ///< that anything was recorded, after the first submission
  std::set<std::string> qualities;
};

TakenJobs take_jobs(std::vector<SlurmRecord> records, const TraceRows& rows,
                    std::vector<std::string>& notes) {
  constexpr std::size_t kMostTold = 50;
  TakenJobs out;
  out.csv = rows.heading();
  std::ranges::stable_sort(records, {}, &SlurmRecord::submit);
  const double zero = records.empty() ? 0 : records.front().submit;
  std::size_t told = 0;
  for (const SlurmRecord& of : records) {
    std::string why;
    const std::optional<int> units = rows.units_of(of, why);
    const double runs = duration_of(of, rows);
    if (!units || runs < 0) {
      out.left_out.add(of.id);
      if (units) {
        out.never.add(of.id);
      } else if (why.ends_with("PU")) {
        out.without.add(of.id);
      } else if (told++ < kMostTold) {
        notes.push_back(fmt::format("job {}: {}: left out", of.id, why));
      } else {
        out.untold.add(of.id);
      }
      continue;
    }
    if (of.end < 0) out.open.add(of.id);
    bool all_known = true;
    (void)rows.licenses_of(of, all_known);
    if (!all_known) out.unlicensed.add(of.id);
    if (!of.qos.empty()) out.qualities.insert(of.qos);
    out.latest = std::max({out.latest, of.submit - zero, of.start - zero, of.end - zero});
    out.csv += rows.row(of, *units, zero, runs);
    ++out.taken;
  }
  const auto tell = [&](std::string_view what, const NamedJobs& jobs) {
    if (jobs.count() > 0) notes.push_back(fmt::format("{}: {}", what, jobs.words()));
  };
  tell("left out, as they ask for none of what is modelled", out.without);
  tell("left out, as they were cancelled before they started", out.never);
  tell("taken to run to their time limits, as they had not ended", out.open);
  tell("left out, too large as well", out.untold);
  tell("taken without licences of which slurm.conf has none, or fewer", out.unlicensed);
  return out;
}

Json columns_json(bool licenses) {
  Json out{{"runs", "duration_s"},
           {"limit", "limit_s"},
           {"start", "start_s"},
           {"begin", "begin_s"},
           {"nodes", "nodes"},
           {"array", "array"},
           {"array_limit", "array_limit"},
           {"dependency", "dependency"},
           {"state", "state"},
           {"series", "series"}};
  if (licenses) out["licenses"] = "licenses";
  return out;
}

Json cluster_json(const SiteNodes& nodes, const std::string& node, const PresetStore& presets) {
  Json out;
  if (nodes.units() == presets.node(node).gpus) {
    out["node"] = node;
  } else {
    out["node"] = {{"preset", node}, {"gpus", nodes.units()}, {"nvlink_domain", nodes.units()}};
  }
  out["nodes"] = nodes.count();
  return out;
}

}  // namespace

ImportedSite import_slurm(const SlurmFiles& files, const std::string& node,
                          const std::string& trace, const PresetStore& presets) {
  ImportedSite out;
  const SlurmSite site = read_slurm_conf(files.conf.name, files.conf.text, out.notes);
  std::vector<std::vector<std::string>> leaves;
  if (files.topology) {
    leaves = read_slurm_leaves(files.topology->name, files.topology->text, out.notes);
  }
  const SiteNodes nodes(site, leaves, files.conf.name, out.notes);
  Json partitions = partitions_json(site, nodes, files.conf.name, out.notes);
  const TraceRows rows(site, nodes, partitions);

  std::vector<SlurmRecord> records;
  if (files.accounting) {
    records = read_sacct(files.accounting->name, files.accounting->text, out.notes);
  }
  if (files.squeue) {
    std::set<std::string> known;
    for (const SlurmRecord& of : records) known.insert(of.id);
    for (SlurmRecord& of : read_squeue(files.squeue->name, files.squeue->text, out.notes)) {
      if (!known.contains(of.id)) records.push_back(std::move(of));
    }
  }
  TakenJobs jobs = take_jobs(std::move(records), rows, out.notes);

  Json queue = slurm_rules_json(site, out.notes);
  if (nodes.leaf_nodes() > 0) queue["placement"]["leaf_nodes"] = nodes.leaf_nodes();
  if (!nodes.by_cpus()) queue["node_cpus"] = nodes.node_cpus();
  for (const Json& of : partitions) {
    if (of.contains("qos")) jobs.qualities.insert(of["qos"].get<std::string>());
  }
  const bool limits =
      in_small_letters(site.get("AccountingStorageEnforce")).find("limits") != std::string::npos ||
      in_small_letters(site.get("AccountingStorageEnforce")).find("safe") != std::string::npos;
  Json qos = slurm_qos_json(files.qos ? read_sacctmgr_qos(files.qos->name, files.qos->text)
                                      : std::vector<std::map<std::string, std::string>>(),
                            jobs.qualities, limits, files.qos ? files.qos->name : "", out.notes);
  const auto preempts = [](const Json& of) { return of.contains("preempts"); };
  if (queue["preemption"]["mode"] == "qos" && std::ranges::none_of(qos, preempts)) {
    queue["preemption"] = {{"mode", "none"}, {"checkpoint", queue["preemption"]["checkpoint"]}};
    out.notes.emplace_back(
        "PreemptType=preempt/qos: no quality of service is known that preempts "
        "another (--qos): nobody is preempted");
  }
  if (!qos.empty()) queue["qos"] = std::move(qos);
  if (files.sacctmgr) {
    queue["accounts"] = slurm_accounts_json(
        read_sacctmgr_dump(files.sacctmgr->name, files.sacctmgr->text, out.notes), limits,
        files.sacctmgr->name, out.notes);
  }
  for (const auto& [name, count] : rows.licenses()) {
    queue["licenses"].push_back({{"name", name}, {"count", count}});
  }
  if (!partitions.empty()) queue["partitions"] = std::move(partitions);
  if (jobs.open.count() > 0 && jobs.latest > 0) queue["snapshot"] = jobs.latest;
  queue["jobs"] = Json::array(
      {{{"trace", {{"file", trace}, {"columns", columns_json(!rows.licenses().empty())}}}}});
  const Json scenario{
      {"about",
       fmt::format("Imported from {}{}: what its jobs waited, beside what its "
                   "rules say.",
                   files.conf.name, files.accounting ? " and " + files.accounting->name : "")},
      {"cluster", cluster_json(nodes, node, presets)},
      {"queue", std::move(queue)}};
  out.scenario = write_json(scenario, 2) + "\n";
  out.jobs = std::move(jobs.csv);
  out.taken = jobs.taken;
  out.left_out = jobs.left_out;
  return out;
}

}  // namespace lockstep
