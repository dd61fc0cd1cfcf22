#include "tools/calibrate/plan.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "models/kernels/attention.hpp"
#include "models/kernels/memory_bound.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/names.hpp"
#include "tools/calibrate/shapes.hpp"
#include "tools/calibrate/timing.hpp"

namespace lockstep {
namespace {

/// assumed: choosing an algorithm, loading its kernel, capturing a graph, checking the result, and
/// 10 ms of work that wake the card.
constexpr Seconds kPreparation{0.06};
/// assumed: by then a card has reached the clock and nearly the temperature of its power limit.
constexpr Seconds kHeating{4};
/// Once it is hot, from one product to the next: the power controller settles in tens of
/// milliseconds (assumed).
constexpr Seconds kSettling{0.2}, kSustainedTimed{0.2};
/// Octaves between products of transformers, and from the grid: nearer ones tell nothing new, for a
/// profile interpolates.
constexpr double kThinning = 0.85;
/// The same for experts, whose number is a fourth side.
constexpr double kExpertThinning = 2.5;
/// The same for attention, whose time depends on its shape more smoothly.
constexpr double kAttentionThinning = 2;
constexpr double kSmallestTraffic = 1 << 20, kLargestTraffic = 1 << 30;
/// Eight-bit products want sides of whole 16 bytes.
constexpr double kFp8Side = 16;
/// Whole blocks of MXFP8's 32 elements, and 16 bytes of 4-bit elements, too.
constexpr double kBlockSide = 32;
/// assumed: cuDNN compiles the kernel of each plan while the program runs.
constexpr Seconds kCompilation{0.6};

class Planner {
 public:
  Planner(const GpuSpec& gpu, const CardFacts& card) : gpu_(gpu), card_(card) {}

  void launches() {
    std::vector<PlannedTask> group;
    for (const bool busy : {false, true}) {
      for (const bool graph : {false, true}) {
        group.push_back({LaunchTask{.graph = graph, .busy = busy}, "launch", {}, Seconds{0.5}});
      }
    }
    append(group);
  }

  void copies() {
    std::vector<PlannedTask> group;
    for (const bool to_device : {true, false}) {
      for (const double size : {4096.0, 1048576.0, 268435456.0}) {
        const CopyTask task{.to_device = to_device, .size = Bytes{size}};
        group.push_back({task, "copies", {}, Seconds{0.3}});
      }
    }
    append(group);
  }

  void memory() {
    std::vector<PlannedTask> group;
    for (std::size_t i = 0; i < memory_kernels().size(); ++i) {
      const MemoryKernelInfo& kernel = memory_kernels()[i];
      // Doubling is exact. NOLINTNEXTLINE(clang-analyzer-security.FloatLoopCounter)
      for (double traffic = kSmallestTraffic; traffic <= kLargestTraffic; traffic *= 2) {
        const double rows = std::floor(traffic / kernel.traffic(kRowElements));
        const double elements = rows * kRowElements;
        if (rows < 1 || Bytes{elements * kernel.read} > card_.inputs ||
            Bytes{elements * (kernel.written + kernel.updated)} > card_.outputs) {
          continue;
        }
        const Seconds one = memory_bound_time(Bytes{kernel.traffic(elements)}, gpu_);
        group.push_back({MemoryTask{static_cast<MemoryKernelKind>(i), elements},
                         "memory",
                         {},
                         burst_time(one)});
      }
    }
    append(shuffled(std::move(group)));
  }

  void attention(std::span<const AttentionShape> shapes) {
    if (!card_.no_attention.empty() || !capable(80)) return;
    std::vector<std::array<PlannedTask, 2>> pairs;
    for (AttentionShape shape : shapes) {
      if (!fits(shape)) continue;
      const auto planned = [&](Direction direction) {
        shape.direction = direction;
        const Seconds one =
            attention_time(shape, AttentionKernel::cudnn, gpu_, ElementwiseTraffic{});
        return PlannedTask{
            AttentionTask{shape}, "attention bf16", {}, kCompilation + burst_time(one)};
      };
      pairs.push_back({planned(Direction::forward), planned(Direction::backward)});
    }
    for (const auto& pair : shuffled(std::move(pairs))) {
      tasks_.insert(tasks_.end(), pair.begin(), pair.end());
    }
  }

  void products(std::span<const ProductShape> shapes, Precision precision, Load load) {
    if (!has(precision)) return;
    const bool sustained = load == Load::sustained;
    std::vector<PlannedTask> group;
    for (const ProductShape& p : shapes) {
      if (!fits(p, precision)) continue;
      const Seconds one = gemm_time(p.shape, precision, gpu_, load);
      group.push_back(
          {ProductTask{.shape = p.shape, .role = p.role, .precision = precision, .load = load},
           fmt::format("gemm {}{}", name_of(precision), sustained ? " sustained" : ""),
           sustained ? Pace{kSettling, kSustainedTimed} : Pace{},
           sustained ? kPreparation + kSettling + kSustainedTimed : burst_time(one)});
    }
    group = shuffled(std::move(group));
    if (sustained && !group.empty()) {
      group.front().pace.warm = kHeating;
      group.front().estimate += kHeating;
    }
    append(group);
  }

