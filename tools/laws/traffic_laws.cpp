// Traffic from inside: what each message moved over each link, and what follows from that alone.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "sim/scenario/read_traffic.hpp"
#include "sim/traffic/simulate_traffic.hpp"
#include "tools/laws/comm_laws.hpp"
#include "tools/laws/said.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kTickSeconds = 1e-12;

/// Traffic that has run. The simulation refers to the scenario.
struct TrafficTrial {
  TrafficScenario scenario;
  std::unique_ptr<TrafficSimulation> simulation;
};

std::unique_ptr<TrafficTrial> traffic_trial(DocumentSubject& subject) {
  subject.count();
  auto out = std::make_unique<TrafficTrial>();
  out->scenario = read_traffic(subject.file(), write_json(subject.document()), subject.presets());
  out->simulation = std::make_unique<TrafficSimulation>(out->scenario);
  out->simulation->run();
  return out;
}

/// Calls use(completion, link, bytes, messages) for each link that each message crossed. Messages
/// of a ring are one completion of all of its edges and steps.
template <class Use>
void for_each_use(const TrafficSimulation& of, Use use) {
  const TrafficPlan& plan = of.plan();
  const auto cross = [&](const Completion& each, FlowIndex flow, double messages) {
    for (const MaxMin::Edge& edge : of.network().flows().edges(flow)) {
      use(each, edge.link, each.bytes * edge.coefficient, messages);
    }
  };
  for (const Completion& each : of.completions()) {
    const Demand& demand = plan.demands()[each.demand];
    const TrafficGroup& group = plan.groups()[demand.group];
    if (demand.next == Demand::kNone) {
      cross(each, each.flow, 1);
      continue;
    }
    for (std::uint32_t d = group.first; d < group.first + group.count; ++d) {
      cross(each, plan.demands()[d].flow, group.steps);
    }
  }
}

// --- conservation ------------------------------------------------------------------------------

struct LinkSums {
  std::vector<double> bytes, messages;  ///< by link
};

LinkSums link_sums(const TrafficSimulation& of) {
  const std::size_t links = of.network().flows().links();
  LinkSums out{std::vector<double>(links), std::vector<double>(links)};
  for_each_use(of, [&](const Completion&, LinkIndex link, double bytes, double messages) {
    out.bytes[link] += bytes;
    out.messages[link] += messages;
  });
  return out;
}

/// Each end is rounded to a tick, in which a link moves so many bytes.
double rounding_of(const TrafficSimulation& of, const LinkSums& sums, LinkIndex link) {
  const double rate = of.network().flows().capacity(link).base_units();
  return kPrinted + sums.messages[link] * kTickSeconds * rate / sums.bytes[link];
}

/// What NICs put on the fabric is what its entries say, and comes out of it into NICs.
void hold_fabric_ends(const TrafficSimulation& of, const LinkSums& sums, const Json& answer,
                      LawBook& book) {
  const TrafficNetwork& network = of.network();
  double in = 0, out = 0, said = 0;
  for (LinkIndex link = 0; link < sums.bytes.size(); ++link) {
    const std::optional<FabricLink> there = network.fabric_link(link);
    if (!there || !network.fabric().joins_nic(*there)) continue;
    (network.enters_fabric(link) ? in : out) += sums.bytes[link];
  }
  for (const Json& entry : answer.at("traffic")) said += entry.at("nic_bytes").get<double>();
  book.same("bytes that NICs send, and those that entries say", said, in, kPrinted);
  book.same("bytes out of the fabric, and into it", out, in, kPrinted);
}

/// The links that the answer names carried what messages moved. A name that several have, as the
/// paces of NCCL's flows, says nothing of one of them.
void hold_named_links(const TrafficSimulation& of, const LinkSums& sums, const Json& answer,
                      LawBook& book) {
  std::multimap<std::string, LinkIndex> named;
  for (LinkIndex link = 0; link < sums.bytes.size(); ++link) {
    if (sums.bytes[link] > 0) named.emplace(of.network().link_name(link), link);
  }
  for (const Json& link : answer.at("links")) {
    const auto name = link.at("name").get<std::string>();
    book.holds(name + " is crossed by a message", named.contains(name));
    if (named.count(name) != 1) continue;
    const LinkIndex there = named.find(name)->second;
    book.same(name + ", as the answer has it", link.at("bytes").get<double>(), sums.bytes[there],
              rounding_of(of, sums, there));
  }
}

void hold_traffic_bytes(DocumentSubject& subject, LawBook& book) {
  if (!is_traffic(subject, book)) return;
  const std::unique_ptr<TrafficTrial> trial = traffic_trial(subject);
  const TrafficSimulation& of = *trial->simulation;
  const LinkSums sums = link_sums(of);
  for (LinkIndex link = 0; link < sums.bytes.size(); ++link) {
    if (sums.bytes[link] == 0) continue;
    book.same(of.network().link_name(link), of.network().flows().carried(link).base_units(),
              sums.bytes[link], rounding_of(of, sums, link));
  }
  hold_named_links(of, sums, subject.answer(), book);
  hold_fabric_ends(of, sums, subject.answer(), book);
}

