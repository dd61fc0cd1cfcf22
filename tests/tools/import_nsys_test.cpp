// lockstep import nsys. The tables are made up, in the form that `nsys stats` writes.
#include "sim/measured/import_nsys.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/core/random.hpp"
#include "sim/measured/nsys_range.hpp"
#include "sim/measured/nsys_report.hpp"
#include "sim/scenario/read_profile.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::presets;

/// Made-up tables, of what `nsys stats` calls so.
std::string nsys_sample(std::string_view report) {
  return read_text_file(
      fmt::format("{}/tests/reference/formats/nsys-{}.csv", LOCKSTEP_SOURCE_DIR, report));
}

std::string nsys_error(const test::Ran& ran, std::string_view file) {
  const std::size_t at = ran.err.find(file);
  return at == std::string::npos ? ran.err : ran.err.substr(at);
}

test::Ran import_of(const test::TemporaryFolder& folder, std::string_view text,
                    std::vector<std::string> more = {}) {
  const std::string file = folder.write("a.csv", text);
  std::vector<std::string> args{"import", "nsys", file, "--gpu", "h100_sxm5_80gb"};
  args.insert(args.end(), more.begin(), more.end());
  return test::lockstep_with(args);
}

Profile nsys_profile(const test::Ran& ran) {
  REQUIRE(ran.exit == Exit::ok);
  return read_profile("a.json", ran.out, presets());
}

}  // namespace

TEST_CASE("import nsys: ranges of operators give products and attention their shapes") {
  const test::TemporaryFolder folder;
  const test::Ran ran = import_of(folder, nsys_sample("nvtx_kern_sum"));
  const Profile profile = nsys_profile(ran);

  REQUIRE(profile.gemm.size() == 2);
  const GemmPoint& product = profile.gemm[0];
  CHECK(product.shape.m == 4096);
  CHECK(product.shape.n == 2048);
  CHECK(product.shape.k == 1024);
  CHECK(product.precision == Precision::bf16);
  CHECK(product.load == Load::sustained);
  // 100 (in two ranges, one around the other, which counts once), 110 + 10, 130.
  CHECK(product.time.base_units() == test::near(120e-6));
  CHECK(product.spread == test::near(15.0 / 120));
  const GemmPoint& batched = profile.gemm[1];
  CHECK(batched.shape.count == 8);
  CHECK(batched.shape.k == 128);
  CHECK(batched.precision == Precision::fp16);
  CHECK(batched.time.base_units() == test::near(9e-6));

  REQUIRE(profile.attention.size() == 1);
  CHECK(profile.attention[0].shape.tokens == 2048);
  CHECK(profile.attention[0].shape.kv_heads == 8);
  CHECK(profile.attention[0].shape.causal);
  CHECK(profile.attention[0].shape.direction == Direction::forward);
  CHECK(profile.attention[0].time.base_units() == test::near(300e-6));

  for (const char* said :
       {"1 row of", "a number format without a law", "record_shapes=True records them",
        "say it by --precision", "no product, or are around one",
        "kernels that a profile has no points of", "not in a range of an operator",
        "not of the columns of their table"}) {
    CAPTURE(said);
    CHECK(ran.err.find(said) != std::string::npos);
  }
}

TEST_CASE("import nsys: --precision says the format where the kernel's name does not") {
  const test::TemporaryFolder folder;
  const Profile profile =
      nsys_profile(import_of(folder, nsys_sample("nvtx_kern_sum"), {"--precision", "fp8"}));
  REQUIRE(profile.gemm.size() == 3);
  CHECK(profile.gemm[1].shape.m == 512);
  CHECK(profile.gemm[1].precision == Precision::fp8);
  CHECK(profile.gemm[0].precision == Precision::bf16);
  const test::Ran wrong = import_of(folder, nsys_sample("nvtx_kern_sum"), {"--precision", "bf61"});
  CHECK(wrong.exit == Exit::bad_input);
  CHECK(wrong.err.find("--precision: found \"bf61\"; allowed: bf16, fp16, fp8") !=
        std::string::npos);
}

