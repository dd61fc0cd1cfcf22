#include "sim/measured/import_kernels.hpp"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/measured/import_nccl.hpp"
#include "sim/measured/kernel_catalogue.hpp"
#include "sim/measured/kernel_rows.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Published times have three to six digits.
std::string time_text(double microseconds) { return fmt::format("{:.6g} us", microseconds); }

/// "gemm.json, nccl.json": the files without their folders.
std::string file_names(const KernelFiles& files) {
  std::vector<std::string> names;
  for (const auto* kind : {&files.gemm, &files.attention, &files.memory, &files.nccl}) {
    for (const std::string& file : *kind) {
      names.push_back(std::filesystem::path(file).filename().string());
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

constexpr const char* kPublished =
    "yes: by several people, on cards, clocks and libraries of their own; no card had all of these "
    "times";

void add_point(const char* kind, const std::string& text, double microseconds, Json& out) {
  Json point = Json::parse(text);
  point["time"] = time_text(microseconds);
  out[kind].push_back(std::move(point));
}

void add_gemm(const GemmRow& row, const GpuSpec& gpu, Json& out) {
  if (row.backward || gpu.peak(row.precision) <= FlopsPerSecond{}) return;
  const auto [m, n, k, count, repeats] = row.shape;
  const double time = row.measured_us - (row.quantises ? quantise_us(m * k * count, gpu) : 0);
  if (time <= 0) return;
  GemmPoint point;
  point.shape = row.shape;
  point.precision = row.precision;
  point.load = row.load;
  add_point("gemm", product_text(point), time, out);
}

void add_attention(const AttentionRow& row, const GpuSpec& gpu, Json& out) {
  const AttentionImplementation& as = *row.implementation;
  if (row.pass == AttentionPass::both || as.kernel == AttentionKernel::unfused ||
      attention_constants(as.kernel, gpu) == nullptr) {
    return;
  }
  // predicted_us() turned round: what the benchmark times beside the kernel, and its speed.
  const double predicted = predicted_us(row, gpu).value_or(0);
  AttentionShape shape = row.shape;
  const bool forward = row.pass == AttentionPass::forward;
  shape.direction = forward ? Direction::forward : Direction::backward;
  const double law = attention_time(shape, as.kernel, gpu, ElementwiseTraffic{}).base_units() * 1e6;
  const double beside = predicted - law / as.speed;
  const double time = (row.measured_us - beside) * as.speed;
  if (time <= 0) return;
  AttentionPoint point;
  point.kernel = as.kernel;
  point.shape = shape;
  add_point("attention", attention_text(point), time, out);
}

void add_memory(const MemoryRow& row, Json& out) {
  const MemoryPass& pass = row.backward ? row.kernel->backward : row.kernel->forward;
  const double time = row.measured_us - pass.extra_us;
  if (time <= 0 || pass.bytes <= 0) return;
  out["memory"].push_back(
      {{"kernel", fmt::format("{}{}", row.kernel_printed, row.backward ? " backward" : "")},
       {"traffic", std::llround(pass.bytes * pass.slowdown * row.elements)},
       {"time", time_text(time)}});
}

template <class Row>
bool is_of(const Row& row, const GpuSpec& gpu) {
  return row.obstacle.empty() && row.gpu == gpu.name;
}

}  // namespace

std::string import_kernels(const KernelFiles& files, const GpuSpec& gpu,
                           const PresetStore& presets) {
  Json out{{"about", fmt::format("What was published of {}.", gpu.name)},
           {"source", fmt::format("the rows of {}, which name their own; made by lockstep import "
                                  "kernels",
                                  file_names(files))},
           {"conditions", {{"published", kPublished}}},
           {"gpu", gpu.name}};
  const std::size_t without_points = out.size();
  for (const std::string& file : files.gemm) {
    for (const GemmRow& row : read_gemm_rows(file, presets)) {
      if (is_of(row, gpu)) add_gemm(row, gpu, out);
    }
  }
  for (const std::string& file : files.attention) {
    for (const AttentionRow& row : read_attention_rows(file, presets)) {
      if (is_of(row, gpu)) add_attention(row, gpu, out);
    }
  }
  for (const std::string& file : files.memory) {
    for (const MemoryRow& row : read_memory_rows(file, presets)) {
      if (is_of(row, gpu)) add_memory(row, out);
    }
  }
  for (const std::string& file : files.nccl) {
    for (auto& point : collectives_in_a_node(file, gpu.name, presets)) {
      out["collectives"].push_back(std::move(point));
    }
  }
  if (out.size() == without_points) {
    throw InputError({.file = "lockstep import",
                      .pointer = {},
                      .found = "no row of " + gpu.name,
                      .allowed = "--gemm, --attention, --memory or --nccl with rows of that card",
                      .nearest = {}});
  }
  return profile_json_text(out);
}

}  // namespace lockstep
