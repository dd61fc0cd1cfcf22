// Keys and values as flows on a fabric: against closed forms where a transfer is alone, against
// shares that follow by hand where several meet, and a service whose replicas die.
#include "sim/serving/kv_flows.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/core/engine.hpp"
#include "sim/fabric/faulty_fabric.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/serving/serve.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// Passes of a fixed time, and c for each token of a prompt.
class KvLawClock final : public PassClock {
 public:
  KvLawClock(double step, double token) : step_(step), token_(token) {}
  ServingPass pass(const PassLoad& load) override {
    ServingPass out;
    out.prompts = Seconds{token_ * load.prompt_tokens};
    if (load.sequences > 0) out.products = Seconds{step_};
    return out;
  }

 private:
  double step_, token_;
};

struct PoolCut {
  int replicas = 1, tensor = 8, pipeline = 1, attention_data = 1;
};

nlohmann::json pool_json(const PoolCut& of) {
  return {{"replicas", of.replicas},
          {"tensor", of.tensor},
          {"pipeline", of.pipeline},
          {"attention_data", of.attention_data}};
}

/// Llama 3 8B on DGX H100 whose nodes have a leaf each, unless `ports` says otherwise.
ServingSpec pools_of(const PoolCut& prefill, const PoolCut& decode, double oversubscription = 1,
                     int ports = 8) {
  const nlohmann::json scenario{
      {"model", "llama3_8b"},
      {"cluster",
       {{"node", "dgx_h100"},
        {"nodes", 8},
        {"fabric",
         {{"kind", "fat_tree"},
          {"levels", 2},
          {"leaf_ports_down", ports},
          {"leaf_oversubscription", oversubscription}}}}},
      {"serving",
       {{"load",
         {{"rate", 1}, {"requests", 1}, {"input", {{"mean", 100}}}, {"output", {{"mean", 10}}}}},
        {"pools", {{"prefill", pool_json(prefill)}, {"decode", pool_json(decode)}}}}}};
  return read_serving(JsonCursor::parse("s.json", scenario.dump()), test::presets());
}

/// Of a transfer over NICs with nothing else on the way.
BytesPerSecond closed_rate(const ServingSpec& spec) {
  const auto side = [&](std::size_t pool) {
    return KvSide{spec.node_of(spec.pools[pool]), kv_cut(spec.pools[pool])};
  };
  return kv_rate(side(0), side(1), spec.transfer.efficiency, false);
}

/// A network and everything on it.
struct KvBench {
  explicit KvBench(const ServingSpec& spec)
      : KvBench(spec, Fabric(spec.cluster.fabric, spec.cluster.nodes, 8,
                             nic_ports(spec.cluster.node).bandwidth)) {}
  KvBench(const ServingSpec& spec, Fabric drawn)
      : fabric(std::move(drawn)),
        links(fabric, network, spec.cluster.transport.efficiency),
        kv(spec, links),
        flows(kv) {}

  FlowNetwork network;
  Fabric fabric;
  FabricLinks links;
  KvNetwork kv;
  KvFlows flows;
};

constexpr double kKvBytes = 3.2e9;
constexpr double kOneTick = 1e-12;

/// Sends that much over each of these channels at once, and notes when each ends.
class SendsAtOnce final : public Process {
 public:
  SendsAtOnce(KvBench& bench, const std::vector<std::pair<KvEnd, KvEnd>>& pairs) {
    for (const auto& [from, to] : pairs) {
      const KvChannel channel = bench.kv.take(from, to);
      bench.network.start(channel.flow, Bytes{channel.unit * kKvBytes}, {});
      numbers_[channel.flow] = ends_.size();
      ends_.push_back(-1);
    }
  }

  [[nodiscard]] StepTime next_event() const override { return kNever; }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    for (const FlowIndex flow : flows) ends_[numbers_[flow]] = to_seconds(now).base_units();
  }
  void handle_events(StepTime /*now*/) override {}
  [[nodiscard]] bool done() const override {
    return std::ranges::none_of(ends_, [](double end) { return end < 0; });
  }
  [[nodiscard]] const std::vector<double>& ends() const { return ends_; }

 private:
  std::map<FlowIndex, std::size_t> numbers_;
  std::vector<double> ends_;
};

std::vector<double> ends_of(KvBench& bench, const std::vector<std::pair<KvEnd, KvEnd>>& pairs) {
  SendsAtOnce sends(bench, pairs);
  Engine engine(bench.network);
  engine.add(sends);
  (void)engine.run();
  return sends.ends();
}

const std::vector<std::pair<PoolCut, PoolCut>> kPoolCuts{
    {{1, 8}, {1, 8}},       {{1, 4}, {1, 8}},       {{1, 8}, {1, 2}},      {{1, 1}, {1, 8}},
    {{1, 8, 2}, {1, 8, 1}}, {{1, 8, 2}, {1, 4, 4}}, {{1, 8}, {1, 1, 1, 8}}};

