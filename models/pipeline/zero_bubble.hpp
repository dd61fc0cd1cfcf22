/// Schedules that put gradients of weights where a rank would wait. B is the time of the inputs'
/// gradients here and W that of the weights'.
#pragma once

#include <vector>

#include "models/pipeline/schedule.hpp"

namespace lockstep {

/// ZB-H1: 1F1B's warm-up; rank r leaves the weights' gradients of its first r micro batches for the
/// end, so that every rank holds p micro batches at most. Its bubble is (p - 1) (F + B - W) where W
/// is at most B.
///
/// Source: Qi et al. 2023, arXiv:2401.10241, section 2.1 and table 1.
std::vector<WorkItem> zb_h1_order(const ScheduleCall& call);

/// ZB-H2: twice that warm-up, and 2 r micro batches left for the end. A rank is idle for
/// (p - 1) (F + B - 2 W) between its first and its last pass, and holds 2 p - 1 micro batches.
///
/// Source: Qi et al. 2023, arXiv:2401.10241, section 2.2 and table 1.
std::vector<WorkItem> zb_h2_order(const ScheduleCall& call);

/// ZB-V: two chunks to a rank in a V; no rank is idle between its first and its last pass when
/// F = B = W, and none holds more than 1F1B's first, p micro batches of all its layers.
///
/// Source: Qi et al. 2023, arXiv:2401.10241, section 6; the order is that of ScheduleZBVZeroBubble
/// in github:pytorch/pytorch:torch/distributed/pipelining/schedules.py.
std::vector<WorkItem> zb_v_order(const ScheduleCall& call);

}  // namespace lockstep
