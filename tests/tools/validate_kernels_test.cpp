#include "sim/measured/validate_kernels.hpp"

#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/kernels/attention.hpp"
#include "models/kernels/gemm.hpp"
#include "sim/measured/fit_kernels.hpp"
#include "sim/measured/kernel_catalogue.hpp"
#include "sim/measured/kernel_rows.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/summary_of.hpp"

namespace lockstep {
namespace {

std::string reference_path(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR) + "/tests/reference/" + name;
}

using test::group;

}  // namespace

TEST_CASE("GpuNames: names as benchmarks print them") {
  const PresetStore presets;
  const GpuNames names(presets);
  CHECK(names.preset_of("A100-80GB SXM") == "a100_sxm4_80gb");
  CHECK(names.preset_of("A100 PCIe") == "a100_pcie_80gb");
  CHECK(names.preset_of("H100") == "h100_sxm5_80gb");
  CHECK(names.preset_of("NVIDIA GB200") == "gb200_186gb");
  CHECK(names.preset_of("GH200-120GB") == "gh200_96gb");
  CHECK(names.preset_of("L40S") == "l40s_48gb");
  CHECK(names.preset_of("H20") == "h20_96gb");
  CHECK(names.preset_of("H200 SXM") == "h200_sxm_141gb");
  CHECK(names.preset_of("NVIDIA GeForce RTX 4090") == "rtx4090_24gb");
  CHECK(names.preset_of("MI355X") == "mi355x");
  CHECK(names.preset_of("Gaudi3").empty());
}

TEST_CASE("GpuNames: a preset of one's own is found by the names that it says") {
  const test::TemporaryFolder folder;
  const PresetStore shipped;
  std::string text = read_text_file(LOCKSTEP_SOURCE_DIR "/models/presets/gpus/h200_sxm_141gb.json");
  const std::string name = "\"H200\"";
  REQUIRE(text.find(name) != std::string::npos);
  text.replace(text.find(name), name.size(), "\"H200 NVL\", \"H210\"");
  std::filesystem::create_directories(folder.path() + "/gpus");
  folder.write("gpus/h210.json", text);
  const PresetStore presets(std::vector<std::string>{folder.path()});
  const GpuNames names(presets);
  CHECK(names.preset_of("NVIDIA H210") == "h210");
  CHECK(names.preset_of("H200 NVL 141GB") == "h210");
  CHECK(names.preset_of("H200 SXM") == "h200_sxm_141gb");
  CHECK(GpuNames(shipped).preset_of("NVIDIA H210").empty());
}

TEST_CASE("attention_implementation: the longest name that fits wins") {
  CHECK(attention_implementation("FlashAttention-2")->kernel == AttentionKernel::flash2);
  CHECK(attention_implementation("FlashAttention-2 (GPT-NeoX profile)")->kernel ==
        AttentionKernel::flash1);
  CHECK(attention_implementation("cuDNN 9")->kernel == AttentionKernel::cudnn);
  CHECK(attention_implementation("xFormers") == nullptr);
}

TEST_CASE("validate_gemm: predicts what gemm_time() says and counts what it leaves out") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("gemm.json", R"({"rows": [
    {"gpu": "H100-80GB SXM", "dtype": "bfloat16", "m": 4096, "n": 8192, "k": 2048, "time_us": 200,
     "bwd_time_us": 400, "src": "lab"},
    {"gpu": "Gaudi3", "dtype": "bfloat16", "m": 64, "n": 64, "k": 64, "time_us": 5},
    {"gpu": "A100", "dtype": "fp8", "m": 64, "n": 64, "k": 64, "time_us": 5},
    {"gpu": "H100", "dtype": "bf16", "m": null, "n": 64, "k": 64, "time_us": 5}]})");
  const PresetStore presets;
  const PointTable table = validate_gemm(file, presets);
  REQUIRE(table.points.size() == 2);
  const GpuSpec& gpu = presets.gpu("h100_sxm5_80gb");
  const auto us = [&](const GemmShape& shape) {
    return gemm_time(shape, Precision::bf16, gpu).base_units() * 1e6;
  };
  CHECK(table.points[0].predicted == doctest::Approx(us({4096, 8192, 2048})));
  CHECK(table.points[0].error == doctest::Approx(table.points[0].predicted / 200 - 1));
  CHECK(table.points[1].predicted ==
        doctest::Approx(us({4096, 2048, 8192}) + us({8192, 2048, 4096})));
  CHECK(identity_of(table.points[1], "pass") == "backward");
  CHECK(group(table, "all").n == 2);
  CHECK(group(table, "m, n, k >= 1024").n == 2);
  const std::vector<std::string> skipped{"1 point: fp8 on A100", "1 point: no preset of Gaudi3",
                                         "1 point: not a single product"};
  CHECK(table.skipped == skipped);
}

TEST_CASE("validate_attention: a row without batch and heads is the FlashAttention benchmark") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("attention.json", R"({"rows": [
    {"gpu": "H100-80GB SXM5", "impl": "FlashAttention-3", "dir": "fwd", "causal": true,
     "seqlen": 2048, "head_dim": 128, "dtype": "fp16/bf16", "tflops": 521},
    {"gpu": "NVIDIA GB200", "impl": "cudnn", "dir": "fwd", "causal": true, "seqlen": 2048,
     "head_dim": 128, "dtype": "fp8", "tflops": 521}]})");
  const PresetStore presets;
  const PointTable table = validate_attention(file, presets);
  REQUIRE(table.points.size() == 1);
  const AttentionShape shape{
      .sequences = 8, .tokens = 2048, .heads = 16, .kv_heads = 16, .head_dim = 128};
  CHECK(table.points[0].measured ==
        doctest::Approx(attention_flops(shape).base_units() / 521e12 * 1e6));
  CHECK(table.points[0].predicted ==
        doctest::Approx(attention_time(shape, AttentionKernel::flash3,
                                       presets.gpu("h100_sxm5_80gb"), ElementwiseTraffic{})
                            .base_units() *
                        1e6));
  CHECK(table.skipped == std::vector<std::string>{"1 point: attention in 8 bit is not modelled"});
}

