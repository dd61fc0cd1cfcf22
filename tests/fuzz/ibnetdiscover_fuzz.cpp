// Fuzz target: whatever bytes a network description has, reading it gives a subnet or an InputError
// of one line. A subnet is then routed by every engine, and its net file reads back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/base/input_error.hpp"
#include "topologies/infiniband/forwarding.hpp"
#include "topologies/infiniband/ibnetdiscover.hpp"
#include "topologies/infiniband/ibsim_net.hpp"
#include "topologies/infiniband/lft_dump.hpp"

namespace {

void check(const lockstep::InputError& error) {
  const std::string_view line = error.what();
  if (line.find('\n') != std::string_view::npos || line.empty()) std::abort();
}

void use(const lockstep::InfinibandSubnet& subnet) {
  for (const lockstep::InfinibandEngine& engine : lockstep::infiniband_engines()) {
    const lockstep::LidTables tables = engine.route(subnet, {}).tables;
    (void)lockstep::forwarding_tables(subnet, tables);
    (void)lockstep::write_lft_dump(subnet, tables);
  }
  const auto back = lockstep::read_ibnetdiscover("net", lockstep::write_ibsim(subnet)).subnet;
  if (back.graph.cables().size() != subnet.graph.cables().size()) std::abort();
}

}  // namespace

// The first byte says whether loose ends are cut; what follows the first 0 is read as a dump.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t end = bytes.find('\0');
  lockstep::IbnetdiscoverOptions options;
  options.cut_dangling = data[0] % 2 == 1;
  try {
    const auto subnet = lockstep::read_ibnetdiscover("fuzz", bytes.substr(0, end), options).subnet;
    use(subnet);
    if (end != std::string_view::npos) {
      (void)lockstep::read_lft_dump("fuzz.lfts", bytes.substr(end + 1), subnet);
    }
  } catch (const lockstep::InputError& error) {
    check(error);
  }
  return 0;
}
