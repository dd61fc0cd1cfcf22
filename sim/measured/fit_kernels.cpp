#include "sim/measured/fit_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <tuple>
#include <type_traits>

#include "models/kernels/memory_bound.hpp"
#include "sim/measured/kernel_rows.hpp"
#include "sim/measured/minimise.hpp"

namespace lockstep {
namespace {

/// A constant to fit, as value = centre exp(spread z), or centre + spread z for one that may be 0.
struct Parameter {
  std::string_view name;
  std::string_view unit;  ///< as presets write it; the value is in this unit
  double centre, spread;  ///< plausible for every GPU; assumed
  bool additive;
  double most;  ///< upper bound, in the unit
  void (*set)(GpuSpec& gpu, std::size_t kernel, double value);
};

constexpr double kNoLimit = 1e9;

AttentionConstants& constants_of(GpuSpec& gpu, std::size_t kernel) {
  return *gpu.attention[kernel];
}

/// Bandwidths and peaks are fitted as shares of the data sheet's.
const std::vector<Parameter>& gemm_parameters() {
  static const std::vector<Parameter> parameters{
      {"launch", "us", 2.5, 0.25, false, kNoLimit,
       [](GpuSpec& g, std::size_t, double v) { g.gemm.launch = microseconds(v); }},
      {"efficiency", "", 0.8, 0.1, false, 1,
       [](GpuSpec& g, std::size_t, double v) { g.gemm.efficiency = v; }},
      {"k_ramp", "", 120, 60, true, kNoLimit,
       [](GpuSpec& g, std::size_t, double v) { g.gemm.k_ramp = v; }},
      {"efficiency_128x128", "", 0.85, 0.15, false, 1,
       [](GpuSpec& g, std::size_t, double v) { g.gemm.efficiency_128x128 = v; }},
      {"efficiency_x64", "", 0.9, 0.15, false, 1,
       [](GpuSpec& g, std::size_t, double v) { g.gemm.efficiency_x64 = v; }},
      {"split_k", "us", 1, 0.5, false, kNoLimit,
       [](GpuSpec& g, std::size_t, double v) { g.gemm.split_k = microseconds(v); }},
      {"bandwidth", "of HBM", 0.78, 0.1, false, 1,
       [](GpuSpec& g, std::size_t, double v) { g.gemm.bandwidth = v * g.hbm_bandwidth; }},
      {"fp8_efficiency", "", 0.95, 0.05, false, 1.05,
       [](GpuSpec& g, std::size_t, double v) { g.gemm.fp8_efficiency = v; }},
  };
  return parameters;
}

/// With the clocks under a lasting load, which bursts beside it tell apart from the efficiency.
const std::vector<Parameter>& loaded_gemm_parameters() {
  static const std::vector<Parameter> parameters = [] {
    std::vector<Parameter> all = gemm_parameters();
    all.push_back({"sustained", "", 0.85, 0.1, false, 1,
                   [](GpuSpec& g, std::size_t, double v) { g.gemm.sustained = v; }});
    all.push_back({"quantised_sustained", "", 0.97, 0.05, false, 1,
                   [](GpuSpec& g, std::size_t, double v) { g.gemm.quantised_sustained = v; }});
    return all;
  }();
  return parameters;
}

const std::vector<Parameter>& attention_parameters() {
  static const std::vector<Parameter> parameters{
      {"launch", "us", 6, 0.3, false, kNoLimit,
       [](GpuSpec& g, std::size_t k, double v) { constants_of(g, k).launch = microseconds(v); }},
      {"efficiency", "", 0.6, 0.4, false, 1,
       [](GpuSpec& g, std::size_t k, double v) { constants_of(g, k).efficiency = v; }},
      {"ramp_tokens", "", 350, 200, true, kNoLimit,
       [](GpuSpec& g, std::size_t k, double v) { constants_of(g, k).ramp_tokens = v; }},
      {"softmax_width", "", 60, 30, true, kNoLimit,
       [](GpuSpec& g, std::size_t k, double v) { constants_of(g, k).softmax_width = v; }},
      {"backward_ratio", "", 2.9, 0.1, false, kNoLimit,
       [](GpuSpec& g, std::size_t k, double v) { constants_of(g, k).backward_ratio = v; }},
  };
  return parameters;
}

const std::vector<Parameter>& memory_parameters() {
  static const std::vector<Parameter> parameters{
      {"launch", "us", 2.2, 0.25, false, kNoLimit,
       [](GpuSpec& g, std::size_t, double v) { g.memory.launch = microseconds(v); }},
      {"efficiency", "", 0.8, 0.1, false, 1,
       [](GpuSpec& g, std::size_t, double v) { g.memory.efficiency = v; }},
  };
  return parameters;
}

double value_at(const Parameter& p, double z) {
  const double value = p.additive ? p.centre + p.spread * z : p.centre * std::exp(p.spread * z);
  return std::clamp(value, 0.0, p.most);
}

/// Penalty for one parameter that is a spread away from its centre, against the weight of one row.
constexpr double kPenalty = 0.1;
/// Errors beyond this are outliers (another kernel was chosen, a stray measurement).
constexpr double kOutlier = 0.5;
constexpr double kTrainingWeight = 3;
constexpr std::size_t kFolds = 4;

double weight(const GemmRow& row) {
  return std::min({row.shape.m, row.shape.n, row.shape.k}) >= 1024 ? kTrainingWeight : 1;
}
double weight(const AttentionRow& row) {
  // Inference kernels bring launches and copies of their own; training's tell more about the
  // kernel.
  return (row.measured_us >= 200 ? kTrainingWeight : 1) *
         (row.implementation->extra_passes > 0 ? 1 : 4);
}
double weight(const MemoryRow& row) { return row.measured_us >= 20 ? kTrainingWeight : 1; }

// A profile's points, like rows.
double as_microseconds(Seconds time) { return time.base_units() * 1e6; }
double measured_us(const KernelRow& row) { return row.measured_us; }
double measured_us(const ProfilePoint& point) { return as_microseconds(point.time); }

std::optional<double> predicted_us(const GemmPoint& p, const GpuSpec& gpu) {
  return as_microseconds(gemm_time(p.shape, p.precision, gpu, p.load));
}
std::optional<double> predicted_us(const AttentionPoint& p, const GpuSpec& gpu) {
  return as_microseconds(attention_time(p.shape, p.kernel, gpu, ElementwiseTraffic{}));
}
std::optional<double> predicted_us(const MemoryPoint& p, const GpuSpec& gpu) {
  return as_microseconds(memory_bound_time(p.traffic, gpu));
}

double weight(const GemmPoint& p) {
  return std::min({p.shape.m, p.shape.n, p.shape.k}) >= 1024 ? kTrainingWeight : 1;
}
double weight(const AttentionPoint& p) { return measured_us(p) >= 200 ? kTrainingWeight : 1; }
double weight(const MemoryPoint& p) { return measured_us(p) >= 20 ? kTrainingWeight : 1; }

template <class Row>
class Fitter {
 public:
  Fitter(const std::vector<Parameter>& parameters, GpuSpec gpu, std::size_t kernel)
      : parameters_(parameters), gpu_(std::move(gpu)), kernel_(kernel) {}

