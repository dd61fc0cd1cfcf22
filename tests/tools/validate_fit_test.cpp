#include "tools/views/measured/validate_fit.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "models/collectives/collectives.hpp"
#include "models/kernels/gemm.hpp"
#include "models/kernels/memory_bound.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::presets;
using Json = nlohmann::ordered_json;

/// A card whose kernels have other constants than its preset says.
GpuSpec another_h200() {
  GpuSpec gpu = presets().gpu("h200_sxm_141gb");
  gpu.memory.launch = microseconds(3);
  gpu.memory.efficiency = 0.7;
  gpu.gemm.sustained = 0.7;
  return gpu;
}

/// Times by the laws with the constants of that card.
std::string profile_text(int memory_points, int products) {
  const GpuSpec gpu = another_h200();
  std::string memory, gemm;
  for (int i = 0; i < memory_points; ++i) {
    const Bytes traffic{1e6 * (1 + i * i)};
    memory += fmt::format(R"({}{{"kernel": "copy", "traffic": {}, "time": {}}})", i == 0 ? "" : ",",
                          traffic.base_units(), memory_bound_time(traffic, gpu).base_units());
  }
  for (int i = 0; i < products; ++i) {
    const bool lasting = i % 2 == 1;
    const GemmShape shape{1024.0 * (1 + i % 8), 1024.0 * (1 + i / 8), 4096, 1};
    const Load load = lasting ? Load::sustained : Load::burst;
    gemm += fmt::format(
        R"({}{{"m": {}, "n": {}, "k": {}, "precision": "bf16", "load": "{}", "time": {}}})",
        i == 0 ? "" : ",", shape.m, shape.n, shape.k, lasting ? "sustained" : "burst",
        gemm_time(shape, Precision::bf16, gpu, load).base_units());
  }
  return fmt::format(
      R"({{"gpu": "h200_sxm_141gb", "date": "2026-01-31", "gemm": [{}], "memory": [{}],
          "collectives": [{{"op": "all_reduce", "gpus_per_node": 8, "size": 1024,
                           "time": "9 us"}}]}})",
      gemm, memory);
}

/// All-reduces by the laws on a fabric that is not quite the preset's.
std::string fabric_text(int nodes) {
  GpuSpec gpu = presets().gpu("h100_sxm5_80gb");
  // Over nodes the transport alone is fitted, with NVLink as the preset has it.
  for (CollectiveRegime& regime : gpu.collectives.all_reduce) {
    if (nodes > 1) break;
    regime.base = 1.3 * regime.base;
    regime.bus_bandwidth = 0.85 * regime.bus_bandwidth;
  }
  TransportSpec transport = presets().transport("infiniband");
  transport.efficiency = 0.8;
  transport.hop_latency = microseconds(14);
  std::string points;
  for (double size = 1024; size <= 8e9; size *= 2) {
    const CollectiveCall call{CollectiveOp::all_reduce, Bytes{size}, 8 * nodes, 8, nodes};
    const Seconds time = collective_time(call, gpu, transport, gigabits_per_second(400));
    points += fmt::format(
        R"({}{{"op": "all_reduce", "nodes": {}, "gpus_per_node": 8, "size": {}, "time": {}}})",
        points.empty() ? "" : ",", nodes, size, time.base_units());
  }
  return fmt::format(R"({{"gpu": "h100_sxm5_80gb"{}, "collectives": [{}]}})",
                     nodes > 1 ? R"(, "network": {"node": "azure_nd96isr_h100_v5"})" : "", points);
}

}  // namespace

