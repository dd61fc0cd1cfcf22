/// NCCL, as far as lockstep-calibrate calls it, with all ranks in one process: libnccl.so.2. What
/// ranks hold is moved where it is little.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <nccl.h>
#include <vector>

#include "tests/fake-driver/fake_card.hpp"
#include "tests/fake-driver/times.hpp"
#include "tools/calibrate/memory_kernels.hpp"

namespace {

using namespace lockstep;

/// Of one rank to another: always, and where its content is compared.
constexpr std::size_t kAlwaysMoved = std::size_t{4} << 10, kMovedBytes = std::size_t{2} << 20;

/// A mistake of the program that NCCL would answer with a hang.
void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fake NCCL: %s\n", what);
  std::abort();
}

enum class Kind { all_reduce, all_gather, reduce_scatter, send, receive };

/// One rank's part in an operation.
struct Part {
  Kind kind;
  const std::byte* in;
  std::byte* out;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t operation;
  int peer;
  fake::Stream* stream;
};

struct Clique {
  std::size_t ranks = 0;
  std::map<int, std::vector<Part>> parts;  ///< of the group that is open, by rank
};
std::map<std::uint64_t, std::shared_ptr<Clique>>& cliques() {
  static std::map<std::uint64_t, std::shared_ptr<Clique>> all;
  return all;
}
int depth = 0;

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclDouble:
      return 8;
    case ncclFloat:
      return 4;
    case ncclBfloat16:
      return 2;
    default:
      return 1;
  }
}
double read(const std::byte* at, ncclDataType_t type) {
  if (type == ncclDouble) {
    double x = 0;
    std::memcpy(&x, at, sizeof(x));
    return x;
  }
  if (type == ncclFloat) {
    float x = 0;
    std::memcpy(&x, at, sizeof(x));
    return static_cast<double>(x);
  }
  std::uint16_t x = 0;
  std::memcpy(&x, at, sizeof(x));
  return static_cast<double>(from_bf16(x));
}
/// Sums of whole numbers that 16 bit hold are exact; others are cut off.
void write(double value, std::byte* at, ncclDataType_t type) {
  const auto single = static_cast<float>(value);
  if (type == ncclDouble) {
    std::memcpy(at, &value, sizeof(value));
  } else if (type == ncclFloat) {
    std::memcpy(at, &single, sizeof(single));
  } else {
    std::memcpy(at, reinterpret_cast<const std::byte*>(&single) + 2, 2);
  }
}

using Group = std::vector<Part*>;  ///< of all ranks, in their order

/// Elements `first` and on of all inputs together.
std::vector<double> reduced(const Group& group, std::size_t first, std::size_t count) {
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      const Part& part = *group[rank];
      const double x = read(part.in + (first + i) * size_of(part.type), part.type);
      const bool sums = part.operation == ncclSum;
      out[i] = rank == 0 ? x : (sums ? out[i] + x : std::max(out[i], x));
    }
  }
  return out;
}

void reduce(const Group& group, bool scatters) {
  std::vector<std::vector<double>> results;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    results.push_back(reduced(group, scatters ? rank * group[rank]->count : 0, group[rank]->count));
  }
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const Part& part = *group[rank];
    for (std::size_t i = 0; i < part.count; ++i) {
      write(results[rank][i], part.out + i * size_of(part.type), part.type);
    }
  }
}

void gather(const Group& group) {
  for (const Part* to : group) {
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      const std::size_t bytes = group[rank]->count * size_of(group[rank]->type);
      std::memmove(to->out + rank * bytes, group[rank]->in, bytes);
    }
  }
}

void finish(const Group& group, double bytes) {
  double began = fake::now();
  for (const Part* part : group) began = std::max(began, part->stream->free_at);
  for (const Part* part : group) {
    part->stream->free_at = began;
    fake::work(*part->stream, fake::kCollectiveSeconds + bytes / fake::kLinkBytesPerSecond);
  }
}

bool is_moved(std::size_t bytes, bool fresh) {
  return bytes <= (fresh ? kMovedBytes : kAlwaysMoved);
}

void run_collective(const Group& group, bool fresh) {
  const Part& one = *group.front();
  const std::size_t whole = one.count * size_of(one.type);
  const auto bytes = static_cast<double>(whole), ranks = static_cast<double>(group.size());
  const bool small = is_moved(whole, fresh);
  if (one.kind == Kind::all_gather) {
    if (small) gather(group);
    finish(group, (ranks - 1) * bytes);
  } else {
    const bool scatters = one.kind == Kind::reduce_scatter;
    if (small) reduce(group, scatters);
    finish(group, (scatters ? ranks - 1 : 2 * (ranks - 1) / ranks) * bytes);
  }
}

