#include "sim/measured/point_table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "sim/measured/statistics.hpp"

namespace lockstep {
namespace {

template <class Member>
PointSummary summarise_if(std::string group, const std::vector<ValidationPoint>& points,
                          Member member) {
  std::vector<double> errors;
  for (const ValidationPoint& point : points) {
    if (member(point)) errors.push_back(point.error);
  }
  const ErrorSummary e = summarise_errors(errors);
  return {std::move(group), e.n, e.median_abs, e.p90_abs, e.bias};
}

}  // namespace

IdentityValue IdentityValue::number(double value) {
  IdentityValue out(fmt::format("{:.12g}", value));
  out.is_number = true;
  return out;
}

std::string identity_of(const ValidationPoint& point, const std::string& key) {
  const auto at =
      std::ranges::find_if(point.identity, [&](const auto& part) { return part.first == key; });
  return at == point.identity.end() ? std::string() : at->second.text;
}

PointSummary summarise(std::string group, const std::vector<ValidationPoint>& points,
                       bool (*member)(const ValidationPoint&)) {
  return summarise_if(std::move(group), points,
                      [&](const ValidationPoint& p) { return member == nullptr || member(p); });
}

std::vector<PointSummary> summarise_by(const std::vector<ValidationPoint>& points,
                                       const std::string& key) {
  std::set<std::string> values;
  for (const ValidationPoint& point : points) values.insert(identity_of(point, key));
  std::vector<PointSummary> out{summarise("all", points)};
  for (const std::string& value : values) {
    out.push_back(summarise_if(
        value, points, [&](const ValidationPoint& p) { return identity_of(p, key) == value; }));
  }
  return out;
}

}  // namespace lockstep
