// Cards as their drivers name them, against presets.
#include "sim/measured/device_name.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

struct Named {
  std::string_view device, preset;
  std::string_view verdict;  ///< a part of it; empty: nothing to say
};
constexpr std::array kNamed{
    Named{"NVIDIA H100 80GB HBM3", "h100_sxm5_80gb", ""},
    Named{"NVIDIA A100-SXM4-80GB", "a100_sxm4_80gb", ""},
    Named{"NVIDIA A100-PG509-200", "a100_pcie_80gb", ""},
    Named{"AMD Instinct MI300X VF", "mi300x", ""},
    Named{"Tesla V100-SXM2-32GB", "v100_sxm3_32gb", ""},
    Named{"NVIDIA GH200 480GB", "gh200_96gb", ""},
    Named{"", "h100_sxm5_80gb", ""},
    Named{"NVIDIA GH200 120GB", "h100_sxm5_80gb", "presets of that card: gh200_96gb"},
    Named{"NVIDIA H200", "h100_sxm5_80gb", "recordings of h100_sxm5_80gb, which --gpu says"},
    Named{"NVIDIA H20", "h200_sxm_141gb", "recordings of h200_sxm_141gb"},
    Named{"NVIDIA GB200", "b200_sxm_180gb", "recordings of b200_sxm_180gb"},
    Named{"AMD Instinct MI210", "mi300x", "recordings of mi300x"},
    Named{"NVIDIA L40S", "a100_sxm4_80gb", "recordings of a100_sxm4_80gb"},
    Named{"NVIDIA H100 PCIe", "h100_sxm5_80gb", "a PCIe card, but taken for h100_sxm5_80gb"},
    Named{"NVIDIA H100 80GB HBM3", "h100_pcie_80gb", "an SXM module, but taken for"},
    Named{"NVIDIA A100-SXM4-40GB", "a100_sxm4_80gb", "a card of 40 GB, but taken for"},
    Named{"AMD Radeon Graphics", "mi250x", "which tells no chip; taken for mi250x"}};

std::string verdict_on(const Named& row) {
  std::vector<std::string> notes;
  try {
    check_device("a.log", row.device, std::string(row.preset), "--gpu", test::presets(), notes);
  } catch (const InputError& error) {
    return error.what();
  }
  return notes.empty() ? "" : notes.front();
}

}  // namespace

TEST_CASE("check_device: another chip is an error, another form of it or no chip a note") {
  for (const Named& row : kNamed) {
    CAPTURE(row.device);
    CAPTURE(row.preset);
    const std::string verdict = verdict_on(row);
    CHECK(verdict.empty() == row.verdict.empty());
    CHECK_MESSAGE(verdict.find(row.verdict) != std::string::npos, verdict);
  }
}

TEST_CASE("import: a recording of another card than that of --node or --gpu is refused") {
  const test::TemporaryFolder folder;
  const std::string log = folder.write("gh.log",
                                       R"(# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid 1 on n1 device  0 [0x01] NVIDIA GH200 120GB
#  Rank  1 Group  0 Pid 2 on n2 device  0 [0x01] NVIDIA GH200 120GB
#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong
   33554432  8388608  float  sum  -1  1537.62  21.82  21.82  0  1538.74  21.81  21.81  0
)");
  const test::Ran nccl = test::lockstep_with({"import", "nccl-tests", log, "--node", "dgx_h100"});
  CHECK(nccl.exit == Exit::bad_input);
  CHECK(nccl.out.empty());
  CHECK(nccl.err == log +
                        ": found recorded on \"NVIDIA GH200 120GB\"; allowed: recordings of "
                        "h100_sxm5_80gb, which --node dgx_h100 says; presets of that card: "
                        "gh200_96gb\n");
  const std::string trace = folder.write(
      "t.json", R"({"deviceProperties": [{"name": "NVIDIA A100-SXM4-80GB"}], "traceEvents": [)"
                R"({"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 5}]})");
  const test::Ran kineto =
      test::lockstep_with({"import", "kineto", trace, "--gpu", "h100_sxm5_80gb"});
  CHECK(kineto.exit == Exit::bad_input);
  CHECK(kineto.err.starts_with(trace + ": found recorded on \"NVIDIA A100-SXM4-80GB\"; "));
}

}  // namespace lockstep
