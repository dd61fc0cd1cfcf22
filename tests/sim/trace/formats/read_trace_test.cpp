// What each format says, read into the same trace, and the line that a broken file gets.
#include "sim/trace/formats/read_trace.hpp"

#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/trace/formats/read_kineto.hpp"
#include "sim/trace/formats/write_chakra.hpp"
#include "tests/sim/trace/sample_traces.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

using test::replayed;
using test::trace_cluster;

constexpr std::uint64_t kMicro = 1'000'000;  // picoseconds

const TraceReadOptions& h100() {
  static const TraceReadOptions options{.gpu = trace_cluster().node.gpu, .groups = {}};
  return options;
}

std::string read_mistake(const std::string& file, const std::string& text) {
  try {
    (void)read_trace_file(file, text, recognise_trace(text), true, h100());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no mistake";
}

/// A node of protobuf's JSON mapping, as MessageToJson writes it.
std::string json_node(int id, const std::string& type, const std::string& rest) {
  return fmt::format(R"({{"id": "{}", "name": "n{}", "type": "{}"{}}})", id, id, type, rest);
}
std::string attributes(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string out;
  for (const auto& [name, value] : values) {
    out += fmt::format(R"({}{{"name": "{}", {}}})", out.empty() ? "" : ", ", name, value);
  }
  return R"(, "attr": [)" + out + "]";
}
std::string int64(const std::string& value) { return R"("int64Val": ")" + value + "\""; }

/// Two ranks that compute for 100 us, reduce 1 MB with each other and compute for 50 us.
std::string chakra_json_rank() {
  return R"({"version": "0.0.4"})"
         "\n" +
         json_node(0, "METADATA_NODE",
                   R"(, "inputs": {"values": "['[{\"pg_name\": \"7\", \"ranks\": [0, 1]}]']"})") +
         "\n" +
         json_node(
             1, "COMP_NODE",
             R"(, "durationMicros": "100")" + attributes({{"is_cpu_op", R"("boolVal": false)"}})) +
         "\n" +
         json_node(2, "COMM_COLL_NODE",
                   R"(, "dataDeps": ["1"])" + attributes({{"comm_type", int64("0")},
                                                          {"comm_size", int64("1000000")},
                                                          {"pg_name", R"("stringVal": "7")"}})) +
         "\n" + json_node(3, "COMP_NODE", R"(, "ctrlDeps": ["2"], "durationMicros": "50")") + "\n";
}

}  // namespace

TEST_CASE(
    "read_chakra_json: objects one after another, in an array and in \"nodes\" are the same") {
  const std::string lines = chakra_json_rank();
  std::string list;
  for (const char c : lines) list += c == '\n' ? ',' : c;
  list.pop_back();
  for (const std::string& text :
       {lines, "[" + list + "]",
        R"({"schema": "x", "nodes": [)" + list.substr(list.find("{\"id")) + "]}"}) {
    std::vector<RankTrace> ranks;
    for (int r = 0; r < 2; ++r) ranks.push_back(read_chakra_json("t", r, text, h100()));
    const Trace trace = join(std::move(ranks));
    CHECK(trace.size() == 8);
    const TraceReplay replay = replayed(trace, trace_cluster());
    const Cluster cluster = trace_cluster();
    const Seconds reduce = collective_time(
        {.op = CollectiveOp::all_reduce, .payload = Bytes{1e6}, .ranks = 2, .ranks_per_node = 2},
        cluster.node.gpu, cluster.transport, cluster.node.nic_bandwidth);
    CHECK(to_seconds(replay.end).base_units() ==
          test::near(150e-6 + reduce.base_units()).epsilon(1e-6));
  }
}

TEST_CASE("read_chakra: what was written in protobuf is read back") {
  std::vector<RankTrace> ranks;
  for (int r = 0; r < 2; ++r) ranks.push_back(read_chakra_json("t", r, chakra_json_rank(), h100()));
  const Trace trace = join(std::move(ranks));
  TraceReadOptions options = h100();
  options.groups = read_trace_groups("comm_groups.json", write_trace_groups(trace));
  std::vector<RankTrace> again;
  for (int r = 0; r < 2; ++r) {
    const std::string bytes = write_chakra(trace, r);
    CHECK(recognise_trace(bytes) == TraceFormat::chakra);
    again.push_back(read_chakra("t", r, bytes, options));
  }
  const Trace back = join(std::move(again));
  CHECK(back.groups == trace.groups);
  CHECK(back.collectives == trace.collectives);
  CHECK(replayed(back, trace_cluster()).end == replayed(trace, trace_cluster()).end);
}

