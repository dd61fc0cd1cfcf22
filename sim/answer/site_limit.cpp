#include "sim/answer/site_limit.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "models/base/number_text.hpp"

namespace lockstep {

std::string power_text(Watts w) {
  const double base = w.base_units();
  if (std::abs(base) >= 1e6) return significant(base * 1e-6, 4) + " MW";
  if (std::abs(base) >= 1e4) return significant(base * 1e-3, 4) + " kW";
  return significant(base, 4) + " W";
}

std::string limit_warning(Watts peak, const PowerSpec& spec) {
  if (!spec.site_limit || peak <= *spec.site_limit) return {};
  const Watts excess = peak - *spec.site_limit;
  return fmt::format("EXCEEDED: the site draws {}, {} ({}) above its limit of {}", power_text(peak),
                     power_text(excess), percent_text(excess / *spec.site_limit),
                     power_text(*spec.site_limit));
}

std::string limit_warning(const StepPower& power, const PowerSpec& spec) {
  return limit_warning(power.site_peak, spec);
}

void LimitTally::add(std::optional<double> excess_w, std::optional<double> limit_w) {
  ++all_;
  if (!excess_w || !limit_w || *excess_w <= 0) return;
  least_w_ = over_ == 0 ? *limit_w : std::min(least_w_, *limit_w);
  most_w_ = std::max(most_w_, *limit_w);
  ++over_;
}

std::string LimitTally::warning(std::string_view rows) const {
  if (over_ == 0) return {};
  const std::string least = power_text(Watts{least_w_}), most = power_text(Watts{most_w_});
  return fmt::format("EXCEEDED: {} of {} {} draw more than the site's limit of {}", over_, all_,
                     rows, least == most ? most : least + " to " + most);
}

}  // namespace lockstep
