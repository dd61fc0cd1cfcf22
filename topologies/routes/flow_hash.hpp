/// How switches hash flows onto links: shared by the arithmetic routes of fabric.hpp and the routes
/// over graphs, which choose the same links on the same tree.
#pragma once

#include <cstdint>

#include "topologies/spec/fabric_spec.hpp"

namespace lockstep {

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014, OOPSLA): every input bit reaches every
/// output bit.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// What a draw of the hash (FabricSpec::hash_draw) adds to every flow's: nothing for the first.
constexpr std::uint64_t hash_salt(int draw) {
  return draw == 1 ? 0 : mix_bits(static_cast<std::uint64_t>(draw));
}

/// What a switch reads of a packet: its ends (as the numbers of the NIC links up and down, with
/// `ports` of each) and its queue pair.
constexpr std::uint64_t flow_hash(std::uint32_t from_port, std::uint32_t to_port,
                                  std::uint32_t ports, std::uint64_t queue_pair,
                                  std::uint64_t salt) {
  const std::uint64_t ends = (static_cast<std::uint64_t>(from_port) << 32U) | (ports + to_port);
  return mix_bits(mix_bits(ends) ^ queue_pair ^ salt);
}

/// Which decision of a switch: with its number in its layer, its own part of the hash.
enum class HashLayer : std::uint64_t { leaf = 1, spine_up, core, spine_down, port, other };

/// One of `links` links, by the upper half of the hash (no modulo bias worth naming).
constexpr std::uint32_t pick_link(std::uint64_t flow, HashSeed seed, HashLayer layer,
                                  std::uint32_t number, std::uint32_t links) {
  const std::uint64_t own =
      seed == HashSeed::shared ? 0 : (static_cast<std::uint64_t>(layer) << 32U) | number;
  const std::uint64_t upper = mix_bits(flow ^ mix_bits(own)) >> 32U;
  return static_cast<std::uint32_t>((upper * links) >> 32U);
}

}  // namespace lockstep
