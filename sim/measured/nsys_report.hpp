/// The tables that Nsight Systems makes of a recording: `nsys stats --format csv` or json.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A line of a table: kernels of one name in one range, or one that ran once.
struct NsysRow {
  std::string range;      ///< with its process and thread, where said; empty: in the kernel's name
  std::string kernel;     ///< empty: the table names none
  double total_us = 0;    ///< of all of them
  double instances = 1;   ///< of the range, else of the kernel
  double operations = 0;  ///< kernels and copies in all of them; 0: not said
};

struct NsysReport {
  std::vector<NsysRow> rows;
  std::size_t broken = 0;  ///< lines that do not fit the titles of their table
  std::string device;      ///< the first card, where the file names it: an SQLite export
};

/// Reads the tables of kernels in a text, whatever stands around them: cuda_gpu_kern_sum,
/// cuda_gpu_kern_gb_sum, cuda_gpu_sum, cuda_gpu_trace (each also with :nvtx-name), nvtx_kern_sum,
/// nvtx_gpu_proj_sum and nvtx_gpu_proj_trace, told by the titles of their columns, times in the
/// unit of the title. Others (of the CPU, of copies) are passed over. Throws InputError where there
/// is no such table.
NsysReport parse_nsys(const std::string& file, std::string_view text);

}  // namespace lockstep
