// Ranks that were not recorded: copies in the place of the nearest one that was.
#include "sim/trace/copy_rank.hpp"

#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "tests/sim/trace/sample_traces.hpp"

namespace lockstep {
namespace {

constexpr std::uint64_t kCopiedPicosPerUs = 1'000'000;  // picoseconds

/// A rank of `world` that computes, and calls an all-reduce of each group.
RankTrace recorded_rank(int rank, int world, const std::vector<std::vector<int>>& groups) {
  RankTrace out;
  out.rank = rank;
  out.file = "rank" + std::to_string(rank) + ".json";
  out.world = world;
  RankTrace::Node& kernel = out.add(1, "gemm");
  kernel.duration = {100 * kCopiedPicosPerUs};
  kernel.stream = 0;
  std::uint64_t id = 2;
  for (const std::vector<int>& ranks : groups) {
    RankTrace::Node& call = out.add(id, "ncclDevKernel_AllReduce");
    call.kind = TraceNodeKind::collective;
    call.size = Bytes{1e6};
    call.duration = {40 * kCopiedPicosPerUs};
    call.group = out.group({"g", ranks, false});
    out.depends_on(1);
    ++id;
  }
  return out;
}

}  // namespace

TEST_CASE("copy_rank: groups are those in the same place, in blocks and in steps") {
  const RankTrace rank = recorded_rank(1, 8, {{0, 1}, {1, 3, 5, 7}, {0, 1, 2, 3}});
  const RankTrace copy = copy_rank(rank, 6, 8);
  CHECK(copy.groups[0].ranks == std::vector<int>{6, 7});
  CHECK(copy.groups[1].ranks == std::vector<int>{0, 2, 4, 6});
  CHECK(copy.groups[2].ranks == std::vector<int>{4, 5, 6, 7});
  CHECK(copy.rank == 6);
  CHECK(copy.unknown.calls == 0);
}

TEST_CASE("join: one rank of a job is replayed as all of it, and the output says so") {
  const Trace trace = join({recorded_rank(5, 8, {{4, 5}, {1, 5}})});
  CHECK(trace.ranks == 8);
  CHECK(trace.size() == 24);
  REQUIRE_FALSE(trace.repaired.empty());
  CHECK(trace.repaired.front() ==
        "1 of 8 ranks were recorded; each of the others is a copy of the nearest one that was, "
        "rank 5");
  // Every collective finds its partners.
  CHECK(test::replayed(trace, test::trace_cluster()).end > StepTime{100 * kCopiedPicosPerUs});
}

TEST_CASE("join: of several recorded ranks the nearest one is copied") {
  RankTrace last = recorded_rank(3, 4, {});
  last.nodes[0].duration = {300 * kCopiedPicosPerUs};
  std::vector<RankTrace> ranks;
  ranks.push_back(std::move(last));
  ranks.push_back(recorded_rank(0, 4, {}));
  const TraceReplay replay = test::replayed(join(std::move(ranks)), test::trace_cluster());
  REQUIRE(replay.ranks.size() == 4);
  CHECK(replay.ranks[1].compute == StepTime{100 * kCopiedPicosPerUs});
  CHECK(replay.ranks[2].compute == StepTime{300 * kCopiedPicosPerUs});
}

TEST_CASE("join: calls of groups that tile nothing, and messages, keep their recorded length") {
  RankTrace rank = recorded_rank(0, 6, {{0, 1, 3}});
  RankTrace::Node& send = rank.add(9, "ncclDevKernel_SendRecv");
  send.kind = TraceNodeKind::send;
  send.peer = 1;
  send.duration = {30 * kCopiedPicosPerUs};
  std::vector<RankTrace> ranks;
  ranks.push_back(std::move(rank));
  const Trace trace = join(std::move(ranks));
  std::size_t kept = 0, called = 0;
  for (const TraceNode& node : trace.nodes) {
    kept += node.kind == TraceNodeKind::exchange ? 1 : 0;
    called += node.kind == TraceNodeKind::collective ? 1 : 0;
  }
  CHECK(called == 3);    // ranks 0, 1 and 3 have the group
  CHECK(kept == 3 + 6);  // the others' calls, and everybody's message
  const TraceReplay replay = test::replayed(trace, test::trace_cluster());
  CHECK(replay.ranks[5].communication >= StepTime{40 * kCopiedPicosPerUs});
}

TEST_CASE("join: the only file of a job of one is the only rank, whatever its number") {
  std::vector<RankTrace> ranks;
  ranks.push_back(recorded_rank(7, 1, {}));
  const Trace trace = join(std::move(ranks));
  CHECK(trace.ranks == 1);
  CHECK(trace.repaired.empty());
}

TEST_CASE("join: more copies than fit are refused with the numbers") {
  RankTrace rank = recorded_rank(0, 999'999, {});
  for (std::uint64_t id = 10; id < 100; ++id) rank.add(id, "gemm");
  std::vector<RankTrace> ranks;
  ranks.push_back(std::move(rank));
  CHECK_THROWS_WITH_AS(join(std::move(ranks)),
                       "rank0.json: found 90999909 nodes in all 999999 ranks, of which 1 were "
                       "recorded; allowed: at most 50000000",
                       InputError);
}

}  // namespace lockstep