ServePlan served_by(KvLawClock& clock, int prefill, int decode) {
  ServePlan plan;
  plan.serving.clock = plan.decoding.clock = &clock;
  plan.serving.rules = {.pass_tokens = 8192, .most_sequences = 1 << 20, .cache_tokens = 1e15};
  plan.decoding.rules = plan.serving.rules;
  plan.serving.replicas = prefill;
  plan.decoding.replicas = decode;
  plan.router = ServingRouter::round_robin;
  plan.transfer.per_token = Bytes{327680};
  plan.transfer.latency = Seconds{1e-3};
  return plan;
}

std::vector<ServedRequest> every(int count, double seconds, int input, int output) {
  std::vector<ServedRequest> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].arrival = to_run_time(Seconds{static_cast<double>(i) * seconds});
    out[i].input = input;
    out[i].output = output;
  }
  return out;
}

bool same_times(const std::vector<ServedRequest>& a, const std::vector<ServedRequest>& b,
                RunTime within) {
  return std::ranges::equal(a, b, [within](const ServedRequest& x, const ServedRequest& y) {
    return std::abs(x.first - y.first) <= within && std::abs(x.last - y.last) <= within;
  });
}

}  // namespace

TEST_CASE("kv_streams: each rank sends an equal part and gets one, whatever the widths") {
  for (const auto& [from, to] : {std::pair{KvCut{8, 1}, KvCut{4, 1}},
                                 {KvCut{4, 1}, KvCut{8, 1}},
                                 {KvCut{6, 1}, KvCut{4, 1}},
                                 {KvCut{2, 4}, KvCut{8, 1}},
                                 {KvCut{4, 3}, KvCut{6, 2}}}) {
    CAPTURE(from.tensor);
    CAPTURE(to.tensor);
    std::vector<double> sent(static_cast<std::size_t>(from.ranks()));
    std::vector<double> got(static_cast<std::size_t>(to.ranks()));
    for (const KvStream& stream : kv_streams(from, to)) {
      sent[static_cast<std::size_t>(stream.from)] += stream.share;
      got[static_cast<std::size_t>(stream.to)] += stream.share;
    }
    for (const double share : sent) CHECK(share == test::near(1.0 / from.ranks()));
    for (const double share : got) CHECK(share == test::near(1.0 / to.ranks()));
  }
  // Rank 0 of six has heads 0 to 1/6, all of them rank 0's of four; rank 1 shares its own out.
  const std::vector<KvStream> six = kv_streams({6, 1}, {4, 1});
  CHECK(six.size() == 8);
  CHECK(six[1].share == test::near(1.0 / 12));
}

TEST_CASE("kv flows: a transfer alone on an idle fabric takes what the closed form says") {
  for (const auto& [from, to] : kPoolCuts) {
    CAPTURE(from.tensor * from.pipeline);
    CAPTURE(to.tensor * to.pipeline);
    const ServingSpec spec = pools_of(from, to);
    KvBench bench(spec);
    const BytesPerSecond rate = closed_rate(spec);
    const double closed = Bytes{kKvBytes} / rate / Seconds{1};
    const double end = ends_of(bench, {{{}, {}}})[0];
    CHECK(std::abs(end - closed) <= 1e-9 * closed + kOneTick);
    CHECK(bench.kv.take({}, {}).alone / rate == test::near(1.0).epsilon(1e-12));
  }
}

TEST_CASE("kv flows: n equal transfers to one replica end together at n times the time alone") {
  const ServingSpec spec = pools_of({4, 8}, {1, 8});
  KvBench one(spec), four(spec);
  const double alone = ends_of(one, {{{}, {}}})[0];
  std::vector<std::pair<KvEnd, KvEnd>> all;
  for (std::uint32_t r = 0; r < 4; ++r) all.push_back({{r, 0}, {}});
  for (const double end : ends_of(four, all)) CHECK(end == test::near(4 * alone).epsilon(1e-9));
}

TEST_CASE("kv flows: thin uplinks hold a transfer to what they carry, and two to half of it each") {
  constexpr double kOver = 4;
  const ServingSpec spec = pools_of({2, 8}, {2, 8}, kOver, 16);  // two nodes a leaf
  KvBench one(spec), two(spec);
  const double capacity = spec.cluster.transport.efficiency *
                          (16 * nic_ports(spec.cluster.node).bandwidth.base_units()) / kOver;
  const double alone = ends_of(one, {{{}, {}}})[0];
  CHECK(alone == test::near(kKvBytes / capacity).epsilon(1e-9));
  for (const double end : ends_of(two, {{{0, 0}, {0, 0}}, {{1, 0}, {1, 0}}})) {
    CHECK(end == test::near(2 * alone).epsilon(1e-9));
  }
}

