/// The same collective call, measured several times: how far its times differ from each other, and
/// which of a prediction's errors that explains.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "sim/measured/point_table.hpp"

namespace lockstep {

/// A configuration: all that a prediction depends on (GPU, operation, nodes, ranks, transport, rate
/// of the NICs, size), with every time that was measured of it: out of place and in place, which
/// nccl-tests runs one after the other, and those of every log. What differs between them (other
/// jobs on the fabric, environment, release) is in no prediction.
struct CallRepeats {
  ValidationPoint point;         ///< measured: the median of the repeats
  std::vector<double> times_us;  ///< at least one, in the order of the file
  std::size_t logs = 0;

  [[nodiscard]] double least_us() const;
  [[nodiscard]] double most_us() const;
  [[nodiscard]] double spread() const { return most_us() / least_us() - 1; }
};

/// Every point of a table, put to its configuration.
class RepeatedCalls {
 public:
  /// A point with the NIC rate of a GPU that it was predicted for, in GB/s, and its times, at least
  /// one, all above 0.
  void add(const ValidationPoint& point, double nic_gb_s, const std::vector<double>& times_us);

  /// Of the point that was added as the `index`th, from 0.
  [[nodiscard]] const CallRepeats& of(std::size_t index) const;

  /// A point for each configuration for which `member` holds, against the median of its repeats.
  [[nodiscard]] std::vector<ValidationPoint> medians(bool (*member)(const ValidationPoint&)) const;
  /// A point for each repeat.
  [[nodiscard]] std::vector<ValidationPoint> repeats(bool (*member)(const ValidationPoint&)) const;
  /// Sentences: how many repeats and configurations there are, how many of these differ, and how
  /// near to all repeats one figure for each configuration comes at best (their geometric mean).
  [[nodiscard]] std::string spread_text(const std::string& where,
                                        bool (*member)(const ValidationPoint&)) const;

 private:
  std::map<std::string, CallRepeats> calls_;
  std::vector<std::string> call_of_point_;
};

/// The points that are furthest off, at most `count`, worst first, with what the data say of the
/// reason. Where the repeats of its configuration differ by more than a fifth, that is it; else the
/// errors of the same log at the sizes beside tell a law that is off from a size at which NCCL
/// changes protocol. `points` are those that were added to `calls`, in that order.
std::vector<WorstPoint> worst_calls(const std::vector<ValidationPoint>& points,
                                    const RepeatedCalls& calls, std::size_t count,
                                    bool (*member)(const ValidationPoint&));
/// One of them as a line: predicted and measured time, and the reason.
std::string worst_call_line(const WorstPoint& worst);

}  // namespace lockstep
