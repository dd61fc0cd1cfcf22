#include "sim/serving/kv_shards.hpp"

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

/// What part i of `a` equal ones and part j of `b` have in common.
double overlap(int i, int a, int j, int b) {
  const auto at = [](int part, int of) { return static_cast<std::int64_t>(part) * of; };
  const std::int64_t common = std::min(at(i + 1, b), at(j + 1, a)) - std::max(at(i, b), at(j, a));
  return common > 0 ? static_cast<double>(common) / static_cast<double>(at(a, b)) : 0;
}

}  // namespace

std::vector<KvStream> kv_streams(const KvCut& from, const KvCut& to) {
  std::vector<KvStream> out;
  for (int f = 0; f < from.ranks(); ++f) {
    for (int t = 0; t < to.ranks(); ++t) {
      const double share = overlap(f / from.tensor, from.pipeline, t / to.tensor, to.pipeline) *
                           overlap(f % from.tensor, from.tensor, t % to.tensor, to.tensor);
      if (share > 0) out.push_back({f, t, share});
    }
  }
  return out;
}

BytesPerSecond kv_rate(const KvSide& from, const KvSide& to, double efficiency, bool joined) {
  const auto reaches = [&](const KvSide& side) {
    const double ranks = side.cut.ranks();
    if (joined && side.node.gpu.nvlink_bandwidth > BytesPerSecond{}) {
      return efficiency * ranks * side.node.gpu.nvlink_bandwidth;
    }
    const double nics = std::max(1.0, ranks * side.node.nics / side.node.gpus);
    return efficiency * nics * side.node.nic_bandwidth;
  };
  return std::min(reaches(from), reaches(to));
}

}  // namespace lockstep