  KernelFit fit(const std::vector<Row>& rows) {
    KernelFit out;
    out.before = summarise("before", points(rows, gpu_));
    const std::vector<double> z = best(rows);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (matters(i, rows)) {
        out.constants.push_back(constant(i, z[i]));
      } else {
        out.untouched.push_back(constant(i, 0));
      }
    }
    out.after = summarise("after", points(rows, with(z)));
    out.held_out = summarise("held out", held_out(rows));
    return out;
  }

 private:
  [[nodiscard]] GpuSpec with(const std::vector<double>& z) const {
    GpuSpec gpu = gpu_;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].set(gpu, kernel_, value_at(parameters_[i], z[i]));
    }
    return gpu;
  }

  /// Whether any prediction depends on the parameter.
  [[nodiscard]] bool matters(std::size_t parameter, const std::vector<Row>& rows) const {
    std::vector<double> z(parameters_.size(), 0.0);
    const GpuSpec centre = with(z);
    z[parameter] = -1;
    const GpuSpec moved = with(z);
    return std::ranges::any_of(rows, [&](const Row& row) {
      return *predicted_us(row, centre) != *predicted_us(row, moved);
    });
  }

  [[nodiscard]] double loss(const std::vector<Row>& rows, const std::vector<double>& z) const {
    const GpuSpec gpu = with(z);
    double sum = 0, weights = 0;
    for (const Row& row : rows) {
      const double error = std::abs(std::log(*predicted_us(row, gpu) / measured_us(row)));
      sum += weight(row) * std::min(error, kOutlier);
      weights += weight(row);
    }
    double penalty = 0;
    for (const double distance : z) penalty += distance * distance;
    return sum / weights + kPenalty * penalty / static_cast<double>(rows.size());
  }

  [[nodiscard]] std::vector<double> best(const std::vector<Row>& rows) const {
    return minimise([&](const std::vector<double>& z) { return loss(rows, z); },
                    std::vector<double>(parameters_.size(), 0.0), 0.5);
  }

  [[nodiscard]] static std::vector<ValidationPoint> points(const std::vector<Row>& rows,
                                                           const GpuSpec& gpu) {
    std::vector<ValidationPoint> out;
    for (const Row& row : rows) {
      const double predicted = *predicted_us(row, gpu);
      out.push_back({{}, measured_us(row), predicted, predicted / measured_us(row) - 1});
    }
    return out;
  }

  [[nodiscard]] std::vector<ValidationPoint> held_out(const std::vector<Row>& rows) const {
    std::vector<ValidationPoint> out;
    for (std::size_t fold = 0; fold < kFolds; ++fold) {
      std::vector<Row> kept, tested;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        (i % kFolds == fold ? tested : kept).push_back(rows[i]);
      }
      const std::vector<ValidationPoint> part = points(tested, with(best(kept)));
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }

  [[nodiscard]] std::pair<std::string, std::string> constant(std::size_t i, double z) const {
    const Parameter& p = parameters_[i];
    const double value = value_at(p, z);
    if (p.unit == "of HBM") {
      return {std::string(p.name),
              fmt::format("\"{:.4g} TB/s\"", value * gpu_.hbm_bandwidth.base_units() / 1e12)};
    }
    if (p.unit.empty()) return {std::string(p.name), fmt::format("{:.3g}", value)};
    return {std::string(p.name), fmt::format("\"{:.3g} {}\"", value, p.unit)};
  }

  const std::vector<Parameter>& parameters_;
  GpuSpec gpu_;
  std::size_t kernel_;
};

