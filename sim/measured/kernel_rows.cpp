#include "sim/measured/kernel_rows.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <string_view>

#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/kernel_catalogue.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostRows = 1000000;
constexpr Interval kRowSize{1, 1e12};
constexpr Interval kRowTime{0, 1e15, true};

std::string text(const JsonCursor& row, std::string_view key) {
  const std::optional<JsonCursor> member = row.find(key);
  return member && member->is_string() ? member->string() : std::string();
}

/// The number; nothing if it is missing, null, or a text.
std::optional<double> number(const JsonCursor& row, std::string_view key, const Interval& allowed) {
  const std::optional<JsonCursor> member = row.find(key);
  if (!member || !member->is_number()) return std::nullopt;
  return member->number(allowed);
}

std::vector<JsonCursor> rows_of(const std::string& file) {
  return JsonCursor::parse(file, read_text_file(file)).at("rows").elements(kMostRows);
}

/// What every kind of row starts with. An unknown GPU is an obstacle.
void read_common(const JsonCursor& row, const GpuNames& names, KernelRow& out) {
  out.gpu_printed = row.at("gpu").string();
  out.gpu = names.preset_of(out.gpu_printed);
  out.dtype = text(row, "dtype");
  if (out.gpu.empty()) out.obstacle = "no preset of " + out.gpu_printed;
}

std::optional<Precision> precision_of(std::string_view dtype) {
  if (dtype.starts_with("bf16") || dtype.starts_with("bfloat16")) return Precision::bf16;
  if (dtype.starts_with("fp16") || dtype.starts_with("float16")) return Precision::fp16;
  if (dtype.starts_with("mxfp8")) return Precision::mxfp8;
  if (dtype.starts_with("tf32")) return Precision::tf32;
  if (dtype.starts_with("fp8")) return Precision::fp8;
  if (dtype.starts_with("nvfp4") || dtype.starts_with("fp4")) return Precision::nvfp4;
  return std::nullopt;
}

GemmRow read_gemm_row(const JsonCursor& json, const GpuNames& names) {
  GemmRow row;
  read_common(json, names, row);
  row.source = text(json, "src");
  row.load = text(json, "clock").starts_with("sustained") ? Load::sustained : Load::burst;
  const auto m = number(json, "m", kRowSize), n = number(json, "n", kRowSize),
             k = number(json, "k", kRowSize);
  const std::optional<double> time = number(json, "time_us", kRowTime);
  const std::optional<Precision> precision = precision_of(row.dtype);
  if (!m || !n || !k) row.obstacle = "not a single product";
  if (!precision) row.obstacle = "no model of " + row.dtype;
  if (!time) row.obstacle = "no time printed";
  if (!row.obstacle.empty()) return row;
  row.shape = {*m, *n, *k, number(json, "groups", kRowSize).value_or(1)};
  row.precision = *precision;
  row.quantises = is_quantised(*precision) && row.source == kQuantisingGemmSource;
  row.measured_us = *time;
  return row;
}

/// The FlashAttention benchmark, which its figures leave out: 16,384 tokens, hidden size 2,048.
constexpr double kFlashTokens = 16384;
constexpr double kFlashHidden = 2048;

/// FLOPs of the convention of attention.json: 4 b a s^2 d forward, 2.5 times that backward.
double convention_flops(const AttentionRow& row) {
  const double forward = attention_flops(row.shape).base_units();
  return forward * (row.pass == AttentionPass::forward    ? 1.0
                    : row.pass == AttentionPass::backward ? 2.5
                                                          : 3.5);
}

void read_attention_time(const JsonCursor& json, AttentionRow& row) {
  const std::optional<double> time_ms = number(json, "time_ms", kRowTime);
  const std::optional<double> tflops = number(json, "tflops", kRowTime);
  if (time_ms) {
    row.measured_us = *time_ms * 1e3;
  } else if (tflops) {
    row.measured_us = convention_flops(row) / *tflops * 1e-6;
  } else {
    row.obstacle = "no time printed";
  }
}

