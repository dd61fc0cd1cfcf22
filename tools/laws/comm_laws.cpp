#include "tools/laws/comm_laws.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/comm_collective.hpp"
#include "sim/fabric/hash_band.hpp"
#include "sim/scenario/read_traffic.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "tools/laws/said.hpp"
#include "tools/views/comm/comm_collective_output.hpp"
#include "tools/views/comm/comm_traffic.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNamedLinks = 10;  // as lockstep comm prints

bool hashes(const Cluster& cluster) {
  return is_hashed(cluster.fabric, cluster.nodes, nic_ports(cluster.node));
}

// --- exactness ---------------------------------------------------------------------------------

void hold_comm_asked_twice(DocumentSubject& subject, LawBook& book) {
  book.same_text("the answer", write_json(subject.ask(subject.document())),
                 write_json(subject.answer()));
}

/// Assumptions are listed as keys are read.
void hold_comm_key_order(DocumentSubject& subject, LawBook& book) {
  Json turned = subject.ask(with_keys_reversed(subject.document()));
  Json straight = subject.answer();
  for (Json* const each : {&turned, &straight}) each->erase("assumptions");
  book.same_text("the answer", write_json(turned), write_json(straight));
}

void hold_hash_threads(DocumentSubject& subject, LawBook& book,
                       const std::vector<std::string>& presets) {
  if (!hashes(checked_cluster(subject))) return book.does_not_apply("no routes are hashed");
  if (subject.about() == "collective" && subject.answer().at("nodes").get<int>() == 1) {
    return book.does_not_apply("its members are in one NVLink domain");
  }
  const Commands commands(subject, presets);
  const auto drawn = [&](const char* threads) {
    return commands.run(
        {"comm", commands.file(), "--hash-seeds", "3", "-j", threads, "--format", "json"});
  };
  const Said one = drawn("1"), three = drawn("3");
  if (one.exit == Exit::assertion_missed) return book.does_not_apply("its own claim is missed");
  if (!answered("comm --hash-seeds", one, book)) return;
  book.same_text("the answer over draws on 3 threads", three.out, one.out);
}

// --- better hardware ---------------------------------------------------------------------------

// As sim/laws/hardware_laws.cpp has them: fair shares may make a faster link slow a whole by a
// little (anomalies are named), and NCCL chooses by rules that know no fabric.
constexpr double kCommAnomaly = 0.02, kCommChoice = 10, kCommTicks = 1e-6;

/// What gets no larger on better hardware: an entry alone, of whose messages none waits for
/// another, or a row.
struct CommCost {
  std::string name;
  double seconds = 0;
  std::string choice;  ///< what NCCL takes
};

std::vector<CommCost> comm_costs(const Json& answer) {
  std::vector<CommCost> out;
  if (answer.contains("rows")) {
    for (const Json& row : answer.at("rows")) {
      out.push_back(
          {fmt::format("{} of {:.0f} B", row.at("op").get<std::string>(),
                       row.at("size_bytes").get<double>()),
           row.at("time_s").get<double>(),
           fmt::format("{} {} {}", row.at("algorithm").get<std::string>(),
                       row.at("protocol").get<std::string>(), row.at("channels").get<int>())});
    }
    return out;
  }
  for (const Json& entry : answer.at("traffic")) {
    const Json& time = entry.contains("alone_s") ? entry.at("alone_s") : entry.at("time_s");
    out.push_back({entry.at("name").get<std::string>(), time.get<double>(),
                   entry.at("as") == "nccl" ? "as NCCL" : ""});
  }
  return out;
}

/// A value of the machine, and what makes it better by a factor; none where there is none.
struct CommValue {
  const char* name;
  const char* sentence;
  std::vector<std::string> (*better)(const Cluster& cluster, double factor);
};

std::string set_text(const char* path, double value, const char* unit) {
  return fmt::format("cluster.{}={:.17g}{}", path, value, unit);
}

