/// The page of a service: what requests saw, where GPU time goes, the load over time.
#pragma once

#include <string>

#include "sim/answer/serving_answer.hpp"

namespace lockstep {

class Behind;
class ClaimCheck;

std::string serving_page(const ServingAnswer& answer, const Behind* behind = nullptr,
                         const ClaimCheck* claim = nullptr);

}  // namespace lockstep
