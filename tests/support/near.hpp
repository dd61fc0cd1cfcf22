/// A number within a share of another one, however small both are.
///
/// doctest::Approx allows its share of 1 + |x|: it takes any two times of microseconds for equal.
#pragma once

#include <algorithm>
#include <cmath>
#include <ostream>

namespace lockstep::test {

class Near {
 public:
  explicit Near(double value) : value_(value) {}
  /// `share` of the larger of the two; 1e-5 if it is not given.
  [[nodiscard]] Near epsilon(double share) const {
    Near other = *this;
    other.share_ = share;
    return other;
  }
  friend bool operator==(double a, const Near& b) {
    return std::abs(a - b.value_) <= b.share_ * std::max(std::abs(a), std::abs(b.value_));
  }
  friend std::ostream& operator<<(std::ostream& out, const Near& near) {
    return out << near.value_ << " within " << 100 * near.share_ << " %";
  }

 private:
  double value_;
  double share_ = 1e-5;
};

inline Near near(double value) { return Near(value); }

}  // namespace lockstep::test
