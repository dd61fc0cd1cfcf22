/// Writes a rank of a trace as a Chakra execution trace, for ASTRA-sim and whoever reads the
/// schema.
#pragma once

#include <string>

#include "sim/trace/trace.hpp"

namespace lockstep {

/// The protobuf form; node n of the rank has the number n + 1. `duration_micros` is rounded so that
/// a rank's sum stays right; the attribute `duration_picos`, of our own, is exact.
///
/// ASTRA-sim's reader aborts on what the schema allows (tests/sim/trace/astra_sim_rules_test.cpp
/// has each rule with its place): on metadata nodes, on nodes of the CPU and of memory beside those
/// of the GPU. So the groups are in write_trace_groups() alone, and work of the host is a
/// computation of the GPU with an attribute of our own, `lockstep_kind`.
std::string write_chakra(const Trace& trace, int rank);

/// The groups of all ranks as ASTRA-sim takes them, from 1: {"1": [0, 1]}. What reads the traces
/// needs this file.
std::string write_trace_groups(const Trace& trace);

}  // namespace lockstep
