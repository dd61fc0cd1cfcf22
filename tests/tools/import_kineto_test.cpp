// lockstep import kineto. The traces are made up, in the form that PyTorch's profiler writes.
#include "sim/measured/import_kineto.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/kernel_kinds.hpp"
#include "sim/measured/kineto_points.hpp"
#include "sim/measured/kineto_trace.hpp"
#include "sim/scenario/read_profile.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::presets;
using Json = nlohmann::ordered_json;

Json cpu_operator(int id, const char* name, const Json& dims, const Json& types,
                  const Json& values = Json::array()) {
  return {{"ph", "X"},
          {"cat", "cpu_op"},
          {"name", name},
          {"pid", 1},
          {"tid", 1},
          {"ts", 100.5},
          {"dur", 30},
          {"args",
           {{"External id", id},
            {"Input Dims", dims},
            {"Input type", types},
            {"Concrete Inputs", values}}}};
}

Json gpu_kernel(const char* name, double us, int id) {
  return {{"ph", "X"},
          {"cat", "kernel"},
          {"name", name},
          {"pid", 0},
          {"tid", 7},
          {"ts", 140.25},
          {"dur", us},
          {"args", {{"External id", id}, {"correlation", 1000 + id}, {"grid", {8, 1, 1}}}}};
}

Json nccl_kernel(const char* collective, double us, long in, long out, int size,
                 const char* ranks) {
  Json event = gpu_kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)", us, 0);
  event["args"].update({{"Collective name", collective},
                        {"dtype", "BFloat16"},
                        {"In msg nelems", in},
                        {"Out msg nelems", out},
                        {"In split size", "[]"},
                        {"Out split size", "[]"},
                        {"Group size", size},
                        {"Process Group Ranks", ranks}});
  return event;
}

const Json kBf16Pair{"c10::BFloat16", "c10::BFloat16"};

Json a_step() {
  Json events = Json::array();
  events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", 0}, {"args", {{"name", "x"}}}});
  // The same product three times; the first has two kernels.
  int id = 10;
  for (const double us : {100.0, 120.0, 130.0}) {
    events.push_back(cpu_operator(id, "aten::mm", {{4096, 1024}, {1024, 2048}}, kBf16Pair));
    events.push_back(gpu_kernel("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", us, id));
    ++id;
  }
  events.push_back(gpu_kernel("void cublasLt::splitKreduce_kernel<32, 16>(int)", 10, 10));
  events.push_back(cpu_operator(20, "aten::baddbmm", {{8, 64, 32}, {8, 64, 128}, {8, 128, 32}},
                                {"c10::Half", "c10::Half", "c10::Half"}));
  events.push_back(gpu_kernel("sm90_xmma_gemm_f16f16", 9, 20));
  events.push_back(cpu_operator(
      30, "aten::_flash_attention_forward",
      {{2, 2048, 32, 128}, {2, 2048, 8, 128}, {2, 2048, 8, 128}, {}, {}, {}, {}, {}, {}},
      {"c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "", "Scalar", "Scalar", "Scalar",
       "Scalar"},
      {"", "", "", "", "", "2048", "2048", "0.", "True"}));
  events.push_back(
      gpu_kernel("void pytorch_flash::flash_fwd_kernel<cutlass::bfloat16_t>", 300, 30));
  // Single precision, no shapes, and nothing that has points.
  events.push_back(cpu_operator(40, "aten::mm", {{64, 64}, {64, 64}}, {"float", "float"}));
  events.push_back(gpu_kernel("ampere_sgemm_128x64_tn", 7, 40));
  events.push_back(gpu_kernel("ampere_fp16_s16816gemm_fp16_128x64", 6, 999));
  events.push_back(gpu_kernel("void at::native::vectorized_elementwise_kernel<4>", 5, 41));
  events.push_back({{"ph", "X"}, {"cat", "gpu_memcpy"}, {"name", "Memcpy DtoD"}, {"dur", 3}});
  // The second waits less.
  events.push_back(nccl_kernel("allreduce", 90, 1 << 20, 1 << 20, 8, "[0, 1, 2, 3, 4, 5, 6, 7]"));
  events.push_back(nccl_kernel("allreduce", 60, 1 << 20, 1 << 20, 8, "[0, 1, 2, 3, 4, 5, 6, 7]"));
  events.push_back(nccl_kernel("_allgather_base", 800, 1 << 20, 1 << 24, 16,
                               "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]"));
  events.push_back(nccl_kernel("send", 40, 1 << 20, 1 << 20, 2, "[0, 8]"));
  return {{"schemaVersion", 1}, {"deviceProperties", {{{"id", 0}}}}, {"traceEvents", events}};
}