/// Every receive takes the next that its peer sends to that rank.
void run_messages(Clique& clique, bool fresh) {
  Group all;
  double most = 0;
  for (auto& [rank, parts] : clique.parts) {
    double sent = 0, received = 0;
    std::map<int, std::size_t> taken;
    for (Part& part : parts) {
      all.push_back(&part);
      const std::size_t bytes = part.count * size_of(part.type);
      if (part.kind == Kind::send) {
        sent += static_cast<double>(bytes);
        continue;
      }
      std::vector<Part*> sends;
      for (Part& from : clique.parts[part.peer]) {
        if (from.kind == Kind::send && from.peer == rank) sends.push_back(&from);
      }
      received += static_cast<double>(bytes);
      const Part& from = *sends.at(taken[part.peer]++);
      require(from.count == part.count, "more is received than sent, or less");
      if (is_moved(bytes, fresh)) std::memmove(part.out, from.in, bytes);
    }
    most = std::max({most, sent, received});
  }
  finish(all, most);
}

void run_group(Clique& clique, bool fresh) {
  if (clique.parts.empty()) return;
  require(clique.parts.size() == clique.ranks, "a rank does not take part");
  const Kind kind = clique.parts.begin()->second.front().kind;
  if (kind == Kind::send || kind == Kind::receive) {
    run_messages(clique, fresh);
  } else {
    Group group;
    for (auto& [rank, parts] : clique.parts) group.push_back(&parts.front());
    run_collective(group, fresh);
  }
  clique.parts.clear();
}

ncclResult_t answer(const char* call) { return static_cast<ncclResult_t>(fake::fault(call)); }

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank;
};

namespace {

ncclResult_t queue(const char* call, ncclComm_t comm, const Part& part) {
  const ncclResult_t status = answer(call);
  if (status == ncclSuccess) comm->clique->parts[comm->rank].push_back(part);
  return status;
}

Part part_of(Kind kind, const void* in, void* out, std::size_t count, ncclDataType_t type,
             ncclRedOp_t operation, int peer, cudaStream_t stream) {
  return {kind,
          static_cast<const std::byte*>(in),
          static_cast<std::byte*>(out),
          count,
          type,
          operation,
          peer,
          reinterpret_cast<fake::Stream*>(stream)};
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = fake::setting("LOCKSTEP_FAKE_NCCL", 22809);
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "made-up error"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* out) {
  static std::uint64_t last = 0;
  *out = {};
  ++last;
  std::memcpy(out->internal, &last, sizeof(last));
  return answer("ncclGetUniqueId");
}
ncclResult_t ncclCommInitRank(ncclComm_t* out, int ranks, ncclUniqueId id, int rank) {
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  std::shared_ptr<Clique>& clique = cliques()[number];
  if (clique == nullptr) clique = std::make_shared<Clique>();
  clique->ranks = static_cast<std::size_t>(ranks);
  *out = new ncclComm{clique, rank};
  return answer("ncclCommInitRank");
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return answer("ncclCommDestroy");
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  delete comm;
  return answer("ncclCommAbort");
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = answer("ncclCommGetAsyncError");
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  const ncclResult_t status = answer("ncclGroupEnd");
  if (--depth == 0 && status == ncclSuccess) {
    const bool fresh = fake::take_pattern();
    for (const auto& [id, clique] : cliques()) run_group(*clique, fresh);
  }
  return status;
}
ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return queue("ncclAllReduce", comm,
               part_of(Kind::all_reduce, in, out, count, type, operation, 0, stream));
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return queue("ncclAllGather", comm,
               part_of(Kind::all_gather, in, out, count, type, ncclSum, 0, stream));
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return queue("ncclReduceScatter", comm,
               part_of(Kind::reduce_scatter, in, out, count, type, operation, 0, stream));
}
ncclResult_t ncclSend(const void* in, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return queue("ncclSend", comm,
               part_of(Kind::send, in, nullptr, count, type, ncclSum, peer, stream));
}
ncclResult_t ncclRecv(void* out, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return queue("ncclRecv", comm,
               part_of(Kind::receive, nullptr, out, count, type, ncclSum, peer, stream));
}
}
