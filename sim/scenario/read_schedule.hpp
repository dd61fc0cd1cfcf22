/// Reads a pipeline schedule that somebody wrote out, pass by pass.
///
///     {"about": "1F1B of two ranks and three micro batches, weights' gradients late",
///      "layout": "loop",
///      "ranks": [["F0", "F1", "B0", "W0", "F2", "B1", "W1", "B2", "W2"],
///                ["F0", "B0", "F1", "B1", "W0", "F2", "B2", "W1", "W2"]]}
///
/// F is a forward pass and B the backward pass of a micro batch; where the rank has a W of the same
/// micro batch, B makes the gradients of inputs alone and W those of weights. "F3@1" is a pass of
/// chunk 1, "F3+B1@1" a pair that runs as one. Ranks are in order; the layout is "loop" (the chunks
/// of a rank are p stages apart; left out: this one), "v" (odd chunks run from the last rank to the
/// first) or "two_way" (two copies of the model, chunk 1 from the last rank to the first, the micro
/// batches of each chunk counted from 0).
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/pipeline/schedule.hpp"

namespace lockstep {

/// Of ChunkLayout.
constexpr std::array<std::string_view, 3> kChunkLayoutNames{"loop", "v", "two_way"};

/// Throws InputError where a pass is missing, comes twice, too early or out of order, or where a
/// rank would wait for ever.
std::shared_ptr<const FixedOrder> read_schedule_file(const std::filesystem::path& file);

/// The order of a rank whose passes are said by such texts. Throws std::invalid_argument, whose
/// text names the first that says none.
std::vector<WorkItem> order_of_texts(std::span<const std::string> texts);

}  // namespace lockstep
