// Host memory, drives and a remote pool behind the caches of replicas: closed forms, and books that
// balance.
#include "sim/serving/cache_tiers.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/generation/serving_replica.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/scenario/serving_replica_spec.hpp"
#include "sim/serving/replica_queue.hpp"
#include "sim/serving/serve.hpp"
#include "sim/serving/simulate_serving.hpp"
#include "sim/serving/tier_report.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// A millisecond for each token of a prompt, 10 ms a step.
class TierClock final : public PassClock {
 public:
  ServingPass pass(const PassLoad& load) override {
    ServingPass out;
    out.prompts = Seconds{load.prompt_tokens / 1000};
    if (load.sequences > 0) out.products = Seconds{0.01};
    return out;
  }
};

constexpr int kTierBlock = 16;
constexpr int kBeginning = 1600;  // tokens
// Such a beginning, and a block for a prompt's last token and the answer's first one.
constexpr double kRoomForOne = kBeginning + kTierBlock;

ServedRequest request_at(double seconds, std::int32_t prefix, std::int32_t output = 1) {
  ServedRequest out;
  out.arrival = to_run_time(Seconds{seconds});
  out.prefix = prefix;
  out.input = prefix < 0 ? kTierBlock : kBeginning + 1;
  out.output = output;
  return out;
}

/// 10 s apart, each so long alone that no two of them meet.
std::vector<ServedRequest> one_by_one(const std::vector<std::int32_t>& prefixes) {
  std::vector<ServedRequest> out;
  for (const std::int32_t prefix : prefixes) {
    out.push_back(request_at(10.0 * static_cast<double>(out.size()), prefix));
  }
  return out;
}

std::vector<PrefixNode> beginnings(std::size_t count) {
  return std::vector<PrefixNode>(count, {.parent = -1, .tokens = kBeginning});
}

ServePlan tiered(PassClock& clock, const std::vector<PrefixNode>& nodes, double cache,
                 const TierPlan& tiers) {
  ServePlan plan;
  plan.serving.clock = &clock;
  plan.serving.rules = {.pass_tokens = 1 << 30,
                        .most_sequences = 1 << 30,
                        .block = kTierBlock,
                        .cache_tokens = cache,
                        .prefixes = &nodes};
  plan.tiers = tiers;
  return plan;
}

double seconds_to_first(const ServedRequest& request) {
  return to_seconds(request.time_to_first()).base_units();
}

double tokens_found(const std::vector<ServedRequest>& requests) {
  double sum = 0;
  for (const ServedRequest& r : requests) sum += r.found;
  return sum;
}

/// One after the other, each behind one of so many beginnings, some of which are asked for most.
std::vector<ServedRequest> zipf_requests(int count, std::size_t of, double apart_s) {
  RandomStream random({.seed = 3, .purpose = 1});
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t k = 1; k <= of; ++k) weights.push_back(sum += 1 / static_cast<double>(k));
  std::vector<ServedRequest> out;
  for (int i = 0; i < count; ++i) {
    const double drawn = random.uniform() * sum;
    std::int32_t k = 0;
    while (weights[static_cast<std::size_t>(k)] <= drawn) ++k;
    out.push_back(request_at(apart_s * i, k));
  }
  return out;
}

/// Llama 3 8B on one DGX H100 with so many NICs of 100 Gb/s, before a pool that is never in the
/// way.
ServingSpec behind_nics(int nics, int tensor, int groups = 1) {
  const nlohmann::json scenario{
      {"model", "llama3_8b"},
      {"cluster",
       {{"node", {{"preset", "dgx_h100"}, {"nics", nics}, {"nic_bandwidth", "100 Gb/s"}}},
        {"nodes", 1},
        {"fabric", "ideal"}}},
      {"serving",
       {{"load",
         {{"rate", 60},
          {"requests", 400},
          {"input", {{"mean", 300}}},
          {"output", {{"mean", 20}}},
          {"prefix", {{"tokens", 12000}, {"count", 40}}}}},
        {"pools",
         {{"both",
           {{"replicas", 8 / tensor / groups},
            {"tensor", tensor},
            {"attention_data", groups},
            {"engine", "vllm"}}}}},
        {"batching", {{"memory_fraction", 0.3}}},
        {"cache_tiers",
         {{"remote", {{"memory", "40 TB"}, {"bandwidth", "1000 TB/s"}}}, {"load", "blocking"}}}}}};
  return read_serving(JsonCursor::parse("s.json", scenario.dump()), test::presets());
}
/// What a NIC of it carries.
constexpr double kNicBytesPerSecond = 0.8 * 100e9 / 8;

}  // namespace

