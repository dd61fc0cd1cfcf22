/// Parts of a sweep that other machines compute: each writes one file, and can be run again or
/// twice without harm.
///
/// Beside the database results.db there is a folder results.db.shards/INPUT/ with the files
/// 3-of-40.db, where INPUT names the sweep, its scenario and the presets, so that what was made of
/// others is never mistaken for these. A file is there when it is complete.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/console/console.hpp"
#include "tools/console/options.hpp"
#include "tools/sweep/local_sweep.hpp"

namespace lockstep {

struct Shard {
  int index = 0;  ///< from 0
  int count = 1;
};
/// Slurm's own default for the largest array.
constexpr int kMostShards = 1000;

/// Of "3/40". Throws UsageError.
Shard parse_shard(const std::string& text);

/// Every `count`-th point from the index-th on, so that small and large ones mix.
std::vector<std::uint32_t> points_of_shard(const std::vector<std::uint32_t>& numbers, Shard shard);

std::string shard_folder(const SweepRun& run);
std::string shard_file(const SweepRun& run, Shard shard);

/// Computes a shard, unless its file is there.
Exit run_shard(const SweepRun& run, Shard shard);

/// Takes the files that are there over into the database, but for those in `taken`, to which it
/// adds them. Throws InputError for a file that cannot be read.
void collect_shards(const SweepRun& run, ResultsDb& results, std::set<std::string>& taken);

/// `lockstep sweep collect`: afterwards the database has all that the shards have. Exit::bad_input
/// where points are missing.
Exit collect(const SweepRun& run);

/// How to call this program for a shard: words for a shell, with `index` in place of its number.
ShellText shard_command(const SweepRun& run, const ParsedOptions& options, const ShellText& index,
                        int count, const ShellText& jobs);

/// For those without Slurm: a line for each shard of `count` that has points to compute.
void print_shard_commands(const SweepRun& run, const ParsedOptions& options, int count);

/// Shards of `count` that have one of the missing points.
std::vector<int> shards_with(const std::vector<std::uint32_t>& missing,
                             const std::vector<std::uint32_t>& numbers, int count);

}  // namespace lockstep
