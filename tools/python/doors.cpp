#include "tools/python/doors.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <pybind11/stl.h>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/pipeline/schedule_extension.hpp"
#include "sim/scenario/checkpoint_rule_extension.hpp"
#include "sim/scenario/queue_order_extension.hpp"
#include "sim/scenario/queue_policy_extension.hpp"
#include "sim/scenario/read_schedule.hpp"
#include "sim/scenario/traffic_process_extension.hpp"
#include "tools/python/collective_door.hpp"
#include "tools/python/in_python.hpp"
#include "tools/python/kept_answers.hpp"
#include "tools/python/python_slots.hpp"

namespace lockstep {
namespace {

namespace py = pybind11;

using FunctionSlots = PythonSlots<py::function>;

/// Kept for ever: Python may end before the library's tables.
FunctionSlots& python_orders() {
  static auto* const orders = new FunctionSlots("order");
  return *orders;
}
FunctionSlots& python_admissions() {
  static auto* const admissions = new FunctionSlots("admission");
  return *admissions;
}
FunctionSlots& python_victim_rules() {
  static auto* const rules = new FunctionSlots("victim rule");
  return *rules;
}
FunctionSlots& python_checkpoint_rules() {
  static auto* const rules = new FunctionSlots("checkpoint rule");
  return *rules;
}
FunctionSlots& python_processes() {
  static auto* const processes = new FunctionSlots("process");
  return *processes;
}

std::string_view python_word(bool value) { return value ? "True" : "False"; }

py::dict job_dict(const SubmittedJob& job) {
  py::dict row;
  row["number"] = job.number;
  row["submit_s"] = job.submit.base_units();
  row["runs_s"] = job.runs.base_units();
  row["limit_s"] = job.limit.base_units();
  row["gpus"] = job.gpus;
  row["priority"] = job.priority;
  row["user"] = job.user;
  row["account"] = job.account;
  row["model"] = job.model;
  return row;
}

void add_python_order(const std::string& name, const std::string& summary, bool knows_duration,
                      const py::function& key) {
  const std::string traits = "knows_duration=" + std::string(python_word(knows_duration));
  python_orders().put(
      name, traits, kept(key), [&](const FunctionSlots::Slot& slot, std::size_t /*place*/) {
        add_queue_order({.name = name,
                         .summary = summary,
                         .knows_duration = knows_duration,
                         .key = [&slot](const SubmittedJob& job) {
                           return in_python([&] {
                             return given<double>(slot.filling()(job_dict(job)), "a number");
                           });
                         }});
      });
}

py::dict job_now_dict(const JobNow& job) {
  py::dict row;
  row["number"] = job.number;
  row["gpus"] = job.gpus;
  row["priority"] = job.priority;
  row["submit_s"] = job.submit.base_units();
  row["limit_s"] = job.limit.base_units();
  row["so_far_s"] = job.so_far.base_units();
  row["limit_end_s"] = job.limit_end.base_units();
  row["unsaved_s"] = job.unsaved.base_units();
  row["user"] = job.user;
  row["account"] = job.account;
  row["model"] = job.model;
  return row;
}
py::list job_now_dicts(const std::vector<JobNow>& jobs) {
  py::list rows;
  for (const JobNow& job : jobs) rows.append(job_now_dict(job));
  return rows;
}

void add_python_admission(const std::string& name, const py::function& starts,
                          const std::string& summary) {
  const auto ask = [](const py::function& asked, const AdmissionCall& call) {
    py::dict row;
    row["now_s"] = call.now.base_units();
    row["free_gpus"] = call.free_gpus;
    row["waiting"] = job_now_dicts(call.waiting);
    row["running"] = job_now_dicts(call.running);
    return given<std::vector<std::size_t>>(asked(row), "a list of jobs' numbers");
  };
  python_admissions().put(
      name, {}, kept(starts), [&](const FunctionSlots::Slot& slot, std::size_t /*place*/) {
        add_queue_admission(
            {.name = name, .summary = summary, .starts = [ask, &slot](const AdmissionCall& call) {
               return in_python([&] { return ask(slot.filling(), call); });
             }});
      });
}

void add_python_victim_rule(const std::string& name, const py::function& key,
                            const std::string& summary) {
  const auto ask = [](const py::function& asked, const VictimCall& call) {
    return given<double>(asked(job_now_dict(call.running), job_now_dict(call.waiting)), "a number");
  };
  python_victim_rules().put(
      name, {}, kept(key), [&](const FunctionSlots::Slot& slot, std::size_t /*place*/) {
        add_victim_rule(
            {.name = name, .summary = summary, .key = [ask, &slot](const VictimCall& call) {
               return in_python([&] { return ask(slot.filling(), call); });
             }});
      });
}

void add_python_checkpoint_rule(const std::string& name, const py::function& next,
                                const std::string& summary) {
  const auto ask = [](const py::function& asked, const CheckpointCall& call) {
    py::dict row;
    row["now_s"] = call.now.base_units();
    row["trained_s"] = call.trained.base_units();
    row["stops"] = call.stops;
    row["interval_s"] = call.interval.base_units();
    row["blocks_s"] = call.blocks.base_units();
    return Seconds{given<double>(asked(row), "a number of seconds")};
  };
  python_checkpoint_rules().put(
      name, {}, kept(next), [&](const FunctionSlots::Slot& slot, std::size_t /*place*/) {
        add_checkpoint_rule(
            {.name = name, .summary = summary, .next = [ask, &slot](const CheckpointCall& call) {
               return in_python([&] { return ask(slot.filling(), call); });
             }});
      });
}

/// A schedule whose passes a Python function gives. It is asked once for each call, whose order is
/// then known.
class PythonSchedule {
 public:
  PythonSchedule(const py::function& order, std::vector<MicroBatchRule> rules)
      : order_(kept(order)), rules_(std::move(rules)) {}

