// Workloads of SimAI and AICB: order, groups and sizes of what they say, and the line that a broken
// file gets.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/trace/formats/read_aicb.hpp"
#include "sim/trace/formats/read_simai.hpp"
#include "sim/trace/formats/read_trace.hpp"
#include "tests/sim/trace/sample_traces.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

using test::replayed;
using test::trace_cluster;

const std::string kHead =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 2 ga: 1 "
    "all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0\n";

std::string workload_mistake(const std::string& text) {
  try {
    (void)read_trace_file("w", text, recognise_trace(text), true,
                          {.gpu = trace_cluster().node.gpu, .groups = {}});
  } catch (const InputError& error) {
    return error.what();
  }
  return "no mistake";
}

double cost_of(CollectiveOp op, double bytes, int ranks) {
  const Cluster cluster = trace_cluster();
  return collective_time(
             {.op = op, .payload = Bytes{bytes}, .ranks = ranks, .ranks_per_node = ranks},
             cluster.node.gpu, cluster.transport, cluster.node.nic_bandwidth)
      .base_units();
}

double seconds_of(std::vector<RankTrace> ranks) {
  return to_seconds(replayed(std::move(ranks), trace_cluster()).end).base_units();
}

}  // namespace

TEST_CASE("read_simai: without exchanges a step is the sum of its layers, on every rank") {
  const std::string text = kHead + "2\na -1 100000 NONE 0 20000 NONE 0 3000 NONE 0 100\n" +
                           "b\t-1\t400000\tNONE\t0\t50000 NONE 7 6000 ALLREDUCE 0 100";
  REQUIRE(recognise_trace(text) == TraceFormat::simai);
  std::vector<RankTrace> ranks = read_simai("w", text, 0);
  REQUIRE(ranks.size() == 4);
  CHECK(ranks[3].rank == 3);
  CHECK(seconds_of(std::move(ranks)) == test::near(579e-6));
}

TEST_CASE("read_simai: an exchange is waited for as ASTRA-sim's passes do it") {
  const auto step = [](const std::string& layer) {
    return seconds_of(read_simai("w", kHead + "1\n" + layer, 0));
  };
  constexpr double kBytes = 4e8;
  const double tensor = cost_of(CollectiveOp::all_reduce, kBytes, 2);
  REQUIRE(tensor > 200e-6);
  // Forward: at once. Of the input's gradients: beside the kernel of the weights.
  CHECK(step("a -1 1000 ALLREDUCE 400000000 1000 NONE 0 1000 NONE 0 0") ==
        test::near(3e-6 + tensor).epsilon(1e-6));
  CHECK(step("a -1 1000 NONE 0 1000 ALLREDUCE 400000000 100000 NONE 0 0") ==
        test::near(2e-6 + tensor).epsilon(1e-6));
  // Of the weights: among ranks 0 and 2, then the update.
  CHECK(step("a -1 1000 NONE 0 1000 NONE 0 1000 ALLREDUCE 400000000 500000") ==
        test::near(3e-6 + tensor + 500e-6).epsilon(1e-6));
}

TEST_CASE("read_simai: groups are in Megatron's order") {
  const std::string text =
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 2 pp: 2 all_gpus: 16\n1\n"
      "a -1 1 ALLTOALL_EP 8 1 ALLGATHER 8 1 REDUCESCATTER_DP_EP 8 0\n";
  const std::vector<RankTrace> ranks = read_simai("w", text, 0);
  REQUIRE(ranks.size() == 16);
  const RankTrace& rank = ranks[13];
  std::vector<std::vector<int>> groups;
  for (const RankTrace::Node& node : rank.nodes) {
    if (node.kind == TraceNodeKind::collective) groups.push_back(rank.groups[node.group].ranks);
  }
  CHECK(groups == std::vector<std::vector<int>>{{13, 15}, {12, 13}, {9, 13}});
  CHECK(rank.groups[1].ranks == std::vector<int>{9, 11, 13, 15});  // data
  CHECK_FALSE(rank.nodes[1].payload_of_rank);
}

TEST_CASE("read_simai: layers with a checkpoint repeat their forward passes") {
  const std::string layer = " -1 1000 NONE 0 10 NONE 0 10 NONE 0 0\n";
  const std::string head =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 all_gpus: 1 checkpoints: 2 0 2 "
      "checkpoint_initiates: 2 1 3\n4\n";
  const std::string text = head + "a" + layer + "b" + layer + "c" + layer + "d" + layer;
  // Forward passes of a for b, and of c for d, once more.
  CHECK(seconds_of(read_simai("w", text, 0)) == test::near(6 * 1e-6 + 8 * 10e-9).epsilon(1e-9));
}

