#include "sim/measured/validate_collectives.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/measured/call_repeats.hpp"
#include "sim/measured/nccl_series.hpp"
#include "tests/support/near.hpp"
#include "tests/support/source_tree.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/summary_of.hpp"
#include "tools/views/tables/validation_output.hpp"

namespace lockstep {
namespace {

double per_gpu(const char* network, int gpus_per_node) {
  const auto rate = nic_bandwidth_per_gpu(network, gpus_per_node);
  return rate ? rate->base_units() / 1e9 : 0;
}

// Wordings of tests/reference/nccl.json.
TEST_CASE("nic_bandwidth_per_gpu: reads NICs per node, per tray and per GPU, 0 where not stated") {
  CHECK(per_gpu("EFA v2 32x100 Gb/s per node (stas00 table)", 8) == doctest::Approx(50));
  CHECK(per_gpu("Slingshot-11 4x200 Gb/s per node", 4) == doctest::Approx(25));
  CHECK(per_gpu("InfiniBand NDR 4x400 Gb/s per 4-GPU tray (recalled)", 72) == doctest::Approx(50));
  CHECK(per_gpu("InfiniBand/RoCE 1x400 Gb/s per GPU used", 2) == doctest::Approx(50));
  CHECK(per_gpu("RoCE 8 Broadcom bnxt_re NICs (400 Gb/s recalled)", 8) == doctest::Approx(50));
  CHECK(per_gpu("RoCE 8x Pollara 400 Gb/s", 8) == doctest::Approx(50));
  CHECK(per_gpu("InfiniBand (rate not stated; 8x400 Gb/s recalled)", 8) == doctest::Approx(50));
  CHECK(per_gpu("unstated", 8) == 0);
  CHECK(per_gpu("InfiniBand between racks", 4) == 0);
}

TEST_CASE("transport_of: the longer of two names that contain each other wins") {
  CHECK(transport_of("GPUDirect-TCPXO 8x200 Gb/s per node") == "tcpxo");
  CHECK(transport_of("GPUDirect-TCPX 4x200 Gb/s per node") == "tcpx");
  CHECK(transport_of("TCP over Slingshot") == "ethernet");
  CHECK(transport_of("EFA v3 16x200 Gb/s per node") == "efa_v3");
  CHECK(transport_of("EFA 1x100 Gb/s per node") == "efa_v1");
  CHECK(transport_of("RoCEv2 16x100 Gb/s per node") == "roce");
  CHECK(transport_of("NVLink5 NVL72 domains").empty());
}

TEST_CASE("gpu_preset_of: chip first, then memory and socket, then the alphabet") {
  const std::vector<std::string> presets{"a100_pcie_80gb", "a100_sxm4_40gb", "a100_sxm4_80gb",
                                         "h100_pcie_80gb", "h100_sxm5_80gb", "mi300x"};
  CHECK(gpu_preset_of("A100-40GB SXM", presets) == "a100_sxm4_40gb");
  CHECK(gpu_preset_of("A100-80GB SXM", presets) == "a100_sxm4_80gb");
  CHECK(gpu_preset_of("H100 SXM (4/node)", presets) == "h100_sxm5_80gb");
  CHECK(gpu_preset_of("MI300X", presets) == "mi300x");
  CHECK(gpu_preset_of("H1000", presets).empty());
  CHECK(gpu_preset_of("", presets).empty());
}

TEST_CASE("parse_nccl_series: the error says where a row is wrong") {
  const std::string text = R"({"series": [{"system": "s", "gpu": "H100", "op": "all_reduce",
      "nodes": 1, "ranks": 8, "gpus_per_node": 8, "rows": [[8, 1.5], [16, -2]]}]})";
  CHECK_THROWS_WITH_AS(parse_nccl_series("log.json", text),
                       doctest::Contains("log.json#/series/0/rows/1/1: found -2"), InputError);
}

