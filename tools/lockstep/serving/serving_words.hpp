/// What a scenario with "serving" says, in the words that the table and the page share.
#pragma once

#include <string>

#include "sim/answer/serving_answer.hpp"

namespace lockstep {

/// "Replicas" where one pool does all, else "Pool prefill".
std::string pool_label(const ServingPool& pool);
/// "8 x TP 4, vllm"
std::string replicas_words(const ServingPool& pool);
/// "weights fp8, experts fp4, cache fp8"
std::string formats_words(const ServingSpec& spec);
/// What each request should keep: "TTFT 1.00 s, TPOT 50.0 ms"; empty where nothing is asked of one.
std::string request_limits_words(const ServingObjectives& objectives);
/// Where what requests saw depends on how long the load is: why. Else empty.
std::string load_course_words(const ServingAnswer& answer);
/// What memory behind the GPUs' caches held, and what it took to get it.
std::string cache_tiers_words(const ServingTierReport& tiers);

}  // namespace lockstep
