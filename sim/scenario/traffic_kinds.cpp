#include <array>

#include "sim/scenario/traffic.hpp"

namespace lockstep {
namespace {

using enum TrafficKind;

constexpr std::string_view kPerMessage = "of each message";
constexpr std::string_view kBuffer = "as nccl-tests counts it: the whole buffer";

constexpr std::array kKinds{
    TrafficKindInfo{permutation, "permutation",
                    "every member sends to one other, every member receives from one: one random "
                    "cycle through all of them",
                    kPerMessage, Grain::flows, false},
    TrafficKindInfo{shift, "shift", "every member sends to the one `by` places further",
                    kPerMessage, Grain::flows, false},
    TrafficKindInfo{incast, "incast", "every member sends to the member `root`", kPerMessage,
                    Grain::flows, false},
    TrafficKindInfo{outcast, "outcast", "the member `root` sends to every other", kPerMessage,
                    Grain::flows, false},
    TrafficKindInfo{pairs, "pairs", "a list of senders and receivers", kPerMessage, Grain::flows,
                    false},
    TrafficKindInfo{storage, "storage",
                    "members write to servers, or read from them, in turn: checkpoints, data",
                    kPerMessage, Grain::flows, false},
    TrafficKindInfo{all_to_all, "all_to_all", "every member sends to every other",
                    "as nccl-tests counts it: what one member sends in all, its own part included",
                    Grain::coupled, false, CollectiveOp::all_to_all},
    TrafficKindInfo{send_receive, "send_receive",
                    "every member sends to the next and receives from the one before", kPerMessage,
                    Grain::coupled, false},
    TrafficKindInfo{all_reduce, "all_reduce",
                    "around rings: reduce-scatter, then all-gather; 2 (n - 1) / n of the buffer "
                    "over each edge",
                    kBuffer, Grain::coupled, true, CollectiveOp::all_reduce},
    TrafficKindInfo{all_gather, "all_gather",
                    "around rings: (n - 1) / n of the buffer over each edge", kBuffer,
                    Grain::coupled, true, CollectiveOp::all_gather},
    TrafficKindInfo{reduce_scatter, "reduce_scatter",
                    "around rings: (n - 1) / n of the buffer over each edge", kBuffer,
                    Grain::coupled, true, CollectiveOp::reduce_scatter},
    TrafficKindInfo{broadcast, "broadcast",
                    "from the member `root` to all, along chains: the buffer over each edge",
                    kBuffer, Grain::coupled, true, CollectiveOp::broadcast, true},
    TrafficKindInfo{reduce, "reduce",
                    "sums to the member `root`, along chains: the buffer over each edge", kBuffer,
                    Grain::coupled, true, CollectiveOp::reduce, true},
};

constexpr std::array<std::string_view, 5> kGrains{"flows", "sources", "coupled", "messages",
                                                  "nccl"};

}  // namespace

std::span<const TrafficKindInfo> traffic_kinds() { return kKinds; }
const TrafficKindInfo& info(TrafficKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }
std::span<const std::string_view> grain_names() { return kGrains; }

}  // namespace lockstep