TEST_CASE("parse_nccl_series: an in-place time stands in where no other was published") {
  const std::string text = R"({"series": [{"system": "s", "gpu": "H100", "op": "all_reduce",
      "nodes": 1, "ranks": 8, "gpus_per_node": 8,
      "rows": [[8, 1.5, 0, 0, 9, 0, 0], [16, null, 0, 0, 7, 0, 0], [32, null]]}]})";
  const std::vector<NcclSeries> series = parse_nccl_series("log.json", text);
  REQUIRE(series.size() == 1);
  REQUIRE(series[0].samples.size() == 3);
  CHECK(series[0].samples[0].time_us == 1.5);
  CHECK(series[0].samples[1].time_us == 7);
  CHECK_FALSE(series[0].samples[2].time_us);
  CHECK(series[0].samples[0].repeats_us == std::vector<double>{1.5, 9});
  CHECK(series[0].samples[1].repeats_us == std::vector<double>{7});
  CHECK(series[0].samples[2].repeats_us.empty());
}

using test::group;

TEST_CASE("validate --nccl: JSON writes numbers as numbers") {
  PointTable table;
  table.points = {
      {.identity = {{"system", "s"}, {"nodes", 2}, {"bytes", IdentityValue::number(8e9)}},
       .measured = 1,
       .predicted = 2,
       .error = 1}};
  const auto json = nlohmann::json::parse(points_json(table).str());
  CHECK(json["points"][0]["system"] == "s");
  CHECK(json["points"][0]["nodes"].is_number_integer());
  CHECK(json["points"][0]["nodes"] == 2);
  CHECK(json["points"][0]["bytes"].is_number_integer());
  CHECK(json["points"][0]["bytes"] == 8'000'000'000);
  CHECK(points_csv(table).str().ends_with("s,2,8000000000,1,2,1\n"));
}

// The project's aims: a median error of at most 5 % inside a node, and of at most 5 % across nodes
// from 64 MB on.
TEST_CASE("validate_collectives: the reference logs are met within the stated errors") {
  const PresetStore presets;
  const PointTable table = validate_collectives(
      std::string(LOCKSTEP_SOURCE_DIR) + "/tests/reference/nccl.json", presets);
  CHECK(table.points.size() > 500);
  CHECK(table.summary.front().group == "all");
  CHECK(table.summary.front().n == table.points.size());
  CHECK(group(table, "one node").median_abs <= 0.05);
  CHECK(group(table, "several nodes, 64 MB and more").median_abs <= 0.05);
  // The aim is 20 %; half of what is beyond are runs on one shared fabric that did not repeat.
  CHECK(group(table, "several nodes, 64 MB and more").p90_abs <= 0.22);
  CHECK(group(table, "several nodes, 64 MB and more, by configuration").p90_abs <= 0.20);
  // What protocols and plug-ins do in between is uncertain by a factor of 1.5; held where it is.
  CHECK(group(table, "several nodes, between").median_abs <= 0.25);
  // Over NVLink domains of 64 and 72 GPUs, from 512 MiB to 16 GiB: what the switch takes for so
  // many comes from one domain alone.
  CHECK(group(table, "CoreWeave GB200 2 racks, all_reduce").p90_abs <= 0.1);
  CHECK(group(table, "CoreWeave GB200 20 racks, all_reduce").median_abs <= 0.06);
  CHECK_FALSE(table.skipped.empty());
}

/// Two logs of the same call over two nodes, the second of which also has twice the size.
PointTable two_logs() {
  const test::TemporaryFolder folder;
  const std::string log = R"({"system": "SYSTEM", "gpu": "H100-80GB SXM", "op": "all_reduce",
      "nodes": 2, "ranks": 16, "gpus_per_node": 8, "inter": "InfiniBand 8x400 Gb/s per node",
      "rows": ROWS})";
  const auto of = [&](const std::string& system, const std::string& rows) {
    std::string text = log;
    text.replace(text.find("SYSTEM"), 6, system);
    text.replace(text.find("ROWS"), 4, rows);
    return text;
  };
  const std::string file = folder.write(
      "nccl.json", R"({"series": [)" + of("quiet", "[[134217728, 1000, 0, 0, 1010, 0, 0]]") + ", " +
                       of("busy", R"([[134217728, 4000, 0, 0, 3000, 0, 0],
                                      [268435456, 9000, 0, 0, 9000, 0, 0]])") +
                       "]}");
  return validate_collectives(file, PresetStore());
}

