// lockstep import nccl-tests. The logs are made up; their form is that of the versions named.
#include "sim/measured/import_nccl.hpp"

#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/nccl_log.hpp"
#include "sim/scenario/read_profile.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::presets;

// nccl-tests 2.13 to 2.16 under mpirun, two hosts of two GPUs.
constexpr std::string_view kTwoHosts =
    R"(mpirun -np 4 -N 2 /opt/nccl-tests/build/all_reduce_perf -b 1M -e 4M -f 2 -g 1
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor)
#
# Using devices
#  Rank  0 Group  0 Pid   6899 on node-one device  0 [0x04] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   6900 on node-one device  1 [0x05] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid   6733 on node-two device  0 [0x04] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid   6734 on node-two device  1 [0x05] NVIDIA H100 80GB HBM3
node-one:6899:6899 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
#
# out-of-place in-place
# size count type redop root time algbw busbw #wrong time algbw busbw #wrong
# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)
     0 0 float sum -1 4.20 0.00 0.00 0 4.10 0.00 0.00 0
     1048576 262144 float sum -1 80.00 13.11 19.66 0 79.00 13.27 19.91 0
     2097152 524288 float sum -1 100.00 20.97 31.46 0 101.00 20.76 31.15 0
     4194304 1048576 float sum -1 150.00 27.96 41.94 7 151.00 27.78 41.67 0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 27.6
#
)";

const NcclSample& sample(const NcclLog& log, std::size_t table, std::size_t row) {
  REQUIRE(log.series.size() > table);
  REQUIRE(log.series[table].samples.size() > row);
  return log.series[table].samples[row];
}

std::string problem_of(const std::string& file, std::string_view text,
                       const NcclLogOptions& options = {}) {
  try {
    (void)parse_nccl_log(file, text, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("nccl-tests log: hosts, ranks, device and operation are those it prints") {
  const NcclLog log = parse_nccl_log("a.log", kTwoHosts, {});
  REQUIRE(log.series.size() == 1);
  const NcclSeries& series = log.series.front();
  CHECK(series.op == "all_reduce");
  CHECK(series.nodes == 2);
  CHECK(series.gpus_per_node == 2);
  CHECK(series.ranks == 4);
  CHECK(series.gpu == "NVIDIA H100 80GB HBM3");
  REQUIRE(series.samples.size() == 2);
  CHECK(sample(log, 0, 0).size == Bytes{1048576});
  CHECK(sample(log, 0, 0).time_us == 80);  // out of place
  CHECK(sample(log, 0, 1).time_us == 100);
  CHECK(log.left_out ==
        std::map<std::string, std::size_t>{{"nothing was sent", 1}, {"wrong results", 1}});
}

TEST_CASE("nccl-tests log: without checking, in place only, with tags of mpirun and srun") {
  const NcclLog unchecked = parse_nccl_log("alltoall.log", R"(
[1,0]<stdout>:# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor)
[1,0]<stdout>:# Using devices
[1,0]<stdout>:#  Rank  0 Group  0 Pid 11 on h device  0 [0x04] NVIDIA A100-SXM4-80GB
[1,0]<stdout>:#  Rank  1 Group  0 Pid 11 on h device  1 [0x05] NVIDIA A100-SXM4-80GB
[1,0]<stdout>:# size count type redop root time algbw busbw #wrong time algbw busbw #wrong
[1,0]<stdout>: 1048576 131072 float none -1 40.00 26.21 13.11 N/A 41.00 25.58 12.79 N/A
)",
                                           {});
  CHECK(unchecked.series.at(0).op == "alltoall");
  CHECK(unchecked.series.at(0).nodes == 1);
  CHECK(sample(unchecked, 0, 0).time_us == 40);

  const NcclLog in_place =
      parse_nccl_log("x.log", R"(0: # Collective test starting: reduce_scatter_perf
0: # Using devices
0: #  Rank  0 Group  0 Pid 11 on h device  0 [0000:04:00] AMD Instinct MI300X
0: #  Rank  1 Group  0 Pid 12 on h device  1 [0000:05:00] AMD Instinct MI300X
0: #       size         count      type   redop    root     time   algbw   busbw #wrong
0:      1048576        131072     float     sum      -1    50.00   20.97   10.49      0
0: # Collective test concluded: reduce_scatter_perf
)",
                     {});
  CHECK(in_place.series.at(0).op == "reduce_scatter");
  CHECK(in_place.series.at(0).gpu == "AMD Instinct MI300X");
  CHECK(sample(in_place, 0, 0).time_us == 50);
}

TEST_CASE("nccl-tests log: several programs in one, each with its own devices") {
  const NcclLog log = parse_nccl_log("both.log", R"(# Collective test starting: all_gather_perf
# Using devices
#  Rank  0 Group  0 Pid 11 on h device  0 [0x04] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 11 on h device  1 [0x05] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong
     1048576        131072     float    none      -1    50.00   20.97   10.49      0
# Collective test concluded: all_gather_perf
# Collective test starting: sendrecv_perf
# Using devices
#  Rank  0 Group  0 Pid 11 on h device  0 [0x04] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 11 on h device  1 [0x05] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid 11 on h device  2 [0x06] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid 11 on h device  3 [0x07] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    25.00   41.94   41.94      0
)",
                                     {});
  REQUIRE(log.series.size() == 2);
  CHECK(log.series[0].op == "all_gather");
  CHECK(log.series[0].ranks == 2);
  CHECK(log.series[1].op == "sendrecv");
  CHECK(log.series[1].ranks == 4);
}

