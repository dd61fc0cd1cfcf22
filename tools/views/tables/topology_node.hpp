/// A server's description as a node preset.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "topologies/formats/node_drawing.hpp"

namespace lockstep {

/// What the command line adds to what a description tells.
struct NodeChoices {
  std::string gpu;        ///< preset; empty: as described
  std::string transport;  ///< preset; empty: as described
  BytesPerSecond rate;    ///< of a NIC; 0: as described
  bool all_nics = false;  ///< those too that are nearest to no GPU
  int nics = 0;           ///< how many, where the description lists none; 0: not said
};

struct NodePreset {
  std::string json;  ///< a preset file, which `cluster.node` of a scenario takes inline too
  std::vector<std::string> facts;        ///< what was found, a line each
  std::vector<std::string> assumptions;  ///< what could not be known
};

/// Throws InputError where the description lacks what nothing can stand for, and says which option
/// tells it. `source`: what the preset names as its source.
NodePreset node_preset(const std::string& file, const NodeDrawing& node, const std::string& source,
                       const NodeChoices& choices, const PresetStore& presets);

}  // namespace lockstep
