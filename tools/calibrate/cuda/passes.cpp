#include "tools/calibrate/cuda/passes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr int kRepeats = 15;

std::vector<float> fetch_row(const std::byte* row, const Stream& stream) {
  std::vector<float> out;
  for (const std::uint16_t bits : fetch<std::uint16_t>(row, kRowElements, stream)) {
    out.push_back(from_bf16(bits));
  }
  return out;
}

/// Where the buffers of each set lie: inputs in the buffer of operands behind one row that serves
/// as gain, results and state in the other.
class MemoryLayout {
 public:
  MemoryLayout(Bench& bench, const MemoryTask& task)
      : kernel_(task.kernel),
        elements_(static_cast<std::size_t>(task.elements)),
        operands_(bench.operands(ElementFormat::bf16)),
        results_(bench.results()) {
    const MemoryKernelInfo& kernel = info(task.kernel);
    in_ = aligned(elements_ * static_cast<std::size_t>(kernel.read));
    state_ = aligned(elements_ * static_cast<std::size_t>(kernel.updated));
    out_ = state_ + aligned(elements_ * static_cast<std::size_t>(kernel.written));
    sets_ = bench.sets(in_, out_);
  }

  [[nodiscard]] MemoryBuffers of(int set) const {
    std::byte* in = operands_ + in_ * static_cast<std::size_t>(set);
    std::byte* out = results_ + out_ * static_cast<std::size_t>(set);
    const bool gated = kernel_ == MemoryKernelKind::silu_gate;
    return {.first = in,
            .second = gated ? in + elements_ * 2 : operands_,
            .result = out + state_,
            .state = reinterpret_cast<float*>(out)};
  }
  [[nodiscard]] int sets() const { return sets_; }
  [[nodiscard]] std::size_t result_bytes() const { return out_ * static_cast<std::size_t>(sets_); }

 private:
  MemoryKernelKind kernel_;
  std::size_t elements_;
  std::byte* operands_;
  std::byte* results_;
  std::size_t in_ = 0, out_ = 0, state_ = 0;
  int sets_ = 1;
};

/// Compares first, middle and last row. The sums of 4,096 numbers in single precision, and fast
/// exponentials, are far inside of the rounding to 16 bit.
void check_rows(const MemoryTask& task, const MemoryBuffers& buffers, const Stream& stream) {
  const auto rows = static_cast<std::size_t>(task.elements) / kRowElements;
  for (const std::size_t row : {std::size_t{0}, rows / 2, rows - 1}) {
    const std::size_t offset = row * kRowElements * 2;
    const auto at = [&](const void* begin) {
      return static_cast<const std::byte*>(begin) + offset;
    };
    const bool gained = task.kernel == MemoryKernelKind::rms_norm;
    const std::vector<float> first = fetch_row(at(buffers.first), stream);
    const std::vector<float> second = fetch_row(
        gained ? static_cast<const std::byte*>(buffers.second) : at(buffers.second), stream);
    const std::vector<float> got = fetch_row(at(buffers.result), stream);
    const std::vector<double> expected = reference_row(task.kernel, first, second);
    for (std::size_t i = 0; i < got.size(); ++i) {
      constexpr double kTiny = 1e-9;  // where the gradient is so small that epsilon rounds
      if (agrees(got[i], expected[i], kTiny)) continue;
      throw TaskFailed(
          fmt::format("wrong result: {:.6g} where {:.6g} was due", got[i], expected[i]));
    }
  }
}

/// Long enough that the host is always ahead of the card.
constexpr std::int64_t kSpinCycles = 40'000;
constexpr int kKernels = 500;

double time_of(const Stream& stream, const std::function<void()>& enqueue) {
  const Event begin, end;
  begin.record(stream);
  enqueue();
  end.record(stream);
  end.wait();
  return end.seconds_since(begin);
}

}  // namespace

Samples measure_memory(Bench& bench, const MemoryTask& task) {
  const MemoryLayout layout(bench, task);
  const auto elements = static_cast<std::size_t>(task.elements);
  const Bench::Launch launch = [&](int set) {
    launch_memory_kernel(task.kernel, layout.of(set), elements, bench.stream().get());
  };
  check(cudaMemsetAsync(bench.results(), 0, layout.result_bytes(), bench.stream().get()),
        "cudaMemsetAsync");
  launch(0);
  check_rows(task, layout.of(0), bench.stream());
  return bench.burst(launch, layout.sets());
}

Samples measure_launch(Bench& bench, const LaunchTask& task) {
  const Stream& stream = bench.stream();
  const auto many = [&] {
    for (int i = 0; i < kKernels; ++i) {
      task.busy ? launch_spin(kSpinCycles, stream.get()) : launch_empty(stream.get());
    }
  };
  const auto one = [&] { launch_spin(kKernels * kSpinCycles, stream.get()); };

  // A kernel is loaded at its first launch, which a capture does not allow.
  launch_empty(stream.get());
  one();
  stream.wait();
  std::optional<Graph> graph;
  if (task.graph) graph.emplace(stream, many);
  const auto run = [&] { graph ? graph->launch(stream) : many(); };
  run();
  stream.wait();
  Samples out;
  for (int i = 0; i < kRepeats; ++i) {
    const double together = time_of(stream, run);
    if (!task.busy) {
      out.seconds.push_back(together / kKernels);
      continue;
    }
    // A clock that moved in between can make a gap of less than nothing.
    const double gaps = together - time_of(stream, one);
    out.seconds.push_back(std::max(gaps / (kKernels - 1), 1e-9));
  }
  out.state = bench.state();
  return out;
}

Samples measure_copy(Bench& bench, const CopyTask& task) {
  constexpr double kSampleBytes = 1 << 26;
  const auto bytes = static_cast<std::size_t>(task.size.base_units());
  const PinnedMemory host(bytes);
  std::fill_n(host.data(), bytes, std::byte{0x5A});
  const Stream& stream = bench.stream();
  std::byte* card = bench.results();
  const int copies =
      static_cast<int>(std::clamp(kSampleBytes / static_cast<double>(bytes), 1.0, 100.0));
  const auto run = [&] {
    for (int i = 0; i < copies; ++i) {
      const cudaError_t status =
          task.to_device
              ? cudaMemcpyAsync(card, host.data(), bytes, cudaMemcpyHostToDevice, stream.get())
              : cudaMemcpyAsync(host.data(), card, bytes, cudaMemcpyDeviceToHost, stream.get());
      check(status, "cudaMemcpyAsync");
    }
  };
  run();
  stream.wait();
  Samples out;
  for (int i = 0; i < kRepeats; ++i) out.seconds.push_back(time_of(stream, run) / copies);
  out.state = bench.state();
  return out;
}

}  // namespace lockstep
