#include "models/accuracy/residuals.hpp"

#include <set>
#include <tuple>

namespace lockstep {

SoftwareKnown software_known(const ResidualTable& table, const PredictionTraits& traits,
                             std::string_view without) {
  SoftwareKnown known = SoftwareKnown::none;
  for (const Residual& r : table) {
    if (r.source == without || r.traits.stack != traits.stack) continue;
    if (r.traits.release == traits.release && !traits.release_stands_in) {
      return SoftwareKnown::release;
    }
    known = SoftwareKnown::stack;
  }
  return known;
}

void classify(ResidualTable& table) {
  // One row of each source, stack and release says what all of them would.
  ResidualTable distinct;
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> seen;
  for (const Residual& r : table) {
    if (seen.emplace(r.source, r.traits.stack, r.traits.release).second) distinct.push_back(r);
  }
  for (Residual& r : table) r.left_out_known = software_known(distinct, r.traits, r.source);
}

std::string_view name_of(SoftwareKnown known) {
  switch (known) {
    case SoftwareKnown::release:
      return "known release";
    case SoftwareKnown::stack:
      return "other release";
    case SoftwareKnown::none:
      return "unknown";
  }
  return {};
}

std::string_view kind_of(const PredictionTraits& traits) {
  return traits.experts ? "experts" : traits.sharded_weights ? "sharded weights" : "dense";
}

}  // namespace lockstep