  /// Whether preset, card and library have it.
  [[nodiscard]] bool has(Precision precision) const {
    const bool scaled = precision == Precision::mxfp8 || precision == Precision::nvfp4;
    return gpu_.peak(precision) > FlopsPerSecond{} && capable(least_capability(precision)) &&
           (!scaled || card_.block_scaling);
  }
  std::vector<PlannedTask> take() { return std::move(tasks_); }

 private:
  /// Ten times the compute capability: `needed` or more.
  [[nodiscard]] bool capable(int needed) const { return 10 * card_.major + card_.minor >= needed; }
  static int least_capability(Precision precision) {
    switch (precision) {
      case Precision::fp16:
        return 70;
      case Precision::bf16:
      case Precision::tf32:
        return 80;
      case Precision::fp8:
        return 89;
      case Precision::mxfp8:
      case Precision::nvfp4:
        return 100;
    }
    return 0;
  }
  static Seconds burst_time(Seconds one) {
    return kPreparation + burst_repeats(one, 1).together(one);
  }

  [[nodiscard]] bool fits(const ProductShape& p, Precision precision) const {
    const auto [m, n, k, count, repeats] = p.shape;
    if (is_quantised(precision)) {
      const double step = precision == Precision::fp8 ? kFp8Side : kBlockSide;
      const auto whole = [&](double side) { return std::fmod(side, step) == 0; };
      if (!p.quantised || !whole(m) || !whole(n) || !whole(k)) return false;
    }
    return Bytes{info(precision).bytes_per_element * count * (m * k + k * n)} <= card_.inputs &&
           Bytes{(precision == Precision::tf32 ? 4 : 2) * count * m * n} <= card_.outputs;
  }
  /// The backward pass has all tensors at once: four 16-bit ones of each kind, and a fourth of
  /// single precision.
  [[nodiscard]] bool fits(const AttentionShape& s) const {
    const double queries = s.sequences * s.tokens * s.heads * s.head_dim;
    return Bytes{2 * 4 * queries} <= card_.inputs &&
           Bytes{(2 * 4 + 4 + 1) * queries} <= card_.outputs;
  }

  /// The same order on every machine and in every run.
  template <class Planned>
  static std::vector<Planned> shuffled(std::vector<Planned> group) {
    std::vector<std::pair<std::uint32_t, std::size_t>> order;
    order.reserve(group.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      order.emplace_back(philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, {0, 0})[0], i);
    }
    std::ranges::sort(order);
    std::vector<Planned> out;
    out.reserve(order.size());
    for (const auto& [key, i] : order) out.push_back(std::move(group[i]));
    return out;
  }
  void append(const std::vector<PlannedTask>& group) {
    tasks_.insert(tasks_.end(), group.begin(), group.end());
  }

  const GpuSpec& gpu_;
  const CardFacts& card_;
  std::vector<PlannedTask> tasks_;
};

std::vector<ProductShape> joined(std::vector<ProductShape> some,
                                 const std::vector<ProductShape>& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

}  // namespace

std::vector<PlannedTask> plan_tasks(const GpuSpec& gpu, const CardFacts& card,
                                    std::span<const TransformerShape> models,
                                    std::span<const std::string> only) {
  const auto wanted = [&](std::string_view subject) {
    return only.empty() || std::ranges::find(only, subject) != only.end();
  };
  Planner plan(gpu, card);
  if (wanted("launch")) plan.launches();
  if (wanted("copies")) plan.copies();
  if (wanted("memory")) plan.memory();
  const auto attention = [&] {
    if (!wanted("attention")) return;
    std::vector<AttentionShape> shapes = grid_attention();
    for (const AttentionShape& s : transformer_attention(models, shapes, kAttentionThinning)) {
      shapes.push_back(s);
    }
    plan.attention(shapes);
  };
  if (!wanted("gemm")) {
    attention();
  } else {
    const std::vector<ProductShape> grid = grid_products();
    const std::vector<ProductShape> layers = transformer_products(models, kThinning);
    const std::vector<ProductShape> experts = expert_products(models, kExpertThinning);
    const Precision wide = plan.has(Precision::bf16) ? Precision::bf16 : Precision::fp16;
    plan.products(grid, wide, Load::burst);
    plan.products(grid, Precision::fp8, Load::burst);
    attention();
    plan.products(joined(layers, experts), wide, Load::sustained);
    plan.products(layers, Precision::fp8, Load::sustained);
    const std::vector<ProductShape> between = away_from(grid, layers, kThinning);
    plan.products(joined(between, experts), wide, Load::burst);
    plan.products(between, Precision::fp8, Load::burst);
    for (const Precision other :
         {Precision::nvfp4, Precision::mxfp8, Precision::tf32, Precision::fp16}) {
      if (other != wide) plan.products(sparse_grid_products(), other, Load::burst);
    }
  }
  return plan.take();
}

}  // namespace lockstep
