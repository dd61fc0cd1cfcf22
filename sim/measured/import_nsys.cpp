#include "sim/measured/import_nsys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "models/base/input_file.hpp"
#include "sim/measured/device_name.hpp"
#include "sim/measured/kernel_kinds.hpp"
#include "sim/measured/kineto_points.hpp"
#include "sim/measured/nsys_range.hpp"
#include "sim/measured/nsys_report.hpp"
#include "sim/measured/sqlite_report.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kLargestReport = std::size_t{1} << 30;  // bytes, unpacked

constexpr const char* kNoRange =
    "no shapes: not in a range of an operator, as PyTorch's emit_nvtx(record_shapes=True) makes";

constexpr const char* kNoProduct = "operators that are no product, or are around one";

/// What ran in ranges of one name.
struct RangeCalls {
  KinetoOperator op;
  struct Kernel {
    double total_us = 0, instances = 0, operations = 0;
    std::size_t rows = 0;
  };
  std::map<std::string, Kernel> kernels;  ///< by name

  [[nodiscard]] std::size_t rows() const {
    std::size_t sum = 0;
    for (const auto& [name, kernel] : kernels) sum += kernel.rows;
    return sum;
  }
};

class NsysImporter {
 public:
  NsysImporter(const std::string& type, const ImportMachine& machine, const PresetStore& presets)
      : type_(type), machine_(machine), presets_(presets), gpu_(presets.gpu(machine.gpu)) {}

  void read(const std::string& file) {
    const NsysReport report = is_sqlite(file)
                                  ? read_nsys_sqlite(file)
                                  : parse_nsys(file, read_maybe_gzip(file, kLargestReport));
    check_device(file, report.device, machine_.gpu, machine_.option(), presets_, notes_);
    if (device_.empty()) device_ = report.device;
    LeftOut left_out;
    if (report.broken > 0) left_out["not of the columns of their table"] = report.broken;
    std::map<std::string, RangeCalls> calls;
    for (const NsysRow& row : report.rows) {
      const std::string why = gather(row, calls);
      if (!why.empty()) ++left_out[why];
    }
    for (const auto& [name, call] : calls) {
      const std::string why = take(call);
      if (!why.empty()) left_out[why] += call.rows();
    }
    note_left_out(left_out, "row", file, notes_);
  }

  Imported finish(const std::vector<std::string>& files) {
    nlohmann::ordered_json out{
        {"about", "Kernels by Nsight Systems; made by lockstep import nsys."}};
    out["conditions"]["files"] = fmt::format("{}", fmt::join(files, ", "));
    if (!device_.empty()) out["conditions"]["device"] = device_;
    out["gpu"] = gpu_.name;
    add_points("gemm", products_, false, out);
    add_points("attention", attention_, false, out);
    Imported imported{profile_json_text(out), std::move(notes_)};
    if (products_.empty() && attention_.empty()) imported.profile.clear();
    return imported;
  }

 private:
  /// Books the row with its range, or says why it is left out.
  static std::string gather(const NsysRow& row, std::map<std::string, RangeCalls>& calls) {
    const bool own_column = !row.range.empty();
    const auto range = parse_nsys_range(own_column ? row.range : row.kernel);
    if (!range) return kNoRange;
    if (range->op.dims.empty()) return "no shapes of the operator: record_shapes=True records them";
    const std::string& kernel = own_column ? row.kernel : range->kernel;
    if (!kernel.empty()) {
      const KernelKind kind = kernel_kind(kernel);
      if (kind != KernelKind::product && kind != KernelKind::attention) {
        return "kernels that a profile has no points of";
      }
    }
    const std::string name =
        own_column ? row.range : row.kernel.substr(0, row.kernel.size() - kernel.size());
    RangeCalls& call = calls[name];
    call.op = range->op;
    RangeCalls::Kernel& sum = call.kernels[kernel];
    sum.total_us += row.total_us;
    sum.instances += row.instances;
    sum.operations += row.operations;
    ++sum.rows;
    return {};
  }

  /// Makes a point of the calls, or says why not.
  std::string take(const RangeCalls& call) {
    const double instances = call.kernels.begin()->second.instances;
    double total_us = 0;
    for (const auto& [name, kernel] : call.kernels) {
      if (kernel.instances != instances) return "calls of one name with different kernels";
      if (name.empty() && kernel.operations != kernel.instances) {
        return "ranges of several kernels, whose times hold the gaps between them";
      }
      total_us += kernel.total_us;
    }
    const double time_us = total_us / instances;
    constexpr double kShortestUs = 1e-3;  // of a profile
    if (time_us < kShortestUs) return "no time";
    if (const auto point = attention(call)) {
      attention_[attention_text(*point)].push_back(time_us);
      return {};
    }
    return take_product(call, time_us);
  }

  static std::optional<AttentionPoint> attention(const RangeCalls& call) {
    for (const auto& [name, kernel] : call.kernels) {
      const std::optional<bool> causal = causal_of(name);
      if (!causal) continue;
      KinetoOperator op = call.op;
      // The mask is the only value that is asked for, wherever it stands.
      constexpr std::size_t kMostValues = 32;
      op.values.assign(kMostValues, *causal ? "True" : "False");
      return attention_of(op);
    }
    return std::nullopt;
  }

  std::string take_product(const RangeCalls& call, double time_us) {
    // The product inside of it has a range of its own.
    if (call.op.name == "aten::linear") return kNoProduct;
    std::string type;
    for (const auto& [name, kernel] : call.kernels) {
      if (kernel_kind(name) == KernelKind::attention) return "attention whose mask no name says";
      if (type.empty()) type = operand_type_of(name);
    }
    KinetoOperator op = call.op;
    op.types.assign(op.dims.size(), type.empty() ? type_ : type);
    const std::optional<GemmPoint> point = product_of(op);
    if (point && gpu_.peak(point->precision) <= FlopsPerSecond{}) {
      return "a number format that the card lacks";
    }
    if (point) {
      products_[product_text(*point)].push_back(time_us);
      return {};
    }
    op.types.assign(op.dims.size(), "c10::BFloat16");
    if (!product_of(op)) return kNoProduct;
    return type.empty() && type_.empty()
               ? "a number format that the kernel's name does not say: say it by --precision"
               : "a number format without a law";
  }

  const std::string& type_;
  const ImportMachine& machine_;
  const PresetStore& presets_;
  const GpuSpec& gpu_;
  std::string device_;  ///< as the first export names it
  TimesByPoint products_, attention_;
  std::vector<std::string> notes_;
};

}  // namespace

Imported import_nsys(const std::vector<std::string>& files, const std::string& type,
                     const ImportMachine& machine, const PresetStore& presets) {
  NsysImporter importer(type, machine, presets);
  for (const std::string& file : files) importer.read(file);
  return importer.finish(files);
}

}  // namespace lockstep