constexpr CommValue kCommValues[] = {
    {"network_bandwidth", "bandwidth of NICs and of the links behind them",
     [](const Cluster& c, double f) {
       std::vector<std::string> out;
       if (c.node.nics == 0) return out;
       out.push_back(set_text("node.nic_bandwidth", f * c.node.nic_bandwidth.base_units(), " B/s"));
       if (c.fabric.link_bandwidth > BytesPerSecond{}) {
         out.push_back(
             set_text("fabric.link_bandwidth", f * c.fabric.link_bandwidth.base_units(), " B/s"));
       }
       return out;
     }},
    {"nvlink_bandwidth", "NVLink bandwidth",
     [](const Cluster& c, double f) {
       const double now = c.node.gpu.nvlink_bandwidth.base_units();
       if (now <= 0) return std::vector<std::string>{};
       return std::vector{set_text("node.gpu.nvlink_bandwidth", f * now, " B/s")};
     }},
    {"switch_latency", "latency of a switch",
     [](const Cluster& c, double f) {
       const double now = c.fabric.switch_latency.base_units();
       if (now <= 0) return std::vector<std::string>{};
       return std::vector{set_text("fabric.switch_latency", now / f, " s")};
     }},
    {"oversubscription", "oversubscription of leaves",
     [](const Cluster& c, double f) {
       const double now = c.fabric.leaf_oversubscription;
       const bool every = c.fabric.routing == Routing::spray;
       if (now <= 1 || !every) return std::vector<std::string>{};
       return std::vector{set_text("fabric.leaf_oversubscription", std::max(1.0, now / f), "")};
     }},
};

void hold_comm_value(const CommValue& value, DocumentSubject& subject, LawBook& book) {
  const Cluster cluster = checked_cluster(subject);
  const std::vector<CommCost> before = comm_costs(subject.answer());
  LawBook tried;
  bool moves = false;
  for (const double factor : subject.deep() ? std::vector{1.1, 1.25, 2.0, 4.0} : std::vector{2.0}) {
    const std::vector<std::string> sets = value.better(cluster, factor);
    if (sets.empty()) return book.does_not_apply("the machine has no such value");
    const Json* const answer = subject.changed(sets);
    if (answer == nullptr) continue;
    const std::vector<CommCost> after = comm_costs(*answer);
    for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      const bool anew = after[i].choice != before[i].choice || before[i].choice == "as NCCL";
      moves = moves || after[i].seconds != before[i].seconds;
      tried.no_worse(
          fmt::format("{} with {:g} times better {}", before[i].name, factor, value.sentence),
          after[i].seconds, before[i].seconds, kCommTicks, anew ? kCommChoice : kCommAnomaly);
    }
  }
  if (tried.comparisons() == 0) return book.does_not_apply("a better value is out of bounds");
  if (!moves) return book.does_not_apply("the answer does not depend on it");
  book = std::move(tried);
}

// --- agreement ---------------------------------------------------------------------------------

void hold_comm_command(DocumentSubject& subject, LawBook& book,
                       const std::vector<std::string>& presets) {
  const Commands commands(subject, presets);
  const Said said = commands.run({"comm", commands.file(), "--format", "json"});
  if (said.exit == Exit::assertion_missed) return book.does_not_apply("its own claim is missed");
  if (!answered("comm", said, book)) return;
  Json found = said.json(), expected = subject.answer();
  for (Json* const each : {&found, &expected}) {
    for (const char* member : {"lockstep_version", "hashing", "claim"}) each->erase(member);
    if (each->contains("scenario")) (*each)["scenario"].erase("file");
  }
  book.same_text("the answer of comm and of the library", write_json(found), write_json(expected));
}

constexpr std::string_view kInBoth[] = {"all_reduce", "all_gather", "reduce_scatter",
                                        "all_to_all", "broadcast",  "reduce"};
bool in_both(const std::string& op) { return std::ranges::find(kInBoth, op) != std::end(kInBoth); }

/// Both take NCCL's choice; a collective finds its links' share by a formula, traffic by
/// simulation.
constexpr double kBoth = 1e-6;

/// Each operation of a collective, at its largest size, as an entry of traffic.
void hold_collective_as_traffic(DocumentSubject& subject, LawBook& book) {
  const Json& collective = subject.document().at("collective");
  for (const auto& [key, value] : collective.items()) {
    if (key == "op" || key == "sizes" || key == "ranks") continue;
    return book.does_not_apply("traffic has no " + key);
  }
  for (const Json& row : subject.answer().at("operations")) {
    const auto op = row.at("op").get<std::string>();
    if (!in_both(op)) continue;
    const Json entry{{"kind", op},
                     {"size", fmt::format("{:.0f} B", row.at("size_bytes").get<double>())},
                     {"members", {{"of", "gpus"}, {"count", subject.answer().at("ranks")}}}};
    const Json traffic{{"cluster", subject.document().at("cluster")},
                       {"traffic", Json::array({entry})}};
    book.same(op, subject.ask(traffic).at("end_s").get<double>(), row.at("time_s").get<double>(),
              kBoth);
  }
  if (book.comparisons() == 0) book.does_not_apply("none of its operations is a kind of traffic");
}

