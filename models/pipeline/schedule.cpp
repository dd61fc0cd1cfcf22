#include "models/pipeline/schedule.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "models/pipeline/dual_pipe.hpp"
#include "models/pipeline/schedule_extension.hpp"
#include "models/pipeline/zero_bubble.hpp"

namespace lockstep {
namespace {

/// All passes of one direction in the order in which a rank meets them: micro batches in groups,
/// each group through all chunks (last chunk first when going backward).
std::vector<WorkItem> passes(const ScheduleCall& c, Pass pass, int group) {
  std::vector<WorkItem> order;
  order.reserve(static_cast<std::size_t>(c.chunks) * static_cast<std::size_t>(c.micro_batches));
  for (int first = 0; first < c.micro_batches; first += group) {
    const int end = std::min(first + group, c.micro_batches);
    for (int i = 0; i < c.chunks; ++i) {
      const int chunk = pass == Pass::forward ? i : c.chunks - 1 - i;
      for (int micro_batch = first; micro_batch < end; ++micro_batch) {
        order.push_back({pass, false, static_cast<std::uint16_t>(chunk),
                         static_cast<std::uint32_t>(micro_batch)});
      }
    }
  }
  return order;
}

/// `warm_up` forwards, then one forward and one backward in turn, then the backwards that are left.
std::vector<WorkItem> one_forward_one_backward(const ScheduleCall& c, int warm_up, int group) {
  const std::vector<WorkItem> forward = passes(c, Pass::forward, group);
  const std::vector<WorkItem> backward = passes(c, Pass::backward, group);
  const std::size_t ahead = std::min(forward.size(), static_cast<std::size_t>(warm_up));
  std::vector<WorkItem> order;
  order.reserve(forward.size() + backward.size());
  order.assign(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (std::size_t i = 0; i < backward.size(); ++i) {
    if (ahead + i < forward.size()) order.push_back(forward[ahead + i]);
    order.push_back(backward[i]);
  }
  return order;
}

int all_chunks(const ScheduleCall& c) { return c.micro_batches * c.chunks; }
int interleaved_warm_up(const ScheduleCall& c) {
  return 2 * (c.ranks - 1 - c.rank) + (c.chunks - 1) * c.ranks;
}

std::vector<WorkItem> all_then_all(const ScheduleCall& c) {
  return one_forward_one_backward(c, all_chunks(c), c.micro_batches);
}
std::vector<WorkItem> one_f_one_b(const ScheduleCall& c) {
  assert(c.chunks == 1);
  return one_forward_one_backward(c, c.ranks - 1 - c.rank, c.micro_batches);
}
std::vector<WorkItem> interleaved(const ScheduleCall& c) {
  return one_forward_one_backward(c, interleaved_warm_up(c), c.ranks);
}

double all_held(const ScheduleCall& c) { return all_chunks(c); }
double one_f_one_b_held(const ScheduleCall& c) {
  return std::min(c.micro_batches, c.ranks - c.rank);
}
double interleaved_held(const ScheduleCall& c) {
  return std::min(all_chunks(c), interleaved_warm_up(c) + 1);
}
double zb_h1_held(const ScheduleCall& c) { return std::min(c.micro_batches, c.ranks); }
double zb_h2_held(const ScheduleCall& c) { return std::min(c.micro_batches, 2 * c.ranks - 1); }
/// With too few micro batches to fill the pipeline there is no closed form.
double zb_v_held(const ScheduleCall& c) {
  return c.micro_batches >= 2 * c.ranks - 1 ? 2 * c.ranks : chunks_in_flight(zb_v_order(c));
}
double dual_pipe_held(const ScheduleCall& c) { return c.ranks + 1; }
double dual_pipe_v_held(const ScheduleCall& c) { return 2 * c.ranks + 1; }

MicroBatchRule any_number(int) { return {}; }
MicroBatchRule groups_of_ranks(int ranks) { return {ranks, ranks}; }
MicroBatchRule even_twice_ranks(int ranks) { return {2, 2 * ranks}; }
MicroBatchRule twice_ranks(int ranks) { return {1, 2 * ranks}; }

constexpr int kAny = std::numeric_limits<int>::max();

constexpr std::array kSchedules{
    ScheduleKind{.schedule = Schedule::gpipe,
                 .name = "gpipe",
                 .summary = "All forward passes, then all backward passes.",
                 .source = "Huang et al. 2019, arXiv:1811.06965",
                 .layout = ChunkLayout::loop,
                 .virtual_min = 1,
                 .virtual_max = 1,
                 .splits_backward = false,
                 .blocking_sends = true,
                 .even_ranks = false,
                 .micro_batches = any_number,
                 .order = all_then_all,
                 .chunks_in_flight = all_held},
    ScheduleKind{.schedule = Schedule::one_f_one_b,
                 .name = "1f1b",
                 .summary = "A warm-up, then one forward and one backward pass in turn.",
                 .source = "Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1",
                 .layout = ChunkLayout::loop,
                 .virtual_min = 1,
                 .virtual_max = 1,
                 .splits_backward = false,
                 .blocking_sends = true,
                 .even_ranks = false,
                 .micro_batches = any_number,
                 .order = one_f_one_b,
                 .chunks_in_flight = one_f_one_b_held},
    ScheduleKind{
        .schedule = Schedule::interleaved,
        .name = "interleaved",
        .summary = "1F1B over several model chunks per rank: a shorter bubble, more messages.",
        .source = "Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2",
        .layout = ChunkLayout::loop,
        .virtual_min = 2,
        .virtual_max = kAny,
        .splits_backward = false,
        .blocking_sends = false,
        .even_ranks = false,
        .micro_batches = groups_of_ranks,
        .order = interleaved,
        .chunks_in_flight = interleaved_held},
    ScheduleKind{.schedule = Schedule::breadth_first,
                 .name = "breadth_first",
                 .summary = "All micro batches through a chunk before the next one: gradients of a "
                            "chunk are reduced beside the others.",
                 .source = "Lamy-Poirier 2022, arXiv:2211.05953, section 4",
                 .layout = ChunkLayout::loop,
                 .virtual_min = 1,
                 .virtual_max = kAny,
                 .splits_backward = false,
                 .blocking_sends = false,
                 .even_ranks = false,
                 .micro_batches = any_number,
                 .order = all_then_all,
                 .chunks_in_flight = all_held},
    ScheduleKind{.schedule = Schedule::zb_h1,
                 .name = "zb_h1",
                 .summary = "1F1B with weights' gradients moved into the bubble; memory as 1F1B's "
                            "first rank.",
                 .source = "Qi et al. 2023, arXiv:2401.10241, section 2.1",
                 .layout = ChunkLayout::loop,
                 .virtual_min = 1,
                 .virtual_max = 1,
                 .splits_backward = true,
                 .blocking_sends = false,
                 .even_ranks = false,
                 .micro_batches = any_number,
                 .order = zb_h1_order,
                 .chunks_in_flight = zb_h1_held},
    ScheduleKind{.schedule = Schedule::zb_h2,
                 .name = "zb_h2",
                 .summary = "The same with twice the warm-up: next to no bubble, twice the "
                            "activations.",
                 .source = "Qi et al. 2023, arXiv:2401.10241, section 2.2",
                 .layout = ChunkLayout::loop,
                 .virtual_min = 1,
                 .virtual_max = 1,
                 .splits_backward = true,
                 .blocking_sends = false,
                 .even_ranks = false,
                 .micro_batches = any_number,
                 .order = zb_h2_order,
                 .chunks_in_flight = zb_h2_held},
    ScheduleKind{.schedule = Schedule::zb_v,
                 .name = "zb_v",
                 .summary = "Two chunks per rank in a V: next to no bubble with 1F1B's memory.",
                 .source = "Qi et al. 2023, arXiv:2401.10241, section 6; arXiv:2405.15362",
                 .layout = ChunkLayout::v_shape,
                 .virtual_min = 2,
                 .virtual_max = 2,
                 .splits_backward = true,
                 .blocking_sends = false,
                 .even_ranks = false,
                 .micro_batches = any_number,
                 .order = zb_v_order,
                 .chunks_in_flight = zb_v_held},
    ScheduleKind{.schedule = Schedule::dualpipe,
                 .name = "dualpipe",
                 .summary = "Micro batches from both ends over two copies of the weights; forward "
                            "beside backward passes.",
                 .source = "DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.1",
                 .layout = ChunkLayout::two_way,
                 .virtual_min = 1,
                 .virtual_max = 1,
                 .splits_backward = true,
                 .blocking_sends = false,
                 .even_ranks = true,
                 .micro_batches = even_twice_ranks,
                 .order = dual_pipe_order,
                 .chunks_in_flight = dual_pipe_held},
    ScheduleKind{.schedule = Schedule::dualpipev,
                 .name = "dualpipev",
                 .summary = "DualPipe cut in half: one copy of the weights, in a V.",
                 .source = "github:deepseek-ai/DualPipe",
                 .layout = ChunkLayout::v_shape,
                 .virtual_min = 2,
                 .virtual_max = 2,
                 .splits_backward = true,
                 .blocking_sends = false,
                 .even_ranks = false,
                 .micro_batches = twice_ranks,
                 .order = dual_pipe_v_order,
                 .chunks_in_flight = dual_pipe_v_held},
};

static_assert(kSchedules.size() == static_cast<std::size_t>(Schedule::fixed));

/// Those built in, and behind them those that were added; has place for all, so that none moves.
std::vector<ScheduleKind>& schedule_rows() {
  static std::vector<ScheduleKind> rows = [] {
    std::vector<ScheduleKind> all;
    all.reserve(kSchedules.size() + kMostExtensions);
    all.assign(kSchedules.begin(), kSchedules.end());
    return all;
  }();
  return rows;
}

/// Pipelines whose rule for micro batches is looked at when a schedule is added.
constexpr int kMostRuledRanks = 10'002;

double held_in_order(const ScheduleKind& kind, const ScheduleCall& call) {
  return kind.chunks_in_flight != nullptr ? kind.chunks_in_flight(call)
                                          : chunks_in_flight(kind.order(call));
}

ScheduleCall call_of(const Parallelism& par, int micro_batches, int rank) {
  return {.ranks = par.pipeline,
          .chunks = pipeline_shape(par).chunks,
          .micro_batches = micro_batches,
          .rank = rank};
}

}  // namespace

std::span<const ScheduleKind> schedules() { return schedule_rows(); }
std::span<const ScheduleKind> own_schedules() { return kSchedules; }

const ScheduleKind& info(Schedule schedule) {
  assert(schedule != Schedule::fixed);
  const auto number = static_cast<std::size_t>(schedule);
  if (number < kSchedules.size()) return kSchedules[number];
  return schedule_rows()[number - 1];
}

Schedule add_schedule(const ScheduleKind& kind, int interface) {
  std::vector<ScheduleKind>& rows = schedule_rows();
  std::vector<std::string_view> taken{"file"};
  for (const ScheduleKind& row : rows) taken.push_back(row.name);
  check_extension("schedule", kind.name, interface, taken, rows.size() - kSchedules.size());
  if (kind.order == nullptr) {
    throw ExtensionError("schedule \"" + std::string(kind.name) +
                         "\": found no order; allowed: a "
                         "function that gives the passes of a rank");
  }
  for (int ranks = 1; kind.micro_batches != nullptr && ranks <= kMostRuledRanks; ++ranks) {
    const auto [multiple, least] = kind.micro_batches(ranks);
    if (multiple >= 1 && least >= 1) continue;
    throw ExtensionError("schedule \"" + std::string(kind.name) +
                         "\": found a multiple or a least number of micro batches below 1");
  }
  ScheduleKind row = kind;
  row.schedule = static_cast<Schedule>(rows.size() + 1);  // behind Schedule::fixed
  row.name = kept_text(kind.name);
  row.summary = kept_text(kind.summary);
  row.source = kept_text(kind.source);
  if (row.micro_batches == nullptr) row.micro_batches = any_number;
  rows.push_back(row);
  return row.schedule;
}

std::vector<WorkItem> stage_order(Schedule schedule, const ScheduleCall& call) {
  return info(schedule).order(call);
}

PipelineShape pipeline_shape(const Parallelism& par) {
  if (par.order) return par.order->shape;
  const ChunkLayout layout = info(par.schedule).layout;
  return {layout, par.pipeline, layout == ChunkLayout::two_way ? 2 : par.virtual_stages};
}

std::vector<WorkItem> rank_order(const Parallelism& par, int micro_batches, int rank) {
  if (par.order) return par.order->ranks[static_cast<std::size_t>(rank)];
  return stage_order(par.schedule, call_of(par, micro_batches, rank));
}

bool splits_backward(const Parallelism& par) {
  if (!par.order) return info(par.schedule).splits_backward;
  const auto splits = [](const WorkItem& item) { return item.pass == Pass::backward_weight; };
  return std::ranges::any_of(par.order->ranks,
                             [&](const auto& order) { return std::ranges::any_of(order, splits); });
}

int chunks_in_flight(std::span<const WorkItem> order) {
  int now = 0, most = 0;
  for (const WorkItem& item : order) {
    if (is_forward(item.pass)) most = std::max(most, ++now);
    if (ends_micro_batch(item.pass)) --now;
  }
  return most;
}

double chunks_in_flight(const Parallelism& par, int micro_batches, int rank) {
  if (par.order) return chunks_in_flight(par.order->ranks[static_cast<std::size_t>(rank)]);
  return held_in_order(info(par.schedule), call_of(par, micro_batches, rank));
}

bool schedule_takes(const Parallelism& par, int micro_batches) {
  if (par.order) {
    return par.order->micro_batches == micro_batches && par.order->shape.ranks == par.pipeline;
  }
  const ScheduleKind& kind = info(par.schedule);
  const MicroBatchRule rule = kind.micro_batches(par.pipeline);
  return micro_batches % rule.multiple == 0 && micro_batches >= rule.least &&
         (!kind.even_ranks || par.pipeline % 2 == 0) && par.virtual_stages >= kind.virtual_min &&
         par.virtual_stages <= kind.virtual_max;
}

}  // namespace lockstep