TEST_CASE("read_chakra: work of the host and copies are read back as what they were") {
  constexpr std::array kKinds{TraceNodeKind::compute, TraceNodeKind::memory, TraceNodeKind::host,
                              TraceNodeKind::exchange, TraceNodeKind::delay};
  RankTrace rank;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    RankTrace::Node& node = rank.add(i, "n");
    node.kind = kKinds[i];
    node.duration = {1000 * (i + 1)};
  }
  const Trace back = join({read_chakra("t", 0, write_chakra(join({rank}), 0), h100())});
  REQUIRE(back.size() == kKinds.size());
  for (std::uint32_t i = 0; i < kKinds.size(); ++i) {
    CHECK(back.nodes[i].kind == kKinds[i]);
    CHECK(back.nodes[i].duration == StepTime{1000 * (i + std::uint64_t{1})});
  }
}

TEST_CASE(
    "read_chakra_json: the keys of converters of 2023, whose collectives say only their length") {
  const std::string text = R"({"workload_graph": [
    {"Id": 216, "Name": "aten::flatten", "NodeType": 4, "runtime": 318, "data_deps": [],
     "is_cpu_op": true},
    {"Id": 430, "Name": "CatArrayBatchedCopy", "NodeType": 4, "data_deps": [216], "runtime": 4,
     "is_cpu_op": false},
    {"Id": 435, "Name": "ncclKernel_Broadcast", "NodeType": 7, "data_deps": [430], "runtime": 70,
     "is_cpu_op": false}]})";
  CHECK(recognise_trace(text) == TraceFormat::chakra_json);
  const Trace trace = join({read_chakra_json("t", 0, text, h100())});
  REQUIRE(trace.size() == 3);
  CHECK(trace.nodes[0].kind == TraceNodeKind::host);
  CHECK(trace.nodes[2].kind == TraceNodeKind::exchange);
  CHECK(replayed(trace, trace_cluster()).end == StepTime{392 * kMicro});
  REQUIRE(trace.repaired.size() == 1);
  CHECK(trace.repaired[0].starts_with("1 kernel of communication at"));
}

TEST_CASE("read_chakra: field numbers are those of the published schema") {
  // Two nodes byte by byte: GlobalMetadata {version "1"}; Node {id 3, name "a", type COMP_NODE,
  // start 5, duration 100}; Node {id 4, name "b", type COMM_SEND_NODE, ctrl_deps [3], data_deps
  // [3], attr comm_size int64 9, comm_dst int32 1, comm_tag uint32 2}.
  const std::string size(
      "\x0a\x09"
      "comm_size"
      "\x48\x09",
      13);
  const std::string dst(
      "\x0a\x08"
      "comm_dst"
      "\x38\x01",
      12);
  const std::string tag(
      "\x0a\x08"
      "comm_tag"
      "\x58\x02",
      12);
  std::string send(
      "\x08\x04\x12\x01"
      "b"
      "\x18\x05\x22\x01\x03\x2a\x01\x03",
      13);
  for (const std::string& attribute : {size, dst, tag}) {
    send += '\x52';
    send += static_cast<char>(attribute.size());
    send += attribute;
  }
  std::string bytes(
      "\x03\x0a\x01"
      "1"
      "\x0b\x08\x03\x12\x01"
      "a"
      "\x18\x04\x30\x05\x38\x64",
      16);
  bytes += static_cast<char>(send.size());
  bytes += send;
  const RankTrace rank = read_chakra("t", 0, bytes, h100());
  REQUIRE(rank.nodes.size() == 2);
  CHECK(rank.nodes[0].id == 3);
  CHECK(rank.nodes[0].duration == StepTime{100 * kMicro});
  CHECK(rank.nodes[1].kind == TraceNodeKind::send);
  CHECK(rank.nodes[1].size == Bytes{9});
  CHECK(rank.nodes[1].peer == 1);
  CHECK(rank.nodes[1].tag == 2);
  CHECK(rank.dependencies == std::vector<std::uint64_t>{3, 3});
}

TEST_CASE("read_chakra: wherever a file is cut, it is an error of one line or a shorter trace") {
  std::vector<RankTrace> ranks;
  ranks.push_back(read_chakra_json(
      "t", 0, json_node(1, "COMP_NODE", "") + json_node(2, "COMP_NODE", R"(, "dataDeps": ["1"])"),
      h100()));
  const std::string bytes = write_chakra(join(std::move(ranks)), 0);
  int whole = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    try {
      whole += read_chakra("t", 0, bytes.substr(0, length), h100()).nodes.empty() ? 0 : 1;
    } catch (const InputError& error) {
      CHECK(std::string(error.what()).find("a Chakra trace") != std::string::npos);
    }
  }
  CHECK(whole == 1);  // after the first of two nodes
  CHECK(read_mistake("t.0.et", bytes.substr(0, bytes.size() - 1)).find("more than are left") !=
        std::string::npos);
}

