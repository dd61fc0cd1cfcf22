#include "sim/scenario/slurm_site.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/scenario/host_list.hpp"
#include "sim/scenario/slurm_settings.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostSiteNodes = 1'000'000;

/// Values that are as if the setting were not there.
constexpr std::array kUsualValues{std::pair{"JobRequeue", "1"},
                                  std::pair{"CompleteWait", "0"},
                                  std::pair{"PriorityUsageResetPeriod", "NONE"},
                                  std::pair{"SuspendTime", "-1"},
                                  std::pair{"SuspendTime", "INFINITE"},
                                  std::pair{"ResvOverRun", "0"},
                                  std::pair{"PartitionName.OverSubscribe", "NO"},
                                  std::pair{"PartitionName.Shared", "NO"},
                                  std::pair{"PartitionName.ExclusiveUser", "NO"},
                                  std::pair{"PartitionName.LLN", "NO"},
                                  std::pair{"NodeName.State", "UNKNOWN"},
                                  std::pair{"NodeName.State", "IDLE"},
                                  std::pair{"NodeName.Weight", "1"}};

bool is_usual(std::string_view setting, std::string_view value) {
  return std::ranges::any_of(kUsualValues, [&](const auto& of) {
    return same_key(of.first, setting) && same_key(of.second, value);
  });
}

/// Tells once of each setting that does not act.
class SettingNotes {
 public:
  SettingNotes(const std::string& file, std::vector<std::string>& notes)
      : file_(&file), notes_(&notes) {}

  void look_at(std::size_t line, const std::string& group, const std::string& name,
               const std::string& value) {
    const std::string full = group.empty() ? name : group + "." + name;
    if (!told_.insert(in_small_letters(full)).second) return;
    const SlurmSetting* const of = slurm_setting(full);
    const std::string where = fmt::format("{}:{}: ", *file_, line);
    if (of == nullptr) {
      std::vector<std::string> names;
      for (const SlurmSetting& known : slurm_settings()) names.emplace_back(known.name);
      const std::string nearest = nearest_name(full, names);
      notes_->push_back(where + fmt::format("{} is no setting that is known here (of another "
                                            "version?): left out{}",
                                            full,
                                            nearest.empty() ? "" : "; is it " + nearest + "?"));
    } else if (same_key(full, "SelectType") && value.find("linear") != std::string::npos) {
      notes_->push_back(where + "SelectType=" + value +
                        " matters and is not modelled: whole nodes for every job");
    } else if (of->effect == SettingEffect::harmless || is_usual(full, value)) {
      notes_->push_back(where + full + " is harmless: it does not bear on waits");
    } else if (of->effect == SettingEffect::matters) {
      notes_->push_back(where +
                        fmt::format("{}={} matters and is not modelled: {}", full, value, of->why));
    }
  }

 private:
  const std::string* file_;
  std::vector<std::string>* notes_;
  std::set<std::string> told_;
};

int whole_of(const SlurmLine& line, std::string_view key, int otherwise) {
  const auto read = slurm_number(line.get(key));
  return read && *read < 1e9 ? static_cast<int>(*read) : otherwise;
}

/// The pairs of a line, behind those of the DEFAULT line before it.
SlurmLine with_defaults(SlurmLine line, const SlurmLine& defaults) {
  line.pairs.insert(line.pairs.end(), defaults.pairs.begin(), defaults.pairs.end());
  return line;
}

int cpus_of(const SlurmLine& line) {
  const int sockets = std::max(whole_of(line, "Sockets", 1),
                               whole_of(line, "Boards", 1) * whole_of(line, "SocketsPerBoard", 1));
  const int product =
      sockets * whole_of(line, "CoresPerSocket", 1) * whole_of(line, "ThreadsPerCore", 1);
  return std::max(1, whole_of(line, "CPUs", whole_of(line, "Procs", product)));
}

