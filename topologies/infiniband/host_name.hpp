/// Which host an InfiniBand adapter sits in, by what it says of itself.
#pragma once

#include <string_view>

namespace lockstep {

struct AdapterName {
  std::string_view host;
  std::string_view device;  ///< "mlx5_0", "HCA-1", "nic 0"; empty: the description names none
};
/// "host1 mlx5_0", "host1_mlx5_0", "host1 HCA-1", "RMD7 ibp11s0f0", "node 1 nic 0".
[[nodiscard]] AdapterName adapter_name(std::string_view description);

/// SHARP's end points in switches are adapters too: "Mellanox Technologies Aggregation Node".
[[nodiscard]] bool is_aggregation_node(std::string_view description);

/// An adapter that says what it is and not where: "MT4129 ConnectX7   Mellanox Technologies".
[[nodiscard]] bool is_unnamed_adapter(std::string_view description);

}  // namespace lockstep
