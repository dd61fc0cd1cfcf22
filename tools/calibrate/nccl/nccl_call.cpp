#include "tools/calibrate/nccl/nccl_call.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

ncclDataType_t type_of(PatternFormat format) {
  return format == PatternFormat::bf16 ? ncclBfloat16 : ncclFloat;
}

}  // namespace

const char* NcclCall::name() const {
  constexpr std::array kNames{"ncclAllReduce",   "ncclAllGather", "ncclReduceScatter",
                              "ncclSend to all", "ncclBroadcast", "ncclSend",
                              "ncclReduce"};
  return kNames[static_cast<std::size_t>(task_.op)];
}

std::size_t NcclCall::bytes() const { return static_cast<std::size_t>(task_.size.base_units()); }
std::size_t NcclCall::elements() const { return bytes() / bytes_of(form_.format()); }

/// NCCL takes an operation for one in place where a rank's share lies at its place in the whole.
std::byte* NcclCall::input(const LocalGpu& gpu) const {
  if (!form_.in_place) return gpu.sent->at(form_.offset);
  const bool gathers = task_.op == CollectiveOp::all_gather;
  const std::size_t place = gathers ? static_cast<std::size_t>(gpu.rank) * share() : 0;
  return gpu.received->at(form_.offset + place * bytes_of(form_.format()));
}
std::byte* NcclCall::result(const LocalGpu& gpu) const {
  const bool scatters = form_.in_place && task_.op == CollectiveOp::reduce_scatter;
  const std::size_t place = scatters ? static_cast<std::size_t>(gpu.rank) * share() : 0;
  return gpu.received->at(form_.offset + place * bytes_of(form_.format()));
}
std::size_t NcclCall::input_elements() const {
  return task_.op == CollectiveOp::all_gather ? share() : elements();
}

std::size_t NcclCall::share_for(int rank) const {
  if (!form_.uneven) return share();
  // Whole 16 bytes, as the shares of other operations.
  const std::size_t step = 16 / bytes_of(form_.format());
  const std::size_t even = elements() / (static_cast<std::size_t>(ranks_) + 1);
  const std::size_t unit = std::max<std::size_t>(1, even / step * step);
  return rank == 0 ? 2 * unit : unit;
}
std::size_t NcclCall::sent_before(int rank) const {
  std::size_t sum = 0;
  for (int r = 0; r < rank; ++r) sum += share_for(r);
  return sum;
}

ncclResult_t NcclCall::all_to_all(const NcclLibrary& nccl, const LocalGpu& gpu) const {
  const std::size_t element = bytes_of(form_.format());
  const ncclDataType_t type = type_of(form_.format());
  cudaStream_t stream = (gpu.*form_.stream).get();
  ncclComm_t comm = gpu.*form_.comm;
  const std::size_t own = share_for(gpu.rank);
  std::byte* in = input(gpu);
  std::byte* out = result(gpu);
  for (int peer = 0; peer < ranks_; ++peer) {
    const std::size_t count = share_for(peer);
    ncclResult_t status = nccl.send(in, count, type, peer, comm, stream);
    if (status == ncclSuccess) status = nccl.receive(out, own, type, peer, comm, stream);
    if (status != ncclSuccess) return status;
    in += count * element;
    out += own * element;
  }
  return ncclSuccess;
}

ncclResult_t NcclCall::start(const NcclLibrary& nccl, const LocalGpu& gpu) const {
  const void* const in = input(gpu);
  void* const out = result(gpu);
  const ncclDataType_t type = type_of(form_.format());
  cudaStream_t stream = (gpu.*form_.stream).get();
  ncclComm_t comm = gpu.*form_.comm;
  switch (task_.op) {
    case CollectiveOp::all_reduce:
      return nccl.all_reduce(in, out, elements(), type, ncclSum, comm, stream);
    case CollectiveOp::all_gather:
      return nccl.all_gather(in, out, share(), type, comm, stream);
    case CollectiveOp::reduce_scatter:
      return nccl.reduce_scatter(in, out, share(), type, ncclSum, comm, stream);
    case CollectiveOp::all_to_all:
      return all_to_all(nccl, gpu);
    case CollectiveOp::send_receive: {
      const ncclResult_t status = nccl.send(in, elements(), type, after(gpu.rank), comm, stream);
      if (status != ncclSuccess) return status;
      return nccl.receive(out, elements(), type, before(gpu.rank), comm, stream);
    }
    default:
      return ncclInvalidArgument;
  }
}

ExpectedPattern NcclCall::expected(int rank) const {
  const auto all = static_cast<std::int64_t>(elements());
  const auto part = static_cast<std::int64_t>(share());
  const auto block = static_cast<std::int64_t>(share_for(rank));
  double sum = 0;
  for (int r = 0; r < ranks_; ++r) sum += rank_part(r);
  const auto scale = static_cast<double>(ranks_);
  switch (task_.op) {
    case CollectiveOp::all_gather:
      return {.count = all, .block = part, .first = 0, .offset = 0, .scale = 1};
    case CollectiveOp::all_to_all:
      return {.count = block * ranks_,
              .block = block,
              .first = static_cast<std::int64_t>(sent_before(rank)),
              .offset = 0,
              .scale = 1};
    case CollectiveOp::reduce_scatter:
      return {.count = part, .block = 0, .first = rank * part, .offset = sum, .scale = scale};
    case CollectiveOp::send_receive:
      return {.count = all,
              .block = 0,
              .first = 0,
              .offset = static_cast<double>(rank_part(before(rank))),
              .scale = 1};
    default:
      return {.count = all, .block = 0, .first = 0, .offset = sum, .scale = scale};
  }
}

}  // namespace lockstep
