#include "tools/views/report/congestion_words.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <numeric>

#include "models/base/number_text.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

bool is_slowed(const JobCongestion& job) { return job.slowdown() >= kNoticeableSlowdown; }

/// Seconds that all runs of the transfer lose to others.
double lost_s(const TransferCongestion& transfer) {
  return transfer.alone_s > 0 ? transfer.runs * (transfer.mean_s - transfer.alone_s) : 0;
}

/// The job's transfer that loses most, or null.
const TransferCongestion* most_delayed_transfer(const CongestionReport& report,
                                                const std::string& job) {
  const TransferCongestion* most = nullptr;
  for (const TransferCongestion& transfer : report.transfers) {
    if (transfer.job != job) continue;
    if (transfer.worst_link < 0 && !transfer.mostly_stalled()) continue;
    if (most == nullptr || lost_s(transfer) > lost_s(*most)) most = &transfer;
  }
  return most;
}

/// "; it is held back on leaf 2 to spine 0 for 62 % of its time, mostly by x (61 % of ...)."
Html where_and_by_whom(const CongestionReport& report, const TransferCongestion& transfer) {
  if (transfer.mostly_stalled()) {
    return escaped(", waiting behind ") + strong("a dead link") +
           escaped(fmt::format(" for {} of its time.",
                               page_percent(transfer.stalled_s / transfer.mean_s)));
  }
  if (transfer.worst_link < 0) return escaped(".");
  const LinkCongestion& link = report.links[static_cast<std::size_t>(transfer.worst_link)];
  Html out = escaped(", held back on ") + strong(link.name) +
             escaped(fmt::format(" for {} of its time", page_percent(transfer.worst_link_share)));
  if (!transfer.cause.empty()) {
    constexpr double kMost = 0.5;
    out += escaped(transfer.cause_share > kMost
                       ? ", mostly by "
                       : ", by bytes of several transfers, of which no other has more than ") +
           strong(transfer.cause) +
           escaped(fmt::format(", whose bytes were {} of those that crossed it meanwhile",
                               page_percent(transfer.cause_share)));
  }
  return out + escaped(".");
}

const JobCongestion& most_slowed_job(const CongestionReport& report) {
  return *std::ranges::max_element(report.jobs, {}, &JobCongestion::slowdown);
}

Html slowed_job_sentences(const CongestionReport& report, const JobCongestion& job) {
  Html out = strong(job.name);
  out += escaped(report.jobs.size() > 1 ? " is slowed most: " : " is slowed: ");
  out += escaped(job.done_share < 1 ? "what is done of it takes " : "it takes ");
  out += strong(page_duration(job.step_s)) + escaped(" instead of ") +
         strong(page_duration(job.alone_s * job.done_share)) + escaped(", ") +
         strong(fmt::format("{} times", significant(job.slowdown()))) +
         escaped(" as long as alone.");
  if (const TransferCongestion* transfer = most_delayed_transfer(report, job.name)) {
    out += escaped(" Its ") + strong(transfer->name) + escaped(" loses most") +
           where_and_by_whom(report, *transfer);
  }
  return out;
}

/// For reports in which no job is slowed: the transfer that is, if there is one.
Html slowed_transfer_sentence(const CongestionReport& report, bool jobs_known) {
  if (report.transfers.empty()) return {};
  const TransferCongestion& most =
      *std::ranges::max_element(report.transfers, {}, &TransferCongestion::slowdown);
  if (most.slowdown() < kNoticeableSlowdown) return {};
  const auto as_slowed =
      std::ranges::count_if(report.transfers, [&](const TransferCongestion& each) {
        return std::abs(each.slowdown() - most.slowdown()) <= 1e-9 * most.slowdown();
      });
  return escaped(as_slowed > 1 ? " One of the most slowed transfers is "
                               : " The most slowed transfer is ") +
         strong(most.name) + escaped(" of ") + strong(most.job) + escaped(": ") +
         strong(fmt::format("{} times", significant(most.slowdown()))) +
         escaped(" as long as with its links to itself") +
         escaped(jobs_known ? ", though its job takes no longer" : "") +
         where_and_by_whom(report, most);
}

/// How much longer jobs take with the others where that is not noticed.
std::string barely_slowed(const CongestionReport& report) {
  constexpr double kShown = 5e-5;
  if (report.jobs.size() < 2) return ".";
  double most = 1;
  for (const JobCongestion& job : report.jobs) most = std::max(most, job.slowdown());
  if (most < 1 + kShown) return ": each takes as long with the others as alone.";
  return fmt::format(": each takes with the others at most {:.1f} % longer than alone.",
                     std::ceil(1000 * (most - 1)) / 10);
}