TEST_CASE("read_simai: a file that does not say how many ranks takes those of the cluster") {
  const std::string text =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: 1 checkpoints: 0\n1\n"
      "a -1 1000 NONE 0 1000 ALLGATHER 400000000 1000 NONE 0 0\n";
  CHECK(read_simai("w", text, 8).size() == 8);
  // Without tensor parallelism it gathers weights, from all.
  CHECK(seconds_of(read_simai("w", text, 8)) ==
        test::near(2e-6 + cost_of(CollectiveOp::all_gather, 4e8, 8)).epsilon(1e-6));
  CHECK(workload_mistake(text) ==
        "w: found no all_gpus in the first line; allowed: a number of ranks: all_gpus: N there, or "
        "--nodes N, whose GPUs it then is of");
}

TEST_CASE("read_simai: a mistake names the line") {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"HYBRID_TRANSFORMER_X ep: 1\n", "w:1: found \"HYBRID_TRANSFORMER_X\"; allowed: "},
      {"HYBRID_TRANSFORMER ep: none\n", "w:1: found \"none\"; allowed: ep:, a whole number up to "},
      {kHead + "two\n", "w:2: found \"two\"; allowed: the number of layers, a whole number"},
      {kHead + "1\na -1 1 NONE 0 1 NONE 0 1 NONE 0\n",
       "w:3: found \"0\"; allowed: layer 1 of 1 in "},
      {kHead + "2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n",
       "w:3: found no more; allowed: layer 2 of "},
      {kHead + "1\na -1 1 ALLREDUCE_PP 8 1 NONE 0 1 NONE 0 0\n",
       "w:3: found \"ALLREDUCE_PP\"; allowed: NONE, ALLREDUCE"},
      {kHead + "1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 0\nb\n",
       "w:4: found \"b\"; allowed: no more than the 1 layers"},
      {kHead + "1\na -1 9999999999999999 NONE 0 1 NONE 0 1 NONE 0 0\n",
       "w:3: found \"9999999999999999\"; allowed: ns, a whole number up to 864000000000000"},
      {"HYBRID_TRANSFORMER model_parallel_NPU_group: 3 all_gpus: 4\n1\n"
       "a -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n",
       "w: found 4 ranks; allowed: a multiple of 3 (tensor 3 x expert 1 x pipeline 1)"},
      {"HYBRID_TRANSFORMER all_gpus: 900000\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n",
       "w: found 20700000 calls and kernels of all ranks; allowed: at most 10000000"}};
  for (const auto& [text, line] : mistakes) {
    const std::string found = workload_mistake(text);
    CHECK_MESSAGE(found.starts_with(line), found);
  }
}

namespace {

constexpr const char* kColumns =
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"
    "busbw,count\n";

std::string call_row(const std::string& type, const std::string& group, int members,
                     const std::string& size, const std::string& additional = "",
                     const std::string& elapsed = "None") {
  return fmt::format("CommType.{},CommGroup.{},{},{},s,None,None,{},{},None,None,1\n", type, group,
                     members, size, additional, elapsed);
}
const std::string kEpochEnd = "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n";

}  // namespace

TEST_CASE("read_aicb: the last whole epoch is a step, call after call") {
  const std::string text = std::string("[rank0 ~ rank7]\n") + kColumns +
                           call_row("broadcast", "dp_group", 4, "262144000") + kEpochEnd +
                           call_row("all_reduce", "tp_group", 2, "400000000") +
                           call_row("all_gather", "dp_group", 4, "80000000") +
                           call_row("computation", "None", 1, "\"((2, 3), (3, 4))\"", "", "5000") +
                           kEpochEnd + call_row("all_reduce", "tp_group", 2, "99");
  REQUIRE(recognise_trace(text) == TraceFormat::aicb);
  std::vector<RankTrace> ranks = read_aicb("w", text, trace_cluster().node.gpu);
  REQUIRE(ranks.size() == 8);
  REQUIRE(ranks[5].nodes.size() == 3);
  CHECK(ranks[5].groups[0].ranks == std::vector<int>{4, 5});
  CHECK(ranks[5].groups[1].ranks == std::vector<int>{1, 3, 5, 7});
  CHECK(seconds_of(std::move(ranks)) ==
        test::near(5e-6 + cost_of(CollectiveOp::all_reduce, 4e8, 2) +
                   cost_of(CollectiveOp::all_gather, 8e7, 4))
            .epsilon(1e-6));
}

