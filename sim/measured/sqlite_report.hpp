/// A recording of Nsight Systems as `nsys export --type sqlite` (or `nsys stats`) leaves it.
#pragma once

#include <string>

#include "sim/measured/nsys_report.hpp"

namespace lockstep {

/// Whether the file begins as databases of SQLite do. False where it cannot be read.
bool is_sqlite(const std::string& file);

/// Throws InputError: the file is no export with kernels, but what was `found`.
[[noreturn]] void refuse_nsys(const std::string& file, const std::string& found);

/// A row for each kernel, with the innermost NVTX range (push and pop) of the thread that launched
/// it. Tables and columns: NVIDIA Nsight Systems User Guide, "SQLite Schema Reference"
/// (CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME, NVTX_EVENTS, StringIds). Throws
/// InputError for a database of something else, or without kernels.
NsysReport read_nsys_sqlite(const std::string& file);

}  // namespace lockstep
