#include "sim/measured/fit_collectives.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "models/collectives/collectives.hpp"
#include "sim/measured/minimise.hpp"

namespace lockstep {
namespace {

/// How far a constant may plausibly be from its preset, as a factor exp(spread): assumed.
constexpr double kLatencySpread = 0.3, kRateSpread = 0.1;
// As in fit_kernels.cpp.
constexpr double kFarPenalty = 0.1, kWorstError = 0.5;
constexpr std::size_t kQuarters = 4;

/// What the law of a collective reads.
struct CollectiveConstants {
  GpuSpec gpu;
  TransportSpec transport;
  BytesPerSecond nic_bandwidth;
};

/// A constant, as value = preset exp(spread z).
struct FittedConstant {
  std::string name;
  double spread;
  double most;  ///< of the value over the preset's
  std::function<void(CollectiveConstants&, double factor)> scale;
  std::function<std::string(const CollectiveConstants&)> text;  ///< as a preset has it
};

std::string in_us(Seconds time) { return fmt::format("\"{:.4g} us\"", time.base_units() * 1e6); }
std::string in_gigabytes(BytesPerSecond rate) {
  return fmt::format("\"{:.4g} GB/s\"", rate.base_units() * 1e-9);
}

std::vector<CollectiveRegime>* regimes_of(CollectiveOp op, GpuSpec& gpu) {
  IntraNodeCollectives& c = gpu.collectives;
  switch (op) {
    case CollectiveOp::all_reduce:
      return &c.all_reduce;
    case CollectiveOp::all_gather:
      return &c.all_gather;
    case CollectiveOp::reduce_scatter:
      return &c.reduce_scatter;
    case CollectiveOp::all_to_all:
      return &c.all_to_all;
    case CollectiveOp::send_receive:
      return &c.send_receive;
    default:
      return nullptr;  // made of the others
  }
}

constexpr std::array kFittedOps{
    std::pair{CollectiveOp::all_reduce, "all_reduce"},
    std::pair{CollectiveOp::all_gather, "all_gather"},
    std::pair{CollectiveOp::reduce_scatter, "reduce_scatter"},
    std::pair{CollectiveOp::all_to_all, "all_to_all"},
    std::pair{CollectiveOp::send_receive, "send_receive"},
};

std::vector<FittedConstant> constants_inside(CollectiveOp op, CollectiveConstants from,
                                             bool several_sizes) {
  std::vector<FittedConstant> out;
  for (std::size_t i = 0; i < regimes_of(op, from.gpu)->size(); ++i) {
    const std::string name = (*regimes_of(op, from.gpu))[i].name;
    const auto at = [op, i](const CollectiveConstants& c) -> CollectiveRegime& {
      return (*regimes_of(op, const_cast<GpuSpec&>(c.gpu)))[i];
    };
    out.push_back({name + ".base", kLatencySpread, HUGE_VAL,
                   [at](CollectiveConstants& c, double f) { at(c).base = f * at(c).base; },
                   [at](const CollectiveConstants& c) { return in_us(at(c).base); }});
    if (several_sizes) {
      out.push_back(
          {name + ".per_step", kLatencySpread, HUGE_VAL,
           [at](CollectiveConstants& c, double f) { at(c).per_step = f * at(c).per_step; },
           [at](const CollectiveConstants& c) { return in_us(at(c).per_step); }});
    }
    out.push_back(
        {name + ".bus_bandwidth", kRateSpread, HUGE_VAL,
         [at](CollectiveConstants& c, double f) { at(c).bus_bandwidth = f * at(c).bus_bandwidth; },
         [at](const CollectiveConstants& c) { return in_gigabytes(at(c).bus_bandwidth); }});
  }
  return out;
}

std::vector<FittedConstant> constants_between(const TransportSpec& from) {
  std::vector<FittedConstant> out;
  const auto share = [&](const char* name, double TransportSpec::* member) {
    out.push_back({name, kRateSpread, 1 / from.*member,
                   [member](CollectiveConstants& c, double f) { c.transport.*member *= f; },
                   [member](const CollectiveConstants& c) {
                     return fmt::format("{:.4g}", c.transport.*member);
                   }});
  };
  const auto latency = [&](const char* name, Seconds TransportSpec::* member) {
    out.push_back({name, kLatencySpread, HUGE_VAL,
                   [member](CollectiveConstants& c, double f) {
                     c.transport.*member = f * c.transport.*member;
                   },
                   [member](const CollectiveConstants& c) { return in_us(c.transport.*member); }});
  };
  share("efficiency", &TransportSpec::efficiency);
  latency("hop_latency", &TransportSpec::hop_latency);
  latency("ring_hop_latency", &TransportSpec::ring_hop_latency);
  share("send_receive_efficiency", &TransportSpec::send_receive_efficiency);
  latency("ll128_latency", &TransportSpec::ll128_latency);
  latency("simple_latency", &TransportSpec::simple_latency);
  latency("ring_message_time", &TransportSpec::ring_message_time);
  return out;
}

class CollectiveFitter {
 public:
  using Points = std::vector<CollectivePoint>;

