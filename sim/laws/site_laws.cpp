// Laws of a site: its books of energy, money, carbon and water, hour by hour and month by month.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/laws/law_subject.hpp"
#include "sim/laws/law_tables.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kJoulesOfKwh = 3.6e6;

/// A member that an answer leaves out is 0: there is no sun, no battery, no fuel.
double amount(const Json& of, std::string_view key) {
  const auto at = of.find(key);
  return at == of.end() || at->is_null() ? 0.0 : at->get<double>();
}
double kwh(const Json& of, std::string_view key) { return amount(of, key) / kJoulesOfKwh; }

const Json* site_of(LawSubject& subject, LawBook& book) {
  if (subject.kind() == AnswerKind::run) {
    const Json& answer = subject.answer();
    if (answer.contains("site")) return &answer.at("site");
  }
  book.does_not_apply("no run at a site");
  return nullptr;
}

// --- energy ------------------------------------------------------------------------------------

void hold_balance(std::string_view of, const Json& amounts, LawBook& book) {
  double in = 0, out = 0;
  for (const char* key : {"imported_j", "renewable_j", "battery_out_j", "generated_j"}) {
    in += amount(amounts, key);
  }
  for (const char* key : {"facility_j", "battery_in_j", "given_away_j"})
    out += amount(amounts, key);
  book.same(fmt::format("energy that {} takes, and uses", of), in, out, kDigits);
  book.at_most(fmt::format("energy of machines in {}, of all of it", of),
               amount(amounts, "machines_j"), amount(amounts, "facility_j"), kDigits);
}

std::string name_of_month(const Json& month) {
  return fmt::format("{}-{:02}", month.at("year").get<int>(), month.at("month").get<int>());
}

void hold_site_energy(LawSubject& subject, LawBook& book) {
  const Json* const site = site_of(subject, book);
  if (site == nullptr) return;
  hold_balance("the run", *site, book);
  for (const Json& month : site->at("months")) hold_balance(name_of_month(month), month, book);
  for (const char* key :
       {"machines_j", "facility_j", "imported_j", "renewable_j", "battery_in_j", "battery_out_j",
        "generated_j", "given_away_j", "above_limit_j", "water_l", "energy_usd", "fuel_usd",
        "fuel_tonnes_co2", "tonnes_co2", "demand_usd"}) {
    double sum = 0, scale = 0;
    for (const Json& month : site->at("months")) {
      sum += amount(month, key);
      scale += std::abs(amount(month, key));
    }
    if (scale == 0 && amount(*site, key) == 0) continue;
    book.same_of(fmt::format("{} of all months", key), sum, amount(*site, key), scale, kDigits);
  }
  const SiteSpec& spec = *subject.read().run->site;
  if (!spec.battery) return;
  // It begins full.
  book.at_most("energy out of the battery", amount(*site, "battery_out_j"),
               spec.battery->efficiency * amount(*site, "battery_in_j") +
                   spec.battery->energy_mwh * 1e3 * kJoulesOfKwh,
               kDigits);
}

// --- money -------------------------------------------------------------------------------------

/// Where one tariff holds all year, money is energy times it.
void hold_site_money(LawSubject& subject, LawBook& book) {
  const Json* const site = site_of(subject, book);
  if (site == nullptr) return;
  const ScenarioFile& read = subject.read();
  const SiteSpec& spec = *read.run->site;
  for (const Json& month : site->at("months")) {
    book.same(fmt::format("charge for the highest hour of {}", name_of_month(month)),
              amount(month, "demand_usd"),
              amount(month, "peak_w") / 1e3 * spec.demand_usd_per_kw_month, kDigits);
  }
  book.same("grid_usd", amount(*site, "grid_usd"),
            amount(*site, "energy_usd") + amount(*site, "demand_usd"), kDigits);
  const Scenario* const job = subject.job();
  if (spec.priced || job == nullptr || !job->power) return;
  const HourlySeries& tariff = job->power->cost.usd_per_kwh;
  if (tariff.values.size() != 1) return;
  const double bought = kwh(*site, "imported_j") * tariff.values.front();
  const double sold = kwh(*site, "given_away_j") * spec.export_usd_per_kwh;
  const double fuel = amount(*site, "fuel_usd");
  book.same_of("money for energy, and energy times its price", amount(*site, "energy_usd"),
               bought - sold + fuel, bought + std::abs(sold) + fuel, kDigits);
}