TEST_CASE("validate_collectives: a configuration is met at the median of its repeats") {
  const PointTable table = two_logs();
  REQUIRE(table.points.size() == 3);
  const double predicted = table.points[0].predicted;
  CHECK(table.points[1].predicted == predicted);
  // Of 1000, 1010, 3000 and 4000 us.
  const double first = std::abs(predicted / 2005 - 1);
  const double second = std::abs(table.points[2].predicted / 9000 - 1);
  const PointSummary& calls = group(table, "several nodes, 64 MB and more, by configuration");
  CHECK(calls.n == 2);
  CHECK(calls.median_abs == doctest::Approx((first + second) / 2));
  CHECK(group(table, "several nodes, 64 MB and more, every repeat").n == 6);
  CHECK(group(table, "several nodes, 64 MB and more").n == 3);
}

TEST_CASE("validate_collectives: each of the worst has its repeats, or the sizes beside it") {
  const PointTable table = two_logs();
  REQUIRE(table.notes.size() == 5);
  // (1000 x 1010 x 3000 x 4000)^(1/4) = 1865.8 us, from which 3000 is 37.8 % off and 4000 53.4 %:
  // those in the middle of six errors.
  CHECK(table.notes[0].find("6 repeats (out of place, in place, every log) of 2 configurations, of "
                            "which 1 differ") != std::string::npos);
  CHECK(table.notes[0].find("45.6 % (median)") != std::string::npos);
  std::string all;
  for (const std::string& note : table.notes) all += note + "\n";
  CHECK(all.find("busy, all_reduce, 2 nodes, 128 MiB") != std::string::npos);
  CHECK(all.find("4 repeats in 2 logs take 1.00 ms to 4.00 ms") != std::string::npos);
  CHECK(all.find("9.00 ms measured; 2 repeats agree within 0.0 %; the same log: ") !=
        std::string::npos);
  CHECK(table.notes[2].find("busy") != std::string::npos);
  CHECK(all.rfind("quiet") > all.rfind("busy"));
}

TEST_CASE("validate --nccl: JSON has the worst points with their repeats and the reason") {
  const PointTable table = two_logs();
  const auto json = nlohmann::json::parse(points_json(table).str());
  REQUIRE(json["worst"].size() == 3);
  int of_two_logs = 0;
  for (const auto& each : json["worst"]) {
    if (each["logs"] != 2) continue;
    ++of_two_logs;
    CHECK(each["repeats"] == 4);
    CHECK(each["repeat_least_us"] == 1000);
    CHECK(each["repeat_most_us"] == 4000);
    CHECK(each["reason"] == "4 repeats in 2 logs take 1.00 ms to 4.00 ms");
  }
  CHECK(of_two_logs == 2);
  CHECK(std::abs(json["worst"][0]["error"].get<double>()) >=
        std::abs(json["worst"][1]["error"].get<double>()));
  CHECK(table.notes[2] == "  " + worst_call_line(table.worst[0]));
}

TEST_CASE("worst_call_line: sizes from 1,024 MiB on are in GiB") {
  const auto line_of = [](double bytes) {
    return worst_call_line({.point = {.identity = {{"system", "s"},
                                                   {"op", "all_reduce"},
                                                   {"nodes", 2},
                                                   {"bytes", IdentityValue::number(bytes)}},
                                      .measured = 1,
                                      .predicted = 2,
                                      .error = 1},
                            .reason = "measured once"});
  };
  CHECK(line_of(1073741823.0).find("2 nodes, 1024 MiB: ") != std::string::npos);
  CHECK(line_of(512.0 * 1048576).find("2 nodes, 512 MiB: ") != std::string::npos);
  CHECK(line_of(4096.0 * 1048576).find("2 nodes, 4 GiB: ") != std::string::npos);
}