Profile profile_of(const std::string& file) {
  return read_profile(file, read_text_file(file), presets());
}

}  // namespace

TEST_CASE("kernel_kind: by name, attention before the products that it is made of") {
  CHECK(kernel_kind("nvjet_tst_128x256_64x4_2x1_v_bz_TNT") == KernelKind::product);
  CHECK(kernel_kind("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32") == KernelKind::product);
  CHECK(kernel_kind("void cutlass::device_kernel<flash::FlashAttnFwdSm90<x>>") ==
        KernelKind::attention);
  CHECK(kernel_kind("fmha_cutlassF_bf16_aligned_64x128_rf_sm80") == KernelKind::attention);
  CHECK(kernel_kind("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL") == KernelKind::collective);
  CHECK(kernel_kind("void at::native::reduce_kernel<512>") == KernelKind::memory);
  CHECK(kernel_kind("triton_poi_fused_add_mul_0") == KernelKind::memory);
  CHECK(kernel_kind("Memcpy HtoD (Pageable -> Device)") == KernelKind::copy);
  // AOTriton's attention on ROCm, convolutions and batch norms of cuDNN and MIOpen.
  CHECK(kernel_kind("attn_fwd") == KernelKind::attention);
  CHECK(kernel_kind("bwd_kernel_dk_dv") == KernelKind::attention);
  CHECK(kernel_kind("cudnn_infer_maxwell_scudnn_128x128_relu_medium_nn_v1") == KernelKind::product);
  CHECK(kernel_kind("void wgrad_alg0_engine<float, 128, 6, 8, 3, 3, 5, false, 512>") ==
        KernelKind::product);
  CHECK(kernel_kind("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 128, true, 1>") ==
        KernelKind::memory);
  CHECK(kernel_kind("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>") ==
        KernelKind::memory);
  CHECK(kernel_kind("my_kernel") == KernelKind::other);
}

TEST_CASE("import kineto: a kernel's name says whether 32-bit tensors are multiplied in TF32") {
  const test::TemporaryFolder folder;
  Json events = Json::array();
  int id = 1;
  for (const char* kernel : {"ampere_sgemm_128x64_tn", "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n"}) {
    events.push_back(
        cpu_operator(id, "aten::mm", {{4096, 1024}, {1024, 2048}}, {"float", "float"}));
    events.push_back(gpu_kernel(kernel, 100, id++));
  }
  const std::string trace = folder.write(
      "rank0.pt.trace.json", Json{{"schemaVersion", 1}, {"traceEvents", events}}.dump());
  const std::string out = folder.path() + "/step.profile.json";
  const auto imported_for = [&](const char* gpu) {
    return test::lockstep_with({"import", "kineto", trace, "--gpu", gpu, "-o", out}).exit;
  };
  CHECK(imported_for("a100_sxm4_80gb") == Exit::ok);
  const Profile profile = profile_of(out);
  REQUIRE(profile.gemm.size() == 1);
  CHECK(profile.gemm[0].precision == Precision::tf32);
  CHECK(profile.gemm[0].shape.n == 2048);
  CHECK(imported_for("v100_sxm2_32gb") != Exit::ok);  // it has none, so nothing is left
}