/// Each entry that NCCL runs once among the first GPUs, as a collective.
void hold_traffic_as_collective(DocumentSubject& subject, LawBook& book) {
  const TrafficScenario scenario =
      read_traffic(subject.file(), write_json(subject.document()), subject.presets());
  if (scenario.efficiency != scenario.cluster.transport.efficiency) {
    return book.does_not_apply("collectives have the transport's efficiency");
  }
  for (std::size_t i = 0; i < scenario.entries.size(); ++i) {
    const TrafficEntry& entry = scenario.entries[i];
    const MemberSpec& who = entry.members;
    const std::string op(info(entry.kind).name);
    const bool first = !who.nics && who.first_node == 0 && who.first == 0 && who.stride == 1 &&
                       !who.shuffle_seed && entry.groups.count == 1 && entry.root == 0;
    if (entry.grain != Grain::nccl || !in_both(op) || !first || entry.repeat > 1 ||
        entry.size.varies()) {
      continue;
    }
    const Json collective{
        {"op", op},
        {"sizes", Json::array({fmt::format("{:.17g} B", entry.size.most.base_units())})},
        {"ranks", who.count}};
    const Json& said = subject.answer().at("traffic").at(i);
    const double time = said.at(said.contains("alone_s") ? "alone_s" : "time_s").get<double>();
    book.same(
        entry.name, time,
        subject.ask({{"cluster", subject.document().at("cluster")}, {"collective", collective}})
            .at("largest_time_s")
            .get<double>(),
        kBoth);
  }
  if (book.comparisons() == 0) book.does_not_apply("no entry that a collective could say");
}

void hold_both(DocumentSubject& subject, LawBook& book) {
  const Cluster cluster = checked_cluster(subject);
  if (hashes(cluster)) return book.does_not_apply("their routes are hashed apart");
  if (cluster.transport.congestion_control != CongestionControl::none) {
    return book.does_not_apply("the start of its transport is a formula there");
  }
  if (subject.about() == "traffic") return hold_traffic_as_collective(subject, book);
  hold_collective_as_traffic(subject, book);
}

std::vector<DocumentLaw> shared_laws(const std::vector<std::string>& presets) {
  using enum LawFamily;
  std::vector<DocumentLaw> out{
      {"asked_twice", exactness, "The same question has the same answer, byte for byte.",
       hold_comm_asked_twice},
      {"key_order", exactness, "The order of keys in a file changes nothing.", hold_comm_key_order},
      {"threads", exactness, "Draws of the hashes do not depend on the number of threads.",
       [presets](DocumentSubject& subject, LawBook& book) {
         hold_hash_threads(subject, book, presets);
       }},
      {"comm", agreement, "lockstep comm says what the library answers.",
       [presets](DocumentSubject& subject, LawBook& book) {
         hold_comm_command(subject, book, presets);
       }},
      {"traffic_and_collective", agreement,
       "A collective takes the same time as traffic and by itself.", hold_both}};
  for (const CommValue& value : kCommValues) {
    out.push_back({fmt::format("hardware.{}", value.name), monotony,
                   fmt::format("Better hardware slows nothing: {}.", value.sentence),
                   [&value](DocumentSubject& subject, LawBook& book) {
                     hold_comm_value(value, subject, book);
                   }});
  }
  return out;
}

}  // namespace

Cluster checked_cluster(const DocumentSubject& subject) {
  const JsonCursor root = JsonCursor::parse(subject.file(), write_json(subject.document()));
  return read_cluster(root.at("cluster"), subject.presets());
}

bool is_traffic(const DocumentSubject& subject, LawBook& book) {
  if (subject.about() == "traffic") return true;
  book.does_not_apply("no traffic");
  return false;
}

nlohmann::ordered_json comm_answer(const std::string& file, const std::string& text,
                                   const PresetStore& presets) {
  const JsonCursor root = JsonCursor::parse(file, text);
  refuse_other_document(root, "comm", "a scenario of traffic or collectives");
  if (root.find("collective")) return collective_json(run_collective_study(root, presets));
  const TrafficScenario scenario = read_traffic(root, presets);
  return traffic_json(scenario, simulate_traffic(scenario, kNamedLinks));
}

std::vector<DocumentLaw> comm_laws(const std::vector<std::string>& presets) {
  std::vector<DocumentLaw> out = shared_laws(presets);
  std::ranges::move(traffic_laws(), std::back_inserter(out));
  std::ranges::move(collective_laws(), std::back_inserter(out));
  std::ranges::stable_sort(out, {}, &DocumentLaw::family);
  return out;
}

}  // namespace lockstep
