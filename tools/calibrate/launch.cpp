#include "tools/calibrate/launch.hpp"

#include <array>
#include <charconv>
#include <fmt/format.h>

#include "models/base/input_error.hpp"
#include "tools/calibrate/card.hpp"
#include "tools/console/options.hpp"

namespace lockstep {
namespace {

struct LauncherVariables {
  const char* launcher;
  const char* rank;
  const char* ranks;
  const char* local_rank;
};
constexpr std::array kLaunchers{
    LauncherVariables{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                      "OMPI_COMM_WORLD_LOCAL_RANK"},
    LauncherVariables{"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
                      "MV2_COMM_WORLD_LOCAL_RANK"},
    LauncherVariables{"MPICH or Intel MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    LauncherVariables{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    // SLURM_NTASKS is also set in a batch script before any srun; this one is srun's alone.
    LauncherVariables{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};
/// Where a launcher's own variable is missing: PMI has none of its own.
constexpr std::array kLocalRanks{"LOCAL_RANK", "PALS_LOCAL_RANKID", "SLURM_LOCALID"};
constexpr int kMostRanks = 1'000'000;  // as in a profile

int whole_variable(const char* name, const std::string& text, int low, int high) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= low && number <= high) {
    return number;
  }
  throw UsageError(fmt::format(
      "lockstep-calibrate: environment variable {}: found {}; allowed: a whole number from {} "
      "to {}",
      name, in_quotes(text), low, high));
}

std::optional<int> local_rank_of(const LauncherVariables& names, const Environment& environment,
                                 int ranks) {
  const auto value_of = [&](const char* name) -> std::optional<int> {
    const auto text = environment(name);
    if (!text) return std::nullopt;
    return whole_variable(name, *text, 0, ranks - 1);
  };
  if (const auto own = value_of(names.local_rank)) return own;
  for (const char* name : kLocalRanks) {
    if (const auto other = value_of(name)) return other;
  }
  return std::nullopt;
}

}  // namespace

Launch launch_of(const Environment& environment) {
  for (const LauncherVariables& names : kLaunchers) {
    const auto rank = environment(names.rank), ranks = environment(names.ranks);
    if (!rank || !ranks) continue;
    Launch out;
    out.ranks = whole_variable(names.ranks, *ranks, 1, kMostRanks);
    out.rank = whole_variable(names.rank, *rank, 0, out.ranks - 1);
    if (out.ranks == 1) return {};
    out.local_rank = local_rank_of(names, environment, out.ranks);
    out.launcher = names.launcher;
    return out;
  }
  return {};
}

int card_of(const Launch& launch, int cards) {
  // Some launchers show each process its own card alone.
  if (cards == 1) return 0;
  if (!launch.local_rank) {
    throw CardUnavailable(
        fmt::format("{} does not say which rank of its machine this is; set LOCAL_RANK in each "
                    "process, or show each its own card by CUDA_VISIBLE_DEVICES",
                    launch.launcher));
  }
  if (*launch.local_rank < cards) return *launch.local_rank;
  throw CardUnavailable(
      fmt::format("it is number {} on its machine, which has {} cards; start no more than one rank "
                  "for each",
                  *launch.local_rank, cards));
}

}  // namespace lockstep
