// Better hardware makes nothing worse: one law for each value of a machine.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "sim/laws/law_subject.hpp"
#include "sim/laws/law_tables.hpp"
#include "sim/step/plan.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// What list scheduling and max-min fairness allow themselves: a transfer that ends sooner can make
// another pass begin first, or share a link with another transfer (Graham 1969, SIAM J. Appl. Math.
// 17(2), 416-429, whose bound is a factor of two). Of 42,000 improvements of random steps 30 made
// one longer, by 1 % at most.
constexpr double kLargestAnomaly = 0.02;
/// What a choice of NCCL may cost that its rules make without knowing the fabric: as large as it
/// gets, and named.
constexpr double kLargestChoice = 10;
/// Ticks of a step of some milliseconds.
constexpr double kNoAnomaly = 1e-6;

/// The machine of a scenario, whatever its kind.
struct Machine {
  std::vector<const NodeSpec*> nodes;  ///< by pool
  std::vector<std::string> paths;      ///< of each: "cluster.node"
  const FabricSpec* fabric = nullptr;
  const TransportSpec* transport = nullptr;
  const Scenario* job = nullptr;
};

Machine machine_of(const LawSubject& subject) {
  Machine out;
  const ScenarioFile& file = subject.uncapped();
  const auto take = [&](const Cluster& cluster) {
    if (cluster.pools.empty()) out.nodes = {&cluster.node};
    for (std::size_t pool = 0; pool < cluster.pools.size(); ++pool) {
      out.nodes.push_back(&cluster.pools[pool].node);
      out.paths.push_back(fmt::format("cluster.pools.{}.node", pool));
    }
    out.fabric = &cluster.fabric;
    out.transport = &cluster.transport;
  };
  if (const Scenario* const job = job_of(file)) {
    out.job = subject.job();
    for (std::size_t pool = 0; pool < job->pool_count(); ++pool) {
      out.nodes.push_back(&job->node_of(pool));
      if (!job->pools.empty()) out.paths.push_back(fmt::format("cluster.pools.{}.node", pool));
    }
    out.fabric = &job->fabric;
    out.transport = &job->transport;
  } else if (file.jobs) {
    take(file.jobs->cluster);
  } else if (file.queue) {
    take(file.queue->cluster);
  } else if (file.serving) {
    take(file.serving->cluster);
  }
  if (out.paths.empty()) out.paths = {"cluster.node"};
  return out;
}

/// A value that a vendor improves.
struct HardwareValue {
  std::string_view name;
  std::string_view sentence;
  /// The changes that make it better by a factor; none where the machine has no such value.
  std::vector<std::string> (*better)(const Machine& machine, double factor);
};

/// The same of every kind of node: `get` gives what is there, 0 for nothing.
template <class Get>
std::vector<std::string> on_nodes(const Machine& machine, std::string_view path,
                                  std::string_view unit, double factor, Get get) {
  std::vector<std::string> out;
  for (std::size_t pool = 0; pool < machine.nodes.size(); ++pool) {
    const double now = get(*machine.nodes[pool]);
    if (now <= 0) continue;
    out.push_back(fmt::format("{}.{}={:.17g}{}{}", machine.paths[pool], path, factor * now,
                              unit.empty() ? "" : " ", unit));
  }
  return out;
}

std::vector<std::string> peaks(const Machine& machine, double factor) {
  struct Peak {
    std::string_view path;
    FlopsPerSecond GpuSpec::* rate;
  };
  constexpr std::array kPeaks{
      Peak{"gpu.peak_fp16", &GpuSpec::peak_fp16}, Peak{"gpu.peak_bf16", &GpuSpec::peak_bf16},
      Peak{"gpu.peak_fp8", &GpuSpec::peak_fp8}, Peak{"gpu.peak_fp4", &GpuSpec::peak_fp4}};
  std::vector<std::string> out;
  for (const Peak& peak : kPeaks) {
    std::ranges::move(
        on_nodes(machine, peak.path, "FLOP/s", factor,
                 [&](const NodeSpec& node) { return (node.gpu.*peak.rate).base_units(); }),
        std::back_inserter(out));
  }
  return out;
}

