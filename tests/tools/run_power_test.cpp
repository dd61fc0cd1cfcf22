// The power block of `lockstep run`.
#include <doctest/doctest.h>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tools/views/run/run_result.hpp"
#include "tools/views/traces/power_trace.hpp"

namespace lockstep {
namespace {

RunResult priced() {
  const PresetStore presets;
  RunResult r{.scenario = load_scenario(
                  LOCKSTEP_SOURCE_DIR "/scenarios/power/llama3-405b-16k-power.json", presets),
              .report = {},
              .memory = {}};
  r.report = simulate_step(r.scenario, {.record_timeline = true, .keep_actors = true});
  r.power = step_power(r.scenario, r.report);
  return r;
}
const RunResult& result() {
  static const RunResult r = priced();
  return r;
}

}  // namespace

TEST_CASE("run: the JSON's power agrees with itself") {
  const auto json = power_json(result());
  double shares = 0, joules = 0;
  for (const auto& share : json["shares"]) {
    shares += share["share"].get<double>();
    joules += share["energy_j"].get<double>();
  }
  const double step = json["energy_per_step_j"].get<double>();
  CHECK(shares == doctest::Approx(1).epsilon(1e-9));
  CHECK(joules == doctest::Approx(step).epsilon(1e-9));
  CHECK(json["facility"]["mean_w"].get<double>() * result().report.step_s ==
        doctest::Approx(step).epsilon(1e-9));
  CHECK(json["joules_per_token"].get<double>() ==
        doctest::Approx(step / result().report.tokens_per_step));
  CHECK(json["stages"].size() == 16);
  CHECK(json["gpu"]["peak_w"].get<double>() <= json["gpu"]["limit_w"].get<double>());
  const auto& bill = json["bill"];
  CHECK(bill["energy_usd"].get<double>() ==
        doctest::Approx(0.07 * bill["energy_kwh"].get<double>()));
  CHECK(bill["tonnes_co2"].get<double>() ==
        doctest::Approx(380e-6 * bill["energy_kwh"].get<double>()));
  CHECK(bill["usd_per_trillion_tokens"].get<double>() ==
        doctest::Approx(bill["owned_usd"].get<double>() / 15.6));
  CHECK(bill["cloud_usd"].get<double>() ==
        doctest::Approx(2.5 * 16384 * bill["seconds"].get<double>() / 3600));
}

TEST_CASE("run: the table names mean, extremes, meter, ramp, energy, bill and site") {
  const std::string table = result_table(result(), TextStyle{});
  for (const char* label : {"\nPower (", "  GPU", "  Node", "  Facility", "  Ramp", "  Energy",
                            "  Goes into", "  Bill", "  Site", "MW/s", "J per token"}) {
    CAPTURE(label);
    CHECK(table.find(label) != std::string::npos);
  }
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
}

TEST_CASE("run --power-trace: its integral is the energy of the step") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/power.csv";
  write_power_trace(file, result());
  std::istringstream lines(read_text_file(file));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "time_s,gpu_w,node_w,rack_w,row_w,facility_w");
  double before = 0, watts = 0, joules = 0;
  while (std::getline(lines, line)) {
    const double time = std::stod(line);
    joules += watts * (time - before);
    before = time;
    watts = std::stod(line.substr(line.rfind(',') + 1));
  }
  CHECK(joules == doctest::Approx(result().power->energy().base_units()).epsilon(1e-9));
}

TEST_CASE("run --power-trace: OpenMetrics has the values of the CSV, series by series, in time") {
  const test::TemporaryFolder folder;
  const std::string csv = folder.path() + "/power.csv", metrics = folder.path() + "/power.om";
  write_power_trace(csv, result());
  write_power_trace(metrics, result());
  std::istringstream lines(read_text_file(metrics));
  std::string line, last, before;
  std::vector<std::string> order;
  double time = -1;
  int samples = 0;
  while (std::getline(lines, line)) {
    last = line;
    if (line.starts_with("# ")) continue;
    const std::string series = line.substr(0, line.find('}') + 1);
    const double at = std::stod(line.substr(line.rfind(' ') + 1));
    if (series != before) order.push_back(series);
    CHECK((series != before || at > time));
    before = series;
    time = at;
    ++samples;
  }
  CHECK(last == "# EOF");
  CHECK(order == std::vector<std::string>{
                     "lockstep_power_watts{of=\"gpu\"}", "lockstep_power_watts{of=\"node\"}",
                     "lockstep_power_watts{of=\"rack\"}", "lockstep_power_watts{of=\"row\"}",
                     "lockstep_power_watts{of=\"facility\"}"});
  std::istringstream rows(read_text_file(csv));
  std::getline(rows, line);
  std::getline(rows, line);
  CHECK(read_text_file(metrics).find("lockstep_power_watts{of=\"facility\"} " +
                                     line.substr(line.rfind(',') + 1) + " 0\n") !=
        std::string::npos);
  CHECK(samples > 10);
}

}  // namespace lockstep
