#include "sim/step/schedule.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace lockstep {
namespace {

/// All passes of one direction in the order in which a rank meets them: micro batches in groups of
/// p, each group through all chunks (last chunk first when going backward).
std::vector<WorkItem> passes(const ScheduleCall& c, Pass pass) {
  std::vector<WorkItem> order;
  order.reserve(static_cast<std::size_t>(c.chunks) * static_cast<std::size_t>(c.micro_batches));
  const int group = c.chunks == 1 ? c.micro_batches : c.ranks;
  for (int first = 0; first < c.micro_batches; first += group) {
    const int end = std::min(first + group, c.micro_batches);
    for (int i = 0; i < c.chunks; ++i) {
      const int chunk = pass == Pass::forward ? i : c.chunks - 1 - i;
      for (int micro_batch = first; micro_batch < end; ++micro_batch) {
        order.push_back(
            {pass, static_cast<std::uint16_t>(chunk), static_cast<std::uint32_t>(micro_batch)});
      }
    }
  }
  return order;
}

/// `warm_up` forwards, then one forward and one backward in turn, then the backwards that are left.
std::vector<WorkItem> one_forward_one_backward(const ScheduleCall& c, int warm_up) {
  const std::vector<WorkItem> forward = passes(c, Pass::forward);
  const std::vector<WorkItem> backward = passes(c, Pass::backward);
  const std::size_t ahead = std::min(forward.size(), static_cast<std::size_t>(warm_up));
  std::vector<WorkItem> order(forward.begin(),
                              forward.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (std::size_t i = 0; i < backward.size(); ++i) {
    if (ahead + i < forward.size()) order.push_back(forward[ahead + i]);
    order.push_back(backward[i]);
  }
  return order;
}

std::vector<WorkItem> gpipe(const ScheduleCall& c) {
  return one_forward_one_backward(c, c.micro_batches * c.chunks);
}

std::vector<WorkItem> one_f_one_b(const ScheduleCall& c) {
  assert(c.chunks == 1);
  return one_forward_one_backward(c, c.ranks - 1 - c.rank);
}

std::vector<WorkItem> interleaved(const ScheduleCall& c) {
  return one_forward_one_backward(c, 2 * (c.ranks - 1 - c.rank) + (c.chunks - 1) * c.ranks);
}

constexpr std::array kSchedules{
    ScheduleKind{Schedule::gpipe, "gpipe", "All forward passes, then all backward passes.",
                 "Huang et al. 2019, arXiv:1811.06965", gpipe},
    ScheduleKind{Schedule::one_f_one_b, "1f1b",
                 "A warm-up, then one forward and one backward pass in turn.",
                 "Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1", one_f_one_b},
    ScheduleKind{Schedule::interleaved, "interleaved",
                 "1F1B over several model chunks per rank: a shorter bubble, more messages.",
                 "Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2", interleaved},
};

}  // namespace

std::span<const ScheduleKind> schedules() { return kSchedules; }

std::vector<WorkItem> stage_order(Schedule schedule, const ScheduleCall& call) {
  return kSchedules[static_cast<std::size_t>(schedule)].order(call);
}

}  // namespace lockstep
