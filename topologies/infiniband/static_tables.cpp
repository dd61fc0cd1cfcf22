#include "topologies/infiniband/static_tables.hpp"

#include <cassert>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "models/base/input_error.hpp"
#include "topologies/infiniband/forwarding.hpp"
#include "topologies/infiniband/lft_dump.hpp"
#include "topologies/infiniband/subnet.hpp"

namespace lockstep {
namespace {

const RoutingInfo& info(Routing routing) { return routings()[static_cast<std::size_t>(routing)]; }

const InfinibandEngine& engine(std::string_view name) {
  for (const InfinibandEngine& row : infiniband_engines()) {
    if (row.name == name) return row;
  }
  assert(false && "a static routing is an engine of topologies/infiniband or a dump");
  return infiniband_engines().front();
}

/// Either the tables or what is wrong.
std::optional<FabricProblem> make_tables(const FabricSpec& spec, const ClusterGraph& graph,
                                         ForwardingTables& out) {
  const std::string name(info(spec.routing).name);
  if (spec.routing == Routing::tables && !spec.tables_text) {
    return FabricProblem{"tables", "nothing", "the name of a file that opensm dumped"};
  }
  std::optional<InfinibandSubnet> subnet;
  try {
    subnet = infiniband_subnet(graph, "the fabric");
  } catch (const InputError& error) {
    return FabricProblem{"routing", in_quotes(name),
                         fmt::format("a routing other than InfiniBand's: {}", error.what())};
  }
  if (spec.routing == Routing::tables) {
    out = forwarding_tables(*subnet, read_lft_dump(spec.tables, *spec.tables_text, *subnet));
    return {};
  }
  const InfinibandRouting routing = engine(name).route(*subnet, {});
  if (!routing.refusal.empty()) {
    return FabricProblem{
        "routing", in_quotes(name),
        fmt::format("{}, to which opensm falls back here: {}", routing.engine, routing.refusal)};
  }
  out = forwarding_tables(*subnet, routing.tables);
  return {};
}

}  // namespace

std::optional<FabricProblem> check_static_tables(const FabricSpec& spec,
                                                 const ClusterGraph& graph) {
  if (!info(spec.routing).is_static) return {};
  ForwardingTables tables;
  return make_tables(spec, graph, tables);
}

std::shared_ptr<const ForwardingTables> static_tables(const FabricSpec& spec,
                                                      const ClusterGraph& graph) {
  if (!info(spec.routing).is_static) return nullptr;
  auto out = std::make_shared<ForwardingTables>();
  const std::optional<FabricProblem> problem = make_tables(spec, graph, *out);
  assert(!problem);
  return out;
}

}  // namespace lockstep
