#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"
#include "sim/scenario/names.hpp"
#include "tools/views/comm/comm_traffic.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

struct TrafficAnswer {
  const TrafficScenario& scenario;
  const TrafficReport& report;
  const std::optional<HashAnswer>& hash;

  /// Over all draws, of one of times_of().
  [[nodiscard]] std::optional<HashBand> band(std::size_t which) const {
    if (!hash || hash->draws <= 1) return std::nullopt;
    return hash->bands[which];
  }
};

const FieldTable<TrafficScenario>& traffic_scenario_fields() {
  using Of = TrafficScenario;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("file", "Its file.", [](const Of& s) { return s.file; })
          .add("about", "What it says of itself.", [](const Of& s) { return s.about; })
          .add("node", "Kind of node.", [](const Of& s) { return s.cluster.node.name; })
          .add("nodes", "How many.", [](const Of& s) { return s.cluster.nodes; })
          .add("gpus", "GPUs in all of them.", [](const Of& s) { return s.cluster.gpus(); })
          .add("fabric", "Network between them.", [](const Of& s) { return s.cluster.fabric.name; })
          .add("routing", "How it chooses among its paths.",
               [](const Of& s) { return name_of(s.cluster.fabric.routing); })
          .add("transport", "Network transport.",
               [](const Of& s) { return s.cluster.transport.name; })
          .add("efficiency", Better::more, "Share of a link's rate that payload reaches.",
               [](const Of& s) { return s.efficiency; });
  return fields;
}

struct EntryOfTraffic {
  const TrafficEntry& spec;
  const EntryReport& report;
  std::optional<HashBand> band;
};
std::vector<EntryOfTraffic> entries_of_traffic(const TrafficAnswer& answer) {
  std::vector<EntryOfTraffic> out;
  for (std::size_t e = 0; e < answer.report.entries.size(); ++e) {
    out.push_back({answer.scenario.entries[e], answer.report.entries[e], answer.band(e + 1)});
  }
  return out;
}

/// A number that is there where the entry was simulated alone, too.
template <class Get>
auto where_simulated_alone(Get get) {
  return [get](const EntryOfTraffic& e) -> std::optional<double> {
    if (!(e.report.alone_s > 0)) return std::nullopt;
    return get(e.report);
  };
}

void add_entry_amounts(FieldTable<EntryOfTraffic>& fields) {
  using Of = EntryOfTraffic;
  fields.add("name", "Its name.", [](const Of& e) { return e.report.name; })
      .add("kind", "Its pattern.", [](const Of& e) { return info(e.spec.kind).name; })
      .add("as", "What is simulated one by one.",
           [](const Of& e) { return grain_names()[static_cast<std::size_t>(e.spec.grain)]; })
      .add("members", "Members of a group.", [](const Of& e) { return e.spec.members.count; })
      .add("groups", "Groups that run it side by side.",
           [](const Of& e) { return e.spec.groups.count; })
      .add("messages", "Messages that were simulated one by one.",
           [](const Of& e) { return e.report.messages; })
      .add("pairs", "Pairs of sender and receiver at a time, over all queue pairs.",
           [](const Of& e) { return e.report.pairs; })
      .add("bytes", "Between members, all messages, inside nodes too.",
           [](const Of& e) { return e.report.bytes; })
      .add("nic_bytes", "Of these, what NICs put on the fabric.",
           [](const Of& e) { return e.report.nic_bytes; });
}

