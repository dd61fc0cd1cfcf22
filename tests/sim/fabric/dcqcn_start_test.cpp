#include "sim/fabric/dcqcn_start.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/event_queue.hpp"
#include "sim/packet/packet_control.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

constexpr BytesPerSecond kStartNic{50e9};

/// Flows that start at given times, once each.
class Starts final : public Process {
 public:
  explicit Starts(FlowNetwork& network) : network_(network) {}
  void at(StepTime time, FlowIndex flow, Bytes amount) {
    queue_.push(time, 0, flow);
    amounts_.resize(std::max<std::size_t>(amounts_.size(), flow + 1));
    amounts_[flow] = amount;
    ends_.resize(amounts_.size());
  }
  [[nodiscard]] StepTime next_event() const override {
    return queue_.empty() ? kNever : queue_.next_time();
  }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    for (const FlowIndex flow : flows) ends_[flow] = to_seconds(now);
  }
  void handle_events(StepTime now) override {
    while (!queue_.empty() && queue_.next_time() == now) {
      const FlowIndex flow = queue_.pop().subject;
      network_.start(flow, amounts_[flow], now);
    }
  }
  [[nodiscard]] bool done() const override { return queue_.empty() && network_.idle(); }
  [[nodiscard]] Seconds end(FlowIndex flow) const { return ends_[flow]; }

 private:
  FlowNetwork& network_;
  EventQueue queue_;
  std::vector<Bytes> amounts_;
  std::vector<Seconds> ends_;
};

/// Eight nodes of one NIC, four a leaf, hashed onto two uplinks of each leaf.
struct ThinLeaves {
  Fabric fabric;
  FlowNetwork network;
  DcqcnStart start{fabric, network, 1};
  std::vector<std::pair<FabricLink, LinkIndex>> known;

  ThinLeaves() : fabric(spec(), 8, 1, kStartNic) {}

  static FabricSpec spec() {
    FabricSpec out;
    out.kind = FabricKind::fat_tree;
    out.routing = Routing::ecmp;
    out.leaf_ports_down = 4;
    out.leaf_oversubscription = 2;
    return out;
  }
  LinkIndex link(FabricLink of) {
    for (const auto& [fabric_link, index] : known) {
      if (fabric_link == of) return index;
    }
    known.emplace_back(of, network.add_link(fabric.capacity(of)));
    start.add_link(known.back().second, of);
    return known.back().second;
  }
  /// From the NICs of these nodes through one uplink: a byte of each for each byte of progress.
  FlowIndex flow(const std::vector<int>& nodes, double messages) {
    std::vector<FlowEdge> edges;
    for (const int node : nodes) edges.push_back({link(fabric.nic_up(node, 0)), 1});
    edges.push_back({link(fabric.leaf_up(0, 0)), static_cast<double>(nodes.size())});
    const FlowIndex out = network.add_flow(edges);
    start.add_flow(out, messages);
    return out;
  }
};

/// What the referee's port says of so many equal messages that begin together at the uplink.
double use_of_port(const std::vector<PortMessage>& messages) {
  const DcqcnPort port{.capacity = kStartNic,
                       .packet = kRoceFraming.wire(),
                       .feedback = 6.0 * (Bytes{1.0 * kRoceFraming.wire()} / kStartNic),
                       .number = 0};
  return dcqcn_use(port, messages, vendor_tuning(kStartNic)).use;
}

}  // namespace

TEST_CASE("DCQCN's start: a port at which flows meet is as busy as its sources keep it") {
  constexpr double kBytes = 16e6;
  for (const std::vector<int>& nodes : {std::vector<int>{0, 1}, std::vector<int>{0, 1, 2, 3}}) {
    CAPTURE(nodes.size());
    ThinLeaves thin;
    Starts starts(thin.network);
    const FlowIndex flow = thin.flow(nodes, 1);
    starts.at({}, flow, Bytes{kBytes});
    Engine engine(thin.network);
    engine.add(starts);
    engine.add_change(thin.start);
    engine.run();
    const PortMessage each{.bytes = Bytes{kBytes} / kRoceFraming.efficiency(),
                           .most = kStartNic,
                           .line_rate = kStartNic,
                           .start = {}};
    const double use = use_of_port(std::vector(nodes.size(), each));
    CHECK(use < 0.95);
    const double full = static_cast<double>(nodes.size()) * kBytes / kStartNic.base_units();
    CHECK(starts.end(flow).base_units() == test::near(full / use).epsilon(1e-9));
    // The port is whole again.
    CHECK(thin.network.capacity(thin.link(thin.fabric.leaf_up(0, 0))) == kStartNic);
  }
}

