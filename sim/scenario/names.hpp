/// Names of the choices that scenarios and presets make, as JSON says them.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "models/spec/hardware.hpp"
#include "models/spec/precision.hpp"
#include "models/spec/transformer.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

// In the order of each enumeration.
inline constexpr std::array<std::string_view, 4> kShardingNames{"none", "zero1", "zero2", "zero3"};
inline constexpr std::array<std::string_view, 2> kCongestionControlNames{"none", "dcqcn"};
inline constexpr std::array<std::string_view, 2> kExpertDispatchNames{"all_to_all", "two_level"};
/// Of RecomputeModules, in its order.
inline constexpr std::array<std::string_view, 8> kRecomputeModuleNames{
    "core_attention", "layer_norm", "activation",     "latent_up", "mlp",
    "mlp_up",         "projection", "fused_attention"};
inline constexpr std::array<std::string_view, 3> kContextExchangeNames{"ring", "all_gather",
                                                                       "all_to_all"};
inline constexpr std::array<std::string_view, 2> kTensorOverlapNames{"none", "pieces"};
inline constexpr std::array<std::string_view, 2> kLayerSplitNames{"even", "by_cost"};
inline constexpr std::array<std::string_view, 4> kEndPlaceNames{"automatic", "beside", "layer",
                                                                "stage"};
inline constexpr std::array<std::string_view, 3> kRecomputeNames{"none", "selective", "full"};

/// nccl-tests' names, in the order of CollectiveOp.
inline constexpr std::array<std::string_view, 7> kNcclTestsNames{
    "all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv", "reduce"};

/// Of the formats that a job can train in.
std::vector<std::string_view> precision_names();
std::vector<std::string_view> attention_names();
std::vector<std::string_view> schedule_names();
std::vector<std::string_view> fabric_kind_names();
std::vector<std::string_view> routing_names();
std::vector<std::string_view> sharp_names();

std::string_view name_of(Precision precision);
std::string_view name_of(Sharding sharding);
std::string_view name_of(ContextExchange exchange);
std::string_view name_of(TensorOverlap overlap);
std::string_view name_of(ExpertDispatch dispatch);
std::string_view name_of(Recompute recompute);
std::string_view name_of(Schedule schedule);
/// That of a name's place in schedule_names(), which has none for an order in a file.
Schedule schedule_at(std::size_t place);
std::string_view name_of(AttentionKernel kernel);
std::string_view name_of(FabricKind kind);
std::string_view name_of(Routing routing);

}  // namespace lockstep
