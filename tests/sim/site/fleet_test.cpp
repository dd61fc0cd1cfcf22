#include "sim/site/fleet.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/site/lot_prices.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::presets;

constexpr double kMonthDays = 365.25 / 12;
constexpr double kADay = 86'400;

Scenario eight_nodes() {
  return read_scenario("t.json", R"({"cluster": {"node": "dgx_h100", "nodes": 8},
    "model": "llama3_8b", "parallelism": {"data": 64, "sharding": "zero1"},
    "batch": {"sequences": 64, "micro": 1, "tokens": 2048},
    "recompute": "full", "stack": "megatron_core"})",
                       presets());
}
PurchaseSpec purchase_of(const std::string& members) {
  const std::string run = fmt::format(
      R"({{"duration": "1 d", "reliability": {{"modes": []}}, "purchase": {{"loses": 0.5, {}}}}})",
      members);
  return *read_run_spec(JsonCursor::parse("t.json", run), presets()).purchase;
}
std::string problem_of_purchase(const std::string& members) {
  try {
    (void)purchase_of(members);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}
/// Without a simulation: eight GPUs a node, 10 kW each while it waits, at 0.1 USD.
Fleet fleet_of(const PurchaseSpec& spec) {
  return {.spec = spec,
          .steps = {{.at = Seconds{}, .nodes = 8, .used = 8, .speed = 1}},
          .begins = {},
          .gpus_per_node = 8,
          .waiting_node = Watts{10e3},
          .usd_per_kwh = 0.1,
          .assumptions = {}};
}
Seconds days(double n) { return Seconds{n * kADay}; }

}  // namespace

TEST_CASE("fleet: lots add up as they come, and the job runs on replicas that share its batch") {
  const Fleet fleet = plan_fleet(eight_nodes(), purchase_of(R"("lots": [
    {"name": "a", "terms": "buy", "nodes": 3, "lead_time": "10 d", "usd_per_node": 1},
    {"name": "b", "terms": "on_demand", "nodes": 4, "ordered": "20 d", "usd_per_gpu_hour": 1,
     "until": "40 d"},
    {"name": "c", "terms": "buy", "nodes": 4, "lead_time": "30 d", "delivery": "20 d",
     "shipments": 2, "usd_per_node": 1}])"));
  const std::vector<double> at{10, 20, 40, 50};
  REQUIRE(fleet.steps.size() == at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    CHECK(fleet.steps[i].at.base_units() == doctest::Approx(days(at[i]).base_units()));
  }
  CHECK(fleet.begins == days(10));
  CHECK(fleet.steps[0].nodes == 3);
  // 64 sequences on 24 replicas of a GPU do not share evenly; 16 do.
  CHECK(fleet.steps[0].used == 2);
  CHECK(fleet.steps[1].nodes == 7);
  CHECK(fleet.steps[1].used == 4);
  CHECK(fleet.steps[1].speed > fleet.steps[0].speed);
  CHECK(fleet.steps[0].speed < 0.3);
  CHECK(fleet.mean_nodes(days(10)) == doctest::Approx(3));
  // Ten days of 3, twenty of 7, ten of 3 + 2 and ten of 3 + 4.
  CHECK(fleet.mean_nodes(days(50)) == doctest::Approx((10 * 3 + 20 * 7 + 10 * 5 + 10 * 7) / 50.0));
  // GPU-hours of the nodes that are there, and of those that the job runs on: 2, then 4.
  CHECK(fleet.held_gpu_hours(days(10)) == doctest::Approx(10 * 24 * 3 * 8));
  CHECK(fleet.held_gpu_hours(days(50)) ==
        doctest::Approx((10 * 3 + 20 * 7 + 10 * 5 + 10 * 7) * 24 * 8.0));
  CHECK(fleet.used_gpu_hours(days(15)) == doctest::Approx((10 * 2 + 5 * 4) * 24 * 8.0));
  CHECK(fleet.pace(0).speed == fleet.steps[0].speed);
  CHECK(fleet.pace(0).until == to_run_time(days(10)));
  CHECK(fleet.pace(to_run_time(days(10))).speed == fleet.steps[1].speed);
  // Those that are bought, and not rented.
  for (const auto& [day, own] : {std::pair{0, 3}, {10, 3}, {30, 5}, {40, 7}}) {
    CHECK(fleet.at(to_run_time(days(day))).own == own);
  }
}

