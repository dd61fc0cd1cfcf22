#include "sim/congestion/recorder.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/sim/core/message_process.hpp"

namespace lockstep {
namespace {

constexpr StepTime second(std::uint64_t s) { return {s * 1'000'000'000'000}; }

/// Two senders with a port of 100 B/s each, and a link of 100 B/s that both need.
struct Shared {
  FlowNetwork network;
  CongestionRecorder recorder{network};
  std::array<LinkIndex, 2> ports{network.add_link(BytesPerSecond{100}),
                                 network.add_link(BytesPerSecond{100})};
  LinkIndex spine = network.add_link(BytesPerSecond{100});
  std::array<FlowIndex, 2> flows{
      network.add_flow(std::array{FlowEdge{ports[0], 1}, FlowEdge{spine, 1}}),
      network.add_flow(std::array{FlowEdge{ports[1], 1}, FlowEdge{spine, 1}})};

  Shared() {
    recorder.add_job("a", "");
    recorder.add_job("b", "");
    recorder.add_link(ports[0], "port a", BytesPerSecond{100}, true);
    recorder.add_link(ports[1], "port b", BytesPerSecond{100}, true);
    recorder.add_link(spine, "spine", BytesPerSecond{100}, false);
    recorder.add_flow(flows[0], 0, "gradients", 2);
    recorder.add_flow(flows[1], 1, "checkpoint");
  }
  /// Runs until nothing is left; returns when.
  StepTime run(const std::vector<std::pair<StepTime, FlowIndex>>& starts, Bytes amount) {
    test::MessageProcess messages(network);
    for (const auto& [start, flow] : starts) messages.add(flow, {{start, amount}});
    Engine engine(network);
    engine.add(messages);
    return engine.run();
  }
};

TEST_CASE("congestion: two flows on one link slow each other, and the report says who and where") {
  Shared alone;
  const StepTime alone_end = alone.run({{second(0), alone.flows[0]}}, Bytes{200});
  const std::array reports{alone.recorder.report(alone_end)};
  CHECK(reports[0].end_s == 2);

  // a has the link to itself for a second, shares it for two, and is done; b takes all of it again.
  Shared both;
  const StepTime end =
      both.run({{second(0), both.flows[0]}, {second(1), both.flows[1]}}, Bytes{200});
  CongestionReport report = both.recorder.report(end, {.bins = 4});
  compare_with_alone(reports, report);
  CHECK(report.end_s == 4);

  REQUIRE(report.transfers.size() == 2);
  const TransferCongestion& a = report.transfers[0];
  CHECK(a.name == "gradients");
  CHECK(a.bytes == 100);  // two bytes of progress for each of payload
  CHECK(a.mean_s == 3);
  CHECK(a.alone_s == 2);
  CHECK(a.slowdown() == 1.5);
  REQUIRE(a.worst_link >= 0);
  CHECK(report.links[static_cast<std::size_t>(a.worst_link)].name == "spine");
  CHECK(a.cause == "b: checkpoint");
  CHECK(a.cause_share == doctest::Approx(100.0 / 300));

  const LinkCongestion& fullest = report.links.front();
  CHECK(fullest.name == "spine");
  CHECK(fullest.mean_utilisation == doctest::Approx(1));
  CHECK(fullest.bytes_by_job == std::vector<double>{200, 200});
  CHECK(report.jobs[0].bytes == doctest::Approx(200));
  CHECK(report.jobs[0].alone_s == 2);
  CHECK(report.jobs[0].step_s == 3);
}

/// A sender with a port of 100 B/s, one of 90 B/s, and a link of 150 B/s that both need.
struct SharedBriefly {
  FlowNetwork network;
  CongestionRecorder recorder{network};
  LinkIndex port_a = network.add_link(BytesPerSecond{100});
  LinkIndex port_b = network.add_link(BytesPerSecond{90});
  LinkIndex spine = network.add_link(BytesPerSecond{150});
  FlowIndex a = network.add_flow(std::array{FlowEdge{port_a, 1}, FlowEdge{spine, 1}});
  FlowIndex b = network.add_flow(std::array{FlowEdge{port_b, 1}, FlowEdge{spine, 1}});

