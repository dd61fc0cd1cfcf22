#include "sim/congestion/recorder.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <tuple>

namespace lockstep {
namespace {

double seconds(StepTime t) { return to_seconds(t).base_units(); }

}  // namespace

CongestionRecorder::CongestionRecorder(FlowNetwork& network) : network_(network) {
  network.observe(this);
}

std::uint32_t CongestionRecorder::add_job(std::string name, std::string about) {
  jobs_.push_back({.name = std::move(name), .about = std::move(about)});
  likes_.emplace_back();
  return static_cast<std::uint32_t>(jobs_.size() - 1);
}

std::uint32_t CongestionRecorder::link_number(const std::string& name, BytesPerSecond capacity,
                                              bool entry) {
  const auto [at, is_new] =
      link_numbers_.try_emplace(name, static_cast<std::uint32_t>(links_.size()));
  if (is_new) links_.push_back({name, capacity.base_units(), entry});
  return at->second;
}

void CongestionRecorder::add_link(LinkIndex index, const std::string& name, BytesPerSecond capacity,
                                  bool entry) {
  if (index >= link_of_.size()) link_of_.resize(index + 1, kNone);
  link_of_[index] = link_number(name, capacity, entry);
}

void CongestionRecorder::add_like(std::uint32_t job, LinkIndex simulated, const std::string& name,
                                  BytesPerSecond capacity) {
  const std::uint32_t of = link_of(simulated);
  assert(of != kNone);
  const std::uint32_t like = link_number(name, capacity, links_[of].entry);
  Likes& likes = likes_[job];
  if (likes.all.insert(like).second) likes.of[of].push_back(like);
}

void CongestionRecorder::add_flow(FlowIndex flow, std::uint32_t job, const std::string& name,
                                  double unit) {
  assert(job < jobs_.size() && unit > 0);
  if (flow >= transfer_of_.size()) {
    transfer_of_.resize(flow + 1, kNone);
    unit_.resize(flow + 1, 1);
  }
  const auto [at, is_new] =
      transfer_numbers_.try_emplace({job, name}, static_cast<std::uint32_t>(transfers_.size()));
  if (is_new) {
    transfers_.push_back({job, name});
    runs_.emplace_back();
  }
  transfer_of_[flow] = at->second;
  unit_[flow] = unit;
}

void CongestionRecorder::started(FlowIndex flow, Bytes amount, StepTime now) {
  const std::uint32_t transfer = transfer_of(flow);
  if (transfer == kNone) return;
  runs_[transfer].push_back({.start = now,
                             .end = now,
                             .payload = amount.base_units() / unit_[flow],
                             .alone = (amount / rate_alone(flow)).base_units()});
}

BytesPerSecond CongestionRecorder::rate_alone(FlowIndex flow) const {
  BytesPerSecond rate{std::numeric_limits<double>::infinity()};
  for (const MaxMin::Edge& edge : network_.edges(flow)) {
    rate = std::min(rate, network_.capacity(edge.link) / edge.coefficient);
  }
  return rate;
}

void CongestionRecorder::moved(FlowIndex flow, StepTime from, StepTime to, BytesPerSecond rate,
                               LinkIndex held_by) {
  if (transfer_of(flow) == kNone) return;
  spans_.push_back({flow, held_by, from, to, rate.base_units()});
}

void CongestionRecorder::ended(FlowIndex flow, StepTime now) {
  const std::uint32_t transfer = transfer_of(flow);
  if (transfer == kNone) return;
  runs_[transfer].back().end = now;
  runs_[transfer].back().over = true;
}

/// Makes a report of what was recorded; each part fills in what it names.
class CongestionRecorder::Writer {
 public:
  Writer(const CongestionRecorder& of, StepTime end, const CongestionLimits& limits,
         std::span<const CongestionReport> alone)
      : of_(of),
        limits_(limits),
        end_(end),
        rate_alone_(payload_rates_alone(of, alone)),
        place_(of.links_.size(), kNone) {
    out_.jobs = of.jobs_;
    out_.end_s = seconds(end);
    out_.bin_s = out_.end_s / limits.bins;
  }