TEST_CASE("fleet: the run begins when its data is there, on the lots of that day") {
  const PurchaseSpec spec = purchase_of(R"("lots": [
    {"name": "a", "terms": "on_demand", "nodes": 4, "usd_per_gpu_hour": 1, "until": "18 d"},
    {"name": "b", "terms": "on_demand", "nodes": 8, "ordered": "10 d", "usd_per_gpu_hour": 1,
     "until": "40 d"}])");
  const Fleet early = plan_fleet(eight_nodes(), spec);
  CHECK(early.begins == Seconds{});
  CHECK(early.at(0).used == 4);
  // From day 10 to 18 there are 12 nodes, of which the job uses 8.
  CHECK(early.standing_by() == 0);
  const Fleet late = plan_fleet(eight_nodes(), spec, days(12));
  CHECK(late.begins == days(12));
  CHECK(late.at(0).nodes == 12);
  CHECK(late.pace(0).speed == 1);
  CHECK(late.pace(0).until == to_run_time(days(6)));
  CHECK(late.mean_nodes(days(12)) == doctest::Approx(10));
  CHECK(late.assumptions.size() == early.assumptions.size() + 1);
  CHECK(plan_fleet(eight_nodes(), spec, days(20)).at(0).nodes == 8);
  std::string gone;
  try {
    (void)plan_fleet(eight_nodes(), spec, days(41));
  } catch (const LotsGone& error) {
    gone = error.what();
  }
  CHECK(gone ==
        "t.json#/run/purchase/lots: found nodes for the job until day 40; allowed: nodes for it "
        "when its data is there, on day 41");
  // A lot that came and went before is none that spares stand by in.
  const PurchaseSpec more = purchase_of(R"("lots": [
    {"name": "a", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 1, "until": "18 d"},
    {"name": "b", "terms": "on_demand", "nodes": 10, "ordered": "18 d", "usd_per_gpu_hour": 1}])");
  CHECK(plan_fleet(eight_nodes(), more).standing_by() == 0);
  CHECK(plan_fleet(eight_nodes(), more, days(20)).standing_by() == 2);
  // Nor is one that comes or goes when the run is done.
  const Fleet ten = plan_fleet(eight_nodes(), purchase_of(R"("lots": [
    {"name": "a", "terms": "on_demand", "nodes": 10, "usd_per_gpu_hour": 1, "until": "50 d"},
    {"name": "b", "terms": "on_demand", "nodes": 8, "ordered": "50 d", "usd_per_gpu_hour": 1}])"));
  CHECK(ten.standing_by(days(50)) == 2);
  CHECK(ten.standing_by(Seconds{days(50).base_units() + 1}) == 0);
  CHECK(ten.standing_by() == 0);
}

TEST_CASE(
    "money: a machine is paid for at order and delivery, and its rest comes back at the end") {
  const PurchaseSpec spec = purchase_of(R"("deposit": 0.25, "price_fall": 0.2, "lots": [
    {"name": "a", "terms": "buy", "nodes": 8, "lead_time": "70 d", "usd_per_node": 1000},
    {"name": "b", "terms": "buy", "nodes": 8, "ordered": "365.25 d", "usd_per_node": 1000}])");
  const std::vector<MonthMoney> months = money_by_month(fleet_of(spec), days(2 * 365.25));
  REQUIRE(months.size() == 24);
  CHECK(months[0].bought == doctest::Approx(2000));
  CHECK(months[1].bought == 0);
  CHECK(months[2].bought == doctest::Approx(6000));
  // A year later it is a fifth cheaper, and paid for at once.
  CHECK(months[12].bought == doctest::Approx(6400));
  const double years = 2 - 70 / 365.25;
  CHECK(sum_of(months).residual == doctest::Approx(-(8000 * std::pow(0.5, years) + 6400 * 0.5)));
}

TEST_CASE("money: each shipment of a lot loses value from its own arrival on") {
  // Of eight nodes two come on day 0, 120, 240 and 360, all paid for at the last.
  const PurchaseSpec spec = purchase_of(R"("lots": [
    {"name": "a", "terms": "buy", "nodes": 8, "delivery": "360 d", "shipments": 4,
     "usd_per_node": 1000}])");
  double left = 0;
  std::vector<double> came;
  for (const Shipment& each : shipments_of(spec)) {
    came.push_back(each.from_s / kADay);
    left += 2000 * std::pow(0.5, (2 * 365.25 - came.back()) / 365.25);
  }
  REQUIRE(came.size() == 4);
  CHECK(came.front() < 120);
  const double residual = sum_of(money_by_month(fleet_of(spec), days(2 * 365.25))).residual;
  CHECK(residual == doctest::Approx(-left));
}