TEST_CASE("read_chakra: nodes of one stream run in the order of their starts, and this is said") {
  const auto kernel = [](int id, int start) {
    return json_node(id, "COMP_NODE",
                     fmt::format(R"(, "startTimeMicros": "{}", "durationMicros": "10")", start) +
                         attributes({{"stream", int64("7")}}));
  };
  const Trace trace =
      join({read_chakra_json("t", 0, kernel(1, 30) + kernel(2, 10) + kernel(3, 20), h100())});
  const TraceReplay replay =
      replayed(trace, trace_cluster(), {.collectives = {}, .record_times = true});
  CHECK(replay.starts == std::vector<StepTime>{{20 * kMicro}, {0}, {10 * kMicro}});
  REQUIRE(trace.repaired.size() == 1);
  CHECK(trace.repaired[0].starts_with("2 dependencies"));
}

TEST_CASE("read_chakra: without a duration a kernel follows the GPU's roofline, a copy PCIe") {
  const GpuSpec& gpu = h100().gpu;
  const auto duration = [](const std::string& type, const std::string& operations,
                           const std::string& bytes) {
    const std::string text = json_node(
        1, type, attributes({{"num_ops", int64(operations)}, {"tensor_size", int64(bytes)}}));
    return to_seconds(read_chakra_json("t", 0, text, h100()).nodes[0].duration).base_units();
  };
  CHECK(duration("COMP_NODE", "1000000000000", "8") ==
        test::near(1e12 / gpu.peak_bf16.base_units()));
  CHECK(duration("COMP_NODE", "8", "1000000000") ==
        test::near(1e9 / gpu.hbm_bandwidth.base_units()));
  CHECK(duration("MEM_LOAD_NODE", "0", "1000000000") ==
        test::near(1e9 / gpu.pcie_bandwidth.base_units()));
  // What-ifs on another GPU know them as well.
  const Trace trace = join({read_chakra_json(
      "t", 0, json_node(1, "COMP_NODE", attributes({{"num_ops", int64("7")}})), h100())});
  REQUIRE(trace.works.size() == 2);
  CHECK(trace.works[trace.nodes[0].subject] == TraceWork{Flops{7}, Bytes{0}});
}

TEST_CASE("read_chakra: a mistake names the node, what was found and what is allowed") {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {json_node(4, "GUESS_NODE", ""),
       R"(t.0.json: found node 4 ("n4") with type 0; allowed: a type of et_def.proto, 1 )"
       R"((METADATA_NODE) to 10 (CHECKPOINT_NODE))"},
      {json_node(4, "COMM_COLL_NODE", attributes({{"comm_type", int64("77")}})),
       R"(t.0.json: found node 4 ("n4") with comm_type 77; allowed: a CollectiveCommType of )"
       R"(et_def.proto, 0 (ALL_REDUCE) to 9 (BARRIER))"},
      {json_node(4, "COMM_COLL_NODE", attributes({{"comm_type", int64("0")}})),
       R"(t.0.json: found node 4 ("n4") with no attribute comm_size; allowed: communication with )"
       R"(that)"},
      {json_node(4, "COMM_SEND_NODE",
                 attributes({{"comm_size", int64("-1")}, {"comm_dst", int64("1")}})),
       R"(t.0.json: found node 4 ("n4") with comm_size -1; allowed: 0 to 1000000000000000)"},
      {json_node(4, "COMM_COLL_NODE",
                 attributes({{"comm_type", int64("0")},
                             {"comm_size", int64("5")},
                             {"pg_name", R"("stringVal": "dp")"}})),
       R"(t.0.json: found process group "dp" without ranks; allowed: groups that a )"
       R"(process_group:init node or the file of --groups lists)"},
      {R"({"id": 1, "type": "COMP_NODE")",
       "t.0.json: found a text that ends within an object; allowed: a whole Chakra trace in JSON"}};
  for (const auto& [text, line] : mistakes) CHECK(read_mistake("t.0.json", text) == line);
}

TEST_CASE("read_goal: labels, tags, comments and both kinds of dependencies") {
  const std::vector<RankTrace> ranks = read_goal("plan.goal", R"(// a schedule
num_ranks 2
rank 0 {
l1: calc 100 cpu 0
l2: calc 50 cpu 1
l3: send 10b to 1 tag 5 cpu 1 nic 0
l2 irequires l1
l3 requires l2
}
/* the
   other */
rank 1 { r: recv 10b from 0 tag 5; calc 7; })");
  REQUIRE(ranks.size() == 2);
  CHECK(ranks[0].nodes[1].stream == 1);
  CHECK(ranks[0].nodes[1].dependencies == 0);  // l1 waits for nothing
  CHECK(ranks[0].dependencies == std::vector<std::uint64_t>{2});
  CHECK(ranks[0].nodes[2].tag == 5);
  CHECK(ranks[1].nodes[0].kind == TraceNodeKind::receive);
  CHECK(ranks[1].nodes[1].duration == StepTime{7000});
}

