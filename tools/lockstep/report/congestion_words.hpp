/// The words and numbers of a congestion report, as people read them.
#pragma once

#include <string>
#include <vector>

#include "sim/congestion/congestion_report.hpp"
#include "tools/lockstep/report/html.hpp"

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

/// Numbers with their unit; the space between is one that no line ends at.
std::string page_duration(double seconds);  ///< "12.3 µs"
std::string page_bytes(double bytes);       ///< "1.20 GB", powers of 1000
std::string page_percent(double share);     ///< "61 %"
std::string page_times(double ratio);       ///< "1.42×"

/// A power of 1000 to show all values of an axis in.
struct AxisUnit {
  double size;       ///< in base units
  std::string name;  ///< "ms", "GB"
};
/// The unit in which the largest value is at least 1, as far as there is one. Requires finite.
AxisUnit time_unit(double largest_s);
AxisUnit bytes_unit(double largest);

}  // namespace lockstep