TEST_CASE("import nsys: kernels named with their innermost range, in sums and traces") {
  const test::TemporaryFolder folder;
  const std::string gb_sum = nsys_sample("cuda_gpu_kern_gb_sum");
  const Profile sum = nsys_profile(import_of(folder, gb_sum));
  REQUIRE(sum.gemm.size() == 1);
  CHECK(sum.gemm[0].precision == Precision::fp16);
  CHECK(sum.gemm[0].time.base_units() == test::near(120e-6));

  const std::string gpu_trace = nsys_sample("cuda_gpu_trace");
  const test::Ran ran = import_of(folder, gpu_trace);
  const Profile trace = nsys_profile(ran);
  REQUIRE(trace.gemm.size() == 1);
  CHECK(trace.gemm[0].precision == Precision::bf16);
  CHECK(trace.gemm[0].time.base_units() == test::near(60e-6));  // mean of a range's calls
  CHECK(ran.err.find("1 row of") != std::string::npos);
}

TEST_CASE("import nsys: ranges on the GPU's time line count where they hold one kernel") {
  const test::TemporaryFolder folder;
  const std::string projected = nsys_sample("nvtx_gpu_proj_sum");
  const Profile profile = nsys_profile(import_of(folder, projected, {"--precision", "bf16"}));
  REQUIRE(profile.gemm.size() == 1);
  CHECK(profile.gemm[0].shape.m == 4096);
  const test::Ran unsaid = import_of(folder, projected);
  CHECK(unsaid.exit == Exit::bad_input);
  CHECK(unsaid.err.find("say it by --precision") != std::string::npos);
  CHECK(unsaid.err.find("the gaps between them") != std::string::npos);
}

TEST_CASE("import nsys: JSON says the same as CSV") {
  const test::TemporaryFolder folder;
  constexpr std::string_view kJson = R"csv(Processing [step.sqlite]...
[
 {"NVTX Range": ":aten::mm, seq = 5, sizes = [[4096, 1024], [1024, 2048]]",
  "Style": "PushPop", "PID": 7,
  "TID": 7, "NVTX Inst": 2, "Kern Inst": 2, "Total Time (ns)": 240000, "Avg (ns)": "120000.0",
  "Kernel Name": "nvjet_tst_128x256"}
])csv";
  const Profile profile = nsys_profile(import_of(folder, kJson));
  REQUIRE(profile.gemm.size() == 1);
  CHECK(profile.gemm[0].time.base_units() == test::near(120e-6));
}

TEST_CASE("import nsys: a summary without ranges says in a line why nothing is left, exit 2") {
  const test::TemporaryFolder folder;
  const test::Ran ran = import_of(folder, R"csv([5/8] Executing 'cuda_gpu_kern_sum' stats report
Time(%),Total Time (ns),Instances,Average (ns),Minimum (ns),Maximum (ns),StdDev (ns),Name
70.0,7000000,20,350000.0,340000,360000,100.0,ampere_bf16_s16816gemm_bf16_128x128_ldg8_tn
30.0,3000000,10,300000.0,290000,310000,100.0,"void at::native::vectorized_elementwise_kernel<4, f>"
)csv");
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.out.empty());
  CHECK(nsys_error(ran, "a.csv") ==
        "a.csv left out: no shapes: not in a range of an operator, as PyTorch's "
        "emit_nvtx(record_shapes=True) makes\n" +
            ran.err.substr(ran.err.find('\n') + 1));
  CHECK(ran.err.starts_with("2 rows of "));
  CHECK(nsys_error(ran, "a.csv: found") ==
        "a.csv: found no kernel with shapes that a profile holds; allowed: such kernels, recorded "
        "with record_shapes=True\n");
}

TEST_CASE("import nsys: what is no table of kernels is one line") {
  const test::TemporaryFolder folder;
  const auto error = [&](std::string_view text) {
    const test::Ran ran = import_of(folder, text);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    return nsys_error(ran, "a.csv");
  };
  const std::string allowed =
      "; allowed: what nsys stats --format csv or json writes of nvtx_kern_sum, "
      "cuda_gpu_kern_sum, cuda_gpu_trace or nvtx_gpu_proj_sum\n";
  CHECK(error("") == "a.csv: found no table of kernels" + allowed);
  CHECK(error("Time (%),Total Time (ns),Num Calls,Name\n1,2,3,cudaFree\n") ==
        "a.csv: found no table of kernels" + allowed);
  CHECK(error("[{\"a\": 1}]") == "a.csv: found no table of kernels" + allowed);
  CHECK(error("Total Time (days),Instances,Name\n1,2,x\n") ==
        "a.csv: found a column \"Total Time (days)\"; allowed: ns, us, ms or s in brackets\n");
  CHECK(error("[{\"a\": 1}, 7]").starts_with("a.csv#/1: found 7"));
}

