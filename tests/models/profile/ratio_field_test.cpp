#include "models/profile/ratio_field.hpp"

#include <doctest/doctest.h>
#include <vector>

namespace lockstep {
namespace {

struct FieldPoint {
  double at, ratio;
};
RatioField line_field(const std::vector<FieldPoint>& points) {
  RatioField field;
  for (const FieldPoint& p : points) field.add({p.at, 0, 0, 0}, p.ratio);
  field.finish();
  return field;
}
double ratio_at(const RatioField& field, double place, std::size_t left_out = RatioField::kNone) {
  return field.at({place, 0, 0, 0}, left_out);
}

const std::vector<FieldPoint> kRising{{10, 0.5}, {11, 0.6}, {12, 0.8}, {13, 1.0}, {14, 1.5}};

}  // namespace

TEST_CASE("RatioField: without points it changes nothing") {
  CHECK(ratio_at(line_field({}), 12) == 1);
}

TEST_CASE("RatioField: goes through its points") {
  const RatioField field = line_field(kRising);
  for (const FieldPoint& p : kRising) CHECK(ratio_at(field, p.at) == doctest::Approx(p.ratio));
}

TEST_CASE("RatioField: what was measured twice at a place counts with its geometric mean") {
  const RatioField field = line_field({{10, 1.0}, {10, 4.0}});
  CHECK(ratio_at(field, 10) == doctest::Approx(2.0));
}

TEST_CASE("RatioField: the law times the median from three octaves beyond the points on") {
  const RatioField field = line_field(kRising);
  CHECK(ratio_at(field, 7) == doctest::Approx(0.8));
  CHECK(ratio_at(field, 17) == doctest::Approx(0.8));
  CHECK(ratio_at(field, 40) == doctest::Approx(0.8));
  CHECK(ratio_at(field, 16.5) > 0.81);  // the last point still counts
}

TEST_CASE("RatioField: rising points make a field that rises between them, within their bounds") {
  const RatioField field = line_field(kRising);
  double before = 0;
  for (double place = 10.5; place < 14; place += 1) {
    const double ratio = ratio_at(field, place);
    CHECK(ratio > before);
    CHECK(ratio > 0.5);
    CHECK(ratio < 1.5);
    before = ratio;
  }
}

TEST_CASE("RatioField: a point left out is predicted without itself and its twins") {
  const RatioField with_twin = line_field({{10, 1.0}, {11, 3.0}, {11, 3.0}, {12, 1.0}});
  const RatioField without = line_field({{10, 1.0}, {12, 1.0}});
  CHECK(ratio_at(with_twin, 11, 1) == doctest::Approx(ratio_at(without, 11)).epsilon(0.02));
  CHECK(ratio_at(with_twin, 11, 2) == ratio_at(with_twin, 11, 1));
  CHECK(ratio_at(with_twin, 11) == doctest::Approx(3.0));
}

}  // namespace lockstep
