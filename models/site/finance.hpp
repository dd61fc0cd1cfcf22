/// Money over time: annuities, residual values, falling prices, what capital costs.
#pragma once

namespace lockstep {

/// A month of all money by month: 1/12 of 365.25 days.
constexpr double kMonthSeconds = 365.25 * 86'400 / 12;

/// What is paid at the end of each of `periods` equal periods for a loan of `principal`, at
/// `rate` a period: P r / (1 - (1 + r)^-n); P / n without interest. Requires periods > 0.
double annuity_payment(double principal, double rate, double periods);

/// The same where `residual` of it is left at the end, as of machines that go back to their lessor:
/// the annuity of P - R (1 + r)^-n.
double lease_payment(double principal, double residual, double rate, double periods);

/// Rate of a period of which `periods` make a year of `yearly`, compounded.
double period_rate(double yearly, double periods);

/// What is left of a price that falls by `share` a year: price (1 - share)^years.
double declined(double price, double share, double years);

}  // namespace lockstep