TEST_CASE("validate --fit: finds the constants that made the times, also of points left out") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("p.json", profile_text(100, 96));
  const test::Ran ran =
      test::lockstep_with({"validate", "--profile", file, "--fit", "--format", "json"});
  REQUIRE(ran.exit == Exit::ok);
  const Json out = Json::parse(ran.out);
  CHECK(out["gpu"] == "h200_sxm_141gb");
  REQUIRE(out["parts"].size() == 2);

  const Json& gemm = out["parts"][0];
  CHECK(gemm["part"] == "gemm");
  CHECK(gemm["constants"]["sustained"].get<double>() == doctest::Approx(0.7).epsilon(0.03));
  // No point depends on these.
  CHECK_FALSE(gemm["constants"].contains("fp8_efficiency"));
  CHECK_FALSE(gemm["constants"].contains("quantised_sustained"));
  CHECK(gemm["preset"]["median_abs_error"].get<double>() > 0.03);
  CHECK(gemm["left_out"]["median_abs_error"].get<double>() < 0.02);

  const Json& memory = out["parts"][1];
  CHECK(memory["part"] == "memory");
  CHECK(memory["constants"]["efficiency"].get<double>() == doctest::Approx(0.7).epsilon(0.01));
  CHECK(memory["preset"]["median_abs_error"].get<double>() > 0.1);
  CHECK(memory["left_out"]["median_abs_error"].get<double>() < 0.005);
  CHECK(memory["left_out"]["n"] == 100);
  CHECK(out["not_fitted"][0] == "nvlink.all_reduce: 1 point, and a fit takes 8");
}

TEST_CASE(
    "validate --fit -o: writes the card's preset, in which each fitted value says its source") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("p.json", profile_text(100, 3));
  const std::string preset = folder.write("gpus/h200_sxm_141gb.json", "");
  const test::Ran ran = test::lockstep_with({"validate", "--profile", file, "--fit", "-o", preset});
  REQUIRE(ran.exit == Exit::ok);
  CHECK(ran.out.find("memory  ") != std::string::npos);
  CHECK(ran.out.find("not fitted: gemm: 3 points, and a fit takes 8") != std::string::npos);

  const test::Ran printed =
      test::lockstep_with({"validate", "--profile", file, "--fit", "-o", "-"});
  REQUIRE(printed.exit == Exit::ok);
  CHECK(printed.out == read_text_file(preset));

  const Json written = Json::parse(read_text_file(preset));
  const std::string source = written["memory"]["efficiency"]["source"];
  CHECK(source.starts_with("fitted to " + file + " of 2026-01-31: lockstep validate --fit; 100 p"));
  const PresetStore own({folder.path()});
  const GpuSpec& gpu = own.gpu("h200_sxm_141gb");
  CHECK(gpu.memory.efficiency == doctest::Approx(0.7).epsilon(0.01));
  // The rest is as it was.
  const GpuSpec& before = presets().gpu("h200_sxm_141gb");
  CHECK(gpu.gemm.efficiency == before.gemm.efficiency);
  CHECK(gpu.hbm_bandwidth == before.hbm_bandwidth);
  for (const PresetRow& row : own.show("gpus", "h200_sxm_141gb")) {
    CAPTURE(row.path);
    CHECK((row.path == "about" || !row.source.empty()));
  }
}

TEST_CASE("validate --fit -o: a kernel that the preset has not gets all of its constants") {
  // FlashAttention 3 does not run on an A100; only forward passes were timed.
  std::string points;
  for (int i = 1; i <= 9; ++i) {
    points += fmt::format(
        R"({}{{"kernel": "flash3", "direction": "forward", "sequences": 1, "tokens": {},
              "heads": 32, "head_dim": 128, "time": "{} us"}})",
        i == 1 ? "" : ",", 1024 * i, 100 * i * i);
  }
  const test::TemporaryFolder folder;
  const std::string file = folder.write(
      "p.json", fmt::format(R"({{"gpu": "a100_sxm4_80gb", "attention": [{}]}})", points));
  const std::string preset = folder.write("gpus/a100_sxm4_80gb.json", "");
  const test::Ran ran = test::lockstep_with({"validate", "--profile", file, "--fit", "-o", preset});
  REQUIRE(ran.exit == Exit::ok);
  CHECK(ran.out.find("not there") != std::string::npos);
  CHECK(ran.out.find("backward_ratio") == std::string::npos);  // nothing was learnt of it
  const auto flash3 = static_cast<std::size_t>(AttentionKernel::flash3);
  CHECK_FALSE(presets().gpu("a100_sxm4_80gb").attention[flash3].has_value());
  const PresetStore own({folder.path()});
  REQUIRE(own.gpu("a100_sxm4_80gb").attention[flash3].has_value());
  CHECK(own.gpu("a100_sxm4_80gb").attention[flash3]->backward_ratio > 2);
}