TEST_CASE("import kineto: products, attention and collectives with their shapes") {
  const test::TemporaryFolder folder;
  const std::string trace = folder.write("rank0.pt.trace.json", a_step().dump());
  const std::string out = folder.path() + "/step.profile.json";
  const test::Ran ran =
      test::lockstep_with({"import", "kineto", trace, "--node", "dgx_h100", "-o", out});
  CHECK(ran.exit == Exit::ok);
  const Profile profile = profile_of(out);

  REQUIRE(profile.gemm.size() == 2);
  const auto& batched = profile.gemm[profile.gemm[0].shape.count > 1 ? 0 : 1];
  const auto& product = profile.gemm[profile.gemm[0].shape.count > 1 ? 1 : 0];
  CHECK(product.shape.m == 4096);
  CHECK(product.shape.n == 2048);
  CHECK(product.shape.k == 1024);
  CHECK(product.precision == Precision::bf16);
  CHECK(product.load == Load::sustained);
  // The median of 110, which has two kernels, 120 and 130; quartiles 115 and 125.
  CHECK(product.time.base_units() == test::near(120e-6));
  CHECK(product.spread == test::near(10.0 / 120));
  CHECK(batched.shape.count == 8);
  CHECK(batched.shape.m == 64);
  CHECK(batched.shape.n == 32);
  CHECK(batched.shape.k == 128);
  CHECK(batched.precision == Precision::fp16);

  REQUIRE(profile.attention.size() == 1);
  CHECK(profile.attention[0].kernel == AttentionKernel::flash2);
  CHECK(profile.attention[0].shape.tokens == 2048);
  CHECK(profile.attention[0].shape.heads == 32);
  CHECK(profile.attention[0].shape.kv_heads == 8);
  CHECK(profile.attention[0].shape.causal);
  CHECK(profile.attention[0].time.base_units() == test::near(300e-6));

  REQUIRE(profile.collectives.size() == 2);
  const auto& gather = profile.collectives[profile.collectives[0].nodes > 1 ? 0 : 1];
  const auto& reduce = profile.collectives[profile.collectives[0].nodes > 1 ? 1 : 0];
  CHECK(reduce.op == CollectiveOp::all_reduce);
  CHECK(reduce.size == Bytes{2 << 20});
  CHECK(reduce.time.base_units() == test::near(60e-6));  // the shortest
  CHECK(gather.op == CollectiveOp::all_gather);
  CHECK(gather.nodes == 2);
  CHECK(gather.gpus_per_node == 8);
  CHECK(gather.size == Bytes{2 << 24});  // gathered
  REQUIRE(profile.network);
  CHECK(profile.network->transport.name == "infiniband");

  for (const char* said : {"ampere_sgemm_128x64_tn", "no shape of aten::mm",
                           "ampere_fp16_s16816gemm", "no shapes recorded", "vectorized_elementwise",
                           "Memcpy DtoD", "no such points", "no point for send"}) {
    CAPTURE(said);
    CHECK(ran.err.find(said) != std::string::npos);
  }
  CHECK(ran.err.find("nvjet") == std::string::npos);
}

