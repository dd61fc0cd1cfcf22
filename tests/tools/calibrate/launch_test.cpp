#include "tools/calibrate/launch.hpp"

#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include "tools/calibrate/card.hpp"
#include "tools/console/options.hpp"

using namespace lockstep;

namespace {

Launch launched(const std::map<std::string, std::string>& variables) {
  return launch_of([&](const char* name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    if (at == variables.end()) return std::nullopt;
    return at->second;
  });
}

}  // namespace

TEST_CASE("launch: every launcher's variables give rank, ranks and local rank") {
  const std::vector<std::pair<std::string, std::map<std::string, std::string>>> launches{
      {"Open MPI",
       {{"OMPI_COMM_WORLD_RANK", "11"},
        {"OMPI_COMM_WORLD_SIZE", "16"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}}},
      {"MVAPICH",
       {{"MV2_COMM_WORLD_RANK", "11"},
        {"MV2_COMM_WORLD_SIZE", "16"},
        {"MV2_COMM_WORLD_LOCAL_RANK", "3"}}},
      {"MPICH or Intel MPI", {{"PMI_RANK", "11"}, {"PMI_SIZE", "16"}, {"MPI_LOCALRANKID", "3"}}},
      {"MPICH or Intel MPI", {{"PMI_RANK", "11"}, {"PMI_SIZE", "16"}, {"SLURM_LOCALID", "3"}}},
      {"torchrun", {{"RANK", "11"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "3"}}},
      {"srun", {{"SLURM_PROCID", "11"}, {"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_LOCALID", "3"}}},
  };
  for (const auto& [launcher, variables] : launches) {
    CAPTURE(launcher);
    const Launch launch = launched(variables);
    CHECK(launch.launcher == launcher);
    CHECK(launch.rank == 11);
    CHECK(launch.ranks == 16);
    CHECK(launch.local_rank == 3);
  }
}

TEST_CASE("launch: mpirun that srun started counts, not the srun of its daemons") {
  const Launch launch = launched({{"SLURM_PROCID", "1"},
                                  {"SLURM_STEP_NUM_TASKS", "2"},
                                  {"SLURM_LOCALID", "0"},
                                  {"OMPI_COMM_WORLD_RANK", "9"},
                                  {"OMPI_COMM_WORLD_SIZE", "16"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  CHECK(launch.rank == 9);
  CHECK(launch.ranks == 16);
  CHECK(launch.local_rank == 1);
}

TEST_CASE("launch: alone, in a batch script before srun, and as the only rank are the same") {
  for (const std::map<std::string, std::string>& variables :
       std::vector<std::map<std::string, std::string>>{
           {},
           {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}, {"SLURM_LOCALID", "0"}},
           {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}}) {
    const Launch launch = launched(variables);
    CHECK(launch.launcher.empty());
    CHECK(launch.rank == 0);
    CHECK(launch.ranks == 1);
  }
}

TEST_CASE("launch: variables that make no sense are a mistake of the caller") {
  CHECK_THROWS_WITH_AS(launched({{"RANK", "16"}, {"WORLD_SIZE", "16"}}),
                       "lockstep-calibrate: environment variable RANK: found \"16\"; allowed: a "
                       "whole number from 0 to 15",
                       UsageError);
  CHECK_THROWS_WITH_AS(launched({{"RANK", "0"}, {"WORLD_SIZE", "many"}}),
                       "lockstep-calibrate: environment variable WORLD_SIZE: found \"many\"; "
                       "allowed: a whole number from 1 to 1000000",
                       UsageError);
  CHECK_THROWS_AS(launched({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), UsageError);
  CHECK_THROWS_AS(launched({{"RANK", ""}, {"WORLD_SIZE", "2"}}), UsageError);
}

TEST_CASE("card_of: the local rank, unless each process is shown its own card alone") {
  Launch launch{.rank = 11, .ranks = 16, .local_rank = 3, .launcher = "srun"};
  CHECK(card_of(launch, 8) == 3);
  CHECK(card_of(launch, 4) == 3);
  CHECK(card_of(launch, 1) == 0);
  CHECK_THROWS_WITH_AS(card_of(launch, 3),
                       "it is number 3 on its machine, which has 3 cards; start no more than one "
                       "rank for each",
                       CardUnavailable);
  launch.local_rank.reset();
  CHECK(card_of(launch, 1) == 0);
  CHECK_THROWS_WITH_AS(card_of(launch, 8),
                       "srun does not say which rank of its machine this is; set LOCAL_RANK in "
                       "each process, or show each its own card by CUDA_VISIBLE_DEVICES",
                       CardUnavailable);
}
