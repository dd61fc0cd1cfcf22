#include "tests/fake-driver/kernels.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fake-driver/fake_card.hpp"
#include "tests/fake-driver/times.hpp"
#include "tools/calibrate/cuda/kernels.hpp"
#include "tools/calibrate/cudnn/cuda/attention_rows.hpp"
#include "tools/calibrate/memory_kernels.hpp"
#include "tools/calibrate/nccl/pattern.hpp"

namespace lockstep::fake {
namespace {

std::map<const void*, std::string>& kernel_names() {
  static std::map<const void*, std::string> names;
  return names;
}

template <class Value>
Value argument(const KernelCall& call, std::size_t nth) {
  return *static_cast<Value*>(call.args[nth]);
}

std::uint16_t to_bf16(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

std::vector<float> row_at(const std::uint16_t* begin, std::size_t row) {
  std::vector<float> out;
  for (std::size_t i = 0; i < kRowElements; ++i) {
    out.push_back(from_bf16(begin[row * kRowElements + i]));
  }
  return out;
}

/// The rows that are checked, as the kernel of that kind has to leave them.
void write_rows(MemoryKernelKind kind, std::size_t rows, const std::uint16_t* first,
                const std::uint16_t* second, std::uint16_t* result, bool wrong) {
  const bool gained = kind == MemoryKernelKind::rms_norm;
  for (const std::size_t row : std::set<std::size_t>{0, rows / 2, rows - 1}) {
    const std::vector<double> due =
        reference_row(kind, row_at(first, row), row_at(second, gained ? 0 : row));
    for (std::size_t i = 0; i < due.size(); ++i) {
      result[row * kRowElements + i] = to_bf16(wrong ? due[i] + 1 : due[i]);
    }
  }
}

/// Numbers of a kind in the beginning, for what is computed from them to be something.
void fill_some(const KernelCall& call, bool) {
  auto* const out = argument<std::uint16_t*>(call, 0);
  const std::size_t some = std::min<std::size_t>(argument<std::size_t>(call, 1), 4 * kRowElements);
  for (std::size_t i = 0; i < some; ++i) {
    out[i] = to_bf16(0.25 * static_cast<double>(i % 13) - 1.5);
  }
}
void fill_nothing(const KernelCall&, bool) {}

template <MemoryKernelKind kKind>
void run_memory_kernel(const KernelCall& call, bool wrong) {
  const auto* const first = argument<const std::uint16_t*>(call, 0);
  constexpr bool kTwo = kKind == MemoryKernelKind::rms_norm || kKind == MemoryKernelKind::silu_gate;
  write_rows(kKind, call.blocks, first, kTwo ? argument<const std::uint16_t*>(call, 1) : first,
             argument<std::uint16_t*>(call, kTwo ? 2 : 1), wrong);
}
/// Blocks of 256 threads with four elements each.
std::size_t adam_rows(const KernelCall& call) { return call.blocks * 1024 / kRowElements; }
void run_adam(const KernelCall& call, bool wrong) {
  const auto* const gradient = argument<const std::uint16_t*>(call, 3);
  write_rows(MemoryKernelKind::adam, adam_rows(call), gradient, gradient,
             argument<std::uint16_t*>(call, 4), wrong);
}

template <MemoryKernelKind kKind>
double memory_seconds(const KernelCall& call) {
  const std::size_t rows = kKind == MemoryKernelKind::adam ? adam_rows(call) : call.blocks;
  return kernel_seconds(0, 1, info(kKind).traffic(static_cast<double>(rows * kRowElements)));
}
double short_seconds(const KernelCall&) { return kKernelSeconds; }
double spin_seconds(const KernelCall& call) {
  return kKernelSeconds + static_cast<double>(argument<std::int64_t>(call, 0)) / kClockHz;
}
double fill_seconds(const KernelCall& call) {
  return kernel_seconds(0, 1, 2.0 * static_cast<double>(argument<std::size_t>(call, 1)));
}

void check_product(const KernelCall& call, bool wrong) {
  auto* const out = argument<CheckedElement*>(call, 1);
  for (std::size_t i = 0; i < call.blocks; ++i) out[i] = {1.5, wrong ? 1e6 : 1.5};
}

/// Attention's tensors are all zero here, and so are its results.
template <int kRows, int kMore>
void row_of_attention(const KernelCall& call, bool wrong) {
  const auto width = static_cast<std::size_t>(argument<AttentionRows>(call, 0).head_dim);
  auto* const out = argument<double*>(call, 2);
  std::fill_n(out, kRows * width + kMore, wrong ? 1.0 : 0.0);
}

/// What ranks send and hold is there where it is little: fill_pattern() and count_wrong() of
/// tools/calibrate/nccl/pattern.cu.
constexpr std::size_t kFilledBytes = std::size_t{16} << 20, kComparedBytes = std::size_t{2} << 20;
int place_part(std::int64_t place) {
  const auto mixed = static_cast<std::uint64_t>(place) * 0x9E3779B97F4A7C15ULL;
  return static_cast<int>((mixed >> 32) % kPatternParts);
}
float number(float x) { return x; }
float number(std::uint16_t x) { return from_bf16(x); }
void put(double x, float& out) { out = static_cast<float>(x); }
void put(double x, std::uint16_t& out) { out = to_bf16(x); }

template <class Element>
void write_pattern(const KernelCall& call, bool) {
  auto* const out = argument<Element*>(call, 0);
  const auto count = argument<std::int64_t>(call, 1);
  note_pattern();
  if (static_cast<std::size_t>(count) * sizeof(Element) > kFilledBytes) return;
  for (std::int64_t i = 0; i < count; ++i) put(argument<int>(call, 2) + place_part(i), out[i]);
}
template <class Element>
void compare_pattern(const KernelCall& call, bool wrong) {
  const auto* const out = argument<const Element*>(call, 0);
  const auto expected = argument<ExpectedPattern>(call, 1);
  const auto slack = argument<double>(call, 2);
  auto& count = *argument<unsigned long long*>(call, 3);
  if (wrong) ++count;
  if (static_cast<std::size_t>(expected.count) * sizeof(Element) > kComparedBytes) return;
  for (std::int64_t i = 0; i < expected.count; ++i) {
    const bool blocks = expected.block > 0;
    const std::int64_t place = expected.first + (blocks ? i % expected.block : i);
    const double of_ranks =
        blocks ? static_cast<int>(i / expected.block % kPatternParts) : expected.offset;
    const double due = of_ranks + (blocks ? 1 : expected.scale) * place_part(place);
    if (!(std::abs(number(out[i]) - due) <= slack * due)) ++count;
  }
}

struct FakeKernel {
  std::string_view name, with;  ///< parts of the name that the compiler gives it
  double (*seconds)(const KernelCall&);
  void (*effect)(const KernelCall&, bool wrong);
};
using enum MemoryKernelKind;
constexpr std::array kKernels{
    FakeKernel{"fill_kernel", "bfloat16", fill_seconds, fill_some},
    FakeKernel{"fill_kernel", "", fill_seconds, fill_nothing},
    FakeKernel{"fill_pairs_kernel", "", fill_seconds, fill_nothing},
    FakeKernel{"copy_kernel", "", memory_seconds<copy>, run_memory_kernel<copy>},
    FakeKernel{"rms_norm_kernel", "", memory_seconds<rms_norm>, run_memory_kernel<rms_norm>},
    FakeKernel{"silu_gate_kernel", "", memory_seconds<silu_gate>, run_memory_kernel<silu_gate>},
    FakeKernel{"softmax_kernel", "", memory_seconds<softmax>, run_memory_kernel<softmax>},
    FakeKernel{"adam_kernel", "", memory_seconds<adam>, run_adam},
    FakeKernel{"empty_kernel", "", short_seconds, fill_nothing},
    FakeKernel{"spin_kernel", "", spin_seconds, fill_nothing},
    FakeKernel{"product_check_kernel", "", short_seconds, check_product},
    FakeKernel{"output_row_kernel", "", short_seconds, row_of_attention<1, 1>},
    FakeKernel{"query_gradient_row_kernel", "", short_seconds, row_of_attention<1, 0>},
    FakeKernel{"key_gradient_row_kernel", "", short_seconds, row_of_attention<2, 0>},
    FakeKernel{"fill_pattern_kernel", "bfloat16", short_seconds, write_pattern<std::uint16_t>},
    FakeKernel{"fill_pattern_kernel", "", short_seconds, write_pattern<float>},
    FakeKernel{"count_wrong_kernel", "bfloat16", short_seconds, compare_pattern<std::uint16_t>},
    FakeKernel{"count_wrong_kernel", "", short_seconds, compare_pattern<float>},
};

const FakeKernel& kernel_of(const KernelCall& call) {
  static std::map<const void*, const FakeKernel*> known;
  const FakeKernel*& found = known[call.function];
  if (found != nullptr) return *found;
  const std::string& name = kernel_names().at(call.function);
  found = std::ranges::find_if(kKernels, [&](const FakeKernel& k) {
    return name.find(k.name) != std::string::npos && name.find(k.with) != std::string::npos;
  });
  // A new kernel wants a row above.
  if (found == kKernels.end()) std::abort();
  return *found;
}

}  // namespace

void register_kernel(const void* function, const char* name) { kernel_names()[function] = name; }
double seconds_of(const KernelCall& call) { return kernel_of(call).seconds(call); }
void take_effect(const KernelCall& call) {
  const FakeKernel& kernel = kernel_of(call);
  kernel.effect(call, is_wrong(std::string(kernel.name)));
}

}  // namespace lockstep::fake
