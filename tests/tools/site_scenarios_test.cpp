// Scenarios of sites that ship, from the file to the answer.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json answer_to_site(const std::string& name, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{
      "run", LOCKSTEP_SOURCE_DIR "/scenarios/site/" + name, "--format", "json", "--trajectories",
      "3"};
  words.insert(words.end(), more.begin(), more.end());
  const test::Ran ran = test::lockstep_with(words);
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  return Json::parse(ran.out);
}

double of(const Json& amounts, const char* name) { return amounts.value(name, 0.0); }

void check_energy(const Json& amounts) {
  const double in = of(amounts, "imported_j") + of(amounts, "renewable_j") +
                    of(amounts, "battery_out_j") + of(amounts, "generated_j");
  const double out =
      of(amounts, "facility_j") + of(amounts, "battery_in_j") + of(amounts, "given_away_j");
  CHECK(in == doctest::Approx(out).epsilon(1e-9));
}

}  // namespace

TEST_CASE("a dataset in tiers: the answer says what limits, and its months add up") {
  const Json answer = answer_to_site("dataset-in-tiers.json");
  const Json& data = answer.at("data");
  CHECK(data.at("limited_by") == "loader CPUs");
  CHECK(of(answer, "data_speed") == doctest::Approx(of(data, "first_epoch_speed")));
  CHECK(data.at("hops").size() == 2);
  double hops = 0, usd = 0;
  for (const Json& hop : data.at("hops")) hops += of(hop, "takes_s");
  CHECK(hops == doctest::Approx(of(data, "begins_s")));
  for (const Json& tier : data.at("tiers")) {
    double months = 0;
    for (const Json& month : tier.at("months")) months += of(month, "usd");
    CHECK(months == doctest::Approx(of(tier, "usd")).epsilon(1e-9));
    usd += of(tier, "usd");
  }
  CHECK(usd == doctest::Approx(of(data, "storage_usd")).epsilon(1e-9));
}

TEST_CASE(
    "a dataset in tiers: how long is until it is done, staging included, wherever it is said") {
  const Json answer = answer_to_site("dataset-in-tiers.json");
  CHECK(of(answer, "begins_s") == doctest::Approx(of(answer.at("data"), "begins_s")));
  CHECK(of(answer, "done_s") == doctest::Approx(of(answer, "begins_s") + of(answer, "wall_s")));
  CHECK(of(answer, "done_s") == doctest::Approx(of(answer.at("data"), "done_s")));
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/data.html";
  const test::Ran ran =
      test::lockstep_with({"run", LOCKSTEP_SOURCE_DIR "/scenarios/site/dataset-in-tiers.json",
                           "--report", page, "--trajectories", "3"});
  REQUIRE(ran.exit == Exit::ok);
  const auto in_days = [&](const char* member) {
    return significant(of(answer, member) / 86'400) + " days";
  };
  const std::string head =
      in_days("done_s") + ", of which " + in_days("begins_s") + " before the first step";
  CHECK(ran.out.substr(0, ran.out.find('\n')).ends_with(head));
  CHECK(ran.out.find("Done after        " + in_days("done_s")) != std::string::npos);
  // A run without a dataset to stage begins at once, and does not say so.
  CHECK_FALSE(answer_to_site("heat-wave.json").contains("begins_s"));
}

TEST_CASE("machines that come in lots: a price times an amount is what each lot costs") {
  const Json purchase = answer_to_site("cloud-then-own.json").at("purchase");
  double paid = 0, left = 0;
  for (const Json& lot : purchase.at("lots")) {
    const double times = lot.contains("gpu_hours") ? of(lot, "gpu_hours") : of(lot, "nodes");
    const double price =
        lot.contains("gpu_hours") ? of(lot, "usd_per_gpu_hour") : of(lot, "usd_per_node");
    CHECK(of(lot, "paid_usd") == doctest::Approx(price * times).epsilon(1e-9));
    paid += of(lot, "paid_usd");
    if (lot.contains("residual_usd")) left += of(lot, "residual_usd");
  }
  CHECK(paid == doctest::Approx(of(purchase, "bought_usd") + of(purchase, "rented_usd")));
  CHECK(left == doctest::Approx(of(purchase, "residual_usd")));
  CHECK(of(purchase, "usd_per_kwh") == doctest::Approx(0.07));
}

TEST_CASE(
    "machines that come in lots: a last lot that ends too early is told by its key, at once") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/site/cloud-then-own.json";
  const test::Ran ran =
      test::lockstep_with({"run", file, "--set", "run.purchase.lots.1.until=\"200 d\""});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.out.empty());
  CHECK(ran.err.find("#/run/purchase/lots/1/until: found 0 nodes left from day 200 on; allowed: "
                     "the 4 nodes of a replica until all is trained: ") != std::string::npos);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
}

