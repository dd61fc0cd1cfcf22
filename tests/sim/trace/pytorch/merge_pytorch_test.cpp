// Execution traces of PyTorch with the Kineto trace of their rank: what is taken from which, and
// that the merged trace takes as long as the recording.
#include "sim/trace/pytorch/merge_pytorch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/core/random.hpp"
#include "sim/trace/formats/read_trace.hpp"
#include "sim/trace/pytorch/operator_work.hpp"
#include "tests/sim/trace/pytorch/recorded_pair.hpp"
#include "tests/sim/trace/sample_traces.hpp"

namespace lockstep {
namespace {

using test::PairTensor;
using test::RecordedPair;
using test::replayed;
using test::trace_cluster;

constexpr std::uint64_t kMicrosecond = 1'000'000;  // picoseconds

RankTrace merged(const RecordedPair& pair, int rank = 0) {
  return merge_pytorch(read_execution_trace("et.json", pair.operators()),
                       read_kineto_recording("kineto.json", pair.kineto(), true), rank);
}

/// When nodes of a name started, in microseconds, in the order of nodes.
std::vector<double> starts_of(const Trace& trace, const TraceReplay& replay,
                              std::string_view name) {
  std::vector<double> out;
  for (std::uint32_t n = 0; n < trace.size(); ++n) {
    if (trace.strings[trace.names[n]] == name) {
      out.push_back(static_cast<double>(replay.starts[n].ps) / kMicrosecond);
    }
  }
  return out;
}

/// Forward and backward pass on two threads and two streams, and the loss read by the host.
RecordedPair one_step(bool old) {
  RecordedPair pair(0, old);
  pair.op("aten::copy_", 0, 20, {{10, {256}}}, {{10, {256}}});
  pair.kernel("Memcpy HtoD (Pinned -> Device)", 5, 30, 40.5, 20);
  pair.op("aten::mm", 30, 25, {{10, {16, 16}}, {11, {16, 32}}}, {{12, {16, 32}}});
  pair.kernel("sm90_gemm", 40, 71.25, 300, 7);  // waits for the copy on the other stream
  pair.op("aten::relu", 60, 10, {{12, {16, 32}}}, {{13, {16, 32}}});
  pair.kernel("vectorized_elementwise", 65, 371.75, 12, 7);
  const int backward =
      pair.op("autograd::engine::evaluate_function: MmBackward0", 90, 40, {}, {}, 2, 200);
  pair.op("aten::mm", 95, 20, {{13, {32, 16}}, {12, {16, 32}}}, {{14, {32, 32}}}, backward, 200);
  pair.kernel("sm90_gemm", 100, 384, 2500.125, 7, "", 200);
  // The main thread goes on after the backward pass, and reads the loss.
  pair.op("aten::item", 1500, 1400, {{14, {1}}}, {});
  pair.kernel("Memcpy DtoH (Device -> Pinned)", 1510, 2884.5, 1.5, 7);
  pair.call("cudaStreamSynchronize", 1520, 1369);
  return pair;
}

}  // namespace

TEST_CASE("merge_pytorch: the trace of one rank takes as long as the recording, kernel by kernel") {
  for (const bool old : {false, true}) {
    const Trace trace = join({merged(one_step(old))});
    const TraceReplay replay =
        replayed(trace, trace_cluster(), {.collectives = {}, .record_times = true});
    CHECK(replay.end == StepTime{2900 * kMicrosecond});
    CHECK(starts_of(trace, replay, "sm90_gemm") == std::vector<double>{71.25, 384});
    CHECK(starts_of(trace, replay, "vectorized_elementwise") == std::vector<double>{371.75});
    CHECK(starts_of(trace, replay, "Memcpy DtoH (Device -> Pinned)") ==
          std::vector<double>{2884.5});
    REQUIRE(trace.repaired.size() == 1);
    CHECK(trace.repaired[0].starts_with("3 dependencies that the files do not have"));
  }
}

TEST_CASE("merge_pytorch: whatever two threads and three streams did, it takes as long again") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    RandomStream random(StreamName{.seed = seed});
    const auto below = [&](double limit) { return std::floor(random.uniform() * limit * 8) / 8; };
    RecordedPair pair;
    std::array<double, 2> host{0, below(3000)};
    std::array<double, 3> stream{};
    double last = 0;
    for (int i = 0; i < 30; ++i) {
      const auto thread = static_cast<std::size_t>(below(2)),
                 s = static_cast<std::size_t>(below(3));
      const int number = 100 + static_cast<int>(thread);
      double& now = host[thread];
      // Some gaps are longer than the millisecond after which threads wait for each other.
      now += below(i % 7 == 0 ? 2500 : 20);
      const auto tensor = [&] { return PairTensor{10 + static_cast<int>(below(5)), {16, 16}}; };
      pair.op("aten::mm", now, 12, {tensor(), tensor()}, {tensor()}, 2, number);
      // Some kernels begin before the one before them has ended, or before their launch.
      const double start = std::max(stream[s] - below(2), now + below(40) - 1);
      const double took = below(400);
      pair.kernel("k", now + 2, start, took, static_cast<int>(s), "", number);
      stream[s] = std::max(stream[s], start + took);
      now += 13;
      if (i % 5 == 4) {
        const double waits = std::max(stream[s] - now, 0.0) + 1 + below(5);
        pair.call(i % 2 == 0 ? "cudaStreamSynchronize" : "cudaDeviceSynchronize", now, waits,
                  number);
        now += waits;
      }
      last = std::max({last, now, stream[s]});
    }
    CAPTURE(seed);
    const Trace trace = join({merged(pair)});
    CHECK(replayed(trace, trace_cluster()).end.ps ==
          static_cast<std::uint64_t>(std::llround((last - pair.first()) * kMicrosecond)));
  }
}

