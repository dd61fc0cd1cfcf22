/// Who slows whom, on which links and when, as one HTML page (page.hpp).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "sim/congestion/congestion_report.hpp"
#include "tools/views/report/input_tables.hpp"

namespace lockstep {

class Behind;
class ClaimCheck;
class Page;
struct SharedJobResult;
struct SharedPower;
struct SharedScenario;

/// Several jobs on one fabric, with what they draw where they say "power".
struct PowerOfJobs {
  const SharedScenario& scenario;
  const SharedPower* power = nullptr;
  std::span<const SharedJobResult> results{};  ///< of its jobs, where their steps are to be shown

  /// Whether there is anything to say of power or money.
  [[nodiscard]] bool known() const;
};

inline constexpr std::size_t kPageTransfers = 50;  ///< rows of the table of transfers

/// The page. Throws UsageError where the program was built without its chart library (assets.hpp).
/// `basis` stands below the report, and what stands `behind` its figures and what the scenario
/// claims, where they are given; so are power and money, `drawn`.
std::string congestion_page(const CongestionReport& report, const AnswerBasis& basis = {},
                            const Behind* behind = nullptr, const ClaimCheck* claim = nullptr,
                            const PowerOfJobs* drawn = nullptr);

/// The page's pieces: the headline with its figures goes to the top, the sections below.
void add_congestion_headline(Page& page, const CongestionReport& report,
                             const Behind* behind = nullptr, const PowerOfJobs* drawn = nullptr);
/// `drawn`: of jobs on one fabric, where the report has the time of each of them alone.
void add_congestion_sections(Page& page, const CongestionReport& report,
                             const PowerOfJobs* drawn = nullptr);
/// What each job draws and costs, and all of the machines. Requires of.known().
void add_power_of_jobs(Page& page, const PowerOfJobs& of);

}  // namespace lockstep
