/// lockstep-calibrate from its command line to its profile, on made-up cards: its calls of CUDA and
/// of the libraries, its plan and repeats, and what it does when a card misbehaves.
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_profile.hpp"
#include "tests/fake-driver/times.hpp"
#include "tests/support/near.hpp"
#include "tests/support/source_tree.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tools/calibrate/memory_kernels.hpp"

using namespace lockstep;

namespace {

/// One run of the program in a folder of its own.
class FakeRun {
 public:
  /// `settings`: environment variables of the made-up card, "LOCKSTEP_FAKE_CARDS=2".
  explicit FakeRun(const std::string& args, const std::string& settings = {}) {
    const test::CommandResult ran = test::run_in_source_tree(fmt::format(
        "env -u CUDA_VISIBLE_DEVICES LD_LIBRARY_PATH='{}' {} timeout 60 '{}' -o '{}' {} 2>'{}'",
        LOCKSTEP_FAKE_LIBRARIES, settings, LOCKSTEP_FAKE_PROGRAM, path(), args, errors_path()));
    status = ran.status;
    out = ran.output;
    err = content_of(errors_path());
    text = content_of(path());
  }

  /// Requires that it is there, and is as `lockstep run --profile` takes it.
  [[nodiscard]] Profile profile() const { return read_profile(path(), text, PresetStore()); }
  [[nodiscard]] bool wrote() const { return !text.empty(); }

  int status = 0;
  std::string out, err, text;  ///< text: of the profile; empty: there is none

 private:
  [[nodiscard]] std::string path() const { return folder_.path() + "/p.json"; }
  [[nodiscard]] std::string errors_path() const { return folder_.path() + "/errors"; }
  static std::string content_of(const std::string& path) {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return content.str();
  }
  test::TemporaryFolder folder_;
};

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}
std::ptrdiff_t lines_with(const std::string& text, std::string_view part) {
  std::istringstream lines(text);
  std::ptrdiff_t count = 0;
  for (std::string line; std::getline(lines, line);) count += says(line, part) ? 1 : 0;
  return count;
}

bool has_option(std::string_view option) {
  static const std::string help = FakeRun("--help").out;
  return says(help, option);
}
/// Built without cuDNN, the program says so.
bool has_attention(const FakeRun& run) { return !says(run.out, "without attention"); }

double bits_of(Precision precision) {
  switch (precision) {
    case Precision::tf32:
      return 32;
    case Precision::fp8:
    case Precision::mxfp8:
      return 8;
    case Precision::nvfp4:
      return 4;
    default:
      return 16;
  }
}

/// By the made-up card's law. TF32's results, of 32 bit, are left out.
void check_products(const Profile& profile) {
  for (const GemmPoint& p : profile.gemm) {
    if (p.precision == Precision::tf32) continue;
    const auto [m, n, k, count, repeats] = p.shape;
    const double due = fake::product_seconds(m, n, k, count, bits_of(p.precision));
    CHECK(p.time.base_units() == test::near(due).epsilon(1e-3));
    CHECK(p.spread < 1e-3);
  }
}

}  // namespace

TEST_CASE("fake driver: the whole plan is measured within its time, and the times are the card's") {
  const FakeRun run("");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.err.empty());
  CHECK(says(run.out, "NVIDIA H100 80GB HBM3 as h100_sxm5_80gb"));
  CHECK_FALSE(says(run.out, "left out for lack of time"));
  const Profile profile = run.profile();
  REQUIRE(profile.gemm.size() > 400);
  check_products(profile);
  std::set<double> counts;
  for (const GemmPoint& p : profile.gemm) counts.insert(p.shape.count);
  CHECK(counts.size() > 3);
  REQUIRE(profile.memory.size() > 40);
  for (const MemoryPoint& p : profile.memory) {
    const double due = fake::kernel_seconds(0, 1, p.traffic.base_units());
    CHECK(p.time.base_units() == test::near(due).epsilon(1e-3));
  }
  if (has_attention(run)) CHECK(profile.attention.size() > 40);
  for (const std::string_view part :
       {"\"driver\": \"made up\"", "\"power limit\": \"700 W\"", "1755 MHz, 350 W, 55 C",
        "\"launch of empty kernels one by one\"", "\"gap between busy kernels in a CUDA graph\""}) {
    CAPTURE(part);
    CHECK(says(run.text, part));
  }
}

