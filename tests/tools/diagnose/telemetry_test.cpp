// lockstep diagnose --telemetry: what monitors logged beside what a step is predicted to draw.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/measured/telemetry_log.hpp"
#include "tests/support/near.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using TelemetryJson = nlohmann::ordered_json;

constexpr const char* kMonitoredJob = R"({"model": "llama2_7b",
  "cluster": {"node": "dgx_h100", "nodes": 1}, "parallelism": {"tensor": 2, "data": 4},
  "batch": {"sequences": 64, "micro": 1, "tokens": 2048}})";

TelemetryJson monitored(const std::vector<std::string>& words) {
  std::vector<std::string> args{"diagnose"};
  args.insert(args.end(), words.begin(), words.end());
  args.insert(args.end(), {"--format", "json"});
  const Ran ran = lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return TelemetryJson::parse(ran.out);
}

struct Reading {
  double watts, megahertz, percent;
  unsigned reasons = 0;
};

/// As `nvidia-smi --query-gpu=... --format=csv -l 1` prints it: `readings` of a GPU at a time.
std::string smi_log(int gpus, int times, const std::vector<std::vector<Reading>>& readings) {
  std::string out =
      "timestamp, index, name, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%], "
      "clocks.max.sm [MHz], clocks_event_reasons.active\n";
  for (int t = 0; t < times; ++t) {
    for (int g = 0; g < gpus; ++g) {
      const auto& own = readings[static_cast<std::size_t>(g)];
      const Reading& r = own[static_cast<std::size_t>(t) % own.size()];
      out += fmt::format(
          "2026/09/11 04:{:02}:{:02}.982, {}, NVIDIA H100 80GB HBM3, {:.2f} W, {:.0f} MHz, "
          "{:.0f} %, 1980 MHz, 0x{:016x}\n",
          t / 60, t % 60, g, r.watts, r.megahertz, r.percent, r.reasons);
    }
  }
  return out;
}

