#include "sim/power/power_series.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>

namespace lockstep {
namespace {

/// Which stretch of a series a time is in. Meters ask some thousands of times: a table of equally
/// wide parts of the period leaves few breakpoints to search.
class Stretches {
 public:
  explicit Stretches(const PowerSeries& series)
      : series_(series), last_(series.size() + 1, series.size() - 1) {
    const double width = series.end.base_units() / static_cast<double>(series.size());
    std::size_t i = 0;
    for (std::size_t part = 0; part < series.size(); ++part) {
      const Seconds edge{static_cast<double>(part) * width};
      while (i + 1 < series.size() && series.start[i + 1] <= edge) ++i;
      last_[part] = i;
    }
  }

  /// The last that begins by then; 0 <= time <= the period, seconds.
  [[nodiscard]] std::size_t operator()(double time) const {
    const std::size_t parts = series_.size();
    const double share = time / series_.end.base_units();
    const auto part =
        std::min(parts - 1, static_cast<std::size_t>(share * static_cast<double>(parts)));
    // A part's edge may round to either side of the time.
    const std::size_t from = part > 0 ? last_[part - 1] : 0;
    const std::size_t to = last_[std::min(part + 2, parts)];
    const auto begin = series_.start.begin();
    const auto after = std::upper_bound(begin + static_cast<std::ptrdiff_t>(from) + 1,
                                        begin + static_cast<std::ptrdiff_t>(to) + 1, Seconds{time});
    return static_cast<std::size_t>(after - begin) - 1;
  }

 private:
  const PowerSeries& series_;
  std::vector<std::size_t> last_;  ///< that begins by a part's edge, and the last of all
};

/// Energy of a repeating series from 0 to any time, by a sorted list of breakpoints.
class Integral {
 public:
  explicit Integral(const PowerSeries& series) : series_(series), stretches_(series) {
    sums_.reserve(series.size() + 1);
    sums_.push_back(0);
    for (std::size_t i = 0; i < series.size(); ++i) {
      sums_.push_back(sums_.back() +
                      (series.power[i] * (series.until(i) - series.start[i])).base_units());
    }
  }

  [[nodiscard]] double operator()(double time) const {
    const double period = series_.end.base_units();
    const double turns = std::floor(time / period);
    const double t = time - turns * period;
    const std::size_t i = stretches_(t);
    return turns * sums_.back() + sums_[i] +
           series_.power[i].base_units() * (t - series_.start[i].base_units());
  }

 private:
  const PowerSeries& series_;
  Stretches stretches_;
  std::vector<double> sums_;
};

/// Times at which a window that begins there starts or ends at a breakpoint.
std::vector<double> corners(const PowerSeries& series, double window) {
  const double period = series.end.base_units();
  std::vector<double> times;
  times.reserve(2 * series.size());
  for (const Seconds s : series.start) {
    times.push_back(s.base_units());
    times.push_back(s.base_units() - window -
                    std::floor((s.base_units() - window) / period) * period);
  }
  return times;
}

}  // namespace

void PowerSeries::add(Seconds length, Watts level) {
  assert(length >= Seconds{});
  if (length <= Seconds{}) return;
  if (power.empty() || power.back() != level) {
    start.push_back(end);
    power.push_back(level);
  }
  end += length;
}

Joules energy(const PowerSeries& series) {
  Joules sum;
  for (std::size_t i = 0; i < series.size(); ++i) {
    sum += series.power[i] * (series.until(i) - series.start[i]);
  }
  return sum;
}

Watts mean_power(const PowerSeries& series) {
  return series.end > Seconds{} ? energy(series) / series.end : Watts{};
}
Watts peak_power(const PowerSeries& series) {
  return series.size() == 0 ? Watts{} : *std::ranges::max_element(series.power);
}
Watts trough_power(const PowerSeries& series) {
  return series.size() == 0 ? Watts{} : *std::ranges::min_element(series.power);
}

PowerSeries scaled(PowerSeries series, Watts a, double b) {
  for (Watts& p : series.power) p = a + b * p;
  return series;
}

PowerSeries sum_of(const PowerSeries& a, const PowerSeries& b) {
  PowerSeries out;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Seconds until = std::min(a.until(i), b.until(j));
    // Ends that are the same but for rounding leave no time between them.
    out.add(std::max(Seconds{}, until - out.end), a.power[i] + b.power[j]);
    if (a.until(i) <= until) ++i;
    if (b.until(j) <= until) ++j;
  }
  return out;
}