TEST_CASE("cache tiers: what fits on the host comes back in its bytes over the link's rate") {
  struct TierRow {
    CacheLoad load;
    double ttft_s;
  };
  // 16 ms of load and 1 ms of work on the last token; of ten layers the last one's work is left
  // when all is there.
  for (const TierRow& row :
       {TierRow{CacheLoad::blocking, 0.017}, TierRow{CacheLoad::asynchronous, 0.017},
        TierRow{CacheLoad::by_layer, 0.0161}}) {
    CAPTURE(row.ttft_s);
    TierClock clock;
    const std::vector<PrefixNode> nodes = beginnings(2);
    std::vector<ServedRequest> requests = one_by_one({0, 1, 0, 1, 0, 1});
    const TierPlan tiers{
        .load = row.load, .layers = 10, .host_tokens = 1e6, .host_token = Seconds{1e-5}};
    const ServeResult result = serve(tiered(clock, nodes, kRoomForOne, tiers), requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      CHECK(requests[i].found == (i < 2 ? 0 : kBeginning));
      CHECK(seconds_to_first(requests[i]) == test::near(i < 2 ? 1.601 : row.ttft_s));
    }
    const TierAccount& books = result.serving.tiers;
    CHECK(books.gpu == 0);
    CHECK(books.host == 4 * kBeginning / kTierBlock);
    CHECK(books.loads == 4);
    CHECK(to_seconds(books.loading).base_units() == test::near(4 * 0.016));
    CHECK(books.of_host.written == 2 * kBeginning / kTierBlock);  // each once: it stays there
    CHECK(books.of_host.loaded == books.host);
  }
}

TEST_CASE(
    "cache tiers: passes of others go on beside a load, or wait for it, as the engine has it") {
  const auto last_token = [](CacheLoad load) {
    TierClock clock;
    const std::vector<PrefixNode> nodes = beginnings(2);
    std::vector<ServedRequest> requests = one_by_one({0, 1});
    requests.push_back(request_at(20, -1, 200));
    requests.push_back(request_at(20.5, 0));
    const TierPlan tiers{
        .load = load, .layers = 10, .host_tokens = 1e6, .host_token = Seconds{5e-4}};
    const ServeResult result =
        serve(tiered(clock, nodes, kRoomForOne + 20 * kTierBlock, tiers), requests);
    CHECK(requests[3].found == kBeginning);
    CHECK((result.serving.tiers.stalled > 0) == (load != CacheLoad::asynchronous));
    return to_seconds(requests[2].last).base_units();
  };
  const double beside = last_token(CacheLoad::asynchronous);
  CHECK(last_token(CacheLoad::blocking) - beside == test::near(kBeginning * 5e-4));
  // A pass of 11 ms, of which nine tenths are beside the load.
  CHECK(last_token(CacheLoad::by_layer) - beside == test::near(kBeginning * 5e-4 - 0.9 * 0.011));
}

TEST_CASE("cache tiers: of size 0 they change nothing, whatever the load") {
  TierClock clock;
  const std::vector<PrefixNode> nodes = beginnings(8);
  std::vector<ServedRequest> without = zipf_requests(400, 8, 0.3), with = without;
  ServePlan plan = tiered(clock, nodes, 2.5 * kRoomForOne, {});
  plan.tiers.reset();
  (void)serve(plan, without);
  const TierPlan none{.host_token = Seconds{1}, .remote_token = Seconds{1}};
  const ServeResult result = serve(tiered(clock, nodes, 2.5 * kRoomForOne, none), with);
  for (std::size_t i = 0; i < with.size(); ++i) {
    CHECK(with[i].first == without[i].first);
    CHECK(with[i].found == without[i].found);
  }
  CHECK(result.serving.tiers.loads == 0);
  CHECK(result.serving.tiers.of_host.written == 0);
}

TEST_CASE("cache tiers: over links without end a hit is as one on the GPUs") {
  for (const CacheLoad load : {CacheLoad::asynchronous, CacheLoad::by_layer, CacheLoad::blocking}) {
    for (const auto tier :
         {&TierPlan::host_tokens, &TierPlan::disk_tokens, &TierPlan::remote_tokens}) {
      TierClock clock;
      const std::vector<PrefixNode> nodes = beginnings(20);
      std::vector<ServedRequest> large = zipf_requests(300, 20, 10), tiers = large;
      ServePlan plan = tiered(clock, nodes, 1e6, {});
      plan.tiers.reset();
      (void)serve(plan, large);
      TierPlan behind{.load = load, .layers = 10};
      behind.*tier = 1e6;
      (void)serve(tiered(clock, nodes, kRoomForOne, behind), tiers);
      for (std::size_t i = 0; i < tiers.size(); ++i) {
        CHECK(tiers[i].found == large[i].found);
        CHECK(tiers[i].first == large[i].first);
        CHECK(tiers[i].last == large[i].last);
      }
    }
  }
}

