#include "models/collectives/collective_extension.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <vector>

#include "models/collectives/laws.hpp"

namespace lockstep {

namespace {

/// Of a rate that is what the links carry, for rounding.
constexpr double kRateRounding = 1e-9;

[[noreturn]] void fail_added(const CollectiveAlgorithm& row, const std::string& call,
                             const std::string& problem) {
  throw ExtensionError(
      fmt::format("{}, {}: {}", extension_text("collective", row.name), call, problem));
}

std::string_view name_of_call(CollectiveOp op) {
  return collective_kinds()[static_cast<std::size_t>(op)].name;
}
std::string call_text(const CollectiveContext& context) {
  return fmt::format("{} of {} members on {} node{}", name_of_call(context.op), context.n,
                     context.k, context.k == 1 ? "" : "s");
}

bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

/// What is wrong with a candidate; empty: nothing.
std::string problem_of_line(const CollectiveContext& context, const CollectiveCandidate& line) {
  if (std::ranges::find(kProtocols, line.protocol) == kProtocols.end()) {
    return fmt::format("found the protocol \"{}\"; allowed: {}", line.protocol,
                       fmt::join(kProtocols, ", "));
  }
  const double latency = line.latency.base_units(), per_byte = line.per_byte.base_units();
  const double time = line.time(Bytes{1}).base_units();
  if (!is_amount(latency) || !is_amount(per_byte) || !(time > 0) || !std::isfinite(time)) {
    return fmt::format(
        "found a latency of {} s and {} s a byte; allowed: finite ones of at least 0, not both 0",
        latency, per_byte);
  }
  const double network = line.network_coefficient, nvlink = line.nvlink_coefficient;
  if (!is_amount(network) || !is_amount(nvlink) || (context.k > 1) != (network > 0)) {
    return fmt::format(
        "found {} bytes on a NIC and {} on NVLink for each of payload; allowed: finite ones of at "
        "least 0, on NICs {}",
        network, nvlink, context.k > 1 ? "more, as nodes have to exchange" : "none in one node");
  }
  const BytesPerSecond nic = payload_bandwidth(context.nic, context.transport.efficiency);
  double least = network / nic.base_units();
  if (context.gpu.nvlink_bandwidth > BytesPerSecond{}) {
    least = std::max(least, nvlink / context.gpu.nvlink_bandwidth.base_units());
  }
  if (per_byte < (1 - kRateRounding) * least) {
    return fmt::format("found {} s a byte; allowed: at least the {} s in which links carry it",
                       per_byte, least);
  }
  return {};
}

/// What is wrong with an edge; empty: nothing.
std::string problem_of_edge(std::span<const GroupMember> members, const NetworkEdge& edge) {
  const auto is_member = [&](int end) {
    return end >= 0 && static_cast<std::size_t>(end) < members.size();
  };
  const auto node_of = [&](int end) { return members[static_cast<std::size_t>(end)].node; };
  const bool from = is_member(edge.from), to = is_member(edge.to);
  const bool far = from && to && node_of(edge.from) != node_of(edge.to);
  const bool over_switch = (from && edge.to == kSwitch) || (to && edge.from == kSwitch);
  if ((far || over_switch) && is_amount(edge.bytes) && edge.channels >= 1) return {};
  return fmt::format(
      "found an edge of {} bytes from {} to {} over {} channels; allowed: at least 0 bytes over at "
      "least one, between members on different nodes of 0 to {}, or one and the switches ({})",
      edge.bytes, edge.from, edge.to, edge.channels, members.size() - 1, kSwitch);
}

/// Whatever the extension throws is a mistake of the extension.
template <class Do>
auto guarded(const CollectiveAlgorithm& row, const std::string& call, const Do& act) {
  try {
    return act();
  } catch (const std::exception& error) {
    fail_added(row, call, error.what());
  }
}

}  // namespace

Availability availability_of(const CollectiveAlgorithm& row, const CollectiveContext& context) {
  if (!is_extension(row)) return row.availability(context);
  return guarded(row, call_text(context), [&] { return row.availability(context); });
}

void add_candidates(const CollectiveAlgorithm& row, const CollectiveContext& context,
                    std::vector<CollectiveCandidate>& out) {
  if (!is_extension(row)) return row.law(context, out);
  const std::string call = call_text(context);
  std::vector<CollectiveCandidate> lines;
  guarded(row, call, [&] { row.law(context, lines); });
  if (lines.empty()) fail_added(row, call, "found no candidate; allowed: one or more");
  for (CollectiveCandidate& line : lines) {
    if (const std::string problem = problem_of_line(context, line); !problem.empty()) {
      fail_added(row, call, problem);
    }
    line.algorithm = row.name;
    // The text outlives the extension's.
    line.protocol = *std::ranges::find(kProtocols, line.protocol);
    out.push_back(line);
  }
}

CollectiveShape added_shape(const CollectiveAlgorithm& row, const ShapeCall& call) {
  const std::string what =
      fmt::format("{} of {} members", name_of_call(call.op), call.members.size());
  CollectiveShape shape = guarded(row, what, [&] { return row.shape(call); });
  for (const NetworkEdge& edge : shape.edges) {
    if (const std::string problem = problem_of_edge(call.members, edge); !problem.empty()) {
      fail_added(row, what, problem);
    }
  }
  if (!is_amount(shape.nvlink_coefficient) || !is_amount(shape.bytes_per_pair)) {
    fail_added(row, what, "found bytes on NVLink or of a pair; allowed: finite ones of at least 0");
  }
  return shape;
}

void add_collective(const CollectiveAlgorithm& row, int interface) {
  std::vector<std::string_view> taken;
  for (const CollectiveAlgorithm& other : collective_algorithms()) taken.push_back(other.name);
  check_extension("collective", row.name, interface, taken,
                  taken.size() - own_collective_algorithms().size());
  if (row.availability == nullptr || row.law == nullptr) {
    throw ExtensionError(fmt::format(
        "collective \"{}\": found no availability or no law; allowed: a function each", row.name));
  }
  append_collective_algorithm({.name = kept_text(row.name),
                               .summary = kept_text(row.summary),
                               .source = kept_text(row.source),
                               .availability = row.availability,
                               .law = row.law,
                               .shape = row.shape != nullptr ? row.shape : ring_shape,
                               .added = true});
}

}  // namespace lockstep
