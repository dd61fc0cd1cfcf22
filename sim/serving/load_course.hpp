/// Whether a load went on for long enough that what its requests saw would go on.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/serving/serve.hpp"

namespace lockstep {

/// Whether a load went on for long enough that what it shows goes on.
struct LoadCourse {
  bool lasts = false;  ///< it comes for at least 40 times as long as a conversation stays
  /// More stay in the last third of its time than in the middle one: by more than a tenth, and than
  /// three standard deviations of what comes and goes by chance. Of a load that does not last also
  /// where the last third of the requests stays 1.5 times as long as the first third, again by
  /// three standard deviations, and the middle half of them takes 1.5 times as long to end as to
  /// come.
  bool grows = false;
  std::size_t enough = 0;  ///< requests with which it would last
  double coming_s = 0;     ///< as long as so many requests come for: their mean gap, for each

  [[nodiscard]] bool steady() const { return lasts && !grows; }
};
/// Of requests that were served, of which the first `coming` (0: all) arrive by themselves. Where
/// all come at once it neither lasts nor grows.
LoadCourse load_course(const std::vector<ServedRequest>& requests, std::size_t coming);

}  // namespace lockstep
