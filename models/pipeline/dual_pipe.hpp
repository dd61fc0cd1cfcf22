/// DualPipe: forward passes of some micro batches beside backward passes of others.
#pragma once

#include <vector>

#include "models/pipeline/schedule.hpp"

namespace lockstep {

/// DualPipe: micro batches enter a pipeline of two copies of the model from both ends. Takes an
/// even number p of ranks, and an even number of micro batches, at least twice as many.
///
/// Its bubble is (p / 2 - 1) (F&B + B - 3 W), with F&B the time of a pair, B that of a whole
/// backward pass and W of its weights' part, for a forward pass as long as either half of the
/// backward pass; a rank holds p + 1 micro batches of a stage, and two stages' weights.
///
/// Source: DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.1 and table 2; the order is that of
/// github:deepseek-ai/DualPipe@bb214e82b593:dualpipe/dualpipe.py.
std::vector<WorkItem> dual_pipe_order(const ScheduleCall& call);

/// DualPipeV: its half of the ranks, one copy of the model in a V of two chunks to a rank. Takes at
/// least twice as many micro batches as ranks; a rank holds one more than that, of a chunk.
///
/// Source: https://huggingface.co/blog/ufotalent/cut-in-half; the order is that of
/// ScheduleDualPipeV in github:pytorch/pytorch:torch/distributed/pipelining/schedules.py.
std::vector<WorkItem> dual_pipe_v_order(const ScheduleCall& call);

}  // namespace lockstep
