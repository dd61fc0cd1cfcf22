/// The replay of a recorded trace as a page.
#pragma once

#include <string>

#include "tools/views/replay/replay_output.hpp"
#include "tools/views/report/input_tables.hpp"

namespace lockstep {

/// The page of `lockstep replay --report`: against the recording, where each rank's time went, the
/// collectives that took longest. Throws UsageError without a chart library (assets.hpp).
/// The sections of what it rests on are there where the basis is given.
std::string replay_page(const ReplayStudy& study, const AnswerBasis& basis = {});

/// "trace/step.0.et"; "128 files, the first trace/step.0.et".
std::string files_words(const ReplayStudy& study);

}  // namespace lockstep
