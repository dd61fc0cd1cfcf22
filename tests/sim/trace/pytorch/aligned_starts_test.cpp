// Ranks whose clocks start with their own recordings are laid on one by the ends of their calls.
#include "sim/trace/pytorch/aligned_starts.hpp"

#include <doctest/doctest.h>
#include <vector>

namespace lockstep {
namespace {

constexpr std::int64_t kMilli = 1'000'000'000;  // picoseconds

/// A kernel up to `begins`, then calls that end at these times, in milliseconds of the rank's
/// clock.
KinetoRecording clocked(std::int64_t begins, const std::vector<std::int64_t>& ends) {
  KinetoRecording out;
  out.names = {"gemm", "nccl"};
  out.gpu.push_back({.start = 0, .end = begins * kMilli});
  for (const std::int64_t end : ends) {
    KinetoRecording::GpuEvent call{.start = begins * kMilli, .end = end * kMilli, .name = 1};
    call.call = static_cast<std::uint32_t>(out.calls.size());
    out.calls.emplace_back();
    out.gpu.push_back(call);
    begins = end;
  }
  out.ranged_calls.resize(out.calls.size());
  out.end = (ends.empty() ? begins : ends.back()) * kMilli;
  return out;
}

}  // namespace

TEST_CASE("align_starts: a rank begins as much later as its calls end earlier on its clock") {
  std::vector<KinetoRecording> ranks{clocked(5, {20, 40, 100}), clocked(5, {13, 33, 93}),
                                     clocked(5, {22, 42, 102})};
  CHECK(align_starts(ranks) ==
        "ranks begin up to 9 ms apart, as the ends of their calls tell, which they leave together; "
        "the recorded and the replayed step are the longest that a rank takes from its own "
        "beginning to its own end");
  CHECK(ranks[0].gpu[0].start == 2 * kMilli);
  CHECK(ranks[1].gpu[0].start == 9 * kMilli);
  CHECK(ranks[2].gpu[0].start == 0);
  CHECK(ranks[0].begin == 2 * kMilli);
  CHECK(ranks[1].begin == 9 * kMilli);
  CHECK(ranks[2].begin == 0);
  for (const KinetoRecording& rank : ranks) {
    CHECK(rank.gpu[1].end == 22 * kMilli);
    CHECK(rank.end == 102 * kMilli);
  }
}

TEST_CASE("align_starts: nothing moves where calls are not the same, or there are none") {
  for (std::vector<KinetoRecording> ranks :
       {std::vector{clocked(5, {20, 40, 100}), clocked(5, {20, 60, 80})},
        {clocked(5, {20, 40, 100}), clocked(5, {20, 40})},
        {clocked(5, {}), clocked(9, {})},
        {clocked(5, {20}), clocked(9, {20})},
        {clocked(5, {20})}}) {
    CHECK(align_starts(ranks).empty());
    for (const KinetoRecording& rank : ranks) CHECK(rank.gpu[0].start == 0);
  }
}

}  // namespace lockstep
