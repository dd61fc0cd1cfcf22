/// What was measured on a card: times of kernels and collectives, and how they correct the laws.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/hardware.hpp"
#include "models/kernels/attention.hpp"
#include "models/kernels/gemm.hpp"
#include "models/precision.hpp"
#include "models/profile/ratio_field.hpp"
#include "models/units.hpp"

namespace lockstep {

/// What every point has.
struct ProfilePoint {
  Seconds time;       ///< median
  double spread = 0;  ///< of repeats, relative; 0: not said
};
struct GemmPoint : ProfilePoint {
  GemmShape shape{1, 1, 1};
  Precision precision = Precision::bf16;
  Load load = Load::burst;
};
struct AttentionPoint : ProfilePoint {
  AttentionShape shape{1, 1, 1, 1, 1};
  AttentionKernel kernel = AttentionKernel::flash2;
};
struct MemoryPoint : ProfilePoint {
  std::string kernel;  ///< "rms_norm", "copy"
  Bytes traffic;       ///< read and written
};

struct Profile {
  std::string file;   ///< where it was read from
  std::string about;  ///< device, conditions, source, in words
  std::string gpu;    ///< preset name of the card
  std::vector<GemmPoint> gemm;
  std::vector<AttentionPoint> attention;
  std::vector<MemoryPoint> memory;
};

RatioPlace place_of(const GemmShape& shape);
RatioPlace place_of(const AttentionShape& shape);
RatioPlace place_of_traffic(Bytes traffic);

/// Measured over modelled for every kind of kernel of a profile: what the laws of models/kernels
/// are multiplied by. Kinds that were not measured keep their law.
class KernelProfile {
 public:
  /// `gpu` is the preset of the card, without a profile of its own.
  KernelProfile(const Profile& profile, const GpuSpec& gpu);

  /// A sustained load takes sustained points; without any, those of bursts, since what a kernel
  /// does better or worse than its law it does at any clock.
  [[nodiscard]] double gemm(const GemmShape& shape, Precision precision, Load load) const;
  [[nodiscard]] double attention(const AttentionShape& shape, AttentionKernel kernel) const;
  /// Geometric mean over the kernels that were measured: which one runs is not known where it is
  /// asked for.
  [[nodiscard]] double memory(Bytes traffic) const;

  /// The fields, for leaving points out: in the order of the profile's points of the kind.
  [[nodiscard]] const RatioField* gemm_field(Precision precision, Load load) const;
  [[nodiscard]] const RatioField* attention_field(const AttentionShape& shape,
                                                  AttentionKernel kernel) const;
  [[nodiscard]] const RatioField* memory_field(const std::string& kernel) const;

 private:
  std::map<std::pair<Precision, Load>, RatioField> gemm_;
  std::map<std::array<int, 3>, RatioField> attention_;  ///< kernel, direction, causal
  std::map<std::string, RatioField> memory_;
};

}  // namespace lockstep
