/// Random small jobs on random clusters: scenarios of one training step or of a run of weeks, over
/// what can be written about them.
#pragma once

#include <cstdint>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "sim/core/random.hpp"

namespace lockstep {

enum class RandomFabrics : std::uint8_t {
  symmetric,  ///< ideal ones, and trees whose packets take every way
  hashed,     ///< trees whose hashed routes tell replicas apart
  every,      ///< all kinds and routings, with planes and faults
};

struct JobDrawOptions {
  RandomFabrics fabrics = RandomFabrics::symmetric;
  bool straggler = false;      ///< one GPU is slow
  bool pools = false;          ///< nodes of two kinds
  bool power = false;          ///< "power": a cap, a meter, smoothing
  bool weeks = false;          ///< "run": what fails, checkpoints, recovery, spares
  bool many_replicas = false;  ///< more than the least sample of them, of models of everyday size
  int most_nodes = 64;
};

/// A job whose parts need not fit together: the reader refuses what does not. Nothing where its
/// widths do not divide its GPUs.
std::optional<nlohmann::ordered_json> draw_job(RandomStream& random, const JobDrawOptions& options);

}  // namespace lockstep
