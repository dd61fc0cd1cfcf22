// Power limits, capital and missing prices, as the commands print them.
#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::lockstep_with;
using test::Ran;

constexpr const char* kPoweredJob = R"({
  "model": "llama3_8b", "stack": "megatron_core",
  "cluster": {"node": "dgx_h100", "nodes": 4, "fabric": "fat_tree"},
  "parallelism": {"data": 32, "sharding": "zero1"},
  "batch": {"sequences": 32, "micro": 1, "tokens": 8192},
  "recompute": "full",
  "power": {"site_limit": "20 kW"}
})";
constexpr const char* kRunOfIt = R"({
  "duration": "20 d",
  "reliability": {"modes": [{"name": "node", "component": "node", "mean_time": "4 d"}]},
  "checkpoint": {"interval": "1 h", "mode": "synchronous",
                 "storage": {"write": "1 GB/s", "read": "1 GB/s"}},
  "trajectories": 20
})";

Json powered(bool run) {
  Json scenario = Json::parse(kPoweredJob);
  if (run) scenario["run"] = Json::parse(kRunOfIt);
  return scenario;
}
Json answer_to(const Json& scenario, const std::vector<std::string>& more = {}) {
  const test::TemporaryFolder folder;
  std::vector<std::string> args{"run", folder.write("s.json", scenario.dump()), "--format", "json"};
  args.insert(args.end(), more.begin(), more.end());
  const Ran ran = lockstep_with(args);
  REQUIRE(ran.exit == Exit::ok);
  return Json::parse(ran.out);
}

}  // namespace

TEST_CASE("one quantity has one name in the answers of steps, weeks, jobs and rollouts") {
  const Json step = answer_to(powered(false)), weeks = answer_to(powered(true));
  const Json& facility = step.at("power").at("facility");
  CHECK(weeks.at("facility_power").at("ramp_w_per_s") == facility.at("ramp_w_per_s"));
  CHECK(facility.at("ramp_mw_per_s").get<double>() ==
        doctest::Approx(1e-6 * facility.at("ramp_w_per_s").get<double>()));
  const Json& bill = step.at("power").at("bill");
  CHECK(bill.at("energy_j").get<double>() ==
        doctest::Approx(3.6e6 * bill.at("energy_kwh").get<double>()));
  CHECK(weeks.contains("energy_j"));

  const std::string scenarios = LOCKSTEP_SOURCE_DIR "/scenarios/";
  const auto of_file = [&](const char* file) {
    const Ran ran = lockstep_with({"run", scenarios + file, "--format", "json"});
    REQUIRE(ran.exit == Exit::ok);
    return Json::parse(ran.out);
  };
  const Json job = of_file("congestion/spine-dies.json").at("jobs").at(0);
  const Json rl = of_file("rl/grpo-llama3-8b-colocated.json");
  CHECK(step.contains("mfu"));
  CHECK(job.at("mfu") == job.at("mfu_full"));
  CHECK(job.at("alone_mfu") == job.at("alone_mfu_full"));
  CHECK(rl.at("training_mfu") == rl.at("training_mfu_full"));
}

TEST_CASE("names of before: the README has each by the place at which answers have it") {
  const std::string readme = read_text_file(LOCKSTEP_SOURCE_DIR "/tools/lockstep/README.md");
  std::istringstream fields(read_text_file(LOCKSTEP_SOURCE_DIR "/sim/answer/fields.md"));
  std::size_t old = 0;
  for (std::string line; std::getline(fields, line);) {
    if (line.find("Old name of ") == std::string::npos) continue;
    std::string path = line.substr(0, line.find(' '));
    constexpr std::string_view kSite = "power.";
    if (path.starts_with(kSite)) path.erase(0, kSite.size());
    CAPTURE(path);
    CHECK(readme.find("`" + path + "`") != std::string::npos);
    ++old;
  }
  CHECK(old > 10);
}

