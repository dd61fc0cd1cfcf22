// Orders by service: Gittins indices in closed form and where they come to orders that are known,
// predictions of given error, dominant resource fairness.
#include "sim/cluster/service_order.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::seconds;

/// Jobs that come over a while, with services that `runs` draws.
QueueSpec drawn_queue(std::uint64_t seed, int widest,
                      const std::function<double(RandomStream&)>& runs) {
  QueueSpec spec = test::empty_queue(2, 4);
  RandomStream random({.seed = seed, .purpose = 96});
  double at = 0;
  for (int j = 0; j < 200; ++j) {
    at += 12 * random.exponential();
    QueueJob job;
    job.submit = seconds(at);
    job.runs = job.limit = seconds(runs(random));
    job.gpus = 1 + static_cast<int>(random.below(static_cast<std::uint32_t>(widest)));
    spec.jobs.push_back(job);
  }
  return spec;
}

bool same_times(const QueueResult& a, const QueueResult& b) {
  return std::ranges::equal(a.jobs, b.jobs, [](const JobOutcome& x, const JobOutcome& y) {
    return x.start == y.start && x.end == y.end && x.evictions == y.evictions;
  });
}

double mean_wait_s(const QueueSpec& spec, QueueOrder order, double sigma) {
  QueueSpec of = spec;
  of.order = order;
  of.estimate_sigma = sigma;
  return summary_of(of, simulate_queue(of)).all.wait_s->mean;
}

/// Jobs of two accounts at once: GPUs and licences of each.
QueueSpec two_accounts(int gpus_of_a, int licenses_of_a, int gpus_of_b, int licenses_of_b) {
  QueueSpec spec = test::empty_queue(1, 9);
  spec.order = QueueOrder::drf;
  spec.licenses = {{.name = "memory", .count = 18}};
  spec.license_sets.push_back({{.license = 0, .count = licenses_of_a}});
  spec.license_sets.push_back({{.license = 0, .count = licenses_of_b}});
  for (int j = 0; j < 24; ++j) {
    const bool is_a = j < 12;
    QueueJob job;
    job.runs = job.limit = seconds(100);
    job.gpus = is_a ? gpus_of_a : gpus_of_b;
    job.account = *spec.accounts.number_of(is_a ? "a" : "b");
    job.licenses = is_a ? 1 : 2;
    spec.jobs.push_back(job);
  }
  return spec;
}

/// Jobs of the first and of the second account that start at once.
std::pair<int, int> first_starts(const QueueSpec& spec) {
  const QueueResult result = simulate_queue(spec);
  std::pair<int, int> out{0, 0};
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    if (result.jobs[j].start == 0) ++(spec.jobs[j].account == 1 ? out.first : out.second);
  }
  return out;
}