std::string telemetry_mistake(const std::string& text) {
  try {
    (void)read_telemetry("log", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("read_telemetry: a utilisation above 100 % is none, whose power and clock remain") {
  const TelemetryLog log = read_telemetry(
      "smi.csv",
      "index, power.draw [W], utilization.gpu [%]\n0, 500.00 W, 100 %\n0, 600.00 W, 250 %\n");
  REQUIRE(log.gpus.size() == 1);
  const std::vector<TelemetrySample>& samples = log.gpus.front().samples;
  REQUIRE(samples.size() == 2);
  CHECK(samples[0].utilisation == 1.0);
  CHECK_FALSE(samples[1].utilisation.has_value());
  CHECK(samples[1].power_w == 600.0);
}

TEST_CASE("telemetry: every monitor's log of the same readings is the same") {
  const std::vector<std::string> logs{
      // With units and without, in another order, begun anew and cut at its end.
      "timestamp, index, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%]\n"
      "2026/09/11 04:19:41.982, 0, 187.50 W, 1980 MHz, 98 %\n"
      "2026/09/11 04:19:41.986, 1, [N/A], 1755 MHz, 97 %\n"
      "2026/09/11 04:19:42.982, 0, 512.00 W, 1755 MHz, 99 %\n"
      "2026/09/11 04:19:42.9",
      "index, utilization.gpu, clocks.sm, power.draw\n0, 98, 1980, 187.5\n"
      "index, utilization.gpu, clocks.sm, power.draw\n1, 97, 1755, N/A\n0, 99, 1755, 512\n",
      "#Entity   POWER      SMCLK      GPUTL\nID         W          MHz        %\n"
      "GPU 0     187.500    1980       98\nGPU 1     N/A        1755       97\n"
      "#Entity   POWER      SMCLK      GPUTL\nID         W          MHz        %\n"
      "GPU 0     512.000    1755       99\n",
      "# gpu    pwr  gtemp     sm   pclk\n# Idx      W      C      %    MHz\n"
      "    0  187.5     40     98   1980\n    1      -     41     97   1755\n"
      "    0    512     40     99   1755\n",
      "timestamp,gpu,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_DEV_SM_CLOCK,DCGM_FI_DEV_GPU_UTIL\n"
      "1,0,187.5,1980,98\n1,1,,1755,97\n2,0,512,1755,99\n",
      "timestamp,metric_name,gpu,value\n1,DCGM_FI_DEV_POWER_USAGE,0,187.5\n"
      "1,DCGM_FI_DEV_SM_CLOCK,0,1980\n1,DCGM_FI_DEV_SM_CLOCK,1,1755\n"
      "1,DCGM_FI_DEV_GPU_UTIL,0,98\n1,DCGM_FI_DEV_GPU_UTIL,1,97\n"
      "2,DCGM_FI_DEV_POWER_USAGE,0,512\n2,DCGM_FI_DEV_SM_CLOCK,0,1755\n"
      "2,DCGM_FI_DEV_GPU_UTIL,0,99\n2,DCGM_FI_DEV_MEM_CLOCK,0,5\n",
      // amd-smi monitor, as a table and as CSV; amd-smi metric; rocm-smi.
      "GPU  XCP  POWER   PWR_CAP   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%   VRAM_USAGE\n"
      "  0    0  187.5 W  750 W   44 \xC2\xB0"
      "C   37 \xC2\xB0"
      "C   1980 MHz   98 %    0 %    0.3/192.0 GB\n"
      "  1    0  N/A   750 W   44 \xC2\xB0"
      "C   37 \xC2\xB0"
      "C   1755 MHz   97 %    0 %    0.3/192.0 GB\n\n"
      "GPU  XCP  POWER   PWR_CAP   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%   VRAM_USAGE\n"
      "  0    0  512 W  750 W   44 \xC2\xB0"
      "C   37 \xC2\xB0"
      "C   1755 MHz   99 %    0 %    0.3/192.0 GB\n",
      "timestamp,gpu,xcp,power_usage,max_power,hotspot_temperature,gfx_clk,gfx,mem\n"
      "1718814512,0,0,187.5,750,44,1980,98,0\n1718814512,1,0,N/A,750,44,1755,97,0\n"
      "1718814513,0,0,512,750,44,1755,99,0\n",
      "gpu,gfx_activity,umc_activity,socket_power,gfx_0_clk,gfx_0_min_clk\n"
      "0,98,1,187.5,1980,132\n1,97,1,N/A,1755,132\n"
      "gpu,gfx_activity,umc_activity,socket_power,gfx_0_clk,gfx_0_min_clk\n0,99,1,512,1755,132\n",
      "device,Current Socket Graphics Package Power (W),mclk clock speed:,sclk clock speed:,"
      "GPU use (%)\ncard0,187.5,(900Mhz),(1980Mhz),98\ncard1,N/A,(900Mhz),(1755Mhz),97\n"
      "card0,512,(900Mhz),(1755Mhz),99\n",
      // dmon as CSV; amd-smi's JSON, look behind look and in one list; metrics of an exporter,
      // scraped twice, and what a query of Prometheus answers.
      "#gpu, pwr, gtemp, sm, pclk\n#Idx, W, C, %, MHz\n0, 187.5, 40, 98, 1980\n"
      "1, -, 41, 97, 1755\n0, 512, 40, 99, 1755\n",
      R"([{"gpu": 0, "usage": {"gfx_activity": {"value": 98, "unit": "%"}},
           "power": {"socket_power": {"value": 187.5, "unit": "W"}, "gfx_voltage": "N/A"},
           "clock": {"gfx_0": {"clk": {"value": 1980, "unit": "MHz"}, "clk_locked": "DISABLED"},
                     "mem_0": {"clk": {"value": 900, "unit": "MHz"}}}},
          {"gpu": 1, "power": {"socket_power": "N/A"},
           "clock": {"gfx_0": {"clk": {"value": 1755, "unit": "MHz"}}}}]
         {"gpu_data": [{"gpu": 0, "usage": {"gfx_activity": {"value": 99, "unit": "%"}},
           "power": {"socket_power": {"value": 512, "unit": "W"}},
           "clock": {"gfx_0": {"clk": {"value": 1755, "unit": "MHz"}}}}]})",
      R"([{"timestamp": 1, "gpu": 0, "power_usage": {"value": 187.5, "unit": "W"}, "gfx": 98,
           "gfx_clk": {"value": 1980, "unit": "MHz"}},
          {"timestamp": 1, "gpu": 1, "power_usage": "N/A", "gfx": 97, "gfx_clk": 1755},
          {"timestamp": 2, "gpu": 0, "power_usage": 512, "gfx": 99, "gfx_clk": 1755}])",
      "# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).\n"
      "# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n"
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-a\",device=\"nvidia0\"} 1980\n"
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"1\",UUID=\"GPU-b\",device=\"nvidia1\"} 1755\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",device=\"nvidia0\"} 187.5\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",device=\"nvidia0\"} 98\n"
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-a\",device=\"nvidia0\"} 1755\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",device=\"nvidia0\"} 512\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",device=\"nvidia0\"} 99\n",
      "gpu_package_power{gpu_id=\"0\"} 187.5\n"
      "gpu_clock{clock_type=\"GPU_CLOCK_TYPE_SYSTEM\",gpu_id=\"0\"} 1980\n"
      "gpu_clock{clock_type=\"GPU_CLOCK_TYPE_MEMORY\",gpu_id=\"0\"} 900\n"
      "gpu_clock{clock_type=\"GPU_CLOCK_TYPE_SYSTEM\",gpu_id=\"1\"} 1755\n"
      "gpu_package_power{gpu_id=\"0\"} 512\ngpu_gfx_activity{gpu_id=\"0\"} 98\n"
      "gpu_clock{clock_type=\"GPU_CLOCK_TYPE_SYSTEM\",gpu_id=\"0\"} 1755\n"
      "gpu_gfx_activity{gpu_id=\"0\"} 99\n",
      R"({"status": "success", "data": {"resultType": "matrix", "result": [
          {"metric": {"__name__": "nvidia_smi_power_draw_watts", "gpu": "0"},
           "values": [[1, "187.5"], [2, "512"]]},
          {"metric": {"__name__": "nvidia_smi_clocks_current_sm_clock_hz", "gpu": "0"},
           "values": [[1, "1980000000"], [2, "1755000000"]]},
          {"metric": {"__name__": "nvidia_smi_utilization_gpu_ratio", "gpu": "0"},
           "values": [[1, "0.98"], [2, "0.99"]]},
          {"metric": {"__name__": "nvidia_smi_clocks_current_sm_clock_hz", "gpu": "1"},
           "value": [2, "1755000000"]}]}})"};
  for (std::size_t i = 0; i < logs.size(); ++i) {
    CAPTURE(i);
    const TelemetryLog log = read_telemetry("log", logs[i]);
    REQUIRE(log.gpus.size() == 2);
    CHECK(log.gpus[0].name == "GPU 0");
    CHECK(log.gpus[1].name == "GPU 1");
    REQUIRE(log.gpus[0].samples.size() == 2);
    REQUIRE(log.gpus[1].samples.size() == 1);
    CHECK(log.gpus[0].samples[0].power_w == 187.5);
    CHECK(log.gpus[0].samples[1].power_w == 512);
    CHECK(log.gpus[0].samples[0].clock_mhz == 1980);
    CHECK(log.gpus[0].samples[1].utilisation.value() == near(0.99));
    CHECK_FALSE(log.gpus[1].samples[0].power_w);
    CHECK(log.gpus[1].samples[0].clock_mhz == 1755);
    CHECK_FALSE(log.instant);
  }
}

