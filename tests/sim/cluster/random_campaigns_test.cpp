// Random campaigns on nodes of their own, against a small model of workers that take what is next.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <doctest/doctest.h>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/core/random.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

struct DrawnCampaign {
  std::string stopping;
  int nodes = 1, trials = 1, eta = 2, most_at_once = 0;
  double least = 0.1, runs_s = 100;
  bool resume = true;
  std::uint64_t seed = 1;

  [[nodiscard]] Json scenario() const {
    Json campaign{{"name", "search"}, {"trials", trials}, {"job", {{"runs", runs_s}, {"gpus", 8}}}};
    campaign["stopping"] = {{"kind", stopping}};
    if (stopping != "none") {
      campaign["stopping"] = {
          {"kind", stopping}, {"eta", eta}, {"least", least}, {"resume", resume}};
    }
    if (most_at_once > 0) campaign["most_at_once"] = most_at_once;
    return {{"cluster", {{"node", "dgx_h100"}, {"nodes", nodes}}},
            {"queue",
             {{"order", "fifo"},
              {"admission", "strict"},
              {"seed", seed},
              {"campaigns", Json::array({campaign})}}}};
  }
};

class RandomCampaigns {
 public:
  explicit RandomCampaigns(std::uint64_t seed) : engine_(seed) {}

  DrawnCampaign next() {
    static const std::vector<std::string> kKinds{"none", "successive_halving", "asha", "hyperband"};
    DrawnCampaign out;
    out.stopping = kKinds.at(static_cast<std::size_t>(whole(0, 3)));
    // With one worker alone no two trials end at a time, of which asha asks who was first.
    out.nodes = out.stopping == "asha" ? 1 : whole(1, 9);
    out.trials = whole(6, 60);
    out.eta = whole(2, 4);
    out.least = 0.02 + 0.01 * whole(0, 40);
    out.runs_s = 60.0 * whole(2, 500);
    out.resume = whole(0, 1) == 1;
    out.seed = static_cast<std::uint64_t>(whole(1, 1'000'000));
    return out;
  }

 private:
  int whole(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  std::mt19937_64 engine_;
};

/// By which trials are ranked: the lowest is the best.
double rank_of(std::uint64_t seed, int trial) {
  return RandomStream({.seed = seed,
                       .trajectory = 0,
                       .component = static_cast<std::uint32_t>(trial),
                       .purpose = 32})
      .uniform();
}

/// Workers that take the longest waiting trial part, and the papers' rules of who goes on.
class SmallModel {
 public:
  SmallModel(const DrawnCampaign& of, const std::vector<TrialBracket>& brackets)
      : of_(of), brackets_(brackets), rungs_(brackets.size()) {
    for (std::size_t b = 0; b < brackets.size(); ++b) {
      rungs_[b].resize(brackets[b].ends.size());
      for (std::uint32_t t = 0; t < brackets[b].trials; ++t) {
        submit(b, static_cast<int>(brackets[b].first + t), 0);
      }
    }
  }

  void run() {
    int free = of_.nodes;
    while (!waiting_.empty() || !running_.empty()) {
      for (; free > 0 && !waiting_.empty(); --free) {
        const Part part = waiting_.front();
        waiting_.pop_front();
        running_.insert({now_ + length_ns(part), part});
      }
      now_ = running_.begin()->first;
      for (; !running_.empty() && running_.begin()->first == now_; ++free) {
        const Part part = running_.begin()->second;
        running_.erase(running_.begin());
        worked_ns += length_ns(part);
        end(part);
      }
    }
  }

  [[nodiscard]] double done_s() const { return static_cast<double>(now_) * 1e-9; }
  [[nodiscard]] std::vector<std::size_t> trials_by_rung() const {
    std::vector<std::size_t> out;
    for (const auto& bracket : rungs_) {
      for (const Rung& rung : bracket) out.push_back(rung.entered);
    }
    return out;
  }
  std::int64_t worked_ns = 0;
  double best_s = -1;  ///< end of the best trial that ran to its end; -1: there is none

