#include "sim/scenario/slurm_rules.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/scenario/queue_rules.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string seconds_text(double seconds) { return fmt::format("{:.15g} s", seconds); }

void put_time(Json& out, const char* key, std::optional<double> seconds) {
  if (seconds) out[key] = seconds_text(*seconds);
}

/// SchedulerParameters that stand in "slurm" under their own names.
Json cycles_json(const SlurmSite& site) {
  Json out = Json::object();
  for (const char* const name :
       {"sched_interval", "bf_interval", "bf_resolution", "batch_sched_delay"}) {
    put_time(out, name, site.scheduler_number(name));
  }
  if (const auto minutes = site.scheduler_number("bf_window")) {
    out["bf_window"] = seconds_text(*minutes * 60);
  }
  for (const char* const name :
       {"default_queue_depth", "bf_max_job_test", "bf_max_job_array_resv"}) {
    if (const auto count = site.scheduler_number(name); count && *count >= 1) {
      out[name] = static_cast<int>(*count);
    }
  }
  return out;
}

/// A weight of one resource in PriorityWeightTRES: "CPU=1000,GRES/gpu=2000".
void put_tres_weights(const SlurmSite& site, Json& out, std::vector<std::string>& notes) {
  for (const std::string& part : split_list(site.get("PriorityWeightTRES"))) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string name = in_small_letters(part.substr(0, equals));
    const auto weight = slurm_number(part.substr(std::min(equals + 1, part.size())));
    if (!weight) continue;
    if (name == "gres/gpu" || name == "cpu" || name == "node") {
      out[name == "gres/gpu" ? "gpu" : name] = *weight;
    } else {
      notes.push_back(fmt::format("PriorityWeightTRES: {} matters and is not modelled", part));
    }
  }
}

Json priority_json(const SlurmSite& site, std::vector<std::string>& notes) {
  Json out = Json::object();
  constexpr std::array kWeights{std::pair{"PriorityWeightAge", "age"},
                                std::pair{"PriorityWeightFairshare", "fair_share"},
                                std::pair{"PriorityWeightJobSize", "job_size"},
                                std::pair{"PriorityWeightPartition", "partition"},
                                std::pair{"PriorityWeightQOS", "qos"},
                                std::pair{"PriorityWeightAssoc", "association"}};
  for (const auto& [setting, key] : kWeights) {
    if (const auto weight = site.number(setting); weight && *weight > 0) out[key] = *weight;
  }
  put_tres_weights(site, out, notes);
  put_time(out, "max_age", slurm_duration(site.get("PriorityMaxAge")));
  put_time(out, "half_life", slurm_duration(site.get("PriorityDecayHalfLife")));
  put_time(out, "calc_period", slurm_duration(site.get("PriorityCalcPeriod")));
  if (const auto damping = site.number("FairShareDampeningFactor"); damping && *damping > 0) {
    out["damping"] = *damping;
  }
  if (same_key(site.get("PriorityFavorSmall"), "YES")) out["favor_small"] = true;
  for (const std::string& flag : split_list(site.get("PriorityFlags"))) {
    if (same_key(flag, "SMALL_RELATIVE_TO_TIME")) {
      out["size_relative_to_time"] = true;
    } else if (same_key(flag, "NO_FAIR_TREE")) {
      out["fair_tree"] = false;
    } else if (!same_key(flag, "FAIR_TREE")) {
      notes.push_back(fmt::format("PriorityFlags: {} matters and is not modelled", flag));
    }
  }
  return out;
}

std::optional<Json> preemption_json(const SlurmSite& site, std::vector<std::string>& notes) {
  const std::string type = in_small_letters(site.get("PreemptType"));
  const std::string mode = in_small_letters(site.get("PreemptMode"));
  const bool by_qos = type == "preempt/qos";
  if ((!by_qos && type != "preempt/partition_prio") || mode.empty() || mode == "off") {
    return std::nullopt;
  }
  const bool suspends = mode.find("suspend") != std::string::npos;
  const auto has_gpus = [](const SlurmNode& of) { return of.gpus > 0; };
  if (suspends && std::ranges::any_of(site.nodes, has_gpus)) {
    notes.emplace_back(
        "PreemptMode=SUSPEND frees the CPUs of a suspended job, and none of its Gres: it keeps its "
        "GPUs, and nobody is taken to be preempted; \"suspends\" in \"preemption\" is for GPUs "
        "that are shared");
    return std::nullopt;
  }
  Json out{{"mode", by_qos ? "qos" : "partition"}};
  if (suspends) out["suspends"] = true;
  if (suspends && by_qos) {
    notes.emplace_back(
        "PreemptMode=SUSPEND with preempt/qos: jobs of one partition would take turns "
        "(SchedulerTimeSlice); here the one that preempts runs to its end");
  }
  if (mode.find("cancel") != std::string::npos) out["cancels"] = true;
  if (const std::string time = site.get("PreemptExemptTime"); !time.empty() && time != "-1") {
    // A bare number is of seconds; else days, hours, minutes and seconds.
    const auto seconds = slurm_number(time);
    put_time(out, "exempt", seconds ? seconds : slurm_duration(time));
  }
  if (site.scheduler.contains("preempt_youngest_first")) out["youngest_first"] = true;
  if (site.scheduler.contains("preempt_strict_order")) out["strict_order"] = true;
  if (const auto count = site.scheduler_number("preempt_reorder_count")) {
    out["reorder_count"] = static_cast<int>(*count);
  }
  return out;
}

}  // namespace