TEST_CASE("read_goal: a mistake names the line") {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"num_ranks 1\nrank 0 {\nl1: wait 5\n}",
       R"(p.goal:3: found "wait"; allowed: calc, send or recv)"},
      {"num_ranks 1\nrank 0 {\ncalc 1e30\ncalc 5\n}",
       R"(p.goal:3: found "1e30"; allowed: the time in nanoseconds, a whole number up to )"
       R"(864000000000000)"},
      {"num_ranks 1\nrank 0 {\nl1\ncalc 5\n}",
       R"(p.goal:3: found "l1"; allowed: calc, send or recv; or a label and then ":", requires or )"
       "irequires"},
      {"num_ranks 1\nrank 0 {\nl1: calc 5\nl1 requires l2\ncalc 5\n}",
       R"(p.goal:4: found label "l2"; allowed: labels of operations above, in the same rank)"},
      {"num_ranks 1\nrank 0 {\nl1 requires l2\n}",
       R"(p.goal:3: found label "l1"; allowed: labels of operations above, in the same rank)"},
      {"num_ranks 2\nrank 0 {\n}", "p.goal: found 1 rank; allowed: the 2 that num_ranks says"},
      {"num_ranks 1\nrank 0 {\ncalc 99999999999999999999\n}",
       R"(p.goal:3: found "99999999999999999999"; allowed: the time in nanoseconds, a whole )"
       R"(number up to 864000000000000)"},
      {"num_ranks 1\nrank 0 {\nrecv 5b from -1\n}",
       R"(p.goal:3: found "-"; allowed: the sender, one rank, a whole number up to 999999)"},
      {"num_ranks 1\nrank 0 {\ncalc 5",
       R"(p.goal:3: found the end; allowed: "}" at the end of the rank)"}};
  for (const auto& [text, line] : mistakes) CHECK(read_mistake("p.goal", text) == line);
}

namespace {

std::string kineto_kernel(const std::string& name, double start, double took, int stream,
                          const std::string& args = "") {
  return fmt::format(R"(, {{"ph": "X", "cat": "kernel", "name": "{}", "ts": {}, "dur": {}, )"
                     R"("args": {{"stream": {}{}}}}})",
                     name, start, took, stream, args);
}
/// A product, an all-reduce beside another one, and a kernel that needs the sum.
std::string kineto_rank(int rank) {
  constexpr const char* kCall =
      R"(, "Collective name": "allreduce", "In msg nelems": 500000, "Out msg nelems": 500000,)"
      R"( "dtype": "BFloat16", "Group size": 2, "Process Group Name": "0",)"
      R"( "Process Group Ranks": "[0, 1]")";
  return fmt::format(R"({{"distributedInfo": {{"rank": {}, "world_size": 2}}, "traceEvents": [)"
                     R"({{"ph": "M", "name": "process_name"}})",
                     rank) +
         kineto_kernel("gemm_a", 1000, 100, 7) +
         kineto_kernel("ncclDevKernel_AllReduce", 1105, 400, 20, kCall) +
         kineto_kernel("gemm_b", 1100, 150, 7) + kineto_kernel("layer_norm", 1515, 10, 7) + "]}";
}

}  // namespace

TEST_CASE("read_kineto: streams keep their order, communication its place, the host its gaps") {
  std::vector<RankTrace> ranks;
  for (int r = 0; r < 2; ++r) {
    const std::string text = kineto_rank(r);
    CHECK(recognise_trace(text) == TraceFormat::kineto);
    ranks.push_back(read_kineto("trace.json", std::nullopt, text));
  }
  const TraceReplay replay = replayed(std::move(ranks), trace_cluster());
  const Cluster cluster = trace_cluster();
  const double reduce =
      collective_time(
          {.op = CollectiveOp::all_reduce, .payload = Bytes{1e6}, .ranks = 2, .ranks_per_node = 2},
          cluster.node.gpu, cluster.transport, cluster.node.nic_bandwidth)
          .base_units();
  REQUIRE(reduce > 0);
  // gemm_a, 5 us of the host, the sum at the model's price instead of the recorded 400 us, 10 us of
  // the host, the norm; gemm_b is beside the sum or longer than it.
  const double sum_done = 105e-6 + reduce, product_done = 250e-6;
  const double expected = std::max(sum_done, product_done) + 10e-6 + 10e-6;
  CHECK(to_seconds(replay.end).base_units() == test::near(expected).epsilon(1e-6));
}