/// NICs, the links behind them, and PCIe between both: one of them faster alone may help nobody.
std::vector<std::string> network_rates(const Machine& machine, double factor) {
  std::vector<std::string> out = on_nodes(
      machine, "nic_bandwidth", "B/s", factor,
      [](const NodeSpec& node) { return node.nics > 0 ? node.nic_bandwidth.base_units() : 0; });
  if (machine.fabric->link_bandwidth > BytesPerSecond{}) {
    out.push_back(fmt::format("cluster.fabric.link_bandwidth={:.17g} B/s",
                              factor * machine.fabric->link_bandwidth.base_units()));
  }
  return out;
}

/// Of fabrics whose packets take every way, or the best: other uplinks have other hashes and static
/// routes, which are drawn or computed anew.
std::vector<std::string> fewer_down(const Machine& machine, double factor) {
  std::vector<std::string> out;
  const Routing routing = machine.fabric->routing;
  if (routing != Routing::spray && routing != Routing::adaptive) return out;
  const auto thinner = [&](std::string_view key, double now) {
    if (now <= 1) return;
    out.push_back(fmt::format("cluster.fabric.{}={:.17g}", key, std::max(1.0, now / factor)));
  };
  thinner("leaf_oversubscription", machine.fabric->leaf_oversubscription);
  if (machine.fabric->levels == 3) {
    thinner("spine_oversubscription", machine.fabric->spine_oversubscription);
  }
  return out;
}

std::vector<std::string> healthy(const Machine& machine, double) {
  if (machine.job == nullptr || machine.job->stragglers.empty()) return {};
  return {"stragglers=[]"};
}

std::vector<std::string> lifted_cap(const Machine& machine, double) {
  if (machine.job == nullptr || !machine.job->power || !machine.job->power->cap) return {};
  return {fmt::format("power.cap={:.17g} W", machine.job->power->gpu_nameplate.base_units())};
}

/// Of the transport between nodes, where it is named: with the fabric, else with the node.
std::vector<std::string> on_transport(const Machine& machine, std::string_view key,
                                      std::string_view unit, double value) {
  if (value <= 0) return {};
  const auto change = [&](const std::string& path) {
    return fmt::format("{}.transport.{}={:.17g}{}{}", path, key, value, unit.empty() ? "" : " ",
                       unit);
  };
  if (!machine.fabric->transport.empty()) return {change("cluster.fabric")};
  std::vector<std::string> out;
  for (const std::string& path : machine.paths) out.push_back(change(path));
  return out;
}

double share_up_to_1(double share, double factor) { return std::min(1.0, share * factor) / factor; }