TEST_CASE("telemetry: hosts, the card's highest clock, reasons and instant readings") {
  const TelemetryLog log = read_telemetry(
      "log",
      "Hostname,GPU,modelName,DCGM_FI_DEV_POWER_USAGE_INSTANT,DCGM_FI_DEV_MAX_SM_CLOCK,"
      "DCGM_FI_DEV_CLOCKS_EVENT_REASONS\nn1,0,NVIDIA H100 80GB HBM3,600,1980,4\n"
      "n2,0,NVIDIA H100 80GB HBM3,610,1980,0x0000000000000060\n");
  REQUIRE(log.gpus.size() == 2);
  CHECK(log.gpus[1].name == "n2 GPU 0");
  CHECK(log.gpus[1].samples.at(0).reasons == 0x60);
  CHECK(log.max_clock_mhz == 1980);
  CHECK(log.device == "NVIDIA H100 80GB HBM3");
  CHECK(log.instant);
}

TEST_CASE("telemetry: rows of one time that no column tells apart are refused") {
  const std::string heading = "timestamp, power.draw [W], clocks.current.sm [MHz]\n";
  CHECK(
      telemetry_mistake(heading + "2026/09/11 04:19:41.982, 500 W, 1500 MHz\n"
                                  "2026/09/11 04:19:41.986, 300 W, 900 MHz\n")
          .starts_with("log: found several rows of one time, and no column that tells GPUs apart"));
  const TelemetryLog one = read_telemetry("log", heading +
                                                     "2026/09/11 04:19:41.982, 500 W, 1500 MHz\n"
                                                     "2026/09/11 04:19:42.982, 300 W, 900 MHz\n");
  CHECK(one.gpus.front().samples.size() == 2);
  // A long log without times: the k-th row of each field is of the k-th sample.
  const TelemetryLog rows =
      read_telemetry("log",
                     "metric,value\nDCGM_FI_DEV_POWER_USAGE,300\nDCGM_FI_DEV_SM_CLOCK,1500\n"
                     "DCGM_FI_DEV_POWER_USAGE,700\nDCGM_FI_DEV_SM_CLOCK,1600\n");
  REQUIRE(rows.gpus.front().samples.size() == 2);
  CHECK(rows.gpus.front().samples[0].power_w == 300.0);
  CHECK(rows.gpus.front().samples[1].clock_mhz == 1600.0);
}