/// What prices alone change is money.
void hold_site_prices(LawSubject& subject, LawBook& book) {
  const Json* const site = site_of(subject, book);
  if (site == nullptr) return;
  constexpr double kMost = 1e3;  // that the key takes
  const double before = subject.read().run->site->demand_usd_per_kw_month;
  const double price = std::min(kMost, 2 * before + 1);
  const Json* const dearer =
      subject.changed({fmt::format("run.site.demand_usd_per_kw_month={:.17g}", price)});
  if (dearer == nullptr) return book.does_not_apply("no other charge is taken");
  const Json& changed = dearer->at("site");
  double charge = 0;
  for (const Json& month : changed.at("months")) charge += amount(month, "peak_w") / 1e3 * price;
  book.same("charges at another price", amount(changed, "demand_usd"), charge, kDigits);
  for (const char* key : {"imported_j", "machines_j", "energy_usd", "slowed_s", "stopped_s"}) {
    book.same(fmt::format("{} at another charge for the highest hour", key), amount(changed, key),
              amount(*site, key), 0);
  }
  book.same("goodput at another charge for the highest hour", dearer->at("goodput").get<double>(),
            subject.answer().at("goodput").get<double>(), 0);
}

// --- power and availability --------------------------------------------------------------------

void hold_site_power(LawSubject& subject, LawBook& book) {
  const Json* const site = site_of(subject, book);
  if (site == nullptr) return;
  double highest = 0;
  for (const Json& month : site->at("months")) highest = std::max(highest, amount(month, "peak_w"));
  book.same("highest hour from the grid, of all months", amount(*site, "imported_peak_w"), highest,
            kDigits);
  book.at_most("highest hour of the machines, of the site", amount(*site, "machines_peak_w"),
               amount(*site, "drawn_w"), kDigits);
  if (site->contains("grid_w") && !site->contains("above_limit_j")) {
    book.at_most("highest hour from the grid, of its limit", amount(*site, "imported_peak_w"),
                 amount(*site, "grid_w"), kDigits);
  }
  if (site->contains("path_w")) {
    // The power of cards that are held is read between caps that were simulated, and what a path
    // brings is found in whole watts.
    constexpr double kBetweenCaps = 1e-6, kWatts = 2;
    book.at_most("highest hour of the machines, of what the path brings",
                 amount(*site, "machines_peak_w"), amount(*site, "path_w") + kWatts, kBetweenCaps);
    if (site->contains("firm_w")) {
      book.at_most("firm power of the path, of all of it", amount(*site, "firm_w"),
                   amount(*site, "path_w"), kDigits);
    }
  }
  if (site->contains("stranded_w")) {
    const double left = amount(*site, "stranded_w"), brings = amount(*site, "provisioned_w");
    const double by_grid = brings - amount(*site, "imported_peak_w");
    const double by_path = brings - amount(*site, "machines_peak_w");
    const double nearer = std::abs(left - by_grid) < std::abs(left - by_path) ? by_grid : by_path;
    book.same_of("stranded power", left, nearer, brings, kDigits);
  }
  const Json& availability = site->at("availability");
  // Paths with too many states have no closed form.
  const Json all = availability.value("share", Json());
  for (const auto& [name, share] : availability.items()) {
    if (!share.is_number()) continue;
    book.at_most(fmt::format("availability, {}", name), share.get<double>(), 1, 1e-12);
    book.at_most(fmt::format("0 against availability, {}", name), 0, share.get<double>(), 0);
    if (name == "share" || name == "met_share" || !all.is_number()) continue;
    book.at_most(fmt::format("availability of all, of {}", name), all.get<double>(),
                 share.get<double>(), 1e-9);
  }
}

}  // namespace

std::vector<Law> site_laws() {
  return {
      {"site_energy", LawFamily::conservation,
       "What a site takes it uses, in each month and in all; months add up to the run.",
       hold_site_energy},
      {"site_money", LawFamily::conservation,
       "A site's money is its energy, its highest hours and its fuel, at their prices.",
       hold_site_money},
      {"site_power", LawFamily::conservation,
       "No hour takes more than grid and path bring; what is left is stranded.", hold_site_power},
      {"site_prices", LawFamily::exactness,
       "A higher charge for the highest hours changes money, and nothing else.", hold_site_prices},
  };
}

}  // namespace lockstep