/// Payload of patterns whose messages are all of the size that is written.
void hold_payload(DocumentSubject& subject, LawBook& book) {
  if (!is_traffic(subject, book)) return;
  const TrafficScenario scenario =
      read_traffic(subject.file(), write_json(subject.document()), subject.presets());
  for (std::size_t i = 0; i < scenario.entries.size(); ++i) {
    const TrafficEntry& entry = scenario.entries[i];
    const TrafficKindInfo& kind = info(entry.kind);
    if (entry.size.varies() || kind.op || kind.is_ring) continue;
    const Json& answer = subject.answer().at("traffic").at(i);
    book.same(entry.name + ": bytes", answer.at("bytes").get<double>(),
              answer.at("pairs").get<double>() * entry.repeat * entry.size.most.base_units(),
              kPrinted);
  }
  if (book.comparisons() == 0) book.does_not_apply("only collectives, or sizes that are drawn");
}

/// Times of an answer fit each other.
void hold_traffic_times(DocumentSubject& subject, LawBook& book) {
  if (!is_traffic(subject, book)) return;
  const Json& answer = subject.answer();
  const auto number = [](const Json& of, const char* name) { return of.at(name).get<double>(); };
  double last = 0;
  for (const Json& entry : answer.at("traffic")) {
    const auto name = entry.at("name").get<std::string>();
    const double end = number(entry, "end_s"), time = number(entry, "time_s");
    last = std::max(last, end);
    book.same_of(name + ": start and time", number(entry, "start_s") + time, end, end, kPrinted);
    book.at_most(name + ": mean", number(entry, "mean_s"), number(entry, "max_s"), kPrinted);
    book.at_most(name + ": median", number(entry, "median_s"), number(entry, "p99_s"), kPrinted);
    book.at_most(name + ": p99", number(entry, "p99_s"), number(entry, "max_s"), kPrinted);
    book.at_most(name + ": longest message", number(entry, "max_s"), time, kPrinted);
    book.at_most(name + ": share of the line rate", number(entry, "line_rate_share"),
                 number(answer.at("scenario"), "efficiency"), 1e-6);
  }
  book.same("end_s", number(answer, "end_s"), last, kPrinted);
  for (const Json& link : answer.at("links")) {
    const auto name = link.at("name").get<std::string>();
    book.same(name + ": use over the time", number(link, "utilisation") * last,
              number(link, "bytes") / number(link, "capacity_bytes_per_s"), 1e-10);
  }
}

// --- closed forms ------------------------------------------------------------------------------

/// A link that has to carry so many bytes takes at least that long: all of them, and each entry's
/// alone, which is the cut of the fabric that the entry crosses there.
void hold_link_bound(DocumentSubject& subject, LawBook& book) {
  if (!is_traffic(subject, book)) return;
  const std::unique_ptr<TrafficTrial> trial = traffic_trial(subject);
  const TrafficSimulation& of = *trial->simulation;
  const Json& answer = subject.answer();
  const std::size_t links = of.network().flows().links();
  std::vector<std::vector<double>> seconds(trial->scenario.entries.size(),
                                           std::vector<double>(links));
  double messages = 0;
  for_each_use(of, [&](const Completion& each, LinkIndex link, double bytes, double count) {
    const TrafficPlan& plan = of.plan();
    const std::uint32_t entry = plan.groups()[plan.demands()[each.demand].group].entry;
    seconds[entry][link] += bytes / of.network().flows().capacity(link).base_units();
    messages += count;
  });
  const auto bounded = [&](const std::string& who, const std::vector<double>& of_links,
                           double time) {
    const auto fullest = std::ranges::max_element(of_links);
    const auto link = static_cast<LinkIndex>(fullest - of_links.begin());
    book.at_most(fmt::format("{}: seconds of {}", who, of.network().link_name(link)), *fullest,
                 time, kPrinted + messages * kTickSeconds / time);
  };
  std::vector<double> all(links);
  for (std::size_t entry = 0; entry < seconds.size(); ++entry) {
    const Json& said = answer.at("traffic").at(entry);
    bounded(said.at("name").get<std::string>(), seconds[entry], said.at("time_s").get<double>());
    for (std::size_t link = 0; link < links; ++link) all[link] += seconds[entry][link];
  }
  bounded("all", all, answer.at("end_s").get<double>());
}