TEST_CASE("money: rent by the hour, a reservation to its end, a lease as an annuity, and energy") {
  const auto total = [](const std::string& lot, double run_days) {
    return sum_of(money_by_month(
        fleet_of(purchase_of("\"interest\": 0.12, \"lots\": [" + lot + "]")), days(run_days)));
  };
  const double hour_of_all = 8 * 8 * 2.0;
  const std::string on_demand =
      R"({"name": "a", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 2})";
  CHECK(total(on_demand, 10).rented == doctest::Approx(hour_of_all * 240));
  CHECK(total(on_demand, 10).energy == 0);
  const std::string reserved =
      R"({"name": "a", "terms": "reserved", "nodes": 8, "usd_per_gpu_hour": 2, "term": "100 d"})";
  CHECK(total(reserved, 10).rented == doctest::Approx(hour_of_all * 2400));
  CHECK(total(reserved, 100).rented == doctest::Approx(hour_of_all * 2400));
  CHECK(total(reserved, 200).rented == doctest::Approx(hour_of_all * 2400));
  const std::string lease =
      R"({"name": "a", "terms": "lease", "nodes": 8, "usd_per_node": 1000, "term": "365.25 d"})";
  const double rate = std::pow(1.12, 1.0 / 12) - 1;
  const double payments = 12 * 8000 * rate / (1 - 1 / 1.12);
  CHECK(total(lease, 365.25).leased == doctest::Approx(payments));
  CHECK(total(lease, 30).leased == doctest::Approx(payments));
  const std::string returned =
      R"({"name": "a", "terms": "lease", "nodes": 8, "usd_per_node": 1000, "term": "365.25 d",
          "residual": "40 %"})";
  const double left_out = 0.4 * 8000 / 1.12;
  CHECK(total(returned, 365.25).leased == doctest::Approx(payments * (1 - left_out / 8000)));
  // 8 nodes of 10 kW wait for 100 hours at 0.1; what the run takes is said by whoever knows it.
  Fleet waiting = fleet_of(purchase_of("\"lots\": [" + lease + "]"));
  CHECK(sum_of(money_by_month(waiting, days(10))).energy == 0);
  waiting.begins = days(100.0 / 24);
  CHECK(sum_of(money_by_month(waiting, days(10))).energy == doctest::Approx(800));
}

TEST_CASE("money: a spot lot is paid for while its nodes are there") {
  Fleet fleet = fleet_of(purchase_of(R"("lots": [{"name": "a", "terms": "spot", "nodes": 8,
    "usd_per_gpu_hour": 2, "taken_away": "10 d"}])"));
  fleet.returns = days(2);
  const MonthMoney money = sum_of(money_by_month(fleet, days(24)));
  CHECK(money.rented == doctest::Approx(8 * 8 * 2.0 * 24 * 20));
  CHECK(money.nodes == doctest::Approx(8 * 10 / 12.0));
}

TEST_CASE("money: interest on what was spent at the start is compound interest") {
  const PurchaseSpec spec = purchase_of(R"("interest": 0.08, "lots": [
    {"name": "a", "terms": "buy", "nodes": 1, "usd_per_node": 1000}])");
  Fleet fleet = fleet_of(spec);
  fleet.waiting_node = {};
  const std::vector<MonthMoney> months = money_by_month(fleet, days(13 * kMonthDays));
  REQUIRE(months.size() == 13);
  CHECK(sum_of(months).interest ==
        doctest::Approx(1000 * (std::pow(1.08, 13.0 / 12) - 1)).epsilon(1e-9));
  double so_far = 0;
  for (const MonthMoney& month : months) so_far += month.usd();
  CHECK(so_far / sum_of(months).usd() == doctest::Approx(1).epsilon(1e-9));
}

