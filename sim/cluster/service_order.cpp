#include "sim/cluster/service_order.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

constexpr std::uint32_t kEstimateDraw = 61;

double gpu_seconds_of(const QueueJob& job) {
  return to_seconds(job.runs).base_units() * static_cast<double>(job.gpus);
}

}  // namespace

GittinsIndex::GittinsIndex(std::vector<double> services, std::vector<double> ends)
    : services_(std::move(services)), ends_(std::move(ends)) {
  std::ranges::sort(services_);
  ends_.insert(ends_.end(), services_.empty() ? 0 : services_.back());
  std::ranges::sort(ends_);
  sums_.push_back(0);
  for (const double service : services_) sums_.push_back(sums_.back() + service);
}

double GittinsIndex::at(double attained) const {
  const auto count_to = [this](double service) {
    return static_cast<std::size_t>(std::ranges::upper_bound(services_, service) -
                                    services_.begin());
  };
  const std::size_t first = count_to(attained);
  double most = 0;
  for (const double end : ends_) {
    if (end <= attained) continue;
    const std::size_t last = count_to(end);
    const auto ended = static_cast<double>(last - first);
    const auto others = static_cast<double>(services_.size() - last);
    const double take = sums_[last] - sums_[first] - ended * attained + others * (end - attained);
    if (ended > 0) most = std::max(most, ended / take);
  }
  return most;
}

std::vector<double> gittins_of_levels(const QueueSpec& spec) {
  std::vector<double> services, levels;
  for (const QueueJob& job : spec.jobs) {
    if (job.runs > 0) services.push_back(gpu_seconds_of(job));
  }
  for (const RunTime level : spec.levels) levels.push_back(to_seconds(level).base_units());
  const GittinsIndex index(std::move(services), levels);
  std::vector<double> out{index.at(0)};
  for (const double level : levels) out.push_back(index.at(level));
  return out;
}

std::vector<double> predicted_services(const QueueSpec& spec) {
  std::vector<double> out;
  out.reserve(spec.jobs.size());
  for (const QueueJob& job : spec.jobs) {
    double service = gpu_seconds_of(job);
    if (spec.estimate_sigma > 0) {
      const auto number = static_cast<std::uint32_t>(out.size());
      RandomStream stream({.seed = spec.seed, .component = number, .purpose = kEstimateDraw});
      service *= portable_exp(spec.estimate_sigma * stream.normal());
    }
    out.push_back(service);
  }
  return out;
}

}  // namespace lockstep