TEST_CASE("merge_pytorch: host, streams, tensors and synchronisations carry a change on") {
  Trace trace = join({merged(one_step(false))});
  const auto slowed = [&](std::string_view name, double micros) {
    Trace copy = trace;
    for (std::uint32_t n = 0; n < copy.size(); ++n) {
      if (copy.strings[copy.names[n]] == name) {
        copy.nodes[n].duration += StepTime{static_cast<std::uint64_t>(micros * 1e6)};
      }
    }
    return static_cast<double>(replayed(copy, trace_cluster()).end.ps) / kMicrosecond;
  };
  CHECK(slowed("vectorized_elementwise", 100) == doctest::Approx(3000));  // stream, then host
  CHECK(slowed("Memcpy HtoD (Pinned -> Device)", 100) == doctest::Approx(3000));  // by its tensor
  CHECK(slowed("sm90_gemm", 10) == doctest::Approx(2920));                        // two of them
}

TEST_CASE("merge_pytorch: collectives are the operator's, and only their tensors' users wait") {
  constexpr int kElements = 500'000;
  for (const bool old : {false, true}) {
    std::vector<RankTrace> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      RecordedPair pair(rank, old);
      if (!old) pair.groups(R"([{\"pg_name\": \"7\", \"ranks\": [0, 1], \"group_size\": 2}])");
      pair.op("aten::mm", 0, 10, {{10, {16, 16}}, {11, {16, 16}}}, {{20, {16, 16}}});
      pair.kernel("gemm_a", 2, 10, 100, 7);
      pair.all_reduce(20, {20, {kElements}}, "7", 2);
      pair.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 28, 115, 4000, 20);
      pair.op("aten::mm", 60, 10, {{10, {16, 16}}, {11, {16, 16}}}, {{21, {16, 16}}});
      pair.kernel("gemm_b", 62, 115, 5, 7);
      pair.op("aten::add_", 80, 10, {{20, {16, 16}}}, {{20, {16, 16}}});
      pair.kernel("elementwise", 82, 4116, 10, 7);
      ranks.push_back(merged(pair, rank));
    }
    const Trace trace = join(std::move(ranks));
    REQUIRE(trace.collectives.size() == 1);
    CHECK(trace.collectives[0].op == CollectiveOp::all_reduce);
    CHECK(trace.collectives[0].payload == Bytes{2.0 * kElements});
    CHECK(trace.groups == std::vector<std::vector<int>>{{0, 1}});
    const Cluster cluster = trace_cluster();
    const TraceReplay replay = replayed(trace, cluster, {.collectives = {}, .record_times = true});
    const double reduce =
        collective_time({.op = CollectiveOp::all_reduce,
                         .payload = Bytes{2.0 * kElements},
                         .ranks = 2,
                         .ranks_per_node = 2},
                        cluster.node.gpu, cluster.transport, cluster.node.nic_bandwidth)
            .base_units() *
        1e6;
    CHECK(starts_of(trace, replay, "gemm_b") == std::vector<double>{115, 115});
    // After the sum at the model's price instead of the recorded 4 ms, and the recorded
    // microsecond.
    CHECK(starts_of(trace, replay, "elementwise")[1] == doctest::Approx(116 + reduce));
  }
}

