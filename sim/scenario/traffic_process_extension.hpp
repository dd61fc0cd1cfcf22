/// Processes beside training steps that code outside the tree gives: when they send over the
/// fabric, and how much. Added, a process is named in "background" of a scenario with jobs:
/// `"process": "bursts"`; its nodes and the jobs' meet on the fabric's links, as "periodic" traffic
/// does.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/extension.hpp"
#include "sim/scenario/shared_scenario.hpp"

namespace lockstep {

/// What a process knows when it is asked for its next round.
struct RoundCall {
  std::size_t round = 0;    ///< its number, from 0
  Seconds now{};            ///< since the jobs began: "start", then the end of the round before
  Seconds took{};           ///< by the round before, with whatever was in its way; 0: there is none
  std::size_t senders = 1;  ///< nodes of "from"
  Bytes size{};             ///< "size", of one of them
};

/// Every sender sends once, to its node of "to", over all of its NICs.
struct TrafficRound {
  Seconds at{};                ///< when it begins, not before RoundCall::now
  std::vector<Bytes> sizes{};  ///< of each sender; 0: it sends nothing; empty: "size" of each
};

struct TrafficProcess {
  std::string name;
  std::string summary{};
  /// The next round; nothing: no more. It is asked when the round before has ended, in a simulation
  /// of the jobs together and once in one of the traffic alone. A pure function, from any thread:
  /// the same call gets the same round, and a random draw is one of the round's number.
  std::function<std::optional<TrafficRound>(const RoundCall& call)> next{};
};

/// Throws ExtensionError as check_extension() does, or for a process without rounds.
void add_traffic_process(TrafficProcess process, int interface = kExtensionInterface);

/// "periodic", which "every" is of, and those that were added behind it.
std::vector<std::string_view> traffic_process_names();
/// Of a place in traffic_process_names(); null: "periodic".
const TrafficProcess* traffic_process(std::size_t place);

/// The next round of `scenario.background[number]`, whose process is an extension; with a size of
/// every sender. Throws InputError at /background/N/process for a round that begins in the past or
/// after 1e6 s, for sizes that are neither 0 nor from one byte to 1e18, or all 0, for too many
/// rounds, and for what the extension throws.
std::optional<TrafficRound> next_round(const SharedScenario& scenario, std::size_t number,
                                       const RoundCall& call);

}  // namespace lockstep
