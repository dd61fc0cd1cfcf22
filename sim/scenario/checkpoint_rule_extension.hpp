/// When the next checkpoint of a run is due, by code outside the tree. Added, a rule is named
/// beside an interval: `"checkpoint": {"interval": "1 h", "rule": "lazy"}`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/extension.hpp"
#include "models/base/units.hpp"

namespace lockstep {

/// What a rule knows when a checkpoint has been taken, or the job trains again.
struct CheckpointCall {
  Seconds now{};            ///< since the run began
  Seconds trained{};        ///< since the job began, or last stood still, with its checkpoints
  std::uint32_t stops = 0;  ///< of the job so far, whatever the reason
  Seconds interval{};       ///< the scenario's, a step at least
  Seconds blocks{};         ///< the job waits so long for one
};

struct CheckpointRule {
  std::string name;
  std::string summary{};
  /// From now until the next one is due; of less than a step, a step. A pure function, from any
  /// thread; asked for every checkpoint of every trajectory.
  std::function<Seconds(const CheckpointCall& call)> next{};
};

/// Throws ExtensionError as check_extension() does, or for a rule without a function.
void add_checkpoint_rule(CheckpointRule rule, int interface = kExtensionInterface);

/// "fixed", the interval as it is, and those that were added behind it.
std::vector<std::string_view> checkpoint_rule_names();

/// A rule that a scenario names, and where.
struct NamedCheckpointRule {
  std::size_t place = 0;  ///< in checkpoint_rule_names()
  std::string pointer;    ///< "/run/checkpoint/rule"
};

/// What `rule` of a file says. Throws InputError at its pointer for a time that is not above 0 and
/// at most 1e9 s, and for what the extension throws. Requires a rule that was added.
Seconds next_checkpoint(const std::string& file, const NamedCheckpointRule& rule,
                        const CheckpointCall& call);

}  // namespace lockstep
