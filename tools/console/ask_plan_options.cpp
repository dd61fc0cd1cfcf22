#include "tools/console/ask_plan_options.hpp"

#include <array>
#include <string_view>

#include "tools/console/ask_options.hpp"

namespace lockstep {

std::optional<PlanAsk> plan_ask_of(const ParsedOptions& options) {
  constexpr std::array<std::string_view, 6> kPlanParts{"training", "node", "gpus",
                                                       "time",     "usd",  "price"};
  if (!asks_without_file(options, "model", kPlanParts, "plan")) return std::nullopt;
  return PlanAsk{.model = model_option(options),
                 .training = options.get("training"),
                 .node = options.get("node"),
                 .gpus = options.get("gpus"),
                 .time = options.get("time"),
                 .usd = options.get("usd"),
                 .price = options.get("price")};
}

}  // namespace lockstep