TEST_CASE("money: interest runs from the day that money is spent to the last one") {
  const auto of = [](const std::string& members, double run_days) {
    const std::string spec = "\"interest\": 0.08, " + members;
    Fleet fleet = fleet_of(purchase_of(spec));
    fleet.waiting_node = {};
    return sum_of(money_by_month(fleet, days(run_days)));
  };
  const auto grown = [](double over_days) { return std::pow(1.08, over_days / 365.25); };
  const std::string bought = R"("lots": [{"name": "a", "terms": "buy", "nodes": 1,
    "usd_per_node": 1000, "lead_time": "20 d"}])";
  // Less than a month, from its middle; and a run that ends within a month.
  CHECK(of(bought, 29).interest == doctest::Approx(1000 * (grown(9) - 1)).epsilon(1e-9));
  CHECK(of(bought, 90.5).interest == doctest::Approx(1000 * (grown(70.5) - 1)).epsilon(1e-9));
  CHECK(of(R"("deposit": 0.4, )" + bought, 90.5).interest ==
        doctest::Approx(400 * (grown(90.5) - 1) + 600 * (grown(70.5) - 1)).epsilon(1e-9));
  // What comes at a steady rate: the integral of what each day's part owes until the end.
  const std::string staff = R"("staff_usd_per_month": 3000, "lots": [{"name": "a",
    "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 0}])";
  const double years = 100 / 365.25, rate = std::log(1.08);
  CHECK(of(staff, 100).interest ==
        doctest::Approx(36'000 * ((grown(100) - 1) / rate - years)).epsilon(1e-9));
  // What is sold before the end is no longer owed.
  const std::string sold = R"("lots": [{"name": "a", "terms": "buy", "nodes": 1,
    "usd_per_node": 1000, "until": "100 d"}])";
  const double worth = 1000 * std::pow(0.5, 100 / 365.25);
  CHECK(of(sold, 250).residual == doctest::Approx(-worth).epsilon(1e-9));
  CHECK(of(sold, 250).interest ==
        doctest::Approx(1000 * (grown(250) - 1) - worth * (grown(150) - 1)).epsilon(1e-9));
}

TEST_CASE("money: a reservation that is given back early is paid to its end, and terms are told") {
  const auto total = [](const std::string& lot, double run_days) {
    return sum_of(money_by_month(fleet_of(purchase_of("\"lots\": [" + lot + "]")), days(run_days)));
  };
  const double day_of_all = 8 * 8 * 2.0 * 24;
  const std::string reserved = R"({"name": "a", "terms": "reserved", "nodes": 8,
    "usd_per_gpu_hour": 2, "term": "100 d", "until": "40 d"})";
  CHECK(total(reserved, 60).rented == doctest::Approx(100 * day_of_all));
  CHECK(total(reserved, 60).terms_left == doctest::Approx(40 * day_of_all));
  CHECK(total(reserved, 60).nodes == doctest::Approx(8 * 40.0 / 60));
  CHECK(total(reserved, 200).rented == doctest::Approx(100 * day_of_all));
  CHECK(total(reserved, 200).terms_left == 0);
  const std::string lease = R"({"name": "a", "terms": "lease", "nodes": 8, "usd_per_node": 1000,
    "term": "100 d"})";
  CHECK(total(lease, 25).leased == doctest::Approx(8000));
  CHECK(total(lease, 25).terms_left == doctest::Approx(6000));
}

TEST_CASE("money: what is known of the run's energy stands in for the mean tariff") {
  Fleet fleet = fleet_of(purchase_of(R"("lots": [{"name": "a", "terms": "buy", "nodes": 8,
    "usd_per_node": 1}])"));
  fleet.begins = days(2);
  const std::vector<EnergyPayment> known{{.at = days(3), .usd = 70}, {.at = days(40), .usd = 5}};
  const std::vector<MonthMoney> months = money_by_month(fleet, days(40), {}, known);
  REQUIRE(months.size() == 2);
  // Two days of 8 nodes of 10 kW at 0.1 USD before the run begins.
  CHECK(months[0].energy == doctest::Approx(48 * 8 + 70));
  CHECK(months[1].energy == doctest::Approx(5));
}

TEST_CASE("money: nodes of a month are a mean over the days that the plan has of it") {
  const PurchaseSpec spec = purchase_of(R"("lots": [
    {"name": "a", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 1},
    {"name": "b", "terms": "on_demand", "nodes": 4, "lead_time": "30.4375 d",
     "usd_per_gpu_hour": 1}])");
  const std::vector<MonthMoney> months = money_by_month(fleet_of(spec), days(1.25 * kMonthDays));
  REQUIRE(months.size() == 2);
  CHECK(months[0].nodes == doctest::Approx(8));
  CHECK(months[1].nodes == doctest::Approx(12));
  CHECK(months[1].lasts.base_units() == doctest::Approx(0.25 * kMonthDays * kADay));
  // A month of 8 and a quarter of one of 12.
  CHECK(sum_of(months).nodes == doctest::Approx((8 + 3) / 1.25));
}

