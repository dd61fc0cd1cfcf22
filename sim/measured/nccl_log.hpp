/// What nccl-tests and rccl-tests print: tables in a text, or JSON (their option -J).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/measured/nccl_series.hpp"

namespace lockstep {

/// What a log may leave open.
struct NcclLogOptions {
  std::string op;         ///< nccl-tests' name, where neither log nor file name has one
  int nodes = 0;          ///< 0: the hosts of the rank lines; else instead of them
  int gpus_per_node = 0;  ///< 0: the ranks of each host; else instead of them
};

struct NcclLog {
  /// One for each table, in the order of the log; `gpu` is the device as it is printed, `system`
  /// the file. Samples have a size of at least 1 byte and a time.
  std::vector<NcclSeries> series;
  std::map<std::string, std::size_t> left_out;  ///< why, and how many rows
};

/// Reads the tables of every version from 1.0 on: columns are found by their titles, the operation
/// by the name of the program ("all_reduce_perf"), and tags that mpirun and srun put before lines
/// are dropped. Left out: rows with wrong results, CPU times, and rows whose time and bandwidth
/// disagree. Throws InputError for a text without a table, and where operation or ranks are neither
/// in the text nor in `options`.
NcclLog parse_nccl_log(const std::string& file, std::string_view text,
                       const NcclLogOptions& options);

// For the readers of the two formats.

/// Who took part, and how the ranks lie over hosts.
class NcclRanks {
 public:
  /// `ranks` more of them on `host`.
  void add(std::string_view host, int ranks, std::string_view device);
  void clear() { *this = {}; }
  /// Nodes, ranks, GPUs per node and GPU of the series, or a reason to leave it out. Throws
  /// InputError where nothing is known.
  [[nodiscard]] std::string fill(const NcclLogOptions& options, NcclSeries& series) const;

 private:
  std::map<std::string, int, std::less<>> hosts_;
  std::string device_;
};

/// The operation of a program's name or path within `text`: "./all_reduce_perf -b 8"; else empty.
std::string op_of_program(std::string_view text);
/// That of `found`, else of the options, else of the file's name ("allreduce-2-nodes.log"). Throws
/// InputError.
std::string op_of_log(const std::string& found, const NcclLogOptions& options,
                      const std::string& file);
/// Whether the printed bandwidth, of two decimals, is that of size and time.
bool bandwidth_agrees(Bytes size, double time_us, double algbw_gb_per_s);

NcclLog parse_nccl_json(const std::string& file, std::string_view text,
                        const NcclLogOptions& options);

}  // namespace lockstep