TEST_CASE("cache tiers: what drives hold comes after their latency, in its bytes over their rate") {
  struct DiskRow {
    double host_token_s, ttft_s;
  };
  // 1 ms, 32 ms out of the drives, the copy to the GPUs beside it unless it takes longer, 1 ms of
  // work.
  for (const DiskRow& row : {DiskRow{0, 0.034}, DiskRow{1e-5, 0.034}, DiskRow{4e-5, 0.065}}) {
    CAPTURE(row.host_token_s);
    TierClock clock;
    const std::vector<PrefixNode> nodes = beginnings(3);
    std::vector<ServedRequest> requests = one_by_one({0, 1, 2, 0});
    // Host memory has room for one beginning: the one that left last, which is 1.
    const TierPlan tiers{.host_tokens = kBeginning,
                         .disk_tokens = 1e6,
                         .host_token = Seconds{row.host_token_s},
                         .disk_token = Seconds{2e-5},
                         .disk_latency = Seconds{0.001}};
    const ServeResult result = serve(tiered(clock, nodes, kRoomForOne, tiers), requests);
    CHECK(requests[3].found == kBeginning);
    CHECK(seconds_to_first(requests[3]) == test::near(row.ttft_s));
    const TierAccount& books = result.serving.tiers;
    CHECK(books.host == 0);
    CHECK(books.disk == kBeginning / kTierBlock);
    CHECK(books.of_disk.loaded == books.disk);
    CHECK(books.of_disk.written == 3 * kBeginning / kTierBlock);
    CHECK(books.recomputed == 0);
  }
}

TEST_CASE("cache tiers: drives of a node are read for all its replicas one after the other") {
  struct DriveRow {
    int tensor, groups;
  };
  for (const DriveRow& row : {DriveRow{1, 1}, DriveRow{2, 1}, DriveRow{8, 1}, DriveRow{2, 4}}) {
    CAPTURE(row.tensor);
    CAPTURE(row.groups);
    ServingSpec spec = behind_nics(8, row.tensor, row.groups);
    spec.tiers->remote.reset();
    spec.tiers->disk = ServingTiers::Disk{
        .memory = Bytes{3e13}, .bandwidth = gigabytes_per_second(20), .latency = Seconds{0.001}};
    const ServingReplica replica(replica_spec(spec.pools[0], spec));
    const std::optional<TierPlan> plan = tier_plan(spec, replica);
    REQUIRE(plan);
    const double bytes = kBeginning * replica.moved_per_token().base_units();
    const double share = row.tensor * row.groups / 8.0;
    CHECK(plan->disk_tokens * replica.moved_per_token().base_units() == test::near(share * 3e13));
    RemotePool pool{.store = TierStore(0)};
    double last = 0;
    for (int r = 0; r < spec.pools[0].replicas; ++r) {
      ReplicaTiers tiers(*plan, static_cast<std::size_t>(r), kTierBlock, pool);
      for (int group = 0; group < row.groups; ++group) {
        const RunTime there = tiers.load({.node = 0, .disk = kBeginning / kTierBlock}, 0);
        last = std::max(last, to_seconds(there).base_units());
      }
    }
    const int loads = spec.pools[0].replicas * row.groups;
    CHECK(last == test::near(0.001 + loads * bytes / 20e9).epsilon(1e-6));
  }
}

TEST_CASE(
    "cache tiers: over links that carry nothing all is computed again, as if none were there") {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  for (const CacheLoad load : {CacheLoad::asynchronous, CacheLoad::by_layer, CacheLoad::blocking}) {
    for (const CacheReuse reuse : {CacheReuse::fastest, CacheReuse::recompute}) {
      TierClock clock;
      const std::vector<PrefixNode> nodes = beginnings(20);
      std::vector<ServedRequest> without = zipf_requests(300, 20, 1), with = without;
      for (std::size_t i = 0; i < with.size(); i += 3) with[i].output = without[i].output = 400;
      ServePlan plan = tiered(clock, nodes, 2.2 * kRoomForOne, {});
      plan.tiers.reset();
      const ServeResult plain = serve(plan, without);
      TierPlan tiers{.load = load,
                     .reuse = reuse,
                     .layers = 10,
                     .host_tokens = 1e6,
                     .disk_tokens = 1e6,
                     .remote_tokens = 1e6};
      tiers.preemption =
          reuse == CacheReuse::recompute ? CachePreemption::recompute : CachePreemption::fastest;
      if (reuse == CacheReuse::fastest) {
        tiers.host_token = tiers.disk_token = tiers.pool_token = Seconds{kNever};
      }
      const ServeResult result = serve(tiered(clock, nodes, 2.2 * kRoomForOne, tiers), with);
      for (std::size_t i = 0; i < with.size(); ++i) {
        CHECK(with[i].found == without[i].found);
        CHECK(with[i].first == without[i].first);
        CHECK(with[i].last == without[i].last);
      }
      CHECK(plain.serving.preempted > 0);
      CHECK(result.serving.preempted == plain.serving.preempted);
      CHECK(result.serving.tiers.loads == 0);
      CHECK(result.serving.tiers.swaps == 0);
      CHECK(result.serving.tiers.recomputed > 0);
    }
  }
}