MeterReading metered(const PowerSeries& series, Seconds window) {
  MeterReading out{.low = trough_power(series), .high = peak_power(series), .steepest = {}};
  out.steepest = out.high - out.low;
  if (window <= Seconds{} || series.size() == 0) return out;
  const double w = window.base_units();
  const Integral integral(series);
  std::vector<double> times = corners(series, w);
  double low = 1e300, high = 0, steepest = 0;
  const auto reading = [&](double t) { return (integral(t + w) - integral(t)) / w; };
  for (const double t : times) {
    const double here = reading(t);
    low = std::min(low, here);
    high = std::max(high, here);
    // Corners of the difference of two readings, one window apart.
    steepest =
        std::max({steepest, std::abs(reading(t + w) - here), std::abs(here - reading(t - w))});
  }
  return {Watts{low}, Watts{high}, Watts{steepest}};
}

std::vector<Watts> metered_profile(const PowerSeries& series, Seconds window, int bins) {
  assert(bins > 0 && series.size() > 0);
  constexpr int kSamples = 32;  // of each bin
  const Integral integral(series);
  const double w = std::max(window.base_units(), 1e-9 * series.end.base_units());
  const double bin = series.end.base_units() / bins;
  std::vector<Watts> out;
  for (int b = 0; b < bins; ++b) {
    double sum = 0;
    for (int k = 0; k < kSamples; ++k) {
      const double middle = (b + (k + 0.5) / kSamples) * bin;
      sum += (integral(middle + w / 2) - integral(middle - w / 2)) / w;
    }
    out.emplace_back(sum / kSamples);
  }
  return out;
}

double steepest_ramp(const PowerSeries& series, Seconds window) {
  assert(window > Seconds{});
  if (series.size() < 2) return 0;
  const double period = series.end.base_units();
  const double w = window.base_units();
  const Stretches stretches(series);
  const auto at = [&](double t) {
    t -= std::floor(t / period) * period;
    return series.power[stretches(t)].base_units();
  };
  // A reading that averages over the window changes at (P(t + w) - P(t)) / w, which changes only
  // where one of the two does.
  double steepest = 0;
  for (const double t : corners(series, w)) {
    for (const double edge : {0.0, -1e-12}) {
      steepest = std::max(steepest, std::abs(at(t + w + edge) - at(t + edge)));
    }
  }
  return steepest / w;
}

double steepest_ramp(const std::vector<PowerCorner>& line, Seconds window) {
  assert(window > Seconds{} && !line.empty());
  const double period = line.back().s, w = window.base_units();
  if (period <= 0) return 0;
  const auto at = [&](double t) {
    t -= std::floor(t / period) * period;
    const auto after = std::ranges::upper_bound(line, t, {}, &PowerCorner::s);
    if (after == line.begin()) return line.front().watts;
    const PowerCorner& from = *std::prev(after);
    if (after == line.end()) return from.watts;
    return from.watts + (after->watts - from.watts) * (t - from.s) / (after->s - from.s);
  };
  double steepest = 0;
  for (const PowerCorner& corner : line) {
    steepest = std::max({steepest, std::abs(at(corner.s + w) - corner.watts),
                         std::abs(corner.watts - at(corner.s - w))});
  }
  return steepest / w;
}