/// What the reader says of a queue with these rules.
std::string complaint_of_rules(const std::string& rules) {
  const std::string text = R"({"cluster": {"node": "dgx_h100", "nodes": 1}, "queue": {)" + rules +
                           R"(, "jobs": [{"job": {"name": "a", "runs": "1 s"}}]}})";
  try {
    (void)read_queue(JsonCursor::parse("t.json", text), test::presets());
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("orders by service: what the reader refuses") {
  const auto says = [](const std::string& rules, const char* what) {
    const std::string text = complaint_of_rules(rules);
    CAPTURE(text);
    CHECK(text.find(what) != std::string::npos);
  };
  says(R"("order": "gittins", "admission": "strict")", "levels");
  says(R"("order": "sjf", "admission": "strict", "estimate_sigma": 1)", "/queue/estimate_sigma");
  says(R"("order": "qssf", "admission": "strict", "preemption": {"mode": "evict"})",
       "/queue/preemption/mode");
  says(R"("order": "drf", "admission": "easy")", "/queue/admission");
  says(R"("order": "drf", "admission": "strict", "preemption": {"mode": "replan"})",
       "/queue/preemption/mode");
  CHECK(complaint_of_rules(R"("order": "qssf", "admission": "easy", "estimate_sigma": 1)").empty());
  CHECK(complaint_of_rules(R"("order": "drf", "admission": "best_effort")").empty());
  const std::string drf = R"("order": "drf", "admission": "best_effort", "accounts": [)";
  says(drf + R"({"name": "P", "shares": 3}, {"name": "A", "parent": "P"}])",
       "/queue/accounts/1/parent");
  says(drf + R"({"name": "A", "shares": "parent"}])", "/queue/accounts/0/shares");
  says(drf + R"({"name": "A", "users": [{"name": "u", "shares": 2}]}])",
       "/queue/accounts/0/users/0/shares");
  CHECK(
      complaint_of_rules(drf + R"({"name": "A", "shares": 2, "users": [{"name": "u"}]}])").empty());
  CHECK(
      complaint_of_rules(R"("order": "gittins", "admission": "slurm", "levels": ["1 h"])").empty());
}

TEST_CASE("gittins index: one size, two sizes, and none that is larger") {
  const GittinsIndex one({5}, {});
  CHECK(one.at(0) == 1 / 5.0);
  CHECK(one.at(3) == 1 / 2.0);
  CHECK(one.at(5) == 0);
  // 9 of 10 take 1, one takes 100: try 1 first; who is left has 99 to go.
  std::vector<double> sizes(9, 1.0);
  sizes.push_back(100);
  const GittinsIndex two(sizes, sizes);
  CHECK(two.at(0) == doctest::Approx(0.9));
  CHECK(two.at(1) == doctest::Approx(1 / 99.0));
  // If nobody can be stopped before the end, it is one over the mean.
  CHECK(GittinsIndex(sizes, {}).at(0) == doctest::Approx(10 / 109.0));
  CHECK(GittinsIndex({}, {}).at(0) == 0);
}

TEST_CASE("gittins index: of exponential services it is the rate, whatever was attained") {
  std::vector<double> services;
  const int count = 20'000;
  for (int i = 1; i <= count; ++i) {
    services.push_back(-7 * std::log(1 - static_cast<double>(i) / (count + 1)));
  }
  const GittinsIndex index(services, {2, 5, 10, 20, 40});
  for (const double attained : {0.0, 2.0, 5.0, 10.0}) {
    CAPTURE(attained);
    CHECK(index.at(attained) == doctest::Approx(1 / 7.0).epsilon(0.01));
  }
}

TEST_CASE("gittins: where the hazard falls, least attained service comes first") {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    CAPTURE(seed);
    QueueSpec spec = drawn_queue(
        seed, 4, [](RandomStream& random) { return random.uniform() < 0.8 ? 5.0 : 200.0; });
    spec.levels = {seconds(20), seconds(100), seconds(220)};
    spec.preemption.mode = PreemptionMode::evict;
    spec.order = QueueOrder::gittins;
    const std::vector<double> levels = gittins_of_levels(spec);
    REQUIRE(levels[0] > levels[1]);
    const QueueResult gittins = simulate_queue(spec);
    CHECK(gittins.evictions > 0);
    // Among those that no short job is among any more, who has attained most is first.
    CHECK(levels[3] > levels[1]);
    spec.levels.resize(1);
    const QueueResult of_two = simulate_queue(spec);
    spec.order = QueueOrder::las;
    CHECK(same_times(of_two, simulate_queue(spec)));
  }
}

TEST_CASE("gittins: where the hazard rises, first in first out, and nobody is evicted") {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    CAPTURE(seed);
    QueueSpec spec =
        drawn_queue(seed, 1, [](RandomStream& random) { return 50 + 10 * random.uniform(); });
    for (QueueJob& job : spec.jobs) job.gpus = 4;
    spec.levels = {seconds(40), seconds(80), seconds(160)};
    spec.preemption.mode = PreemptionMode::evict;
    spec.order = QueueOrder::gittins;
    CHECK(std::ranges::is_sorted(gittins_of_levels(spec)));
    const QueueResult gittins = simulate_queue(spec);
    CHECK(gittins.evictions == 0);
    spec.order = QueueOrder::fifo;
    spec.preemption.mode = PreemptionMode::none;
    CHECK(same_times(gittins, simulate_queue(spec)));
  }
}

