// A schedule, a queue's order, admission and choice of victims, a collective, a process beside
// steps and a rule for checkpoints that a program adds, and that scenarios then name or take; and
// what those that break a rule are told. CONTRIBUTING.md has the examples, beginning with the first
// two.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/collectives/choice.hpp"
#include "models/collectives/collective_extension.hpp"
#include "models/pipeline/schedule_extension.hpp"
#include "sim/answer/answer.hpp"
#include "sim/scenario/checkpoint_rule_extension.hpp"
#include "sim/scenario/queue_order_extension.hpp"
#include "sim/scenario/queue_policy_extension.hpp"
#include "sim/scenario/traffic_process_extension.hpp"

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

/// An all-reduce by halving, then doubling: on every rail log2 k nodes exchange 1/2, 1/4 ... of its
/// part, and the same back. Source: Thakur, Rabenseifner and Gropp 2005, Int. J. High Perform.
/// Comput. Appl. 19, 49-66, section 4.5.
Availability halving_availability(const CollectiveContext& c) {
  if (c.op != CollectiveOp::all_reduce || c.k == 1) return {Offer::other_call, {}};
  const bool alike = c.g == c.most && std::has_single_bit(static_cast<unsigned>(c.k));
  if (!alike) return {Offer::refused, "needs a power of two of nodes with as many members each"};
  if (c.gpu.nvlink_bandwidth == BytesPerSecond{}) return {Offer::refused, "needs NVLink"};
  return {};
}
void halving_law(const CollectiveContext& c, std::vector<CollectiveCandidate>& out) {
  const double g = c.g, k = c.k;
  const double inside = 2 * (g - 1) / g, across = 2 * (k - 1) / k;
  SecondsPerByte per_byte = per_byte_at(across, c.node);
  if (c.g > 1) per_byte += per_byte_at(inside, c.gpu.nvlink_bandwidth);
  out.push_back({.algorithm = {},
                 .protocol = "simple",
                 .latency = c.start + 2 * std::log2(k) * c.transport.hop_latency,
                 .per_byte = per_byte,
                 .nvlink_coefficient = inside,
                 .network_coefficient = across / g});
}
CollectiveShape halving_shape(const ShapeCall& call) {
  const std::vector<GroupNode> nodes = group_nodes(call.members);
  const std::size_t k = nodes.size(), g = nodes.front().members.size();
  CollectiveShape shape;
  shape.nvlink_coefficient = 2.0 * static_cast<double>(g - 1) / static_cast<double>(g);
  for (std::size_t distance = 1; distance < k; distance *= 2) {
    const double bytes = 2.0 * static_cast<double>(distance) / static_cast<double>(k * g);
    for (std::size_t node = 0; node < k; ++node) {
      for (std::size_t rail = 0; rail < g; ++rail) {
        shape.edges.push_back(
            {nodes[node].members[rail], nodes[node ^ distance].members[rail], bytes});
      }
    }
  }
  return shape;
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

/// Whoever fits starts, until somebody before it has waited for longer than that.
std::vector<std::size_t> patient_starts(const AdmissionCall& call, Seconds patience) {
  std::vector<std::size_t> starts;
  int left = call.free_gpus;
  for (const JobNow& job : call.waiting) {
    if (job.gpus <= left) {
      starts.push_back(job.number);
      left -= job.gpus;
    } else if (job.so_far > patience) {
      break;
    }
  }
  return starts;
}

/// Two narrow jobs run when a wide one comes, and a third one that could start before it.
constexpr const char* kStarved = R"({"cluster": {"node": "dgx_h100", "nodes": 1},
    "queue": {"order": "fifo", "admission": "strict", "jobs": [
        {"job": {"name": "a", "gpus": 4, "runs": "10 min"}},
        {"job": {"name": "b", "gpus": 4, "runs": "10 min", "submit": "5 min"}},
        {"job": {"name": "wide", "gpus": 8, "runs": "10 min", "submit": "6 min"}},
        {"job": {"name": "c", "gpus": 4, "runs": "10 min", "submit": "9 min"}}]}})";

