/// What lockstep-calibrate asks of a card: facts about it, and the time of one thing after another.
/// The CUDA part implements it; tests put a made-up card in its place.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/base/units.hpp"
#include "models/kernels/attention.hpp"
#include "models/kernels/gemm.hpp"
#include "models/spec/load.hpp"
#include "models/spec/precision.hpp"
#include "tools/calibrate/memory_kernels.hpp"

namespace lockstep {

/// Which of a linear layer's three products it is: they differ in how their operands lie in memory.
enum class ProductRole : std::uint8_t { forward, input_gradient, weight_gradient };

struct ProductTask {
  GemmShape shape{1, 1, 1};
  ProductRole role = ProductRole::forward;
  Precision precision = Precision::bf16;
  Load load = Load::burst;
};
/// cuDNN's fused attention.
struct AttentionTask {
  AttentionShape shape{1, 1, 1, 1, 1};
};
struct MemoryTask {
  MemoryKernelKind kernel = MemoryKernelKind::copy;
  double elements = 0;  ///< a multiple of kRowElements
};
/// Kernels in a row: empty ones show what a launch costs the host, busy ones the gap between them.
struct LaunchTask {
  bool graph = false;
  bool busy = false;
};
struct CopyTask {
  bool to_device = true;
  Bytes size;  ///< from or to pinned host memory
};
using Task = std::variant<LaunchTask, CopyTask, MemoryTask, ProductTask, AttentionTask>;

/// "gemm bf16 forward 4096 x 8192 x 8192, sustained".
std::string describe(const Task& task);

/// What NVML says of the card while it works; 0: not known.
struct CardState {
  double sm_mhz = 0;
  double watts = 0;  ///< mean over the repeats, pauses included
  double celsius = 0;
};
struct Samples {
  std::vector<double> seconds;  ///< of one kernel, launch or copy, for each repeat; at least one
  CardState state;
};
/// How long a sustained task keeps the card busy.
struct Pace {
  Seconds warm;   ///< before it is timed
  Seconds timed;  ///< while it is
};

struct CardFacts {
  std::string name;            ///< as the card calls itself: "NVIDIA H100 80GB HBM3"
  int major = 0, minor = 0;    ///< compute capability
  Bytes inputs, outputs;       ///< memory that tasks can have for operands and for results
  bool block_scaling = false;  ///< the library multiplies MXFP8 and NVFP4
  std::string no_attention;    ///< why attention cannot be timed; empty: it can
  /// For the profile's reader: driver, libraries, limits.
  std::vector<std::pair<std::string, std::string>> conditions;
};

/// There is no card that could be timed: none at all, a busy one, one that is too small.
class CardUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// A call failed after which nothing more can be measured. what() names the call.
class CardError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// This task gives no point; the next one may.
class TaskFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Card {
 public:
  Card() = default;
  virtual ~Card() = default;
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  [[nodiscard]] virtual const CardFacts& facts() const = 0;
  /// Runs the task, checks its result and returns its times. `pace` is for sustained products.
  /// Throws TaskFailed or CardError.
  virtual Samples measure(const Task& task, const Pace& pace) = 0;
};

/// How busy a card is before we touch it.
struct Occupancy {
  double utilisation = 0;       ///< 0 to 1, of the last moments
  Bytes used;                   ///< by programs, without what the driver reserves
  Bytes total;                  ///< with it
  std::optional<int> programs;  ///< that have a context on it; empty: the driver does not say
};
/// Why the card cannot be timed, as the end of a sentence; empty: it can.
std::string obstacle_of(const Occupancy& occupancy);
/// What may disturb the times of a card that can be timed, as the end of a sentence; empty: nothing
/// is known to.
std::string disturbance_of(const Occupancy& occupancy);

}  // namespace lockstep