TEST_CASE("a limit that --set gives without a unit is read in base units, and the answer says so") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("s.json", powered(false).dump());
  const std::vector<std::string> set{"run", file, "--set", "power.site_limit=5"};
  CHECK(lockstep_with(set).out.find("- power.site_limit: 5 W (no unit given)") !=
        std::string::npos);
  const std::string with_unit = "power.site_limit=\"5 MW\"";
  CHECK(lockstep_with({"run", file, "--set", with_unit}).out.find("no unit") == std::string::npos);
}

TEST_CASE("a step's page says what its table says: what cannot be, first, and every line of it") {
  Json scenario = powered(false);
  scenario["recompute"] = "none";
  scenario["parallelism"] = {{"data", 32}};
  const test::TemporaryFolder folder;
  const std::string file = folder.write("s.json", scenario.dump());
  const std::string page = folder.path() + "/step.html";
  const std::string table = lockstep_with({"run", file, "--allow-oom", "--report", page}).out;
  const std::string html = read_text_file(page);
  const std::size_t time = html.find("A step takes ");
  REQUIRE(time != std::string::npos);
  for (const char* const first : {"DOES NOT FIT", "EXCEEDED: the site draws "}) {
    CAPTURE(first);
    CHECK(table.find(first) < table.find("Model"));
    CHECK(html.find(first) < time);
  }
  for (const char* const line :
       {"Job", "Software", "Fabric", "90 % interval", "Memory", "Nameplate"}) {
    CAPTURE(line);
    CHECK(table.find("  " + std::string(line) + " ") != std::string::npos);
    const std::string whole = std::regex_replace(line, std::regex(" %"), "\u00a0%");
    CHECK(html.find(">" + whole + "<") != std::string::npos);
  }
}