void check_admissions() {
  const auto wait = [](const std::string& admission) {
    return asked(kStarved, "queue.admission=" + admission).number("wait_mean_s").value();
  };
  const auto add = [](const char* name, std::vector<std::size_t> (*starts)(const AdmissionCall&)) {
    add_queue_admission({.name = name, .starts = starts});
  };
  check_error([&] { wait("patient"); }, {"/queue/admission", "best_effort"});
  add("patient", [](const AdmissionCall& call) { return patient_starts(call, Seconds{600}); });
  add("hasty", [](const AdmissionCall& call) { return patient_starts(call, Seconds{180}); });
  check("the wide job waits 14 min, c one", wait("patient") == 225 && wait("best_effort") == 225);
  check("it waits 9 min, c 16", wait("hasty") == 375 && wait("strict") == 375);
  check("the answer names it",
        asked(kStarved, "queue.admission=hasty").json().dump().find("\"admission\":\"hasty\"") !=
            std::string::npos);

  add("twice", [](const AdmissionCall&) { return std::vector<std::size_t>{0, 0}; });
  add("stranger", [](const AdmissionCall&) { return std::vector<std::size_t>{3}; });
  add("thrower", [](const AdmissionCall&) -> std::vector<std::size_t> {
    throw std::runtime_error("no passes of this kind");
  });
  check_error([&] { wait("twice"); },
              {"/queue/admission", "admission \"twice\" (an extension), at 0 s: job 0 twice"});
  check_error([&] { wait("stranger"); }, {"job 3, which is not among the 1 that wait"});
  check_error([&] { wait("thrower"); }, {"\"thrower\"", "no passes of this kind"});
  check_error(
      [] {
        add_queue_admission(
            {.name = "easy", .starts = [](const auto&) { return std::vector<std::size_t>(); }});
      },
      {"admission \"easy\": found twice"});
  check_error([] { add_queue_admission({.name = "idle"}); }, {"\"idle\"", "no starts"});
  check_error([] { add_queue_admission({.name = "later"}, 2); }, {"made for interface 2"});
}

/// Both that run come after the last one: b, the later, has 7 min of work that no checkpoint holds,
/// a 2 min.
constexpr const char* kEvicting = R"({"cluster": {"node": "dgx_h100", "nodes": 1},
    "queue": {"order": "priority", "admission": "strict",
              "preemption": {"mode": "evict", "victims": "last", "checkpoint": "10 min"}, "jobs": [
        {"job": {"name": "a", "gpus": 4, "runs": "30 min"}},
        {"job": {"name": "b", "gpus": 4, "runs": "30 min", "submit": "5 min"}},
        {"job": {"name": "urgent", "gpus": 4, "runs": "30 min", "submit": "12 min",
                 "priority": 1}}]}})";

void check_victims() {
  const auto lost = [](const std::string& rule) {
    const auto answer = asked(kEvicting, "queue.preemption.victims=" + rule).json();
    return answer.at("waterfall").at("lost").at("gpu_hours").get<double>();
  };
  check_error([&] { lost("least_lost"); }, {"/queue/preemption/victims", "last"});
  // Who has the least to do again, over all its GPUs.
  add_victim_rule({.name = "least_lost", .key = [](const VictimCall& call) {
                     return -call.running.unsaved.base_units() * call.running.gpus;
                   }});
  check("the last one goes, and does 7 min again", std::abs(60 * lost("last") - 7 * 4) < 1e-6);
  check("by the rule 2 min", std::abs(60 * lost("least_lost") - 2 * 4) < 1e-6);
  add_victim_rule({.name = "nobody", .key = [](const VictimCall&) {
                     return -std::numeric_limits<double>::infinity();
                   }});
  check_error([&] { lost("nobody"); },
              {"/queue/preemption/victims", "victim rule \"nobody\" (an extension), the key -inf"});
  check_error([] { asked(kEvicting, "queue.admission=hasty"); },
              {"/queue/preemption/mode", "none with an admission of an extension"});
  check_error([] { asked(kEvicting, "queue.preemption.mode=replan"); },
              {"/queue/preemption/victims", "unless \"mode\" is \"evict\""});
  check_error([] { add_victim_rule({.name = "last"}); }, {"victim rule \"last\": found twice"});
  check_error([] { add_victim_rule({.name = "keyless"}); }, {"no key"});
}

