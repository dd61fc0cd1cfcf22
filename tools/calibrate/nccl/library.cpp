#include "tools/calibrate/nccl/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "tools/calibrate/card.hpp"

namespace lockstep {
namespace {

constexpr const char* kLibraryName = "libnccl.so.2";
/// The first with ncclInProgress, which ncclCommGetAsyncError gives. CMake asks the header the
/// same.
constexpr int kLeastVersion = 21400;

template <class Function>
void load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw CardUnavailable(fmt::format("{} has no {}; 2.14 or later is needed", kLibraryName, name));
  }
}

NcclLibrary loaded() {
  void* library = dlopen(kLibraryName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen(LOCKSTEP_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw CardUnavailable(fmt::format("NCCL could not be loaded: {}", dlerror()));
  }
  NcclLibrary out{};
  load(library, "ncclGetVersion", out.get_version);
  load(library, "ncclGetUniqueId", out.get_unique_id);
  load(library, "ncclCommInitRank", out.comm_init_rank);
  load(library, "ncclCommDestroy", out.comm_destroy);
  load(library, "ncclCommAbort", out.comm_abort);
  load(library, "ncclCommGetAsyncError", out.comm_get_async_error);
  load(library, "ncclGetErrorString", out.get_error_string);
  load(library, "ncclGetLastError", out.get_last_error);
  load(library, "ncclGroupStart", out.group_start);
  load(library, "ncclGroupEnd", out.group_end);
  load(library, "ncclAllReduce", out.all_reduce);
  load(library, "ncclAllGather", out.all_gather);
  load(library, "ncclReduceScatter", out.reduce_scatter);
  load(library, "ncclSend", out.send);
  load(library, "ncclRecv", out.receive);
  int version = 0;
  out.check(out.get_version(&version), "ncclGetVersion");
  if (version < kLeastVersion) {
    throw CardUnavailable(
        fmt::format("{} is {}; 2.14 or later is needed", kLibraryName, out.version()));
  }
  return out;
}

}  // namespace

void NcclLibrary::check(ncclResult_t status, const char* call) const {
  if (status == ncclSuccess) return;
  const char* const detail = get_last_error(nullptr);
  std::string text = fmt::format("{}: {}", call, get_error_string(status));
  if (detail != nullptr && *detail != '\0') text += fmt::format(" ({})", detail);
  // NCCL's own sentence may have several lines.
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  throw CardError(text);
}

std::string NcclLibrary::version() const {
  int number = 0;
  check(get_version(&number), "ncclGetVersion");
  // NCCL_VERSION of nccl.h, from 2.9 on.
  return fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = loaded();
  return library;
}

}  // namespace lockstep