TEST_CASE("kv flows: requests that never meet are served as with the closed form, to the tick") {
  KvLawClock clock(0.01, 2e-5);
  const ServingSpec spec = pools_of({2, 8}, {2, 8});
  for (const int layers : {0, 80}) {
    for (const int input : {1, 5000, 30'000}) {
      CAPTURE(layers);
      CAPTURE(input);
      ServePlan plan = served_by(clock, 2, 2);
      plan.serving.rules.pass_tokens = 1 << 20;  // one pass a prompt
      plan.transfer.layers = layers;
      plan.transfer.rate = closed_rate(spec);
      std::vector<ServedRequest> closed = every(20, 3, input, 5), flowed = closed;
      const ServeResult by_form = serve(plan, closed);
      KvBench bench(spec);
      const ServeResult by_flow = serve(plan, flowed, bench.flows);
      CHECK(same_times(closed, flowed, 3));
      CHECK(by_flow.transferred == by_form.transferred);
      CHECK(std::abs(by_flow.transferring - by_flow.transferring_alone) <= 3 * 20);
    }
  }
}

TEST_CASE("kv flows: layers that go early hide all but the last one where the way is fast") {
  KvLawClock clock(0.01, 2e-5);
  const ServingSpec spec = pools_of({1, 8}, {1, 8});
  ServePlan plan = served_by(clock, 1, 1);
  std::vector<ServedRequest> requests = every(1, 1, 8000, 2);
  KvBench late(spec), early(spec);
  const double whole = to_seconds(serve(plan, requests, late.flows).transferring).base_units();
  plan.transfer.layers = 80;
  requests = every(1, 1, 8000, 2);
  const double last = to_seconds(serve(plan, requests, early.flows).transferring).base_units();
  const double bytes = 8000 * 327680.0, rate = 0.8 * 8 * 50e9;
  CHECK(whole == test::near(1e-3 + bytes / rate).epsilon(1e-6));
  CHECK(last == test::near(1e-3 + bytes / rate / 80).epsilon(1e-6));
}

TEST_CASE("kv flows: a fold of a replica's ports gives what every port by itself does") {
  KvLawClock clock(0.005, 1e-5);
  for (const auto& [from, to] : {std::pair{PoolCut{2, 8}, PoolCut{3, 8}},
                                 {PoolCut{4, 4}, PoolCut{2, 8}},
                                 {PoolCut{2, 8}, PoolCut{3, 2, 1, 4}}}) {
    const ServingSpec spec = pools_of(from, to, 3, 16);
    FabricSpec cables = spec.cluster.fabric;
    cables.faults.push_back(no_fault());
    KvBench folded(spec);
    KvBench whole(spec, Fabric(cables, 8, 8, nic_ports(spec.cluster.node).bandwidth));
    REQUIRE(whole.fabric.is_drawn());
    ServePlan plan = served_by(clock, from.replicas, to.replicas);
    plan.transfer.layers = 80;
    std::vector<ServedRequest> a = every(300, 0.02, 3000, 20), b = a;
    (void)serve(plan, a, folded.flows);
    (void)serve(plan, b, whole.flows);
    CHECK(same_times(a, b, 100));
  }
}

TEST_CASE("kv flows: all bytes cross the fabric, and a crowded one makes them late") {
  KvLawClock clock(0.005, 1e-6);
  const ServingSpec spec = pools_of({2, 8}, {2, 8}, 8, 16);
  KvBench bench(spec);
  ServePlan plan = served_by(clock, 2, 2);
  std::vector<ServedRequest> requests = every(200, 0.01, 4000, 20);
  const ServeResult result = serve(plan, requests, bench.flows);
  double carried = 0;
  for (FabricLink l = 0; l < bench.fabric.link_count(); ++l) {
    const LinkIndex link = bench.links.known()[l];
    if (link == FabricLinks::kNoLink || bench.fabric.joins_nic(l)) continue;
    carried += bench.network.carried(link).base_units();
  }
  // Up from one leaf and down to the other.
  CHECK(carried == test::near(2 * result.transferred.base_units()).epsilon(1e-9));
  CHECK(result.transferring > result.transferring_alone);
}

TEST_CASE("two pools: the one that decodes gives back every block that a request had") {
  KvLawClock clock(0.01, 2e-5);
  // One request at a time; with its first token the second fills its last block.
  for (const int input : {30, 31, 32}) {
    CAPTURE(input);
    const auto fullest = [&](int count) {
      std::vector<ServedRequest> requests = every(count, 3, input, 4);
      return serve(served_by(clock, 1, 1), requests).decoding.fullest;
    };
    CHECK(fullest(1) > 0);
    CHECK(fullest(300) == fullest(1));
  }
}

TEST_CASE("kv flows: replicas of both pools die, and every request is served, the same again") {
  KvLawClock clock(0.01, 2e-5);
  const ServingSpec spec = pools_of({2, 8}, {2, 8}, 8, 16);
  const auto run = [&](std::vector<ServedRequest>& requests) {
    ServePlan plan = served_by(clock, 2, 2);
    plan.transfer.layers = 80;
    plan.detect = to_run_time(Seconds{0.5});
    plan.serving.life =
        plan.decoding.life = {.mean_time = Seconds{4}, .down = to_run_time(Seconds{1})};
    KvBench bench(spec);
    return serve(plan, requests, bench.flows);
  };
  std::vector<ServedRequest> requests = every(400, 0.05, 6000, 30), again = requests;
  const ServeResult result = run(requests);
  CHECK(result.failures > 4);
  CHECK(result.retried > 0);
  CHECK(std::ranges::all_of(requests, &ServedRequest::served));
  (void)run(again);
  CHECK(same_times(requests, again, 0));
}

}  // namespace lockstep
