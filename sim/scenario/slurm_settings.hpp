/// What becomes of each setting of slurm.conf when a site is imported.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep {

enum class SettingEffect : std::uint8_t {
  acts,      ///< the scenario has it
  harmless,  ///< it does not bear on who waits how long
  matters,   ///< it does, and is not modelled
};

struct SlurmSetting {
  std::string_view name;
  SettingEffect effect;
  std::string_view why;  ///< what it does, where it matters
};

/// Those of slurm.conf, of SchedulerParameters (as "SchedulerParameters.name"), of partitions
/// ("PartitionName.name") and of nodes ("NodeName.name").
std::span<const SlurmSetting> slurm_settings();
/// Null for one that is not known: one of another version, or a mistake.
const SlurmSetting* slurm_setting(std::string_view name);

}  // namespace lockstep
