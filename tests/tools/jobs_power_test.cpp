// What `lockstep run` of several jobs on one fabric says of power and money in CSV and on the page.
#include <doctest/doctest.h>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/answer/shared_answer.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "tests/support/presets.hpp"
#include "tests/tools/ran.hpp"
#include "tools/views/report/congestion_page.hpp"
#include "tools/views/report/page.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;

const std::string kTwoJobs = LOCKSTEP_SOURCE_DIR "/scenarios/congestion/two-jobs-one-spine.json";
const std::vector<std::string> kPriced{"power.site_limit=60 kW", "cost.usd_per_gpu=25000",
                                       "price.usd_per_gpu_hour=2.5"};

std::string run_of_two_jobs(const std::string& format, const std::vector<std::string>& sets) {
  std::vector<std::string> args{"run", kTwoJobs, "--format", format};
  for (const std::string& set : sets) args.insert(args.end(), {"--set", set});
  return lockstep_with(args).out;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream cells(line);
  for (std::string cell; std::getline(cells, cell, ',');) out.push_back(cell);
  return out;
}

/// The page's headline and table of power.
std::string power_page(const std::vector<std::string>& sets) {
  const ParsedScenario parsed = parse_scenario(kTwoJobs, read_text_file(kTwoJobs), sets);
  const ScenarioFile file = read_scenario_file(parsed, test::presets());
  const SharedResult result = simulate_shared(*file.jobs);
  const std::optional<SharedPower> power = power_of(*file.jobs, result);
  const PowerOfJobs drawn{.scenario = *file.jobs, .power = power ? &*power : nullptr};
  Page page("Congestion report", "two jobs");
  add_congestion_headline(page, result.congestion, nullptr, &drawn);
  if (drawn.known()) add_power_of_jobs(page, drawn);
  return page.html({.script = "", .licences = ""});
}

}  // namespace

TEST_CASE("several jobs: the CSV has the power and money that the JSON has") {
  const auto answer = nlohmann::json::parse(run_of_two_jobs("json", kPriced));
  std::istringstream lines(run_of_two_jobs("csv", kPriced));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> titles = cells_of(line);
  REQUIRE(titles.size() == 13);
  CHECK(titles[5] == "gpu_mean_w");
  CHECK(titles[12] == "rent_usd_per_hour");
  for (const nlohmann::json& job : answer.at("jobs")) {
    std::getline(lines, line);
    const std::vector<std::string> cells = cells_of(line);
    REQUIRE(cells.size() == titles.size());
    CHECK(cells[0] == job.at("name").get<std::string>());
    for (std::size_t i = 5; i < 12; ++i) {
      CAPTURE(titles[i]);
      CHECK(std::stod(cells[i]) ==
            doctest::Approx(job.at("power").at(titles[i]).get<double>()).epsilon(1e-9));
    }
    CHECK(std::stod(cells[12]) == job.at("rent_usd_per_hour").get<double>());
  }
  CHECK(run_of_two_jobs("csv", {}).starts_with("job,alone_s,step_s,slowdown,bytes\n"));
  CHECK(run_of_two_jobs("csv", {"price.usd_per_gpu_hour=2.5"})
            .starts_with("job,alone_s,step_s,slowdown,bytes,rent_usd_per_hour\n"));
}

TEST_CASE("several jobs: the page has each one's power and money, and a limit that is exceeded") {
  const std::string priced = power_page(kPriced);
  for (const char* words :
       {"Power and money", "Power limit ", "EXCEEDED", "all nodes", "drawn by the site on average",
        "an hour of all machines, owned", "an hour of all GPUs, rented"}) {
    CAPTURE(words);
    CHECK(priced.find(words) != std::string::npos);
  }
  CHECK(priced.find("nodes that no job has") == std::string::npos);
  const std::string plain = power_page({});
  for (const char* words : {"Power and money", "Power limit ", "rented", "owned"}) {
    CAPTURE(words);
    CHECK(plain.find(words) == std::string::npos);
  }
}

}  // namespace lockstep