TEST_CASE("nccl-tests log: of ranks that were split, the table is of the first group") {
  const NcclLog log = parse_nccl_log("all_reduce.log", R"(# Using devices
#  Rank  0 Group  0 Pid 11 on h device  0 [0x04] NVIDIA H100 80GB HBM3
#  Rank  0 Group  1 Pid 12 on h device  1 [0x05] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 13 on h device  2 [0x06] NVIDIA H100 80GB HBM3
#  Rank  1 Group  1 Pid 14 on h device  3 [0x07] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    25.00   41.94   41.94      0
)",
                                     {});
  CHECK(log.series.at(0).ranks == 2);
}

TEST_CASE("nccl-tests log: repeats of each size give a spread, version 1 printed milliseconds") {
  const NcclLog repeats = parse_nccl_log("all_reduce.log",
                                         R"(# Using devices
#  Rank  0 Group  0 Pid 11 on h device  0 [0x04] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 11 on h device  1 [0x05] NVIDIA H100 80GB HBM3
# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv%)"
                                         R"( time algbw busbw #wrong i_min i_max i_p99 i_cv%
     1048576 262144 float sum -1 25.00 41.94 41.94 0 24.00 29.00 28.00 5.00)"
                                         R"( 26.00 40.33 40.33 0 24.00 29.00 28.00 9.00
)",
                                         {});
  CHECK(sample(repeats, 0, 0).spread == test::near(0.05));

  const NcclLog first = parse_nccl_log("x.log", R"(nThread 1 nGpus 2 minBytes 10000 maxBytes 10000
# NCCL Tests compiled with NCCL 1.3.5
# Using devices
#   Rank  0 on       h device  0 [0x04] Tesla P100-SXM2-16GB
#   Rank  1 on       h device  1 [0x06] Tesla P100-SXM2-16GB
#                                                 out-of-place                    in-place
# bytes N type op time algbw busbw res time algbw busbw res
     10000 2500 float sum 0.162 0.06 0.06 2e-07 0.147 0.07 0.07 0e+00
)",
                                       {.op = "all_reduce"});
  CHECK(sample(first, 0, 0).time_us == test::near(162));
}

TEST_CASE("nccl-tests log: a row that contradicts itself or timed the CPU is left out") {
  const NcclLog log = parse_nccl_log("all_reduce.log", R"(# Using devices
#  Rank  0 Group  0 Pid 11 on h device  0 [0x04] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 11 on h device  1 [0x05] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    25.00   11.11   11.11      0
#       size         count      type   redop    root  cputime   algbw   busbw #wrong
     1048576        262144     float     sum      -1    25.00   41.94   41.94      0
)",
                                     {});
  CHECK(log.left_out == std::map<std::string, std::size_t>{{"time and bandwidth disagree", 1},
                                                           {"time of the CPU", 1}});
}