void add_nodes(const std::string& file, const SlurmLine& line, SlurmSite& site,
               std::vector<std::string>& notes) {
  const auto names = host_names(line.get("NodeName"), kMostSiteNodes - site.nodes.size());
  if (!names) {
    notes.push_back(
        fmt::format("{}:{}: found NodeName={}; allowed: a host list such as n[1-4]; "
                    "left out",
                    file, line.number, line.get("NodeName")));
    return;
  }
  const int gpus = gpus_in(line.get("Gres")).value_or(0);
  for (const std::string& name : *names) {
    site.nodes.push_back({.name = name, .gpus = gpus, .cpus = cpus_of(line)});
  }
}

SlurmPartition partition_from(const SlurmLine& line) {
  SlurmPartition out;
  out.name = line.get("PartitionName");
  out.nodes = line.get("Nodes");
  out.qos = line.get("QOS");
  const int both = whole_of(line, "Priority", 1);  // the name of both before 16.05
  out.tier = whole_of(line, "PriorityTier", both);
  out.priority = whole_of(line, "PriorityJobFactor", both);
  out.grace = whole_of(line, "GraceTime", 0);
  out.max_time = slurm_duration(line.get("MaxTime")).value_or(-1);
  out.is_default = same_key(line.get("Default"), "YES");
  return out;
}

/// The names of the parts of SchedulerParameters and their values.
void read_parameters(std::size_t line, const std::string& value, SlurmSite& site,
                     SettingNotes& notes) {
  for (const std::string& part : split_list(value)) {
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals);
    const std::string of = equals < part.size() ? part.substr(equals + 1) : "yes";
    const bool preempts = slurm_setting("SchedulerParameters.preempt_" + name) != nullptr;
    notes.look_at(line, "SchedulerParameters", preempts ? "preempt_" + name : name, of);
    site.scheduler[in_small_letters(preempts ? "preempt_" + name : name)] = of;
  }
}

}  // namespace

std::string in_small_letters(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return out;
}

std::string SlurmSite::get(std::string_view setting) const {
  const auto found = settings.find(in_small_letters(setting));
  return found == settings.end() ? std::string() : found->second;
}

std::optional<double> SlurmSite::number(std::string_view setting, double unit_s) const {
  return slurm_number(get(setting), unit_s);
}

std::optional<double> SlurmSite::scheduler_number(std::string_view setting) const {
  const auto found = scheduler.find(in_small_letters(setting));
  return found == scheduler.end() ? std::nullopt : slurm_number(found->second);
}

SlurmSite read_slurm_conf(const std::string& file, std::string_view text,
                          std::vector<std::string>& notes) {
  SlurmSite site;
  SettingNotes told(file, notes);
  SlurmLine node_defaults, partition_defaults;
  for (const SlurmLine& line : slurm_lines(file, text, notes)) {
    const std::string& first = line.pairs.front().first;
    const bool of_nodes = same_key(first, "NodeName");
    const bool of_partition = same_key(first, "PartitionName");
    if (!of_nodes && !of_partition) {
      for (const auto& [name, value] : line.pairs) {
        const bool parameters =
            same_key(name, "SchedulerParameters") || same_key(name, "PreemptParameters");
        if (parameters) {
          read_parameters(line.number, value, site, told);
        } else {
          told.look_at(line.number, "", name, value);
        }
        site.settings[in_small_letters(name)] = value;
      }
      continue;
    }
    const std::string group = of_nodes ? "NodeName" : "PartitionName";
    for (const auto& [name, value] : line.pairs) told.look_at(line.number, group, name, value);
    const bool defaults = line.pairs.front().second == "DEFAULT";
    SlurmLine& known = of_nodes ? node_defaults : partition_defaults;
    if (defaults) {
      known = with_defaults(line, known);
    } else if (of_nodes) {
      add_nodes(file, with_defaults(line, known), site, notes);
    } else {
      site.partitions.push_back(partition_from(with_defaults(line, known)));
    }
  }
  return site;
}