const FieldTable<EntryOfTraffic>& traffic_entry_fields() {
  using Of = EntryOfTraffic;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    add_entry_amounts(out);
    out.add("start_s", "When its first message starts.",
            [](const Of& e) { return e.report.start_s; })
        .add("end_s", Better::less, "When its last message ends.",
             [](const Of& e) { return e.report.end_s; })
        .add("time_s", Better::less, "From its start to its end.",
             [](const Of& e) { return e.report.time_s(); })
        .add("mean_s", Better::less, "Time of a message, the mean.",
             [](const Of& e) { return e.report.mean_s; })
        .add("median_s", Better::less, "Time of a message, the median.",
             [](const Of& e) { return e.report.median_s; })
        .add("p99_s", Better::less, "Time of a message that 99 of 100 do not exceed.",
             [](const Of& e) { return e.report.p99_s; })
        .add("max_s", Better::less, "Time of the longest message.",
             [](const Of& e) { return e.report.max_s; })
        .add("nic_bytes_per_s", Better::more,
             "Out of each NIC that sends, from start to end; 0 where none sends.",
             [](const Of& e) { return e.report.nic_bytes_per_s; })
        .add("line_rate_share", Better::more, "The same over the line rate of the fastest NIC.",
             [](const Of& e) { return e.report.line_rate_share; })
        .add("alone_s", Better::less, "time_s without the other entries, where there are several.",
             where_simulated_alone([](const EntryReport& e) { return e.alone_s; }))
        .add("slowdown", Better::less, "time_s over alone_s.",
             where_simulated_alone([](const EntryReport& e) { return e.slowdown(); }))
        .object("hashing", "time_s over the draws of --hash-seeds.", time_band_fields(),
                [](const Of& e) -> const auto& { return e.band; });
    return out;
  }();
  return fields;
}

const FieldTable<TrafficReport::Link>& traffic_link_fields() {
  using Of = TrafficReport::Link;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "From where to where.", [](const Of& l) { return l.name; })
          .add("capacity_bytes_per_s", "Payload that it can carry.",
               [](const Of& l) { return l.capacity_bytes_per_s; })
          .add("bytes", "Payload that crossed it.", [](const Of& l) { return l.bytes; })
          .add("utilisation", "Share of its capacity that was used, mean until the last end.",
               [](const Of& l) { return l.utilisation; });
  return fields;
}

const FieldTable<TrafficAnswer>& traffic_expectation_fields() {
  using Of = TrafficAnswer;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("time_s", "When the last message is to end.",
               [](const Of& a) { return *a.scenario.expect->time; })
          .add("error", "end_s over that, less 1.",
               [](const Of& a) { return traffic_error(a.scenario, a.report); })
          .add("within", "How large that may be, either way.",
               [](const Of& a) { return a.scenario.expect->within; })
          .add("source", "Where the time is from.",
               [](const Of& a) { return a.scenario.expect->source; });
  return fields;
}

const FieldTable<TrafficReport>& traffic_simulation_fields() {
  using Of = TrafficReport;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("flows", "Flows that shared links.", [](const Of& r) { return r.flows; })
          .add("links", "Links that anything crossed.", [](const Of& r) { return r.links_used; });
  return fields;
}

const FieldTable<TrafficAnswer>& traffic_answer_fields() {
  using Of = TrafficAnswer;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("end_s", Better::less, "When all traffic has ended.",
            [](const Of& a) { return a.report.end_s; });
    add_hash_headline(out, "end_s", [](const Of& a) { return a.band(0); });
    out.object("scenario", "What was simulated.", traffic_scenario_fields(),
               [](const Of& a) -> const TrafficScenario& { return a.scenario; })
        .object("hashing", "Draws of the hashes, where they decide anything.", hash_fields(),
                [](const Of& a) -> const auto& { return a.hash; })
        .list("traffic", "Each entry of the scenario.", traffic_entry_fields(), entries_of_traffic)
        .list("links", "The fullest first.", traffic_link_fields(),
              [](const Of& a) -> const auto& { return a.report.links; })
        .add("assumptions", "What was filled in.",
             [](const Of& a) { return a.scenario.assumptions; })
        .add("notes", "What the simulation leaves out.", [](const Of& a) { return a.report.notes; })
        .object("expectation", "What the scenario expects, where it says a time.",
                traffic_expectation_fields(),
                [](const Of& a) -> std::optional<TrafficAnswer> {
                  if (!a.scenario.expect || !a.scenario.expect->time) return std::nullopt;
                  return a;
                })
        .object("simulation", "How much was simulated.", traffic_simulation_fields(),
                [](const Of& a) -> const TrafficReport& { return a.report; });
    return out;
  }();
  return fields;
}

}  // namespace

nlohmann::ordered_json traffic_json(const TrafficScenario& scenario, const TrafficReport& report,
                                    const std::optional<HashAnswer>& hash) {
  return Value(traffic_answer_fields().values({scenario, report, hash})).json();
}

std::vector<FieldInfo> traffic_fields() { return traffic_answer_fields().infos(); }

}  // namespace lockstep