TEST_CASE("fake driver: on a card that multiplies blocks with scales, they are measured too") {
  const FakeRun run("--only gemm", "LOCKSTEP_FAKE_BLACKWELL=1");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const Profile profile = run.profile();
  CHECK(profile.gpu == "b200_sxm_180gb");
  check_products(profile);
  const auto points_in = [&](Precision precision) {
    return std::ranges::count(profile.gemm, precision, &GemmPoint::precision);
  };
  CHECK(points_in(Precision::bf16) > 100);
  // Built with a CUDA before 12.8, it has neither or both.
  CHECK((points_in(Precision::mxfp8) > 20) == (points_in(Precision::nvfp4) > 20));
}

TEST_CASE("fake driver: no card, a card in use: one line, exit 3, no file") {
  struct Refused {
    std::string settings, line;
  };
  for (const Refused& refused : std::vector<Refused>{
           {"LOCKSTEP_FAKE_CARDS=0",
            "lockstep-calibrate: there is no GPU here that could be timed (cudaGetDeviceCount: no "
            "CUDA-capable device is detected); run it on a machine where nvidia-smi lists one\n"},
           {"LOCKSTEP_FAKE_PROGRAMS=2",
            "lockstep-calibrate: card 0 (NVIDIA H100 80GB HBM3) cannot be timed: 2 other programs "
            "are on it, with 0.0 GiB of its memory; nothing else may run on it\n"},
           {"LOCKSTEP_FAKE_FAULTS='cudaMalloc 1 2'",
            "lockstep-calibrate: card 0 cannot be used: cudaMalloc: out of memory\n"},
           {"LOCKSTEP_FAKE_FAULTS='cudaSetDevice 1 hang'",
            "lockstep-calibrate: card 0: its driver did not answer within 2.00 min\n"}}) {
    const FakeRun run("--only memory", refused.settings);
    CHECK(run.status == 3);
    CHECK(run.err == refused.line);
    CHECK_FALSE(run.wrote());
  }
  const FakeRun beyond("--device 1");
  CHECK(beyond.status == 2);
  CHECK(beyond.err == "--device: found 1; allowed: 0 to 0\n");
}

TEST_CASE("fake driver: a card that a monitor looks at is timed, and the profile says so") {
  const FakeRun run("--only memory", "LOCKSTEP_FAKE_UTILISATION=40");
  CHECK(run.status == 0);
  CHECK(says(run.err, "it was 40.0 % busy before the first kernel"));
  CHECK(says(run.text, "\"disturbance\": \"it was 40.0 % busy"));
  CHECK(run.profile().memory.size() > 40);
}

TEST_CASE("fake driver: what a library refuses or has no memory for costs its own point") {
  const std::size_t all = FakeRun("--only gemm --minutes 2").profile().gemm.size();
  REQUIRE(all > 100);
  // No algorithm for the fifth product, and both algorithms of another one refused (15: not
  // supported); no memory for the graph of a third (2).
  for (const auto& [faults, line] : std::vector<std::pair<std::string, std::string>>{
           {"cublasLtMatmulAlgoGetHeuristic 5 15",
            "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED"},
           {"cublasLtMatmul 1 15, cublasLtMatmul 2 15",
            "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED"},
           {"cudaGraphInstantiateWithFlags 7 2", "cudaGraphInstantiateWithFlags: out of memory"}}) {
    const FakeRun run("--only gemm --minutes 2", "LOCKSTEP_FAKE_FAULTS='" + faults + "'");
    CAPTURE(faults);
    CHECK(run.status == 1);
    CHECK(lines_with(run.err, line) == 1);
    CHECK(lines_with(run.err, "gemm bf16 forward ") == 1);
    CHECK(says(run.text, ", 1 failed"));
    CHECK(run.profile().gemm.size() >= all - 1);
  }
}

