#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/core/random.hpp"
#include "sim/scenario/queue_trace.hpp"
#include "sim/scenario/read_elastic.hpp"

namespace lockstep {
namespace {

constexpr Interval kGap{0, 1e8};
constexpr Interval kDuration{0, 1e8, true};
constexpr double kLongestDraw = 4e9;  // seconds
constexpr std::size_t kHours = 24, kWeekDays = 7, kWorkDays = 5;
constexpr double kHour = 3600;

/// Purposes of the draws of a job; those of node failures are 1 and 2.
enum class JobDraw : std::uint32_t {
  gap = 16,
  gpus,
  duration,
  limit,
  account,
  user,
  model,
  priority
};

template <class Of>
const Of& pick(const std::vector<std::pair<Of, double>>& from, double share) {
  double sum = 0;
  for (const auto& [of, weight] : from) sum += weight;
  double left = share * sum;
  for (const auto& [of, weight] : from) {
    left -= weight;
    if (left < 0) return of;
  }
  return from.back().first;
}

/// A list of [value, weight] pairs.
template <class Of, class Read>
std::vector<std::pair<Of, double>> read_weighted(const JsonCursor& from, const Read& read) {
  constexpr std::size_t kMostChoices = 10'000;
  constexpr Interval kWeight{0, 1e12};
  std::vector<std::pair<Of, double>> out;
  double sum = 0;
  for (const JsonCursor& entry : from.elements(kMostChoices)) {
    const std::vector<JsonCursor> pair = entry.elements(2);
    if (pair.size() != 2) entry.fail("a value and its weight");
    out.emplace_back(read(pair[0]), pair[1].number(kWeight));
    sum += out.back().second;
  }
  if (!(sum > 0)) from.fail("at least one value with a weight above 0");
  return out;
}

constexpr ValueType kWeightedNumbers = written_type(R"({"type": "array", "minItems": 1,
    "items": {"type": "array", "minItems": 2, "maxItems": 2,
              "prefixItems": [{"type": "integer"}, {"type": "number", "minimum": 0}]}})");
constexpr ValueType kWeightedNames = written_type(R"({"type": "array", "minItems": 1,
    "items": {"type": "array", "minItems": 2, "maxItems": 2,
              "prefixItems": [{"type": "string"}, {"type": "number", "minimum": 0}]}})");

/// The draws of one job.
class JobDraws {
 public:
  JobDraws(std::uint64_t seed, std::uint32_t entry, std::uint32_t job)
      : seed_(seed), entry_(entry), job_(job) {}

  [[nodiscard]] RandomStream stream(JobDraw purpose) const {
    return RandomStream({.seed = seed_,
                         .trajectory = entry_,
                         .component = job_,
                         .purpose = static_cast<std::uint32_t>(purpose)});
  }
  [[nodiscard]] double uniform(JobDraw purpose) const { return stream(purpose).uniform(); }

 private:
  std::uint64_t seed_;
  std::uint32_t entry_, job_;
};

/// How busy an instant is, as a share of the mean.
class Rhythm {
 public:
  explicit Rhythm(const DrawnJobs& drawn) {
    for (std::size_t day = 0; day < kWeekDays; ++day) {
      for (std::size_t hour = 0; hour < kHours; ++hour) {
        const double of_hour = drawn.day.empty() ? 1 : drawn.day[hour];
        weights_[day * kHours + hour] = of_hour * (day < kWorkDays ? 1 : drawn.weekend);
      }
    }
    const double mean = std::accumulate(weights_.begin(), weights_.end(), 0.0) /
                        static_cast<double>(weights_.size());
    for (double& weight : weights_) weight /= mean;
  }

  /// The time at which `work` seconds of an even rhythm have passed since `from`.
  [[nodiscard]] double after(double from, double work) const {
    for (;;) {
      const double hour = std::floor(from / kHour);
      const auto of_week = static_cast<std::size_t>(std::fmod(hour, kWeekDays * kHours));
      const double weight = weights_[of_week];
      const double left = (hour + 1) * kHour - from;
      if (work <= left * weight) return from + (weight > 0 ? work / weight : 0);
      work -= left * weight;
      from = (hour + 1) * kHour;
    }
  }

 private:
  std::array<double, kWeekDays * kHours> weights_{};
};

double duration_of(const DrawnJobs& drawn, const JobDraws& draws) {
  const double mean = drawn.mean.base_units();
  RandomStream stream = draws.stream(JobDraw::duration);
  if (drawn.exponential) return std::min(mean * stream.exponential(), kLongestDraw);
  if (drawn.sigma == 0) return mean;
  const double location = portable_log(mean) - drawn.sigma * drawn.sigma / 2;
  return std::min(portable_exp(location + drawn.sigma * stream.normal()), kLongestDraw);
}

}  // namespace