  CongestionReport write() {
    total_links();
    find_worst_links();
    find_done();
    choose_transfers();
    choose_links();
    fill_bins();
    find_causes();
    add_transfers();
    return std::move(out_);
  }

 private:
  /// Calls `use(link, bytes for each byte of the flow)` for the links that a span's flow loads, by
  /// itself or as those that are like them.
  template <class Use>
  void for_each_link(const Span& span, const Use& use) const {
    const Likes& likes = of_.likes_[of_.transfers_[of_.transfer_of(span.flow)].job];
    for (const MaxMin::Edge& edge : of_.network_.edges(span.flow)) {
      const std::uint32_t link = of_.link_of(edge.link);
      if (link == kNone) continue;
      if (!likes.all.contains(link)) use(link, edge.coefficient);
      const auto at = likes.of.find(link);
      if (at == likes.of.end()) continue;
      for (const std::uint32_t like : at->second) use(like, edge.coefficient);
    }
  }

  /// How long a link set the rate of a transfer, and how much of that it was slower than alone.
  struct Hold {
    double all_s = 0, slower_s = 0;
    double lost_s = 0;  ///< of slower_s: what alone would not have taken
  };

  /// Payload per second of each transfer alone, by transfer.
  static std::vector<double> payload_rates_alone(const CongestionRecorder& of,
                                                 std::span<const CongestionReport> alone) {
    std::map<std::pair<std::string_view, std::string_view>, double> known;
    for (const CongestionReport& report : alone) {
      for (const TransferCongestion& t : report.transfers) {
        if (t.mean_s > 0) known[{t.job, t.name}] = t.bytes / t.mean_s;
      }
    }
    std::vector<double> rates(of.transfers_.size());
    for (std::size_t t = 0; t < rates.size(); ++t) {
      const Transfer& transfer = of.transfers_[t];
      const auto at = known.find({of.jobs_[transfer.job].name, transfer.name});
      if (at != known.end()) {
        rates[t] = at->second;
        continue;
      }
      // Of its runs that in which its links allowed most: others may have lost some of theirs.
      for (const Run& run : of.runs_[t]) {
        if (run.alone > 0) rates[t] = std::max(rates[t], run.payload / run.alone);
      }
    }
    return rates;
  }

  /// Bytes of each job on each link, how long each transfer moved, and where it was held.
  void total_links() {
    bytes_.assign(of_.links_.size(), std::vector<double>(of_.jobs_.size()));
    held_.resize(of_.transfers_.size());
    moving_.resize(of_.transfers_.size());
    moved_.resize(of_.transfers_.size());
    for (const Span& span : of_.spans_) {
      const std::uint32_t transfer = of_.transfer_of(span.flow);
      const std::uint32_t job = of_.transfers_[transfer].job;
      const double time = seconds(span.to - span.from);
      const bool counts = span.from < counted_until(transfer);
      const double payload_rate = span.rate / of_.unit_[span.flow];
      moved_[transfer] += payload_rate * time;
      if (counts && span.rate > 0) moving_[transfer] += span.to - span.from;
      for_each_link(span, [&](std::uint32_t link, double coefficient) {
        const double moved = coefficient * span.rate * time;
        bytes_[link][job] += moved;
        if (of_.links_[link].entry) out_.jobs[job].bytes += moved;
      });
      const std::uint32_t held = of_.link_of(span.held_by);
      if (!counts || held == kNone) continue;
      // A mean of equal rates differs from them by roundings only.
      constexpr double kRounding = 1e-6;
      const double rate_alone = rate_alone_[transfer];
      const bool slower = payload_rate < rate_alone * (1 - kRounding);
      Hold& hold = held_[transfer][held];
      hold.all_s += time;
      if (slower) hold.slower_s += time;
      if (slower) hold.lost_s += time * (1 - payload_rate / rate_alone);
    }
    for (std::size_t l = 0; l < bytes_.size(); ++l) {
      const double moved = std::accumulate(bytes_[l].begin(), bytes_[l].end(), 0.0);
      out_.carried.push_back(
          {of_.links_[l].name, BytesPerSecond{of_.links_[l].capacity}, Bytes{moved}});
    }
  }

