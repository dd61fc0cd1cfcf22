/// Options of `lockstep plan` that ask for a plan without a file.
#pragma once

#include <array>
#include <optional>

#include "sim/search/ask_plan.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

inline constexpr OptionSpec kPlanModel{
    "model",
    0,
    "NAME|FILE",
    false,
    "Ask without a plan's file: of this model, a preset or a Hugging Face config.json, trained on "
    "--training tokens, on the servers of --node. Each is a candidate with the layout that is "
    "fastest there, rented where it has a price; what is assumed is said. --set changes the plan "
    "that is made.",
    "--model llama3_70b --training 15T --node dgx_h100,dgx_b200 --time 90d"};
inline constexpr OptionSpec kPlanTraining{"training",
                                          0,
                                          "TOKENS",
                                          false,
                                          "With --model: how many tokens it is trained on. "
                                          "What that costs follows where there is a price: a "
                                          "server's own, or --price.",
                                          "--training \"15 T tokens\""};
inline constexpr OptionSpec kPlanNode{"node",
                                      0,
                                      "NAME,...",
                                      false,
                                      "With --model: the servers to compare (lockstep list nodes).",
                                      "--node dgx_h100,gb200_nvl72"};
inline constexpr OptionSpec kPlanTime{
    "time",
    0,
    "TIME",
    false,
    "With --model: by when it has to be done. Without --gpus two sizes of each server follow: the "
    "least power of two of nodes that is in time at 40 % of the peak, and twice that.",
    "--time \"90 d\""};
inline constexpr OptionSpec kPlanGpus{"gpus",
                                      0,
                                      "N,...",
                                      false,
                                      "With --model: these sizes of each server, in GPUs.",
                                      "--gpus 2048,4096"};
inline constexpr OptionSpec kPlanUsd{
    "usd",
    0,
    "USD",
    false,
    "With --model: what it may cost in all. Every server needs a price: its own, or --price.",
    "--usd 25000000"};
inline constexpr OptionSpec kPlanPrice{"price",
                                       0,
                                       "USD,...",
                                       false,
                                       "With --model: what a GPU costs an hour, one for all "
                                       "servers or one for each of --node, in their "
                                       "order (default: each one's list price, where it has one).",
                                       "--price 2.5,4"};

/// All of them; none of them stands beside a plan's file.
inline constexpr std::array kAskPlanOptions{kPlanModel, kPlanTraining, kPlanNode, kPlanTime,
                                            kPlanGpus,  kPlanUsd,      kPlanPrice};

/// What the options ask; nothing without --model. Throws UsageError where a file is given beside
/// it, or another of these options without it.
std::optional<PlanAsk> plan_ask_of(const ParsedOptions& options);

}  // namespace lockstep
