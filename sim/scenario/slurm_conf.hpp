/// Slurm's own files as text: lines of KEY=VALUE, tables of sacct and sacctmgr, times and amounts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// A line of slurm.conf or topology.conf: its pairs in their order.
struct SlurmLine {
  std::size_t number = 0;
  std::vector<std::pair<std::string, std::string>> pairs;

  /// The value of a key, whatever its case; empty: there is none.
  [[nodiscard]] std::string get(std::string_view key) const;
};

/// Lines that say something; comments are dropped, "\" at an end joins two. What is no pair is told
/// in `notes`, a line each, and left out.
std::vector<SlurmLine> slurm_lines(const std::string& file, std::string_view text,
                                   std::vector<std::string>& notes);

/// Whether two keys are the same: Slurm does not tell capital letters from small ones.
bool same_key(std::string_view a, std::string_view b);

/// "a,b[1-2],c" or "k=1,j" at the commas that stand outside brackets.
std::vector<std::string> split_list(std::string_view text, char at = ',');

/// Seconds of "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours",
/// "days-hours:minutes" or "days-hours:minutes:seconds"; nothing for another text.
std::optional<double> slurm_duration(std::string_view text);
/// Seconds of a number in units of `unit_s` seconds, as settings have it; nothing for another text.
std::optional<double> slurm_number(std::string_view text, double unit_s = 1);
/// Seconds since 1970 of "2026-11-26T03:30:00", as if it were in UTC; nothing for "Unknown".
std::optional<double> slurm_time(std::string_view text);
/// GPUs of "billing=8,cpu=8,gres/gpu=8,node=1" or "gpu:a100:8"; nothing where it names none.
std::optional<int> gpus_in(std::string_view text);
/// The amount of a name in "cpu=8,node=1".
std::optional<int> amount_in(std::string_view text, std::string_view name);

}  // namespace lockstep
