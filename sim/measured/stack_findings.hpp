/// The rules that make values of a stack out of what was counted in a recorded step, one by one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/measured/kernel_marks.hpp"
#include "sim/measured/recorded_stack.hpp"

namespace lockstep {

/// Collects them: each path is read, or told why it is not.
struct StackFindings {
  std::vector<StackFinding> read;
  std::vector<UntoldValue> untold;  ///< without their bases

  void found(std::string_view path, std::string value, std::size_t events, std::string from) {
    read.push_back({std::string(path), std::move(value), events, std::move(from)});
  }
  void not_told(std::string_view path, std::string why) {
    untold.push_back({std::string(path), {}, std::move(why)});
  }
};

/// "48 kernels, such as rmsnorm_fwd_tuned_kernel".
std::string marked_text(const MarkedKernels& marked);

/// Attention, norms, rotary embedding, activation and loss, by kernels' names.
void find_layer_features(const KernelMarks& marks, StackFindings& out);
/// Which products are one, by how many there are for each attention kernel.
void find_merged_products(std::span<const KinetoRecording> recordings, const KernelMarks& marks,
                          StackFindings& out);
/// The optimiser's kernels and formats, how weight gradients accumulate, what they are sharded by.
void find_optimiser_features(std::span<const KinetoRecording> recordings, const KernelMarks& marks,
                             StackFindings& out);
/// Launches and CUDA graphs. `host_slowness`: of the processors.
void find_host_features(std::span<const KinetoRecording> recordings, double host_slowness,
                        StackFindings& out);
/// Formats and overlap of collectives.
void find_exchange_features(std::span<const KinetoRecording> recordings, const KernelMarks& marks,
                            StackFindings& out);

}  // namespace lockstep