TEST_CASE("fake driver: where the first algorithm is refused, the next one is timed") {
  const FakeRun run("--only gemm --minutes 1", "LOCKSTEP_FAKE_FAULTS='cublasLtMatmul 1 15'");
  CHECK(run.status == 0);
  CHECK(run.err.empty());
  CHECK_FALSE(says(run.text, "failed"));
}

TEST_CASE("fake driver: a wrong result costs its point, whichever kernel it is of") {
  for (const auto& [subject, kernel, wrong] :
       std::vector<std::array<std::string, 3>>{{"memory", "softmax", "memory softmax"},
                                               {"memory", "adam", "memory adam"},
                                               {"gemm", "product_check", "gemm bf16 forward"}}) {
    const FakeRun run("--minutes 1 --only " + subject, "LOCKSTEP_FAKE_WRONG=" + kernel);
    CAPTURE(kernel);
    CHECK(run.status == 1);
    CHECK(lines_with(run.err, wrong) > 5);
    CHECK(lines_with(run.err, ": wrong result: ") == lines_with(run.err, ""));
    CHECK_FALSE(says(run.out, wrong));
    CHECK(run.wrote() == (subject == "memory"));
  }
}

TEST_CASE("fake driver: attention is planned, checked and timed, and a plan may be refused") {
  const FakeRun run("--only attention", "LOCKSTEP_FAKE_FAULTS='cudnnBackendFinalize 1 3000'");
  if (!has_attention(run)) return;
  CHECK(run.status == 1);
  CHECK(lines_with(run.err, "") == 1);
  CHECK(lines_with(run.err,
                   ": cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED (made-up reason)") == 1);
  CHECK(says(run.text, " measured, 1 failed"));
  const FakeRun refused("--only attention --minutes 1",
                        "LOCKSTEP_FAKE_FAULTS='cudnnCreate 1 3000'");
  CHECK(refused.status == 0);
  CHECK(says(refused.out, "without attention: cudnnCreate: CUDNN_STATUS_NOT_SUPPORTED"));
  CHECK_FALSE(refused.wrote());
  const FakeRun wrong("--only attention --minutes 1", "LOCKSTEP_FAKE_WRONG=key_gradient_row");
  CHECK(wrong.status == 1);
  CHECK(lines_with(wrong.err, "attention backward") == lines_with(wrong.err, ": wrong result: "));
  CHECK(lines_with(wrong.err, ": wrong result: ") > 5);
}

TEST_CASE("fake driver: restless repeats are done again, and what stays restless is marked") {
  const FakeRun calm("--only memory"), once("--only memory", "LOCKSTEP_FAKE_RESTLESS='0.5 3'"),
      ever("--only memory", "LOCKSTEP_FAKE_RESTLESS=0.5");
  CHECK_FALSE(says(calm.text, "restless"));
  CHECK(once.status == 0);
  CHECK(ever.status == 0);
  const auto spread_ones = [](const FakeRun& run) {
    const std::vector<MemoryPoint> points = run.profile().memory;
    return std::ranges::count_if(points, [](const MemoryPoint& p) { return p.spread > 0.03; });
  };
  const auto all = static_cast<std::ptrdiff_t>(calm.profile().memory.size());
  CHECK(spread_ones(ever) > all / 2);
  CHECK(lines_with(ever.out, "  restless") == spread_ones(ever));
  CHECK(says(ever.text, fmt::format(", {} restless (spread above 3.0 %)", spread_ones(ever))));
  CHECK(spread_ones(once) < spread_ones(ever));
}

TEST_CASE("fake driver: a call that never comes back ends the run, and what was good is saved") {
  const FakeRun run("--only memory", "LOCKSTEP_FAKE_FAULTS='cudaEventSynchronize 100 hang'");
  CHECK(run.status == 1);
  CHECK(lines_with(run.err, ": it did not come back") == 1);
  CHECK(says(run.text, "\"ended early by\": \"memory "));
  CHECK(run.profile().memory.size() >= 3);
}

