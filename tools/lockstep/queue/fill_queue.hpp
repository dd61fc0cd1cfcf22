/// `lockstep queue fill`: how much of a cluster of shared GPUs each policy of placement allocates.
#pragma once

#include "tools/console/shared_options.hpp"

namespace lockstep {

/// Of the document that the second word names. Throws InputError.
Exit fill_queue(const ParsedOptions& options, Console& console);

}  // namespace lockstep
