#include "topologies/infiniband/host_name.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

// What Linux calls RDMA devices, or their network interfaces: kernel drivers mlx4, mlx5, hfi1, qib
// and bnxt_re; rdma-core's persistent names begin with ib or roce; HCA-1 is infiniband-diags' own.
constexpr std::array<std::string_view, 7> kDevices{"mlx4_",   "mlx5_", "hfi1_", "qib",
                                                   "bnxt_re", "HCA-",  "roce"};

bool ends_in_digit(std::string_view text) {
  return !text.empty() && text.back() >= '0' && text.back() <= '9';
}

bool is_device(std::string_view word) {
  if (!ends_in_digit(word)) return false;
  return word.starts_with("ib") || std::ranges::any_of(kDevices, [&](std::string_view prefix) {
           return word.starts_with(prefix);
         });
}

AdapterName split(std::string_view text, std::size_t host_end, std::size_t device) {
  std::string_view host = text.substr(0, host_end);
  while (host.ends_with(' ')) host.remove_suffix(1);
  if (host.empty()) return {.host = text, .device = ""};
  return {.host = host, .device = text.substr(device)};
}

}  // namespace

AdapterName adapter_name(std::string_view description) {
  const std::size_t nic = description.rfind(" nic ");
  if (nic != std::string_view::npos && ends_in_digit(description)) {
    return split(description, nic, nic + 1);
  }
  const std::size_t space = description.rfind(' ');
  if (space != std::string_view::npos && is_device(description.substr(space + 1))) {
    return split(description, space, space + 1);
  }
  for (const std::string_view device : kDevices) {
    const std::size_t at = description.rfind(device);
    if (at == std::string_view::npos || at == 0 || description[at - 1] != '_') continue;
    if (ends_in_digit(description)) return split(description, at - 1, at);
  }
  return {.host = description, .device = ""};
}

bool is_aggregation_node(std::string_view description) {
  return description.find("Aggregation Node") != std::string_view::npos;
}

bool is_unnamed_adapter(std::string_view description) {
  if (!description.starts_with("MT")) return false;
  const std::size_t digits = description.find_first_not_of("0123456789", 2);
  return digits != std::string_view::npos && digits > 2 &&
         description.substr(digits).starts_with(" ConnectX");
}

}  // namespace lockstep
