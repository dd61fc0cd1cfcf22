/// Whether a service keeps what is asked of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/serving_spec.hpp"
#include "sim/serving/serving_figures.hpp"

namespace lockstep {

/// A limit, and what it is held against; of "attained" and "Europe.attained", of users who have
/// limits of their own, both are shares, else seconds.
struct ObjectiveCheck {
  std::string name;  ///< "ttft_p99", "attained"
  double limit = 0, value = 0;
  bool kept = false;
};

/// Share of all requests within every limit of a single one, that of its users where they have any;
/// those refused are not. Of one population alone: share of its own.
double attained_share(const ServingSpec& spec, std::optional<std::size_t> population = {});

/// Each objective; none are asked: none. Requests that were refused break them all.
std::vector<ObjectiveCheck> check_objectives(const ServingSpec& spec,
                                             const ServingFigures& figures);
bool all_kept(const std::vector<ObjectiveCheck>& checks);
/// Whether they still may be, of a load under way: too few requests have ended too late to break
/// one. Looks at limits of requests and at quantiles, not at those of the times between tokens.
bool may_be_kept(const ServingSpec& spec);

/// What has to be kept so that objectives still are where times to the first token are so many
/// times as long, and times per token.
ServingObjectives tightened(ServingObjectives of, double first_token, double per_token);

}  // namespace lockstep