/// Young's interval where failures come soon after failures: of Weibull's shape 0.6 the rate falls
/// with the time to the power of -0.4, and the interval grows with its root.
Seconds fading_interval(const CheckpointCall& call) {
  const double since = std::max<double>(1, call.trained / call.interval);
  return std::pow(since, 0.2) * call.interval;
}

constexpr const char* kRun = R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
    "parallelism": {"tensor": 8, "pipeline": 1, "data": 1},
    "batch": {"sequences": 8, "micro": 1, "tokens": 4096},
    "run": {"steps": 100000,
            "reliability": {"modes": [{"name": "node", "component": "node", "effect": "crash",
                                       "mean_time": "1000000 d"}]},
            "checkpoint": {"interval": "1 h", "rule": "fixed", "blocks": "1 s", "finishes": "1 s",
                           "restores": "1 s"}}})";

void check_checkpoint_rules() {
  const auto taken = [](const std::string& rule) {
    return asked(kRun, "run.checkpoint.rule=" + rule).number("checkpoints").value();
  };
  check_error([&] { taken("fading"); }, {"/run/checkpoint/rule", "fixed"});
  add_checkpoint_rule({.name = "fading", .next = fading_interval});
  add_checkpoint_rule(
      {.name = "rare", .next = [](const CheckpointCall& call) { return 2 * call.interval; }});
  const double fixed = taken("fixed"), rare = taken("rare"), fading = taken("fading");
  check("half as many at twice the interval", std::abs(fixed - 2 * rare) <= 2);
  check("fewer, the longer it goes well", rare < fixed && fading < fixed);
  add_checkpoint_rule({.name = "never", .next = [](const CheckpointCall&) { return Seconds{}; }});
  check_error([&] { taken("never"); },
              {"/run/checkpoint/rule", "checkpoint rule \"never\" (an extension), at 0 s",
               "a time above 0"});
  add_checkpoint_rule({.name = "thrower", .next = [](const CheckpointCall&) -> Seconds {
                         throw std::runtime_error("no intervals of this kind");
                       }});
  check_error([&] { taken("thrower"); }, {"no intervals of this kind"});
  check_error([] { add_checkpoint_rule({.name = "fixed"}); }, {"found twice"});
  check_error([] { add_checkpoint_rule({.name = "idle"}); }, {"\"idle\"", "no times"});
}

constexpr const char* kReplicas = R"({"model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 8, "fabric": "fat_tree_2_to_1"},
    "parallelism": {"tensor": 8, "pipeline": 1, "data": 8, "sharding": "none"},
    "batch": {"sequences": 8, "micro": 1, "tokens": 1024}})";

/// How one MiB is moved over nodes of eight.
CollectiveChoice chosen(int nodes = 8, CollectiveOp op = CollectiveOp::all_reduce) {
  static const PresetStore presets;
  const NodeSpec node = presets.node("dgx_h100");
  return choose_collective({op, Bytes{1048576}, 8 * nodes, 8}, node.gpu,
                           presets.transport("infiniband"), node.nic_bandwidth, {});
}

