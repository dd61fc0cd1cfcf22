#include "sim/search/sweep/engine.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "models/base/write_json.hpp"
#include "sim/core/thread_leave.hpp"
#include "sim/search/sweep/estimate.hpp"
#include "sim/search/sweep/simulate_point.hpp"

namespace lockstep {
namespace {

using Makers = tbb::enumerable_thread_specific<PointMaker>;

/// Calls `work(maker, number)` for all numbers, about in order, on `jobs` threads.
template <class Work>
void for_each_point(const Sweep& sweep, int jobs, const std::vector<std::uint32_t>& numbers,
                    const Work& work) {
  Makers makers([&] { return PointMaker(sweep); });
  const ThreadLeave leave(jobs);
  tbb::task_arena arena(jobs);
  arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, numbers.size(), 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          for (std::size_t i = range.begin(); i < range.end(); ++i) {
            work(makers.local(), numbers[i]);
          }
        },
        tbb::simple_partitioner());
  });
}

}  // namespace

SweepEngine::SweepEngine(const Sweep& sweep, const PresetStore& presets, int jobs,
                         std::vector<std::string> reused)
    : sweep_(sweep),
      presets_(presets),
      intervals_(presets),
      jobs_(jobs),
      metrics_(metrics_of(sweep)),
      members_(members_of(metrics_)) {
  const std::string digest = presets_digest(presets);
  manifest_ = manifest_of(sweep, digest);
  std::string made_by =
      std::string("lockstep " LOCKSTEP_VERSION) + (sweep.allow_oom ? ", allow_oom" : "");
  if (sweep.folding == Folding::folded) made_by += ", folded";
  if (sweep.folding == Folding::unfolded) made_by += ", unfolded";
  hasher_ = std::make_unique<PointHasher>(
      made_by, digest, std::filesystem::path(sweep.scenario_file).parent_path().string());
  for (std::string& path : reused) {
    reused_.push_back(std::make_unique<ResultsReader>(std::move(path)));
  }
}
SweepEngine::~SweepEngine() = default;

std::string SweepEngine::hash_of(const SweepPoint& point) const {
  return hasher_->hash(point.scenario);
}

std::vector<std::uint32_t> SweepEngine::missing(const std::vector<std::uint32_t>& numbers,
                                                ResultsDb& results) const {
  std::vector<FinishedPoint> stored = results.finished();
  std::erase_if(stored, [&](const FinishedPoint& point) {
    const bool counts = std::ranges::binary_search(numbers, point.number);
    if (!counts) results.remove(point.number);
    return !counts;
  });
  results.commit();
  std::vector<std::uint32_t> kept;
  kept.reserve(stored.size());
  for (const FinishedPoint& point : stored) kept.push_back(point.number);
  std::vector<char> stale(numbers.size(), 1);
  for_each_point(sweep_, jobs_, kept, [&](PointMaker& maker, std::uint32_t number) {
    const auto was = std::ranges::lower_bound(stored, number, {}, &FinishedPoint::number);
    const auto place = std::ranges::lower_bound(numbers, number) - numbers.begin();
    stale[static_cast<std::size_t>(place)] = short_hash(hash_of(maker.make(number))) != was->hash;
  });
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (stale[i]) out.push_back(numbers[i]);
  }
  return out;
}

std::optional<StoredPoint> SweepEngine::known(const std::string& hash, ResultsDb& results) const {
  // One without its answer is of no use to a sweep that keeps answers, nor where a metric lacks.
  const auto is_whole = [&](const std::optional<StoredPoint>& point) {
    if (!point || !point->answer.error.empty() || !point->answer.json.empty()) {
      return point.has_value();
    }
    return !sweep_.keeps_answers && !point->metrics.empty();
  };
  if (auto point = results.find(hash); is_whole(point)) return point;
  if (reused_.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (const SweepMetric& metric : metrics_) names.push_back(metric.name);
  for (const auto& reader : reused_) {
    if (auto point = reader->find(hash, names); is_whole(point)) return point;
  }
  return std::nullopt;
}

void SweepEngine::simulate(const std::vector<std::uint32_t>& numbers, ResultsDb& results,
                           const std::function<bool()>& go_on,
                           const std::function<void()>& one_done) const {
  for_each_point(sweep_, jobs_, numbers, [&](PointMaker& maker, std::uint32_t number) {
    if (!go_on()) return;
    SweepPoint point = maker.make(number);
    ResultRow row{.number = number,
                  .values = std::move(point.values),
                  .metrics = {},
                  .hash = hash_of(point),
                  .answer = {}};
    if (auto stored = known(row.hash, results)) {
      row.metrics = std::move(stored->metrics);
      row.answer = std::move(stored->answer);
      if (row.metrics.empty()) {
        nlohmann::ordered_json json;
        if (!row.answer.json.empty()) json = nlohmann::ordered_json::parse(row.answer.json);
        row.metrics = metric_values(metrics_, json);
      }
      if (!sweep_.keeps_answers) row.answer.json.clear();
    } else {
      std::optional<PointAnswer> made =
          simulate_point(sweep_, point.scenario, presets_, intervals_, go_on,
                         sweep_.keeps_answers ? nullptr : &members_);
      if (!made) return;
      row.metrics = metric_values(metrics_, made->json);
      row.answer.error = std::move(made->error);
      if (sweep_.keeps_answers) row.answer.json = write_json(made->json);
    }
    results.add(row);
    one_done();
  });
  results.commit();
}

std::vector<double> SweepEngine::try_points(const std::vector<std::uint32_t>& numbers,
                                            double limit_s) const {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kSample = 32, kFew = 8;
  constexpr double kPatience = 5;  // so many limits for a few points
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  std::vector<std::uint32_t> sample;
  for (const std::size_t place : points_to_try(numbers.size(), kSample)) {
    sample.push_back(numbers[place]);
  }
  const Clock::time_point begin = Clock::now();
  std::atomic<std::size_t> next{0};
  std::vector<double> seconds(sample.size(), -1);
  for_each_point(sweep_, jobs_, sample, [&](PointMaker& maker, std::uint32_t) {
    const std::size_t mine = next++;
    if (mine > 0 && since(begin) > (mine < kFew ? kPatience : 1) * limit_s) return;
    const Clock::time_point start = Clock::now();
    const SweepPoint point = maker.make(sample[mine]);
    (void)simulate_point(sweep_, point.scenario, presets_, intervals_, [] { return true; });
    seconds[mine] = since(start);
  });
  std::erase_if(seconds, [](double each) { return each < 0; });
  return seconds;
}

}  // namespace lockstep
