/// Parameters of LogGOPS as they are typed.
#pragma once

#include <string_view>

#include "sim/trace/loggops/loggops.hpp"

namespace lockstep {

/// "L=2500,o=1500,g=1000,G=0.02,O=0,S=65535": nanoseconds, S in bytes, in any order; those left
/// out keep their defaults. Throws UsageError.
LogGopsParameters parse_loggops(std::string_view text);

}  // namespace lockstep
