// A dataset from tier to tier, and what a job waits for while it reads it.
#include "models/data_supply.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

constexpr BytesPerSecond kNoLimit{std::numeric_limits<double>::infinity()};
constexpr DataRates kUnlimited{.loader = kNoLimit,
                               .staging = kNoLimit,
                               .storage = kNoLimit,
                               .cache_read = kNoLimit,
                               .cache_write = kNoLimit};
constexpr BytesPerSecond kNeeded{10e9};

}  // namespace

TEST_CASE("staging: a hop takes the first byte and all bytes at the slower of both ends") {
  const std::vector<DataTier> tiers{
      {.name = "archive", .first_byte = Seconds{3600}, .read = BytesPerSecond{1e9}, .write = {}},
      {.name = "objects",
       .first_byte = Seconds{1},
       .read = BytesPerSecond{20e9},
       .write = BytesPerSecond{5e9}},
      {.name = "files", .first_byte = {}, .read = {}, .write = BytesPerSecond{10e9}}};
  const std::vector<StagingHop> hops = staging_hops(tiers, Bytes{1e13});
  REQUIRE(hops.size() == 2);
  CHECK(hops[0].takes == Seconds{3600 + 10'000});
  CHECK(hops[1].starts == hops[0].takes);
  CHECK(hops[1].takes == Seconds{1 + 1000});
  CHECK(hops[1].to == "files");
  CHECK(staging_hops({tiers.front()}, Bytes{1e13}).empty());
}

TEST_CASE("data: the job is as fast as the slowest source lets it be") {
  CHECK(first_epoch(kUnlimited, kNeeded, 1).limit == DataLimit::none);
  CHECK(first_epoch(kUnlimited, kNeeded, 1).speed == 1);
  DataRates rates = kUnlimited;
  rates.storage = BytesPerSecond{8e9};
  CHECK(first_epoch(rates, kNeeded, 0).speed == doctest::Approx(0.8));
  CHECK(first_epoch(rates, kNeeded, 0).limit == DataLimit::storage);
  rates.loader = BytesPerSecond{5e9};
  CHECK(first_epoch(rates, kNeeded, 0).speed == doctest::Approx(0.5));
  CHECK(first_epoch(rates, kNeeded, 0).limit == DataLimit::loader);
  rates.staging = BytesPerSecond{1e9};
  CHECK(first_epoch(rates, kNeeded, 0).limit == DataLimit::staging);
  CHECK(later_epoch(rates, kNeeded, 0).limit == DataLimit::loader);
}

TEST_CASE("data: drives that hold a share of the dataset leave the rest to storage") {
  DataRates rates = kUnlimited;
  rates.storage = BytesPerSecond{2e9};
  rates.cache_read = BytesPerSecond{6e9};
  rates.cache_write = BytesPerSecond{1e9};
  // Half of 10 GB/s from storage that gives 2, half from drives that give 6.
  const EpochSpeed later = later_epoch(rates, kNeeded, 0.5);
  CHECK(later.speed == doctest::Approx(0.4));
  CHECK(later.limit == DataLimit::storage);
  CHECK(later.from_storage == 0.5);
  // All of it from the drives.
  CHECK(later_epoch(rates, kNeeded, 1).speed == doctest::Approx(0.6));
  CHECK(later_epoch(rates, kNeeded, 1).limit == DataLimit::cache);
  // The first pass writes what later ones find.
  CHECK(first_epoch(rates, kNeeded, 1).speed == doctest::Approx(0.1));
  CHECK(first_epoch(rates, kNeeded, 1).limit == DataLimit::cache);
  // A pass at 1/5 and three at 1/2 take 5 + 6 times as long as one.
  CHECK(speed_over_epochs(0.2, 0.5, 4) == doctest::Approx(4.0 / 11));
  CHECK(speed_over_epochs(0.2, 0.5, 1) == 0.2);
  CHECK(share_from_storage(later, 4) == doctest::Approx((1 + 3 * 0.5) / 4));
  CHECK(share_from_storage(later, 1) == 1);
}

}  // namespace lockstep