TEST_CASE("nccl-tests JSON: devices are listed once a process") {
  const NcclLog log = parse_nccl_log("x.json", R"({"version": 2,
    "args": ["./build/all_reduce_perf", "-g", "4"], "env": [], "nccl_version": 22803,
    "config": {"nthreads": 1, "ngpus": 4, "validation": 1, "devices": [
      {"rank": 0, "group": 0, "pid": 1, "hostname": "a", "device": 0, "device_hex": "0000:04:00",
       "device_info": "NVIDIA B200"},
      {"rank": 4, "group": 0, "pid": 2, "hostname": "b", "device": 0, "device_hex": "0000:04:00",
       "device_info": "NVIDIA B200"}]},
    "results": [
      {"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "    -1",
       "out_of_place": {"time": 50.0, "alg_bw": 20.97, "bus_bw": 36.7, "nwrong": 0.0},
       "out_of_place_per_iter": {"cv_pct": 2.0},
       "in_place": {"time": 49.0, "alg_bw": 21.4, "bus_bw": 37.4, "nwrong": 0.0}},
      {"size": 2097152, "count": 524288, "type": "float", "redop": "sum", "root": "    -1",
       "out_of_place": null, "in_place": {"time": 70.0, "alg_bw": 29.96, "bus_bw": 52.4,
       "nwrong": null}},
      {"size": 4194304, "count": 1048576, "type": "float", "redop": "sum", "root": "    -1",
       "out_of_place": {"cpu_time": 5.0, "alg_bw": 838.0, "bus_bw": 1468, "nwrong": 0.0},
       "in_place": null}],
    "out_of_bounds": {"count": 0, "okay": "true"}})",
                                     {});
  REQUIRE(log.series.size() == 1);
  CHECK(log.series[0].nodes == 2);
  CHECK(log.series[0].gpus_per_node == 4);
  CHECK(sample(log, 0, 0).time_us == 50);
  CHECK(sample(log, 0, 0).spread == test::near(0.02));
  CHECK(sample(log, 0, 1).time_us == 70);
  CHECK(log.left_out == std::map<std::string, std::size_t>{{"time of the CPU", 1}});
}

TEST_CASE("nccl-tests log: what it leaves open is an error that says what to give") {
  CHECK(problem_of("a.log", "hello\n") ==
        "a.log: found no table of nccl-tests; allowed: what nccl-tests or rccl-tests printed, from "
        "\"# size count\" on");
  constexpr std::string_view kBare =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "     1048576        262144     float     sum      -1    25.00   41.94   41.94      0";
  CHECK(problem_of("a.log", kBare) ==
        "a.log: found a table without the name of its program, such as all_reduce_perf; allowed: "
        "--op with the operation");
  CHECK(
      problem_of("2-nodes-allreduce.log", kBare) ==
      "2-nodes-allreduce.log: found no lines \"# Rank 0 ... on HOST device 0\"; allowed: them, or "
      "--gpus-per-node and --nodes");
  const NcclLog log =
      parse_nccl_log("a.log", kBare, {.op = "all_gather", .nodes = 2, .gpus_per_node = 8});
  CHECK(log.series.at(0).op == "all_gather");
  CHECK(log.series.at(0).ranks == 16);
}

TEST_CASE("import nccl-tests: the profile goes through its points and says what it left out") {
  const test::TemporaryFolder folder;
  const std::string log = folder.write("all_reduce.log", kTwoHosts);
  const std::string profile_file = folder.path() + "/fabric.profile.json";
  const test::Ran ran =
      test::lockstep_with({"import", "nccl-tests", log, "--node", "dgx_h100", "-o", profile_file});
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.err == "1 row of " + log + " left out: nothing was sent\n1 row of " + log +
                       " left out: wrong results\n");
  const Profile profile = read_profile(profile_file, read_text_file(profile_file), presets());
  REQUIRE(profile.collectives.size() == 2);
  CHECK(profile.gpu == "h100_sxm5_80gb");
  CHECK(profile.collectives[0].nodes == 2);
  CHECK(profile.collectives[0].gpus_per_node == 2);
  CHECK(profile.collectives[0].time.base_units() == test::near(80e-6));
  REQUIRE(profile.network);
  CHECK(profile.network->nic_bandwidth == gigabits_per_second(400));
  const test::Ran table = test::lockstep_with({"validate", "--profile", profile_file});
  CHECK(table.exit == Exit::ok);
  CHECK(table.out.find("all_reduce, 2 nodes of 2, by others") != std::string::npos);
}

TEST_CASE("import nccl-tests: hosts that one NVLink domain joins are one node") {
  const test::TemporaryFolder folder;
  std::string log = "# Collective test starting: all_gather_perf\n# Using devices\n";
  for (int rank = 0; rank < 8; ++rank) {
    log += "#  Rank  " + std::to_string(rank) + " Group  0 Pid 11 on tray" +
           std::to_string(rank / 4) + " device  0 [0x04] NVIDIA GB200\n";
  }
  log +=
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "     1048576        131072     float    none      -1    50.00   20.97   10.49      0\n";
  const Imported imported =
      import_nccl({folder.write("x.log", log)},
                  {.gpu = "gb200_186gb", .node = &presets().node("gb200_nvl72")}, {}, presets());
  const Profile profile = read_profile("p.json", imported.profile, presets());
  REQUIRE(profile.collectives.size() == 1);
  CHECK(profile.collectives[0].nodes == 1);
  CHECK(profile.collectives[0].gpus_per_node == 8);
}

