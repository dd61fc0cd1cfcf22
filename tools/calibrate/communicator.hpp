/// What lockstep-calibrate --nccl asks of the GPUs that it was started on: who they are, and the
/// time of one collective after another. The NCCL part implements it; tests put a made-up one in
/// its place.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/collectives/collectives.hpp"
#include "tools/calibrate/card.hpp"
#include "tools/calibrate/launch.hpp"

namespace lockstep {

struct CollectiveTask {
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes size;  ///< nccl-tests' size column, as CollectiveCall::payload
};
/// "all_reduce 8,388,608 bytes".
std::string describe(const CollectiveTask& task);

/// A matrix product and a collective on the same GPUs at once.
struct OverlapTask {
  ProductTask product;
  CollectiveTask collective;
  bool high_priority = false;  ///< of the collective's stream, as frameworks can have it
};
struct OverlapTimes {
  Seconds product_alone, product_beside;        ///< of one product
  Seconds collective_alone, collective_beside;  ///< of one collective
};
/// "gemm bf16 forward 8192 x 8192 x 8192 beside all_reduce 268,435,456 bytes, high priority".
std::string describe(const OverlapTask& task);

/// How frameworks call collectives otherwise than nccl-tests does.
enum class CollectiveVariant : std::uint8_t {
  bf16,      ///< summed in 16 bit: as many bytes, twice the elements
  in_place,  ///< the result where the input was
  pair,      ///< two at once, on two communicators
  uneven,    ///< rank 0 gets twice of what each other rank gets: all-to-all with a favoured expert
};
struct VariantTask {
  CollectiveTask collective;
  CollectiveVariant variant = CollectiveVariant::bf16;
};
struct VariantTimes {
  Seconds plain, varied;  ///< of a pair: of both together
};
/// "all_reduce 268,435,456 bytes in BF16".
std::string describe(const VariantTask& task);

/// Bytes over each GPU's links in a second as the fastest algorithm would need them: nccl-tests'
/// bus bandwidth (github:NVIDIA/nccl-tests, doc/PERFORMANCE.md).
BytesPerSecond bus_bandwidth(const CollectiveTask& task, int ranks, Seconds time);

/// How a collective is repeated. A sample is `launches` in a row between two events, behind one
/// that is not timed, at which the ranks wait for each other.
struct CollectiveRepeats {
  int launches, samples;
};
CollectiveRepeats collective_repeats(Seconds one);

/// Why one GPU alone is not enough.
inline constexpr std::string_view kTooFewCards =
    "there is one GPU; collectives need two at least: start a rank for each GPU, by mpirun, srun "
    "or "
    "torchrun, or run it alone on a machine with several";

struct CommunicatorFacts {
  int rank = 0;                      ///< of this process' first GPU
  std::vector<std::string> hosts;    ///< of every rank, in their order
  std::vector<std::string> devices;  ///< name of every rank's card
  Bytes room;  ///< for what a GPU sends, and as much for what it receives; the least of all ranks
  std::vector<std::pair<std::string, std::string>> conditions;

  [[nodiscard]] int ranks() const { return static_cast<int>(hosts.size()); }
};

class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] virtual const CommunicatorFacts& facts() const = 0;
  /// The largest of each over all processes: every one calls it, with as many numbers, and gets the
  /// same. What is decided by them alone is decided alike everywhere. Throws CardError.
  virtual std::vector<double> agree(std::vector<double> values) = 0;
  /// Runs the collective on all ranks, checks every byte of its result, and gives for each repeat
  /// the time of the slowest rank. Every process calls it with the same task and gets the same
  /// times, or TaskFailed; CardError may come on a few only, and then nothing more can be done.
  virtual Samples measure(const CollectiveTask& task) = 0;
  /// What product and collective take, each by itself and while the other goes on all the time:
  /// medians of the slowest rank. As measure() in everything else.
  virtual OverlapTimes overlap(const OverlapTask& task) = 0;
  /// What the collective takes plainly and varied, both checked: medians of the slowest rank. As
  /// measure() in everything else. A pair and an uneven one need a size of half the room at most.
  virtual VariantTimes vary(const VariantTask& task) = 0;
};

/// What opens a communicator.
struct CommunicatorStart {
  Launch launch;
  std::string id_file;  ///< what the names of the files begin with by which the ranks meet
  /// Called with a line on another thread where a call of NCCL never comes back. Has to end the
  /// program.
  std::function<void(const std::string&)> give_up;
};

}  // namespace lockstep