TEST_CASE("cache tiers: what is loaded and what is computed are the tokens of all prompts") {
  for (const CacheReuse reuse : {CacheReuse::fastest, CacheReuse::load, CacheReuse::recompute}) {
    TierClock clock;
    const std::vector<PrefixNode> nodes = beginnings(20);
    std::vector<ServedRequest> requests = zipf_requests(500, 20, 1);
    // The pool is fast, unless others ask it too.
    const TierPlan tiers{.reuse = reuse,
                         .host_tokens = 3 * kBeginning,
                         .disk_tokens = 8 * kBeginning,
                         .remote_tokens = 1e6,
                         .host_token = Seconds{1e-5},
                         .disk_token = Seconds{1.2e-3},
                         .pool_token = Seconds{9e-4}};
    ServePlan plan = tiered(clock, nodes, 1.5 * kRoomForOne, tiers);
    plan.serving.replicas = 4;
    const ServeResult result = serve(plan, requests);
    double asked = 0;
    for (const ServedRequest& r : requests) asked += r.input;
    const double computed = 1000 * result.serving.busy.prompts.base_units();
    CHECK(computed + tokens_found(requests) == test::near(asked));
    const TierAccount& books = result.serving.tiers;
    CHECK((books.loads > 0) == (reuse != CacheReuse::recompute));
    CHECK((books.recomputed > 0) == (reuse != CacheReuse::load));
  }
}

TEST_CASE("cache tiers: loaded or computed again, whichever is done first") {
  // A token is worked on in 1 ms.
  for (const double token_s : {1e-5, 0.9e-3, 1.1e-3, 0.1}) {
    CAPTURE(token_s);
    const bool loads = token_s < 1e-3;
    for (const auto tier : {&TierPlan::host_token, &TierPlan::disk_token, &TierPlan::pool_token}) {
      TierClock clock;
      const std::vector<PrefixNode> nodes = beginnings(2);
      std::vector<ServedRequest> requests = one_by_one({0, 1, 0});
      TierPlan tiers;
      tiers.*tier = Seconds{token_s};
      const double room = 1e6;
      tiers.host_tokens = tier == &TierPlan::host_token ? room : 0;
      tiers.disk_tokens = tier == &TierPlan::disk_token ? room : 0;
      tiers.remote_tokens = tier == &TierPlan::pool_token ? room : 0;
      const ServeResult result = serve(tiered(clock, nodes, kRoomForOne, tiers), requests);
      CHECK(requests[2].found == (loads ? kBeginning : 0));
      CHECK(seconds_to_first(requests[2]) ==
            test::near(std::min(1.601, kBeginning * token_s + 0.001)));
      CHECK(result.serving.tiers.recomputed == (loads ? 0 : kBeginning / kTierBlock));
    }
  }
  // Two replicas ask the pool at once: the second one would wait longer than its own work takes.
  TierClock clock;
  const std::vector<PrefixNode> nodes = beginnings(2);
  std::vector<ServedRequest> requests{request_at(0, 0),  request_at(1, 0),  request_at(10, 1),
                                      request_at(11, 1), request_at(20, 0), request_at(20, 0)};
  const TierPlan tiers{.remote_tokens = 1e6, .pool_token = Seconds{6e-4}};
  ServePlan plan = tiered(clock, nodes, kRoomForOne, tiers);
  plan.serving.replicas = 2;
  (void)serve(plan, requests);
  CHECK(seconds_to_first(requests[4]) == test::near(0.961));
  CHECK(seconds_to_first(requests[5]) == test::near(1.601));
}

TEST_CASE("cache tiers: a prompt's beginning is loaded from memory, its end computed again") {
  TierClock clock;
  // 1 begins with 0; 2 drives both out, end first, so that host memory has the beginning.
  const std::vector<PrefixNode> nodes{{.parent = -1, .tokens = kBeginning},
                                      {.parent = 0, .tokens = 2 * kBeginning},
                                      {.parent = -1, .tokens = 2 * kBeginning}};
  std::vector<ServedRequest> requests = one_by_one({1, 2, 1});
  for (ServedRequest& r : requests) r.input = 2 * kBeginning + 1;
  const TierPlan tiers{.host_tokens = kBeginning,
                       .remote_tokens = 1e6,
                       .host_token = Seconds{1e-5},
                       .pool_token = Seconds{2e-3}};
  const ServeResult result =
      serve(tiered(clock, nodes, 2 * kBeginning + kTierBlock, tiers), requests);
  CHECK(requests[2].found == kBeginning);
  CHECK(seconds_to_first(requests[2]) == test::near(0.016 + 1.601));
  CHECK(result.serving.tiers.host == kBeginning / kTierBlock);
  CHECK(result.serving.tiers.remote == 0);
  CHECK(result.serving.tiers.recomputed == kBeginning / kTierBlock);
}