TEST_CASE("parse_nsys: cut and changed tables give rows or one line, never more") {
  // Seed 1: cuts at every place, then single bytes replaced.
  const auto parsed = [](std::string_view text) {
    try {
      for (const NsysRow& row : parse_nsys("t.csv", text).rows) {
        CHECK(row.total_us >= 0);
        CHECK(row.instances >= 1);
        (void)parse_nsys_range(row.range);
        (void)causal_of(row.kernel);
      }
    } catch (const InputError& error) {
      CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
    }
  };
  const std::string whole = nsys_sample("nvtx_kern_sum");
  for (std::size_t end = 0; end < whole.size(); end += 7) {
    parsed(std::string_view(whole).substr(0, end));
  }
  constexpr std::string_view kBytes = "\"[],(){}\n:/0-.e\xff";
  RandomStream random(StreamName{.seed = 1});
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole.substr(200, 1500);
    text[random.bits() % text.size()] = kBytes[random.bits() % kBytes.size()];
    parsed(text);
  }
}

TEST_CASE("operand_type_of: names of the libraries") {
  CHECK(operand_type_of("nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_bias_TNT") ==
        "c10::Float8_e4m3fn");
  CHECK(operand_type_of("nvjet_tss_64x64") == "c10::BFloat16");
  CHECK(operand_type_of("ampere_fp16_s16816gemm_fp16_128x64") == "c10::Half");
  CHECK(operand_type_of("volta_h884gemm_256x128_ldg8_nn") == "c10::Half");
  CHECK(operand_type_of("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n") == "tf32");
  CHECK(operand_type_of("cutlass_80_tensorop_s1688gemm_256x128_16x3_nn_align4") == "tf32");
  CHECK(operand_type_of("cutlass_75_tensorop_s1688gemm_f16_256x128_nn_align8") == "c10::Half");
  CHECK(operand_type_of("ampere_sgemm_128x64_tn") == "float");
  CHECK(operand_type_of("cutlass_80_tensorop_bf16_s16816gemm_relu") == "c10::BFloat16");
  CHECK(operand_type_of("someones_kernel").empty());
}

TEST_CASE("causal_of: the third template argument of FlashAttention's kernels") {
  CHECK(causal_of("flash_fwd_kernel<T<1, U<2>>, 0, 1, 0>(P)") == true);
  CHECK(causal_of("flash_fwd_kernel<T<(int)1>, (bool)1, (bool)0>(P)") == false);
  CHECK(causal_of("void f::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<T, false, true>(P)") ==
        true);
  CHECK_FALSE(causal_of("flash_fwd_kernel<T, 0").has_value());
  CHECK_FALSE(causal_of("flash_fwd_splitkv_kernel<T, 1, 0, 0>").has_value());
  CHECK_FALSE(causal_of("cudnn_generated_fort_native_sdpa_sm90_flash_fprop").has_value());
}

TEST_CASE("parse_nsys_range: only what an operator's range says") {
  const auto range = parse_nsys_range(":aten::mm, seq = 1, sizes = [[4, 2], [2, 3]]/kernel<a, b>");
  REQUIRE(range);
  CHECK(range->op.name == "aten::mm");
  REQUIRE(range->op.dims.size() == 2);
  CHECK(range->op.dims[1] == std::vector<double>{2, 3});
  CHECK(range->kernel == "kernel<a, b>");
  CHECK(parse_nsys_range("aten::mm")->op.dims.empty());
  CHECK(parse_nsys_range("aten::mm, sizes = [[4, 2], [2")->op.dims.empty());
  CHECK_FALSE(parse_nsys_range("void caffe::aten::x"));
  CHECK_FALSE(parse_nsys_range(":forward"));
}

}  // namespace lockstep