TEST_CASE("DCQCN's start: one message at line rate costs nothing, and one that joins it does") {
  ThinLeaves thin;
  Starts starts(thin.network);
  const FlowIndex first = thin.flow({0}, 1), second = thin.flow({1}, 1);
  const Seconds apart{100e-6};
  starts.at({}, first, Bytes{20e6});
  starts.at(to_step_time(apart), second, Bytes{5e6});
  Engine engine(thin.network);
  engine.add(starts);
  engine.add_change(thin.start);
  engine.run();
  // Alone it sends 5 MB of its 20 before the other comes, then both share what is left of the port
  // until the second has sent its 5; the rest of the first goes at line rate again.
  const double line = kStartNic.base_units();
  const double rest = line * (starts.end(first) - starts.end(second)).base_units();
  const double meanwhile = 20e6 - line * apart.base_units() - rest;
  const double shared = (starts.end(second) - apart).base_units();
  const double use = (meanwhile + 5e6) / line / shared;
  CHECK(use < 0.95);
  CHECK(use > 0.3);
  // As they share the port's queue. Starts are rounded to 1/32 of the time that it needs.
  std::vector<PortMessage> messages;
  for (std::uint32_t sender = 0; sender < 2; ++sender) {
    messages.push_back({.bytes = Bytes{sender == 0 ? 20e6 : 5e6} / kRoceFraming.efficiency(),
                        .most = kStartNic,
                        .line_rate = kStartNic,
                        .start = sender == 0 ? Seconds{} : apart,
                        .sender = sender});
  }
  const DcqcnPort port{.capacity = kStartNic,
                       .packet = kRoceFraming.wire(),
                       .feedback = 6.0 * (Bytes{1.0 * kRoceFraming.wire()} / kStartNic)};
  const std::vector<double> passed = dcqcn_use(port, messages, vendor_tuning(kStartNic)).passed;
  REQUIRE(passed.size() == 2);
  CHECK(meanwhile / 5e6 == test::near(passed[0] / passed[1]).epsilon(0.1));
  CHECK(thin.network.weight(first) == 1);
}

TEST_CASE("DCQCN's start: a flow of many messages gets more of a port than one of few") {
  ThinLeaves thin;
  Starts starts(thin.network);
  const FlowIndex many = thin.flow({0}, 8), few = thin.flow({1}, 2);
  starts.at({}, many, Bytes{32e6});
  starts.at({}, few, Bytes{32e6});
  Engine engine(thin.network);
  engine.add(starts);
  engine.add_change(thin.start);
  engine.run();
  CHECK(starts.end(many) < starts.end(few));
  // The same messages: the same end.
  ThinLeaves even;
  Starts again(even.network);
  const FlowIndex one = even.flow({0}, 8), other = even.flow({1}, 8);
  again.at({}, one, Bytes{32e6});
  again.at({}, other, Bytes{32e6});
  Engine another(even.network);
  another.add(again);
  another.add_change(even.start);
  another.run();
  CHECK(again.end(one) == again.end(other));
}

TEST_CASE("DCQCN's start: so many messages that the port is never idle lose nothing") {
  ThinLeaves thin;
  Starts starts(thin.network);
  const FlowIndex flow = thin.flow({0, 1, 2, 3}, 64);
  starts.at({}, flow, Bytes{64e6});
  Engine engine(thin.network);
  engine.add(starts);
  engine.add_change(thin.start);
  engine.run();
  CHECK(starts.end(flow).base_units() ==
        test::near(4 * 64e6 / kStartNic.base_units()).epsilon(1e-9));
}

TEST_CASE("DCQCN's start: a link that stands for ways up and down is one way up") {
  ThinLeaves thin;
  Starts starts(thin.network);
  const FlowIndex flow = thin.flow({0, 1}, 4);
  const LinkIndex uplink = thin.link(thin.fabric.leaf_up(0, 0));
  for (const int node : {0, 1}) {
    thin.start.add_link(thin.link(thin.fabric.nic_up(node, 0)), thin.fabric.nic_down(node, 0));
  }
  thin.start.add_link(uplink, thin.fabric.leaf_down(0, 0));
  starts.at({}, flow, Bytes{16e6});
  Engine engine(thin.network);
  engine.add(starts);
  engine.add_change(thin.start);
  engine.run();
  ThinLeaves plain;
  Starts again(plain.network);
  again.at({}, plain.flow({0, 1}, 4), Bytes{16e6});
  Engine other(plain.network);
  other.add(again);
  other.add_change(plain.start);
  other.run();
  CHECK(starts.end(flow) == again.end(0));
}

TEST_CASE("DCQCN's start: where flows go another way, ports are whole") {
  ThinLeaves thin;
  const FlowIndex flow = thin.flow({0, 1}, 1);
  thin.network.start(flow, Bytes{16e6}, {});
  const LinkIndex uplink = thin.link(thin.fabric.leaf_up(0, 0));
  CHECK(thin.start.next_event() == StepTime{});
  thin.start.handle_events({});
  CHECK(thin.network.capacity(uplink) < kStartNic);
  thin.start.begin_anew(thin.fabric);
  CHECK(thin.network.capacity(uplink) == kStartNic);
  CHECK(thin.start.next_event() == Process::kNever);
}

}  // namespace lockstep