TEST_CASE("read_kineto: a long list of ranks that was cut goes on in its steps") {
  const std::string text = R"({"distributedInfo": {"rank": 8}, "traceEvents": [{"ph": "M"})" +
                           kineto_kernel("ncclDevKernel_AllGather", 1, 1, 20,
                                         R"(, "Collective name": "_allgather_base",)"
                                         R"( "In msg nelems": 1, "Out msg nelems": 64,)"
                                         R"( "dtype": "Float", "Group size": 64,)"
                                         R"( "Process Group Ranks": "[0, 8, 16, ...]")") +
                           "]}";
  const RankTrace rank = read_kineto("t", std::nullopt, text);
  REQUIRE(rank.groups.size() == 1);
  CHECK(rank.groups[0].ranks.size() == 64);
  CHECK(rank.groups[0].ranks.back() == 504);
  CHECK(rank.nodes[0].size == Bytes{256});
}

namespace {

/// A kernel of NCCL of group "3", of four ranks of eight, and what is told of its ranks.
std::string grouped_kernel(const std::string& ranks, const std::string& groups) {
  return R"({"distributedInfo": {"rank": 0, "world_size": 8)" + groups +
         R"(}, "traceEvents": [{"ph": "M"})" +
         kineto_kernel("ncclDevKernel_AllReduce", 1, 1, 20,
                       R"(, "Collective name": "allreduce", "In msg nelems": 8, )"
                       R"("Out msg nelems": 8, "dtype": "Float8_e4m3fnuz", "Group size": 4, )"
                       R"("Process Group Name": "3")" +
                           ranks) +
         "]}";
}

}  // namespace

TEST_CASE("read_kineto: ranks that a call does not say are those of its process group") {
  const std::string groups =
      R"([{"pg_name": "0", "pg_size": 8, "ranks": []}, {"pg_name": "3", "ranks": [0, 1, 4, 7]}])";
  const std::string as_list = R"(, "pg_config": )" + groups;
  std::string quoted;
  for (const char c : groups) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
  const std::string as_text = R"(, "pg_config": ")" + quoted + "\"";
  const std::vector<std::pair<std::string, std::string>> told{
      {R"(, "Process Group Ranks": "[0, 1, 4, 7]")", ""},
      {R"(, "Process Group Ranks": [0, 1, 4, 7])", ""},
      {"", as_list},
      {"", as_text},
      {R"(, "Process Group Ranks": "[0, 1, ...]")", as_list}};
  for (const auto& [ranks, config] : told) {
    CAPTURE(ranks);
    CAPTURE(config);
    const RankTrace rank = read_kineto("t", 0, grouped_kernel(ranks, config));
    REQUIRE(rank.groups.size() == 1);
    CHECK(rank.groups[0].ranks == std::vector{0, 1, 4, 7});
    CHECK(rank.nodes[0].size == Bytes{8});
  }
  // Four of eight, and nothing says which: not all of them.
  const RankTrace untold = read_kineto("t", 0, grouped_kernel("", ""));
  CHECK(untold.nodes[0].kind == TraceNodeKind::exchange);
  // A world of two beside a group of four.
  const RankTrace world = read_kineto(
      "t", 0,
      R"({"distributedInfo": {"rank": 1, "world_size": 2, "pg_config": [{"pg_name": "0", )"
      R"("pg_size": 4, "ranks": [0, 1, 2, 3]}]}, "traceEvents": [{"ph": "M"})" +
          kineto_kernel("gemm", 1, 1, 7) + "]}");
  CHECK(world.world == 4);
}

TEST_CASE("read_kineto: a call that its kernel does not tell is that of its record") {
  const auto trace = [](std::string_view record) {
    return R"({"distributedInfo": {"rank": 0, "world_size": 8}, "traceEvents": [{"ph": "X", )"
           R"("cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 9, "tid": 3, )"
           R"("args": {)" +
           std::string(record) +
           R"(}}, {"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "ts": 2, )"
           R"("dur": 5, "tid": 3, "args": {"Input Dims": [[6]], "Input type": ["float"]}}, )"
           R"({"ph": "X", "cat": "xpu_runtime", "name": "hipLaunchKernel", "ts": 4, "dur": 1, )"
           R"("tid": 3, "args": {"correlation": 9}})" +
           kineto_kernel("ncclDevKernel_Generic", 10, 7, 20, R"(, "correlation": 9)") + "]}";
  };
  const RankTrace told = read_kineto(
      "t", 0,
      trace(R"("Collective name": "_allgather_base", "In msg nelems": 2, "Out msg nelems": 8, )"
            R"("dtype": "Half", "Group size": 4, "Process Group Ranks": "[0, 2, 4, 6]")"));
  REQUIRE(told.nodes.size() == 1);
  CHECK(told.nodes[0].op == CollectiveOp::all_gather);
  CHECK(told.nodes[0].size == Bytes{16});
  CHECK(told.groups[0].ranks == std::vector{0, 2, 4, 6});
  CHECK(told.notes.size() == 1);  // none of ranges
  // Without a word of the call, the range says it.
  CHECK(read_kineto("t", 0, trace("")).nodes[0].size == Bytes{24});
}

