/// What an inference engine does while it answers prompts: a statement about software, read from
/// models/presets/engines.
#pragma once

#include <optional>
#include <string>

#include "models/base/units.hpp"
#include "models/generation/serving_engine.hpp"

namespace lockstep {

struct EngineSpec {
  std::string name;
  std::string about;
  double memory_fraction = 0.9;    ///< of the card: weights, workspaces and the cache
  Bytes workspace = gibibytes(4);  ///< of that fraction: activations, captured graphs, contexts
  int most_sequences = 1024;       ///< that a replica decodes at once
  int prefill_tokens = 8192;       ///< of prompts that one pass takes
  bool graphs = true;              ///< decoding is captured in CUDA graphs
  bool reserves = false;       ///< a sequence joins when its longest response would fit to its end
  bool shared_prompts = true;  ///< responses to one prompt share its prefill (prefix caching)
  /// GPU idle between passes of a rollout, and more for every sequence, where the engine runs
  /// inside of the trainer's processes; empty: as where it serves.
  std::optional<Seconds> step_host, sequence_host;
  BytesPerSecond refit_rate = gigabytes_per_second(65);  ///< of the model's bytes, to all replicas
  Seconds refit_overhead;  ///< of every change of weights: metadata, caches reset
  double host_copy = 0.5;  ///< share of PCIe's rate at which training state leaves and comes back
  std::optional<ServingEngine> serving;  ///< its passes; empty: nobody said what they take

  /// The passes of a rollout: this memory, these host times. Requires `serving`.
  [[nodiscard]] ServingEngine rollout() const;
};

}  // namespace lockstep
