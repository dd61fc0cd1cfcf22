#include "sim/measured/validate_kernels.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <utility>

#include "models/base/number_text.hpp"
#include "sim/measured/kernel_rows.hpp"

namespace lockstep {
namespace {

IdentityValue plain(double number) { return IdentityValue::number(number); }

Identity identity(const GemmRow& row) {
  return {{"gpu", row.gpu_printed},
          {"dtype", row.dtype},
          {"pass", row.backward ? "backward" : "forward"},
          {"m", plain(row.shape.m)},
          {"n", plain(row.shape.n)},
          {"k", plain(row.shape.k)},
          {"count", plain(row.shape.count)},
          {"source", row.source}};
}

Identity identity(const AttentionRow& row) {
  const AttentionShape& s = row.shape;
  const char* pass = row.pass == AttentionPass::forward    ? "forward"
                     : row.pass == AttentionPass::backward ? "backward"
                                                           : "both";
  return {{"gpu", row.gpu_printed},
          {"implementation", row.implementation_printed},
          {"pass", pass},
          {"causal", s.causal ? "true" : "false"},
          {"sequences", plain(s.sequences)},
          {"tokens", plain(s.tokens)},
          {"heads", plain(s.heads)},
          {"kv_heads", plain(s.kv_heads)},
          {"head_dim", plain(s.head_dim)}};
}

Identity identity(const MemoryRow& row) {
  return {{"gpu", row.gpu_printed},
          {"kernel", row.kernel_printed},
          {"implementation", row.implementation_printed},
          {"pass", row.backward ? "backward" : "forward"},
          {"shape", row.shape_printed}};
}

/// The group of the summary that a row belongs to, beside "all".
std::string group(const GemmRow& row) {
  return fmt::format("{} {}{}", row.gpu_printed, row.dtype, row.backward ? " backward" : "");
}
std::string group(const AttentionRow& row) {
  return fmt::format("{} {}", row.gpu_printed, row.implementation_printed);
}
std::string group(const MemoryRow& row) {
  return fmt::format("{} {}", row.gpu_printed, row.kernel_printed);
}

/// Sizes that training has; smaller ones are inference's.
bool trains(const GemmRow& row) {
  return std::min({row.shape.m, row.shape.n, row.shape.k}) >= 1024;
}
bool trains(const AttentionRow& row) { return row.measured_us >= 200; }
bool trains(const MemoryRow& row) { return row.measured_us >= 20; }

constexpr std::string_view kGemmSizes = "m, n, k >= 1024";
constexpr std::string_view kAttentionSizes = "200 us and longer";
constexpr std::string_view kMemorySizes = "20 us and longer";

/// Collects points and the groups that they belong to, in the order of the names.
template <class Row>
class Collector {
 public:
  Collector(std::string what, std::string_view sizes, const PresetStore& presets)
      : sizes_(sizes), presets_(presets) {
    table_.what = std::move(what);
  }

  void add(const Row& row) {
    if (!row.obstacle.empty()) return skip(row.obstacle);
    const std::optional<double> predicted = predicted_us(row, presets_.gpu(row.gpu));
    if (!predicted) return skip(fmt::format("{} on {}", row.dtype, row.gpu_printed));
    const ValidationPoint point{identity(row), row.measured_us, *predicted,
                                *predicted / row.measured_us - 1};
    table_.points.push_back(point);
    groups_[group(row)].push_back(point);
    if (trains(row)) {
      trained_.push_back(point);
      trained_groups_[group(row)].push_back(point);
    }
  }

  PointTable finish() {
    table_.summary.push_back(summarise("all", table_.points));
    table_.summary.push_back(summarise(sizes_, trained_));
    for (const auto& [name, points] : groups_) table_.summary.push_back(summarise(name, points));
    for (const auto& [name, points] : trained_groups_) {
      table_.summary.push_back(summarise(fmt::format("{}, {}", name, sizes_), points));
    }
    for (const auto& [why, n] : skipped_) {
      table_.skipped.push_back(
          fmt::format("{}: {}", counted(static_cast<double>(n), "point"), why));
    }
    return std::move(table_);
  }

 private:
  void skip(const std::string& why) { ++skipped_[why]; }

  std::string sizes_;
  const PresetStore& presets_;
  PointTable table_;
  std::vector<ValidationPoint> trained_;
  std::map<std::string, std::vector<ValidationPoint>> groups_, trained_groups_;
  std::map<std::string, std::size_t> skipped_;
};

template <class Row>
PointTable validate(std::string what, std::string_view sizes, const std::vector<Row>& rows,
                    const PresetStore& presets) {
  Collector<Row> collector(std::move(what), sizes, presets);
  for (const Row& row : rows) collector.add(row);
  return collector.finish();
}

}  // namespace

PointTable validate_gemm(const std::string& file, const PresetStore& presets) {
  return validate("matrix products", kGemmSizes, read_gemm_rows(file, presets), presets);
}

PointTable validate_attention(const std::string& file, const PresetStore& presets) {
  return validate("attention", kAttentionSizes, read_attention_rows(file, presets), presets);
}

PointTable validate_memory_kernels(const std::string& file, const PresetStore& presets) {
  return validate("memory-bound kernels", kMemorySizes, read_memory_rows(file, presets), presets);
}

}  // namespace lockstep
