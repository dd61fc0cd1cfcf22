/// Releases of engines that launched decoding kernels one by one, before they captured graphs. No
/// preset is of them; rows that were measured with one are predicted with what its host takes.
#pragma once

#include <optional>
#include <string>

#include "models/generation/serving_replica.hpp"
#include "sim/measured/serving_rows.hpp"

namespace lockstep {

/// The host of such a release, beside cards of one generation.
struct EagerRelease {
  std::string_view engine, release, architecture;
  Seconds step;   ///< GPU idle between passes
  Seconds layer;  ///< least time of a layer in a pass that decodes
};
std::optional<EagerRelease> eager_release(const ServingRow& row);

/// Passes of a replica behind such a host.
class EagerClock final : public PassClock {
 public:
  EagerClock(ServingReplica& replica, const EagerRelease& host) : replica_(replica), host_(host) {}
  ServingPass pass(const PassLoad& load) override;

 private:
  ServingReplica& replica_;
  EagerRelease host_;
};

}  // namespace lockstep