TEST_CASE("import kineto: a compressed trace says the same, and one that was cut is an error") {
  const test::TemporaryFolder folder;
  const std::string plain = folder.write("a.json", a_step().dump());
  const std::string packed = folder.path() + "/a.json.gz";
  OutputFile file(packed);
  file.write(a_step().dump());
  file.commit();
  const auto points = [&](const std::string& trace) {
    const test::Ran ran =
        test::lockstep_with({"import", "kineto", trace, "--gpu", "h100_sxm5_80gb"});
    CHECK(ran.exit == Exit::ok);
    Json profile = Json::parse(ran.out);
    profile.erase("conditions");
    return profile;
  };
  CHECK(points(plain) == points(packed));
  const std::string bytes = read_text_file(packed);
  const std::string cut = folder.write("cut.json.gz", std::string_view(bytes).substr(0, 200));
  const test::Ran ran = test::lockstep_with({"import", "kineto", cut, "--gpu", "h100_sxm5_80gb"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("cut.json.gz: found a ") != std::string::npos);
}

TEST_CASE("import kineto: collectives need to know how ranks fill nodes") {
  const test::TemporaryFolder folder;
  const std::string trace = folder.write("a.json", a_step().dump());
  const test::Ran bare =
      test::lockstep_with({"import", "kineto", trace, "--gpu", "h100_sxm5_80gb"});
  CHECK(bare.err.find("say --node or --gpus-per-node") != std::string::npos);
  CHECK_FALSE(Json::parse(bare.out).contains("collectives"));
  const test::Ran one = test::lockstep_with(
      {"import", "kineto", trace, "--gpu", "h100_sxm5_80gb", "--gpus-per-node", "8"});
  CHECK(one.err.find("over several nodes: say --node") != std::string::npos);
  CHECK(Json::parse(one.out)["collectives"].size() == 1);
}

TEST_CASE("import kineto: what is no trace, or has no shapes, is one line") {
  const test::TemporaryFolder folder;
  const auto error = [&](std::string_view text) {
    const std::string file = folder.write("t.json", text);
    const test::Ran ran =
        test::lockstep_with({"import", "kineto", file, "--gpu", "h100_sxm5_80gb"});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    const std::size_t at = ran.err.find("t.json: ");
    return at == std::string::npos ? ran.err : ran.err.substr(at);
  };
  constexpr std::string_view kAllowed =
      "; allowed: a trace of the PyTorch profiler (export_chrome_trace) with GPU kernels\n";
  CHECK(error("{\"traceEvents\": [") ==
        "t.json: found a text that is no JSON from line 1, column 18" + std::string(kAllowed));
  CHECK(error("{\"traceEvents\": []}") == "t.json: found no kernel" + std::string(kAllowed));
  CHECK(error(std::string(100, '[')) ==
        "t.json: found more than 64 levels" + std::string(kAllowed));
  const Json no_shapes{{"traceEvents", {gpu_kernel("nvjet_tst_128x256", 5, 1)}}};
  CHECK(error(no_shapes.dump()) ==
        "t.json: found no kernel with shapes that a profile holds; allowed: such kernels, recorded "
        "with record_shapes=True\n");
}

TEST_CASE("collective_point: a list of ranks that was cut goes on with its stride") {
  KinetoCollective from{"allreduce", "Float", 1024, 1024, 64, "[0, 8, 16, ...]", true};
  std::string why;
  auto point = collective_point(from, 8, why);
  REQUIRE(point);
  CHECK(point->nodes == 64);
  CHECK(point->gpus_per_node == 1);
  CHECK(point->size == Bytes{4096});
  from.ranks = "[0, 1, 2]";
  CHECK_FALSE(collective_point(from, 8, why));
  CHECK(why == "no ranks");
  from.group_size = 3;
  from.ranks = "[0, 1, 8]";
  CHECK_FALSE(collective_point(from, 8, why));
  CHECK(why == "spread unevenly over nodes");
  from.even = false;
  CHECK_FALSE(collective_point(from, 8, why));
  CHECK(why == "parts of different sizes");
}

TEST_CASE("product_of: aten::linear takes rows of any rank and its weight transposed") {
  const KinetoOperator linear{"aten::linear",
                              {{2, 512, 1024}, {4096, 1024}, {}},
                              {"c10::BFloat16", "c10::BFloat16", ""},
                              {}};
  const auto point = product_of(linear);
  REQUIRE(point);
  CHECK(point->shape.m == 1024);
  CHECK(point->shape.n == 4096);
  CHECK(point->shape.k == 1024);
  KinetoOperator wrong = linear;
  wrong.dims[1] = {4096, 512};
  CHECK_FALSE(product_of(wrong));
}

}  // namespace lockstep
