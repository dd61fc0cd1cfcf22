#include "models/pipeline/zero_bubble.hpp"

#include <algorithm>

#include "models/pipeline/order_builder.hpp"

namespace lockstep {
namespace {

std::size_t split_passes(const ScheduleCall& c) {
  return 3 * static_cast<std::size_t>(c.chunks) * static_cast<std::size_t>(c.micro_batches);
}

/// `warm_up` forwards, then a forward and a backward in turn; weights' gradients `late` micro
/// batches behind.
std::vector<WorkItem> one_chunk(const ScheduleCall& c, int warm_up, int late) {
  OrderBuilder out(split_passes(c));
  for (int i = 0; i < std::min(warm_up, c.micro_batches); ++i) out.forward(0);
  for (int i = 0; i < c.micro_batches; ++i) {
    if (out.forwards(0) < c.micro_batches) out.forward(0);
    out.input(0);
    if (i >= late) out.weight();
  }
  while (out.waiting() > 0) out.weight();
  return out.take_order();
}

}  // namespace

std::vector<WorkItem> zb_h1_order(const ScheduleCall& c) {
  return one_chunk(c, c.ranks - 1 - c.rank, c.rank);
}

std::vector<WorkItem> zb_h2_order(const ScheduleCall& c) {
  return one_chunk(c, 2 * (c.ranks - 1 - c.rank), 2 * c.rank);
}

std::vector<WorkItem> zb_v_order(const ScheduleCall& c) {
  // Written for enough micro batches to fill the pipeline; of fewer the others are left out.
  const int m = std::max(2 * c.ranks - 1, c.micro_batches);
  OrderBuilder out(6 * static_cast<std::size_t>(m));
  const auto both = [&](int chunk) {
    out.input(chunk);
    out.weight(chunk);
  };
  for (int i = 0; i < 2 * (c.ranks - c.rank) - 1; ++i) out.forward(0);
  for (int i = 0; i < c.rank; ++i) {
    out.forward(1);
    out.forward(0);
  }
  for (int i = 0; i < c.ranks - c.rank; ++i) {
    out.forward(1);
    both(1);
  }
  while (out.forwards(1) < out.forwards(0) || out.forwards(0) < m) {
    if (out.forwards(0) < m) out.forward(0);
    both(0);
    out.forward(1);
    both(1);
  }
  for (int i = 0; i < c.rank; ++i) {
    out.input(0);
    out.input(1);
  }
  for (int i = 0; i < c.ranks - c.rank; ++i) {
    out.input(0);
    out.weight(0);
  }
  for (int i = 0; i < c.rank; ++i) out.weight(1);
  while (out.waiting() > 0) out.weight(0);
  std::vector<WorkItem> order = out.take_order();
  std::erase_if(order, [&](const WorkItem& item) {
    return static_cast<int>(item.micro_batch) >= c.micro_batches;
  });
  return order;
}

}  // namespace lockstep