TEST_CASE("sites that ship: nodes fit under the limit in the hour of the highest PUE") {
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/page.html";
  const test::Ran ran = test::lockstep_with(
      {"run", LOCKSTEP_SOURCE_DIR "/scenarios/site/year-300-mw-220k-gpus.json", "--trajectories",
       "1", "--set", "expect={}", "--report", page, "--format", "json"});
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  const Json answer = Json::parse(ran.out);
  const std::string text = read_text_file(page);
  std::smatch tile;
  REQUIRE(std::regex_search(text, tile,
                            std::regex("nodes fit under [^<]*highest PUE</dt><dd>([0-9,]+)")));
  std::string digits = tile[1];
  std::erase(digits, ',');
  const double fit = std::stod(digits);
  // As many as draw the limit where the nodes that are held draw the run's highest reading.
  const double held = of(answer, "held_gpu_hours") / of(answer, "wall_s") * 3600 / 8;
  CHECK(fit == doctest::Approx(of(answer, "site_limit_w") / of(answer, "site_peak_w") * held)
                   .epsilon(0.005));
  CHECK(fit < of(answer, "site_limit_w") / of(answer.at("facility_power"), "step_high_w") * held);
}

TEST_CASE(
    "machines that come in lots: GPU-hours are of nodes that are there, and so are failures") {
  const Json answer = answer_to_site("cloud-then-own.json");
  const Json& lots = answer.at("purchase").at("steps");
  const double begins = of(lots[0], "at_s"), ends = begins + of(answer, "wall_s");
  double held = 0, used = 0;
  for (std::size_t i = 0; i < lots.size(); ++i) {
    const double until = i + 1 < lots.size() ? std::min(ends, of(lots[i + 1], "at_s")) : ends;
    const double gpu_hours = (until - of(lots[i], "at_s")) * 8 / 3600;
    held += of(lots[i], "nodes") * gpu_hours;
    used += of(lots[i], "used_nodes") * gpu_hours;
  }
  CHECK(of(answer, "held_gpu_hours") == doctest::Approx(held).epsilon(1e-9));
  CHECK(of(answer, "gpu_hours") == doctest::Approx(used).epsilon(1e-9));
  // Interruptions are as many as the rates say of the GPUs that are used.
  double rate_s = 0;
  for (const Json& size : answer.at("mttf_by_rates")) {
    if (size.at("gpus") == 1024) rate_s = of(size, "mttf_s");
  }
  const double expected = used * 3600 / 1024 / rate_s;
  CHECK(of(answer, "interruptions") == doctest::Approx(expected).epsilon(0.1));
}

TEST_CASE("sites that ship: slower steps are told by what slows them") {
  for (const auto& [name, words] :
       {std::pair{"dataset-in-tiers.json", "Data that come too slowly"},
        std::pair{"heat-wave.json", "Limits of the site"},
        std::pair{"cloud-then-own.json", "Machines of lots that are missing"}}) {
    CAPTURE(name);
    const test::TemporaryFolder folder;
    const std::string page = folder.path() + "/page.html";
    const test::Ran ran =
        test::lockstep_with({"run", LOCKSTEP_SOURCE_DIR "/scenarios/site/" + std::string(name),
                             "--trajectories", "3", "--set", "expect={}", "--report", page});
    CAPTURE(ran.err);
    REQUIRE(ran.exit == Exit::ok);
    CHECK(read_text_file(page).find(words) != std::string::npos);
  }
}