TEST_CASE("telemetry: of nvidia-smi -q power, clock and busy share of each GPU, look by look") {
  const std::string gpu =
      "GPU 00000000:19:00.0\n"
      "    Product Name                          : NVIDIA H100 80GB HBM3\n"
      "    Utilization\n        GPU                               : 98 %\n"
      "    GPU Power Readings\n        Average Power Draw                : 640.12 W\n"
      "        Instantaneous Power Draw          : 655.00 W\n"
      "        Current Power Limit               : 700.00 W\n"
      "    Module Power Readings\n        Average Power Draw                : 900.00 W\n"
      "    Clocks\n        Graphics                          : 1980 MHz\n"
      "        SM                                : 1755 MHz\n"
      "    Max Clocks\n        SM                                : 1980 MHz\n";
  const std::string head = "==============NVSMI LOG==============\n\nAttached GPUs  : 1\n";
  const TelemetryLog log = read_telemetry("q.txt", head + gpu + head + gpu);
  REQUIRE(log.gpus.size() == 1);
  CHECK(log.gpus[0].name == "GPU 00000000:19:00.0");
  CHECK(log.device == "NVIDIA H100 80GB HBM3");
  REQUIRE(log.gpus[0].samples.size() == 2);
  CHECK(log.gpus[0].samples[1].power_w == 640.12);
  CHECK(log.gpus[0].samples[1].clock_mhz == 1755);
  CHECK(log.gpus[0].samples[1].utilisation.value() == near(0.98));
  CHECK(log.max_clock_mhz == 1980);
  CHECK_FALSE(log.instant);
}

TEST_CASE("telemetry: a sample of Prometheus that is no number, and a text cut off, are refused") {
  const std::string power = "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} ";
  CHECK(telemetry_mistake(power + "500\n" + power + "12abc\n") ==
        "log: found \"12abc\" of DCGM_FI_DEV_POWER_USAGE in line 2; allowed: a number of at "
        "least 0, or NaN for a sample that is missing");
  CHECK(telemetry_mistake("nvidia_smi_power_draw_watts{gpu=\"0\"} 5 W\n" + power + "+Inf\n")
            .starts_with("log: found \"+Inf\" of DCGM_FI_DEV_POWER_USAGE in line 2; "));
  CHECK(telemetry_mistake(power + "500\n" + power + "51") ==
        "log: found \"DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 51\" in line 2; allowed: a last line "
        "that ends, as exporters write it: this file was cut off");
  // A scrape that broke off, and the next one behind it.
  CHECK(telemetry_mistake(power + "500\nDCGM_FI_DEV_SM_CLOCK{gpu=\"# HELP\n" + power + "500\n")
            .starts_with("log: found \"DCGM_FI_DEV_SM_CLOCK{gpu=\"# HELP\" in line 2; "));
  const auto query = [](const std::string& points) {
    return R"({"data": {"result": [{"metric": {"__name__": "gpu_package_power", "gpu_id": "0"},
               "values": [[1, "500"], )" +
           points + "]}]}}";
  };
  CHECK(telemetry_mistake(query(R"([2, "abc"])")) ==
        "log#/data/result/0/values/1/1: found \"abc\"; allowed: a number of at least 0, or NaN for "
        "a sample that is missing");
  CHECK(telemetry_mistake(query("[2, null]"))
            .starts_with("log#/data/result/0/values/1/1: found \"null\"; "));
  CHECK(telemetry_mistake(query("[2]")) ==
        "log#/data/result/0/values/1: found \"[2]\"; allowed: [time, \"value\"]");
  const std::string whole = query(R"([2, "510"])");
  CHECK(telemetry_mistake(whole).empty());
  CHECK(telemetry_mistake(whole + "\n" + whole.substr(0, whole.size() - 4))
            .starts_with("log: found a text that ends within the value that begins at line 3, "));
  CHECK(telemetry_mistake(whole + "\n" + "}\n")
            .starts_with("log: found a bracket that closes nothing at line 3, column 1; "));
}