TEST_CASE("validate kernels: a file of another format is the person's mistake, in one line") {
  const test::TemporaryFolder folder;
  const PresetStore presets;
  CHECK_THROWS_AS(validate_gemm(folder.path() + "/missing.json", presets), InputError);
  CHECK_THROWS_AS(validate_gemm(folder.write("a.json", "[1, 2]"), presets), InputError);
  CHECK_THROWS_AS(validate_attention(folder.write("b.json", "{\"rows\": 7}"), presets), InputError);
  CHECK_THROWS_AS(validate_memory_kernels(folder.write("c.json", "{\"rows\": [{}]}"), presets),
                  InputError);
  CHECK_THROWS_AS(validate_gemm(folder.write("d.json",
                                             "{\"rows\": [{\"gpu\": \"H100\", "
                                             "\"dtype\": \"bf16\", \"m\": -1}]}"),
                                presets),
                  InputError);
}

namespace {

struct Accuracy {
  std::string_view group;
  double median, p90;
};
// Bars that the laws have to stay under: what tile laws fitted to each GPU and format apart,
// without the cost of quantising or of cache copies, reached on 35,700 products a GPU and 5,800
// attention calls.
constexpr std::array kGemmAccuracy{
    Accuracy{"all", 0.045, 0.15},
    Accuracy{"m, n, k >= 1024", 0.045, 0.13},
    Accuracy{"A100-80GB SXM bfloat16", 0.069, 0.22},
    Accuracy{"H100-80GB SXM bfloat16", 0.046, 0.15},
    Accuracy{"H200 SXM bfloat16", 0.053, 0.15},
    Accuracy{"B200 SXM bfloat16", 0.069, 0.20},
    Accuracy{"GB200 bfloat16", 0.069, 0.20},
    Accuracy{"H100-80GB SXM fp8", 0.054, 0.15},
    Accuracy{"B200 SXM fp8", 0.07, 0.15},
    Accuracy{"GB200 fp8", 0.072, 0.15},
    Accuracy{"H100-80GB SXM bfloat16, m, n, k >= 1024", 0.039, 0.107},
};
constexpr std::array kAttentionAccuracy{
    Accuracy{"all", 0.05, 0.17},
    Accuracy{"200 us and longer", 0.045, 0.14},
    Accuracy{"A100-80GB SXM vLLM FlashAttention-2, 200 us and longer", 0.057, 0.28},
    Accuracy{"H100-80GB SXM vLLM FlashAttention-3, 200 us and longer", 0.075, 0.22},
    Accuracy{"H200 SXM TRT-LLM FMHA, 200 us and longer", 0.042, 0.11},
    Accuracy{"B200 SXM TRT-LLM FMHA, 200 us and longer", 0.051, 0.14},
};
constexpr std::array kMemoryAccuracy{
    Accuracy{"all", 0.08, 0.30},
    Accuracy{"20 us and longer", 0.07, 0.25},
};

template <std::size_t N>
void check_accuracy(const PointTable& table, const std::array<Accuracy, N>& expected) {
  for (const Accuracy& row : expected) {
    CAPTURE(row.group);
    const PointSummary& summary = group(table, std::string(row.group));
    CHECK(summary.median_abs <= row.median);
    CHECK(summary.p90_abs <= row.p90);
  }
}

}  // namespace

TEST_CASE("kernel models: errors on the reference kernels") {
  const PresetStore presets;
  check_accuracy(validate_gemm(reference_path("gemm.json"), presets), kGemmAccuracy);
  check_accuracy(validate_attention(reference_path("attention.json"), presets), kAttentionAccuracy);
  check_accuracy(validate_memory_kernels(reference_path("memory_kernels.json"), presets),
                 kMemoryAccuracy);
}

TEST_CASE("fit_memory_kernels: finds the constants that made the times") {
  // 4 bytes an element at 0.96 of the copy rate's time, 3 us, 0.75 of 4.8 TB/s: the law itself.
  const auto row = [](double rows) {
    const double us = 3 + 4 * 0.96 * rows * 4096 / (0.75 * 4.8e12) * 1e6;
    return fmt::format(R"({{"gpu": "H200", "kernel": "rms_norm", "impl": "cudnn", "dir": "fwd",
                           "shape": [{}, 4096], "time_us": {}}})",
                       rows, us);
  };
  std::string text;
  for (int i = 0; i < 400; ++i) text += (i == 0 ? "" : ",") + row(64 * (1 + i));
  const test::TemporaryFolder folder;
  const PresetStore presets;
  const auto fits =
      fit_memory_kernels(folder.write("m.json", "{\"rows\": [" + text + "]}"), presets);
  REQUIRE(fits.size() == 1);
  CHECK(fits[0].gpu == "h200_sxm_141gb");
  CHECK(fits[0].after.median_abs < 0.005);
  CHECK(fits[0].held_out.median_abs < 0.005);
  CHECK(fits[0].after.median_abs < fits[0].before.median_abs);
  CHECK(kernel_fits_text(fits).find("\"efficiency\": 0.75") != std::string::npos);
}

}  // namespace lockstep
