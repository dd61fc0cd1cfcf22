#include "sim/laws/random_site.hpp"

#include <fmt/format.h>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/laws/draws.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// About what a node of eight cards draws with its share of the building; of four about half.
constexpr double kKilowattsOfNode = 10;

class SiteDraw : Draws {
 public:
  SiteDraw(RandomStream& random, int nodes, int spares)
      : Draws(random), nodes_(nodes), spares_(spares) {}

  Json site() {
    Json out = Json::object();
    if (!once_in(4)) add_grid(out);
    if (once_in(2)) out["weather"] = weather();
    if (once_in(2)) out["cooling"] = cooling();
    if (once_in(2)) out["path"] = path();
    return out;
  }

 private:
  /// That many times the draw of all nodes.
  std::string times(double factor) {
    return fmt::format("{:g} kW", factor * kKilowattsOfNode * nodes_);
  }

  void add_grid(Json& out) {
    if (once_in(2)) out["limit"] = times(one_of<double>({0.7, 1.2, 2}));
    if (once_in(2)) {
      out["curtailments"] = Json::array({{{"from_hour", one_of<int>({0, 17, 23})},
                                          {"hours", one_of<int>({1, 2, 6})},
                                          {"limit", times(one_of<double>({0, 0.4, 0.8}))}}});
    }
    if (once_in(2)) out["demand_usd_per_kw_month"] = 12;
    if (once_in(3)) out["ramp_mw_per_s"] = one_of<double>({0.001, 0.1, 10});
    if (once_in(2)) {
      out["solar"] = times(one_of<double>({0.3, 3}));
      out["latitude"] = one_of<int>({-33, 0, 51});
      if (once_in(2)) out["export_usd_per_kwh"] = one_of<double>({-0.01, 0.02});
    }
    if (once_in(2)) {
      out["battery"] = {{"energy_mwh", 0.001 * kKilowattsOfNode * nodes_ * one_of<int>({1, 4})},
                        {"power", times(one_of<double>({0.3, 1.5}))},
                        {"efficiency", one_of<double>({0.8, 1})}};
      if (once_in(2)) out["battery"]["charge_power"] = times(0.2);
    }
  }
  Json weather() {
    return {{"mean_celsius", one_of<int>({-5, 15, 30})},
            {"yearly_kelvin", one_of<int>({0, 12})},
            {"humidity", one_of<std::string>({"20 %", "60 %"})},
            {"seed", below(1000)}};
  }
  /// In units of a quarter or a half of the heat, one or two of them more than it needs.
  Json cooling() {
    const int needed = one_of<int>({2, 4});
    const auto sink = one_of<std::string>({"dry", "wet", "chiller"});
    Json out{{"sink", sink},
             {"units", needed + below(3)},
             {"unit_heat", times(1.0 / needed)},
             {"rated_celsius", one_of<int>({32, 45})}};
    if (sink != "chiller") out["approach_kelvin"] = one_of<int>({4, 10});
    add_failures(out);
    if (once_in(2)) {
      Json pump{{"name", "pump"},
                {"units", 2 + below(2)},
                {"unit_heat", times(0.5)},
                {"approach_kelvin", 2}};
      add_failures(pump);
      out["loop"] = Json::array({std::move(pump)});
    }
    return out;
  }
  void add_failures(Json& bank) {
    if (once_in(4)) return;
    bank["mean_time"] = one_of<std::string>({"10 d", "100 d"});
    bank["repair"] = one_of<std::string>({"2 h", "2 d"});
    if (once_in(3)) bank["crews"] = 1;
  }

  /// A line, perhaps generators beside it, UPS on one or two sides, and rows of nodes.
  Json path() {
    Json out = Json::array();
    Json line{{"name", "line"}, {"units", 1 + below(2)}};
    if (once_in(2)) line["capacity"] = times(one_of<double>({0.8, 2}));
    add_failures(line);
    out.push_back(std::move(line));
    Json sources = Json::array({"line"});
    if (once_in(2)) {
      Json generator{{"start", one_of<std::string>({"0 s", "15 s"})},
                     {"fails_to_start", one_of<double>({0, 0.1})},
                     {"usd_per_kwh", 0.3},
                     {"grams_per_kwh", 700}};
      if (once_in(2)) generator["fuel"] = "8 h";
      out.push_back({{"name", "generator"},
                     {"units", 2 + below(2)},
                     {"capacity", times(0.6)},
                     {"generator", std::move(generator)}});
      sources.push_back("generator");
    }
    Json sides = Json::array();
    for (const char* const side : {"UPS A", "UPS B"}) {
      if (side[4] == 'B' && once_in(2)) break;
      Json ups{{"name", side},
               {"units", 2 + below(2)},
               {"capacity", times(one_of<double>({0.4, 0.7}))},
               {"from", sources}};
      if (once_in(2)) ups["bridge"] = "5 min";
      add_failures(ups);
      sides.push_back(side);
      out.push_back(std::move(ups));
    }
    out.push_back(row(std::move(sides)));
    return out;
  }
  /// Rows that feed all nodes, with one in reserve or without.
  Json row(Json sides) {
    const int nodes = nodes_ % 4 == 0 ? nodes_ / 4 : nodes_;
    Json out{{"name", "row"},
             {"units", (nodes_ + spares_ + nodes - 1) / nodes + below(2)},
             {"nodes", nodes},
             {"from", std::move(sides)}};
    add_failures(out);
    return out;
  }

  int nodes_, spares_;
};

}  // namespace

void add_random_site(RandomStream& random, Json& scenario) {
  // Members move when one is added.
  const int nodes = scenario.at("cluster").at("nodes").get<int>();
  const int hot = scenario.at("run").at("spares").at("hot").get<int>();
  if (!scenario.contains("power")) scenario["power"] = Json::object({{"facility", "air_chiller"}});
  scenario["cost"] = {{"usd_per_kwh", 0.07}, {"grams_per_kwh", 380}};
  scenario["run"]["site"] = SiteDraw(random, nodes, hot).site();
}

}  // namespace lockstep