  /// That cost each transfer most; of one that is never slower than alone, that set its rate
  /// longest.
  void find_worst_links() {
    worst_.assign(held_.size(), {kNone, 0.0});
    for (std::size_t t = 0; t < held_.size(); ++t) {
      double most = 0;
      for (const auto& [link, hold] : held_[t]) {
        if (hold.lost_s <= most) continue;
        most = hold.lost_s;
        worst_[t] = {link, hold.slower_s};
      }
      if (most > 0) continue;
      for (const auto& [link, hold] : held_[t]) {
        if (hold.all_s > worst_[t].second) worst_[t] = {link, hold.all_s};
      }
    }
  }

  /// What a transfer's times are of: its runs that are over, else the one that is under way.
  [[nodiscard]] std::span<const Run> counted(std::uint32_t transfer) const {
    const std::vector<Run>& runs = of_.runs_[transfer];
    const bool leaves_out = runs.size() > 1 && !runs.back().over;
    return std::span(runs).first(runs.size() - (leaves_out ? 1 : 0));
  }
  /// Spans that begin before this are of counted() runs.
  [[nodiscard]] StepTime counted_until(std::uint32_t transfer) const {
    const std::vector<Run>& runs = of_.runs_[transfer];
    return counted(transfer).size() < runs.size() ? runs.back().start : end_;
  }
  [[nodiscard]] double done_share(std::uint32_t transfer) const {
    const std::vector<Run>& runs = of_.runs_[transfer];
    return runs.front().over ? 1 : std::min(1.0, moved_[transfer] / runs.front().payload);
  }

  /// What is done of all that each job began.
  void find_done() {
    std::vector<double> done(out_.jobs.size()), begun(out_.jobs.size());
    for (std::uint32_t t = 0; t < moved_.size(); ++t) {
      done[of_.transfers_[t].job] += moved_[t];
      for (const Run& run : of_.runs_[t]) begun[of_.transfers_[t].job] += run.payload;
    }
    for (std::size_t j = 0; j < done.size(); ++j) {
      out_.jobs[j].done_share = begun[j] > 0 ? std::min(1.0, done[j] / begun[j]) : 0;
    }
  }

  /// Those that ran; where they are too many, those that took longest against alone.
  void choose_transfers() {
    std::vector<double> slowdown(of_.transfers_.size());
    for (std::uint32_t t = 0; t < slowdown.size(); ++t) {
      if (of_.runs_[t].empty()) continue;
      double time = 0, alone = 0;
      for (const Run& run : counted(t)) {
        time += seconds(end_of(run) - run.start);
        alone += run.alone;
        JobCongestion& job = out_.jobs[of_.transfers_[t].job];
        job.step_s = std::max(job.step_s, seconds(end_of(run)));
      }
      slowdown[t] = slowdown_of(time, alone, done_share(t));
      kept_.push_back(t);
    }
    out_.transfers_run = kept_.size();
    if (kept_.size() <= limits_.transfers) return;
    std::ranges::stable_sort(kept_, [&](auto a, auto b) { return slowdown[a] > slowdown[b]; });
    kept_.resize(limits_.transfers);
    std::ranges::sort(kept_);
  }
  [[nodiscard]] StepTime end_of(const Run& run) const { return run.over ? run.end : end_; }

