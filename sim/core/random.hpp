/// Random numbers by counter: what a draw gives depends on its name alone, never on what was drawn
/// before elsewhere, so that adding a component or a thread leaves all other draws as they were.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace lockstep {

/// Philox4x32 with 10 rounds: a block of 4 random words for each counter and key.
/// Source: Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", SC11,
/// section 3.3; constants and known answers from their Random123 library.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  constexpr int kRounds = 10;
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::array<std::uint32_t, 2> kKeyStep{0x9E3779B9, 0xBB67AE85};
  const auto low = [](std::uint64_t product) { return static_cast<std::uint32_t>(product); };
  const auto high = [](std::uint64_t product) { return static_cast<std::uint32_t>(product >> 32); };
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key = {key[0] + kKeyStep[0], key[1] + kKeyStep[1]};
  }
  return counter;
}

/// The natural logarithm of a normal number above 0, within 5e-16 relative: the same bits on every
/// machine, which std::log does not promise.
double portable_log(double x);

/// e to the power of x, |x| <= 700, within 1e-15 relative: the same bits on every machine.
/// Source: FDLIBM, e_exp.c (Sun Microsystems 1993): reduction by ln 2 and a rational function.
double portable_exp(double x);

/// The x below which a standard normal variable falls with probability `p`, 1e-300 <= p < 1.
/// Source: Wichura 1988, Appl. Statist. 37(3), 477-484, algorithm AS 241 (PPND16): within 1e-15.
double normal_quantile(double p);

/// What a stream is for. Two streams that differ in any part are independent.
struct StreamName {
  std::uint64_t seed = 0;        ///< of the whole run
  std::uint32_t trajectory = 0;  ///< which of the run's samples
  std::uint32_t component = 0;   ///< whose: a GPU, a node, a link
  std::uint32_t purpose = 0;     ///< what for: an enumerator of the caller's
};

/// One stream of draws, 2^33 at most. No std:: distributions: they differ between libraries.
class RandomStream {
 public:
  explicit RandomStream(const StreamName& name)
      : key_{static_cast<std::uint32_t>(name.seed), static_cast<std::uint32_t>(name.seed >> 32)},
        counter_{0, name.trajectory, name.component, name.purpose} {}

  std::uint64_t bits() {
    if (used_ == kPerBlock) {
      block_ = philox4x32(counter_, key_);
      ++counter_[0];
      assert(counter_[0] != 0 && "the stream is used up");
      used_ = 0;
    }
    const std::uint64_t upper = block_[2 * used_];
    const std::uint64_t lower = block_[2 * used_ + 1];
    ++used_;
    return upper << 32 | lower;
  }

  /// In [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// A whole number in [0, n), uneven by less than n / 2^53. Requires n >= 1.
  std::uint32_t below(std::uint32_t n) {
    assert(n >= 1);
    return static_cast<std::uint32_t>(uniform() * n);
  }
  /// Exponential with mean 1: from 0 to 36.8.
  double exponential() { return -portable_log(1 - uniform()); }
  /// Normal with mean 0 and variance 1, by inversion: one draw each, within +- 8.3.
  double normal() {
    // The middle of one of 2^52 equal cells, so that neither 0 nor 1 is met.
    return normal_quantile((static_cast<double>(bits() >> 12) + 0.5) * 0x1p-52);
  }

 private:
  static constexpr std::size_t kPerBlock = 2;

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;  ///< block number, then the name
  std::array<std::uint32_t, 4> block_{};
  std::size_t used_ = kPerBlock;
};

}  // namespace lockstep
