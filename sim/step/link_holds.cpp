#include "sim/step/link_holds.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sim/fabric/fabric_use.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 6> kTrafficKinds{"tensor exchange", "context exchange",
                                                        "expert exchange", "pipeline message",
                                                        "data parallel",   "tied gradients"};

std::size_t traffic_kind(const WiredFlow& flow) {
  switch (flow.use) {
    case WiredFlow::Use::layer: {
      const auto axis = static_cast<Axis>(flow.subject % kAxes);
      return static_cast<std::size_t>(is_of_experts(axis) ? Axis::expert : axis);
    }
    case WiredFlow::Use::message:
      return 3;
    case WiredFlow::Use::data:
      return 4;
    case WiredFlow::Use::exchange:
      return 5;
  }
  return 0;
}

}  // namespace

LinkHolds::LinkHolds(const Wiring& wiring, const Fabric& fabric, bool over_time)
    : network_(wiring.network()),
      class_of_(wiring.network().links()),
      classes_{"their own pace (GPUs, NICs, protocol)"},
      over_time_(over_time) {
  kind_of_.assign(wiring.network().flows(), kKinds);
  for (const WiredFlow& flow : wiring.flows()) {
    if (flow.on_fabric) kind_of_[flow.flow] = traffic_kind(flow);
  }
  std::map<std::string, std::size_t> known;
  for (FabricLink link = 0; link < fabric.link_count(); ++link) {
    const LinkIndex index = wiring.known_link(link);
    if (index == FabricLinks::kNoLink) continue;
    const auto [at, is_new] =
        known.try_emplace(without_numbers(fabric.link_name(link)), classes_.size());
    if (is_new) classes_.push_back(at->first);
    // Links that are alike may stand for one another, also of two classes: the last has it.
    class_of_[index] = at->second;
  }
  capacity_.resize(classes_.size());
  for (std::size_t link = 0; link < class_of_.size(); ++link) {
    if (class_of_[link] == 0) continue;
    capacity_[class_of_[link]] += network_.capacity(static_cast<LinkIndex>(link));
  }
  steps_.resize(over_time ? classes_.size() : 0);
  for (std::vector<double>& seconds : seconds_) seconds.resize(classes_.size());
  for (std::vector<double>& bytes : bytes_) bytes.resize(classes_.size());
}

void LinkHolds::moved(FlowIndex flow, StepTime from, StepTime to, BytesPerSecond rate,
                      LinkIndex held_by) {
  if (flow >= kind_of_.size() || kind_of_[flow] == kKinds) return;
  const std::size_t of = held_by < class_of_.size() ? class_of_[held_by] : 0;
  const Seconds time = to_seconds(to - from);
  seconds_[kind_of_[flow]][of] += time.base_units();
  for (const MaxMin::Edge& edge : network_.edges(flow)) {
    const std::size_t crossed = edge.link < class_of_.size() ? class_of_[edge.link] : 0;
    if (crossed == 0) continue;
    bytes_[kind_of_[flow]][crossed] += edge.coefficient * (rate * time).base_units();
    if (!over_time_) continue;
    const double carried = edge.coefficient * rate.base_units();
    steps_[crossed][from.ps] += carried;
    steps_[crossed][to.ps] -= carried;
  }
}

std::vector<LinkRates> LinkHolds::rates() const {
  constexpr double kRounding = 1e-9;  // of the capacity: what sums leave where nothing moves
  std::vector<LinkRates> out;
  for (std::size_t c = 1; c < steps_.size(); ++c) {
    if (steps_[c].empty()) continue;
    LinkRates& rates = out.emplace_back(LinkRates{classes_[c], capacity_[c], {}, {}});
    const double least = kRounding * capacity_[c].base_units();
    double carried = 0;
    for (const auto& [at, change] : steps_[c]) {
      carried += change;
      const double shown = std::abs(carried) < least ? 0 : carried;
      if (!rates.at.empty() && std::abs(shown - rates.bytes_per_s.back()) < least) continue;
      rates.at.push_back(StepTime{at});
      rates.bytes_per_s.push_back(shown);
    }
  }
  return out;
}

std::vector<TrafficBytes> LinkHolds::bytes() const {
  std::vector<TrafficBytes> out;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    TrafficBytes traffic{.traffic = std::string(kTrafficKinds[kind])};
    for (std::size_t c = 1; c < classes_.size(); ++c) {
      if (bytes_[kind][c] > 0) traffic.over.push_back({classes_[c], Bytes{bytes_[kind][c]}});
    }
    std::ranges::stable_sort(traffic.over, std::ranges::greater{}, &TrafficBytes::Part::bytes);
    if (!traffic.over.empty()) out.push_back(std::move(traffic));
  }
  return out;
}

std::vector<TrafficHold> LinkHolds::report() const {
  std::vector<TrafficHold> out;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    double all = 0;
    for (const double seconds : seconds_[kind]) all += seconds;
    if (all <= 0) continue;
    TrafficHold& hold = out.emplace_back();
    hold.traffic = kTrafficKinds[kind];
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      if (seconds_[kind][c] > 0) hold.by.push_back({classes_[c], seconds_[kind][c] / all});
    }
    std::ranges::stable_sort(hold.by, std::ranges::greater{}, &TrafficHold::Part::share);
  }
  return out;
}

}  // namespace lockstep