TEST_CASE("read_kineto: kernels of libraries that exchange without NCCL keep their length") {
  for (const char* name :
       {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(RankData*)",
        "deep_ep::intranode::dispatch<8, 768>",
        "flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot"}) {
    CAPTURE(name);
    const RankTrace rank = read_kineto(
        "t", 0, R"({"traceEvents": [{"ph": "M"})" + kineto_kernel(name, 1, 1, 7) + "]}");
    CHECK(rank.nodes[0].kind == TraceNodeKind::exchange);
  }
  CHECK_FALSE(is_communication_kernel("triton_red_fused_reduce_scatter_mm"));
}

TEST_CASE("read_kineto: cards of one process have streams of their own") {
  // The same stream number on two cards, side by side: neither waits for the other.
  const std::string text = R"({"traceEvents": [{"ph": "M"})" +
                           kineto_kernel("gemm", 0, 100, 7, R"(, "device": 0)") +
                           kineto_kernel("gemm", 10, 100, 7, R"(, "device": 1)") + "]}";
  const RankTrace rank = read_kineto("t", 0, text);
  CHECK(rank.repaired == 0);
  CHECK(replayed({rank}, trace_cluster()).end == StepTime{110 * kMicro});
}

TEST_CASE("read_kineto: strings that JSON does not have, and a mark of byte order") {
  const std::string text =
      "\xEF\xBB\xBF"
      R"({"traceEvents": [{"ph": "X", "cat": "python_function", )"
      R"("name": "C:\x)"
      "\t\xE9"
      R"(\train.py"})" +
      kineto_kernel("gemm", 0, 100, 7) + "]}";
  CHECK(recognise_trace(text) == TraceFormat::kineto);
  CHECK(read_kineto("t", 0, text).nodes.size() == 1);
}

TEST_CASE("read_kineto: a mistake names the kernel") {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {R"({"traceEvents": []})",
       "t.0.json: found no kernel; allowed: a trace of the PyTorch profiler (export_chrome_trace) "
       "with GPU kernels"},
      {R"({"traceEvents": [)",
       "t.0.json: found a text that is no JSON from line 1, column 18; allowed: a trace of the "
       "PyTorch profiler (export_chrome_trace) with GPU kernels"},
      {R"({"traceEvents": [{"ph": "M"}, {"name": "no event"})" + kineto_kernel("gemm", 0, -1, 7) +
           "]}",
       "t.0.json#/traceEvents/2: found \"gemm\" without times; allowed: \"ts\" and \"dur\" in "
       "microseconds"}};
  for (const auto& [text, line] : mistakes) CHECK(read_mistake("t.0.json", text) == line);
}

TEST_CASE("read_kineto: a list of events alone, its end there or missing, is a trace") {
  const std::string events = R"([{"ph": "M"})" + kineto_kernel("gemm", 0, 1000, 7) +
                             kineto_kernel("layer_norm", 1010, 50, 7);
  for (const char* end : {"]", " ]\n", "", ",\n"}) {
    CAPTURE(end);
    const std::string text = "\n" + events + end;
    CHECK(recognise_trace(text) == TraceFormat::kineto);
    const RankTrace rank = read_kineto("t.json", 0, text);
    CHECK(rank.nodes.size() ==
          read_kineto("t.json", 0, R"({"traceEvents": )" + events + "]}").nodes.size());
    CHECK(replayed({rank}, trace_cluster()).end == StepTime{1060 * kMicro});
  }
  CHECK(read_mistake("t.0.json", R"([{"ph": "M"})" + kineto_kernel("gemm", 0, -1, 7) + "]") ==
        "t.0.json#/1: found \"gemm\" without times; allowed: \"ts\" and \"dur\" in microseconds");
  CHECK(recognise_trace(R"([{"id": 1, "name": "p"}])") == TraceFormat::chakra_json);
}

TEST_CASE("read_kineto: NCCL's kernels without a call keep their recorded length and are counted") {
  const std::string text = R"({"traceEvents": [{"ph": "M"})" + kineto_kernel("gemm", 0, 1000, 7) +
                           kineto_kernel("ncclKernel_AllReduce_RING_LL", 1000, 200, 20) +
                           kineto_kernel("ncclDevKernel_Generic", 1300, 100, 20,
                                         R"(, "Collective name": "allreduce", "dtype": "Float")") +
                           kineto_kernel("gemm", 1400, 50, 7) + "]}";
  const Trace trace = join({read_kineto("t.json", 0, text)});
  const TraceReplay replay = replayed(trace, trace_cluster());
  CHECK(replay.end == StepTime{1450 * kMicro});
  CHECK(replay.ranks[0].communication == StepTime{300 * kMicro});
  CHECK(
      trace.repaired.back() ==
      R"(2 kernels of communication at the recorded length, waits for other ranks in it: )"
      R"(0.3 ms of each rank on average; the first is "ncclKernel_AllReduce_RING_LL" without its )"
      R"(collective's name)");
}