TEST_CASE("cache tiers: independent references find what Che's approximation says of each") {
  // Che, Tung and Wang 2002, IEEE J. Sel. Areas Commun. 20(7), 1305-1314. GPUs hold the request
  // under way only, so that a tier sees all references.
  constexpr std::size_t kOf = 500;
  const auto hits = [](double holds) {
    double sum = 0, found = 0, low = 0, high = 1e9;
    for (std::size_t k = 1; k <= kOf; ++k) sum += 1 / static_cast<double>(k);
    const auto held = [&](std::size_t k, double t) {
      return 1 - std::exp(-t / (sum * static_cast<double>(k)));
    };
    for (int i = 0; i < 200; ++i) {
      double all = 0;
      for (std::size_t k = 1; k <= kOf; ++k) all += held(k, (low + high) / 2);
      (all < holds ? low : high) = (low + high) / 2;
    }
    for (std::size_t k = 1; k <= kOf; ++k) found += held(k, low) / (sum * static_cast<double>(k));
    return found;
  };
  constexpr int kHost = 50, kDisk = 150, kCount = 150'000, kWarm = 10'000;
  TierClock clock;
  const std::vector<PrefixNode> nodes = beginnings(kOf);
  std::vector<ServedRequest> requests = zipf_requests(kCount, kOf, 10);
  const TierPlan tiers{.host_tokens = kHost * kBeginning, .disk_tokens = kDisk * kBeginning};
  const ServeResult result = serve(tiered(clock, nodes, kRoomForOne, tiers), requests);
  double found = 0;
  for (std::size_t i = kWarm; i < requests.size(); ++i) found += requests[i].found;
  CHECK(found / kBeginning / (kCount - kWarm) == test::near(hits(kDisk)).epsilon(0.01));
  const TierAccount& books = result.serving.tiers;
  const auto share = [&](std::int64_t blocks) {
    return static_cast<double>(blocks * kTierBlock) / kBeginning / kCount;
  };
  CHECK(share(books.gpu + books.host) == test::near(hits(kHost)).epsilon(0.01));
}

namespace {

/// Two answers of 200 tokens that one cache of 320 has no room for to the end.
std::vector<ServedRequest> two_long_answers() {
  return {request_at(0, -1, 200), request_at(0, -1, 200)};
}
constexpr double kRoomForBoth = 20 * kTierBlock;

ServePlan swapping(PassClock& clock, const std::vector<PrefixNode>& nodes, const TierPlan& tiers) {
  return tiered(clock, nodes, kRoomForBoth, tiers);
}

double computed_tokens(const PoolAccount& account) {
  return 1000 * account.busy.prompts.base_units();
}

}  // namespace

TEST_CASE("preemption: a swapped sequence is back after its bytes, out and in, over the link") {
  const std::vector<PrefixNode> nodes;
  for (const CacheLoad load : {CacheLoad::asynchronous, CacheLoad::blocking}) {
    double at_once = 0;
    for (const double token_s : {0.0, 1e-4, 1e-2}) {
      TierClock clock;
      std::vector<ServedRequest> requests = two_long_answers();
      const TierPlan tiers{.load = load,
                           .preemption = CachePreemption::swap,
                           .host_tokens = 1e6,
                           .host_token = Seconds{token_s}};
      const ServeResult result = serve(swapping(clock, nodes, tiers), requests);
      const TierAccount& books = result.serving.tiers;
      CHECK(result.serving.preempted == 1);
      CHECK(books.swaps == 1);
      CHECK(computed_tokens(result.serving) == test::near(2.0 * kTierBlock));
      const double last = to_seconds(requests[1].last).base_units();
      if (token_s == 0) at_once = last;
      const double moved = static_cast<double>(books.moved * kTierBlock);
      CHECK(moved > 2 * 100);
      CHECK(last - at_once == test::near(moved * token_s));
    }
  }
}

TEST_CASE("preemption: swapped or computed again, whichever takes less") {
  const std::vector<PrefixNode> nodes;
  const auto last = [&](CachePreemption preemption, double token_s, double holds = 1e6) {
    TierClock clock;
    std::vector<ServedRequest> requests = two_long_answers();
    const TierPlan tiers{
        .preemption = preemption, .host_tokens = holds, .host_token = Seconds{token_s}};
    const ServeResult result = serve(swapping(clock, nodes, tiers), requests);
    CHECK(result.serving.preempted == 1);
    const double again = computed_tokens(result.serving) - 2.0 * kTierBlock;
    CHECK((again > 0.5) == (result.serving.tiers.swaps == 0));
    return requests[1].last;
  };
  using enum CachePreemption;
  // A token is worked on in 1 ms, and goes out and back in twice that of the link.
  CHECK(last(fastest, 4e-4) == last(swap, 4e-4));
  CHECK(last(fastest, 6e-4) == last(recompute, 6e-4));
  CHECK(last(fastest, 4e-4) < last(recompute, 4e-4));
  CHECK(last(swap, 6e-4) > last(recompute, 6e-4));
  // No room for it in host memory.
  CHECK(last(swap, 4e-4, 5 * kTierBlock) == last(recompute, 4e-4));
}

