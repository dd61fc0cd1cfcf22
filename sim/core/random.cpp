#include "sim/core/random.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

namespace lockstep {

namespace {

/// Coefficients from the constant term up.
template <std::size_t N>
double polynomial(const std::array<double, N>& coefficients, double x) {
  double value = coefficients[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) value = value * x + coefficients[i];
  return value;
}

struct Rational {
  std::array<double, 8> numerator;
  std::array<double, 8> denominator;
  [[nodiscard]] double operator()(double x) const {
    return polynomial(numerator, x) / polynomial(denominator, x);
  }
};

// Wichura 1988: coefficients a, b (middle), c, d (tails to about 1e-11) and e, f (beyond).
constexpr Rational kMiddle{
    {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3},
    {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3}};
constexpr Rational kTail{
    {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4},
    {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9}};
constexpr Rational kFarTail{
    {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7},
    {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15}};

}  // namespace

double normal_quantile(double p) {
  assert(p > 0 && p < 1);
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) return q * kMiddle(0.180625 - q * q);
  const double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  const double x = r <= 5 ? kTail(r - 1.6) : kFarTail(r - 5);
  return q < 0 ? -x : x;
}

/// With x = m 2^e, m between sqrt(1/2) and sqrt(2), and s = (m - 1) / (m + 1):
/// log x = e log 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...). s^2 is below 0.0295, so that the first term
/// left out, s^22 / 23, is below 1e-18. Only +, -, * and /, which round alike everywhere.
double portable_log(double x) {
  assert(x >= std::numeric_limits<double>::min() && x <= std::numeric_limits<double>::max());
  constexpr int kMantissaBits = 52;
  constexpr int kBias = 1023;
  constexpr std::uint64_t kMantissa = (std::uint64_t{1} << kMantissaBits) - 1;
  // log 2 in two parts, the first short enough that its product with e is exact.
  constexpr double kLog2High = 0x1.62e42fee00000p-1;  // NOLINT(modernize-use-std-numbers)
  constexpr double kLog2Low = 0x1.a39ef35793c76p-33;

  const auto bits = std::bit_cast<std::uint64_t>(x);
  int e = static_cast<int>(bits >> kMantissaBits) - kBias;
  auto m = std::bit_cast<double>((bits & kMantissa) | std::uint64_t{kBias} << kMantissaBits);
  if (m > std::numbers::sqrt2) {
    m /= 2;
    ++e;
  }
  constexpr std::array<double, 11> kSeries{2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,
                                           2.0 / 9,  2.0 / 11, 2.0 / 13, 2.0 / 15,
                                           2.0 / 17, 2.0 / 19, 2.0 / 21};
  const double s = (m - 1) / (m + 1);
  return e * kLog2High + (s * polynomial(kSeries, s * s) + e * kLog2Low);
}

double portable_exp(double x) {
  assert(std::abs(x) <= 700);
  constexpr double kLog2High = 0x1.62e42fee00000p-1;  // NOLINT(modernize-use-std-numbers)
  constexpr double kLog2Low = 0x1.a39ef35793c76p-33;
  constexpr std::array<double, 5> kRational{0x1.555555555553ep-3, -0x1.6c16c16bebd93p-9,
                                            0x1.1566aaf25de2cp-14, -0x1.bbd41c5d26bf1p-20,
                                            0x1.6376972bea4d0p-25};
  const double n = std::floor(x / (kLog2High + kLog2Low) + 0.5);
  const double high = x - n * kLog2High, low = n * kLog2Low;
  const double r = high - low;
  const double square = r * r;
  const double c = r - square * polynomial(kRational, square);
  const double y = 1 - ((low - r * c / (2 - c)) - high);
  return std::ldexp(y, static_cast<int>(n));
}

}  // namespace lockstep