template <CollectiveOp op>
Availability only_for(const CollectiveContext& c) {
  return {c.op == op ? Offer::weighed : Offer::other_call, {}};
}
/// A collective with this mistake, and what a call of `op`, which it alone spoils, is told.
template <CollectiveOp op>
void check_broken(const char* name,
                  void (*law)(const CollectiveContext& context,
                              std::vector<CollectiveCandidate>& out),
                  const std::string& told) {
  add_collective({.name = name, .availability = only_for<op>, .law = law});
  check_error([] { chosen(8, op); }, {"collective \"" + std::string(name) + "\" (an extension), ",
                                      " of 64 members on 8 nodes: ", told});
}

void check_collectives() {
  const double before = asked(kReplicas, "batch.micro=1").number("step_s").value();
  const CollectiveChoice without = chosen();
  add_collective({.name = "halving",
                  .summary = "Halving, then doubling, over nodes.",
                  .source = "Thakur, Rabenseifner and Gropp 2005, IJHPCA 19, section 4.5",
                  .availability = halving_availability,
                  .law = halving_law,
                  .shape = halving_shape});
  const CollectiveChoice with = chosen();
  check("it is taken where it is the fastest", with.cost->algorithm == "halving");
  check("and then takes less time", with.time < without.time);
  check("and is refused elsewhere",
        chosen(6).reason.find("halving: needs a power of two") != std::string::npos);
  const CollectiveShape shape = collective_shape(
      CollectiveOp::all_reduce, "halving",
      std::vector<GroupMember>{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, 0}, {3, 1}}, 4);
  double sent = 0;
  for (const NetworkEdge& edge : shape.edges) sent += edge.bytes;
  check("its members send 2 (k - 1) / k / g", std::abs(sent / 8 - 0.75) < 1e-12);
  check("a step takes it", asked(kReplicas, "batch.micro=1").number("step_s").value() < before);

  check_broken<CollectiveOp::reduce>(
      "early",
      [](const CollectiveContext& c, auto& out) {
        halving_law(c, out);
        out.back().per_byte = 0.1 * out.back().per_byte;
      },
      "in which links carry it");
  check_broken<CollectiveOp::broadcast>(
      "negative",
      [](const CollectiveContext& c, auto& out) {
        halving_law(c, out);
        out.back().latency = Seconds{-1};
      },
      "found a latency of -1 s");
  check_broken<CollectiveOp::all_gather>(
      "nothing", [](const CollectiveContext&, auto&) {}, "found no candidate");
  check_broken<CollectiveOp::reduce_scatter>(
      "thrower",
      [](const CollectiveContext&, auto&) { throw std::runtime_error("no rails of this kind"); },
      "no rails of this kind");
  add_collective({.name = "bent",
                  .availability = only_for<CollectiveOp::send_receive>,
                  .law = halving_law,
                  .shape = [](const ShapeCall&) {
                    CollectiveShape inside;
                    inside.edges = {{0, 1, 1.0}};
                    return inside;
                  }});
  check_error(
      [] {
        const std::vector<GroupMember> beside{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
        collective_shape(CollectiveOp::send_receive, "bent", beside, 2);
      },
      {"collective \"bent\" (an extension), send_receive of 4 members", "from 0 to 1"});
  check_error([] { add_collective({.name = "ring", .law = halving_law}); }, {"found twice"});
  check_error([] { add_collective({.name = "lawless"}); }, {"\"lawless\"", "no law"});
  check_error([] { add_collective({.name = "later"}, 2); }, {"made for interface 2"});
}

/// A tenant that backs off: after each round it waits ten times as long as that took, and the first
/// half of its nodes sends in even rounds, the others in odd ones.
std::optional<TrafficRound> polite_round(const RoundCall& call) {
  TrafficRound round{.at = call.now + 10 * call.took, .sizes = {}};
  for (std::size_t i = 0; i < call.senders; ++i) {
    const bool sends = (i < call.senders / 2) == (call.round % 2 == 0);
    round.sizes.push_back(sends ? call.size : Bytes{});
  }
  return round;
}