TEST_CASE("preemption: of two pools the one that decodes swaps to its own nodes' memory") {
  for (const bool swaps : {true, false}) {
    TierClock clock;
    const std::vector<PrefixNode> nodes;
    std::vector<ServedRequest> requests = two_long_answers();
    ServePlan plan = swapping(clock, nodes, {});
    plan.tiers.reset();
    plan.decoding = plan.serving;
    if (swaps) plan.decoding_tiers = TierPlan{.host_tokens = 1e6, .host_token = Seconds{1e-5}};
    const ServeResult result = serve(plan, requests);
    CHECK(result.decoding.preempted == 1);
    CHECK(result.decoding.tiers.swaps == (swaps ? 1 : 0));
    CHECK((computed_tokens(result.decoding) > 0) == !swaps);
    CHECK(std::ranges::all_of(requests, &ServedRequest::served));
  }
}

TEST_CASE("cache tiers: a larger one finds no less, and blocks that went in are there or left") {
  TierClock clock;
  const std::vector<PrefixNode> nodes = beginnings(50);
  for (const auto tier :
       {&TierPlan::host_tokens, &TierPlan::disk_tokens, &TierPlan::remote_tokens}) {
    double before = -1, first = 0;
    for (const int holds : {0, 1, 2, 5, 10, 20, 40, 60}) {
      CAPTURE(holds);
      std::vector<ServedRequest> requests = zipf_requests(3000, 50, 10);
      TierPlan tiers;
      tiers.*tier = holds * kBeginning;
      const ServeResult result = serve(tiered(clock, nodes, 3 * kRoomForOne, tiers), requests);
      const double found = tokens_found(requests);
      CHECK(found >= before);
      if (before < 0) first = found;
      before = found;
      const TierAccount& books = result.serving.tiers;
      CHECK(found ==
            kTierBlock * static_cast<double>(books.gpu + books.host + books.disk + books.remote));
      for (const TierFlow& flow : {books.of_host, books.of_disk, result.remote}) {
        CHECK(flow.written == flow.left + flow.held);
        CHECK(flow.held * kTierBlock <= holds * kBeginning);
      }
      CHECK(books.of_host.loaded == books.host);
      CHECK(books.of_disk.loaded == books.disk);
      CHECK(result.remote.loaded == books.remote);
    }
    CHECK(before > 1.5 * first);
    CHECK(before == (3000 - 50) * kBeginning);  // each is worked on once
  }
}

TEST_CASE(
    "cache tiers: what one replica let go of another finds in the pool, which both load from") {
  TierClock clock;
  const std::vector<PrefixNode> nodes = beginnings(2);
  // In turn: the first replica has worked on beginning 0, then on 1; the second one on 1 alone.
  std::vector<ServedRequest> requests{request_at(0, 0), request_at(10, 1), request_at(20, 1)};
  requests.push_back(request_at(30, 0));
  for (int i = 0; i < 2; ++i) requests.push_back(request_at(40, 1));
  TierPlan tiers{.remote_tokens = 1e6,
                 .remote_token = Seconds{1e-5},
                 .pool_token = Seconds{2e-5},
                 .remote_latency = Seconds{0.003}};
  ServePlan plan = tiered(clock, nodes, kRoomForOne, tiers);
  plan.serving.replicas = 2;
  const ServeResult result = serve(plan, requests);
  CHECK(requests[3].replica == 1);
  CHECK(requests[3].found == kBeginning);
  // The pool is slower than the NICs of a replica.
  CHECK(seconds_to_first(requests[3]) == test::near(0.032 + 0.003 + 0.001));
  // The first replica has it; the second one let go of it when it loaded the other.
  CHECK(seconds_to_first(requests[4]) == test::near(0.001));
  CHECK(seconds_to_first(requests[5]) == test::near(0.036));
  CHECK(result.serving.tiers.remote == 2 * kBeginning / kTierBlock);
  CHECK(result.serving.tiers.of_host.written == 0);

  // Two that load at once: the pool serves one after the other.
  std::vector<ServedRequest> both{request_at(0, 0),  request_at(1, 0),  request_at(10, 1),
                                  request_at(11, 1), request_at(20, 0), request_at(20, 0)};
  (void)serve(plan, both);
  CHECK(seconds_to_first(both[4]) == test::near(0.036));
  CHECK(seconds_to_first(both[5]) == test::near(0.036 + 0.032));
}