Html fullest_link_sentence(const CongestionReport& report) {
  if (report.links.empty()) return {};
  const LinkCongestion& link = report.links.front();
  return escaped(" The fullest link is ") + strong(link.name) + escaped(", ") +
         strong(page_percent(link.mean_utilisation)) +
         escaped(fmt::format(" used on average and {} at its peak.",
                             page_percent(link.peak_utilisation)));
}

/// The transfer that the headline is about, or null.
const TransferCongestion* headline_transfer(const CongestionReport& report) {
  if (report.transfers.empty()) return nullptr;
  if (slowed_jobs(report) > 0) return most_delayed_transfer(report, most_slowed_job(report).name);
  return &*std::ranges::max_element(report.transfers, {}, &TransferCongestion::slowdown);
}

bool like_figures(const LinkCongestion& a, const LinkCongestion& b) {
  return a.capacity_bytes_per_s == b.capacity_bytes_per_s &&
         a.mean_utilisation == b.mean_utilisation && a.peak_utilisation == b.peak_utilisation &&
         a.bytes_by_job == b.bytes_by_job && a.utilisation == b.utilisation;
}

}  // namespace

Html congestion_headline(const CongestionReport& report) {
  if (report.links.empty() && report.transfers.empty()) {
    return strong("Nothing crossed the fabric.");
  }
  const bool jobs_known = knows_jobs_alone(report);
  if (slowed_jobs(report) > 0) {
    return slowed_job_sentences(report, most_slowed_job(report));
  }
  Html out;
  if (jobs_known) {
    out += strong("No job is slowed") + escaped(barely_slowed(report));
  }
  out += slowed_transfer_sentence(report, jobs_known);
  return out + fullest_link_sentence(report);
}

bool knows_jobs_alone(const CongestionReport& report) {
  return std::ranges::any_of(report.jobs, [](const JobCongestion& job) { return job.alone_s > 0; });
}

std::size_t slowed_jobs(const CongestionReport& report) {
  return static_cast<std::size_t>(std::ranges::count_if(report.jobs, is_slowed));
}

std::vector<std::size_t> job_colours(const std::vector<JobCongestion>& jobs) {
  std::vector<std::size_t> by_bytes(jobs.size()), colours(jobs.size());
  std::iota(by_bytes.begin(), by_bytes.end(), std::size_t{0});
  if (jobs.size() <= kPageColours) return by_bytes;
  std::ranges::stable_sort(
      by_bytes, [&](std::size_t a, std::size_t b) { return jobs[a].bytes > jobs[b].bytes; });
  for (std::size_t rank = 0; rank < by_bytes.size(); ++rank) {
    colours[by_bytes[rank]] = std::min(rank, kPageColours);
  }
  return colours;
}

std::vector<LinkRow> fullest_rows(const CongestionReport& report, std::size_t most) {
  std::vector<LinkRow> rows, beyond;
  for (const LinkCongestion& link : report.links) {
    const auto like = [&](const LinkRow& row) { return like_figures(*row.link, link); };
    const auto row = std::ranges::find_if(rows, like);
    if (row != rows.end()) {
      ++row->alike;
    } else if (rows.size() < most) {
      rows.push_back({.link = &link});
    } else if (const auto other = std::ranges::find_if(beyond, like); other != beyond.end()) {
      ++other->alike;
    } else {
      beyond.push_back({.link = &link});
    }
  }
  const TransferCongestion* const of_headline = headline_transfer(report);
  if (of_headline != nullptr && of_headline->worst_link >= 0) {
    const LinkCongestion& worst = report.links[static_cast<std::size_t>(of_headline->worst_link)];
    const auto holds_back = [&](const LinkRow& row) { return like_figures(*row.link, worst); };
    std::ranges::copy_if(beyond, std::back_inserter(rows), holds_back);
    // By the name that the headline says.
    std::ranges::find_if(rows, holds_back)->link = &worst;
  }
  // Where not all are listed there may be more like those that are.
  const bool all = report.links.size() >= report.links_used;
  for (LinkRow& row : rows) {
    row.name = row.link->name;
    if (row.alike > 1) row.name += fmt::format(" ({}{} alike)", all ? "" : "at least ", row.alike);
  }
  return rows;
}

}  // namespace lockstep
