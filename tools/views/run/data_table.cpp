#include "tools/views/run/data_table.hpp"

#include <fmt/format.h>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

constexpr double kTerabyte = 1e12, kGigabyte = 1e9;

std::string limit_words(const char* pass, const EpochSpeed& of) {
  if (of.limit == DataLimit::none) return fmt::format("; {} waits for nothing", pass);
  return fmt::format("; {} is held to {} of its speed by the {}", pass, percent_text(of.speed),
                     kDataLimits[static_cast<std::size_t>(of.limit)]);
}

std::string storage_cell(double usd) { return usd == 0 ? "-" : compact(usd); }

}  // namespace

std::string data_words(const DataPlan& plan) {
  std::string out;
  if (plan.begins > Seconds{}) {
    out = fmt::format("begins after {} of staging; ", duration_text(plan.begins.base_units()));
  }
  out += fmt::format("{} {} over {} TB", significant(plan.epochs),
                     plan.epochs == 1 ? "pass" : "passes",
                     significant(plan.dataset.base_units() / kTerabyte));
  if (plan.cached > 0) {
    out += fmt::format(", of which the nodes' drives hold {}", percent_text(plan.cached));
  }
  out += limit_words("the first", plan.first);
  if (plan.epochs > 1) out += limit_words("each later one", plan.later);
  return out;
}

std::string data_text(const DataPlan& plan, Seconds end, const TextStyle& style) {
  TextTable hops({{"staging, from", TextTable::Align::left},
                  {"to", TextTable::Align::left},
                  {"GB/s"},
                  {"takes"}});
  for (const StagingHop& hop : plan.hops) {
    hops.add({hop.from, hop.to, significant(hop.rate.base_units() / kGigabyte),
              duration_text(hop.takes.base_units())});
  }
  std::vector<TextTable::Column> columns{{"USD of storage in month"}};
  std::vector<std::vector<double>> tiers;
  for (const HeldTier& tier : plan.tiers) {
    columns.push_back({tier.name});
    tiers.push_back(tier_months(tier, end));
  }
  columns.push_back({"together"});
  TextTable money(std::move(columns));
  std::vector<double> sums(tiers.size(), 0.0);
  const auto add = [&](const std::string& name, const std::vector<double>& parts) {
    std::vector<std::string> cells{name};
    double sum = 0;
    for (const double part : parts) {
      cells.push_back(storage_cell(part));
      sum += part;
    }
    cells.push_back(storage_cell(sum));
    money.add(std::move(cells));
  };
  for (std::size_t m = 0; m < tiers.front().size(); ++m) {
    std::vector<double> parts;
    for (std::size_t t = 0; t < tiers.size(); ++t) {
      parts.push_back(tiers[t][m]);
      sums[t] += tiers[t][m];
    }
    add(std::to_string(m + 1), parts);
  }
  add("all", sums);
  const bool paid = storage_usd(plan, end) > 0;
  const std::string out = plan.hops.empty() ? "" : hops.text(style);
  return paid ? out + (out.empty() ? "" : "\n") + money.text(style) : out;
}

}  // namespace lockstep