  SharedBriefly() {
    recorder.add_job("a", "");
    recorder.add_job("b", "");
    recorder.add_link(port_a, "port a", BytesPerSecond{100}, true);
    recorder.add_link(port_b, "port b", BytesPerSecond{90}, true);
    recorder.add_link(spine, "spine", BytesPerSecond{150}, false);
    recorder.add_flow(a, 0, "gradients");
    recorder.add_flow(b, 1, "checkpoint");
  }
};

// a sends 1000 B: at 100 B/s, and for the 2 s that b needs for its 150 B at 75 B/s. So it takes
// (1000 - 150) / 100 + 2 = 10.5 s, of which its port sets the rate for 8.5 s, as it does alone.
TEST_CASE("congestion: time as fast as alone is not time held back") {
  for (const bool knows_alone : {false, true}) {
    SharedBriefly t;
    test::MessageProcess messages(t.network);
    messages.add(t.a, {{second(0), Bytes{1000}}});
    messages.add(t.b, {{second(3), Bytes{150}}});
    Engine engine(t.network);
    engine.add(messages);
    const StepTime end = engine.run();
    CongestionReport alone;
    alone.transfers.push_back(
        {.job = "a", .name = "gradients", .bytes = 1000, .mean_s = 10, .cause = {}});
    std::vector<CongestionReport> alone_reports;
    if (knows_alone) alone_reports.push_back(alone);
    const CongestionReport report = t.recorder.report(end, {}, alone_reports);
    const auto a = std::ranges::find(report.transfers, "gradients", &TransferCongestion::name);
    REQUIRE(a != report.transfers.end());
    CHECK(a->mean_s == doctest::Approx(10.5));
    REQUIRE(a->worst_link >= 0);
    CHECK(report.links[static_cast<std::size_t>(a->worst_link)].name == "spine");
    CHECK(a->worst_link_share == doctest::Approx(2 / 10.5));
    CHECK(a->cause == "b: checkpoint");
  }
}

// Its job alone takes 75 B/s of the spine as well: then only the port's time is lost, which is
// none.
TEST_CASE("congestion: what a job does to its own transfers alone does not hold them back") {
  SharedBriefly t;
  test::MessageProcess messages(t.network);
  messages.add(t.a, {{second(0), Bytes{150}}});
  messages.add(t.b, {{second(0), Bytes{150}}});
  Engine engine(t.network);
  engine.add(messages);
  const StepTime end = engine.run();
  CongestionReport alone;
  alone.transfers.push_back(
      {.job = "a", .name = "gradients", .bytes = 150, .mean_s = 2, .cause = {}});
  const CongestionReport report = t.recorder.report(end, {}, std::array{alone});
  const auto a = std::ranges::find(report.transfers, "gradients", &TransferCongestion::name);
  REQUIRE(a != report.transfers.end());
  CHECK(report.links[static_cast<std::size_t>(a->worst_link)].name == "spine");
  CHECK(a->worst_link_share == 1);
}

TEST_CASE("congestion: utilisation by bin adds up to the bytes that crossed the link") {
  Shared both;
  const StepTime end =
      both.run({{second(0), both.flows[0]}, {second(1), both.flows[1]}}, Bytes{130});
  for (const int bins : {1, 3, 7, 200}) {
    const CongestionReport report = both.recorder.report(end, {.bins = bins});
    for (const LinkCongestion& link : report.links) {
      REQUIRE(link.utilisation.size() == static_cast<std::size_t>(bins));
      const double sum = std::accumulate(link.utilisation.begin(), link.utilisation.end(), 0.0);
      CHECK(sum * report.bin_s * link.capacity_bytes_per_s ==
            doctest::Approx(link.bytes_by_job[0] + link.bytes_by_job[1]).epsilon(1e-5));
      CHECK(link.peak_utilisation <= 1 + 1e-9);
    }
  }
}

TEST_CASE("congestion: who shares nothing is held by links, and by nobody") {
  Shared one;
  const StepTime end = one.run({{second(0), one.flows[1]}}, Bytes{100});
  const CongestionReport report = one.recorder.report(end);
  REQUIRE(report.transfers.size() == 1);
  REQUIRE(report.transfers[0].worst_link >= 0);
  CHECK(report.transfers[0].worst_link_share == 1);
  CHECK(report.transfers[0].stalled_s == 0);
  CHECK(report.transfers[0].cause.empty());
}

}  // namespace
}  // namespace lockstep