TEST_CASE("fake driver: a card that falls over ends the run, and what was good is saved") {
  // 719: unspecified launch failure, and all calls after it.
  const FakeRun run("--only memory", "LOCKSTEP_FAKE_FAULTS='cudaStreamSynchronize 60+ 719'");
  CHECK(run.status == 1);
  CHECK(says(run.err, "cudaStreamSynchronize: unspecified launch failure"));
  CHECK(says(run.text, "\"ended early by\": \"memory "));
  CHECK(run.profile().memory.size() >= 3);
}

TEST_CASE("fake driver: SIGTERM and Ctrl-C leave a profile, exit 130") {
  for (const int signal : {15, 2}) {
    const FakeRun run("", fmt::format("LOCKSTEP_FAKE_SIGNAL='{} 20'", signal));
    CHECK(run.status == 130);
    const Profile profile = run.profile();
    CHECK(profile.memory.size() > 40);
    CHECK(profile.gemm.size() < 200);
  }
}

TEST_CASE("fake driver: what does not fit into the minutes is left out") {
  const FakeRun run("--minutes 1");
  CHECK(run.status == 0);
  CHECK(says(run.text, "left out for lack of time"));
  CHECK(run.profile().memory.size() > 40);
}

TEST_CASE("fake driver: collectives over two cards, plainly and otherwise, all results checked") {
  if (!has_option("--nccl")) return;
  const FakeRun run("--nccl", "LOCKSTEP_FAKE_CARDS=2");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.err.empty());
  const Profile profile = run.profile();
  std::set<CollectiveOp> ops;
  for (const CollectivePoint& p : profile.collectives) {
    ops.insert(p.op);
    CHECK(p.gpus_per_node == 2);
    if (p.op != CollectiveOp::send_receive) continue;
    const double due = fake::kCollectiveSeconds + p.size.base_units() / fake::kLinkBytesPerSecond;
    CHECK(p.time.base_units() == test::near(due).epsilon(1e-2));
  }
  CHECK(ops.size() == 5);
  for (const std::string_view part :
       {"beside all_reduce 268,435,456 bytes, high priority\": \"the product takes 1 times",
        "all_reduce 268,435,456 bytes in BF16\": \"1 times", " bytes in place\": \"1 times",
        " bytes two at once\": \"1 times", "unevenly\": \"1.33 times"}) {
    CAPTURE(part);
    CHECK(says(run.text, part));
  }
}

TEST_CASE("fake driver: collectives that go wrong") {
  if (!has_option("--nccl")) return;
  const auto with = [](const std::string& settings) {
    return FakeRun("--nccl --minutes 1", "LOCKSTEP_FAKE_CARDS=2 " + settings);
  };
  const FakeRun one = FakeRun("--nccl");
  CHECK(one.status == 3);
  CHECK(says(one.err, "there is one GPU; collectives need two at least"));
  const FakeRun old = with("LOCKSTEP_FAKE_NCCL=21304");
  CHECK(old.status == 3);
  CHECK(old.err == "lockstep-calibrate: libnccl.so.2 is 2.13.4; 2.14 or later is needed\n");
  const FakeRun wrong = with("LOCKSTEP_FAKE_WRONG=count_wrong");
  CHECK(wrong.status == 1);
  CHECK(says(wrong.err, "all_reduce 8 bytes: wrong result: 1 elements of a rank\n"));
  CHECK_FALSE(wrong.wrote());
  const FakeRun hang = with("LOCKSTEP_FAKE_FAULTS='ncclReduceScatter 300 hang'");
  CHECK(hang.status == 1);
  CHECK(says(hang.err, "rank 0: ncclReduceScatter did not come back within 120 s"));
  CHECK(says(hang.text, "\"ended early by\": \"ncclReduceScatter did not come back"));
  CHECK(hang.profile().collectives.size() >= 2);
  const FakeRun lost = with("LOCKSTEP_FAKE_FAULTS='ncclCommGetAsyncError 600+ 6'");
  CHECK(lost.status == 1);
  CHECK(says(lost.err, "rank 0: a collective: made-up error\n"));
  CHECK(lost.profile().collectives.size() >= 2);
}