TEST_CASE("sites that ship: energy balances by month and in sum, and money adds up") {
  for (const char* name : {"heat-wave.json", "curtailment-two-hours.json", "feed-of-100-nodes.json",
                           "generators-behind-ups.json"}) {
    CAPTURE(name);
    const Json site = answer_to_site(name).at("site");
    check_energy(site);
    double facility = 0, energy_usd = 0, demand_usd = 0;
    for (const Json& month : site.at("months")) {
      check_energy(month);
      facility += of(month, "facility_j");
      energy_usd += of(month, "energy_usd");
      demand_usd += of(month, "demand_usd");
    }
    CHECK(facility == doctest::Approx(of(site, "facility_j")).epsilon(1e-9));
    CHECK(energy_usd == doctest::Approx(of(site, "energy_usd")).epsilon(1e-9));
    CHECK(energy_usd + demand_usd == doctest::Approx(of(site, "grid_usd")).epsilon(1e-9));
  }
}

TEST_CASE(
    "sites that ship: a wave, a curtailment and a weak path each cost training what they hold") {
  const auto slowed = [](const char* name, const std::vector<std::string>& set) {
    return answer_to_site(name, set).at("site").at("slowed_s").get<double>();
  };
  CHECK(slowed("heat-wave.json", {}) > 3600);
  CHECK(slowed("heat-wave.json", {"--set", "run.site.weather.waves=[]"}) <
        slowed("heat-wave.json", {}) / 2);
  const double covered = slowed("curtailment-two-hours.json", {});
  CHECK(covered > 600);
  CHECK(slowed("curtailment-two-hours.json", {"--set", "run.site.battery.energy_mwh=0.001"}) >
        2 * covered);
  CHECK(slowed("feed-of-100-nodes.json", {"--set", "run.site.path.0.capacity=7 MW"}) > 86'400);
}

TEST_CASE("sites that ship: generators carry what the utility loses, and without them it stops") {
  const char* const name = "generators-behind-ups.json";
  const Json covered = answer_to_site(name).at("site");
  check_energy(covered);
  const Json& standby = covered.at("standby");
  CHECK(of(standby, "outages") > 0);
  CHECK(of(standby, "starts") == 9 * of(standby, "outages"));
  CHECK(of(standby, "uncovered") == 0);
  CHECK(of(covered, "generated_j") > 0);
  CHECK(of(covered, "fuel_usd") ==
        doctest::Approx(0.35 * of(covered, "generated_j") / 3.6e6).epsilon(1e-9));
  CHECK(of(covered, "energy_usd") ==
        doctest::Approx(0.07 * of(covered, "imported_j") / 3.6e6 + of(covered, "fuel_usd"))
            .epsilon(1e-9));
  CHECK(of(covered, "tonnes_co2") ==
        doctest::Approx(380e-6 * of(covered, "imported_j") / 3.6e6 + of(covered, "fuel_tonnes_co2"))
            .epsilon(1e-9));
  CHECK(of(covered, "stops") == 0);
  const Json bare = answer_to_site(name, {"--set", "run.site.path.1.generator.fails_to_start=1"});
  CHECK(of(bare.at("site").at("standby"), "enough_start_share") == 0);
  CHECK(of(bare.at("site"), "stops") > 0);
  CHECK(of(bare.at("site"), "stopped_s") > 0);
}

TEST_CASE("sites that ship: the page of an oversubscribed path says what capping saves and costs") {
  const test::TemporaryFolder folder;
  const std::string scenario = LOCKSTEP_SOURCE_DIR "/scenarios/site/oversubscribed-path.json";
  const std::string page = folder.path() + "/page.html";
  const auto run = [&](const char* oversubscription) {
    const test::Ran ran = test::lockstep_with(
        {"run", scenario, "--trajectories", "1", "--set", "run.duration=2 d", "--set",
         std::string("run.site.path.0.oversubscription=") + oversubscription, "--set", "expect={}",
         "--report", page});
    CAPTURE(ran.err);
    CHECK(ran.exit == Exit::ok);
    return ran.out;
  };
  const std::string held = run("1.25");
  CHECK(held.find("  capping ") != std::string::npos);
  CHECK(held.find("cards held for 100.0 % of the training") != std::string::npos);
  const std::string text = read_text_file(page);
  CHECK(text.find(">Capping<") != std::string::npos);
  CHECK(text.find("of peaks that the path need not bring") != std::string::npos);
  CHECK(text.find("GPU-hours") != std::string::npos);
  CHECK(text.find("Peaks within a step are not held.") != std::string::npos);
  CHECK(run("0.9").find("  capping ") == std::string::npos);
  CHECK(read_text_file(page).find(">Capping<") == std::string::npos);
}

TEST_CASE("sites that ship: page, terminal and JSON say the same cost and energy of a token") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/page.html";
  const auto answered = [&](const std::string& name, const char* format) {
    const test::Ran ran =
        test::lockstep_with({"run", LOCKSTEP_SOURCE_DIR "/scenarios/site/" + name, "--format",
                             format, "--trajectories", "3", "--report", file});
    CAPTURE(ran.err);
    REQUIRE(ran.exit == Exit::ok);
    return ran.out;
  };
  // A figure's value stands behind its label.
  const auto figure = [&](const std::string& page, const std::string& label) {
    const std::size_t at = page.find(label);
    CAPTURE(label);
    REQUIRE(at != std::string::npos);
    return page.substr(at, label.size() + 60);
  };
  for (const char* name : {"curtailment-two-hours.json", "cloud-then-own.json"}) {
    CAPTURE(name);
    const Json answer = Json::parse(answered(name, "json"));
    const std::string page = read_text_file(file);
    CHECK(
        figure(page, "of energy per token").find(page_with(of(answer, "joules_per_token"), "J")) !=
        std::string::npos);
    if (!answer.contains("purchase")) continue;
    const double per_trillion = of(answer.at("purchase"), "usd_per_trillion_tokens");
    CHECK(figure(page, "machines as they come, with all beside them, per trillion tokens")
              .find(page_usd(per_trillion)) != std::string::npos);
    CHECK(figure(page, "in all, less what machines are worth at the end")
              .find(page_usd(of(answer.at("purchase"), "usd"))) != std::string::npos);
    CHECK(page.find("energy only") == std::string::npos);
    // Words are found wherever a line ends.
    const std::string text = std::regex_replace(answered(name, "table"), std::regex("\\s+"), " ");
    CHECK(text.find(compact(per_trillion) + " USD per trillion tokens") != std::string::npos);
  }
}