TEST_CASE("merge_pytorch: a recorded event orders two streams") {
  RecordedPair pair;
  pair.op("aten::mm", 0, 10, {{10, {16, 16}}, {11, {16, 16}}}, {{12, {16, 16}}});
  pair.kernel("gemm_a", 2, 10, 100, 7);
  const int record = pair.call("cudaEventRecord", 12, 1);
  const int wait = pair.call("cudaStreamWaitEvent", 14, 1);
  pair.event("cuda_sync", "Stream Wait Event", 14, 0, 20,
             fmt::format(R"("cuda_sync_kind": "Stream Wait Event", "stream": 20,)"
                         R"( "correlation": {}, "wait_on_stream": 7,)"
                         R"( "wait_on_cuda_event_record_corr_id": {})",
                         wait, record));
  pair.op("aten::mm", 20, 10, {{10, {16, 16}}, {11, {16, 16}}}, {{13, {16, 16}}});
  pair.kernel("gemm_b", 22, 112, 50, 20);
  Trace trace = join({merged(pair)});
  CHECK(replayed(trace, trace_cluster()).end == StepTime{162 * kMicrosecond});
  for (TraceNode& node : trace.nodes) {
    if (node.duration == StepTime{100 * kMicrosecond}) node.duration = {300 * kMicrosecond};
  }
  CHECK(replayed(trace, trace_cluster()).end == StepTime{362 * kMicrosecond});
}

TEST_CASE("merge_pytorch: kernels without operators and operators without kernels are counted") {
  RecordedPair pair;
  pair.op("aten::mm", 0, 10, {{10, {16, 16}}, {11, {16, 16}}}, {{12, {16, 16}}});
  pair.kernel("gemm", 2, 10, 100, 7);
  pair.op("aten::bmm", 20, 10, {{10, {2, 16, 16}}, {11, {2, 16, 16}}}, {{12, {2, 16, 16}}});
  pair.event("kernel", "lost", 120, 5, 7, R"("stream": 7)");
  const Trace trace = join({merged(pair)});
  REQUIRE(trace.repaired.size() == 3);
  CHECK(trace.repaired[1] == "1 of 2 kernels without an operator: they keep their recorded times");
  CHECK(trace.repaired[2] ==
        "1 products and collectives without a kernel, which are left out; the first is node 4 "
        "(\"aten::bmm\") of rank 0");
  // FLOPs and bytes of the product, for what-ifs.
  REQUIRE(trace.works.size() == 2);
  CHECK(trace.works[1] == TraceWork{Flops{2.0 * 16 * 16 * 16}, Bytes{3.0 * 16 * 16 * 2}});
}

TEST_CASE("operator_flops: products as torch.utils.flop_counter counts them") {
  struct StreamRow {
    const char* name;
    std::vector<TensorShape> inputs, outputs;
    double flops;  // 0: not known
  };
  const TensorShape heads_first{2, 3, 10, 8}, heads_second{2, 10, 3, 8}, keys{2, 20, 3, 8};
  const std::vector<StreamRow> rows{
      {"aten::mm", {{4, 5}, {5, 6}}, {{4, 6}}, 2.0 * 4 * 5 * 6},
      {"aten::addmm", {{6}, {4, 5}, {5, 6}}, {{4, 6}}, 2.0 * 4 * 5 * 6},
      {"aten::bmm", {{3, 4, 5}, {3, 5, 6}}, {{3, 4, 6}}, 2.0 * 3 * 4 * 5 * 6},
      {"aten::mm", {{4, 5}, {7, 6}}, {{4, 6}}, 0},
      {"aten::mm", {{4, 5}}, {}, 0},
      {"aten::cudnn_convolution",
       {{2, 8, 9, 9}, {4, 8, 3, 3}},
       {{2, 4, 7, 7}},
       2.0 * 2 * 4 * 7 * 7 * 8 * 3 * 3},
      {"aten::convolution_backward",
       {{2, 4, 7, 7}, {2, 8, 9, 9}, {4, 8, 3, 3}},
       {},
       2 * 2.0 * 2 * 4 * 7 * 7 * 8 * 3 * 3},
      {"aten::_flash_attention_forward", {heads_second, keys, keys}, {}, 4.0 * 2 * 3 * 10 * 20 * 8},
      {"aten::_scaled_dot_product_cudnn_attention",
       {heads_first, heads_first, heads_first},
       {},
       4.0 * 2 * 3 * 10 * 10 * 8},
      {"aten::_flash_attention_backward",
       {heads_second, heads_second, keys, keys},
       {},
       2.5 * 4.0 * 2 * 3 * 10 * 20 * 8},
      {"aten::relu", {{4, 5}}, {{4, 5}}, 0}};
  for (const StreamRow& row : rows) {
    CAPTURE(row.name);
    CHECK(operator_flops(row.name, row.inputs, row.outputs).value_or(Flops{}) == Flops{row.flops});
  }
}