Json slurm_rules_json(const SlurmSite& site, std::vector<std::string>& notes) {
  const bool multifactor = same_key(site.get("PriorityType"), "priority/multifactor");
  const bool builtin = same_key(site.get("SchedulerType"), "sched/builtin");
  Json out{{"order", multifactor ? "multifactor" : "fifo"},
           {"admission", builtin ? "strict" : "slurm"}};
  if (multifactor) out["priority"] = priority_json(site, notes);
  out["preemption"] = preemption_json(site, notes).value_or(Json{{"mode", "none"}});
  out["preemption"]["checkpoint"] = "1000 d";  // a requeued job begins anew
  const bool tree = in_small_letters(site.get("TopologyPlugin")).starts_with("topology/tree") ||
                    in_small_letters(site.get("TopologyPlugin")).starts_with("topology/block");
  out["placement"] = {{"within_node", "best_fit"}, {"across", tree ? "packed" : "first_fit"}};
  if (Json cycles = cycles_json(site); !builtin && !cycles.empty())
    out["slurm"] = std::move(cycles);
  if (site.scheduler.contains("kill_invalid_depend")) out["cancel_unsatisfiable"] = true;
  return out;
}

namespace {

/// Which key of "limits" a column or a key of sacctmgr is.
struct LimitKey {
  std::string_view slurm, key;
  enum class Of { tres, minutes, count, wall } of;
};
constexpr std::array kLimitKeys{
    LimitKey{"grptres", "grp_tres", LimitKey::Of::tres},
    LimitKey{"grpjobs", "grp_jobs", LimitKey::Of::count},
    LimitKey{"grpsubmit", "grp_submit_jobs", LimitKey::Of::count},
    LimitKey{"grpsubmitjobs", "grp_submit_jobs", LimitKey::Of::count},
    LimitKey{"grptresmins", "grp_tres_mins", LimitKey::Of::minutes},
    LimitKey{"maxtres", "max_tres_per_job", LimitKey::Of::tres},
    LimitKey{"maxtresperjob", "max_tres_per_job", LimitKey::Of::tres},
    LimitKey{"maxwall", "max_wall", LimitKey::Of::wall},
    LimitKey{"maxwalldurationperjob", "max_wall", LimitKey::Of::wall},
    LimitKey{"maxjobs", "max_jobs", LimitKey::Of::count},
    LimitKey{"maxsubmitjobs", "max_submit_jobs", LimitKey::Of::count},
    LimitKey{"maxtrespu", "max_tres_per_user", LimitKey::Of::tres},
    LimitKey{"maxtresperuser", "max_tres_per_user", LimitKey::Of::tres},
    LimitKey{"maxjobspu", "max_jobs_per_user", LimitKey::Of::count},
    LimitKey{"maxsubmitpu", "max_submit_jobs_per_user", LimitKey::Of::count},
    LimitKey{"maxtrespa", "max_tres_per_account", LimitKey::Of::tres},
    LimitKey{"maxjobspa", "max_jobs_per_account", LimitKey::Of::count},
    LimitKey{"maxsubmitpa", "max_submit_jobs_per_account", LimitKey::Of::count}};
/// Those that bear on waits and have no such key.
constexpr std::array<std::string_view, 14> kOtherLimits{
    "grpwall",       "grptresrunmins", "maxtresmins",     "maxtresminsperjob", "maxtrespernode",
    "mintres",       "mintresperjob",  "maxjobsaccrue",   "grpjobsaccrue",     "maxtresrunminspu",
    "minpriothresh", "limitfactor",    "maxjobsaccruepu", "maxjobsaccruepa"};

/// Amounts of what is modelled; the others are told.
std::string modelled_tres(const std::string& text, const std::string& of,
                          std::vector<std::string>& notes) {
  std::string out;
  for (const std::string& part : split_list(text)) {
    if (tres_amount(part)) {
      out += (out.empty() ? "" : ",") + part;
    } else {
      notes.push_back(fmt::format("{}: {} matters and is not modelled", of, part));
    }
  }
  return out;
}

Json limits_json(const std::map<std::string, std::string>& values, const std::string& of,
                 std::vector<std::string>& notes) {
  Json out = Json::object();
  for (const LimitKey& key : kLimitKeys) {
    const auto found = values.find(std::string(key.slurm));
    if (found == values.end() || found->second.empty() || found->second == "-1") continue;
    const std::string& text = found->second;
    const std::string where = fmt::format("{}: {}", of, key.slurm);
    if (key.of == LimitKey::Of::tres) {
      const std::string amounts = modelled_tres(text, where, notes);
      if (!amounts.empty()) out[std::string(key.key)] = amounts;
    } else if (key.of == LimitKey::Of::minutes) {
      if (const auto gpus = gpus_in(text))
        out[std::string(key.key)] = fmt::format("gres/gpu={}", *gpus);
      if (split_list(text).size() > (gpus_in(text) ? 1U : 0U)) {
        notes.push_back(fmt::format(
            "{}={}: minutes of others than gres/gpu matter and are not modelled", where, text));
      }
    } else if (key.of == LimitKey::Of::wall) {
      put_time(out, "max_wall", slurm_duration(text));
    } else if (const auto count = slurm_number(text)) {
      out[std::string(key.key)] = static_cast<std::int64_t>(*count);
    }
  }
  for (const std::string_view other : kOtherLimits) {
    const auto found = values.find(std::string(other));
    if (found == values.end() || found->second.empty() || found->second == "-1") continue;
    notes.push_back(fmt::format("{}: {}={} matters and is not modelled", of, other, found->second));
  }
  return out;
}

std::string value_in(const std::map<std::string, std::string>& values, const char* key) {
  const auto found = values.find(key);
  return found == values.end() ? std::string() : found->second;
}

Json one_qos(const std::map<std::string, std::string>& row, const std::set<std::string>& names,
             bool limits, const std::string& file, std::vector<std::string>& notes) {
  const std::string name = value_in(row, "name");
  Json out{{"name", name}};
  if (const auto priority = slurm_number(value_in(row, "priority")); priority && *priority > 0) {
    out["priority"] = static_cast<std::int64_t>(std::min(*priority, 2e9));
  }
  Json preempts = Json::array();
  for (const std::string& other : split_list(value_in(row, "preempt"))) {
    if (names.contains(other)) preempts.push_back(other);
  }
  if (!preempts.empty()) out["preempts"] = std::move(preempts);
  const std::string grace = value_in(row, "gracetime");
  const auto grace_s = slurm_number(grace) ? slurm_number(grace) : slurm_duration(grace);
  if (grace_s && *grace_s > 0) put_time(out, "grace", grace_s);
  const std::string exempt = value_in(row, "preemptexempttime");
  if (!exempt.empty()) put_time(out, "exempt", slurm_duration(exempt));
  const std::string mode = in_small_letters(value_in(row, "preemptmode"));
  if (mode == "cancel") out["cancels"] = true;
  if (mode.find("suspend") != std::string::npos) {
    notes.push_back(fmt::format(
        "{}: qos {}: preemptmode=suspend matters and is not modelled: its jobs are preempted as "
        "PreemptMode says",
        file, name));
  }
  if (value_in(row, "flags").find("NoReserve") != std::string::npos) out["no_reserve"] = true;
  const auto factor = slurm_number(value_in(row, "usagefactor"));
  if (factor && *factor != 1) out["usage_factor"] = *factor;
  Json of = limits_json(row, fmt::format("{}: qos {}", file, name), notes);
  if (limits && !of.empty()) out["limits"] = std::move(of);
  return out;
}

}  // namespace