using Node = NodeSpec;
constexpr std::array kValues{
    HardwareValue{"peak_flops", "FLOP/s of the GPU", peaks},
    HardwareValue{"hbm_bandwidth", "memory bandwidth of the GPU",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "gpu.hbm_bandwidth", "B/s", f,
                                    [](const Node& n) { return n.gpu.hbm_bandwidth.base_units(); });
                  }},
    HardwareValue{"gemm_bandwidth", "bandwidth that products bound by memory reach",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "gpu.gemm.bandwidth", "B/s", f, [](const Node& n) {
                      return n.gpu.gemm.bandwidth.base_units();
                    });
                  }},
    HardwareValue{"gemm_efficiency", "share of the peak that products reach",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "gpu.gemm.efficiency", "", f, [&](const Node& n) {
                      return share_up_to_1(n.gpu.gemm.efficiency, f);
                    });
                  }},
    HardwareValue{"gemm_launch", "time of the shortest product",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "gpu.gemm.launch", "s", 1 / f,
                                    [](const Node& n) { return n.gpu.gemm.launch.base_units(); });
                  }},
    HardwareValue{"memory_efficiency", "share of the bandwidth that memory-bound kernels reach",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "gpu.memory.efficiency", "", f, [&](const Node& n) {
                      return share_up_to_1(n.gpu.memory.efficiency, f);
                    });
                  }},
    HardwareValue{"memory_launch", "time of the shortest memory-bound kernel",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "gpu.memory.launch", "s", 1 / f,
                                    [](const Node& n) { return n.gpu.memory.launch.base_units(); });
                  }},
    HardwareValue{"nvlink_bandwidth", "NVLink bandwidth",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "gpu.nvlink_bandwidth", "B/s", f, [](const Node& n) {
                      return n.gpu.nvlink_bandwidth.base_units();
                    });
                  }},
    HardwareValue{"pcie_bandwidth", "PCIe bandwidth",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "gpu.pcie_bandwidth", "B/s", f, [](const Node& n) {
                      return n.gpu.pcie_bandwidth.base_units();
                    });
                  }},
    HardwareValue{"host_bandwidth", "memory bandwidth of the host",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "host.bandwidth", "B/s", f, [](const Node& n) {
                      return n.host ? n.host->bandwidth.base_units() : 0;
                    });
                  }},
    HardwareValue{"speed_spread", "spread of speed between GPUs",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "gpu.speed_spread", "", 1 / f,
                                    [](const Node& n) { return n.gpu.speed_spread; });
                  }},
    HardwareValue{"kernel_jitter", "spread of a kernel's time",
                  [](const Machine& m, double f) {
                    return on_nodes(m, "gpu.kernel_jitter", "", 1 / f,
                                    [](const Node& n) { return n.gpu.kernel_jitter; });
                  }},
    HardwareValue{"network_bandwidth", "bandwidth of NICs and of the links behind them",
                  network_rates},
    HardwareValue{"switch_latency", "latency of a switch",
                  [](const Machine& m, double f) -> std::vector<std::string> {
                    const double now = m.fabric->switch_latency.base_units();
                    if (now <= 0) return {};
                    return {fmt::format("cluster.fabric.switch_latency={:.17g} s", now / f)};
                  }},
    HardwareValue{"oversubscription", "oversubscription of leaves and spines", fewer_down},
    HardwareValue{"transport_efficiency", "share of a NIC's rate that collectives reach",
                  [](const Machine& m, double f) {
                    return on_transport(m, "efficiency", "",
                                        std::min(1.0, f * m.transport->efficiency));
                  }},
    HardwareValue{"transport_latency", "latency of a hop between nodes",
                  [](const Machine& m, double f) {
                    return on_transport(m, "hop_latency", "s",
                                        m.transport->hop_latency.base_units() / f);
                  }},
    HardwareValue{"stragglers", "slow GPUs replaced", healthy},
    HardwareValue{"power_cap", "the power cap lifted", lifted_cap},
};

/// What gets no larger on better hardware. With failures at random goodput may, so that of a run it
/// is the healthy step; a job beside a faster neighbour may wait more often, so that it is each job
/// alone; decoding beside faster prompts has more to do at once, so that it is whole requests.
std::vector<std::pair<std::string, double>> costs_of(AnswerKind kind, const Json& answer) {
  std::vector<std::pair<std::string, double>> out;
  const auto add = [&](std::string name, const Json& value) {
    if (value.is_number()) out.emplace_back(std::move(name), value.get<double>());
  };
  switch (kind) {
    case AnswerKind::step:
    case AnswerKind::run:
    case AnswerKind::rl:
      add("step_s", answer.at("step_s"));
      break;
    case AnswerKind::jobs:
      for (const Json& job : answer.at("jobs")) {
        add(job.at("name").get<std::string>() + ": alone_s", job.at("alone_s"));
      }
      break;
    case AnswerKind::serving:
      add("e2e_s.mean", answer.at("e2e_s").at("mean"));
      break;
    case AnswerKind::queue:
      break;
  }
  return out;
}

/// What NCCL chooses for the step's collectives, with the share of each in a blend to a tenth.
std::string algorithms_of(const Scenario& job) {
  std::string out;
  const auto add = [&out](std::string_view algorithm, double share) {
    out += fmt::format("{} {:.1f} ", algorithm, share);
  };
  const StepPlan plan = plan_step(job);
  for (std::size_t pool = 0; pool <= plan.further_pools.size(); ++pool) {
    for (const LayerTransfer& layer : plan.costs(pool).layers) {
      for (const LayerPattern& pattern : layer.patterns) add(pattern.algorithm, pattern.share);
    }
  }
  for (const StagePlan& stage : plan.stages) {
    for (const DataChannel& channel : stage.channels) add(channel.cost.algorithm, 1);
  }
  for (const StageExchange& exchange : plan.exchanges) add(exchange.cost.algorithm, 1);
  return out;
}

