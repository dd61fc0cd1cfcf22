#include "models/pipeline/schedule.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/pipeline/order_check.hpp"

namespace lockstep {
namespace {

Parallelism cut_of(Schedule schedule, int ranks, int virtual_stages) {
  Parallelism cut;
  cut.pipeline = ranks;
  cut.virtual_stages = virtual_stages;
  cut.schedule = schedule;
  return cut;
}

struct Pipeline {
  Parallelism cut;
  int micro_batches;
};

/// Pipelines that a schedule takes, up to 8 ranks, 4 chunks and 24 micro batches.
std::vector<Pipeline> small_pipelines(const ScheduleKind& kind) {
  std::vector<Pipeline> out;
  for (int p = 1; p <= 8; ++p) {
    for (int v = kind.virtual_min; v <= std::min(kind.virtual_max, 4); ++v) {
      for (int m = 1; m <= 24; ++m) {
        const Parallelism cut = cut_of(kind.schedule, p, v);
        if (schedule_takes(cut, m)) out.push_back({cut, m});
      }
    }
  }
  return out;
}

std::vector<std::vector<WorkItem>> orders_of(const Pipeline& pipeline) {
  std::vector<std::vector<WorkItem>> orders;
  for (int r = 0; r < pipeline.cut.pipeline; ++r) {
    orders.push_back(rank_order(pipeline.cut, pipeline.micro_batches, r));
  }
  return orders;
}

std::string text(const std::vector<WorkItem>& order) {
  std::string out;
  for (const WorkItem& item : order) {
    out += pass_text(item);
    out += item.pairs ? '+' : ' ';
  }
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace

TEST_CASE("every schedule: runs each pass once, forward first, and comes to its end") {
  for (const ScheduleKind& kind : schedules()) {
    CAPTURE(kind.name);
    const std::vector<Pipeline> pipelines = small_pipelines(kind);
    CHECK(pipelines.size() >= 16);
    for (const Pipeline& pipeline : pipelines) {
      const auto problem =
          check_orders(pipeline_shape(pipeline.cut), pipeline.micro_batches, orders_of(pipeline));
      CAPTURE(pipeline.cut.pipeline);
      CAPTURE(pipeline.cut.virtual_stages);
      CAPTURE(pipeline.micro_batches);
      CHECK_MESSAGE(!problem, (problem ? problem->rule : ""));
    }
  }
}

TEST_CASE("every schedule: splits backward passes where its row says so") {
  for (const ScheduleKind& kind : schedules()) {
    CAPTURE(kind.name);
    for (const Pipeline& pipeline : small_pipelines(kind)) {
      bool splits = false;
      for (const auto& order : orders_of(pipeline)) {
        splits = splits || std::ranges::any_of(order, [](const WorkItem& item) {
                   return item.pass == Pass::backward_weight;
                 });
      }
      CHECK(splits == kind.splits_backward);
    }
  }
}

TEST_CASE("every schedule: holds as many chunks as its closed form says") {
  for (const ScheduleKind& kind : schedules()) {
    CAPTURE(kind.name);
    for (const Pipeline& pipeline : small_pipelines(kind)) {
      const auto orders = orders_of(pipeline);
      for (int r = 0; r < pipeline.cut.pipeline; ++r) {
        CAPTURE(pipeline.cut.pipeline);
        CAPTURE(pipeline.cut.virtual_stages);
        CAPTURE(pipeline.micro_batches);
        CAPTURE(r);
        CHECK(chunks_in_flight(orders[static_cast<std::size_t>(r)]) ==
              chunks_in_flight(pipeline.cut, pipeline.micro_batches, r));
      }
    }
  }
}

TEST_CASE("every schedule: stands at its place in the table, and names its source") {
  std::size_t place = 0;
  for (const ScheduleKind& kind : schedules()) {
    CHECK(static_cast<std::size_t>(kind.schedule) == place++);
    CHECK_FALSE(kind.source.empty());
    CHECK_FALSE(kind.summary.empty());
  }
}

// Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.3: interleaving holds 1 + (p - 1) / (p v)
// times what 1F1B holds on the first stage, p micro batches of all layers: p v + p - 1 of a chunk.
TEST_CASE("interleaved: the first rank holds p v + p - 1 chunks") {
  for (const Pipeline& pipeline : small_pipelines(info(Schedule::interleaved))) {
    const int p = pipeline.cut.pipeline, v = pipeline.cut.virtual_stages;
    CHECK(chunks_in_flight(pipeline.cut, pipeline.micro_batches, 0) ==
          std::min(pipeline.micro_batches * v, p * v + p - 1));
  }
}

TEST_CASE("interleaved: the last of two ranks runs two chunks in the order of the paper") {
  CHECK(text(rank_order(cut_of(Schedule::interleaved, 2, 2), 2, 1)) ==
        "F0 F1 F0@1 B0@1 F1@1 B1@1 B0 B1");
}

TEST_CASE("breadth_first: a chunk's micro batches run in a row, the last chunk goes back first") {
  CHECK(text(rank_order(cut_of(Schedule::breadth_first, 2, 2), 3, 1)) ==
        "F0 F1 F2 F0@1 F1@1 F2@1 B0@1 B1@1 B2@1 B0 B1 B2");
}

// Qi et al. 2023, arXiv:2401.10241, figure 2: 4 stages, 8 micro batches; of the last stage the
// weights' gradients start with its fourth micro batch.
TEST_CASE("zb_h1: first and last of four ranks run in the order of the paper") {
  const Parallelism cut = cut_of(Schedule::zb_h1, 4, 1);
  CHECK(text(rank_order(cut, 8, 0)) ==
        "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7");
  CHECK(text(rank_order(cut, 8, 3)) ==
        "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7");
}

// The first rank of github:deepseek-ai/DualPipe, images/dualpipe.png, has 8 ranks and 20 micro
// batches; this one is the smallest that the algorithm takes.
TEST_CASE("dualpipe: two ranks mirror each other") {
  const Parallelism cut = cut_of(Schedule::dualpipe, 2, 1);
  CHECK(text(rank_order(cut, 4, 0)) == "F0 F0@1 F1 B0@1 F1@1+B0 B1@1 B1 W1");
  CHECK(text(rank_order(cut, 4, 1)) == "F0@1 F0 F1@1 B0 F1+B0@1 B1 B1@1 W1@1");
}

// DeepSeek-AI 2024, arXiv:2412.19437, table 2: activations of PP + 1 micro batches of a stage.
TEST_CASE("dualpipe: every rank holds p + 1 micro batches of a stage") {
  for (const Pipeline& pipeline : small_pipelines(info(Schedule::dualpipe))) {
    for (const auto& order : orders_of(pipeline)) {
      CHECK(chunks_in_flight(order) == pipeline.cut.pipeline + 1);
    }
  }
}

}  // namespace lockstep
