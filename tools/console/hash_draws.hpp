/// --hash-seeds N of `lockstep run`, `comm` and `replay`: the band of an answer's numbers over
/// draws of an ECMP fabric's hashes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/answer/hash_answer.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

inline constexpr OptionSpec kHashSeedsOption{
    "hash-seeds",
    0,
    "N",
    false,
    "On a fabric with hashed paths (ECMP): simulate N draws of the hashes, from "
    "cluster.fabric.hash_draw (1) on, and print the least, the median and the longest time. The "
    "rest of the answer is that of the first draw.",
    "--hash-seeds 20"};

/// Draws that an answer is asked for, and what they are of.
struct HashDraws {
  int first = 1;
  int count = 1;
  int threads = 1;
};

/// What --hash-seeds and --jobs say; one draw without. Throws InputError where the fabric hashes
/// nothing, UsageError for no number of draws.
HashDraws hash_draws_of(const ParsedOptions& options, const std::string& file,
                        const FabricSpec& fabric, int nodes, const NicPorts& ports);

/// `times` gives the times of one draw of the fabric, always as many; those of the first draw are
/// known. As many draws at once as there are threads, with the same answer for any number of them.
HashAnswer answer_of_draws(const HashDraws& draws, std::vector<double> first, Console& console,
                           const std::function<std::vector<double>(int draw)>& numbers);

}  // namespace lockstep