PowerSeries in_stairs(const std::vector<PowerCorner>& line, Seconds stair) {
  assert(stair > Seconds{});
  constexpr double kFlat = 1e-12;
  PowerSeries out;
  for (std::size_t i = 1; i < line.size(); ++i) {
    const PowerCorner &from = line[i - 1], &to = line[i];
    const double length = to.s - from.s, rise = to.watts - from.watts;
    const bool flat = std::abs(rise) <= kFlat * from.watts;
    const double parts = flat ? 1 : std::max(1.0, std::ceil(length / stair.base_units()));
    for (std::int64_t part = 0; part < static_cast<std::int64_t>(parts); ++part) {
      const double middle = static_cast<double>(part) + 0.5;
      out.add(Seconds{length / parts}, Watts{from.watts + rise * middle / parts});
    }
  }
  return out;
}

PowerSeries smoothed(const PowerSeries& series, Joules capacity) {
  if (capacity <= Joules{} || series.size() == 0) return series;
  const double mean = mean_power(series).base_units();
  const double full = capacity.base_units();
  constexpr double kRounding = 1e-12;  // of what the store holds
  // A period takes any charge to the same one but for the bounds, and a second one changes nothing:
  // the mean leaves nothing over. So the first turn finds the charge, the second is the answer.
  double charge = full;
  PowerSeries out;
  for (const bool keep : {false, true}) {
    for (std::size_t i = 0; i < series.size(); ++i) {
      const double p = series.power[i].base_units();
      const double length = (series.until(i) - series.start[i]).base_units();
      const double room = p > mean ? charge : full - charge;
      // What rounding alone keeps the store from taking is no stretch of its own.
      const bool all = std::abs(p - mean) * length <= room + kRounding * full;
      const double held = all ? length : room / std::abs(p - mean);
      if (keep) {
        out.add(Seconds{held}, Watts{mean});
        out.add(Seconds{length - held}, series.power[i]);
      }
      charge = std::clamp(charge + (mean - p) * held, 0.0, full);
    }
  }
  return out;
}

namespace {

/// Machines that work through a series at a bounded change of power.
class RampedWork {
 public:
  RampedWork(double standing, double slope, double power)
      : standing_(standing), slope_(slope), power_(power) {}

  /// `length` of work that wants `wanted`.
  void pass(double wanted, double length) {
    if (power_ >= wanted) return fall(wanted, length);
    const double swing = wanted - standing_;
    const double rise = (wanted - power_) / slope_;
    const double above = power_ - standing_;
    // In the rise work goes on at (power - standing) / swing of its pace.
    const double done = (above + (wanted - power_) / 2) / swing * rise;
    if (done >= length) {
      // above t + slope t^2 / 2 = length swing
      const double need = length * swing;
      const double takes = 2 * need / (above + std::sqrt(above * above + 2 * slope_ * need));
      return spend(takes, power_ + slope_ * takes);
    }
    spend(rise, wanted);
    spend(length - done, wanted);
  }

  [[nodiscard]] double power() const { return power_; }
  [[nodiscard]] double time() const { return time_; }
  [[nodiscard]] double joules() const { return joules_; }
  void begin_period() { time_ = joules_ = 0; }

 private:
  void fall(double wanted, double length) {
    const double falls = std::min(length, (power_ - wanted) / slope_);
    spend(falls, std::max(wanted, power_ - slope_ * falls));
    spend(length - falls, power_);
  }
  void spend(double time, double until) {
    time_ += time;
    joules_ += time * (power_ + until) / 2;
    power_ = until;
  }

  double standing_, slope_, power_;
  double time_ = 0, joules_ = 0;
};

}  // namespace

SlowedPeriod rate_limited(const PowerSeries& series, Watts standing, double watts_per_s) {
  assert(watts_per_s > 0 && series.size() > 0);
  const double low = std::min(standing, trough_power(series)).base_units();
  RampedWork work(low, watts_per_s, mean_power(series).base_units());
  constexpr int kMostPeriods = 1000;
  constexpr double kSame = 1e-12;
  for (int turn = 0; turn < kMostPeriods; ++turn) {
    const double before = work.power();
    work.begin_period();
    for (std::size_t i = 0; i < series.size(); ++i) {
      work.pass(series.power[i].base_units(), (series.until(i) - series.start[i]).base_units());
    }
    if (std::abs(work.power() - before) <= kSame * before) break;
  }
  return {Seconds{work.time()}, Joules{work.joules()}};
}

}  // namespace lockstep
