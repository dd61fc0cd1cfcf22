/// How long things take on the made-up card: those of an H100's size, but nobody's measurements.
#pragma once

#include <algorithm>

namespace lockstep::fake {

constexpr double kClockHz = 1.755e9, kWatts = 350, kCelsius = 55;
constexpr double kCallSeconds = 1e-6;     ///< of any call, on the host
constexpr double kCompileSeconds = 0.2;   ///< of a plan by cuDNN
constexpr double kKernelSeconds = 2e-6;   ///< of a kernel beside its work
constexpr double kBytesPerSecond = 3e12;  ///< of its memory
constexpr double kHostBytesPerSecond = 50e9;
constexpr double kWideFlops = 800e12;  ///< a second, of 16-bit formats; a byte doubles it
constexpr double kLinkBytesPerSecond = 400e9;
constexpr double kCollectiveSeconds = 10e-6;

/// A roofline.
constexpr double kernel_seconds(double flops, double flops_per_second, double bytes) {
  return kKernelSeconds + std::max(flops / flops_per_second, bytes / kBytesPerSecond);
}
/// A matrix product whose operands have so many bits an element; results have 16.
constexpr double product_seconds(double m, double n, double k, double count, double bits) {
  return kernel_seconds(2 * m * n * k * count, kWideFlops * 16 / bits,
                        count * ((m * k + k * n) * bits / 8 + m * n * 2));
}

}  // namespace lockstep::fake
