#include "tools/calibrate/profile_text.hpp"

#include <cmath>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/quantity.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json memory_point(const MemoryTask& task) {
  const MemoryKernelInfo& kernel = info(task.kernel);
  return {{"kernel", kernel.name}, {"traffic", kernel.traffic(task.elements)}};
}
Json product_point(const ProductTask& task) {
  Json point{{"m", task.shape.m}, {"n", task.shape.n}, {"k", task.shape.k}};
  if (task.shape.count > 1) point["count"] = task.shape.count;
  point["precision"] = name_of(task.precision);
  if (task.load == Load::sustained) point["load"] = "sustained";
  return point;
}

Json attention_point(const AttentionTask& task) {
  const AttentionShape& s = task.shape;
  return {{"kernel", name_of(AttentionKernel::cudnn)},
          {"direction", s.direction == Direction::forward ? "forward" : "backward"},
          {"sequences", s.sequences},
          {"tokens", s.tokens},
          {"heads", s.heads},
          {"kv_heads", s.kv_heads},
          {"head_dim", s.head_dim},
          {"causal", s.causal}};
}

Json collective_point(const CollectiveTask& task, const RankShape& shape) {
  Json point{{"op", kNcclTestsNames[static_cast<std::size_t>(task.op)]}};
  if (shape.nodes > 1) point["nodes"] = shape.nodes;
  point["gpus_per_node"] = shape.gpus_per_node;
  point["size"] = task.size.base_units();
  return point;
}

/// Six digits are beyond what any repeat agrees in.
void add_timing(const Timing& timing, Json& point) {
  point["time"] = fmt::format("{:.6g} us", timing.median.base_units() * 1e6);
  point["spread"] = std::round(timing.spread * 1e4) / 1e4;
}

/// Whole numbers without a fraction: sizes are doubles here.
std::string line_of(Json point) {
  for (auto& [key, value] : point.items()) {
    if (value.is_number_float() && value == std::floor(value.get<double>())) {
      value = static_cast<std::int64_t>(value.get<double>());
    }
  }
  return write_json(point);
}

std::string points_text(std::string_view name, const std::vector<Json>& points) {
  std::string out = fmt::format(",\n \"{}\": [", name);
  for (std::size_t i = 0; i < points.size(); ++i) {
    out += (i == 0 ? "\n  " : ",\n  ") + line_of(points[i]);
  }
  return out + "\n ]";
}

}  // namespace

bool is_point(const Task& task) {
  return !std::holds_alternative<LaunchTask>(task) && !std::holds_alternative<CopyTask>(task);
}

std::string profile_text(const Calibration& calibration) {
  Json head{{"about", calibration.about},
            {"source", calibration.source},
            {"date", calibration.date},
            {"conditions", Json::object()},
            {"gpu", calibration.gpu}};
  for (const auto& [name, value] : calibration.conditions) head["conditions"][name] = value;
  if (calibration.power_limit) {
    head["power_limit"] = format_quantity(calibration.power_limit->base_units(), Dimension::power);
  }
  if (!calibration.node.empty()) head["network"]["node"] = calibration.node;
  std::vector<Json> gemm, attention, memory, collectives;
  for (const MeasuredTask& measured : calibration.measured) {
    if (const auto* product = std::get_if<ProductTask>(&measured.task)) {
      add_timing(measured.timing, gemm.emplace_back(product_point(*product)));
    } else if (const auto* kernel = std::get_if<MemoryTask>(&measured.task)) {
      add_timing(measured.timing, memory.emplace_back(memory_point(*kernel)));
    } else if (const auto* core = std::get_if<AttentionTask>(&measured.task)) {
      add_timing(measured.timing, attention.emplace_back(attention_point(*core)));
    }
  }
  for (const MeasuredCollective& measured : calibration.collectives) {
    add_timing(measured.timing,
               collectives.emplace_back(collective_point(measured.task, calibration.shape)));
  }
  // Conditions are what other programs say; whatever it is, the measurements are not lost by it.
  std::string out = write_json(head, 1);
  out.resize(out.rfind("\n}"));
  if (!gemm.empty()) out += points_text("gemm", gemm);
  if (!attention.empty()) out += points_text("attention", attention);
  if (!memory.empty()) out += points_text("memory", memory);
  if (!collectives.empty()) out += points_text("collectives", collectives);
  return out + "\n}\n";
}

}  // namespace lockstep
