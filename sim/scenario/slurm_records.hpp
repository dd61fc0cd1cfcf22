/// Jobs as Slurm tells of them: what sacct and squeue print.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A job, or a task of an array. Times in seconds since 1970; below 0: not known.
struct SlurmRecord {
  std::string id, name, user, account, partition, qos, nodes, state, reservation, dependency;
  std::string licenses;  ///< as --licenses has them: "matlab:2,ansys"
  std::string array;     ///< the id of the array; empty: none
  int array_limit = 0;   ///< tasks at a time; 0: no limit
  double submit = -1, eligible = -1, start = -1, end = -1;
  double limit = -1;     ///< seconds; below 0: unlimited, or that of its partition
  double suspended = 0;  ///< seconds between start and end in which it was
  int gpus = 0, cpus = 0;
};

/// The table of `sacct -P` with its heading: JobID, Submit, Start and End, AllocTRES or ReqTRES;
/// User, Account, Partition, QOS, Timelimit, NodeList, State, JobName, Eligible, Suspended,
/// Reservation and Licenses (else license/NAME in AllocTRES) where they are there. Steps are passed
/// over; of a job that was requeued the last row counts. Rows that cannot be read are told in
/// `notes`. Throws InputError for a heading that lacks a column.
std::vector<SlurmRecord> read_sacct(const std::string& file, std::string_view text,
                                    std::vector<std::string>& notes);

/// The jobs of `squeue --json`. Throws InputError for another text.
std::vector<SlurmRecord> read_squeue(const std::string& file, std::string_view text,
                                     std::vector<std::string>& notes);

}  // namespace lockstep