TEST_CASE(
    "telemetry: NaN of Prometheus is a missing sample and counted, and other metrics are not "
    "read") {
  const TelemetryLog log = read_telemetry(
      "log",
      "go_gc_duration_seconds{quantile=\"0\"} NaN\ngo_goroutines 9\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} NaN\nDCGM_FI_DEV_SM_CLOCK{gpu=\"0\"} 1980\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 500\nDCGM_FI_DEV_SM_CLOCK{gpu=\"0\"} 1755\n# EOF");
  CHECK(log.missing == 1);
  REQUIRE(log.gpus.size() == 1);
  REQUIRE(log.gpus[0].samples.size() == 2);
  CHECK_FALSE(log.gpus[0].samples[0].power_w);
  CHECK(log.gpus[0].samples[1].power_w == 500);
  CHECK(log.gpus[0].samples[1].clock_mhz == 1755);

  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kMonitoredJob);
  const std::string file = folder.write(
      "gpus.prom",
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} NaN\nDCGM_FI_DEV_SM_CLOCK{gpu=\"0\"} 1980\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 500\nDCGM_FI_DEV_SM_CLOCK{gpu=\"0\"} 1755\n");
  const Ran ran = lockstep_with({"diagnose", job, "--telemetry", file});
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out.find("note: 1 sample without a value (NaN) is left out") != std::string::npos);
}

TEST_CASE("telemetry: what is no log is one line") {
  for (const char* const text :
       {"", "hello", "a,b\n1,2\n", "{\"a\": 1}\n", "[", "[{\"gpu\": 0}]", "[1]",
        R"({"data": {"result": [{"metric": {}, "values": "x"}]}})",
        "DCGM_FI_DEV_FB_USED{gpu=\"0\"} 5\n", "DCGM_FI_DEV_POWER_USAGE{gpu=\n",
        "==NVSMI LOG==\nGPU 0\n", "# gpu fb\n0 5\n", "#\n", "index, power.draw [W]\n0, [N/A]\n",
        "index, power.draw [W]\n0, 5 W, 7\n", "index, power.draw [W]\n0, \"5\n"}) {
    CAPTURE(text);
    const std::string line = telemetry_mistake(text);
    CHECK(line.starts_with("log"));
    CHECK(line.find("; allowed: ") != std::string::npos);
    CHECK(line.find('\n') == std::string::npos);
  }
}