TEST_CASE("read_execution_trace, merge_pytorch: a mistake names the node or what to record") {
  const auto trace_of = [](const std::string& nodes) {
    return R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "", "start_ts": 3, "nodes": [)" +
           nodes + "]}";
  };
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {trace_of(""),
       "et.json: found no node; allowed: an execution trace of PyTorch "
       "(torch.profiler.ExecutionTraceObserver)"},
      {trace_of(R"({"name": "aten::mm", "inputs": {}})"),
       R"(et.json: found a node ("aten::mm") without a number; allowed: an execution trace of )"
       R"(PyTorch (torch.profiler.ExecutionTraceObserver))"},
      {trace_of(R"({"id": 7, "name": "aten::mm", "inputs": {"values": [1], "shapes": []}})"),
       R"(et.json: found node 7 ("aten::mm") with 1 values, 0 shapes and 0 types of its inputs; )"
       "allowed: as many of each"},
      {trace_of(R"({"id": 7, "name": "a", "inputs": []}, {"id": 7, "name": "b", "inputs": []})"),
       R"(et.json: found node 7 ("a") twice; allowed: each number once)"}};
  for (const auto& [text, line] : mistakes) {
    CHECK(recognise_trace(text) == TraceFormat::pytorch);
    CHECK_THROWS_WITH_AS((void)read_execution_trace("et.json", text), line.c_str(), InputError);
  }
  const std::string apart = one_step(false).operators();
  CHECK_THROWS_WITH_AS(
      (void)read_trace_file("et.json", apart, TraceFormat::pytorch, true,
                            {.gpu = {}, .groups = {}}),
      "et.json: found an execution trace of PyTorch without the Kineto trace of its rank; allowed: "
      "both of each rank, recorded over the same steps by torch.profiler.profile("
      "execution_trace_observer=ExecutionTraceObserver().register_callback(FILE)) and "
      "export_chrome_trace(FILE)",
      InputError);
  const ExecutionTrace other =
      read_execution_trace("et.json", trace_of(R"({"id": 7, "name": "a", "inputs": []})"));
  const KinetoRecording kineto = read_kineto_recording("k.json", one_step(false).kineto(), true);
  CHECK_THROWS_WITH_AS(
      (void)merge_pytorch(other, kineto, 0),
      "et.json: found no operator of the 5 kernels in k.json; allowed: both recorded over the same "
      "steps: torch.profiler.profile(execution_trace_observer="
      "ExecutionTraceObserver().register_callback(FILE))",
      InputError);
}

TEST_CASE("pair_pytorch: by ranks, or the only two") {
  const auto operators = [](const std::string& file) {
    return ExecutionTrace{.file = file, .operators = {}, .calls = {}, .groups = {}};
  };
  const auto kineto = [](const std::string& file, std::optional<int> rank) {
    KinetoRecording out;
    out.file = file;
    out.rank = rank;
    return out;
  };
  const std::vector<ExecutionTrace> two{operators("et_1.json"), operators("et_0.json.gz")};
  const std::vector<KinetoRecording> both{kineto("host_77.pt.trace.json", 0),
                                          kineto("kineto_1.json", std::nullopt)};
  const std::vector<PytorchPair> pairs = pair_pytorch(two, both);
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].operators == 1);
  CHECK(pairs[1].operators == 0);
  CHECK(pairs[1].rank == 1);
  const std::vector<KinetoRecording> only{kineto("host_77.pt.trace.json", std::nullopt)};
  CHECK(pair_pytorch(std::span(two).first(1), only)[0].rank == 0);
  CHECK_THROWS_AS((void)pair_pytorch(two, only), InputError);
}

}  // namespace lockstep
