#include "sim/packet/packet_network.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

bool connected(const PacketNetwork& network, std::span<const LinkIndex> path) {
  for (std::size_t i = 1; i < path.size(); ++i) {
    if (network.links[path[i - 1]].to != network.links[path[i]].from) return false;
  }
  return true;
}

std::string_view mistake(const PacketNetwork& network, const PacketFlow& flow) {
  if (flow.bytes == 0) return "a flow has no bytes";
  if (flow.after != PacketFlow::kNone && (flow.after >= network.flows.size() || flow.lead == 0)) {
    return "a flow passes on one that is not there, or has nothing to begin with";
  }
  if (flow.paths.empty() || flow.paths.front().empty()) return "a flow has no path";
  const auto& first = flow.paths.front();
  for (const std::vector<LinkIndex>& path : flow.paths) {
    if (path.empty() ||
        std::ranges::any_of(path, [&](LinkIndex link) { return link >= network.links.size(); })) {
      return "a path has an unknown link";
    }
    if (path.front() != first.front()) return "the paths of a flow begin with different links";
    if (network.links[path.back()].to != network.links[first.back()].to) {
      return "the paths of a flow end at different vertices";
    }
    if (!connected(network, path)) return "a path is not connected";
  }
  return {};
}

/// The flows that a round names are there, and none was named before.
bool name_once(std::vector<bool>& named, std::uint32_t first, std::uint32_t count) {
  if (count == 0 || std::size_t{first} + count > named.size()) return false;
  for (std::size_t f = first; f < std::size_t{first} + count; ++f) {
    if (named[f]) return false;
    named[f] = true;
  }
  return true;
}

std::string_view mistake_of_rounds(const PacketNetwork& network) {
  std::vector<bool> begins(network.flows.size()), waited_for(network.flows.size());
  for (const PacketRound& round : network.rounds) {
    if (!(round.gap >= Seconds{})) return "a round has a gap below 0";
    if (!name_once(begins, round.first, round.count) ||
        !name_once(waited_for, round.after_first, round.after_count)) {
      return "a round has a flow that is not there, or that another has";
    }
    if (round.after_first >= round.first) return "a round waits for flows behind its own";
  }
  return {};
}

}  // namespace

std::string_view mistake(const PacketNetwork& network) {
  for (const PacketLink& link : network.links) {
    if (!(link.rate > BytesPerSecond{}) || !(link.latency >= Seconds{})) {
      return "a link has no rate, or a latency below 0";
    }
    if (std::max(link.from, link.to) >= network.forwarding.size()) {
      return "a vertex has no forwarding delay";
    }
  }
  for (const PacketFlow& flow : network.flows) {
    if (const std::string_view found = mistake(network, flow); !found.empty()) return found;
  }
  return mistake_of_rounds(network);
}

StepTime serialisation(const PacketLink& link, std::uint64_t bytes) {
  return to_step_time(Bytes{static_cast<double>(bytes)} / link.rate);
}

Seconds path_latency(const PacketNetwork& network, const PacketFlow& flow) {
  Seconds longest;
  for (const std::vector<LinkIndex>& path : flow.paths) {
    Seconds latency;
    for (const LinkIndex link : path) {
      latency += network.links[link].latency + network.forwarding[network.links[link].to];
    }
    longest = std::max(longest, latency);
  }
  return longest;
}

}  // namespace lockstep