TEST_CASE("import nccl-tests: published one-node collectives, each point by the others") {
  // The issue's bound for one-node collectives left out one by one: a median of 6 %.
  for (const char* gpu : {"h100_sxm5_80gb", "a100_sxm4_80gb", "a100_sxm4_40gb", "b200_sxm_180gb",
                          "h200_sxm_141gb", "gb200_186gb"}) {
    CAPTURE(gpu);
    const test::TemporaryFolder folder;
    const std::string profile = folder.path() + "/p.json";
    CHECK(test::lockstep_with({"import", "nccl-tests",
                               LOCKSTEP_SOURCE_DIR "/tests/reference/nccl.json", "--gpu", gpu, "-o",
                               profile})
              .exit == Exit::ok);
    const test::Ran ran =
        test::lockstep_with({"validate", "--profile", profile, "--format", "json"});
    const auto json = nlohmann::json::parse(ran.out);
    bool found = false;
    for (const auto& [name, group] : json["summary"].items()) {
      if (name != "collectives in one node, by others") continue;
      found = true;
      CHECK(group["n"] >= 10);
      CHECK(group["median_abs_error"] <= 0.06);
    }
    CHECK(found);
  }
}

TEST_CASE("lockstep run: a card's and a fabric's profile together") {
  const test::TemporaryFolder folder;
  const std::string scenario = LOCKSTEP_SOURCE_DIR "/scenarios/llama2-70b-fp8.json";
  const std::string card = folder.write("card.json", R"({"gpu": "h100_sxm5_80gb", "memory":
      [{"kernel": "copy", "traffic": "100 MB", "time": "400 us"}]})");
  const std::string fabric = folder.write("fabric.json", R"({"gpu": "h100_sxm5_80gb",
      "collectives": [{"op": "all_reduce", "gpus_per_node": 8, "size": "1 MB", "time": "1 ms"}]})");
  const auto result = [&](const std::vector<std::string>& profiles) {
    std::vector<std::string> args{"run", scenario, "--format", "json"};
    for (const std::string& profile : profiles) args.insert(args.end(), {"--profile", profile});
    const test::Ran ran = test::lockstep_with(args);
    CHECK(ran.exit == Exit::ok);
    return nlohmann::json::parse(ran.out);
  };
  const nlohmann::json both = result({card, fabric});
  const std::string assumed = both["assumptions"].dump();
  CHECK(assumed.find("kernels: as " + card + " measured them (1 point)") != std::string::npos);
  CHECK(assumed.find("collectives: as " + fabric + " measured them (1 point)") !=
        std::string::npos);
  // The copy of 400 us is an order of magnitude slower than the card is.
  CHECK(both["step_s"] > 1.05 * result({})["step_s"].get<double>());
  CHECK(both["step_s"] == result({fabric, card})["step_s"]);
}

TEST_CASE("import: mistakes on the command line") {
  const auto error = [](const std::vector<std::string>& args) {
    const test::Ran ran = test::lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    return ran.err;
  };
  CHECK(error({"import", "nccl"}) ==
        "lockstep import: found \"nccl\"; allowed: kernels, nccl-tests, kineto, nsys, recording, "
        "job. Did you "
        "mean nccl-tests?\n");
  CHECK(error({"import", "nccl-tests", "--gpu", "h100_sxm5_80gb"})
            .starts_with("lockstep import nccl-tests: no file; usage:"));
  CHECK(
      error({"import", "kernels", "x.json", "--gpu", "h100_sxm5_80gb"}) ==
      "lockstep import kernels: unexpected argument \"x.json\"; its files are given by options\n");
  CHECK(error({"import", "kernels", "--op", "all_reduce"}) ==
        "lockstep import: --op is for lockstep import nccl-tests\n");
  CHECK(error({"import", "nccl-tests", "x.log"}).starts_with("lockstep import: no --gpu; usage:"));
  CHECK(error({"import", "nccl-tests", "x.log", "--node", "dgx_h100", "--gpu", "mi300x"}) ==
        "--gpu: found \"mi300x\"; allowed: the card of --node dgx_h100, h100_sxm5_80gb\n");
}

}  // namespace lockstep
