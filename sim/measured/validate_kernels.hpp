/// Holds the kernel models against measured kernels: `lockstep validate --gemm FILE`, --attention
/// and
/// --memory.
#pragma once

#include <string>

#include "sim/measured/point_table.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Predict every row of a file in the formats of tests/reference/gemm.json, attention.json and
/// memory_kernels.json (tests/reference/README.md describes them); any other file in them works.
/// Rows are predicted as bursts unless they say that the load lasted. What a benchmark times
/// besides the kernel (quantising, copies into a cache) is added as kernel_catalogue.hpp says. Left
/// out, with the reason and the count: GPUs without a preset, formats that the models or the GPU
/// lack, rows without shape or time.
///
/// The summary has all points, the ones that matter in training (m, n, k from 1,024; attention from
/// 200 us; memory from 20 us), then each GPU and kind. Throw InputError for a file of another
/// format.
PointTable validate_gemm(const std::string& file, const PresetStore& presets);
PointTable validate_attention(const std::string& file, const PresetStore& presets);
PointTable validate_memory_kernels(const std::string& file, const PresetStore& presets);

}  // namespace lockstep
