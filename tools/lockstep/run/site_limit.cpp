#include "tools/lockstep/run/site_limit.hpp"

#include <fmt/format.h>

#include "models/base/number_text.hpp"

namespace lockstep {

std::string power_text(Watts w) {
  const double base = w.base_units();
  if (base >= 1e6) return significant(base * 1e-6, 4) + " MW";
  if (base >= 1e4) return significant(base * 1e-3, 4) + " kW";
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
  return limit_warning(power.facility_meter.high, spec);
}

}  // namespace lockstep