TEST_CASE("validate --fit: the same bytes every time, and a table with what is left out") {
  const std::vector<std::string> args{"validate", "--profile", "gb300_published", "--fit"};
  const test::Ran once = test::lockstep_with(args);
  REQUIRE(once.exit == Exit::ok);
  CHECK(once.out == test::lockstep_with(args).out);
  CHECK(once.out.find("as preset: median, p90") != std::string::npos);
  CHECK(once.out.find("attention.cudnn") != std::string::npos);
  std::vector<std::string> csv = args;
  csv.insert(csv.end(), {"--format", "csv"});
  CHECK(test::lockstep_with(csv).out.find("\nmemory,efficiency,") != std::string::npos);
}

TEST_CASE("validate --fit: the constants of NVLink and of the transport, into presets of theirs") {
  const test::TemporaryFolder folder;
  const auto fitted = [&](int nodes, const std::string& preset) {
    const std::string file = folder.write("p.json", fabric_text(nodes));
    const test::Ran ran = test::lockstep_with(
        {"validate", "--profile", file, "--fit", "--format", "json", "-o", preset});
    CAPTURE(ran.err);
    REQUIRE(ran.exit == Exit::ok);
    return Json::parse(ran.out)["parts"];
  };
  const Json inside = fitted(1, folder.write("nvlinks/hopper_nvlink4.json", ""));
  REQUIRE(inside.size() == 1);
  CHECK(inside[0]["part"] == "nvlink.all_reduce");
  CHECK(inside[0]["preset"]["median_abs_error"].get<double>() > 0.1);
  CHECK(inside[0]["left_out"]["median_abs_error"].get<double>() < 0.03);
  // All on eight GPUs: what a step costs cannot be told from the base.
  CHECK(inside[0]["constants"].contains("simple_ring.base"));
  CHECK_FALSE(inside[0]["constants"].contains("simple_ring.per_step"));

  const Json between = fitted(4, folder.write("transports/infiniband.json", ""));
  REQUIRE(between.size() == 1);
  CHECK(between[0]["part"] == "transport");
  CHECK(between[0]["constants"]["efficiency"].get<double>() == doctest::Approx(0.8).epsilon(0.03));
  CHECK(between[0]["left_out"]["median_abs_error"].get<double>() <
        0.5 * between[0]["preset"]["median_abs_error"].get<double>());

  const PresetStore own({folder.path()});
  CHECK(own.transport("infiniband").efficiency == doctest::Approx(0.8).epsilon(0.03));
  CHECK(own.transport("infiniband").send_receive_efficiency ==
        presets().transport("infiniband").send_receive_efficiency);
  const CollectiveCall call{CollectiveOp::all_reduce, Bytes{1e9}, 8, 8};
  const auto slower = [&](const PresetStore& store) {
    return collective_time(call, store.gpu("h100_sxm5_80gb"), {}, gigabits_per_second(400));
  };
  CHECK(slower(own) / slower(presets()) == doctest::Approx(1 / 0.85).epsilon(0.05));
}

TEST_CASE("validate --fit: mistakes are one line") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("p.json", profile_text(7, 0));
  const auto error = [](std::vector<std::string> args) {
    args.insert(args.begin(), "validate");
    const test::Ran ran = test::lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(error({"--fit"}) == "lockstep validate: --fit is for --profile\n");
  CHECK(error({"--fit", "--gemm", "x"}) == "lockstep validate: --fit is for --profile\n");
  CHECK(error({"--fit", "--profile", file, "--report", "r.html"}) ==
        "lockstep validate: --report shows the points; --fit has none\n");
  CHECK(error({"--fit", "--profile", file}) ==
        file +
            ": found memory: 7 points, and a fit takes 8; nvlink.all_reduce: 1 point, and a fit "
            "takes 8; allowed: 8 points of products, of memory-bound kernels, of one kernel of "
            "attention or of one collective\n");
}

}  // namespace lockstep