  CollectiveFitter(CollectiveConstants preset, std::vector<FittedConstant> constants,
                   const Points& points)
      : preset_(std::move(preset)), constants_(std::move(constants)) {
    // What moves no prediction stays where it is.
    std::erase_if(constants_, [&](const FittedConstant& constant) {
      CollectiveConstants moved = preset_;
      constant.scale(moved, std::exp(-1.0));
      return std::ranges::all_of(points, [&](const CollectivePoint& p) {
        return time_of(p, moved) == time_of(p, preset_);
      });
    });
  }

  [[nodiscard]] KernelFit fit(const Points& points) const {
    KernelFit out;
    out.before = summarise("before", errors(points, preset_));
    const CollectiveConstants fitted = with(best(points));
    for (const FittedConstant& constant : constants_) {
      out.constants.emplace_back(constant.name, constant.text(fitted));
    }
    out.after = summarise("after", errors(points, fitted));
    out.held_out = summarise("held out", held_out(points));
    return out;
  }

 private:
  static Seconds time_of(const CollectivePoint& p, const CollectiveConstants& c) {
    return collective_time(p.call(), c.gpu, c.transport, c.nic_bandwidth);
  }

  [[nodiscard]] CollectiveConstants with(const std::vector<double>& z) const {
    CollectiveConstants out = preset_;
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      const FittedConstant& constant = constants_[i];
      constant.scale(out, std::min(std::exp(constant.spread * z[i]), constant.most));
    }
    return out;
  }

  [[nodiscard]] std::vector<double> best(const Points& points) const {
    return minimise(
        [&](const std::vector<double>& z) {
          const CollectiveConstants c = with(z);
          double sum = 0, far = 0;
          for (const CollectivePoint& p : points) {
            sum += std::min(std::abs(std::log(time_of(p, c) / p.time)), kWorstError);
          }
          for (const double distance : z) far += distance * distance;
          return (sum + kFarPenalty * far) / static_cast<double>(points.size());
        },
        std::vector<double>(constants_.size(), 0.0), 0.5);
  }

  static std::vector<ValidationPoint> errors(const Points& points, const CollectiveConstants& c) {
    std::vector<ValidationPoint> out;
    for (const CollectivePoint& p : points) {
      const double measured = p.time.base_units() * 1e6;
      const double predicted = time_of(p, c).base_units() * 1e6;
      out.push_back({{}, measured, predicted, predicted / measured - 1});
    }
    return out;
  }

  [[nodiscard]] std::vector<ValidationPoint> held_out(const Points& points) const {
    std::vector<ValidationPoint> out;
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
      Points kept, tested;
      for (std::size_t i = 0; i < points.size(); ++i) {
        (i % kQuarters == quarter ? tested : kept).push_back(points[i]);
      }
      const std::vector<ValidationPoint> part = errors(tested, with(best(kept)));
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }

  CollectiveConstants preset_;
  std::vector<FittedConstant> constants_;
};

}  // namespace

std::vector<KernelFit> fit_collectives(const Profile& profile, const PresetStore& presets) {
  const NodeNetwork network = profile.network.value_or(NodeNetwork{{}, gigabits_per_second(1)});
  const CollectiveConstants preset{presets.gpu(profile.gpu), network.transport,
                                   network.nic_bandwidth};
  std::vector<KernelFit> out;
  const auto add = [&](const std::vector<CollectivePoint>& points,
                       std::vector<FittedConstant> constants, std::string part) {
    const CollectiveFitter fitter(preset, std::move(constants), points);
    out.push_back(fitter.fit(points));
    out.back().gpu = profile.gpu;
    out.back().part = std::move(part);
  };
  for (const auto& [op, name] : kFittedOps) {
    std::vector<CollectivePoint> points;
    std::set<int> sizes;
    for (const CollectivePoint& p : profile.collectives) {
      if (p.op != op || p.nodes > 1) continue;
      points.push_back(p);
      sizes.insert(p.gpus_per_node);
    }
    if (points.size() < kFewestFitPoints) continue;
    add(points, constants_inside(op, preset, sizes.size() > 1), std::string(kNvlinkPart) + name);
  }
  std::vector<CollectivePoint> between;
  std::ranges::copy_if(profile.collectives, std::back_inserter(between),
                       [](const CollectivePoint& p) { return p.nodes > 1; });
  if (profile.network && between.size() >= kFewestFitPoints) {
    add(between, constants_between(network.transport), std::string(kTransportPart));
  }
  return out;
}

bool is_collective_fit(const KernelFit& fit) {
  return fit.part.starts_with(kNvlinkPart) || fit.part == kTransportPart;
}

}  // namespace lockstep