TEST_CASE("read_aicb: stages send to their neighbours, the first and last to one of them") {
  const auto section = [](const std::string& ranks) {
    return "[ " + ranks + " ]\n" + kColumns + call_row("irecv", "pp_group", 2, "8", "recv_prev") +
           call_row("isend", "pp_group", 2, "8", "send_next") +
           call_row("irecv", "pp_group", 2, "8", "recv_next") +
           call_row("isend", "pp_group", 2, "8", "send_prev");
  };
  const std::string text =
      section("pp_stage0: [rank0, rank1]") + section("pp_stage1: [rank2, rank3]");
  std::vector<RankTrace> ranks = read_aicb("w", text, trace_cluster().node.gpu);
  REQUIRE(ranks.size() == 4);
  for (const auto& [rank, peer] : {std::pair{1, 3}, {3, 1}}) {
    const RankTrace& of = ranks[static_cast<std::size_t>(rank)];
    REQUIRE(of.nodes.size() == 2);
    CHECK(of.nodes[0].peer == peer);
    CHECK(of.nodes[1].peer == peer);
  }
  CHECK(ranks[1].nodes[0].kind == TraceNodeKind::send);
  CHECK(ranks[3].nodes[0].kind == TraceNodeKind::receive);
  CHECK(replayed(std::move(ranks), trace_cluster()).messages == 4);
}

TEST_CASE("read_aicb: a product without a time takes what the card's peak allows") {
  const GpuSpec& gpu = trace_cluster().node.gpu;
  const std::string text = std::string("[rank0 ~ rank0]\n") + kColumns +
                           call_row("computation", "None", 1, "\"((4096, 8192), (8192, 4096))\"");
  const std::vector<RankTrace> ranks = read_aicb("w", text, gpu);
  REQUIRE(ranks[0].nodes.size() == 1);
  CHECK(ranks[0].nodes[0].flops == Flops{2.0 * 4096 * 8192 * 4096});
  CHECK(ranks[0].nodes[0].size == Bytes{2.0 * (2.0 * 4096 * 8192 + 4096.0 * 4096)});
  CHECK(to_seconds(ranks[0].nodes[0].duration).base_units() ==
        test::near(2.0 * 4096 * 8192 * 4096 / gpu.peak_bf16.base_units()).epsilon(1e-6));
}

TEST_CASE("read_aicb: a mistake names the ranks and the row") {
  const std::string head = std::string("[rank0 ~ rank3]\n") + kColumns;
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {head + call_row("all_magic", "tp_group", 2, "8"),
       "w (ranks 0 to 3), row 1: found comm_type \"all_magic\"; allowed: a CommType of AICB"},
      {head + call_row("all_reduce", "tp_group", 3, "8"),
       "w (ranks 0 to 3), row 1: found \"tp_group\" of 3 ranks, 1 apart; allowed: groups that "
       "tile"},
      {head + call_row("all_reduce", "tp_group", 2, "many"),
       "w (ranks 0 to 3), row 1: found msg_size \"many\"; allowed: whole bytes"},
      {head + call_row("isend", "pp_group", 2, "8"),
       "w (ranks 0 to 3), row 1: found isend with additional \"\"; allowed: send_next"},
      {"[rank1 ~ rank3]\n" + std::string(kColumns),
       "w (ranks 1 to 3): found 3 ranks from 1 on; allowed: stages of equally many ranks"},
      {std::string("[rank0, rank2]\n") + kColumns,
       "w: found \"[rank0, rank2]\"; allowed: ranks that follow each other"},
      {kColumns + call_row("all_reduce", "tp_group", 2, "8"), "w: found \"comm_type,comm_group"}};
  for (const auto& [text, line] : mistakes) {
    const std::string found = workload_mistake(text);
    CHECK_MESSAGE(found.starts_with(line), found);
  }
}

TEST_CASE("is_tar: an archive is known by its magic") {
  std::string bytes(512, '\0');
  CHECK_FALSE(is_tar(bytes));
  bytes.replace(257, 5, "ustar");
  CHECK(is_tar(bytes));
}

}  // namespace lockstep