/// The rows that can be predicted, by GPU preset and part, in the order of the names.
template <class Row, class Part>
std::map<std::pair<std::string, std::string>, std::vector<Row>> by_part(
    const std::vector<Row>& rows, const PresetStore& presets, Part part) {
  std::map<std::pair<std::string, std::string>, std::vector<Row>> out;
  for (const Row& row : rows) {
    if (!row.obstacle.empty() || !predicted_us(row, presets.gpu(row.gpu))) continue;
    out[{row.gpu, part(row)}].push_back(row);
  }
  std::erase_if(out, [](const auto& entry) { return entry.second.size() < kFewestFitPoints; });
  return out;
}

}  // namespace

std::vector<KernelFit> fit_gemm(const std::string& file, const PresetStore& presets) {
  std::vector<KernelFit> out;
  const auto groups =
      by_part(read_gemm_rows(file, presets), presets, [](const GemmRow&) { return "gemm"; });
  for (const auto& [name, rows] : groups) {
    Fitter<GemmRow> fitter(gemm_parameters(), presets.gpu(name.first), 0);
    out.push_back(fitter.fit(rows));
    std::tie(out.back().gpu, out.back().part) = name;
  }
  return out;
}

std::vector<KernelFit> fit_attention(const std::string& file, const PresetStore& presets) {
  std::vector<KernelFit> out;
  const auto groups =
      by_part(read_attention_rows(file, presets), presets, [](const AttentionRow& row) {
        const auto kernel = static_cast<std::size_t>(row.implementation->kernel);
        return fmt::format("attention.{}", attention_kernels()[kernel].name);
      });
  for (const auto& [name, rows] : groups) {
    const AttentionKernel kernel = rows.front().implementation->kernel;
    const auto index = static_cast<std::size_t>(kernel);
    GpuSpec gpu = presets.gpu(name.first);
    if (!gpu.attention[index]) gpu.attention[index] = AttentionConstants{};
    Fitter<AttentionRow> fitter(attention_parameters(), gpu, index);
    out.push_back(fitter.fit(rows));
    std::tie(out.back().gpu, out.back().part) = name;
  }
  return out;
}

