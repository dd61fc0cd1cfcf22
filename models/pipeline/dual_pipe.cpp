#include "models/pipeline/dual_pipe.hpp"

#include <algorithm>
#include <cassert>

#include "models/pipeline/order_builder.hpp"

namespace lockstep {
namespace {

/// The eight steps of the source, for a rank `depth` ranks from the end where its `near` chunk's
/// micro batches enter; the turn is at depth `half` - 1. Each chunk runs m micro batches.
std::vector<WorkItem> eight_steps(int half, int depth, int near, int m) {
  assert(m >= 2 * half);
  const int far = 1 - near;
  const int outer = half - depth - 1;
  OrderBuilder out(6 * static_cast<std::size_t>(m));
  const auto pair = [&](int forward, int backward) {
    out.forward(forward, true);
    out.backward(backward);
  };
  for (int i = 0; i < 2 * outer; ++i) out.forward(near);
  for (int i = 0; i <= depth; ++i) {
    out.forward(near);
    out.forward(far);
  }
  for (int i = 0; i < outer; ++i) {
    out.input(far);
    out.weight();
    out.forward(far);
  }
  for (int i = 0; i < m - 2 * half + depth + 1; ++i) {
    // At the turn the first two run apart, which makes the bubble shorter.
    const bool apart = i == 0 && outer == 0;
    out.forward(near, !apart);
    out.backward(far);
    pair(far, near);
  }
  for (int i = 0; i < outer; ++i) {
    out.backward(far);
    pair(far, near);
  }
  // From the middle of these on, weights' gradients wait.
  const int last = 2 * (depth + 1);
  for (int i = 0; i < last; ++i) {
    const int chunk = i % 2 == 0 ? far : near;
    if (i <= depth) {
      out.backward(chunk);
    } else {
      out.input(chunk);
    }
  }
  for (int i = 0; i < outer; ++i) {
    out.weight();
    out.input(near);
  }
  while (out.waiting() > 0) out.weight();
  return out.take_order();
}

}  // namespace

std::vector<WorkItem> dual_pipe_order(const ScheduleCall& c) {
  const int half = c.ranks / 2;
  const bool first_half = c.rank < half;
  const int depth = first_half ? c.rank : c.ranks - 1 - c.rank;
  return eight_steps(half, depth, first_half ? 0 : 1, c.micro_batches / 2);
}

std::vector<WorkItem> dual_pipe_v_order(const ScheduleCall& c) {
  return eight_steps(c.ranks, c.rank, 0, c.micro_batches);
}

}  // namespace lockstep
