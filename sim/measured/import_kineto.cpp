#include "sim/measured/import_kineto.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/measured/device_name.hpp"
#include "sim/measured/kernel_kinds.hpp"
#include "sim/measured/kineto_points.hpp"
#include "sim/measured/kineto_trace.hpp"
#include "sim/measured/nsys_range.hpp"
#include "sim/measured/statistics.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using KinetoJson = nlohmann::ordered_json;

constexpr std::size_t kLargestTrace = std::size_t{4} << 30;  // bytes, unpacked

/// Times of one thing that ran several times, in microseconds.
using Times = std::vector<double>;

double sum_of(const Times& times) {
  double sum = 0;
  for (const double t : times) sum += t;
  return sum;
}

/// A product, which several kernels may have made together.
struct ProductCall {
  std::string point;
  double us = 0;
};

class KinetoImporter {
 public:
  KinetoImporter(const ImportMachine& machine, int gpus_per_node, const PresetStore& presets)
      : machine_(machine),
        gpus_per_node_(gpus_per_node),
        presets_(presets),
        gpu_(presets.gpu(machine.gpu)) {}

  void read(const std::string& file) {
    const KinetoTrace trace = parse_kineto(file, read_maybe_gzip(file, kLargestTrace));
    check_device(file, trace.device, machine_.gpu, machine_.option(), presets_, notes_);
    if (device_.empty()) device_ = trace.device;
    std::map<std::int64_t, ProductCall> products;  // each call, by its operator
    std::map<std::int64_t, double> attention;      // its time
    for (const KinetoKernel& kernel : trace.kernels) {
      all_us_ += kernel.duration_us;
      const std::string why = take(kernel, trace, products, attention);
      if (why.empty()) {
        taken_us_ += kernel.duration_us;
      } else {
        left_out_[{kernel.name, why}].push_back(kernel.duration_us);
      }
    }
    for (const auto& [id, call] : products) products_[call.point].push_back(call.us);
    for (const auto& [id, time] : attention) {
      attention_[attention_text(*attention_of(trace.operators.at(id)))].push_back(time);
    }
  }

  Imported finish(const std::vector<std::string>& files) const {
    KinetoJson out{{"about", "Kernels of PyTorch's profiler; made by lockstep import kineto."}};
    out["conditions"]["files"] = fmt::format("{}", fmt::join(files, ", "));
    if (!device_.empty()) out["conditions"]["device"] = device_;
    out["gpu"] = machine_.gpu;
    if (machine_.node != nullptr && !collectives_.empty()) {
      out["network"]["node"] = machine_.node->name;
    }
    add_points("gemm", products_, false, out);
    add_points("attention", attention_, false, out);
    add_points("collectives", collectives_, true, out);
    Imported imported{profile_json_text(out), notes_, left_out_kernels()};
    imported.left_out.push_back(taken_text());
    if (products_.empty() && attention_.empty() && collectives_.empty()) imported.profile.clear();
    return imported;
  }

 private:
  /// Books the kernel with its point, or says why it has none.
  std::string take(const KinetoKernel& kernel, const KinetoTrace& trace,
                   std::map<std::int64_t, ProductCall>& products,
                   std::map<std::int64_t, double>& attention) {
    const KernelKind kind = kernel_kind(kernel.name);
    if (kernel.collective) return take_collective(kernel);
    if (kind == KernelKind::collective) return "no sizes recorded";
    if (kind != KernelKind::product && kind != KernelKind::attention) return "no such points";
    if (!kernel.operator_id) return "no operator (CUDA graph)";
    const auto op = trace.operators.find(*kernel.operator_id);
    if (op == trace.operators.end()) return "no shapes recorded";
    if (kind == KernelKind::attention) {
      if (!attention_of(op->second)) return "no shape of " + op->second.name;
      attention[*kernel.operator_id] += kernel.duration_us;
      return {};
    }
    KinetoOperator called = op->second;
    // That its 32-bit tensors are multiplied in TF32 only the kernel's name says.
    if (operand_type_of(kernel.name) == kTf32Type) {
      std::ranges::replace(called.types, "float", std::string(kTf32Type));
    }
    const std::optional<GemmPoint> point = product_of(called);
    if (!point) return "no shape of " + op->second.name;
    if (gpu_.peak(point->precision) <= FlopsPerSecond{}) return "a format that the card lacks";
    ProductCall& call = products[*kernel.operator_id];
    call.point = product_text(*point);
    call.us += kernel.duration_us;
    return {};
  }

  std::string take_collective(const KinetoKernel& kernel) {
    std::string why;
    const auto point = collective_point(*kernel.collective, gpus_per_node_, why);
    if (!point) return why;
    if (point->nodes > 1 && machine_.node == nullptr) return "over several nodes: say --node";
    KinetoJson json{{"op", kNcclTestsNames[static_cast<std::size_t>(point->op)]}};
    if (point->nodes > 1) json["nodes"] = point->nodes;
    json["gpus_per_node"] = point->gpus_per_node;
    json["size"] = static_cast<std::int64_t>(point->size.base_units());
    collectives_[write_json(json)].push_back(kernel.duration_us);
    return {};
  }

  [[nodiscard]] std::string taken_text() const {
    return fmt::format(
        "{} of the GPU time of {} is in the profile: {} products, {} of "
        "attention, {} collectives.",
        percent_text(taken_us_ / all_us_), duration_text(all_us_ * 1e-6), products_.size(),
        attention_.size(), collectives_.size());
  }

  /// The longest first.
  [[nodiscard]] std::vector<LeftOutKernel> left_out_kernels() const {
    std::vector<LeftOutKernel> out;
    out.reserve(left_out_.size());
    for (const auto& [kernel, times] : left_out_) {
      out.push_back({.name = kernel.first,
                     .kind = name_of(kernel_kind(kernel.first)),
                     .calls = times.size(),
                     .total_us = sum_of(times),
                     .median_us = median(times),
                     .why = kernel.second});
    }
    std::ranges::stable_sort(out, std::greater<>(), &LeftOutKernel::total_us);
    return out;
  }

  const ImportMachine& machine_;
  int gpus_per_node_;
  const PresetStore& presets_;
  const GpuSpec& gpu_;
  std::string device_;  ///< as the first trace names it
  std::vector<std::string> notes_;
  TimesByPoint products_, attention_, collectives_;
  std::map<std::pair<std::string, std::string>, Times> left_out_;  ///< by kernel and reason
  double all_us_ = 0, taken_us_ = 0;
};

}  // namespace

Imported import_kineto(const std::vector<std::string>& files, const ImportMachine& machine,
                       int gpus_per_node, const PresetStore& presets) {
  KinetoImporter importer(machine, gpus_per_node, presets);
  for (const std::string& file : files) importer.read(file);
  return importer.finish(files);
}

}  // namespace lockstep
