/// The power of a GPU from what its engines do, and what a power cap costs in speed.
#pragma once

#include <array>
#include <cstdint>

#include "models/base/units.hpp"
#include "models/spec/hardware.hpp"

namespace lockstep {

/// Where a GPU's energy goes; together all of it.
enum class GpuPart : std::uint8_t {
  fixed,  ///< leakage, clocks, idle engines
  tensor,
  hbm,
  link,
  ballast,  ///< burnt on purpose, to keep the power up
};
constexpr std::size_t kGpuParts = 5;

template <class Amount>
using ByGpuPart = std::array<Amount, kGpuParts>;
template <class Amount>
constexpr Amount sum(const ByGpuPart<Amount>& parts) {
  return parts[0] + parts[1] + parts[2] + parts[3] + parts[4];
}

/// What a kernel, or several at once, get done.
struct EngineWork {
  Flops flops_16, flops_8, flops_4;  ///< of matrix products and attention, by operand format
  Bytes hbm;                         ///< read and written
  Bytes link;                        ///< out of the GPU

  EngineWork& operator+=(const EngineWork& o);
  friend EngineWork operator*(double k, const EngineWork& work);
};

/// Energy of `work` done within `time` by a GPU that does nothing else meanwhile, by part:
///
///     E = active T + sum of amounts x energy per unit
///
/// A kernel may ask for more than the card's limit, which holds for means over many kernels: that
/// is what clipped() is for. Energies per unit: the GPU's GpuPowerConstants. Requires gpu.power.
ByGpuPart<Joules> gpu_energy(const EngineWork& work, Seconds time, const GpuSpec& gpu);

/// The sum of it, without the fixed part.
inline Joules energy_above_fixed(const EngineWork& work, const GpuPowerConstants& c) {
  return c.tensor_16 * work.flops_16 + c.tensor_8 * work.flops_8 + c.tensor_4 * work.flops_4 +
         c.hbm * work.hbm + c.link * work.link;
}

/// What a card with that limit draws where its engines ask for `demand`. Where the limit binds, all
/// but the fixed part shrinks in proportion: the clock goes down, and with it the voltage, until
/// the card fits.
ByGpuPart<Watts> clipped(ByGpuPart<Watts> demand, Watts limit);

/// Power that very large 16-bit products draw one after the other, at the clock that the GPU
/// sustains: what they ask for, or the limit.
Watts product_power(const GpuSpec& gpu);

/// The lowest cap that the GPU can keep: a large product at the lowest clock.
Watts lowest_cap(const GpuSpec& gpu);

/// Clock under `cap` over the clock that the GPU sustains without it:
///
///     c = min(1, ((cap - active) / (product - active))^(1/n))
///
/// since power above `active` goes as f V^2, and V nearly as f: n = 3, or what the preset's source
/// says of its card.
/// Requires lowest_cap(gpu) <= cap.
double capped_clock(const GpuSpec& gpu, Watts cap);

/// The GPU under a power cap. Products slow by capped_clock(), attention by its third root, as
/// under every sustained load (models/kernels); memory-bound kernels only if streaming alone asks
/// for more than the cap, for HBM keeps its own clock. Energy per FLOP falls with the voltage.
/// Requires lowest_cap(gpu) <= cap <= gpu.power_limit.
GpuSpec capped(GpuSpec gpu, Watts cap);

}  // namespace lockstep
