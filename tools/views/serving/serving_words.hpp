/// What a scenario with "serving" says, in the words that the table and the page share.
#pragma once

#include <string>
#include <string_view>

#include "sim/answer/serving_answer.hpp"

namespace lockstep {

inline constexpr double kServedMegawattHour = 3.6e9;  ///< joules

/// "Replicas" where one pool does all, else "Pool prefill".
std::string pool_label(const ServingPool& pool);
/// "4 x dgx_h100, h100_sxm5_80gb", of each kind of node.
std::string serving_nodes_words(const Cluster& cluster);
/// "8 x TP 4, vllm", and on what, where the cluster has several kinds of node.
std::string replicas_words(const ServingPool& pool, const ServingSpec& spec);
/// "rented at 2.50 an hour", or what a GPU of each pool costs. Requires a price.
std::string serving_rent_words(const ServingSpec& spec);
/// "weights fp8, experts fp4, cache fp8"
std::string formats_words(const ServingSpec& spec);
/// What each request should keep: "TTFT 1.00 s, TPOT 50.0 ms"; empty where nothing is asked of one.
std::string request_limits_words(const ServingObjectives& objectives);
/// "Frankfurt 92 %, Virginia 8 %": where the requests of these users were served.
std::string region_shares_words(const ServingPopulationReport& of);
/// Where what requests saw depends on how long the load is: why. Else empty.
std::string load_course_words(const ServingAnswer& answer);
/// What memory behind the GPUs' caches held, and what it took to get it.
/// "host memory": a tier by its name in the answer.
std::string_view tier_words(std::string_view tier);
std::string cache_tiers_words(const ServingTierReport& tiers);
/// "replicas restarted as planned", and why the others were not. The number stands in front.
std::string restart_words(const ServingAnswer& answer);
/// What adapters took of memory and time. Requires an answer with any.
std::string adapter_words(const ServingAnswer& answer);

/// What the keys and values between the pools took, of time and of the fullest link. Requires two
/// pools.
std::string transfer_words(const ServingAnswer& answer);

}  // namespace lockstep
