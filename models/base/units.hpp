/// Quantities that know their unit. Multiply, divide and compare as on paper; mixing units does not
/// compile.
#pragma once

#include <compare>

namespace lockstep {

/// A number that knows its unit, as powers of second, byte, FLOP and joule.
/// Kept in those base units; whole bytes are exact below 2^53 (9.0e15).
template <int S, int B, int F, int J>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double base_units) : base_units_(base_units) {}

  /// The bare number, for printing and for maths functions.
  [[nodiscard]] constexpr double base_units() const { return base_units_; }
  /// Seconds over seconds is a plain number. Nothing else converts by itself.
  constexpr operator double() const  // NOLINT(google-explicit-constructor): a ratio is a number
    requires(S == 0 && B == 0 && F == 0 && J == 0)
  {
    return base_units_;
  }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity{a.base_units_ + b.base_units_};
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity{a.base_units_ - b.base_units_};
  }
  friend constexpr Quantity operator*(double k, Quantity q) { return Quantity{k * q.base_units_}; }
  friend constexpr Quantity operator*(Quantity q, double k) { return Quantity{k * q.base_units_}; }
  friend constexpr Quantity operator/(Quantity q, double k) { return Quantity{q.base_units_ / k}; }
  constexpr Quantity& operator+=(Quantity q) {
    base_units_ += q.base_units_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity q) {
    base_units_ -= q.base_units_;
    return *this;
  }
  constexpr Quantity& operator*=(double k) {
    base_units_ *= k;
    return *this;
  }

 private:
  double base_units_ = 0.0;
};

template <int S1, int B1, int F1, int J1, int S2, int B2, int F2, int J2>
constexpr auto operator*(Quantity<S1, B1, F1, J1> a, Quantity<S2, B2, F2, J2> b) {
  return Quantity<S1 + S2, B1 + B2, F1 + F2, J1 + J2>{a.base_units() * b.base_units()};
}
template <int S1, int B1, int F1, int J1, int S2, int B2, int F2, int J2>
constexpr auto operator/(Quantity<S1, B1, F1, J1> a, Quantity<S2, B2, F2, J2> b) {
  return Quantity<S1 - S2, B1 - B2, F1 - F2, J1 - J2>{a.base_units() / b.base_units()};
}

using Seconds = Quantity<1, 0, 0, 0>;
using Bytes = Quantity<0, 1, 0, 0>;
using Flops = Quantity<0, 0, 1, 0>;
using Joules = Quantity<0, 0, 0, 1>;
using BytesPerSecond = Quantity<-1, 1, 0, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1, 0>;
using Watts = Quantity<-1, 0, 0, 1>;

constexpr Seconds microseconds(double n) { return Seconds{n * 1e-6}; }
constexpr Bytes gibibytes(double n) { return Bytes{n * 1073741824.0}; }
constexpr BytesPerSecond gigabits_per_second(double n) { return BytesPerSecond{n * 1e9 / 8}; }
constexpr BytesPerSecond gigabytes_per_second(double n) { return BytesPerSecond{n * 1e9}; }
constexpr FlopsPerSecond teraflops_per_second(double n) { return FlopsPerSecond{n * 1e12}; }

static_assert(Bytes{100e9} / gigabits_per_second(400) == Seconds{2});

}  // namespace lockstep