std::vector<KernelFit> fit_memory_kernels(const std::string& file, const PresetStore& presets) {
  std::vector<KernelFit> out;
  const auto groups =
      by_part(read_memory_rows(file, presets), presets, [](const MemoryRow&) { return "memory"; });
  for (const auto& [name, rows] : groups) {
    Fitter<MemoryRow> fitter(memory_parameters(), presets.gpu(name.first), 0);
    out.push_back(fitter.fit(rows));
    std::tie(out.back().gpu, out.back().part) = name;
  }
  return out;
}

std::vector<KernelFit> fit_profile(const Profile& profile, const PresetStore& presets) {
  const GpuSpec& card = presets.gpu(profile.gpu);
  std::vector<KernelFit> out;
  const auto add = [&](const auto& points, const std::vector<Parameter>& parameters, GpuSpec gpu,
                       std::size_t kernel, std::string part) {
    if (points.size() < kFewestFitPoints) return;
    using Point = typename std::decay_t<decltype(points)>::value_type;
    Fitter<Point> fitter(parameters, std::move(gpu), kernel);
    out.push_back(fitter.fit(points));
    out.back().gpu = profile.gpu;
    out.back().part = std::move(part);
  };
  const auto lasting =
      static_cast<std::size_t>(std::ranges::count(profile.gemm, Load::sustained, &GemmPoint::load));
  const bool both = std::min(lasting, profile.gemm.size() - lasting) >= kFewestFitPoints;
  add(profile.gemm, both ? loaded_gemm_parameters() : gemm_parameters(), card, 0, "gemm");
  for (const AttentionKernelKind& kind : attention_kernels()) {
    const auto index = static_cast<std::size_t>(&kind - attention_kernels().data());
    std::vector<AttentionPoint> points;
    std::ranges::copy_if(
        profile.attention, std::back_inserter(points),
        [&](const AttentionPoint& p) { return static_cast<std::size_t>(p.kernel) == index; });
    GpuSpec gpu = card;
    const bool in_preset = gpu.attention[index].has_value();
    if (!in_preset) gpu.attention[index] = AttentionConstants{};
    const std::size_t before = out.size();
    add(points, attention_parameters(), std::move(gpu), index,
        fmt::format("attention.{}", kind.name));
    if (out.size() > before) out.back().in_preset = in_preset;
  }
  add(profile.memory, memory_parameters(), card, 0, "memory");
  return out;
}

std::string kernel_fits_text(const std::vector<KernelFit>& fits) {
  const auto errors = [](const PointSummary& s) {
    return fmt::format("{:5.1f} {:5.1f}", 100 * s.median_abs, 100 * s.p90_abs);
  };
  std::string out = fmt::format("{:<18} {:<18} {:>5}  {:>11}  {:>11}  {:>11}   median, p90 in %\n",
                                "gpu", "part", "n", "preset", "fitted", "held out");
  for (const KernelFit& fit : fits) {
    out += fmt::format("{:<18} {:<18} {:>5}  {:>11}  {:>11}  {:>11}\n", fit.gpu, fit.part,
                       fit.after.n, errors(fit.before), errors(fit.after), errors(fit.held_out));
  }
  for (const KernelFit& fit : fits) {
    out += fmt::format("\n{}: {}\n{{", fit.gpu, fit.part);
    std::string separator = "\n";
    for (const auto& [name, value] : fit.constants) {
      out += fmt::format("{}  \"{}\": {}", separator, name, value);
      separator = ",\n";
    }
    out += "\n}\n";
  }
  return out;
}

}  // namespace lockstep