AttentionRow read_attention_row(const JsonCursor& json, const GpuNames& names) {
  AttentionRow row;
  read_common(json, names, row);
  row.implementation_printed = json.at("impl").string();
  row.implementation = attention_implementation(row.implementation_printed);
  const std::string pass = json.at("dir").string();
  row.pass = pass == "fwd"   ? AttentionPass::forward
             : pass == "bwd" ? AttentionPass::backward
                             : AttentionPass::both;
  const std::optional<double> tokens = number(json, "seqlen", kRowSize),
                              d = number(json, "head_dim", kRowSize);
  const std::optional<Precision> precision = precision_of(row.dtype);
  if (!precision || is_quantised(*precision)) row.obstacle = "attention in 8 bit is not modelled";
  if (const auto window = json.find("sliding_window"); window && !window->is_null()) {
    row.obstacle = "sliding windows are not modelled";
  }
  if (row.implementation == nullptr) row.obstacle = "no model of " + row.implementation_printed;
  if (!tokens || !d) row.obstacle = "no shape printed";
  if (!row.obstacle.empty()) return row;
  const double heads = number(json, "q_heads", kRowSize).value_or(std::max(1.0, kFlashHidden / *d));
  // Latent attention has wider keys than values; its work is that of the mean.
  const double value_dim = number(json, "head_dim_v", kRowSize).value_or(*d);
  const double width = (*d + value_dim) / 2;
  row.shape = {
      .sequences = number(json, "batch", kRowSize).value_or(std::max(1.0, kFlashTokens / *tokens)),
      .tokens = *tokens,
      .heads = heads,
      .kv_heads = number(json, "kv_heads", kRowSize).value_or(heads),
      .head_dim = width,
      .causal = json.at("causal").boolean(),
      .query_dim = value_dim == *d ? 0 : *d};
  read_attention_time(json, row);
  return row;
}

/// Product of the shape: an array of sizes, or named sizes of which `mp` divides.
double elements_of(const JsonCursor& shape, std::string& printed) {
  double elements = 1;
  if (shape.is_array()) {
    for (const JsonCursor& size : shape.elements(16)) {
      if (!size.is_number()) return 0;
      elements *= size.number(kRowSize);
      printed +=
          fmt::format("{}{}", printed.empty() ? "" : " x ", plain_number(size.number(kRowSize)));
    }
    return elements;
  }
  if (!shape.is_object()) return 0;
  if (const auto parameters = number(shape, "params_est", kRowSize)) {
    printed = fmt::format("{} parameters", plain_number(*parameters));
    return *parameters;
  }
  const bool scores = shape.find("h").has_value() && !shape.find("dim").has_value();
  for (const std::string& key : shape.keys()) {
    const std::optional<double> size = number(shape, key, kRowSize);
    if (!size) return 0;
    printed += fmt::format("{}{} {}", printed.empty() ? "" : ", ", key, plain_number(*size));
    if (key == "mp") {
      elements /= *size;
    } else if (key != "h" || scores) {
      elements *= key == "l" && scores ? *size * *size : *size;
    }
  }
  return elements;
}

MemoryRow read_memory_row(const JsonCursor& json, const GpuNames& names) {
  MemoryRow row;
  read_common(json, names, row);
  row.kernel_printed = json.at("kernel").string();
  row.implementation_printed = text(json, "impl");
  row.kernel = memory_kernel(row.kernel_printed, row.implementation_printed);
  row.backward = text(json, "dir") == "bwd";
  if (const auto shape = json.find("shape")) row.elements = elements_of(*shape, row.shape_printed);
  const std::optional<double> time = number(json, "time_us", kRowTime);
  if (row.kernel == nullptr || (!row.gpu.empty() && row.kernel->not_on == row.gpu)) {
    row.obstacle =
        fmt::format("traffic of {} ({}) not known", row.kernel_printed, row.implementation_printed);
  } else if (row.elements <= 0 || !time) {
    row.obstacle = "no shape or time printed";
  }
  row.measured_us = time.value_or(0);
  return row;
}

