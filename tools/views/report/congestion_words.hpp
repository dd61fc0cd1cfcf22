/// The sentences of a congestion report, as people read them.
#pragma once

#include <string>
#include <vector>

#include "sim/congestion/congestion_report.hpp"
#include "tools/views/report/html.hpp"

namespace lockstep {

/// What takes less than this longer than alone is not called slowed: 0.5 % is below what the three
/// digits of the page show.
inline constexpr double kNoticeableSlowdown = 1.005;

/// Who is slowed most, by how much, by whom and on which link, in sentences; or that nobody is.
Html congestion_headline(const CongestionReport& report);

/// Whether the time alone on the fabric is known of any job.
bool knows_jobs_alone(const CongestionReport& report);
/// Of jobs whose time alone is known.
std::size_t slowed_jobs(const CongestionReport& report);

/// Colour of each job (page.hpp): that of its place among the first kPageColours; where there are
/// more jobs, those with most bytes have one each and all others share the last.
std::vector<std::size_t> job_colours(const std::vector<JobCongestion>& jobs);

/// A row of a table or a chart: a link, and how many have just its figures.
struct LinkRow {
  const LinkCongestion* link;
  std::size_t alike = 1;  ///< itself among them
  std::string name{};     ///< "node 0 to leaf 0 (8 alike)"; "at least 8" where not all are listed
};

/// At most `most` rows, the fullest first; behind them that of the link which the headline names,
/// if it is none of them. They point into the report.
std::vector<LinkRow> fullest_rows(const CongestionReport& report, std::size_t most);

}  // namespace lockstep
