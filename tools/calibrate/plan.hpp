/// What is timed in which order, and how long that takes.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hardware.hpp"
#include "models/spec/transformer.hpp"
#include "tools/calibrate/card.hpp"

namespace lockstep {

/// What --only can name.
inline constexpr std::array<std::string_view, 5> kSubjects{"launch", "copies", "memory", "gemm",
                                                           "attention"};

struct PlannedTask {
  Task task;
  std::string group;  ///< "gemm bf16 sustained": what is summed up and cut together
  Pace pace;          ///< of sustained products
  Seconds estimate;   ///< preparation, repeats and pauses, by the laws of models/kernels
};

/// Tasks in the order of their worth, so that whatever ends the run early leaves a profile that
/// covers most: launches, copies, memory, products on the grid in bursts, attention, products of
/// transformers and of their experts at the power limit, then in bursts those that the grid does
/// not have, and other formats on a part of the grid. Within a group the order is shuffled (the
/// same every time): half of a group is spread over all sizes. Attention's backward pass follows
/// its forward pass. Formats that the preset or the card lacks and sizes that do not fit into its
/// memory are left out. `only`: of kSubjects; empty: all.
std::vector<PlannedTask> plan_tasks(const GpuSpec& gpu, const CardFacts& card,
                                    std::span<const TransformerShape> models,
                                    std::span<const std::string> only);

}  // namespace lockstep