TEST_CASE("purchase: prices that it has no use for are named, with what stands in for them") {
  Scenario scenario = eight_nodes();
  scenario.power.emplace().cost.usd_per_kwh = {.values = {0.1}};
  CHECK_FALSE(excess_price(scenario));
  const auto found = [&](double CostSpec::* price, const char* key, const char* instead) {
    Scenario priced = scenario;
    priced.power->cost.*price = 5;
    CAPTURE(key);
    const std::optional<InputProblem> problem = excess_price(priced);
    REQUIRE(problem);
    CHECK(problem->pointer == std::string("/cost/") + key);
    CHECK(problem->found == "5");
    CHECK(problem->allowed.find(instead) != std::string::npos);
    CHECK_THROWS_AS((void)plan_fleet(priced, purchase_of(R"("lots": [{"name": "a", "terms": "buy",
      "nodes": 8, "usd_per_node": 1}])")),
                    InputError);
  };
  found(&CostSpec::usd_per_gpu, "usd_per_gpu", "a lot's usd_per_node");
  found(&CostSpec::usd_per_node, "usd_per_node", "a lot's usd_per_node");
  found(&CostSpec::usd_per_100g_port, "usd_per_100g_port", "a lot's usd_per_node");
  found(&CostSpec::usd_per_facility_w, "usd_per_facility_w", "a lot's usd_per_node");
  found(&CostSpec::people_usd_per_hour, "people_usd_per_hour", "staff_usd_per_month");
  found(&CostSpec::hosting_usd_per_kw_month, "hosting_usd_per_kw_month", "staff_usd_per_month");
}

TEST_CASE("purchase: a lot on demand without a price has that of its node's list") {
  const PurchaseSpec spec = purchase_of(R"("lots": [
    {"name": "cloud", "terms": "on_demand", "nodes": 8}])");
  Scenario rented = eight_nodes();
  rented.node.usd_per_gpu_hour = rented.usd_per_gpu_hour = 6.16;
  const Fleet listed = plan_fleet(rented, spec);
  CHECK(sum_of(money_by_month(listed, days(10))).rented ==
        doctest::Approx(6.16 * 64 * 240).epsilon(1e-9));
  CHECK(listed.assumptions.at(0) ==
        "run.purchase.lots: \"cloud\" for 6.16 USD a GPU-hour, the list price of dgx_h100 "
        "(usd_per_gpu_hour not given)");
  rented.usd_per_gpu_hour = 2;
  CHECK(plan_fleet(rented, spec).assumptions.at(0) ==
        "run.purchase.lots: \"cloud\" for 2 USD a GPU-hour, the scenario's price "
        "(usd_per_gpu_hour not given)");
  const auto problem = [](const char* terms) -> std::string {
    try {
      (void)plan_fleet(eight_nodes(),
                       purchase_of(fmt::format(
                           R"("lots": [{{"name": "a", "terms": "{}", "nodes": 8}}])", terms)));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(problem("on_demand") ==
        "t.json#/run/purchase/lots/0/usd_per_gpu_hour: found nothing; allowed: a price, as "
        "dgx_h100 has none in its list");
  CHECK(problem("spot") ==
        "t.json#/run/purchase/lots/0/usd_per_gpu_hour: found nothing; allowed: a price, as "
        "dgx_h100 has none on spot in its list");
  CHECK(problem("reserved").starts_with("t.json#/purchase/lots/0"));
  rented.node.spot_usd_per_gpu_hour = 1.5;
  const Fleet spot =
      plan_fleet(rented, purchase_of(R"("lots": [{"name": "a", "terms": "spot", "nodes": 8}])"));
  CHECK(sum_of(money_by_month(spot, days(10))).rented ==
        doctest::Approx(1.5 * 64 * 240).epsilon(1e-9));
}

TEST_CASE("purchase: what terms have and have not is one line") {
  CHECK(problem_of_purchase(R"("lots": [{"name": "a", "terms": "buy", "nodes": 8,
    "usd_per_node": 1, "usd_per_gpu_hour": 2}])") ==
        R"(t.json#/purchase/lots/0/usd_per_gpu_hour: found 2; allowed: nothing beside "terms": )"
        R"("buy")");
  CHECK(problem_of_purchase(R"("lots": [{"name": "a", "terms": "rent", "nodes": 8}])") ==
        R"(t.json#/purchase/lots/0/terms: found "rent"; allowed: buy, lease, reserved, )"
        R"(on_demand, spot)");
  CHECK(problem_of_purchase(R"("lots": [{"name": "a", "terms": "buy", "nodes": 8,
    "usd_per_node": 1}, {"name": "a", "terms": "buy", "nodes": 8, "usd_per_node": 1}])") ==
        R"(t.json#/purchase/lots/1/name: found "a"; allowed: a name that no other lot has)");
  CHECK(problem_of_purchase(R"("lots": [{"name": "a", "terms": "on_demand", "nodes": 8,
    "usd_per_gpu_hour": 1, "lead_time": "10 d", "until": "10 d"}])") ==
        R"(t.json#/purchase/lots/0/until: found "10 d"; allowed: later than its last shipment, at )"
        R"(10 d)");
  CHECK(problem_of_purchase(R"("lots": [{"name": "a", "terms": "buy", "nodes": 4,
    "usd_per_node": 1, "delivery": "9 d", "shipments": 50}])") ==
        "t.json#/purchase/lots/0/shipments: found 50; allowed: at most 4 (nodes)");
  CHECK(problem_of_purchase(R"("lots": [{"name": "a", "terms": "buy", "nodes": 4,
    "usd_per_node": 1, "shipments": 2}])") ==
        "t.json#/purchase/lots/0/shipments: found 2; allowed: 1, or more beside \"delivery\", the "
        "time that they are spread over");
}

