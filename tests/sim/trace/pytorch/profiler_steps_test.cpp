// Which part of a recording is a step, and that steps in a row add up.
#include "sim/trace/pytorch/profiler_steps.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/trace/formats/read_kineto.hpp"
#include "tests/sim/trace/sample_traces.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kPicosPerUs = 1'000'000;  // picoseconds

struct MarkedStep {
  int number;
  double start, took;  ///< of the host, in microseconds
};
struct LaunchedKernel {
  double launch, start, took;
  int stream = 7;
};

KinetoRecording recorded(const std::vector<MarkedStep>& steps,
                         const std::vector<LaunchedKernel>& kernels) {
  std::string events;
  int correlation = 0;
  const auto event = [&](const std::string& category, const std::string& name, double start,
                         double took, const std::string& args) {
    events += fmt::format(R"({}{{"ph": "X", "cat": "{}", "name": "{}", "tid": 1, "ts": {}, )"
                          R"("dur": {}, "args": {{{}}}}})",
                          events.empty() ? "" : ", ", category, name, start, took, args);
  };
  for (const MarkedStep& step : steps) {
    const std::string name = fmt::format("ProfilerStep#{}", step.number);
    event("user_annotation", name, step.start, step.took, "");
    event("gpu_user_annotation", name, step.start + 1, step.took, "");  // its shadow
  }
  for (const LaunchedKernel& kernel : kernels) {
    ++correlation;
    event("cuda_runtime", "cudaLaunchKernel", kernel.launch, 1,
          fmt::format(R"("correlation": {})", correlation));
    event("kernel", "gemm", kernel.start, kernel.took,
          fmt::format(R"("correlation": {}, "stream": {})", correlation, kernel.stream));
  }
  return read_kineto_recording("trace.json", R"({"traceEvents": [)" + events + "]}", false);
}

}  // namespace

TEST_CASE("profiler_steps: work belongs to the step of its launch, and lengths add up") {
  // The host is ahead: kernels of the first step still run in the second one.
  const KinetoRecording recording =
      recorded({{1, 0, 100}, {2, 100, 100}, {3, 200, 100}},
               {{10, 10, 150}, {110, 160, 150}, {210, 310, 40}, {250, 350, 20}});
  const std::vector<ProfilerStep> steps = profiler_steps(recording);
  REQUIRE(steps.size() == 3);
  // Times count from the first kernel, at 10 us; the work of step 1 ends at 150, of step 2 at 300.
  CHECK(steps[0].length() == 160 * kPicosPerUs);  // 0 to 160 us of the file
  CHECK(steps[1].length() == 150 * kPicosPerUs);
  CHECK(steps[2].length() == 60 * kPicosPerUs);
  CHECK(steps[1].start == steps[0].end);
  CHECK(steps[2].start == steps[1].end);
}

TEST_CASE("cut_to_step: the median step replays as long as it took, with the host's rest") {
  std::vector<MarkedStep> marks;
  std::vector<LaunchedKernel> kernels;
  // The first is cut short; the others take 1000, 1100 and 1020 us, and the host ends them.
  double at = 0;
  for (const auto& [number, took] : {std::pair{4, 300.0}, {5, 1000.0}, {6, 1100.0}, {7, 1020.0}}) {
    marks.push_back({number, at, took});
    kernels.push_back({at + 20, at + 30, 100, 7});
    kernels.push_back({at + 40, at + 90, took - 200, 8});
    at += took;
  }
  std::vector<KinetoRecording> recordings{recorded(marks, kernels)};
  const std::string note = cut_to_step(recordings, {});
  CHECK(note.starts_with("ProfilerStep#7, "));
  CHECK(note.find("in which work of the GPU spans 0.88 ms") != std::string::npos);
  CHECK(note.find("the median of 3 steps, which took 1 to 1.1 ms, 1 cut ones") !=
        std::string::npos);
  CHECK(recordings[0].gpu.size() == 2);
  const Trace trace = join({trace_of_kineto(recordings[0], 0)});
  CHECK(trace.recorded == StepTime{1020 * kPicosPerUs});
  CHECK(test::replayed(trace, test::trace_cluster()).end == trace.recorded);
}

TEST_CASE("cut_to_step: a step by its number, the whole recording, and none that is not there") {
  const std::vector<MarkedStep> marks{{1, 0, 100}, {2, 100, 200}};
  const std::vector<LaunchedKernel> kernels{{10, 12, 50}, {110, 112, 150}};
  std::vector<KinetoRecording> one{recorded(marks, kernels)};
  CHECK(cut_to_step(one, {.all = false, .number = 2}).starts_with("ProfilerStep#2, "));
  CHECK(one[0].end == 200 * kPicosPerUs);
  std::vector<KinetoRecording> all{recorded(marks, kernels)};
  CHECK(cut_to_step(all, {.all = true, .number = {}}).starts_with("as asked for: all 0.25 ms"));
  CHECK(all[0].gpu.size() == 2);
  std::vector<KinetoRecording> none{recorded({}, kernels)};
  CHECK(cut_to_step(none, {}).starts_with("no ProfilerStep marks"));
  CHECK_THROWS_WITH_AS(cut_to_step(all, {.all = false, .number = 9}),
                       "trace.json: found no ProfilerStep#9; allowed: steps 1, 2", InputError);
}

TEST_CASE("cut_to_step: ranks are cut to the same step, the median of the slowest rank's") {
  std::vector<KinetoRecording> ranks{recorded({{1, 0, 100}, {2, 100, 100}, {3, 200, 105}},
                                              {{10, 12, 50}, {110, 112, 50}, {210, 212, 50}}),
                                     recorded({{1, 0, 102}, {2, 102, 109}, {3, 211, 100}},
                                              {{10, 12, 50}, {112, 115, 50}, {215, 217, 50}})};
  // The slowest take 102, 109 and 105 us.
  CHECK(cut_to_step(ranks, {}).starts_with("ProfilerStep#3, "));
  CHECK(ranks[0].end == 105 * kPicosPerUs);
  CHECK(ranks[1].end == 100 * kPicosPerUs);
}

}  // namespace lockstep