/// Over several nodes from 64 MB on.
std::vector<ValidationPoint> large_over_nodes(const PointTable& table) {
  std::vector<ValidationPoint> out;
  std::ranges::copy_if(table.points, std::back_inserter(out), [](const ValidationPoint& point) {
    return identity_of(point, "nodes") != "1" &&
           std::stod(identity_of(point, "bytes")) >= 64.0 * 1048576;
  });
  return out;
}

TEST_CASE("validate_collectives: the page explains the ten worst, and has the figures of today") {
  const PresetStore presets;
  const PointTable table = validate_collectives(
      std::string(LOCKSTEP_SOURCE_DIR) + "/tests/reference/nccl.json", presets);
  std::vector<ValidationPoint> points = large_over_nodes(table);
  std::ranges::stable_sort(points, std::greater{},
                           [](const ValidationPoint& point) { return std::abs(point.error); });
  std::vector<std::string> rows;
  for (const std::string& line : test::source_lines("models/collectives/README.md")) {
    if (line.ends_with(" |") && line.find(" MiB | ") != std::string::npos) rows.push_back(line);
  }
  REQUIRE(rows.size() == 10);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ValidationPoint& point = points[i];
    const std::string begins =
        fmt::format("| {} | {} | {} | {:.0f} MiB | {:+.1f} % | ", identity_of(point, "system"),
                    identity_of(point, "nodes"), identity_of(point, "op"),
                    std::stod(identity_of(point, "bytes")) / 1048576, 100 * point.error);
    CHECK_MESSAGE(rows[i].starts_with(begins), rows[i], " does not begin with ", begins);
  }
  // The aim is 20 %; the page says why it is missed.
  CHECK(summarise("", points).p90_abs == test::near(0.215).epsilon(0.005));
  // So it is by configuration, against the median of what was measured of each.
  const PointSummary& calls = group(table, "several nodes, 64 MB and more, by configuration");
  CHECK(calls.n == 150);
  CHECK(calls.median_abs <= 0.02);
  CHECK(calls.p90_abs == test::near(0.196).epsilon(0.005));
  CHECK(group(table, "several nodes, 64 MB and more, every repeat").n == 395);
  REQUIRE(table.notes.size() == 12);
  for (std::size_t i = 0; i < 10; ++i) {
    const std::string& note = table.notes[i + 2];
    CHECK_MESSAGE(note.find(identity_of(points[i], "system")) != std::string::npos, note);
  }
}

TEST_CASE("validate_collectives: what was measured twice differs as much as the page says") {
  const PresetStore presets;
  const std::vector<ValidationPoint> points = large_over_nodes(validate_collectives(
      std::string(LOCKSTEP_SOURCE_DIR) + "/tests/reference/nccl.json", presets));
  std::map<std::string, std::vector<double>> times;  // of the same call of Alps
  const auto call = [](const ValidationPoint& point) {
    const std::string system = identity_of(point, "system");
    return system.starts_with("CSCS Alps/Clariden")
               ? identity_of(point, "nodes") + " " + identity_of(point, "bytes")
               : std::string();
  };
  for (const ValidationPoint& point : points) times[call(point)].push_back(point.measured);
  times.erase("");
  CHECK(times.size() == 27);
  const auto unlike = [](const std::vector<double>& of) {
    return std::ranges::max(of) > 1.2 * std::ranges::min(of);
  };
  CHECK(std::ranges::count_if(times, [&](const auto& of) { return unlike(of.second); }) == 10);
  std::vector<ValidationPoint> alike;
  for (const ValidationPoint& point : points) {
    const auto found = times.find(call(point));
    if (found == times.end() || !unlike(found->second)) alike.push_back(point);
  }
  const PointSummary summary = summarise("", alike);
  CHECK(summary.n == 181);
  CHECK(summary.median_abs == test::near(0.0212).epsilon(0.02));
  CHECK(summary.p90_abs == test::near(0.1315).epsilon(0.005));
}

}  // namespace
}  // namespace lockstep