namespace {

/// Rank 0 of `world`: a kernel of NCCL whose launch lies in a range of torch.distributed.
std::string called_kernel(const std::string& kernel, const std::string& range, int world) {
  const std::string host =
      R"(, {"ph": "X", "cat": "user_annotation", "name": ")" + range +
      R"(", "ts": 1, "dur": 5, "tid": 3, "args": {"Input Dims": [[6, 1000]], )"
      R"("Input type": ["float"]}})"
      R"(, {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 4, "dur": 1, )"
      R"("tid": 3, "args": {"correlation": 9}})";
  return R"({"distributedInfo": {"rank": 0, "world_size": )" + std::to_string(world) +
         R"(}, "traceEvents": [{"ph": "M"})" + host +
         kineto_kernel(kernel, 10, 7, 20, R"(, "correlation": 9)") + "]}";
}

}  // namespace

TEST_CASE(
    "read_kineto: a call that its kernel does not tell is that of the range around the launch") {
  const RankTrace reduce =
      read_kineto("t", 0, called_kernel("ncclKernel_AllReduce_RING", "nccl:all_reduce", 8));
  REQUIRE(reduce.nodes.size() == 1);
  CHECK(reduce.nodes[0].kind == TraceNodeKind::collective);
  CHECK(reduce.nodes[0].size == Bytes{24000});
  CHECK(reduce.groups[0].all);
  REQUIRE_FALSE(reduce.notes.empty());
  CHECK(reduce.notes[0].find("so all 8 take part") != std::string::npos);
  const RankTrace gather = read_kineto(
      "t", 0, called_kernel("ncclDevKernel_Generic(Storage)", "nccl:_all_gather_base", 8));
  CHECK(gather.nodes[0].size == Bytes{8 * 24000});
  // Another kind of kernel than the range says: it keeps its recorded length.
  const RankTrace other =
      read_kineto("t", 0, called_kernel("ncclKernel_SendRecv_RING", "nccl:all_reduce", 8));
  CHECK(other.nodes[0].kind == TraceNodeKind::exchange);
  const RankTrace alone =
      read_kineto("t", 0, called_kernel("ncclKernel_AllReduce_RING", "nccl:all_reduce", 1));
  CHECK(alone.nodes[0].kind == TraceNodeKind::exchange);
}

TEST_CASE("match: an all-to-all may have sizes of its own, and the largest counts") {
  const auto rank = [](int number, const char* op, double bytes) {
    RankTrace trace;
    trace.rank = number;
    RankTrace::Node& node = trace.add(1, op);
    node.kind = TraceNodeKind::collective;
    node.op = op == std::string("all_to_all") ? CollectiveOp::all_to_all : CollectiveOp::all_reduce;
    node.size = Bytes{bytes};
    node.group = trace.group({"g", {0, 1}, false});
    return trace;
  };
  const Trace uneven = join({rank(0, "all_to_all", 1e6), rank(1, "all_to_all", 3e6)});
  const TraceMatches matches = match(uneven);
  CHECK(uneven.collectives[matches.calls.at(0).collective].payload == Bytes{3e6});
  CHECK_THROWS_AS(match(join({rank(0, "all_reduce", 1e6), rank(1, "all_reduce", 3e6)})),
                  InputError);
  CHECK_THROWS_AS(match(join({rank(0, "all_reduce", 1e6), rank(1, "all_to_all", 1e6)})),
                  InputError);
}