/// Flows that start together with equal bytes rise together until the fullest links are full. Where
/// each flow crosses one of these, all end when those have carried what they have to: water-filling
/// stops at its first level (Bertsekas and Gallager, Data Networks, section 6.5.2).
void hold_symmetric(DocumentSubject& subject, LawBook& book) {
  if (!is_traffic(subject, book)) return;
  const std::unique_ptr<TrafficTrial> trial = traffic_trial(subject);
  const TrafficSimulation& of = *trial->simulation;
  if (trial->scenario.cluster.transport.congestion_control != CongestionControl::none) {
    return book.does_not_apply("its transport starts slowly");
  }
  const std::vector<Completion>& all = of.completions();
  const bool together = std::ranges::all_of(all, [&](const Completion& each) {
    return each.start == all.front().start && each.bytes == all.front().bytes &&
           of.plan().demands()[each.demand].next == Demand::kNone;
  });
  if (!together) return book.does_not_apply("messages differ in their start or their bytes");
  const FlowNetwork& flows = of.network().flows();
  std::vector<double> seconds(flows.links());
  for_each_use(of, [&](const Completion&, LinkIndex link, double bytes, double) {
    seconds[link] += bytes / flows.capacity(link).base_units();
  });
  const double bound = std::ranges::max(seconds);
  const auto held = [&](const Completion& each) {
    return std::ranges::any_of(flows.edges(each.flow), [&](const MaxMin::Edge& edge) {
      return seconds[edge.link] >= bound * (1 - 1e-12);
    });
  };
  if (!std::ranges::all_of(all, held)) {
    return book.does_not_apply("some messages cross none of the fullest links");
  }
  const double within = kPrinted + 4 * kTickSeconds / bound;
  double last = 0;
  for (const Completion& each : all) {
    const Demand& demand = of.plan().demands()[each.demand];
    const double expected = bound + to_seconds(demand.latency).base_units();
    last = std::max(last, to_seconds(each.start).base_units() + expected);
    book.same(of.plan().name_of(demand), to_seconds(each.end - each.start).base_units(), expected,
              within);
  }
  book.same("end_s", subject.answer().at("end_s").get<double>(), last, within);
}

/// Without latencies and pauses, times are bytes over rates and nothing else.
void hold_twice_the_size(DocumentSubject& subject, LawBook& book) {
  if (!is_traffic(subject, book)) return;
  const std::unique_ptr<TrafficTrial> trial = traffic_trial(subject);
  const TrafficScenario& scenario = trial->scenario;
  const TrafficPlan& plan = trial->simulation->plan();
  const bool waits = std::ranges::any_of(scenario.entries, [](const TrafficEntry& entry) {
    return entry.size.varies() || entry.start > Seconds{} || entry.gap > Seconds{} ||
           entry.grain == Grain::nccl;
  });
  const bool delays = std::ranges::any_of(
      plan.demands(), [](const Demand& demand) { return demand.latency > StepTime{}; });
  if (waits || delays || scenario.cluster.transport.congestion_control != CongestionControl::none) {
    return book.does_not_apply("times are not of bytes alone");
  }
  std::vector<std::string> sets;
  double messages = 0;
  for (std::size_t i = 0; i < scenario.entries.size(); ++i) {
    const double size = scenario.entries[i].size.most.base_units();
    sets.push_back(fmt::format("traffic.{}.size={:.17g} B", i, 2 * size));
    messages += extent_of(scenario.entries[i]).messages;
  }
  const Json* const twice = subject.changed(sets);
  if (twice == nullptr) return book.does_not_apply("twice the bytes are out of bounds");
  for (std::size_t i = 0; i < scenario.entries.size(); ++i) {
    const Json& one = subject.answer().at("traffic").at(i);
    const double time = one.at("time_s").get<double>();
    book.same(scenario.entries[i].name + ": time of twice the size",
              twice->at("traffic").at(i).at("time_s").get<double>(), 2 * time,
              kPrinted + 2 * messages * kTickSeconds / time);
  }
}

// --- exactness ---------------------------------------------------------------------------------

void hold_entry_order(DocumentSubject& subject, LawBook& book) {
  if (!is_traffic(subject, book)) return;
  const Json& entries = subject.document().at("traffic");
  if (entries.size() < 2) return book.does_not_apply("one entry");
  Json turned = subject.document();
  turned["traffic"] = Json::array();
  for (std::size_t i = entries.size(); i-- > 0;) turned["traffic"].push_back(entries[i]);
  const Json answer = subject.ask(turned);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Json& one = subject.answer().at("traffic").at(i);
    const Json& other = answer.at("traffic").at(entries.size() - 1 - i);
    const double ticks = 2 * one.at("messages").get<double>() * kTickSeconds;
    for (const char* name : {"bytes", "nic_bytes", "time_s", "end_s"}) {
      const double found = other.at(name).get<double>(), expected = one.at(name).get<double>();
      book.same(fmt::format("{}: {}", one.at("name").get<std::string>(), name), found, expected,
                1e-9 + (expected > 0 && name[0] != 'b' ? ticks / expected : 0));
    }
  }
}

}  // namespace

std::vector<DocumentLaw> traffic_laws() {
  using enum LawFamily;
  return {
      {"bytes", conservation,
       "A link carried what its messages moved; what enters a fabric leaves.", hold_traffic_bytes},
      {"payload", conservation, "Payload is pairs times messages times size.", hold_payload},
      {"times", conservation, "Starts, times, ends and use of links fit each other.",
       hold_traffic_times},
      {"entry_order", exactness, "The order of the entries changes nothing.", hold_entry_order},
      {"link_bound", closed_form, "Nothing ends before its links can have carried its bytes.",
       hold_link_bound},
      {"symmetric", closed_form, "Equal messages over equally full links take the links' time.",
       hold_symmetric},
      {"twice_the_size", closed_form, "Twice the bytes take twice as long.", hold_twice_the_size},
  };
}

}  // namespace lockstep
