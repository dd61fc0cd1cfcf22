/// How long a group waits for its slowest member: expected extremes of equal normal variables.
#pragma once

namespace lockstep {

/// Expected maximum of n independent standard normal variables, exact to about 1e-9:
///
///     E = integral from 0 to infinity of 1 - Phi(x)^n - Phi(-x)^n dx
///
/// Source: David and Nagaraja 2003, Order Statistics, 3rd ed., section 3.1. A group of n GPUs whose
/// times have relative standard deviation s takes (1 + s E) times the mean. Grows as sqrt(2 ln n).
/// Requires 1 <= n < 1e15; n may be any real number.
double expected_maximum_of_normals(double n);

}  // namespace lockstep
