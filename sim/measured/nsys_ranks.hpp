/// Which ranks of a job the GPUs are that Nsight Systems recorded, in one export or in several.
#pragma once

#include <map>
#include <span>
#include <string>

#include "sim/measured/nsys_recording.hpp"

namespace SQLite {  // NOLINT(readability-identifier-naming): the library has it
class Database;
}

namespace lockstep {

/// The MPI rank of each process that has one (table MPI_RANKS), by process as globalTid has it
/// above its 24 bits of the thread.
std::map<std::int64_t, int> nsys_mpi_ranks(SQLite::Database& db);

/// Reads `launched_as` and `launched_of` from the recorded environment (TARGET_INFO_SYSTEM_ENV):
/// variables of Open MPI, MPICH, MVAPICH2, PMIx, torchrun, and of a step of Slurm. Nothing else of
/// it is looked at.
void read_launched_rank(SQLite::Database& db, NsysExport& out);

/// Gives every recording its rank, by the first of these that there is:
/// - the MPI rank of its process; of processes with g GPUs each, GPU i of rank r is r g + i;
/// - the rank in the environment of each export; of exports with g GPUs each the same;
/// - of a single export, the GPUs' order, and of a single GPU none;
/// - the numbers behind "rank" or "worker" in the files' names, else their last numbers where these
///   differ (counted from 1 where they begin there), else the order of the files. Where exports
///   have several GPUs, that is their order, and GPUs count on through it.
/// Returns a sentence that says which, of several exports; else nothing. Throws InputError, which
/// names both files, for a rank that is there twice or that only some exports say, for exports of
/// which one has another number of GPUs than ranks of the environment allow, and for a file twice.
std::string place_nsys_ranks(std::span<NsysExport> exports);

}  // namespace lockstep