TEST_CASE("read_kineto: a stream that begins late begins as late again") {
  const std::string text = R"({"traceEvents": [{"ph": "M"})" + kineto_kernel("gemm_a", 0, 1000, 7) +
                           kineto_kernel("gemm_b", 101000, 1000, 8) + "]}";
  const Trace trace = join({read_kineto("t.json", 0, text)});
  CHECK(trace.recorded == StepTime{102'000 * kMicro});
  CHECK(replayed(trace, trace_cluster()).end == trace.recorded);
}

TEST_CASE("read_kineto: what ran one after the other on two streams does so on any card") {
  // 10 ms on one stream, 10 on another, and 5 of the first again, with a gap of the host before it.
  const std::string text =
      R"({"traceEvents": [{"ph": "M"})" + kineto_kernel("gemm_a", 0, 10'000, 7) +
      kineto_kernel("gemm_b", 10'000, 10'000, 8) + kineto_kernel("gemm_c", 21'000, 5'000, 7) + "]}";
  for (const std::uint64_t times : {1U, 2U, 5U}) {
    CAPTURE(times);
    RankTrace rank = read_kineto("t.json", 0, text);
    for (RankTrace::Node& node : rank.nodes) {
      if (node.kind == TraceNodeKind::compute) node.duration.ps *= times;
    }
    const Trace trace = join({std::move(rank)});
    CHECK(replayed(trace, trace_cluster()).end == StepTime{(25'000 * times + 1'000) * kMicro});
  }
}

TEST_CASE("read_kineto: who needs communication that was hidden is not told, and both are known") {
  // Hidden behind the first product when it was recorded; here it takes longer than both.
  constexpr const char* kCall =
      R"(, "Collective name": "allreduce", "In msg nelems": 500000000,)"
      R"( "Out msg nelems": 500000000, "dtype": "BFloat16", "Group size": 2,)"
      R"( "Process Group Name": "0", "Process Group Ranks": "[0, 1]")";
  std::vector<RankTrace> hidden, alone;
  for (int r = 0; r < 2; ++r) {
    const std::string begin = fmt::format(
        R"({{"distributedInfo": {{"rank": {}, "world_size": 2}}, "traceEvents": [{{"ph": "M"}})",
        r);
    const std::string call = kineto_kernel("ncclDevKernel_AllReduce", 0, 50, 20, kCall);
    hidden.push_back(read_kineto("t", std::nullopt,
                                 begin + kineto_kernel("gemm_a", 0, 100, 7) +
                                     kineto_kernel("gemm_b", 100, 100, 7) + call +
                                     kineto_kernel("gemm_c", 200, 100, 7) + "]}"));
    alone.push_back(read_kineto("t", std::nullopt, begin + call + "]}"));
  }
  const StepTime reduce = replayed(std::move(alone), trace_cluster()).end;
  REQUIRE(reduce > StepTime{300 * kMicro});
  const Trace trace = join(std::move(hidden));
  CHECK(replayed(trace, trace_cluster()).end == reduce);
  // The second product is the first that can have needed it.
  CHECK(trace.possible_waits.size() == 2);
  CHECK(replayed(with_possible_waits(trace), trace_cluster()).end ==
        reduce + StepTime{200 * kMicro});
}

TEST_CASE("read_kineto: whatever computes on however many streams, it takes as long again") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    // SplitMix64, for numbers that are the same everywhere.
    std::uint64_t state = seed;
    const auto draw = [&](std::uint64_t below) {
      std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
      z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
      z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
      return (z ^ (z >> 31U)) % below;
    };
    std::string text = R"({"traceEvents": [{"ph": "M"})";
    const std::uint64_t streams = 1 + draw(6);
    for (std::uint64_t i = 0; i < 40; ++i) {
      // Kernels of one stream may overlap, begin together, or take no time.
      text += kineto_kernel(i % 7 == 3 ? "Memcpy" : "gemm", static_cast<double>(draw(5000)),
                            static_cast<double>(draw(400)), static_cast<int>(draw(streams)));
    }
    const Trace trace = join({read_kineto("t.json", 0, text + "]}")});
    const TraceReplay replay = replayed(trace, trace_cluster());
    CHECK(replay.end == trace.recorded);
    CHECK(replay.end > StepTime{});
  }
}

TEST_CASE("read_kineto: numbers that JSON lacks are passed over") {
  const std::string text = R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "NaN, nan", )"
                           R"("args": {"a": NaN, "b": [-Infinity, -nan, inf]}})" +
                           kineto_kernel("gemm", 5, 10, 7) + "]}";
  CHECK(read_kineto("t.json", 0, text).nodes.size() == 1);
}

TEST_CASE("kineto_rank_in_name: behind the word, digits of the model and the card are none") {
  CHECK(kineto_rank_in_name("traces/rank3_mi300x.json.gz", false) == 3);
  CHECK(kineto_rank_in_name("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", true) == 34);
  CHECK(kineto_rank_in_name("host_worker_2.1074.json", false) == 2);
  CHECK(kineto_rank_in_name("timesformer-h100.json.gz", true) == 0);
  CHECK(kineto_rank_in_name("kineto_5.json", false) == 5);
  CHECK(kineto_rank_in_name("kineto.json", false) == std::nullopt);
}

TEST_CASE("read_trace_file: an empty file is called that") {
  CHECK_THROWS_WITH_AS((void)read_trace_file("t.0.et", " \n", TraceFormat::chakra, true, {}),
                       "t.0.et: found an empty file; allowed: a trace: a profiler's, Chakra's, a "
                       "schedule in GOAL, a workload of SimAI or AICB",
                       InputError);
}

TEST_CASE("rank_in_name: the last number before the endings") {
  CHECK(rank_in_name("traces/step.12.et") == 12);
  CHECK(rank_in_name("rank3_kineto.0007.pt.trace.json.gz") == 7);
  CHECK(rank_in_name("rank_5.json") == 5);
  CHECK(rank_in_name("dir7/trace.et") == std::nullopt);
}

}  // namespace lockstep
