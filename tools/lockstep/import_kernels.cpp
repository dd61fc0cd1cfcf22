#include "tools/lockstep/import_kernels.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/input/input_error.hpp"
#include "sim/scenario/names.hpp"
#include "tools/lockstep/kernel_catalogue.hpp"
#include "tools/lockstep/kernel_rows.hpp"
#include "tools/lockstep/table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string time_text(double microseconds) { return number_text(microseconds) + " us"; }

void add_gemm(const GemmRow& row, const GpuSpec& gpu, Json& out) {
  if (row.backward || gpu.peak(row.precision) <= FlopsPerSecond{}) return;
  const auto [m, n, k, count] = row.shape;
  const double time = row.measured_us - (row.quantises ? quantise_us(m * k * count, gpu) : 0);
  if (time <= 0) return;
  Json point{{"m", m}, {"n", n}, {"k", k}};
  if (count > 1) point["count"] = count;
  point["precision"] = name_of(row.precision);
  if (row.load == Load::sustained) point["load"] = "sustained";
  point["time"] = time_text(time);
  out["gemm"].push_back(point);
}

void add_attention(const AttentionRow& row, const GpuSpec& gpu, Json& out) {
  const AttentionImplementation& as = *row.implementation;
  const AttentionKernelKind& kind = attention_kernels()[static_cast<std::size_t>(as.kernel)];
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
  Json point{{"kernel", kind.name},    {"direction", forward ? "forward" : "backward"},
             {"causal", shape.causal}, {"sequences", shape.sequences},
             {"tokens", shape.tokens}, {"heads", shape.heads}};
  if (shape.kv_heads != shape.heads) point["kv_heads"] = shape.kv_heads;
  point["head_dim"] = shape.head_dim;
  point["time"] = time_text(time);
  out["attention"].push_back(point);
}

void add_memory(const MemoryRow& row, Json& out) {
  const MemoryPass& pass = row.backward ? row.kernel->backward : row.kernel->forward;
  const double time = row.measured_us - pass.extra_us;
  if (time <= 0 || pass.bytes <= 0) return;
  out["memory"].push_back(
      {{"kernel", fmt::format("{}{}", row.kernel_printed, row.backward ? " backward" : "")},
       {"traffic", pass.bytes * pass.slowdown * row.elements},
       {"time", time_text(time)}});
}

template <class Row>
bool is_of(const Row& row, const GpuSpec& gpu) {
  return row.obstacle.empty() && row.gpu == gpu.name;
}

}  // namespace

std::string import_kernels(const KernelFiles& files, const GpuSpec& gpu) {
  Json out{{"about", "Made by lockstep import kernels; the sources are those of its rows."},
           {"gpu", gpu.name}};
  for (const std::string& file : files.gemm) {
    for (const GemmRow& row : read_gemm_rows(file)) {
      if (is_of(row, gpu)) add_gemm(row, gpu, out);
    }
  }
  for (const std::string& file : files.attention) {
    for (const AttentionRow& row : read_attention_rows(file)) {
      if (is_of(row, gpu)) add_attention(row, gpu, out);
    }
  }
  for (const std::string& file : files.memory) {
    for (const MemoryRow& row : read_memory_rows(file)) {
      if (is_of(row, gpu)) add_memory(row, out);
    }
  }
  if (out.size() == 2) {
    throw InputError({.file = "lockstep import",
                      .pointer = {},
                      .found = "no row of " + gpu.name,
                      .allowed = "--gemm, --attention or --memory with rows of that card",
                      .nearest = {}});
  }
  return out.dump(1) + "\n";
}

}  // namespace lockstep
