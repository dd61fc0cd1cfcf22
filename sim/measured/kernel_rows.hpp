/// Rows of kernel measurements (tests/reference/gemm.json, attention.json, memory_kernels.json;
/// tests/reference/README.md describes the formats), and what the models predict for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/kernels/attention.hpp"
#include "models/kernels/gemm.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/precision.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// What all kernel rows have.
struct KernelRow {
  std::string gpu_printed;  ///< "H100-80GB SXM"
  std::string gpu;          ///< preset name; empty: there is none
  std::string dtype;        ///< as printed
  std::string obstacle;     ///< why no prediction can be made: "no time printed"; empty: one can
  double measured_us = 0;
};

/// A matrix product, or with `backward` both products of its backward pass.
struct GemmRow : KernelRow {
  GemmShape shape{1, 1, 1};
  Precision precision = Precision::bf16;
  bool backward = false;
  bool quantises = false;  ///< the time includes quantising the m x k operand
  Load load = Load::burst;
  std::string source;
};

/// A benchmarked implementation of attention, as a kernel of the models and what its benchmark
/// times besides.
struct AttentionImplementation {
  std::string_view name;  ///< the printed name begins with it
  AttentionKernel kernel;
  double speed;         ///< arithmetic rate over that of the kernel as training stacks run it
  double extra_us;      ///< launches beside the kernel
  double extra_passes;  ///< over Q, K and V: copies into a paged cache
};

enum class AttentionPass : std::uint8_t { forward, backward, both };

struct AttentionRow : KernelRow {
  std::string implementation_printed;
  const AttentionImplementation* implementation = nullptr;
  AttentionShape shape{1, 1, 1, 1, 1};
  AttentionPass pass = AttentionPass::forward;
};

/// One pass of a memory-bound kernel as implemented.
struct MemoryPass {
  double bytes = 0;     ///< ideal traffic of an element; 0: not known
  double slowdown = 1;  ///< time over that of the ideal traffic
  double extra_us = 0;  ///< of further small kernels
};
struct MemoryKernel {
  std::string_view kernel;          ///< as printed
  std::string_view implementation;  ///< the printed name begins with it
  MemoryPass forward, backward;
  std::string_view not_on{};  ///< preset of a GPU where it is another kernel, of unknown traffic
};

struct MemoryRow : KernelRow {
  std::string kernel_printed, implementation_printed, shape_printed;
  const MemoryKernel* kernel = nullptr;
  double elements = 0;
  bool backward = false;
};

/// Reads every row of a file; a row that times two passes gives two. Throws InputError for a file
/// that is no JSON object with `rows`, or a row whose values have the wrong type.
std::vector<GemmRow> read_gemm_rows(const std::string& file, const PresetStore& presets);
std::vector<AttentionRow> read_attention_rows(const std::string& file, const PresetStore& presets);
std::vector<MemoryRow> read_memory_rows(const std::string& file, const PresetStore& presets);

/// Times in microseconds. Require a row without obstacle; a GPU that lacks the format gives
/// nothing.
std::optional<double> predicted_us(const GemmRow& row, const GpuSpec& gpu);
std::optional<double> predicted_us(const AttentionRow& row, const GpuSpec& gpu);
std::optional<double> predicted_us(const MemoryRow& row, const GpuSpec& gpu);

}  // namespace lockstep
