#include "sim/scenario/traffic_process_extension.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kPeriodic = "periodic";
constexpr Seconds kLatestRound{1e6};
constexpr Bytes kMostOfRound{1e18};
/// So that one whose rounds take next to no time does not go on for ever.
constexpr std::size_t kMostRounds = 1'000'000;

std::deque<TrafficProcess>& added_processes() {
  static std::deque<TrafficProcess> processes;
  return processes;
}

bool is_round_size(Bytes size) {
  return size == Bytes{} || (size >= Bytes{1} && size <= kMostOfRound);
}

/// What is wrong with a round, and what is allowed; empty: nothing.
std::pair<std::string, std::string> problem_of_round(const TrafficRound& round,
                                                     const RoundCall& call) {
  if (!(round.at >= call.now && round.at <= kLatestRound)) {
    return {fmt::format("a round at {} s", round.at.base_units()),
            fmt::format("one from {} s, when it is asked, to {} s", call.now.base_units(),
                        kLatestRound.base_units())};
  }
  if (round.sizes.size() != call.senders) {
    return {fmt::format("{} sizes", round.sizes.size()),
            fmt::format("none, or one of each of {} senders", call.senders)};
  }
  const auto wrong = std::ranges::find_if_not(round.sizes, is_round_size);
  if (wrong != round.sizes.end()) {
    return {fmt::format("a size of {} bytes", wrong->base_units()),
            fmt::format("0, or from one byte to {}", kMostOfRound.base_units())};
  }
  if (std::ranges::all_of(round.sizes, [](Bytes size) { return size == Bytes{}; })) {
    return {"a round in which nobody sends", "a sender at least, or no round"};
  }
  return {};
}

}  // namespace

void add_traffic_process(TrafficProcess process, int interface) {
  std::deque<TrafficProcess>& processes = added_processes();
  check_extension("process", process.name, interface, traffic_process_names(), processes.size());
  if (!process.next) {
    throw ExtensionError("process \"" + process.name +
                         "\": found no rounds; allowed: a function that gives the next one");
  }
  processes.push_back(std::move(process));
}

std::vector<std::string_view> traffic_process_names() {
  std::vector<std::string_view> names{kPeriodic};
  for (const TrafficProcess& process : added_processes()) names.push_back(process.name);
  return names;
}

const TrafficProcess* traffic_process(std::size_t place) {
  return place == 0 ? nullptr : &added_processes().at(place - 1);
}

std::optional<TrafficRound> next_round(const SharedScenario& scenario, std::size_t number,
                                       const RoundCall& call) {
  const TrafficProcess* process = scenario.background.at(number).process;
  assert(process != nullptr);
  const auto fail = [&](const std::string& found, const std::string& allowed) {
    throw InputError(
        {.file = scenario.file,
         .pointer = fmt::format("/background/{}/process", number),
         .found = fmt::format("{}, round {}: {}", extension_text("process", process->name),
                              call.round, found),
         .allowed = allowed,
         .nearest = {}});
  };
  if (call.round >= kMostRounds) fail("one more", fmt::format("at most {} rounds", kMostRounds));
  std::optional<TrafficRound> round;
  // Whatever the extension throws is a mistake of the extension.
  try {
    round = process->next(call);
  } catch (const std::exception& error) {
    fail(error.what(), "a round, or no more");
  }
  if (!round) return round;
  if (round->sizes.empty()) round->sizes.assign(call.senders, call.size);
  const auto [found, allowed] = problem_of_round(*round, call);
  if (!found.empty()) fail(found, allowed);
  return round;
}

}  // namespace lockstep