std::vector<std::vector<std::string>> read_slurm_leaves(const std::string& file,
                                                        std::string_view text,
                                                        std::vector<std::string>& notes) {
  std::vector<std::vector<std::string>> out;
  if (text.starts_with("---") || text.starts_with("- ")) {
    throw InputError({.file = file,
                      .pointer = {},
                      .found = "YAML",
                      .allowed = "topology.conf, with lines of SwitchName or BlockName",
                      .nearest = {}});
  }
  for (const SlurmLine& line : slurm_lines(file, text, notes)) {
    const bool is_switch = !line.get("SwitchName").empty(),
               is_block = !line.get("BlockName").empty();
    if (is_switch && !line.get("Switches").empty()) continue;  // above the leaves
    if (!is_switch && !is_block) {
      notes.push_back(
          fmt::format("{}:{}: {} is not modelled, left out; allowed: SwitchName or "
                      "BlockName with Nodes",
                      file, line.number, line.pairs.front().first));
      continue;
    }
    auto names = host_names(line.get("Nodes"), kMostSiteNodes);
    if (!names) {
      notes.push_back(
          fmt::format("{}:{}: found Nodes={}; allowed: a host list such as n[1-4]; "
                      "left out",
                      file, line.number, line.get("Nodes")));
      continue;
    }
    out.push_back(*std::move(names));
  }
  return out;
}

namespace {

/// "GrpTRES=cpu=8,gres/gpu=2:Fairshare=1" apart at the colons that stand outside quotes.
std::vector<std::string> dump_parts(std::string_view text) {
  std::vector<std::string> out;
  std::string part;
  bool quoted = false;
  for (const char c : text) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ':' && !quoted) {
      out.push_back(std::exchange(part, {}));
    } else {
      part += c;
    }
  }
  out.push_back(part);
  return out;
}

}  // namespace

std::vector<DumpedAssociation> read_sacctmgr_dump(const std::string& file, std::string_view text,
                                                  std::vector<std::string>& notes) {
  std::vector<DumpedAssociation> out;
  std::string parent = "root";
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t dash = line.find(" - ");
    const std::string kind(line.substr(0, std::min(dash, line.size())));
    const bool known = kind == "Cluster" || kind == "Parent" || kind == "Account" || kind == "User";
    if (dash == std::string_view::npos || !known) {
      notes.push_back(
          fmt::format("{}:{}: found {}; allowed: Cluster, Parent, Account or User - "
                      "'NAME':..., as sacctmgr dump writes them; left out",
                      file, number, in_quotes(std::string(line.substr(0, 60)))));
      continue;
    }
    const std::vector<std::string> parts = dump_parts(line.substr(dash + 3));
    if (kind == "Cluster") continue;
    if (kind == "Parent") {
      parent = parts.front();
      continue;
    }
    DumpedAssociation of;
    of.name = parts.front();
    of.parent = parent;
    of.is_user = kind == "User";
    for (const std::string& part : std::span(parts).subspan(1)) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos) continue;
      of.values[in_small_letters(part.substr(0, equals))] = part.substr(equals + 1);
    }
    out.push_back(std::move(of));
  }
  return out;
}

std::vector<std::map<std::string, std::string>> read_sacctmgr_qos(const std::string& file,
                                                                  std::string_view text) {
  std::vector<std::string> heading;
  std::vector<std::map<std::string, std::string>> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string> cells = split_list(text.substr(0, end), '|');
    text.remove_prefix(std::min(end + 1, text.size()));
    if (cells.empty()) continue;
    if (heading.empty()) {
      for (const std::string& cell : cells) heading.push_back(in_small_letters(cell));
      continue;
    }
    auto& row = out.emplace_back();
    for (std::size_t c = 0; c < std::min(cells.size(), heading.size()); ++c) {
      row[heading[c]] = cells[c];
    }
  }
  if (std::ranges::count(heading, "name") == 0) {
    throw InputError({.file = file,
                      .pointer = {},
                      .found = "no column \"Name\"",
                      .allowed = "what sacctmgr -P show qos prints, with its heading",
                      .nearest = {}});
  }
  return out;
}

}  // namespace lockstep