void declare_drawn_jobs(const DeclaredMembers& member, DrawnJobs& out) {
  member.required("count", out.count, 1, static_cast<int>(kMostQueueJobs), "Jobs");
  member.optional("every", out.every, kGap,
                  "Mean gap from one submission to the next, exponential; default: all at once");
  member.optional("day", written_type(R"({"type": "array", "minItems": 24, "maxItems": 24,
                                   "items": {"type": "number", "minimum": 0}})"),
                  "How busy each hour of a day is; the mean gap stays", [&](const JsonCursor& at) {
                    const std::vector<JsonCursor> hours = at.elements(kHours);
                    if (hours.size() != kHours) at.fail("24 weights, one for each hour");
                    double sum = 0;
                    for (const JsonCursor& hour : hours) {
                      out.day.push_back(hour.number({0, 1e6}));
                      sum += out.day.back();
                    }
                    if (!(sum > 0)) at.fail("at least one weight above 0");
                  });
  member.optional("weekend", out.weekend, Interval{0, 100},
                  "How busy days 6 and 7 of a week are, over the others; default: 1");
  member.required("gpus", kWeightedNumbers, "[width, weight] pairs", [&](const JsonCursor& at) {
    out.gpus =
        read_weighted<int>(at, [](const JsonCursor& of) { return of.integer(1, 10'000'000); });
  });
  member.required("mean", out.mean, kDuration, "Mean duration");
  member.optional("sigma", out.sigma, Interval{0, 5},
                  "Log-normal: of the logarithm of a duration; default: 0, all alike");
  member.optional("exponential", out.exponential, "Durations are exponential; default: false");
  member.optional("limit_factor", out.limit_factor, Interval{1, 1000},
                  "Time limits are 1 to this many times the duration, evenly; default: 1");
  const auto names = [&](std::string_view key, std::string_view sentence,
                         std::vector<std::pair<std::string, double>>& to) {
    member.optional(key, kWeightedNames, sentence, [&to](const JsonCursor& at) {
      to = read_weighted<std::string>(at, [](const JsonCursor& of) { return of.string(); });
    });
  };
  names("accounts", "[name, weight] pairs", out.accounts);
  names("users", "[name, weight] pairs", out.users);
  names("models", "[name, weight] pairs", out.models);
  member.optional("priorities", kWeightedNumbers, "[priority, weight] pairs",
                  [&](const JsonCursor& at) {
                    out.priorities = read_weighted<int>(
                        at, [](const JsonCursor& of) { return of.integer(-1'000'000, 1'000'000); });
                  });
  declare_drawn_widths(member, out.widths);
  if (member.object() != nullptr && out.exponential && out.sigma > 0) {
    member.object()->at("sigma").fail("no such key beside \"exponential\"");
  }
}

void draw_jobs(const DrawnJobs& drawn, std::uint32_t number, QueueSpec& out) {
  const Rhythm rhythm(drawn);
  double submit = 0;
  const auto label = [&](const std::vector<std::pair<std::string, double>>& from, double share,
                         NameTable& names) {
    return from.empty() ? std::uint16_t{0} : label_of(pick(from, share), names, out.file);
  };
  if (!out.names.empty()) out.names.resize(out.jobs.size());
  for (std::uint32_t j = 0; j < static_cast<std::uint32_t>(drawn.count); ++j) {
    const JobDraws draws(out.seed, number, j);
    if (drawn.every > Seconds{}) {
      const double gap = drawn.every.base_units() * draws.stream(JobDraw::gap).exponential();
      submit = rhythm.after(submit, gap);
    }
    QueueJob job;
    job.submit = to_run_time(Seconds{std::min(submit, kLongestDraw)});
    const double runs = duration_of(drawn, draws);
    job.runs = to_run_time(Seconds{runs});
    const double over = 1 + (drawn.limit_factor - 1) * draws.uniform(JobDraw::limit);
    job.limit = std::max(job.runs, to_run_time(Seconds{std::min(runs * over, kLongestDraw)}));
    job.gpus = pick(drawn.gpus, draws.uniform(JobDraw::gpus));
    job.account = label(drawn.accounts, draws.uniform(JobDraw::account), out.accounts);
    job.user = label(drawn.users, draws.uniform(JobDraw::user), out.users);
    job.model = label(drawn.models, draws.uniform(JobDraw::model), out.models);
    if (!drawn.priorities.empty()) {
      job.priority = pick(drawn.priorities, draws.uniform(JobDraw::priority));
    }
    if (!drawn.widths.empty()) job.widths = drawn_width_table(drawn.widths, job.gpus, out);
    if (!out.names.empty()) out.names.push_back(std::to_string(out.jobs.size()));
    out.jobs.push_back(job);
  }
}

}  // namespace lockstep