 private:
  struct Part {
    std::size_t bracket, rung;
    int trial;
    bool operator<(const Part& o) const {
      return std::pair(trial, rung) < std::pair(o.trial, o.rung);
    }
  };
  struct Rung {
    std::size_t entered = 0;
    std::vector<std::pair<double, int>> ended;
    std::set<int> went_on;
  };

  [[nodiscard]] std::int64_t end_ns(std::size_t bracket, std::size_t rung) const {
    // Of a trial in nanoseconds, as clocks of queues count.
    return std::llround(of_.runs_s * 1e9 * brackets_[bracket].ends[rung]);
  }
  [[nodiscard]] std::int64_t length_ns(const Part& part) const {
    const std::int64_t end = end_ns(part.bracket, part.rung);
    return part.rung > 0 && of_.resume ? end - end_ns(part.bracket, part.rung - 1) : end;
  }
  void submit(std::size_t bracket, int trial, std::size_t rung) {
    ++rungs_[bracket][rung].entered;
    waiting_.push_back({bracket, rung, trial});
  }
  void end(const Part& part) {
    Rung& rung = rungs_[part.bracket][part.rung];
    const double rank = rank_of(of_.seed, part.trial);
    rung.ended.emplace_back(rank, part.trial);
    std::ranges::sort(rung.ended);
    if (part.rung + 1 == rungs_[part.bracket].size()) {
      if (best_s < 0 || rank < best_rank_) {
        best_rank_ = rank;
        best_s = done_s();
      }
      return;
    }
    const auto eta = static_cast<std::size_t>(of_.eta);
    std::size_t most = 0;
    if (of_.stopping == "asha") {
      most = rung.ended.size() / eta;
    } else if (rung.ended.size() == rung.entered) {
      most = std::max<std::size_t>(1, rung.entered / eta);
    }
    std::vector<int> now;
    for (std::size_t i = 0; i < most; ++i) {
      if (rung.went_on.insert(rung.ended[i].second).second) now.push_back(rung.ended[i].second);
    }
    std::ranges::sort(now);
    for (const int trial : now) submit(part.bracket, trial, part.rung + 1);
  }

  const DrawnCampaign& of_;
  const std::vector<TrialBracket>& brackets_;
  std::vector<std::vector<Rung>> rungs_;
  std::deque<Part> waiting_;
  std::multimap<std::int64_t, Part> running_;
  std::int64_t now_ = 0;
  double best_rank_ = 0;
};

}  // namespace

TEST_CASE("random campaigns: who goes on, when all is done and what was held, as a small model") {
  RandomCampaigns random(test::test_seed());
  constexpr int kCampaigns = 60;
  for (int i = 0; i < kCampaigns; ++i) {
    const DrawnCampaign drawn = random.next();
    const std::string text = drawn.scenario().dump();
    CAPTURE(text);
    QueueSpec spec = read_queue(JsonCursor::parse("t.json", text), test::presets());
    SmallModel model(drawn, spec.brackets);
    model.run();
    QueueResult result = simulate_queue(spec);
    settle_campaigns(spec, result);
    const QueueSummary summary = summary_of(spec, result);
    const CampaignSummary& campaign = summary.campaigns.front();
    std::vector<std::size_t> trials;
    for (const RungSummary& rung : campaign.rungs) trials.push_back(rung.trials);
    CHECK(trials == model.trials_by_rung());
    REQUIRE(campaign.done_s);
    CHECK(*campaign.done_s == doctest::Approx(model.done_s()).epsilon(1e-9));
    CHECK(campaign.gpu_hours ==
          doctest::Approx(8.0 * static_cast<double>(model.worked_ns) * 1e-9 / 3600).epsilon(1e-9));
    // Of few trials under asha none may come to its end.
    REQUIRE(campaign.best_s.has_value() == (model.best_s >= 0));
    if (campaign.best_s) CHECK(*campaign.best_s == doctest::Approx(model.best_s).epsilon(1e-9));
  }
}

}  // namespace lockstep
