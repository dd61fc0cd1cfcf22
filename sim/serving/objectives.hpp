/// Whether a service keeps what is asked of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/scenario/serving_spec.hpp"
#include "sim/serving/serving_figures.hpp"

namespace lockstep {

/// A limit, and what it is held against; of "attained" both are shares, else seconds.
struct ObjectiveCheck {
  std::string name;  ///< "ttft_p99", "attained"
  double limit = 0, value = 0;
  bool kept = false;
};

/// Share of all requests within every limit of a single one; those refused are not.
double attained_share(std::span<const ServedRequest> requests, const ServingObjectives& of);

/// Each objective; none are asked: none. Requests that were refused break them all.
std::vector<ObjectiveCheck> check_objectives(std::span<const ServedRequest> requests,
                                             const ServingFigures& figures,
                                             const ServingObjectives& of);
bool all_kept(const std::vector<ObjectiveCheck>& checks);
/// Whether they still may be, of a load under way: too few requests have ended too late to break
/// one. Looks at limits of requests and at quantiles, not at those of the times between tokens.
bool may_be_kept(std::span<const ServedRequest> requests, const ServingObjectives& of);

/// What has to be kept so that objectives still are where times to the first token are so many
/// times as long, and times per token.
ServingObjectives tightened(ServingObjectives of, double first_token, double per_token);

}  // namespace lockstep
