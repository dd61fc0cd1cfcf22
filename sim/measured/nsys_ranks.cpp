#include "sim/measured/nsys_ranks.hpp"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/trace/formats/read_trace.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {
namespace {

constexpr int kNsysThreadBits = 24;

/// What a launcher calls the rank of a process and the number of them.
struct RankVariables {
  std::string_view rank, size;  ///< no size: it is not told, or counts something else
  std::string_view only_with;   ///< a variable without which the rank is another program's
};
/// Sources: Open MPI 5.0 documentation, "Environment variables set by Open MPI"; MPICH's Hydra
/// (PMI); MVAPICH2 user guide; PMIx standard 4.1; docs.pytorch.org, "torchrun";
/// slurm.schedmd.com/srun. A batch script has SLURM_PROCID 0 whatever it starts, but no step.
constexpr std::array kRankVariables{
    RankVariables{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {}},
    RankVariables{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", {}},
    RankVariables{"PMI_RANK", "PMI_SIZE", {}},
    RankVariables{"PMIX_RANK", {}, {}},
    RankVariables{"RANK", "WORLD_SIZE", {}},
    RankVariables{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
};

bool is_name_char(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

std::optional<int> leading_number(std::string_view text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0 || value >= kMostTraceRanks) return std::nullopt;
  return value;
}

/// The environment as rows: a variable each, or all of them in one text ("A=1", "B=2", ...).
class RecordedEnvironment {
 public:
  void add(std::string name, std::string value) {
    rows_.emplace_back(std::move(name), std::move(value));
  }
  [[nodiscard]] std::optional<int> number(std::string_view variable) const {
    if (variable.empty()) return std::nullopt;
    for (const auto& [name, value] : rows_) {
      if (name == variable) return leading_number(value);
      if (const auto found = assigned(value, variable)) return found;
    }
    return std::nullopt;
  }

 private:
  static std::optional<int> assigned(std::string_view text, std::string_view variable) {
    for (std::size_t at = text.find(variable); at != text.npos;
         at = text.find(variable, at + variable.size())) {
      if (at > 0 && is_name_char(text[at - 1])) continue;
      const std::string_view rest = text.substr(at + variable.size());
      if (rest.starts_with('=')) return leading_number(rest.substr(1));
    }
    return std::nullopt;
  }

  std::vector<std::pair<std::string, std::string>> rows_;
};

/// Gives ranks to GPUs, each once.
class RankGiver {
 public:
  void give(NsysGpu& gpu, std::int64_t rank, std::optional<int> world) {
    const std::string& file = gpu.recording.file;
    if (rank >= kMostTraceRanks) {
      fail_trace(file, fmt::format("rank {}", rank),
                 fmt::format("ranks below {}", kMostTraceRanks));
    }
    const auto [at, added] = given_.try_emplace(rank, file);
    if (!added) {
      fail_trace(file, fmt::format("rank {}", rank),
                 fmt::format("each rank once; {} is of the same rank", at->second));
    }
    gpu.recording.rank = static_cast<int>(rank);
    if (world) gpu.recording.world = world;
  }

 private:
  std::map<std::int64_t, std::string> given_;
};

std::size_t gpus_of(std::span<const NsysExport> exports) {
  return std::accumulate(
      exports.begin(), exports.end(), std::size_t{0},
      [](std::size_t sum, const NsysExport& each) { return sum + each.gpus.size(); });
}

/// How many GPUs each export has. Throws InputError where they differ.
int gpus_of_each(std::span<const NsysExport> exports) {
  for (const NsysExport& each : exports) {
    if (each.gpus.size() == exports.front().gpus.size()) continue;
    fail_trace(each.file, counted(static_cast<double>(each.gpus.size()), "GPU"),
               fmt::format("as many as in {}, {}, since the ranks in their environments count "
                           "exports",
                           exports.front().file, exports.front().gpus.size()));
  }
  return static_cast<int>(exports.front().gpus.size());
}

std::optional<int> world_of(const NsysExport& each, int gpus) {
  if (!each.launched_of) return std::nullopt;
  const std::int64_t world = std::int64_t{*each.launched_of} * gpus;
  if (world > kMostTraceRanks) return std::nullopt;
  return static_cast<int>(world);
}

/// By MPI rank: the GPUs of the process.
std::map<int, std::vector<NsysGpu*>> gpus_by_mpi_rank(std::span<NsysExport> exports) {
  std::map<int, std::vector<NsysGpu*>> out;
  const NsysGpu* untold = nullptr;
  for (NsysExport& each : exports) {
    for (NsysGpu& gpu : each.gpus) {
      if (!gpu.mpi_rank) {
        untold = &gpu;
        continue;
      }
      std::vector<NsysGpu*>& own = out[*gpu.mpi_rank];
      const bool same = own.empty() || (own.front()->process == gpu.process &&
                                        own.front()->recording.file == gpu.recording.file);
      if (!same) {
        fail_trace(gpu.recording.file, fmt::format("MPI rank {}", *gpu.mpi_rank),
                   fmt::format("each rank once; a process in {} is of the same rank",
                               own.front()->recording.file));
      }
      own.push_back(&gpu);
    }
  }
  if (!out.empty() && untold != nullptr) {
    fail_trace(untold->recording.file, "a process with kernels and without an MPI rank",
               fmt::format("ranks of all processes, as {} has one",
                           out.begin()->second.front()->recording.file));
  }
  return out;
}

bool place_by_mpi(std::span<NsysExport> exports) {
  const std::map<int, std::vector<NsysGpu*>> by_rank = gpus_by_mpi_rank(exports);
  if (by_rank.empty()) return false;
  const std::size_t each = by_rank.begin()->second.size();
  std::optional<int> world;
  for (const NsysExport& own : exports) {
    if (!world) world = world_of(own, static_cast<int>(each));
  }
  if (world && std::int64_t{by_rank.rbegin()->first} * static_cast<int>(each) >= *world) world = {};
  RankGiver giver;
  for (const auto& [rank, gpus] : by_rank) {
    if (gpus.size() != each) {
      fail_trace(
          gpus.front()->recording.file,
          fmt::format("{} of MPI rank {}", counted(static_cast<double>(gpus.size()), "GPU"), rank),
          fmt::format("as many as rank {} in {} has, {}", by_rank.begin()->first,
                      by_rank.begin()->second.front()->recording.file, each));
    }
    for (std::size_t i = 0; i < each; ++i) {
      giver.give(*gpus[i], std::int64_t{rank} * static_cast<int>(each) + static_cast<int>(i),
                 world);
    }
  }
  return true;
}

bool place_by_environment(std::span<NsysExport> exports) {
  const auto is_told = [](const NsysExport& each) { return each.launched_as.has_value(); };
  const auto told = std::ranges::find_if(exports, is_told);
  if (told == exports.end()) return false;
  const auto untold = std::ranges::find_if_not(exports, is_told);
  if (untold != exports.end()) {
    fail_trace(untold->file, "no rank in the recorded environment",
               fmt::format("one in all exports, as in {}", told->file));
  }
  const int gpus = gpus_of_each(exports);
  RankGiver giver;
  for (NsysExport& each : exports) {
    for (std::size_t i = 0; i < each.gpus.size(); ++i) {
      giver.give(each.gpus[i],
                 std::int64_t{*each.launched_as} * gpus + static_cast<std::int64_t>(i),
                 world_of(each, gpus));
    }
  }
  return true;
}

struct NamedExport {
  std::size_t index = 0;
  int number = 0;
};
/// Exports by the numbers of their names; nothing where these do not tell. Throws InputError where
/// two are of the same rank in so many words.
std::optional<std::vector<NamedExport>> exports_by_number(std::span<const NsysExport> exports) {
  std::map<int, std::size_t> by_number;
  std::vector<NamedExport> out;
  const auto says = [](const NsysExport& each) { return rank_word_in_name(each.file).has_value(); };
  const auto worded = std::ranges::find_if(exports, says);
  for (std::size_t i = 0; i < exports.size(); ++i) {
    const auto number = kineto_rank_in_name(exports[i].file, false);
    if (!number && worded == exports.end()) return std::nullopt;
    if (!number) {
      fail_trace(exports[i].file, "no rank in the file's name",
                 fmt::format("one in all names, as in {}", worded->file));
    }
    const auto [at, added] = by_number.try_emplace(*number, i);
    if (!added && worded == exports.end()) return std::nullopt;
    if (!added) {
      fail_trace(exports[i].file, fmt::format("rank {}", *number),
                 fmt::format("each rank once; {} is of the same rank", exports[at->second].file));
    }
    out.push_back({i, *number});
  }
  std::ranges::sort(out, {}, &NamedExport::number);
  const bool from_one = worded == exports.end() && out.front().number == 1 &&
                        out.back().number == static_cast<int>(out.size());
  for (NamedExport& each : out) each.number -= from_one ? 1 : 0;
  return out;
}

/// Counts GPUs through the exports, in that order.
void count_gpus(std::span<NsysExport> exports, const std::vector<std::size_t>& order) {
  const auto world = static_cast<int>(std::min<std::size_t>(gpus_of(exports), kMostTraceRanks));
  RankGiver giver;
  std::int64_t next = 0;
  for (const std::size_t index : order) {
    for (NsysGpu& gpu : exports[index].gpus) giver.give(gpu, next++, world);
  }
}

std::string place_by_files(std::span<NsysExport> exports) {
  std::vector<std::size_t> order(exports.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto names = exports_by_number(exports);
  const bool alone = gpus_of(exports) == exports.size();
  if (names && alone) {
    RankGiver giver;
    for (const NamedExport& each : *names) {
      giver.give(exports[each.index].gpus.front(), each.number, {});
    }
    return "ranks of the Nsight exports are the numbers in their names";
  }
  if (names) {
    std::ranges::transform(*names, order.begin(), &NamedExport::index);
    count_gpus(exports, order);
    return "ranks count the GPUs of the Nsight exports, in the order of the numbers in their names";
  }
  count_gpus(exports, order);
  return "ranks count the GPUs of the Nsight exports in the order of the files: nothing in them, "
         "and no number in their names, says another one";
}

}  // namespace

std::map<std::int64_t, int> nsys_mpi_ranks(SQLite::Database& db) {
  std::map<std::int64_t, int> out;
  if (!db.tableExists("MPI_RANKS")) return out;
  SQLite::Statement rows(db, "SELECT globalTid, rank FROM MPI_RANKS");
  while (rows.executeStep()) {
    const std::int64_t rank = rows.getColumn(1).getInt64();
    if (rank < 0 || rank >= kMostTraceRanks) continue;
    out[rows.getColumn(0).getInt64() >> kNsysThreadBits] = static_cast<int>(rank);
  }
  return out;
}

void read_launched_rank(SQLite::Database& db, NsysExport& out) {
  if (!db.tableExists("TARGET_INFO_SYSTEM_ENV")) return;
  SQLite::Statement rows(db,
                         "SELECT IFNULL(name, ''), IFNULL(value, '') FROM TARGET_INFO_SYSTEM_ENV");
  RecordedEnvironment environment;
  while (rows.executeStep()) {
    environment.add(rows.getColumn(0).getString(), rows.getColumn(1).getString());
  }
  for (const RankVariables& names : kRankVariables) {
    const auto rank = environment.number(names.rank);
    if (!rank || (!names.only_with.empty() && !environment.number(names.only_with))) continue;
    out.launched_as = rank;
    const auto size = environment.number(names.size);
    if (size && *size > *rank) out.launched_of = size;
    return;
  }
}

std::string place_nsys_ranks(std::span<NsysExport> exports) {
  if (exports.empty()) return {};
  std::set<std::string> files;
  for (const NsysExport& each : exports) {
    if (!files.insert(each.file).second) fail_trace(each.file, "the file twice", "each file once");
  }
  const bool several = exports.size() > 1;
  if (place_by_mpi(exports)) {
    return several ? "ranks of the Nsight exports are the MPI ranks of their processes" : "";
  }
  if (place_by_environment(exports)) {
    return several ? "ranks of the Nsight exports are those in their recorded environments" : "";
  }
  if (several) return place_by_files(exports);
  if (exports.front().gpus.size() > 1) count_gpus(exports, {0});
  return {};
}

}  // namespace lockstep
