#include "models/kernels/ratio_field.hpp"

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

TEST_CASE("RatioField: a point for its place alone is found there and says nothing elsewhere") {
  RatioField field;
  for (const FieldPoint& p : kRising) field.add({p.at, 0, 0, 0}, p.ratio);
  field.add({12.1, 0, 0, 0}, 5, RatioField::Reach::place);
  field.finish();
  const RatioField without = line_field(kRising);
  CHECK(ratio_at(field, 12.1) == doctest::Approx(5));
  for (const double place : {9.0, 12.0, 12.05, 12.2, 13.5, 30.0}) {
    CHECK(ratio_at(field, place) == ratio_at(without, place));
  }
  CHECK(ratio_at(field, 12.1, kRising.size()) == ratio_at(without, 12.1));  // left out
  RatioField lonely;
  lonely.add({12.1, 0, 0, 0}, 5, RatioField::Reach::place);
  lonely.finish();
  CHECK(ratio_at(lonely, 12.1) == doctest::Approx(5));
  CHECK(ratio_at(lonely, 12) == 1);
}

TEST_CASE("RatioField: far away it is the law, unless distant points predict each other") {
  const RatioField rising = line_field(kRising);
  CHECK(ratio_at(rising, 7) == 1);
  CHECK(ratio_at(rising, 17) == 1);
  CHECK(ratio_at(rising, 40) == 1);
  CHECK(ratio_at(rising, 16.5) > 1.01);  // the last point still counts
  // A card that is slower by as much at all sizes.
  const RatioField slow = line_field({{10, 1.2}, {14, 1.21}, {18, 1.19}, {22, 1.2}});
  for (const double place : {0.0, 12.0, 40.0}) {
    CHECK(ratio_at(slow, place) == doctest::Approx(1.2).epsilon(0.01));
  }
}

TEST_CASE("RatioField: points that contradict each other leave the law between them") {
  const std::vector<FieldPoint> points{{10, 0.5}, {10.5, 2}, {11, 0.5}, {11.5, 2}, {12, 0.5}};
  const RatioField field = line_field(points);
  for (const FieldPoint& p : points) CHECK(ratio_at(field, p.at) == doctest::Approx(p.ratio));
  CHECK(ratio_at(field, 10.25) == doctest::Approx(1));
  CHECK(ratio_at(field, 10.65) == doctest::Approx(1));
  // Within a tenth of an octave the point comes back without a jump.
  CHECK(ratio_at(field, 10.59) < 1.15);
  CHECK(ratio_at(field, 10.55) > 1.2);
  CHECK(ratio_at(field, 10.501) > 1.9);
}

TEST_CASE("RatioField: a lone point counts half around it, and not far away") {
  const RatioField field = line_field({{10, 4}});
  CHECK(ratio_at(field, 10) == doctest::Approx(4));
  CHECK(ratio_at(field, 10.5) == doctest::Approx(2).epsilon(0.01));
  CHECK(ratio_at(field, 13) == 1);
  CHECK(ratio_at(field, 10, 0) == 1);  // without it there is nothing
}

TEST_CASE("RatioField: a stray point among many that agree decides nothing") {
  RatioField field;
  for (int i = 0; i < 400; ++i) field.add({10 + 0.1 * i, 0, 0, 0}, i == 200 ? 50 : 1.3);
  field.finish();
  CHECK(ratio_at(field, 15.05) == doctest::Approx(1.3).epsilon(0.01));
  CHECK(ratio_at(field, 30, 200) == doctest::Approx(1.3).epsilon(0.01));
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
  CHECK(ratio_at(with_twin, 11, 1) == ratio_at(without, 11));
  CHECK(ratio_at(with_twin, 11, 2) == ratio_at(with_twin, 11, 1));
  CHECK(ratio_at(with_twin, 11) == doctest::Approx(3.0));
}

}  // namespace lockstep