  [[nodiscard]] MicroBatchRule rule(int ranks) const {
    if (rules_.empty()) return {};
    return rules_[std::min(static_cast<std::size_t>(ranks), rules_.size()) - 1];
  }
  std::vector<WorkItem> order(const ScheduleCall& call) {
    return known_.of({call.ranks, call.chunks, call.micro_batches, call.rank}, [&] {
      return in_python([&] {
        std::vector<WorkItem> order = ask(call);
        const std::size_t passes = order.size();
        return std::pair(std::move(order), passes);
      });
    });
  }

 private:
  using Key = std::tuple<int, int, int, int>;

  [[nodiscard]] std::vector<WorkItem> ask(const ScheduleCall& call) const {
    py::dict asked;
    asked["ranks"] = call.ranks;
    asked["chunks"] = call.chunks;
    asked["micro_batches"] = call.micro_batches;
    asked["rank"] = call.rank;
    const auto texts = given<std::vector<std::string>>(
        (*order_)(asked), R"(a list of passes such as "F0", "B3@1", "W2")");
    return order_of_texts(texts);
  }

  const py::function* order_;
  std::vector<MicroBatchRule> rules_;  ///< of 1, 2, ... ranks; empty: any number
  KeptAnswers<Key, std::vector<WorkItem>> known_;
};

using ScheduleSlots = PythonSlots<PythonSchedule>;

ScheduleSlots& python_schedules() {
  static auto* const schedules = new ScheduleSlots("schedule");
  return *schedules;
}

/// Rows of the library's table are plain functions, so that each place has functions of its own.
struct ScheduleFunctions {
  MicroBatchRule (*rule)(int ranks);
  std::vector<WorkItem> (*order)(const ScheduleCall& call);
};

template <std::size_t... places>
constexpr std::array<ScheduleFunctions, sizeof...(places)> schedule_functions(
    std::index_sequence<places...> /*of kMostExtensions*/) {
  return {ScheduleFunctions{.rule =
                                [](int ranks) {
                                  const ScheduleSlots::Slot& slot = python_schedules().at(places);
                                  return slot.is_empty() ? MicroBatchRule{}
                                                         : slot.filling().rule(ranks);
                                },
                            .order =
                                [](const ScheduleCall& call) {
                                  return python_schedules().at(places).filling().order(call);
                                }}...};
}

constexpr int kMostRanks = 10'002;  // of a pipeline

/// Of every number of ranks that a pipeline may have.
std::vector<MicroBatchRule> rules_of(const std::string& name, const py::object& micro_batches) {
  if (micro_batches.is_none()) return {};
  std::vector<MicroBatchRule> rules;
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    const auto [multiple, least] = given<std::pair<int, int>>(
        micro_batches(ranks), "of micro_batches, a multiple and the least number, as (1, 1)");
    if (multiple < 1 || least < 1) {
      throw ExtensionError("schedule " + in_quotes(name) +
                           ": found a multiple or a least number of micro batches below 1");
    }
    rules.push_back({.multiple = multiple, .least = least});
  }
  return rules;
}

void add_python_schedule(const std::string& name, const py::function& order,
                         const std::string& summary, const std::string& source,
                         const std::string& layout, std::pair<int, int> virtual_stages,
                         bool splits_backward, bool blocking_sends, bool even_ranks,
                         const py::object& micro_batches) {
  const auto shape = std::ranges::find(kChunkLayoutNames, layout);
  if (shape == kChunkLayoutNames.end()) {
    throw ExtensionError("schedule " + in_quotes(name) + ": found a layout " + in_quotes(layout) +
                         "; allowed: loop, v, two_way");
  }
  if (virtual_stages.first < 1 || virtual_stages.second < virtual_stages.first) {
    throw ExtensionError("schedule " + in_quotes(name) + ": found virtual stages from " +
                         std::to_string(virtual_stages.first) + " to " +
                         std::to_string(virtual_stages.second) +
                         "; allowed: 1 or more, the least one first");
  }
  static constexpr auto kFunctions =
      schedule_functions(std::make_index_sequence<kMostExtensions>());
  std::string traits = "layout=" + layout;
  traits += ", virtual_stages=(" + std::to_string(virtual_stages.first) + ", " +
            std::to_string(virtual_stages.second) + ")";
  for (const auto& [trait, is_so] :
       {std::pair("splits_backward", splits_backward), std::pair("blocking_sends", blocking_sends),
        std::pair("even_ranks", even_ranks)}) {
    traits.append(", ").append(trait).append("=").append(python_word(is_so));
  }
  python_schedules().put(
      name, traits, new PythonSchedule(order, rules_of(name, micro_batches)),
      [&](const ScheduleSlots::Slot& /*slot*/, std::size_t place) {
        // Where there is no place left, the library says so before it asks.
        const ScheduleFunctions& own = kFunctions[std::min(place, kFunctions.size() - 1)];
        add_schedule({.name = name,
                      .summary = summary,
                      .source = source,
                      .layout = static_cast<ChunkLayout>(shape - kChunkLayoutNames.begin()),
                      .virtual_min = virtual_stages.first,
                      .virtual_max = virtual_stages.second,
                      .splits_backward = splits_backward,
                      .blocking_sends = blocking_sends,
                      .even_ranks = even_ranks,
                      .micro_batches = own.rule,
                      .order = own.order});
      });
}

/// A number: when every sender sends its size; a pair: also what each sends.
TrafficRound round_of(const py::object& answer) {
  const std::string allowed = "None, seconds, or (seconds, [bytes of each sender])";
  if (!py::isinstance<py::tuple>(answer)) return {.at = Seconds{given<double>(answer, allowed)}};
  const auto [at, sizes] = given<std::pair<double, std::vector<double>>>(answer, allowed);
  TrafficRound round{.at = Seconds{at}};
  for (const double size : sizes) round.sizes.push_back(Bytes{size});
  return round;
}

void add_python_process(const std::string& name, const py::function& next,
                        const std::string& summary) {
  const auto ask = [](const py::function& asked,
                      const RoundCall& call) -> std::optional<TrafficRound> {
    py::dict row;
    row["round"] = call.round;
    row["now_s"] = call.now.base_units();
    row["took_s"] = call.took.base_units();
    row["senders"] = call.senders;
    row["size_bytes"] = call.size.base_units();
    const py::object answer = asked(row);
    if (answer.is_none()) return std::nullopt;
    return round_of(answer);
  };
  python_processes().put(
      name, {}, kept(next), [&](const FunctionSlots::Slot& slot, std::size_t /*place*/) {
        add_traffic_process(
            {.name = name, .summary = summary, .next = [ask, &slot](const RoundCall& call) {
               return in_python([&] { return ask(slot.filling(), call); });
             }});
      });
}

/// Whether there was an extension of the name, of any kind.
bool remove_from_all(const std::string& name) {
  bool found = remove_python_collective(name);
  found |= python_schedules().remove(name);
  for (FunctionSlots* const slots : {&python_orders(), &python_admissions(), &python_victim_rules(),
                                     &python_checkpoint_rules(), &python_processes()}) {
    found |= slots->remove(name);
  }
  return found;
}

}  // namespace

void define_doors(py::module_& module) {
  module.def("remove", &remove_from_all);
  module.def("add_checkpoint_rule", &add_python_checkpoint_rule);
  module.def("add_collective", &add_python_collective);
  module.def("add_queue_admission", &add_python_admission);
  module.def("add_queue_order", &add_python_order);
  module.def("add_schedule", &add_python_schedule);
  module.def("add_traffic_process", &add_python_process);
  module.def("add_victim_rule", &add_python_victim_rule);
}

}  // namespace lockstep
