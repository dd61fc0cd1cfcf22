// A schedule and an order of a queue that a program adds, and then names in scenarios; and what
// those that break a rule are told. CONTRIBUTING.md begins with the first two functions.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/pipeline/schedule_extension.hpp"
#include "sim/answer/answer.hpp"
#include "sim/scenario/queue_order_extension.hpp"

namespace {

using namespace lockstep;

/// Warms up with twice as many forward passes as 1F1B, so that messages hide behind them.
/// Source: Zhuang et al. 2022, arXiv:2211.05322, section 4.
std::vector<WorkItem> eager_order(const ScheduleCall& call) {
  std::vector<WorkItem> order;
  const auto add = [&order](Pass pass, int micro_batch) {
    order.push_back({pass, false, 0, static_cast<std::uint32_t>(micro_batch)});
  };
  const int ahead = std::min(call.micro_batches, 2 * (call.ranks - 1 - call.rank) + 1);
  for (int i = 0; i < ahead; ++i) add(Pass::forward, i);
  for (int i = 0; i < call.micro_batches; ++i) {
    add(Pass::backward, i);
    if (ahead + i < call.micro_batches) add(Pass::forward, ahead + i);
  }
  return order;
}

void add_extensions() {
  add_schedule({.name = "eager_1f1b",
                .summary = "1F1B with twice the warm-up.",
                .source = "Zhuang et al. 2022, arXiv:2211.05322, section 4",
                .order = eager_order});
  add_queue_order({.name = "widest_first",
                   .summary = "The job with the most GPUs.",
                   .key = [](const SubmittedJob& job) { return -double(job.gpus); }});
}

/// The first rank waits for gradients of its first micro batch, the last for all micro batches.
std::vector<WorkItem> stuck_order(const ScheduleCall& call) {
  std::vector<WorkItem> order;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(call.micro_batches); ++i) {
    order.push_back({Pass::forward, false, 0, i});
    if (call.rank == 0) order.push_back({Pass::backward, false, 0, i});
  }
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(call.micro_batches); ++i) {
    if (call.rank != 0) order.push_back({Pass::backward, false, 0, i});
  }
  return order;
}

std::vector<WorkItem> no_order(const ScheduleCall&) { return {}; }

std::vector<WorkItem> thrown_order(const ScheduleCall&) {
  throw std::runtime_error("no ranks of this kind");
}

constexpr const char* kStep = R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100"},
    "parallelism": {"tensor": 2, "pipeline": 4, "data": 1, "schedule": "1f1b"},
    "batch": {"sequences": 16, "micro": 1, "tokens": 4096}})";
constexpr const char* kQueue = R"({"cluster": {"node": "dgx_h100", "nodes": 1},
    "queue": {"order": "fifo", "admission": "strict", "jobs": [
        {"job": {"name": "narrow", "gpus": 4, "runs": "10 min", "tasks": 2}},
        {"job": {"name": "wide", "gpus": 8, "runs": "10 min"}}]}})";

int failures = 0;

void check(const char* what, bool holds) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  ++failures;
}

/// Whether the error names all of it.
void check_error(const std::function<void()>& act, const std::vector<std::string>& names) {
  try {
    act();
    std::printf("no error with %s\n", names.front().c_str());
    ++failures;
  } catch (const std::exception& error) {
    const std::string line = error.what();
    for (const std::string& name : names) {
      if (line.find(name) != std::string::npos) continue;
      std::printf("\"%s\" is not in: %s\n", name.c_str(), line.c_str());
      ++failures;
    }
  }
}

ScenarioAnswer asked(const char* text, const std::string& change) {
  return answer_text("asked.json", text, PresetStore(), {.set = {change}});
}
double step_with(const std::string& schedule) {
  return asked(kStep, "parallelism.schedule=" + schedule).number("step_s").value();
}

void check_schedules() {
  const std::string before = asked(kStep, "batch.micro=1").json().dump();
  check_error([] { step_with("eager_1f1b"); }, {"/parallelism/schedule", "zb_h1"});
  add_extensions();
  check("nothing built in changes", asked(kStep, "batch.micro=1").json().dump() == before);
  const ScenarioAnswer eager = asked(kStep, "parallelism.schedule=eager_1f1b");
  check("the answer names it",
        eager.json().dump().find("\"schedule\":\"eager_1f1b\"") != std::string::npos);
  check("messages hide", step_with("eager_1f1b") <= step_with("1f1b"));
  check_error([] { step_with("eager_f1b"); }, {"/parallelism/schedule", "\"eager_1f1b\"?"});

  add_schedule({.name = "stuck", .order = stuck_order});
  add_schedule({.name = "idle", .order = no_order});
  check_error([] { step_with("stuck"); },
              {"asked.json#/parallelism/schedule", "schedule \"stuck\" (an extension)", "rank 0",
               "waits for ever"});
  check_error([] { step_with("idle"); }, {"schedule \"idle\" (an extension)", "no more passes"});
  add_schedule({.name = "thrower", .order = thrown_order});
  check_error([] { step_with("thrower"); },
              {"schedule \"thrower\" (an extension)", "no ranks of this kind"});
  check_error([] { add_schedule({.name = "later", .order = eager_order}, 2); },
              {"schedule \"later\": made for interface 2", "has 1"});
  check_error([] { add_schedule({.name = "1f1b", .order = eager_order}); }, {"\"1f1b\""});
  check_error([] { add_schedule({.name = "zb_h1", .order = eager_order}); }, {"found twice"});
  check_error([] { add_schedule({.name = "empty"}); }, {"\"empty\"", "no order"});
}

void check_queue_orders() {
  const auto wait = [](const std::string& order) {
    return asked(kQueue, "queue.order=" + order).number("wait_mean_s").value();
  };
  check("the wide job waits for two narrow ones", wait("fifo") == 200);
  check("two narrow jobs wait for the wide one", wait("widest_first") == 400);
  add_queue_order({.name = "endless", .key = [](const SubmittedJob&) {
                     return std::numeric_limits<double>::infinity();
                   }});
  check_error([&] { wait("endless"); }, {"/queue/order", "order \"endless\" (an extension)"});
  check_error([&] { wait("widest_frist"); }, {"/queue/order", "\"widest_first\"?"});
  check_error([] { add_queue_order({.name = "fifo", .key = [](const auto&) { return 0.0; }}); },
              {"order \"fifo\": found twice"});
}

}  // namespace

int main() {
  try {
    check_schedules();
    check_queue_orders();
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 2;
  }
  return failures;
}
