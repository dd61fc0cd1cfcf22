/// `lockstep queue forecast`: when the jobs that wait will start.
#pragma once

#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// Throws UsageError, InputError.
Exit forecast_starts(const ParsedOptions& options, Console& console);

}  // namespace lockstep