TEST_CASE("a power limit that is exceeded is said before the step's time, in steps and in runs") {
  const test::TemporaryFolder folder;
  for (const bool run : {false, true}) {
    CAPTURE(run);
    const std::string file = folder.write("s.json", powered(run).dump());
    const std::string table = lockstep_with({"run", file}).out;
    const std::size_t warning = table.find("EXCEEDED: the site draws ");
    REQUIRE(warning != std::string::npos);
    CHECK(std::count(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(warning), '\n') ==
          1);
    CHECK(table.find("above its limit of 20.00") != std::string::npos);

    const Json json = answer_to(powered(run));
    CHECK(json["site_limit_w"] == 20'000);
    CHECK(json["site_excess_w"].get<double>() ==
          doctest::Approx(json["site_peak_w"].get<double>() - 20'000));
    CHECK(lockstep_with({"run", file}).exit == Exit::ok);
    const Ran missed = lockstep_with({"run", file, "--assert", "site_excess_w<=0"});
    CHECK(missed.exit != Exit::ok);
    CHECK(missed.err.starts_with("assertion missed: site_excess_w<=0"));

    const std::string kept = lockstep_with({"run", file, "--set", "power.site_limit=1 MW"}).out;
    CHECK(kept.find("EXCEEDED") == std::string::npos);
  }
}

TEST_CASE("capital to be spent, write-off and running cost are three figures") {
  Json scenario = powered(true);
  scenario["cost"] = {{"usd_per_gpu", 25'000},
                      {"usd_per_node", 60'000},
                      {"usd_per_100g_port", 100},
                      {"usd_per_facility_w", 10},
                      {"usd_per_kwh", 0.1},
                      {"people_usd_per_hour", 100},
                      {"years", 4}};
  const Json json = answer_to(scenario);
  CHECK(json["capital_machines_usd"] == 32 * 25'000 + 4 * 60'000);
  const double capital = json["capital_usd"], write_off = json["write_off_usd"];
  CHECK(capital == doctest::Approx(json["capital_machines_usd"].get<double>() +
                                   json["capital_network_usd"].get<double>() +
                                   json["capital_building_usd"].get<double>()));
  CHECK(write_off == doctest::Approx(capital * 20 / (4 * 365.25)));
  CHECK(json["owned_usd"].get<double>() ==
        doctest::Approx(write_off + json["running_usd"].get<double>()));
  CHECK(json["running_usd"].get<double>() > 100 * 20 * 24);
  CHECK(json["gpu_nameplate_w"] == 32 * 700);
  CHECK_FALSE(json.contains("missing_prices"));

  scenario.erase("run");
  const Json step = answer_to(scenario);
  CHECK(step["power"]["bill"]["capital_usd"].get<double>() == doctest::Approx(capital));
  CHECK(step["power"]["gpu_nameplate_w"] == 32 * 700);
  const test::TemporaryFolder folder;
  const std::string table = lockstep_with({"run", folder.write("s.json", scenario.dump())}).out;
  CHECK(table.find("USD to be spent (machines ") != std::string::npos);
  CHECK(table.find("22.40 kW of GPUs by their datasheet") != std::string::npos);
}

TEST_CASE("a cap lowers no nameplate") {
  const Json json = answer_to(powered(false), {"--set", "power.cap=500 W"});
  CHECK(json["power"]["gpu_nameplate_w"] == 32 * 700);
  CHECK(json["power"]["gpu"]["limit_w"] == 500);
}

TEST_CASE("without prices there is no money in the answer, and those that are missing are named") {
  for (const bool run : {false, true}) {
    CAPTURE(run);
    const Json json = answer_to(powered(run));
    const Json& bill = run ? json : json["power"]["bill"];
    CHECK(bill["missing_prices"][0] == "cost.usd_per_gpu");
    CHECK(bill["missing_prices"].size() == 7);
    for (const auto& [key, value] : bill.items()) {
      CAPTURE(key);
      CHECK_FALSE(key.ends_with("_usd"));
    }
  }
}

TEST_CASE("a tariff alone is the energy's money, and owns nothing") {
  const test::TemporaryFolder folder;
  for (const bool run : {false, true}) {
    CAPTURE(run);
    Json scenario = powered(run);
    scenario["cost"] = {{"usd_per_kwh", 0.1}};
    const Json json = answer_to(scenario);
    const Json& bill = run ? json : json["power"]["bill"];
    for (const char* of_machines :
         {"owned_usd", "capital_usd", "capital_machines_usd", "write_off_usd",
          "owned_usd_per_trillion_tokens", "owned_usd_per_eflop", "gpus_usd"}) {
      CAPTURE(of_machines);
      CHECK_FALSE(bill.contains(of_machines));
      CHECK_FALSE(json.contains(of_machines));
    }
    CHECK(bill["running_usd"].get<double>() ==
          doctest::Approx(json["energy_j"].get<double>() / 3.6e6 * 0.1));
    CHECK(bill["missing_prices"][0] == "cost.usd_per_gpu");
    const std::string file = folder.write("s.json", scenario.dump());
    const std::string table = lockstep_with({"run", file}).out;
    CHECK(table.find(" USD, energy only") != std::string::npos);
    CHECK(table.find("USD owned") == std::string::npos);
    CHECK(lockstep_with({"run", file, "--assert", "owned_usd<=1"}).exit == Exit::bad_input);
  }
}

TEST_CASE("a tariff of the run's site is the energy's money, and owns nothing") {
  const test::TemporaryFolder folder;
  Json scenario = powered(true);
  scenario.erase("cost");
  std::string hours = "time,usd_per_kwh\n";
  for (int hour = 0; hour < 24; ++hour) hours += fmt::format("2026-01-01T{:02}:00,0.1\n", hour);
  scenario["run"]["site"] = {{"hours", folder.write("hours.csv", hours)}};
  const Json json = answer_to(scenario);
  CHECK_FALSE(json.contains("owned_usd"));
  CHECK(json["running_usd"].get<double>() ==
        doctest::Approx(json["energy_j"].get<double>() / 3.6e6 * 0.1));
  CHECK(json["missing_prices"].dump().find("cost.usd_per_kwh") == std::string::npos);
  CHECK(json["missing_prices"].size() == 6);
  const std::string table = lockstep_with({"run", folder.write("s.json", scenario.dump())}).out;
  CHECK(table.find(" USD, energy only") != std::string::npos);
  CHECK(table.find("USD owned") == std::string::npos);
}

TEST_CASE("a run's peak is that of its site's hours, and of the lots while they draw most") {
  const auto peak_of = [](Json scenario) {
    scenario["power"]["site_limit"] = "1 kW";
    return answer_to(scenario);
  };
  Json scenario = powered(true);
  Json at_40 = scenario;
  at_40["power"]["outside_celsius"] = 40;
  const Json hot = peak_of(at_40);
  const double idle = hot["facility_power"]["idle_w"];
  // The same weather by the hour, and a meter never reads less than an hour's mean.
  scenario["run"]["site"] = {
      {"weather",
       {{"mean_celsius", 40}, {"yearly_kelvin", 0}, {"daily_kelvin", 0}, {"noise_kelvin", 0}}}};
  const Json sited = peak_of(scenario);
  CHECK(sited["site_peak_w"].get<double>() ==
        doctest::Approx(hot["site_peak_w"].get<double>()).epsilon(1e-3));
  CHECK(sited["site_peak_w"].get<double>() >= sited["site"]["drawn_w"].get<double>());
  // Three times the job's four nodes: eight stand idle.
  Json lots = at_40;
  lots["run"]["spares"] = {{"hot", 0}, {"repair", "1 d"}};
  lots["run"]["purchase"] = {
      {"lots", {{{"name", "a"}, {"terms", "on_demand"}, {"nodes", 12}, {"usd_per_gpu_hour", 2}}}}};
  lots.erase("cost");
  const Json bought = peak_of(lots);
  CHECK(bought["site_peak_w"].get<double>() ==
        doctest::Approx(hot["site_peak_w"].get<double>() + 8 * idle / 4).epsilon(1e-6));
}

TEST_CASE(
    "own lots pay for the energy that the run takes, by its tariff, and rented ones for none") {
  Json scenario = powered(true);
  scenario["cost"] = {{"usd_per_kwh", 0.1}};
  scenario["run"]["purchase"] = {
      {"loses", 0.3},
      {"lots", {{{"name", "a"}, {"terms", "buy"}, {"nodes", 12}, {"usd_per_node", 300'000}}}}};
  const Json own = answer_to(scenario);
  const double usd = own["energy_j"].get<double>() / 3.6e6 * 0.1;
  CHECK(own["purchase"]["energy_usd"].get<double>() == doctest::Approx(usd).epsilon(1e-9));
  CHECK(own["running_usd"].get<double>() == doctest::Approx(usd).epsilon(1e-9));
  // Eight nodes stand idle, and four do what the job alone does.
  scenario["run"].erase("purchase");
  const Json alone = answer_to(scenario);
  const double seconds = own["wall_s"], idle = alone["facility_power"]["idle_w"];
  CHECK(own["energy_j"].get<double>() > 8 * idle / 4 * seconds);
  CHECK(own["energy_j"].get<double>() <
        (alone["facility_power"]["training_w"].get<double>() + 8 * idle / 4) * seconds);

  scenario["run"]["purchase"] = {
      {"lots", {{{"name", "a"}, {"terms", "on_demand"}, {"nodes", 12}, {"usd_per_gpu_hour", 2}}}}};
  const Json rented = answer_to(scenario);
  CHECK(rented["running_usd"] == 0);
  CHECK(rented["purchase"]["energy_usd"] == 0);
  CHECK(rented["energy_j"] == own["energy_j"]);
}

TEST_CASE("carbon is in the answer where the grid's intensity is given, and only there") {
  const test::TemporaryFolder folder;
  for (const bool run : {false, true}) {
    CAPTURE(run);
    const Json unknown = answer_to(powered(run));
    CHECK_FALSE(unknown.contains("tonnes_co2"));
    if (!run) CHECK_FALSE(unknown["power"]["bill"].contains("tonnes_co2"));
    const std::string file = folder.write("s.json", powered(run).dump());
    CHECK(lockstep_with({"run", file, "--assert", "tonnes_co2<=1"}).exit == Exit::bad_input);
    CHECK(lockstep_with({"run", file}).out.find("CO2") == std::string::npos);
    const std::vector<std::string> given{"--set", "cost.grams_per_kwh=100"};
    const Json known = answer_to(powered(run), given);
    CHECK(known["tonnes_co2"].get<double>() ==
          doctest::Approx(known["energy_j"].get<double>() / 3.6e6 * 100e-6));
    CHECK(answer_to(powered(run), {"--set", "cost.grams_per_kwh=0"})["tonnes_co2"] == 0);
  }
}

TEST_CASE(
    "an advised checkpoint interval comes with what it writes, and keeps the storage's share") {
  Json scenario = powered(true);
  scenario["run"]["checkpoint"]["storage"] = {{"write", "2 GB/s"}, {"read", "2 GB/s"}};
  const std::vector<std::string> optimise{"--optimise", "run.checkpoint.interval"};
  const auto share_of = [](const Json& point) { return point["storage_share"].get<double>(); };
  const Json free = answer_to(scenario, {"--optimise", "run.checkpoint.interval", "--set",
                                         "run.checkpoint.storage_share=100 %"})["optimum"];
  scenario["run"]["checkpoint"]["storage_share"] = 0.5 * share_of(free["best"]);
  const Json json = answer_to(scenario, optimise);
  const Json& kept = json["optimum"];
  CHECK(share_of(kept["best"]) <= 0.5 * share_of(free["best"]) * (1 + 1e-9));
  CHECK(kept["best"]["interval_s"] >= kept["least_interval_s"]);
  CHECK(kept["limited_by_storage"] == true);
  CHECK(free["limited_by_storage"] == false);
  // 14 bytes for each of 8.03 billion parameters, every interval and the wait for it.
  const double each = json["checkpoint_bytes"];
  const double wait = json["checkpoint_tiers"][0]["blocks_s"];
  const double period = kept["best"]["interval_s"].get<double>() + wait;
  CHECK(kept["best"]["written_bytes_per_s"].get<double>() == doctest::Approx(each / period));
  CHECK(kept["best"]["written_bytes_per_day"].get<double>() ==
        doctest::Approx(86'400 * each / period));
  CHECK(share_of(kept["best"]) == doctest::Approx(each / period / 2e9));

  const test::TemporaryFolder folder;
  const std::string file = folder.write("s.json", scenario.dump());
  const std::string page = folder.path() + "/run.html";
  const Ran ran =
      lockstep_with({"run", file, "--optimise", "run.checkpoint.interval", "--report", page});
  CHECK(ran.out.find("of the storage") != std::string::npos);
  CHECK(ran.out.find("run.checkpoint.storage_share") != std::string::npos);
}

TEST_CASE("run: a bound on failures before the work begins") {
  Json scenario = powered(true);
  scenario["run"]["reliability"]["modes"][0]["mean_time"] = "1 ms";
  const test::TemporaryFolder folder;
  const std::string file = folder.write("s.json", scenario.dump());
  for (const char* time : {"1 ms", "1 s"}) {
    const Ran ran = lockstep_with(
        {"run", file, "--set", std::string("run.reliability.modes.0.mean_time=") + time});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    CHECK(ran.err.find("#/run/reliability/modes/0: found \"node\" every ") != std::string::npos);
  }
  CHECK(lockstep_with({"run", file, "--set", "run.reliability.modes.0.mean_time=20000 d"}).exit ==
        Exit::ok);
}

TEST_CASE("run: no failure seen is said as that, with a bound") {
  Json scenario = powered(true);
  scenario["run"]["reliability"]["modes"][0]["mean_time"] = "1e12 s";
  const Json json = answer_to(scenario);
  CHECK(json["mttf_s"].is_null());
  CHECK(json["mttf_at_least_s"].get<double>() == doctest::Approx(20 * 20 * 86'400 / 2.9957));
  const test::TemporaryFolder folder;
  const std::string table = lockstep_with({"run", folder.write("s.json", scenario.dump())}).out;
  CHECK(table.find("none seen; with 95 % confidence at least ") != std::string::npos);
}

}  // namespace lockstep
