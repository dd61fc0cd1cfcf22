#include "sim/scenario/spec_readers.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

void declare_regime(const DeclaredMembers& member, CollectiveRegime& out) {
  member.required("name", out.name, "Protocol and algorithm that the regime stands for");
  member.required("base", out.base, kLatency, "Of any call");
  member.required("per_step", out.per_step, kLatency, "More per step of the algorithm");
  member.required("bus_bandwidth", out.bus_bandwidth, kRate, "Of long messages");
  member.optional("min_ranks", out.min_ranks, 2, kMaxGpusPerNode, "From which the regime exists");
}

std::vector<CollectiveRegime> read_regimes(const JsonCursor& from) {
  constexpr std::size_t kMostRegimes = 32;
  std::vector<CollectiveRegime> regimes;
  for (const JsonCursor& element : from.elements(kMostRegimes)) {
    CollectiveRegime& regime = regimes.emplace_back();
    declare_regime({element, Extent::whole}, regime);
    element.finish();
  }
  if (regimes.empty()) from.fail("an array of at least one regime");
  return regimes;
}

}  // namespace

std::string read_bare_preset_name(const JsonCursor& from, std::string_view kind,
                                  const PresetStore& presets) {
  if (from.is_missing()) {
    const std::vector<std::string> names = presets.names(kind);
    return names[from.choice(std::vector<std::string_view>(names.begin(), names.end()))];
  }
  std::string name = presets.meant(kind, from.string());
  if (name.empty()) from.fail_name(presets.names(kind));
  return name;
}

std::string read_preset_name(const JsonCursor& from, std::string_view kind,
                             const PresetStore& presets) {
  if (from.is_object()) return read_bare_preset_name(from.at("preset"), kind, presets);
  if (!from.is_string() && !from.is_missing()) {
    from.fail_type("the name of a preset, or an object with \"preset\"");
  }
  return read_bare_preset_name(from, kind, presets);
}

void declare_transport(const DeclaredMembers& member, TransportSpec& out) {
  member.optional("about", text_type(), "What it is",
                  [](const JsonCursor& at) { (void)at.string(); });
  member.required("efficiency", out.efficiency, kEfficiency,
                  "Share of the NIC rate that large collectives reach");
  member.required("hop_latency", out.hop_latency, kLatency,
                  "Per doubling of the node count, small all-reduce");
  member.required("ring_hop_latency", out.ring_hop_latency, kLatency,
                  "Per node of a ring, small all-gather");
  member.required("send_receive_efficiency", out.send_receive_efficiency, kEfficiency,
                  "Share of the NIC rate that one isolated pair reaches");
  member.required("ll128_latency", out.ll128_latency, kLatency,
                  "What messages in LL128 take longer than in LL, per doubling of the node count");
  member.required("simple_latency", out.simple_latency, kLatency, "The same of Simple");
  member.optional("simple_ring_hops", out.simple_ring_hops, kRatio,
                  "A hop of an all-gather's or reduce-scatter's ring in Simple, in "
                  "ring_hop_latency");
  member.optional("ring_message_time", out.ring_message_time, kLatency,
                  "What each message of a ring in Simple holds its connection up for, whatever its "
                  "size (0: the next one follows at once)");
  member.optional("channels_per_peer", out.channels_per_peer, 1, 64,
                  "Connections that a rank opens to another on a different node for send and "
                  "receive, at most: NCCL_NCHANNELS_PER_NET_PEER");
  member.optional("congestion_control", out.congestion_control, kCongestionControlNames,
                  "What slows sources whose messages meet at a switch: none costs nothing; dcqcn "
                  "starts at line rate, is cut too often, and comes back in steps");
}

void read_transport_choice(const JsonCursor& from, const PresetStore& presets, std::string& name,
                           std::optional<TransportSpec>& own) {
  const bool refines = from.is_object() && !from.find("preset");
  if (!refines) {
    // As written: what stands for another word is an assumption of the answer.
    (void)read_preset_name(from, "transports", presets);
    name = from.is_object() ? from.at("preset").string() : from.string();
    own.reset();
  }
  if (!from.is_object()) return;
  if (!own) own = presets.transport(name.empty() ? from.at("preset").string() : name);
  declare_transport({from, Extent::changes}, *own);
  from.finish();
}

void declare_collectives(const DeclaredMembers& member, IntraNodeCollectives& out) {
  member.optional("about", text_type(), "What it is",
                  [](const JsonCursor& at) { (void)at.string(); });
  const auto regimes = [&](std::string_view key, std::vector<CollectiveRegime>& into) {
    member.required(key, shared_type("regimes"), "Of which the fastest is taken",
                    [&](const JsonCursor& at) { into = read_regimes(at); });
  };
  regimes("all_reduce", out.all_reduce);
  regimes("all_gather", out.all_gather);
  regimes("reduce_scatter", out.reduce_scatter);
  regimes("all_to_all", out.all_to_all);
  regimes("send_receive", out.send_receive);
}

}  // namespace lockstep
