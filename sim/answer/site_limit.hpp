/// A site's power limit that a job does not keep: said before anything else, in every form.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "sim/power/step_power.hpp"

namespace lockstep {

/// "EXCEEDED: the site draws 227.1 MW, 77.1 MW (51.4 %) above its limit of 150 MW"; empty where the
/// limit is kept, or there is none.
std::string limit_warning(const StepPower& power, const PowerSpec& spec);
std::string limit_warning(Watts peak, const PowerSpec& spec);

/// How many of several answers do not keep the limit of their site.
class LimitTally {
 public:
  /// site_excess_w and site_limit_w of an answer; nothing: it has no limit.
  void add(std::optional<double> excess_w, std::optional<double> limit_w);
  /// "EXCEEDED: 3 of 4 rows draw more than the site's limit of 10 MW"; empty where all keep it.
  [[nodiscard]] std::string warning(std::string_view rows = "rows") const;

 private:
  std::size_t all_ = 0, over_ = 0;
  double least_w_ = 0, most_w_ = 0;  ///< of the limits that are exceeded
};

/// "21.22 MW", "10.19 kW", "650 W".
std::string power_text(Watts w);

}  // namespace lockstep