TEST_CASE("cache tiers: loads of replicas that share a NIC come one after the other") {
  struct TierRow {
    int nics, tensor, groups;
    double nics_of_group, groups_on_nic;
  };
  for (const TierRow& row :
       {TierRow{8, 1, 1, 1, 1}, TierRow{4, 1, 1, 1, 2}, TierRow{2, 1, 1, 1, 4},
        TierRow{1, 1, 1, 1, 8}, TierRow{16, 1, 1, 2, 1}, TierRow{8, 2, 1, 2, 1},
        TierRow{4, 2, 1, 1, 1}, TierRow{2, 2, 1, 1, 2}, TierRow{2, 8, 1, 2, 1},
        TierRow{8, 1, 8, 1, 1}, TierRow{2, 1, 4, 1, 4}, TierRow{1, 2, 2, 1, 4}}) {
    CAPTURE(row.nics);
    CAPTURE(row.tensor);
    CAPTURE(row.groups);
    const ServingSpec spec = behind_nics(row.nics, row.tensor, row.groups);
    const ServingReplica replica(replica_spec(spec.pools[0], spec));
    const std::optional<TierPlan> plan = tier_plan(spec, replica);
    REQUIRE(plan);
    RemotePool pool{.store = TierStore(kBeginning)};
    double last = 0;
    for (int r = 0; r < spec.pools[0].replicas; ++r) {
      ReplicaTiers tiers(*plan, static_cast<std::size_t>(r), kTierBlock, pool);
      for (int group = 0; group < row.groups; ++group) {
        const RunTime there = tiers.load({.node = 0, .remote = kBeginning / kTierBlock}, 0);
        last = std::max(last, to_seconds(there).base_units());
      }
    }
    const double bytes = kBeginning * replica.moved_per_token().base_units();
    const double alone = bytes / (row.nics_of_group * kNicBytesPerSecond);
    CHECK(last == test::near(0.001 + row.groups_on_nic * alone).epsilon(1e-4));
  }
}

TEST_CASE(
    "cache tiers: no more comes out of the pool than a node's NICs carry, and fewer are later") {
  double before = 0;
  for (const int nics : {8, 2, 1}) {
    CAPTURE(nics);
    ServingSpec spec = behind_nics(nics, 1);
    const ServingReport report = simulate_serving(spec);
    REQUIRE(report.tiers);
    const double loaded = report.tiers->tiers[0].loaded_bytes;
    CHECK(loaded > 0);
    CHECK(report.figures.span_s >= loaded / (nics * kNicBytesPerSecond));
    CHECK(report.tiers->load_s > before);
    before = report.tiers->load_s;
  }
}

TEST_CASE(
    "cache tiers: with a replica that dies its part of its nodes' memory is lost, the pool is "
    "not") {
  for (const auto tier :
       {&TierPlan::host_tokens, &TierPlan::disk_tokens, &TierPlan::remote_tokens}) {
    const bool of_nodes = tier != &TierPlan::remote_tokens;
    TierClock clock;
    const std::vector<PrefixNode> nodes = beginnings(2);
    std::vector<ServedRequest> requests = one_by_one({0, 1, 0, 1});
    TierPlan tiers;
    tiers.*tier = 1e6;
    ServePlan plan = tiered(clock, nodes, kRoomForOne, tiers);
    plan.serving.life.planned = {{to_run_time(Seconds{15}), 0}};
    plan.serving.life.down = to_run_time(Seconds{1});
    const ServeResult result = serve(plan, requests);
    CHECK(result.failures == 1);
    CHECK(requests[2].found == (of_nodes ? 0 : kBeginning));
    CHECK(requests[3].found == 0);  // it was on the GPUs when they died
    const TierAccount& books = result.serving.tiers;
    for (const TierFlow& flow : {books.of_host, books.of_disk, result.remote}) {
      CHECK(flow.written == flow.left + flow.held);
    }
  }
}

TEST_CASE("cache tiers: the first layer of a pass is done when it has its part of the load") {
  struct TierRow {
    CacheLoad load;
    double end_s, first_layer_s;
  };
  // 16 ms of load and 1 ms of work, each a tenth a layer.
  for (const TierRow& row : {TierRow{CacheLoad::blocking, 0.017, 0.0161},
                             TierRow{CacheLoad::by_layer, 0.0161, 0.0017}}) {
    CAPTURE(row.end_s);
    TierClock clock;
    const std::vector<PrefixNode> nodes = beginnings(1);
    const TierPlan tiers{
        .load = row.load, .layers = 10, .remote_tokens = 1e6, .remote_token = Seconds{1e-5}};
    RemotePool pool{.store = TierStore(tier_blocks(tiers.remote_tokens, kTierBlock))};
    pool.store.write({.node = 0, .blocks = kBeginning / kTierBlock});
    const ReplicaRules rules{
        .block = kTierBlock, .prefixes = &nodes, .tiers = &tiers, .remote = &pool};
    std::vector<ServedRequest> requests{request_at(0, 0)};
    std::vector<RequestState> states(1);
    ReplicaQueue queue(rules, clock, requests, states);
    queue.submit(0);
    const RunTime end = queue.start(0);
    CHECK(to_seconds(end).base_units() == test::near(row.end_s));
    CHECK(to_seconds(queue.first_layer(0, end, 10)).base_units() == test::near(row.first_layer_s));
  }
}

