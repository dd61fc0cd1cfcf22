#include "sim/core/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <initializer_list>
#include <numbers>
#include <vector>

#include "tests/sim/core/test_seed.hpp"
#include "tests/support/near.hpp"

namespace lockstep {

namespace {

struct KnownBlock {
  std::array<std::uint32_t, 4> counter;
  std::array<std::uint32_t, 2> key;
  std::array<std::uint32_t, 4> block;
};
// Random123, file tests/kat_vectors, the three lines "philox4x32 10".
constexpr std::uint32_t kOnes = 0xffffffff;
constexpr std::array kKnownBlocks{
    KnownBlock{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    KnownBlock{{kOnes, kOnes, kOnes, kOnes},
               {kOnes, kOnes},
               {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    KnownBlock{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
               {0xa4093822, 0x299f31d0},
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

std::vector<std::uint64_t> first_draws(const StreamName& name, int count) {
  RandomStream stream(name);
  std::vector<std::uint64_t> draws;
  draws.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) draws.push_back(stream.bits());
  return draws;
}

struct Moments {
  double mean = 0;
  double variance = 0;
};
template <typename Draw>
Moments moments(int count, Draw draw) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < count; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / count;
  return {mean, squares / count - mean * mean};
}

}  // namespace

TEST_CASE("philox4x32: gives the published known answers") {
  for (const KnownBlock& known : kKnownBlocks) {
    CHECK(philox4x32(known.counter, known.key) == known.block);
  }
}

TEST_CASE("RandomStream: seed is the key, draw and name are the counter, two draws a block") {
  // A stream whose name is all zeros begins with the first known answer.
  CHECK(first_draws({}, 2) == std::vector<std::uint64_t>{0x6627e8d5'e169c58d, 0xbc57ac4c'9b00dbd8});
  const auto block = philox4x32({1, 7, 8, 9}, {0x22222222, 0x11111111});
  const auto draws =
      first_draws({.seed = 0x11111111'22222222, .trajectory = 7, .component = 8, .purpose = 9}, 3);
  CHECK(draws[2] == (std::uint64_t{block[0]} << 32 | block[1]));
}

TEST_CASE("RandomStream: each part of the name makes another stream") {
  constexpr int kDraws = 100;
  const StreamName base{.seed = 1, .trajectory = 2, .component = 3, .purpose = 4};
  std::vector<StreamName> names(5, base);
  names[1].seed ^= std::uint64_t{1} << 63;
  ++names[2].trajectory;
  ++names[3].component;
  ++names[4].purpose;
  std::vector<std::uint64_t> all;
  for (const StreamName& name : names) {
    for (const std::uint64_t draw : first_draws(name, kDraws)) all.push_back(draw);
  }
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());
}

TEST_CASE("RandomStream: a stream does not notice in what order others are drawn from") {
  const StreamName first{.seed = 5, .component = 0};
  const StreamName second{.seed = 5, .component = 1};
  RandomStream a(first);
  RandomStream b(second);
  std::vector<std::uint64_t> from_a;
  std::vector<std::uint64_t> from_b;
  for (int i = 0; i < 9; ++i) {
    from_b.push_back(b.bits());
    if (i % 3 == 0) from_b.push_back(b.bits());
    from_a.push_back(a.bits());
  }
  CHECK(from_a == first_draws(first, 9));
  CHECK(from_b == first_draws(second, 12));
}

TEST_CASE("portable_log: is the logarithm to 5e-16 over the whole range") {
  CHECK(portable_log(1.0) == 0.0);
  for (const double x :
       {0x1p-1022, 1e-300, 0x1p-53, 0.1, 0.5, std::numbers::sqrt2 / 2, 1 - 0x1p-53, 1 + 0x1p-52,
        std::numbers::sqrt2, std::nextafter(std::numbers::sqrt2, 2.0), 2.0, 3.0, 1e10, 1.7e308}) {
    CAPTURE(x);
    const double expected = std::log(x);
    // 5e-16 of ours and half a unit in the last place of the library's.
    CHECK(std::abs(portable_log(x) - expected) <= 6.2e-16 * std::abs(expected));
  }
}

TEST_CASE("normal_quantile: meets the values published with AS 241, and is odd") {
  // Wichura 1988, section "Additional comments": p = 0.25, 0.001 and 1e-20 give these z.
  CHECK(normal_quantile(0.25) == test::near(-0.6744897501960817).epsilon(1e-15));
  CHECK(normal_quantile(0.001) == test::near(-3.090232306167814).epsilon(1e-15));
  CHECK(normal_quantile(1e-20) == test::near(-9.262340089798408).epsilon(1e-15));
  CHECK(normal_quantile(0.5) == 0.0);
  for (const double p : {0.25, 0.0625, 0x1p-30}) {
    CAPTURE(p);
    CHECK(normal_quantile(1 - p) == -normal_quantile(p));
  }
}

TEST_CASE("normal_quantile: undoes the normal distribution, also where its parts meet") {
  for (const double p :
       {1e-290, 1e-100, 1.3e-11, 1.4e-11, 1e-5, 0.0749, 0.0751, 0.3, 0.5, 0.9249, 0.9251, 0.999}) {
    CAPTURE(p);
    const double x = normal_quantile(p);
    // An error d in x is an error of about d |x| in log p far out: 1e-15 x^2 at x = -36.
    CHECK(0.5 * std::erfc(-x / std::sqrt(2.0)) == test::near(p).epsilon(1e-15 * (4 + x * x)));
  }
}

TEST_CASE("RandomStream: draws have the mean and the variance of their law") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  constexpr int kDraws = 200'000;
  // Six standard errors: of a mean sqrt(v / n), of a variance sqrt((m4 - v^2) / n), with the fourth
  // central moment m4 = 1/80 (uniform), 9 (exponential), 3 (normal).
  const double root = 6 / std::sqrt(double{kDraws});
  RandomStream stream({.seed = seed});
  const Moments uniform = moments(kDraws, [&] { return stream.uniform(); });
  CHECK(std::abs(uniform.mean - 0.5) < root * std::sqrt(1.0 / 12));
  CHECK(std::abs(uniform.variance - 1.0 / 12) < root * std::sqrt(1.0 / 80 - 1.0 / 144));
  const Moments exponential = moments(kDraws, [&] { return stream.exponential(); });
  CHECK(std::abs(exponential.mean - 1) < root);
  CHECK(std::abs(exponential.variance - 1) < root * std::sqrt(8.0));
  const Moments normal = moments(kDraws, [&] { return stream.normal(); });
  CHECK(std::abs(normal.mean) < root);
  CHECK(std::abs(normal.variance - 1) < root * std::sqrt(2.0));
}

TEST_CASE("RandomStream: below(n) stays below n and reaches every number") {
  RandomStream stream({.seed = test::test_seed()});
  std::array<int, 7> seen{};
  for (int i = 0; i < 1000; ++i) ++seen.at(stream.below(7));
  CHECK(std::ranges::all_of(seen, [](int count) { return count > 0; }));
  CHECK(stream.below(1) == 0);
}

}  // namespace lockstep