TEST_CASE("money: a lot after the end of the plan costs nothing, one without lead time is there") {
  const std::string now =
      R"({"name": "now", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 1})";
  const auto ten_days = [](const std::string& lots) {
    return sum_of(money_by_month(fleet_of(purchase_of("\"lots\": [" + lots + "]")), days(10)));
  };
  const MonthMoney alone = ten_days(now);
  CHECK(alone.rented == doctest::Approx(64.0 * 240));
  CHECK(alone.nodes == doctest::Approx(8));
  const MonthMoney later = ten_days(now + R"(,
    {"name": "bought", "terms": "buy", "nodes": 5, "usd_per_node": 1e6, "ordered": "20 d"},
    {"name": "leased", "terms": "lease", "nodes": 5, "usd_per_node": 1e6, "ordered": "20 d",
     "term": "90 d"},
    {"name": "reserved", "terms": "reserved", "nodes": 5, "usd_per_gpu_hour": 9, "ordered": "20 d",
     "term": "90 d"},
    {"name": "rented", "terms": "on_demand", "nodes": 5, "usd_per_gpu_hour": 9,
     "ordered": "20 d"})");
  CHECK(later.usd() == doctest::Approx(alone.usd()).epsilon(1e-12));
  CHECK(later.nodes == doctest::Approx(8));
  // Lots that are there at the same time are there together, whatever their terms.
  const Fleet both = plan_fleet(eight_nodes(), purchase_of(R"("lots": [
    {"name": "a", "terms": "on_demand", "nodes": 4, "usd_per_gpu_hour": 1, "until": "9 d"},
    {"name": "b", "terms": "buy", "nodes": 4, "usd_per_node": 1, "ordered": "3 d"}])"));
  REQUIRE(both.steps.size() == 3);
  CHECK(both.steps[0].nodes == 4);
  CHECK(both.steps[1].nodes == 8);
  CHECK(both.steps[1].own == 4);
  CHECK(both.steps[2].nodes == 4);
}

