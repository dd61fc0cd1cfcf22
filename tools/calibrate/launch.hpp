/// Which of how many processes this is, as the launcher that started them says. MPI is not linked:
/// every launcher leaves the rank in the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lockstep {

/// A variable of the environment; nothing: it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

struct Launch {
  int rank = 0, ranks = 1;
  std::optional<int> local_rank;  ///< rank among those of the same machine
  std::string launcher;           ///< "Open MPI"; empty: this process is alone
};

/// Reads the variables of Open MPI, MVAPICH, MPICH and Intel MPI (PMI), torchrun and srun, in this
/// order: mpirun may itself have been started by srun, whose variables are then those of its
/// daemons. A launch of one process is as good as none. Throws UsageError where a variable is no
/// number that makes sense.
Launch launch_of(const Environment& environment);

/// The card of this process among `cards` that it sees: its local rank, or the only card. Throws
/// CardUnavailable where that tells of none.
int card_of(const Launch& launch, int cards);

}  // namespace lockstep