TEST_CASE("lockstep diagnose --telemetry: power beside the prediction, and the throttled GPU") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kMonitoredJob);
  std::vector<std::vector<Reading>> readings(8, {{600, 1500, 99}, {640, 1500, 99}});
  readings[5] = {{480, 1200, 99, 0x20}, {500, 1200, 99, 0x24}};
  const std::string idle = smi_log(8, 3, std::vector<std::vector<Reading>>(8, {{70, 1980, 0}}));
  const std::string busy = smi_log(8, 200, readings);
  const std::string log = folder.write("gpus.csv", idle + busy.substr(busy.find('\n') + 1) + idle);
  const TelemetryJson json = monitored({job, "--telemetry", log});
  const TelemetryJson& found = json["telemetry"];
  CHECK(found["measured_power"]["mean_w"].get<double>() == near(620));
  CHECK(found["measured_power"]["p99_w"].get<double>() == near(640));
  CHECK(found["measured_power"]["swing_w"].get<double>() == near(40));
  CHECK(found["clock_mhz"].get<double>() == near(1500));
  CHECK(found["highest_clock_mhz"].get<double>() == near(1980));
  CHECK(found["measured_clock_share"].get<double>() == near(1500.0 / 1980));
  CHECK(found["slowest_gpu"] == "GPU 5");
  REQUIRE(found["gpus"].size() == 8);
  CHECK(found["gpus"][5]["slow"] == true);
  CHECK(found["gpus"][4]["slow"] == false);
  CHECK(found["gpus"][5]["samples"] == 200);
  CHECK(found["gpus"][5]["clock_over_median"].get<double>() == near(0.8));
  CHECK(found["gpus"][5]["throttled"]["thermal limit"].get<double>() == near(1));
  CHECK(found["gpus"][5]["throttled"]["power cap"].get<double>() == near(0.5));
  CHECK(found["notes"].dump().find("48 samples before and after the job") != std::string::npos);
  const Ran run = lockstep_with({"run", job, "--set", "power={}", "--format", "json"});
  REQUIRE_MESSAGE(run.exit == Exit::ok, run.err);
  const TelemetryJson predicted = TelemetryJson::parse(run.out);
  CHECK(json["predicted_s"] == predicted["step_s"]);
  CHECK(found["predicted_power"]["mean_w"] == predicted["power"]["gpu"]["mean_w"]);
  const Ran table = lockstep_with({"diagnose", job, "--telemetry", log});
  // The verdict names it, before all tables.
  CHECK(
      table.out.substr(0, table.out.find("power of a GPU")).find(". GPU 5 is slow: its clock is") !=
      std::string::npos);
  CHECK(table.out.find("GPU 5 is slow: its clock is 20.0 % below the median GPU's; power cap in") !=
        std::string::npos);
  CHECK(table.out.find("1500 MHz in the mean, 75.8 % of the highest") != std::string::npos);
}

TEST_CASE("lockstep diagnose --telemetry: beside traces, what a slow clock costs a step") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kMonitoredJob);
  const std::string trace = folder.write(
      "rank3.json", R"({"distributedInfo": {"rank": 3, "world_size": 8}, "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 100,
         "args": {"stream": 7}}]})");
  std::vector<std::vector<Reading>> readings(3, {{600, 1500, 99}});
  readings[0] = {{600, 1250, 99}};
  const std::string log = folder.write("gpus.csv", smi_log(3, 10, readings));
  TelemetryJson both = monitored({job, trace, "--telemetry", log});
  const TelemetryJson telemetry = both["telemetry"];
  double products = 0;
  for (const TelemetryJson& part : both["parts"]) {
    if (part["name"] == "products") products = part["predicted_s"].get<double>();
  }
  CHECK(products > 0);
  CHECK(telemetry["gpus"][0]["costs_s"].get<double>() == near(products * (1500.0 / 1250 - 1)));
  CHECK(telemetry["gpus"][1]["costs_s"] == 0);
  CHECK(telemetry["notes"].dump().find("of 3 GPUs, the scenario of 8") != std::string::npos);
  // Everything else is as without it.
  both.erase("telemetry");
  CHECK(both == monitored({job, trace}));
}

TEST_CASE(
    "lockstep diagnose --telemetry: of several files each is a node's, another card is none") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kMonitoredJob);
  const std::string log = smi_log(1, 5, {{{600, 1500, 99}}});
  const std::string first = folder.write("a.csv", log), second = folder.write("b.csv", log);
  const TelemetryJson json = monitored({job, "--telemetry", first, "--telemetry", second});
  REQUIRE(json["telemetry"]["gpus"].size() == 2);
  CHECK(json["telemetry"]["gpus"][1]["name"] == second + ": GPU 0");
  CHECK_FALSE(json["telemetry"].contains("slowest_gpu"));
  std::string other = log;
  for (std::size_t at = other.find("H100"); at != std::string::npos; at = other.find("H100", at)) {
    other.replace(at, 4, "A100");
  }
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"diagnose", job}, "lockstep diagnose: a trace is missing; usage: "},
      {{"diagnose", job, "--telemetry", first, "--step", "3"}, "lockstep diagnose: --step is for"},
      {{"diagnose", job, "--telemetry", folder.write("c.csv", other)},
       folder.path() + "/c.csv: found recorded on \"NVIDIA A100 80GB HBM3\"; allowed: "}};
  for (const auto& [words, line] : mistakes) {
    const Ran ran = lockstep_with(words);
    CHECK(ran.exit == Exit::bad_input);
    CHECK_MESSAGE(ran.err.starts_with(line), ran.err);
    CHECK(ran.out.empty());
  }
}
