/// NCCL's functions, loaded when they are asked for: the library is large and may be missing where
/// the program runs, and only --nccl needs it.
#pragma once

#include <nccl.h>
#include <string>

namespace lockstep {

struct NcclLibrary {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) comm_init_rank;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;

  /// Throws CardError: "ncclAllReduce: unhandled cuda error (...)".
  void check(ncclResult_t status, const char* call) const;
  /// "2.28.9".
  [[nodiscard]] std::string version() const;
};

/// Loads libnccl.so.2 as the system finds it, else from where it was when the program was built;
/// never unloaded, since NCCL keeps threads. Throws CardUnavailable.
const NcclLibrary& nccl_library();

}  // namespace lockstep
