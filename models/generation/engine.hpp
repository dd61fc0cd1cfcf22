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
  Seconds step_host;           ///< GPU idle between steps: scheduling, sampled tokens out
  Seconds sequence_host;       ///< the same, more for every sequence decoded
  Seconds launch_interval = microseconds(4);  ///< host time per kernel where nothing is captured
  double kernels_per_layer = 12;              ///< that a decoding step launches
  double cache_bandwidth = 0.8;               ///< share of HBM's rate at which the cache is read
  double cache_arithmetic = 0.6;  ///< share of the 16-bit peak that attention reaches, at most
  BytesPerSecond refit_rate = gigabytes_per_second(65);  ///< of the model's bytes, to all replicas
  Seconds refit_overhead;  ///< of every change of weights: metadata, caches reset
  double host_copy = 0.5;  ///< share of PCIe's rate at which training state leaves and comes back
  std::optional<ServingEngine> serving;  ///< requests as they come; empty: nobody said how
};

}  // namespace lockstep