Json slurm_qos_json(const std::vector<std::map<std::string, std::string>>& rows,
                    const std::set<std::string>& named, bool limits, const std::string& file,
                    std::vector<std::string>& notes) {
  std::set<std::string> names;
  for (const auto& row : rows) names.insert(value_in(row, "name"));
  Json out = Json::array();
  for (const auto& row : rows) out.push_back(one_qos(row, names, limits, file, notes));
  for (const std::string& name : named) {
    if (names.contains(name)) continue;
    out.push_back({{"name", name}});
    if (file.empty()) continue;
    notes.push_back(
        fmt::format("{}: no quality of service {}, which jobs have: without limits", file, name));
  }
  return out;
}

Json slurm_accounts_json(const std::vector<DumpedAssociation>& lines, bool limits,
                         const std::string& file, std::vector<std::string>& notes) {
  Json out = Json::array();
  std::map<std::string, std::size_t> accounts;
  for (const DumpedAssociation& of : lines) {
    if (of.name == "root") continue;
    Json one{{"name", of.name}};
    const std::string shares = value_in(of.values, "fairshare");
    if (in_small_letters(shares) == "parent" || shares == "2147483647") {
      one["shares"] = "parent";
    } else if (const auto count = slurm_number(shares); count && *count != 1) {
      one["shares"] = *count;
    }
    if (const auto priority = slurm_number(value_in(of.values, "priority"));
        priority && *priority > 0) {
      one["priority"] = static_cast<std::int64_t>(*priority);
    }
    Json own = limits_json(of.values, fmt::format("{}: {}", file, of.name), notes);
    if (limits && !own.empty()) one["limits"] = std::move(own);
    const auto parent = accounts.find(of.parent);
    if (of.is_user) {
      if (parent == accounts.end()) continue;  // of the root
      out[parent->second]["users"].push_back(std::move(one));
      continue;
    }
    if (parent != accounts.end()) one["parent"] = of.parent;
    accounts.emplace(of.name, out.size());
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace lockstep
