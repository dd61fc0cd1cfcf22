/// Where a cluster stands, as its preset has it.
#pragma once

#include <optional>
#include <string>

#include "models/base/units.hpp"

namespace lockstep {

/// What every command takes from a cluster preset beside its nodes and its fabric, unless the
/// scenario says otherwise. All of it empty where no preset was named.
struct ClusterSite {
  std::string name;                  ///< of the cluster's preset
  std::string facility;              ///< name of the preset of what is around the machines
  std::string reliability;           ///< name of the preset of its failure rates; empty: unknown
  std::optional<Watts> power_limit;  ///< what the site can draw
};

}  // namespace lockstep
