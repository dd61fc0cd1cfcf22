// Random chains of storage tiers, against a few lines that know nothing of plans.
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/site/finance.hpp"
#include "sim/run/data_plan.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/presets.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kChainTokens = 64 * 2048;  // of a step
constexpr double kChainBytes = 2.5e14;      // of the dataset

struct ChainTier {
  double read = 0, write = 0, first_byte = 0, usd_month = 0, usd_read = 0;
};

class RandomChain {
 public:
  explicit RandomChain(std::uint64_t seed) : engine_(seed) {
    tiers.resize(1 + static_cast<std::size_t>(between(0, 4.99)));
    for (ChainTier& tier : tiers) {
      tier = {.read = between(1e9, 1e11),
              .write = between(1e9, 1e11),
              .first_byte = between(0, 40'000),
              .usd_month = between(0, 0.1),
              .usd_read = between(0, 0.02)};
    }
    storage_write = between(1e9, 1e11);
    storage_usd_month = between(0, 0.2);
  }

  [[nodiscard]] Json scenario(const std::string& staging) const {
    Json out = Json::parse(R"({
      "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 8},
      "parallelism": {"data": 64, "sharding": "zero1"},
      "batch": {"sequences": 64, "micro": 1, "tokens": 2048},
      "recompute": "full", "stack": "megatron_core",
      "run": {"reliability": "llama3_54_days", "data": {"storage": {"read": "10000 GB/s"}}}})");
    out["training"] = {{"tokens", 1000 * kChainTokens}};
    Json& data = out["run"]["data"];
    data["dataset"] = kChainBytes;
    data["bytes_per_token"] = 4 * kChainBytes / (1000 * kChainTokens);
    data["staging"] = staging;
    data["storage"]["write"] = storage_write;
    data["usd_per_gb_month"] = storage_usd_month;
    data["tiers"] = Json::array();
    for (std::size_t t = 0; t < tiers.size(); ++t) {
      Json tier{{"name", fmt::format("tier {}", t)},
                {"read", tiers[t].read},
                {"first_byte", tiers[t].first_byte},
                {"usd_per_gb_month", tiers[t].usd_month},
                {"usd_per_gb_read", tiers[t].usd_read}};
      if (t > 0) tier["write"] = tiers[t].write;
      data["tiers"].push_back(tier);
    }
    return out;
  }

  /// Of the way from tier `t` on to the next.
  [[nodiscard]] double hop_bytes_per_s(std::size_t t) const {
    return std::min(tiers[t].read, t + 1 < tiers.size() ? tiers[t + 1].write : storage_write);
  }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }

  std::vector<ChainTier> tiers;
  double storage_write = 0, storage_usd_month = 0;

 private:
  std::mt19937_64 engine_;
};

CampaignPlan planned_chain(const Json& scenario) {
  const JobFile job = read_job_file("t.json", scenario.dump(), presets());
  return plan_campaign(complete_measured(job.draft, presets(), {}), *job.run);
}

}  // namespace

TEST_CASE("random chains of tiers: hop after hop before, by the narrowest hop during, and money") {
  constexpr int kChains = 30;
  for (int i = 0; i < kChains; ++i) {
    const std::uint64_t seed = test_seed() + static_cast<std::uint64_t>(i);
    CAPTURE(seed);
    RandomChain chain(seed);
    // Each tier is paid for from when the hop into it begins.
    double at = 0, waits = 0, narrowest = 1e300;
    std::vector<double> from{0};
    for (std::size_t t = 0; t < chain.tiers.size(); ++t) {
      from.push_back(at);
      at += chain.tiers[t].first_byte + kChainBytes / chain.hop_bytes_per_s(t);
      waits += chain.tiers[t].first_byte;
      narrowest = std::min(narrowest, chain.hop_bytes_per_s(t));
    }
    const CampaignPlan before = planned_chain(chain.scenario("before"));
    REQUIRE(before.data);
    CHECK(before.data->begins.base_units() == doctest::Approx(at).epsilon(1e-9));
    CHECK(before.data_speed == 1);

    const double end = at + chain.between(1, 5e6);
    constexpr double kGigabytes = kChainBytes / 1e9;
    double usd = kGigabytes * chain.storage_usd_month * (end - from.back()) / kMonthSeconds;
    for (std::size_t t = 0; t < chain.tiers.size(); ++t) {
      const double months = (end - from[t]) / kMonthSeconds;
      usd += kGigabytes * (chain.tiers[t].usd_month * months + chain.tiers[t].usd_read);
    }
    CHECK(storage_usd(*before.data, Seconds{end}) == doctest::Approx(usd).epsilon(1e-9));
    double by_month = 0;
    for (const HeldTier& tier : before.data->tiers) {
      for (const double month : tier_months(tier, Seconds{end})) by_month += month;
    }
    CHECK(by_month == doctest::Approx(usd).epsilon(1e-9));

    const CampaignPlan during = planned_chain(chain.scenario("during"));
    CHECK(during.data->begins.base_units() == doctest::Approx(waits).epsilon(1e-9));
    // 4 passes in 1,000 steps: the first as fast as bytes come, at most at full speed.
    const double needed = 4 * kChainBytes / 1000 / during.step_s;
    const double first = std::min(1.0, narrowest / needed);
    CHECK(during.data->first.speed == doctest::Approx(first).epsilon(1e-9));
    CHECK(during.data_speed == doctest::Approx(4 / (1 / first + 3)).epsilon(1e-9));
  }
}

}  // namespace lockstep::test
