/// How a kernel is timed: events around CUDA graphs, repeats, rests, clocks and power meanwhile.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "tools/calibrate/card.hpp"
#include "tools/calibrate/cuda/kernels.hpp"
#include "tools/calibrate/cuda/resources.hpp"
#include "tools/calibrate/nvml.hpp"

namespace lockstep {

/// A stretch of a buffer for every set, one behind the other.
struct Stretch {
  std::byte* begin;
  std::size_t apart;
  [[nodiscard]] std::byte* of(int set) const {
    return begin + apart * static_cast<std::size_t>(set);
  }
};
/// Sizes are rounded up to it: what cuBLASLt takes for granted of a pointer.
constexpr std::size_t kAlignment = 256;
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// A card in our hands: a stream, one buffer of random operands, one for results.
class Bench {
 public:
  /// Requires that the device is the current one.
  Bench(std::size_t l2, std::size_t inputs, std::size_t outputs, std::unique_ptr<Nvml> nvml);

  [[nodiscard]] const Stream& stream() const { return stream_; }
  [[nodiscard]] const Nvml* nvml() const { return nvml_.get(); }
  /// Random numbers of the format over the whole buffer of operands.
  [[nodiscard]] std::byte* operands(ElementFormat format);
  [[nodiscard]] std::byte* results() const { return outputs_.at(0); }
  /// Sets of `in` and `out` bytes that rotate through both buffers without meeting in the L2 cache.
  /// Throws TaskFailed where not even one fits.
  [[nodiscard]] int sets(std::size_t in, std::size_t out) const;

  /// Enqueues one kernel on this set of buffers.
  using Launch = std::function<void(int set)>;
  /// Times it on a cool card, as burst_repeats() says.
  Samples burst(const Launch& launch, int sets);
  /// Keeps the card busy with it and times that.
  Samples sustained(const Launch& launch, int sets, const Pace& pace);
  /// The card's state, for measurements that time themselves.
  [[nodiscard]] CardState state() const;

 private:
  double once(const Launch& launch, int sets);
  Graph graph_of(const Launch& launch, int launches, int sets);

  Stream stream_;
  std::size_t l2_;
  DeviceMemory inputs_, outputs_;
  std::optional<ElementFormat> format_;
  std::unique_ptr<Nvml> nvml_;
};

/// Clocks, power and temperature from its making to finish().
class Watch {
 public:
  explicit Watch(const Nvml* nvml);
  /// Reads the clock while the card works; not more often than every 10 ms.
  void look();
  [[nodiscard]] CardState finish() const;

 private:
  const Nvml* nvml_;
  std::optional<Joules> energy_;
  double start_, looked_ = 0;
  double mhz_ = 0, watts_ = 0;
  int looks_ = 0;
};

}  // namespace lockstep
