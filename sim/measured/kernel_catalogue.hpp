/// What benchmarks of kernels time besides the kernel, and what their names mean. Facts about the
/// benchmarks, not about the GPUs: nothing outside validation reads them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/kernels/memory_bound.hpp"
#include "models/spec/hardware.hpp"
#include "sim/measured/kernel_rows.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// GPUs as files print them, by the "device_names" of their presets.
class GpuNames {
 public:
  explicit GpuNames(const PresetStore& presets);

  /// The preset with the longest name that `printed` ("H100-80GB SXM", "NVIDIA GB200") begins with,
  /// behind "NVIDIA "; empty if there is none.
  [[nodiscard]] std::string preset_of(std::string_view printed) const;

 private:
  struct Name {
    std::string printed, preset;
  };
  std::vector<Name> names_;
};

/// The entry of the implementation with the longest name that `printed` begins with; null if none.
const AttentionImplementation* attention_implementation(std::string_view printed);

/// The entry of a memory-bound kernel; null if its traffic is not known.
const MemoryKernel* memory_kernel(std::string_view kernel, std::string_view implementation);

/// `src` of the 8-bit products whose time includes the quantisation of the activations.
inline constexpr std::string_view kQuantisingGemmSource = "aic";

/// Time of that quantisation, microseconds: a pass for the largest value, one that scales and
/// casts.
double quantise_us(double elements, const GpuSpec& gpu);

}  // namespace lockstep