namespace {

std::string problem_of_lots(const Fleet& fleet, Seconds work,
                            std::optional<Seconds> duration = std::nullopt) {
  try {
    require_lots_for(eight_nodes(), fleet, work, duration);
  } catch (const LotsGone& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("fleet: lots that leave less than a replica before the work can be done are one line") {
  const Scenario scenario = eight_nodes();
  const Fleet fleet = plan_fleet(scenario, purchase_of(R"("lots": [
    {"name": "a", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 1, "until": "5 d"},
    {"name": "b", "terms": "reserved", "nodes": 8, "ordered": "4 d", "usd_per_gpu_hour": 1,
     "term": "6 d"}])"));
  REQUIRE(fleet.gone());
  CHECK(*fleet.gone() == days(10));
  CHECK(problem_of_lots(fleet, days(10)).empty());
  CHECK(problem_of_lots(fleet, days(12.5)) ==
        "t.json#/run/purchase/lots/1/term: found 0 nodes left from day 10 on; allowed: the 1 node "
        "of a replica until all is trained: 80 % is by then, though nothing fails");
  CHECK(problem_of_lots(fleet, days(1), days(10)).empty());
  CHECK(problem_of_lots(fleet, days(1), days(11)) ==
        "t.json#/run/purchase/lots/1/term: found 0 nodes left from day 10 on; allowed: the 1 node "
        "of a replica until the run is done, on day 11");
  // A gap is waited for, and lots that stay do for any work.
  const Fleet gap = plan_fleet(scenario, purchase_of(R"("lots": [
    {"name": "a", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 1, "until": "5 d"},
    {"name": "b", "terms": "buy", "nodes": 8, "lead_time": "20 d", "usd_per_node": 1}])"));
  CHECK_FALSE(gap.gone());
  CHECK(problem_of_lots(gap, days(1000)).empty());
}

TEST_CASE("lot prices: price times amount is what months have, whatever the terms") {
  const PurchaseSpec spec = purchase_of(R"("deposit": 0.25, "price_fall": 0.2, "interest": 0.08,
   "lots": [
    {"name": "a", "terms": "buy", "nodes": 8, "lead_time": "70 d", "delivery": "40 d",
     "shipments": 2, "usd_per_node": 1000},
    {"name": "b", "terms": "buy", "nodes": 4, "ordered": "365.25 d", "usd_per_node": 1000},
    {"name": "c", "terms": "lease", "nodes": 4, "usd_per_node": 1000, "term": "1000 d"},
    {"name": "d", "terms": "reserved", "nodes": 2, "usd_per_gpu_hour": 2, "term": "800 d"},
    {"name": "e", "terms": "on_demand", "nodes": 2, "usd_per_gpu_hour": 3, "until": "100 d"},
    {"name": "f", "terms": "spot", "nodes": 2, "usd_per_gpu_hour": 1, "taken_away": "9 d"},
    {"name": "g", "terms": "buy", "nodes": 9, "ordered": "900 d", "usd_per_node": 1000}])");
  Fleet fleet = fleet_of(spec);
  fleet.returns = days(1);
  const Seconds run = days(2 * 365.25);
  const MoneyFactors factors{.price = 1.1, .value_loss = 1.2};
  const std::vector<LotPrice> lots = lot_prices(fleet, run, factors);
  const MonthMoney sum = sum_of(money_by_month(fleet, run, factors));
  const auto paid = [&](std::size_t from, std::size_t until) {
    double usd = 0;
    for (std::size_t i = from; i < until; ++i) usd += lots[i].paid_usd;
    return usd;
  };
  REQUIRE(lots.size() == 7);
  // A fall of a fifth a year, and the factor on prices.
  CHECK(lots[0].usd_per_node == doctest::Approx(1100));
  CHECK(lots[1].usd_per_node == doctest::Approx(880));
  CHECK(lots[0].paid_usd == doctest::Approx(8 * 1100.0));
  CHECK(lots[2].paid_usd == doctest::Approx(lots[2].usd_per_month * lots[2].months));
  CHECK(lots[3].gpu_hours == doctest::Approx(2 * 8 * 24 * 800.0));
  CHECK(lots[4].gpu_hours == doctest::Approx(2 * 8 * 24 * 100.0));
  CHECK(lots[5].gpu_hours == doctest::Approx(0.9 * 2 * 8 * 24 * 2 * 365.25));
  CHECK(lots[6].paid_usd == 0);
  CHECK(lots[0].arrives == days(110));
  CHECK(lots[0].paid_usd + lots[1].paid_usd == doctest::Approx(sum.bought).epsilon(1e-9));
  CHECK(lots[2].paid_usd == doctest::Approx(sum.leased).epsilon(1e-9));
  CHECK(paid(3, 6) == doctest::Approx(sum.rented).epsilon(1e-9));
  CHECK(lots[0].residual_usd + lots[1].residual_usd == doctest::Approx(sum.residual).epsilon(1e-9));
}

TEST_CASE("money: a lease is paid for from each shipment's arrival on, and the sum is the same") {
  // Half of eight nodes on day 60.875, the others on day 121.75: the second and the fourth month.
  const auto lease = [](const std::string& more) {
    return R"("interest": 0.12, "lots": [{"name": "a", "terms": "lease", "nodes": 8,
      "usd_per_node": 1000, "term": "365.25 d", )" +
           more + "}]";
  };
  const PurchaseSpec spec = purchase_of(lease(R"("delivery": "121.75 d", "shipments": 2)"));
  const double run = 3 * 365.25;
  const std::vector<MonthMoney> months = money_by_month(fleet_of(spec), days(run));
  const double sum =
      sum_of(money_by_month(fleet_of(purchase_of(lease(R"("delivery": "0 d")"))), days(run)))
          .leased;
  CHECK(sum_of(months).leased == doctest::Approx(sum).epsilon(1e-12));
  const double monthly = sum / 12;
  CHECK(months[1].leased == doctest::Approx(0));
  CHECK(months[2].leased == doctest::Approx(monthly / 2));
  CHECK(months[4].leased == doctest::Approx(monthly));
  CHECK(months[14].leased == doctest::Approx(monthly / 2));
  CHECK(months[16].leased == doctest::Approx(0));
  CHECK(sum_of(months).terms_left == doctest::Approx(0));
  // What is left of both terms when the run is done: 11 months of the first, 12 less 0 days.
  const MonthMoney early = sum_of(money_by_month(fleet_of(spec), days(91.3125)));
  CHECK(early.leased == doctest::Approx(sum).epsilon(1e-12));
  CHECK(early.terms_left == doctest::Approx(11 * monthly / 2 + 12 * monthly / 2));
  // Each shipment goes when its own term is over.
  const std::vector<Shipment> shipments = shipments_of(spec);
  REQUIRE(shipments.size() == 2);
  for (const Shipment& each : shipments) {
    CHECK((each.until_s - each.from_s) / kADay == doctest::Approx(365.25));
  }
}

TEST_CASE("lot prices: a reservation's shipments are paid for a term each, and late lots say so") {
  const PurchaseSpec spec = purchase_of(R"("lots": [
    {"name": "a", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 1},
    {"name": "b", "terms": "reserved", "nodes": 4, "delivery": "20 d", "shipments": 2,
     "usd_per_gpu_hour": 2, "term": "100 d"},
    {"name": "c", "terms": "buy", "nodes": 4, "usd_per_node": 1000, "lead_time": "60 d"}])");
  const Fleet fleet = fleet_of(spec);
  const std::vector<LotPrice> lots = lot_prices(fleet, days(50));
  CHECK(lots[1].gpu_hours == doctest::Approx(4 * 8 * 24 * 100.0));
  CHECK(lots[1].paid_usd + lots[0].paid_usd ==
        doctest::Approx(sum_of(money_by_month(fleet, days(50))).rented).epsilon(1e-12));
  CHECK_FALSE(lots[0].after_end);
  CHECK_FALSE(lots[1].after_end);
  CHECK(lots[2].after_end);
  CHECK_FALSE(lot_prices(fleet, days(61))[2].after_end);
}

TEST_CASE("fleet: nodes that are taken away are away as often as their closed form says") {
  Fleet fleet = plan_fleet(eight_nodes(), purchase_of(R"("lots": [
    {"name": "a", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 1},
    {"name": "b", "terms": "spot", "nodes": 6, "usd_per_gpu_hour": 1, "taken_away": "10 d",
     "ordered": "5 d", "until": "20 d"}])"));
  set_returns(fleet, days(2));
  REQUIRE(fleet.steps.size() == 3);
  CHECK(fleet.steps[0].away == 0);
  CHECK(fleet.steps[1].away == doctest::Approx(6 * 2 / 12.0));
  CHECK(fleet.steps[1].standing() == doctest::Approx(6 - 1));
  CHECK(fleet.steps[2].away == 0);
}

TEST_CASE("money: a site's plants are paid for as the first machines come, and lose value") {
  Fleet fleet = fleet_of(purchase_of(R"("interest": 0.08, "lots": [
    {"name": "a", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 0,
     "ordered": "73.05 d"}])"));
  fleet.steps[0].at = fleet.begins = days(73.05);
  fleet.plants_usd = 1000;
  const std::vector<MonthMoney> months = money_by_month(fleet, days(365.25), {.price = 1.5});
  const MonthMoney sum = sum_of(months);
  CHECK(months[2].plants == doctest::Approx(1500));
  CHECK(sum.plants == doctest::Approx(1500));
  CHECK(sum.residual == doctest::Approx(-750));
  CHECK(sum.interest == doctest::Approx(1500 * 0.08));
  CHECK(sum.usd() == doctest::Approx(1500 - 750 + 120));
}

}  // namespace lockstep
