/// What the PyTorch profiler recorded of one rank (Kineto's Chrome trace): kernels and copies on
/// the GPU, and on request the host's part, which launched them.
/// Source of names and fields: github.com/pytorch/kineto, libkineto/src/output_json.cpp and
/// CuptiActivity.cpp; torch/csrc/profiler/collection.cpp ("Record function id").
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/pytorch/kineto_call.hpp"
#include "sim/trace/pytorch/kineto_json.hpp"
#include "sim/trace/pytorch/operator_work.hpp"

namespace lockstep {

/// Times are picoseconds since the first event that was kept.
struct KinetoRecording {
  static constexpr std::int64_t kNoId = kNoKinetoId;
  static constexpr std::uint32_t kNoCall = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kNoLauncher = kNoCall, kNoShapes = kNoCall;

  /// A kernel or copy.
  struct GpuEvent {
    std::int64_t start = 0, end = 0;
    std::int64_t launch = 0;               ///< start of the call that launched it, else its own
    std::int64_t correlation = kNoId;      ///< with the call that launched it
    std::int64_t external = kNoId;         ///< with the operator that did
    std::uint32_t name = 0;                ///< in `names`
    std::uint32_t call = kNoCall;          ///< in `calls`: a kernel of NCCL
    std::uint32_t launcher = kNoLauncher;  ///< in `launchers`
    std::uint16_t stream = 0;              ///< by first appearance
    bool copies = false;                   ///< between the GPU and its host
    [[nodiscard]] bool communicates() const { return call != kNoCall; }
  };
  /// An operator, or a range that a person marked.
  struct Operator {
    std::int64_t start = 0, end = 0;
    std::int64_t external = kNoId;
    std::int64_t record_function = 0;  ///< rf_id of the execution trace; 0: it was not recorded
    std::uint32_t thread = 0;          ///< by first appearance
    std::uint32_t name = 0;
    std::uint32_t shapes = kNoShapes;  ///< of its arguments, in `shapes`
    std::int64_t sequence = kNoId;     ///< of autograd: a node has that of the call that it is of
    bool is_range = false;
  };
  /// An operator or a range in which a kernel was launched.
  struct Enclosing {
    std::uint32_t name = 0;
    std::uint32_t shapes = kNoShapes;
    std::int64_t sequence = kNoId;
  };
  using Launcher = std::vector<Enclosing>;  ///< innermost first
  enum class Call : std::uint8_t { other, stream_sync, device_sync, event_sync };
  /// Of CUDA's runtime or driver, or HIP's.
  struct RuntimeCall {
    std::int64_t start = 0, end = 0;
    std::int64_t correlation = kNoId;
    std::uint32_t thread = 0;
    std::uint32_t name = 0;
    Call what = Call::other;
  };
  /// Of streams and events, where the profiler was asked for them (enable_cuda_sync_events).
  struct Sync {
    std::int64_t correlation = kNoId;         ///< with the runtime's call
    std::int64_t record_correlation = kNoId;  ///< with the call that recorded the event
    std::int64_t stream = kNoId;              ///< that waits, or is waited for; in `streams`
    std::int64_t wait_on = kNoId;             ///< the stream on which the event was recorded
    bool stream_waits = false;                ///< "Stream Wait Event"
  };

  /// A "ProfilerStep#N" of the host, which torch.profiler marks between calls of step().
  struct Mark {
    std::int64_t number = 0;
    std::int64_t start = 0, end = 0;
  };

  std::string file;
  std::optional<int> rank, world;  ///< of its "distributedInfo"
  std::string device;              ///< the first card, as its driver names it
  std::int64_t begin = 0;          ///< of the rank, after the first rank's (aligned_starts.hpp)
  std::int64_t end = 0;            ///< of the last event, or of the step that it was cut to
  bool is_cut = false;             ///< to a step (profiler_steps.hpp)
  std::vector<std::string> names;
  std::vector<GpuEvent> gpu;  ///< by start, then stream
  std::vector<NcclCallText> calls;
  /// By `calls`: what the range around the launch says, where the kernel says nothing.
  std::vector<std::optional<NcclCallText>> ranged_calls;
  std::vector<Mark> marks;          ///< by start
  std::vector<Operator> operators;  ///< these three only on request, by start
  std::vector<RuntimeCall> runtime;
  std::vector<Sync> syncs;
  /// Of operators that recorded them ("Input Dims"): a shape for each argument, empty for those
  /// that are no tensor.
  std::vector<std::vector<TensorShape>> shapes;
  std::vector<Launcher> launchers;  ///< where find_launchers() looked for them
  std::size_t streams = 0, threads = 0;
};

/// Throws InputError for a text that is no such trace, and for kernels without times or more than
/// ten days apart. `with_host`: what the host did too.
KinetoRecording read_kineto_recording(const std::string& file, std::string_view text,
                                      bool with_host);

/// What a call of CUDA's or HIP's runtime or driver waits for, by its name.
KinetoRecording::Call kineto_call_named(std::string_view name);

/// Leaves what the GPU did, from its first event to its last.
void forget_host(KinetoRecording& recording);

}  // namespace lockstep
