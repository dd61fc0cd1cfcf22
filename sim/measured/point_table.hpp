/// Measured points of kernels, collectives, power, engines and queues against their predictions:
/// what `lockstep validate --gemm`, --attention, --memory, --nccl, --power, --rl, --serving and
/// --queue print.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// What tells a point apart: a name, or a number, which JSON writes as one.
struct IdentityValue {
  std::string text;
  bool is_number = false;

  // Implicit, so that an identity is written as a list of keys and values.
  // NOLINTBEGIN(google-explicit-constructor)
  IdentityValue(std::string value) : text(std::move(value)) {}
  IdentityValue(const char* value) : text(value) {}
  IdentityValue(int value) : text(std::to_string(value)), is_number(true) {}
  // NOLINTEND(google-explicit-constructor)
  /// As a decimal with at most twelve digits.
  static IdentityValue number(double value);
};
using Identity = std::vector<std::pair<std::string, IdentityValue>>;

/// One measured value.
struct ValidationPoint {
  /// What was measured, in the order to print: {"gpu", "H100"}, {"m", "4096"}, ... The same keys,
  /// in the same order, at every point of a table.
  Identity identity;
  double measured = 0;
  double predicted = 0;
  double error = 0;    ///< predicted / measured - 1
  Identity details{};  ///< what JSON and CSV say besides; of the same keys at every point
};

/// A point that is far off, and what the data say of the reason.
struct WorstPoint {
  ValidationPoint point;
  std::size_t repeats = 0;  ///< of its configuration, in all logs
  std::size_t logs = 0;
  double least = 0, most = 0;  ///< of these, in the table's unit
  std::string reason;
};

/// Errors of a group of points.
struct PointSummary {
  std::string group;  ///< "all", "H100 bf16", ...
  std::size_t n = 0;
  double median_abs = 0;
  double p90_abs = 0;
  double bias = 0;  ///< median of the signed errors
};

struct PointTable {
  std::string what;         ///< "matrix products", ...: a title
  std::string unit = "us";  ///< of measured and predicted, as it follows their names; empty: none
  std::vector<ValidationPoint> points;
  std::vector<PointSummary> summary;  ///< the first is "all"
  std::vector<std::string>
      skipped;  ///< why points of the file have no prediction, counted: "12 points: no fp4"
  std::vector<std::string> notes{};  ///< what else they say, a sentence each
  /// Those that are furthest off, worst first, which the notes say too; JSON has them as members.
  std::vector<WorstPoint> worst{};
  /// Points that are further off than the project promises, a line each.
  std::vector<std::string> missed{};
  bool fine = false;  ///< the table has nine digits of values, and errors to 0.0001 %
};

/// Summarises the points that `member` holds for; its error figures are those of statistics.hpp.
PointSummary summarise(std::string group, const std::vector<ValidationPoint>& points,
                       bool (*member)(const ValidationPoint&) = nullptr);
/// The summary of all points, then one of each value that the identity has under `key`, sorted.
std::vector<PointSummary> summarise_by(const std::vector<ValidationPoint>& points,
                                       const std::string& key);

/// The value of an identity key; empty when the point has none.
std::string identity_of(const ValidationPoint& point, const std::string& key);

}  // namespace lockstep