TEST_CASE("qssf: right predictions order by time x GPUs, and wrong ones cost waits") {
  double right = 0, wrong = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    CAPTURE(seed);
    QueueSpec spec =
        drawn_queue(seed, 4, [](RandomStream& random) { return 30 * random.exponential() + 1; });
    spec.seed = seed;
    spec.order = QueueOrder::qssf;
    const QueueResult predicted = simulate_queue(spec);
    spec.order = QueueOrder::srsf;
    CHECK(same_times(predicted, simulate_queue(spec)));
    for (QueueJob& job : spec.jobs) job.gpus = 4;
    spec.order = QueueOrder::qssf;
    const QueueResult alike = simulate_queue(spec);
    spec.order = QueueOrder::sjf;
    CHECK(same_times(alike, simulate_queue(spec)));
    right += mean_wait_s(spec, QueueOrder::qssf, 0);
    wrong += mean_wait_s(spec, QueueOrder::qssf, 3);
  }
  CHECK(right < wrong);
}

TEST_CASE("qssf: predictions are log-normal about the truth, and the same in each run") {
  QueueSpec spec = test::empty_queue(1, 8);
  for (int j = 0; j < 4000; ++j) {
    QueueJob job;
    job.runs = job.limit = seconds(10);
    job.gpus = 2;
    spec.jobs.push_back(job);
  }
  CHECK(predicted_services(spec) == std::vector<double>(4000, 20.0));
  spec.estimate_sigma = 0.5;
  const std::vector<double> drawn = predicted_services(spec);
  CHECK(drawn == predicted_services(spec));
  double sum = 0, squares = 0;
  for (const double service : drawn) {
    const double off = std::log(service / 20);
    sum += off;
    squares += off * off;
  }
  CHECK(std::abs(sum / 4000) < 0.03);
  CHECK(std::sqrt(squares / 4000) == doctest::Approx(0.5).epsilon(0.05));
}

TEST_CASE("drf: the published example, three tasks of one and two of the other") {
  // Of 9 CPUs and 18 GB, tasks of (1 CPU, 4 GB) and of (3 CPUs, 1 GB): Ghodsi et al., section 4.1.
  CHECK(first_starts(two_accounts(1, 4, 3, 1)) == std::pair(3, 2));
}

TEST_CASE("drf: accounts that ask for the same share by their weights, and one alone is fifo") {
  QueueSpec spec = two_accounts(1, 1, 1, 1);
  spec.licenses[0].count = 1000;
  for (const double shares : {2.0, 1.0}) {
    Association& account = spec.associations.emplace_back();
    account.number = static_cast<std::uint16_t>(spec.associations.size());
    account.shares = shares;
  }
  CHECK(first_starts(spec) == std::pair(6, 3));
  spec.associations[0].shares = 0;  // comes last: it gets what the other leaves, which is nothing
  CHECK(first_starts(spec) == std::pair(0, 9));

  QueueSpec alone =
      drawn_queue(5, 4, [](RandomStream& random) { return 30 * random.exponential(); });
  const QueueResult fifo = simulate_queue(alone);
  alone.order = QueueOrder::drf;
  CHECK(same_times(simulate_queue(alone), fifo));
}

TEST_CASE("drf: over time, who holds less goes first, whoever came before") {
  // The first account's jobs came first and hold all; as they end, the second one catches up.
  QueueSpec spec = test::empty_queue(1, 4);
  spec.order = QueueOrder::drf;
  for (int j = 0; j < 16; ++j) {
    QueueJob job;
    job.submit = seconds(j < 8 ? 0 : 1);
    job.runs = job.limit = seconds(10 + (j < 4 ? j : 0));
    job.account = *spec.accounts.number_of(j < 8 ? "a" : "b");
    spec.jobs.push_back(job);
  }
  const QueueResult result = simulate_queue(spec);
  CHECK(result.jobs[8].start == seconds(10));
  CHECK(result.jobs[9].start == seconds(11));
  CHECK(result.jobs[4].start == seconds(12));  // 1 of the first's is left beside 2
}

}  // namespace lockstep
