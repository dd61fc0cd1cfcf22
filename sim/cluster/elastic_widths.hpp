/// Widths of elastic jobs: which of them are chosen when.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// A job in the choice of widths.
struct WidthChoice {
  std::vector<int> gpus;     ///< rising, above 0
  std::vector<double> gain;  ///< of each: its speedup over the narrowest
  int now = 0;               ///< what it holds; 0: it waits
  bool may_wait = true;      ///< else it has a width in any case
};

/// The widths, of each job one of its own or 0, that have the largest sum of gains on so many GPUs;
/// of equal sums the one whose gains are most alike (by their roots), then the one that changes
/// fewest jobs, then the one that favours earlier jobs. Exact, by a table over GPUs and jobs, in
/// their product times the number of widths; gains are told apart to 2^-20. Requires that those
/// that may not wait have room for their narrowest widths. Source of the objective: Pollux (Qiao
/// et al. 2021, OSDI, section 4.2, with p = 1) and Sia (Subramanya et al. 2023, SOSP, section 3.4).
std::vector<int> choose_widths(const std::vector<WidthChoice>& jobs, std::int64_t gpus);

/// goodput: chooses the widths of all running elastic jobs and of those that wait (the first
/// thousand), whose one width is what they ask for where they are not elastic. Who runs goes on, on
/// its narrowest width at least; who is not elastic stays. Jobs that keep their width stay where
/// they are if the others fit beside them, else all elastic ones are placed anew, the widest first;
/// one that does not fit gets the widest of its narrower widths that does.
void give_widths(QueueState& state);

/// shrink: jobs that a failure has made narrower grow back, as far as GPUs are free.
void grow_back(QueueState& state);

}  // namespace lockstep