constexpr const char* kBeside = R"({
    "cluster": {"node": "dgx_h100", "nodes": 8,
                "fabric": {"kind": "fat_tree", "levels": 2, "leaf_ports_down": 16,
                           "leaf_oversubscription": 4, "routing": "adaptive"}},
    "jobs": [{"name": "training", "nodes": {"count": 4, "stride": 2}, "model": "llama3_8b",
              "parallelism": {"tensor": 8, "data": 4, "sharding": "zero3"},
              "batch": {"sequences": 8, "micro": 1, "tokens": 2048}}],
    "background": [{"name": "tenant", "from": [1, 3], "to": [5, 7], "size": "4 GB",
                    "process": "periodic"}]})";

/// A training's slowdown, and the bytes of what runs beside it.
std::pair<double, double> beside(const std::string& process) {
  const auto answer = asked(kBeside, "background.0.process=" + process).json();
  return {answer.at("jobs").at(0).at("slowdown"), answer.at("jobs").at(1).at("bytes")};
}
void check_rounds(const char* name, std::optional<TrafficRound> (*next)(const RoundCall& call),
                  const std::string& told) {
  add_traffic_process({.name = name, .next = next});
  check_error([&] { beside(name); },
              {"asked.json#/background/0/process",
               "process \"" + std::string(name) + "\" (an extension)", told});
}

void check_processes() {
  check_error([] { beside("polite"); }, {"/background/0/process", "periodic"});
  const auto [once, once_bytes] = beside("periodic");
  add_traffic_process({.name = "polite", .summary = "Backs off.", .next = polite_round});
  add_traffic_process({.name = "greedy", .next = [](const RoundCall& call) {
                         return std::optional(TrafficRound{.at = call.now, .sizes = {}});
                       }});
  add_traffic_process(
      {.name = "silent", .next = [](const RoundCall&) { return std::optional<TrafficRound>(); }});
  const auto [polite, polite_bytes] = beside("polite");
  const auto [greedy, greedy_bytes] = beside("greedy");
  check("one that never sends slows nobody", beside("silent").first == 1);
  check("one that backs off is in the way, less than one that does not",
        1 < polite && polite < greedy);
  check("and sends less", 0 < polite_bytes && polite_bytes < greedy_bytes);
  check("who sends all the time is more in the way than who sends once", once < greedy);
  check("and sends more", once_bytes < greedy_bytes);
  check_error(
      [] {
        asked(kBeside,
              "background.0={\"name\": \"tenant\", \"from\": [1], \"to\": [5], "
              "\"size\": \"4 GB\", \"every\": \"1 s\", \"process\": \"polite\"}");
      },
      {"/background/0/every", "no such key beside \"process\""});
  check_rounds(
      "early",
      [](const RoundCall& call) {
        return std::optional(TrafficRound{.at = call.now - Seconds{1}, .sizes = {}});
      },
      "round 0: a round at -1 s");
  check_rounds(
      "short",
      [](const RoundCall& call) {
        return std::optional(TrafficRound{.at = call.now, .sizes = {Bytes{1}}});
      },
      "round 0: 1 sizes");
  check_rounds(
      "empty",
      [](const RoundCall& call) {
        return std::optional(TrafficRound{.at = call.now, .sizes = {Bytes{}, Bytes{}}});
      },
      "nobody sends");
  check_rounds(
      "thrower",
      [](const RoundCall&) -> std::optional<TrafficRound> {
        throw std::runtime_error("no rounds of this kind");
      },
      "no rounds of this kind");
  check_error([] { add_traffic_process({.name = "periodic", .next = polite_round}); },
              {"process \"periodic\": found twice"});
  check_error([] { add_traffic_process({.name = "idle"}); }, {"\"idle\"", "no rounds"});
}

}  // namespace

int main() {
  try {
    check_schedules();
    check_queue_orders();
    check_admissions();
    check_victims();
    check_checkpoint_rules();
    check_processes();
    check_collectives();
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 2;
  }
  return failures;
}