/// What other values of a machine make somebody choose otherwise; empty: nothing. NCCL chooses by
/// rates and latencies of NICs and NVLink and knows no fabric; balanced layers make the slowest
/// stage's passes short and know no schedule. What either takes then may suit the job less.
std::string_view choice_moved(const LawSubject& subject, const std::vector<std::string>& sets) {
  const Scenario* const job = subject.job();
  if (job == nullptr) return "";
  const ParsedScenario parsed =
      parse_scenario(subject.file(), write_json(subject.document()), sets);
  const ScenarioFile changed = read_scenario_file(parsed, subject.presets());
  const Scenario* const other = job_of(changed);
  if (other == nullptr) return "";
  if (job->job.parallelism.layers_per_stage != other->job.parallelism.layers_per_stage) {
    return ", with other layers on its stages";
  }
  return algorithms_of(*job) != algorithms_of(*other) ? ", by another algorithm" : "";
}

using Costs = std::vector<std::pair<std::string, double>>;

bool any_worse(const Costs& before, const Costs& after) {
  return std::ranges::any_of(
      std::views::iota(std::size_t{0}, std::min(before.size(), after.size())),
      [&](std::size_t i) { return after[i].second > before[i].second * (1 + kLargestAnomaly); });
}

/// Routers send requests where they see least to do: on better hardware the few of a short load may
/// go otherwise, and meet in worse batches (50 requests: up to 14 %; 5,000: below 0.3 %). Puts
/// costs of many requests in place of these; false where the load has as many, or does not say.
bool asked_of_many(LawSubject& subject, std::vector<std::string> sets, Costs& before,
                   Costs& after) {
  constexpr int kMany = 5000;
  if (subject.kind() != AnswerKind::serving) return false;
  const Json::json_pointer place("/serving/load/requests");
  const Json& document = subject.document();
  if (!document.contains(place) || !document.at(place).is_number()) return false;
  if (document.at(place).get<double>() >= kMany) return false;
  const std::string many = fmt::format("serving.load.requests={}", kMany);
  const Json* const own = subject.changed({many});
  sets.push_back(many);
  const Json* const better = subject.changed(sets);
  if (own == nullptr || better == nullptr) return false;
  before = costs_of(subject.kind(), *own);
  after = costs_of(subject.kind(), *better);
  return true;
}

/// Where paths are hashed, messages that come earlier may meet others on full links: of one draw of
/// the hashes a step went up and down by 2 % as hops got faster, of five by 0.6 %. Puts the mean of
/// five draws in place of these costs; false where nothing is hashed.
bool asked_of_draws(LawSubject& subject, const std::vector<std::string>& sets, Costs& before,
                    Costs& after) {
  const Scenario* const job = subject.job();
  if (subject.kind() != AnswerKind::step || job == nullptr) return false;
  if (job->fabric.routing != Routing::ecmp) return false;
  constexpr int kDraws = 5;
  const auto mean = [&](const std::vector<std::string>& of) {
    Costs sum;
    for (int draw = 1; draw <= kDraws; ++draw) {
      std::vector<std::string> drawn = of;
      drawn.push_back(fmt::format("cluster.fabric.hash_draw={}", draw));
      const Json* const answer = subject.changed(drawn);
      if (answer == nullptr) return Costs{};
      const Costs costs = costs_of(subject.kind(), *answer);
      if (sum.empty()) sum = Costs(costs.size());
      for (std::size_t i = 0; i < costs.size(); ++i) {
        sum[i].first = costs[i].first;
        sum[i].second += costs[i].second / kDraws;
      }
    }
    return sum;
  };
  const Costs own = mean({}), better = mean(sets);
  if (own.empty() || better.empty()) return false;
  before = own;
  after = better;
  return true;
}

