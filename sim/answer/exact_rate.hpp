/// Rates as `--set` takes them.
#pragma once

#include <string>

namespace lockstep {

/// "800 Gb/s": bytes per second in the unit that reads best, if that says them exactly; else
/// "12345678901 B/s". Requires a finite, positive rate.
std::string exact_rate(double bytes_per_s);

}  // namespace lockstep
