/// The NIC of tests of fabrics.
#pragma once

#include "models/base/units.hpp"

namespace lockstep::test {

inline constexpr BytesPerSecond kNic = gigabits_per_second(400);

}  // namespace lockstep::test