  /// The fullest, and those that held somebody back longest.
  void choose_links() {
    std::vector<double> load(of_.links_.size());
    for (std::size_t l = 0; l < load.size(); ++l) {
      const double moved = std::accumulate(bytes_[l].begin(), bytes_[l].end(), 0.0);
      load[l] = out_.end_s > 0 ? moved / (of_.links_[l].capacity * out_.end_s) : 0;
    }
    out_.links_used =
        static_cast<std::size_t>(std::ranges::count_if(load, [](double use) { return use > 0; }));
    std::vector<double> holds(load.size());
    for (const auto& [link, time] : worst_) {
      if (link != kNone) holds[link] += time;
    }
    std::vector<std::uint32_t> order(load.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto pick = [&](const std::vector<double>& by, std::size_t most) {
      std::ranges::stable_sort(order, [&](auto a, auto b) { return by[a] > by[b]; });
      for (const std::uint32_t link : order) {
        if (chosen_.size() >= most || by[link] <= 0) break;
        if (place_[link] != kNone) continue;
        place_[link] = 0;
        chosen_.push_back(link);
      }
    };
    pick(holds, limits_.links / 2);
    pick(load, limits_.links);
    std::ranges::sort(chosen_);
    std::ranges::stable_sort(chosen_, [&](auto a, auto b) { return load[a] > load[b]; });
    for (const std::uint32_t link : chosen_) {
      place_[link] = static_cast<std::uint32_t>(out_.links.size());
      const Named& named = of_.links_[link];
      out_.links.push_back({.name = named.name,
                            .capacity_bytes_per_s = named.capacity,
                            .mean_utilisation = load[link],
                            .utilisation = {},
                            .bytes_by_job = bytes_[link]});
    }
  }

  void fill_bins() {
    const auto bins = static_cast<std::size_t>(limits_.bins);
    std::vector<std::vector<double>> bytes(out_.links.size(), std::vector<double>(bins));
    if (out_.bin_s <= 0) return;
    for (const Span& span : of_.spans_) {
      for_each_link(span, [&](std::uint32_t link, double coefficient) {
        if (place_[link] == kNone) return;
        spread(seconds(span.from), seconds(span.to), coefficient * span.rate, bytes[place_[link]]);
      });
    }
    for (std::size_t l = 0; l < bytes.size(); ++l) {
      LinkCongestion& link = out_.links[l];
      for (const double moved : bytes[l]) {
        const double use = moved / (link.capacity_bytes_per_s * out_.bin_s);
        link.peak_utilisation = std::max(link.peak_utilisation, use);
        link.utilisation.push_back(static_cast<float>(use));
      }
    }
  }

  void spread(double from, double to, double rate, std::vector<double>& bins) const {
    const double width = out_.bin_s;
    auto bin = std::min(static_cast<std::size_t>(from / width), bins.size() - 1);
    while (from < to) {
      const bool last = bin + 1 == bins.size();
      const double until = last ? to : std::min(to, static_cast<double>(bin + 1) * width);
      if (until > from) bins[bin] += rate * (until - from);
      from = std::max(from, until);
      if (last) return;
      ++bin;
    }
  }

  /// A span of somebody on a link that held a transfer back.
  struct Use {
    std::uint32_t span;
    double coefficient;
  };

  void find_causes() {
    std::vector<std::vector<Use>> uses(of_.links_.size());
    std::vector<std::uint8_t> wanted(of_.links_.size());
    for (const std::uint32_t t : kept_) {
      if (worst_[t].first != kNone) wanted[worst_[t].first] = 1;
    }
    for (std::uint32_t s = 0; s < of_.spans_.size(); ++s) {
      for (const MaxMin::Edge& edge : of_.network_.edges(of_.spans_[s].flow)) {
        const std::uint32_t link = of_.link_of(edge.link);
        if (link != kNone && wanted[link] != 0) uses[link].push_back({s, edge.coefficient});
      }
    }
    causes_.resize(worst_.size());
    for (const std::uint32_t t : kept_) {
      if (worst_[t].first != kNone) find_cause(t, uses[worst_[t].first]);
    }
  }

  void find_cause(std::uint32_t transfer, const std::vector<Use>& uses) {
    const std::span<const Run> runs = counted(transfer);
    std::map<std::uint32_t, double> bytes;
    double all = 0;
    for (const Use& use : uses) {
      const Span& span = of_.spans_[use.span];
      auto run =
          std::ranges::partition_point(runs, [&](const Run& r) { return end_of(r) <= span.from; });
      for (; run != runs.end() && run->start < span.to; ++run) {
        const StepTime from = std::max(run->start, span.from), to = std::min(end_of(*run), span.to);
        if (to <= from) continue;
        const double moved = use.coefficient * span.rate * seconds(to - from);
        bytes[of_.transfer_of(span.flow)] += moved;
        all += moved;
      }
    }
    bytes.erase(transfer);
    for (const auto& [other, moved] : bytes) {
      if (moved > causes_[transfer].second) causes_[transfer] = {other, moved};
    }
    if (all > 0) causes_[transfer].second /= all;
  }

  void add_transfers() {
    for (const std::uint32_t t : kept_) {
      const std::span<const Run> runs = counted(t);
      const Transfer& transfer = of_.transfers_[t];
      TransferCongestion row{.job = of_.jobs_[transfer.job].name,
                             .name = transfer.name,
                             .runs = static_cast<std::uint32_t>(runs.size()),
                             .start_s = seconds(runs.front().start),
                             .done_share = done_share(t),
                             .cause = {}};
      StepTime under_way;
      for (const Run& run : runs) {
        const StepTime run_end = end_of(run);
        under_way += run_end - run.start;
        row.alone_s += run.alone;
        row.bytes += run.payload;
      }
      const double time = seconds(under_way);
      row.mean_s = time / row.runs;
      row.alone_s /= row.runs;
      row.stalled_s = seconds(under_way - moving_[t]) / row.runs;
      row.bytes /= row.runs;
      const auto& [worst, held] = worst_[t];
      const auto& [cause, share] = causes_[t];
      if (worst != kNone && place_[worst] != kNone) {
        row.worst_link = static_cast<std::int32_t>(place_[worst]);
        row.worst_link_share = std::min(1.0, held / time);
      }
      if (share > 0) {
        row.cause = of_.jobs_[of_.transfers_[cause].job].name + ": " + of_.transfers_[cause].name;
        row.cause_share = share;
      }
      out_.transfers.push_back(std::move(row));
    }
  }

  const CongestionRecorder& of_;
  const CongestionLimits& limits_;
  StepTime end_;
  std::vector<double> rate_alone_;  ///< by transfer: payload per second
  CongestionReport out_;
  std::vector<std::vector<double>> bytes_;                ///< by link and job
  std::vector<StepTime> moving_;                          ///< by transfer: time with a rate
  std::vector<double> moved_;                             ///< by transfer: payload, all runs
  std::vector<std::map<std::uint32_t, Hold>> held_;       ///< by transfer and link
  std::vector<std::pair<std::uint32_t, double>> worst_;   ///< by transfer: link, seconds
  std::vector<std::pair<std::uint32_t, double>> causes_;  ///< by transfer: other one, share
  std::vector<std::uint32_t> kept_;                       ///< transfers in the report
  std::vector<std::uint32_t> place_;                      ///< by link: in the report
  std::vector<std::uint32_t> chosen_;
};

CongestionReport CongestionRecorder::report(StepTime end, const CongestionLimits& limits,
                                            std::span<const CongestionReport> alone) const {
  return Writer{*this, end, limits, alone}.write();
}

void compare_with_alone(std::span<const CongestionReport> alone, CongestionReport& together) {
  std::map<std::pair<std::string, std::string>, double> transfers;
  std::map<std::string, double> jobs;
  for (const CongestionReport& report : alone) {
    for (const TransferCongestion& t : report.transfers) transfers[{t.job, t.name}] = t.mean_s;
    for (const JobCongestion& job : report.jobs) jobs[job.name] = job.step_s;
  }
  for (TransferCongestion& t : together.transfers) {
    if (const auto at = transfers.find({t.job, t.name}); at != transfers.end()) {
      t.alone_s = at->second;
    }
  }
  for (JobCongestion& job : together.jobs) {
    if (const auto at = jobs.find(job.name); at != jobs.end()) job.alone_s = at->second;
  }
  std::ranges::stable_sort(together.transfers, std::ranges::greater{},
                           [](const TransferCongestion& t) { return t.slowdown(); });
}

}  // namespace lockstep