TEST_CASE("sites that ship: availability is told with what stands by, and without it") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/page.html";
  const Json site = answer_to_site("generators-behind-ups.json", {"--report", file}).at("site");
  const Json &available = site.at("availability"), &standby = site.at("standby");
  const double seconds = of(standby, "blackouts_per_year") * of(standby, "blackout_s");
  const double without = of(standby, "uncovered_share") * seconds / (365.25 * 86'400);
  CHECK(of(available, "with_standby_share") == doctest::Approx(1 - without).epsilon(1e-9));
  CHECK(of(available, "share") == doctest::Approx(1 - seconds / (365.25 * 86'400)).epsilon(1e-9));
  const std::string page = read_text_file(file);
  CHECK(page.find(page_percent(of(available, "with_standby_share"), 5)) != std::string::npos);
  CHECK(page.find(page_percent(of(available, "share"), 3) + " without them") != std::string::npos);
  CHECK(page.find("of them outlast batteries and generators") != std::string::npos);
}

TEST_CASE("sites that ship: the same bytes on any number of threads, and the hours as CSV") {
  const test::TemporaryFolder folder;
  const std::string scenario = LOCKSTEP_SOURCE_DIR "/scenarios/site/feed-of-100-nodes.json";
  const auto printed = [&](const char* jobs) {
    return test::lockstep_with(
               {"run", scenario, "--format", "json", "--trajectories", "6", "--jobs", jobs})
        .out;
  };
  CHECK(printed("1") == printed("4"));
  const std::string csv = folder.path() + "/hours.csv";
  (void)answer_to_site("curtailment-two-hours.json", {"--power-trace", csv});
  const std::string text = read_text_file(csv);
  CHECK(text.starts_with("time_s,outside_celsius,"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1 + 30 * 24);
}

TEST_CASE("sites that ship: energy and money of every hour of the CSV balance") {
  const test::TemporaryFolder folder;
  const std::string csv = folder.path() + "/hours.csv";
  for (const char* name : {"curtailment-two-hours.json", "generators-behind-ups.json"}) {
    CAPTURE(name);
    const Json site = answer_to_site(name, {"--power-trace", csv}).at("site");
    std::istringstream lines(read_text_file(csv));
    std::string line;
    std::getline(lines, line);
    std::vector<std::string> columns;
    for (std::istringstream names(line); std::getline(names, line, ',');) columns.push_back(line);
    double generated = 0, usd = 0;
    int hours = 0, wrong = 0;
    while (std::getline(lines, line)) {
      std::map<std::string, double> row;
      std::istringstream cells(line);
      for (const std::string& column : columns) {
        std::string cell;
        std::getline(cells, cell, ',');
        if (!cell.empty()) row[column] = std::stod(cell);
      }
      const double in =
          row["grid_w"] + row["renewable_w"] + row["battery_out_w"] + row["generated_w"];
      const double out = row["facility_w"] + row["battery_in_w"] + row["given_away_w"];
      if (std::abs(in - out) > 1e-9 * out) ++wrong;
      // What is bought at the hour's tariff, less what is sold, and generators' fuel, at the
      // prices of the scenarios.
      const bool curtailed = std::string_view(name) == "curtailment-two-hours.json";
      const double sold = curtailed ? 0.02 : 0, fuel = curtailed ? 0 : 0.35;
      const double paid = (row["grid_w"] * row["usd_per_kwh"] - row["given_away_w"] * sold +
                           row["generated_w"] * fuel) /
                          1e3;
      if (std::abs(paid - row["energy_usd"]) > 1e-9 * std::abs(paid)) ++wrong;
      generated += row["generated_w"] * 3600;
      usd += row["energy_usd"];
      ++hours;
    }
    CHECK(hours >= 720);
    CHECK(wrong == 0);
    CHECK(generated == doctest::Approx(of(site, "generated_j")).epsilon(1e-9));
    CHECK(usd == doctest::Approx(of(site, "energy_usd")).epsilon(1e-9));
  }
}

TEST_CASE("machines that come in lots: months add up to what the answer says in all") {
  const Json answer = answer_to_site("cloud-then-own.json");
  const Json& purchase = answer.at("purchase");
  CHECK(of(purchase, "usd_per_trillion_tokens") ==
        doctest::Approx(1e12 * of(purchase, "usd") / of(answer, "tokens_done")).epsilon(1e-9));
  double usd = 0;
  for (const Json& month : purchase.at("months")) usd += of(month, "usd");
  CHECK(usd == doctest::Approx(of(purchase, "usd")).epsilon(1e-9));
  CHECK(of(purchase, "rented_usd") == doctest::Approx(36 * 8 * 2.5 * 182 * 24).epsilon(1e-9));
  CHECK(of(purchase, "bought_usd") == doctest::Approx(132 * 330000.0).epsilon(1e-9));
  // Above the months: 36 nodes until the own ones come, and never more than are there.
  const std::string table =
      test::lockstep_with(
          {"run", LOCKSTEP_SOURCE_DIR "/scenarios/site/cloud-then-own.json", "--trajectories", "3"})
          .out;
  CHECK(table.find(" by the nodes that are there, ") != table.npos);
}

TEST_CASE("machines that come in lots: what is left of a term when the run is done is told") {
  const std::vector<std::string> longer{"--set", "run.purchase.lots.0.term=730 d"};
  const Json purchase = answer_to_site("cloud-then-own.json", longer).at("purchase");
  const double left = 730 * 86'400.0 - of(purchase, "done_s");
  CHECK(of(purchase, "terms_left_usd") ==
        doctest::Approx(36 * 8 * 2.5 * left / 3600).epsilon(1e-9));
  CHECK_FALSE(answer_to_site("cloud-then-own.json").at("purchase").contains("terms_left_usd"));
  std::vector<std::string> words{"run", LOCKSTEP_SOURCE_DIR "/scenarios/site/cloud-then-own.json",
                                 "--trajectories", "3"};
  words.insert(words.end(), longer.begin(), longer.end());
  CHECK(test::lockstep_with(words).out.find("leases and reservations: ") != std::string::npos);
}

TEST_CASE("sites that ship: what the grid gives is held against what comes from the grid") {
  const Json site =
      answer_to_site("curtailment-two-hours.json", {"--set", "run.site.limit=15 MW"}).at("site");
  CHECK(of(site, "drawn_w") > 15e6);  // with sun and battery
  CHECK(of(site, "imported_peak_w") <= 15e6 * (1 + 1e-9));
  CHECK(of(site, "stranded_w") >= -15e6 * 1e-9);
  CHECK(of(site, "provisioned_w") - of(site, "imported_peak_w") ==
        doctest::Approx(of(site, "stranded_w")));
}

namespace {

/// What `run` prints, lines joined: words are found wherever a line ends.
std::string told(const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> words{"run", LOCKSTEP_SOURCE_DIR "/scenarios/site/" + name,
                                 "--trajectories", "2"};
  words.insert(words.end(), more.begin(), more.end());
  const test::Ran ran = test::lockstep_with(words);
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  return std::regex_replace(ran.out, std::regex("\\s+"), " ");
}

bool has(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a battery that does not hold what it aims at says so, and what stands in the way") {
  const std::string file = "curtailment-two-hours.json";
  const std::string battery = "run.site.battery.";
  const std::string low = told(file, {"--set", battery + "shave_above=20e6", "--set",
                                      battery + "discharge_above_usd_per_kwh=0.1"});
  CHECK(has(low, "it aims at 20.00 MW; the highest hour was "));
  CHECK(has(low, " above; a tariff from 0.1 USD per kWh on empties it too"));
  CHECK_FALSE(has(low, "it stands in for"));
  CHECK(has(low, "run.site: the battery: what it costs is not in the money"));
  const std::string held = told(file, {"--set", battery + "shave_peak=true"});
  CHECK(has(held, "it stands in for what is above "));
  CHECK(has(held, "; planned over whole calendar months, of which the run may have only a part"));
  CHECK_FALSE(has(held, "it aims at"));
  const std::string over = told(file, {"--set", battery + "shave_above=40e6"});
  CHECK(has(over, "that is no less than the 30.00 MW that the grid gives: it shaves nothing"));
}

TEST_CASE("what machines are worth at the end comes back, stops without power are told apart") {
  const std::string own = told("cloud-then-own.json", {});
  CHECK(has(own, "all there from day"));
  CHECK(has(own, "comes back"));
  CHECK(has(own, " USD come back as what machines are worth at the end"));
  const std::string rented =
      told("cloud-then-own.json",
           {"--set", R"(run.purchase.lots=[{"name": "a", "terms": "on_demand", "nodes": 132,
                      "usd_per_gpu_hour": 2}])"});
  CHECK_FALSE(has(rented, "worth at the end"));
  CHECK_FALSE(has(rented, "comes back"));
  const std::string fed = told("feed-of-100-nodes.json", {});
  CHECK(has(fed, " of them stops without power"));
  CHECK(has(fed, " stops without power: the others come while the job stands already"));
}

}  // namespace lockstep
