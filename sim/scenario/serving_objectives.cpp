#include "sim/scenario/serving_objectives.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr Interval kLimitTime{0, 1e6, true};

}  // namespace

void declare_request_limits(const DeclaredMembers& member, ServingObjectives& out) {
  member.optional("ttft", out.ttft, kLimitTime, "Time to the first token, at most");
  member.optional("tpot", out.tpot, kLimitTime, "Time per token behind it, at most");
  member.optional("e2e", out.e2e, kLimitTime, "Until the last token, at most");
  member.optional("attained", out.attained, Dimension::share, Interval{0.01, 1},
                  "Share of the requests that must keep these three; default: 99 %");
}

void declare_objectives(const DeclaredMembers& member, ServingObjectives& out) {
  declare_request_limits(member, out);
  for (std::size_t q = 0; q < kServedLimits; ++q) {
    const int percent = kLimitedPercents[q % kLimitedPercents.size()];
    const std::string_view time = kServedTimeNames[q / kLimitedPercents.size()];
    member.optional(fmt::format("{}_p{}", time, percent), out.quantiles[q], kLimitTime,
                    fmt::format("What {} % of all must not be above", percent));
  }
}

}  // namespace lockstep