void hold_value(const HardwareValue& value, LawSubject& subject, LawBook& book) {
  if (subject.kind() == AnswerKind::queue) {
    return book.does_not_apply("a scheduler may order jobs worse on better hardware");
  }
  const Machine machine = machine_of(subject);
  const Costs own = costs_of(subject.kind(), subject.answer());
  bool moves = false;
  LawBook tried;
  for (const double factor :
       subject.deep() ? std::vector{1.01, 1.1, 1.25, 2.0, 4.0} : std::vector{1.25}) {
    const std::vector<std::string> sets = value.better(machine, factor);
    if (sets.empty()) return book.does_not_apply("the machine has no such value");
    const Json* const answer = subject.changed(sets);
    if (answer == nullptr) continue;
    Costs before = own;
    Costs after = costs_of(subject.kind(), *answer);
    std::string_view why;
    if (any_worse(before, after)) {
      why = choice_moved(subject, sets);
    }
    const bool by_choice = !why.empty();
    if (!by_choice && any_worse(before, after)) {
      if (asked_of_many(subject, sets, before, after))
        why = ", of many requests";
      else if (asked_of_draws(subject, sets, before, after))
        why = ", mean of five hash draws";
    }
    for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      moves = moves || after[i].second != before[i].second;
      tried.no_worse(fmt::format("{} with {:g} times better {}{}", before[i].first, factor,
                                 value.sentence, why),
                     after[i].second, before[i].second, kNoAnomaly,
                     by_choice ? kLargestChoice : kLargestAnomaly);
    }
  }
  if (tried.comparisons() == 0) return book.does_not_apply("a better value is out of bounds");
  if (!moves) return book.does_not_apply("the answer does not depend on it");
  book = std::move(tried);
}

/// A job beside others takes no less than alone, but for anomalies as on better hardware.
void hold_neighbours(LawSubject& subject, LawBook& book) {
  if (subject.kind() != AnswerKind::jobs) return book.does_not_apply("not several jobs");
  for (const Json& job : subject.answer().at("jobs")) {
    book.no_worse(job.at("name").get<std::string>() + " alone", job.at("alone_s").get<double>(),
                  job.at("step_s").get<double>(), kNoAnomaly, kLargestAnomaly);
  }
}

/// More memory takes no job away and changes no step.
void hold_capacity(LawSubject& subject, LawBook& book) {
  if (subject.kind() != AnswerKind::step) return book.does_not_apply("not one training step");
  const Json& before = subject.answer();
  const Json* const after =
      subject.changed(on_nodes(machine_of(subject), "gpu.hbm_capacity", "B", 2,
                               [](const Node& n) { return n.gpu.hbm_capacity.base_units(); }));
  if (after == nullptr) return book.does_not_apply("twice the memory is out of bounds");
  book.same("step_s with twice the memory", after->at("step_s").get<double>(),
            before.at("step_s").get<double>(), 0);
  book.holds("a job that fits goes on to fit with twice the memory",
             !before.at("memory_fits").get<bool>() || after->at("memory_fits").get<bool>());
}

/// Values of the machine said once more, in base units and all digits.
void hold_said_again(LawSubject& subject, LawBook& book) {
  const Machine machine = machine_of(subject);
  for (const HardwareValue& value : kValues) {
    if (value.name == "stragglers" || value.name == "power_cap") continue;
    const std::vector<std::string> sets = value.better(machine, 1);
    if (sets.empty()) continue;
    const Json* const answer = subject.changed(sets);
    if (answer == nullptr) continue;
    const auto before = costs_of(subject.kind(), subject.answer());
    const auto after = costs_of(subject.kind(), *answer);
    for (std::size_t i = 0; i < before.size(); ++i) {
      book.same(fmt::format("{} with {} said again", before[i].first, value.name), after[i].second,
                before[i].second, 0);
    }
  }
  if (book.comparisons() == 0) book.does_not_apply("nothing of the machine is in the answer");
}

}  // namespace

std::vector<Law> hardware_laws() {
  std::vector<Law> out;
  for (const HardwareValue& value : kValues) {
    out.push_back({.name = fmt::format("hardware.{}", value.name),
                   .family = LawFamily::monotony,
                   .sentence = fmt::format("Better hardware slows nothing: {}.", value.sentence),
                   .hold = [&value](LawSubject& subject, LawBook& book) {
                     hold_value(value, subject, book);
                   }});
  }
  out.push_back({"neighbours", LawFamily::monotony, "No job is faster beside others than alone.",
                 hold_neighbours});
  out.push_back({"hardware.memory_capacity", LawFamily::monotony,
                 "More memory takes no job away and changes no step.", hold_capacity});
  out.push_back({"said_again", LawFamily::exactness,
                 "A preset's value that a scenario repeats changes nothing.", hold_said_again});
  return out;
}

}  // namespace lockstep