bool backward_known(const MemoryRow& row) {
  return row.kernel != nullptr && row.kernel->backward.bytes > 0;
}

double microseconds_of(Seconds time) { return time.base_units() * 1e6; }

}  // namespace

std::vector<GemmRow> read_gemm_rows(const std::string& file, const PresetStore& presets) {
  const GpuNames names(presets);
  std::vector<GemmRow> rows;
  for (const JsonCursor& json : rows_of(file)) {
    rows.push_back(read_gemm_row(json, names));
    const std::optional<double> backward = number(json, "bwd_time_us", kRowTime);
    if (!backward || !rows.back().obstacle.empty()) continue;
    rows.push_back(rows.back());
    rows.back().backward = true;
    rows.back().measured_us = *backward;
  }
  return rows;
}

std::vector<AttentionRow> read_attention_rows(const std::string& file, const PresetStore& presets) {
  const GpuNames names(presets);
  std::vector<AttentionRow> rows;
  for (const JsonCursor& json : rows_of(file)) rows.push_back(read_attention_row(json, names));
  return rows;
}

std::vector<MemoryRow> read_memory_rows(const std::string& file, const PresetStore& presets) {
  const GpuNames names(presets);
  std::vector<MemoryRow> rows;
  for (const JsonCursor& json : rows_of(file)) {
    rows.push_back(read_memory_row(json, names));
    MemoryRow& row = rows.back();
    if (row.obstacle.empty() && row.backward && !backward_known(row)) {
      row.obstacle = "backward traffic of " + row.kernel_printed + " not known";
    }
    const std::optional<double> backward = number(json, "bwd_time_us", kRowTime);
    if (!backward || !row.obstacle.empty() || row.backward || !backward_known(row)) continue;
    rows.push_back(row);
    rows.back().backward = true;
    rows.back().measured_us = *backward;
  }
  return rows;
}

std::optional<double> predicted_us(const GemmRow& row, const GpuSpec& gpu) {
  if (gpu.peak(row.precision) <= FlopsPerSecond{}) return std::nullopt;
  const auto [m, n, k, count, repeats] = row.shape;
  if (row.backward) {
    return microseconds_of(gemm_time({m, k, n, count}, row.precision, gpu, row.load) +
                           gemm_time({n, k, m, count}, row.precision, gpu, row.load));
  }
  double time = microseconds_of(gemm_time(row.shape, row.precision, gpu, row.load));
  if (row.quantises) time += quantise_us(m * k * count, gpu);
  return time;
}

std::optional<double> predicted_us(const AttentionRow& row, const GpuSpec& gpu) {
  const AttentionImplementation& as = *row.implementation;
  const ElementwiseTraffic traffic;  // read by the unfused kernel alone
  double time = as.extra_us;
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const bool forward = direction == Direction::forward;
    if (row.pass == (forward ? AttentionPass::backward : AttentionPass::forward)) continue;
    AttentionShape shape = row.shape;
    shape.direction = direction;
    const AttentionConstants* constants = attention_constants(as.kernel, gpu);
    const double launch = constants == nullptr ? 0 : microseconds_of(constants->launch);
    time += launch +
            (microseconds_of(attention_time(shape, as.kernel, gpu, traffic)) - launch) / as.speed;
  }
  const AttentionShape& s = row.shape;
  const Bytes operands{2 * s.sequences * s.tokens * s.head_dim * (s.heads + 2 * s.kv_heads)};
  return time +
         microseconds_of(as.extra_passes * operands / (gpu.hbm_bandwidth * gpu.memory.efficiency));
}

std::optional<double> predicted_us(const MemoryRow& row, const GpuSpec& gpu) {
  const MemoryPass& pass = row.backward ? row.kernel->backward : row.kernel->forward;
  const Bytes traffic{pass.bytes * pass.slowdown * row.elements};
  return pass.extra_us + microseconds_of(memory_bound_time(traffic, gpu));
}

}  // namespace lockstep