TEST_CASE("cache tiers: a replica that was switched off starts with nothing") {
  for (const bool on_host : {false, true}) {
    TierClock clock;
    const std::vector<PrefixNode> nodes = beginnings(2);
    // Twice the same: six at once, so that the other replica starts, and one that it takes.
    std::vector<ServedRequest> requests;
    for (const double begin : {0.0, 100.0}) {
      for (int i = 0; i < 6; ++i) requests.push_back(request_at(begin, 0, 1000));
      requests.push_back(request_at(begin + 8, 0));
    }
    TierPlan tiers;
    if (on_host) tiers.host_tokens = 1e6;
    ServePlan plan = tiered(clock, nodes, 1e6, tiers);
    plan.serving.replicas = 2;
    plan.router = ServingRouter::least_loaded;
    plan.serving.life.least = 1;
    plan.serving.life.target = 1;
    plan.serving.life.start = to_run_time(Seconds{5});
    plan.serving.life.check = to_run_time(Seconds{1});
    plan.serving.life.calm = to_run_time(Seconds{10});
    const ServeResult result = serve(plan, requests);
    CHECK(result.serving.off > 0);
    REQUIRE(requests[6].replica != requests[0].replica);
    // Of two that are idle the first one is switched off.
    REQUIRE(requests[7].replica == requests[6].replica);
    CHECK(requests[7].found == kBeginning);
    REQUIRE(requests[13].replica == requests[0].replica);
    CHECK(requests[13].found == 0);
  }
}

TEST_CASE(
    "cache tiers: under load every token comes out once, with prompts that load and preempt") {
  for (const CacheLoad load : {CacheLoad::asynchronous, CacheLoad::by_layer, CacheLoad::blocking}) {
    for (const CachePreemption preemption :
         {CachePreemption::fastest, CachePreemption::swap, CachePreemption::recompute}) {
      TierClock clock;
      const std::vector<PrefixNode> nodes = beginnings(8);
      std::vector<ServedRequest> requests = zipf_requests(400, 8, 0.2);
      RandomStream random({.seed = 5, .purpose = 2});
      for (ServedRequest& r : requests) r.output = 1 + static_cast<int>(300 * random.uniform());
      const TierPlan tiers{.load = load,
                           .preemption = preemption,
                           .layers = 10,
                           .host_tokens = 3 * kBeginning,
                           .disk_tokens = 4 * kBeginning,
                           .remote_tokens = 5 * kBeginning,
                           .host_token = Seconds{1e-5},
                           .disk_token = Seconds{5e-5},
                           .disk_latency = Seconds{1e-4},
                           .remote_token = Seconds{1e-4},
                           .pool_token = Seconds{1e-5}};
      ServePlan plan = tiered(clock, nodes, 3 * kRoomForOne, tiers);
      plan.serving.life.planned = {{to_run_time(Seconds{40}), 0}};
      plan.serving.life.down = to_run_time(Seconds{1});
      const ServeResult result = serve(plan, requests);
      const TierAccount& books = result.serving.tiers;
      CHECK(books.host > 0);
      CHECK(books.disk > 0);
      CHECK(books.remote > 0);
      CHECK(result.serving.preempted > 0);
      if (preemption == CachePreemption::swap) CHECK(books.swaps > 0);
      if (preemption == CachePreemption::recompute) CHECK(books.swaps == 0);
      CHECK(result.failures == 1);
      CHECK(std::ranges::all_of(requests, &ServedRequest::served));
    }
  }
}

TEST_CASE("tier store: the longest unwritten leaves first, and what is too large passes by") {
  TierStore store(10);
  store.write({.node = 0, .blocks = 4});
  store.write({.node = 1, .blocks = 6});
  store.write({.node = 0, .blocks = 4});
  CHECK(store.flow().left == 0);
  store.write({.node = 2, .blocks = 3});
  CHECK(store.flow().left == 6);
  CHECK_FALSE(store.holds(1));
  CHECK(store.holds(0));
  store.write({.node = 3, .blocks = 11});
  CHECK_FALSE(store.holds(3));
  CHECK(store.flow().held == 7);
  CHECK(store.flow().written == 13);
  // A sequence that is swapped has room before all of them.
  CHECK(store.reserve(5));
  CHECK_FALSE(store.holds(0));
  CHECK(store.flow().held == 3);
  CHECK_FALSE(store.reserve(6));
  store.write({.node = 4, .blocks = 6});
  CHECK_FALSE(store.holds(4));
  store.free(5);
  store.write({.node = 4, .blocks = 6});
  CHECK(store.flow().held == 9);
  store.clear();
  CHECK(store.flow().left == 19);
}

}  // namespace lockstep
