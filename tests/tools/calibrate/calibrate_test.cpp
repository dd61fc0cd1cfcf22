#include "tools/calibrate/calibrate.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "models/kernels/kernel_profile.hpp"
#include "sim/scenario/read_profile.hpp"
#include "tests/support/near.hpp"
#include "tests/support/source_tree.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/calibrate/made_up_card.hpp"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct CalibrateRan {
  CalibrateExit exit;
  std::string out, err;
};

/// Runs the program on a card that `make` gives, with a clock that only the card moves.
class CalibrateRun {
 public:
  std::function<std::unique_ptr<Card>(int device)> open = [this](int) {
    auto card = std::make_unique<test::MadeUpCard>(facts, presets.gpu("h100_sxm5_80gb"), clock);
    if (prepare) prepare(*card);
    return card;
  };
  std::function<void(test::MadeUpCard&)> prepare;
  CardFacts facts = test::h100_facts();
  PresetStore presets;
  std::atomic<double> clock = 0;  // a guard against hanging calls reads it too
  Seconds patience{3600};
  std::function<void(CalibrateExit)> end_now = [](CalibrateExit) { FAIL("it was ended"); };

  CalibrateRan with(const std::vector<std::string>& args) {
    std::ostringstream out, err;
    Console console{.out = out, .err = err, .style = {}, .err_is_terminal = false};
    const CalibrateExit exit =
        run_calibrate(args, console,
                      {.open_card = open,
                       .seconds = [this] { return clock.load(); },
                       .date = "2026-11-21",
                       .environment = [](const char*) { return std::nullopt; },
                       .open_communicator = {},
                       .patience = patience,
                       .end_now = end_now});
    return {exit, out.str(), err.str()};
  }
  Profile profile_at(const std::string& path) { return read_profile(path, text_of(path), presets); }
};

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::ptrdiff_t entries_of(const std::string& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

}  // namespace

TEST_CASE("calibrate: what is written, the simulator reads, and finds the card as it is") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  const std::string path = folder.path() + "/h100.json";
  const CalibrateRan ran = run.with({"-o", path});
  CHECK(ran.err.empty());
  REQUIRE(ran.exit == CalibrateExit::ok);
  CHECK(holds(ran.out, "NVIDIA H100 80GB HBM3 as h100_sxm5_80gb"));
  CHECK(entries_of(folder.path()) == 1);

  const Profile profile = run.profile_at(path);
  CHECK(profile.gpu == "h100_sxm5_80gb");
  REQUIRE(profile.gemm.size() > 300);
  REQUIRE(profile.memory.size() > 40);
  // The made-up card is 10 % slower than the laws, and the quartiles of its samples 2 % apart.
  const GpuSpec& gpu = run.presets.gpu(profile.gpu);
  const KernelProfile measured(std::span(&profile, 1), std::span(&gpu, 1), std::nullopt);
  for (const GemmPoint& p : profile.gemm) {
    CHECK(p.time / gemm_time(p.shape, p.precision, gpu, p.load) == test::near(1.1).epsilon(1e-5));
    CHECK(p.spread == test::near(0.02).epsilon(1e-3));
  }
  for (const MemoryPoint& p : profile.memory) {
    CHECK(p.time / memory_bound_time(p.traffic, gpu) == test::near(1.1).epsilon(1e-5));
  }
  REQUIRE(profile.attention.size() > 40);
  for (const AttentionPoint& p : profile.attention) {
    CHECK(p.kernel == AttentionKernel::cudnn);
    CHECK(p.time / attention_time(p.shape, p.kernel, gpu, ElementwiseTraffic{}) ==
          test::near(1.1).epsilon(1e-5));
  }
  CHECK(measured.gemm({3000, 5000, 7000}, Precision::bf16, Load::sustained) ==
        test::near(1.1).epsilon(1e-4));
}

TEST_CASE("calibrate: without cuDNN it says so, and times the rest") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  run.facts.no_attention = "cuDNN could not be loaded";
  const std::string path = folder.path() + "/p.json";
  const CalibrateRan ran = run.with({"-o", path, "--only", "attention,memory"});
  REQUIRE(ran.exit == CalibrateExit::ok);
  CHECK(holds(ran.out, "without attention: cuDNN could not be loaded\n"));
  CHECK(holds(text_of(path), "\"attention\": \"cuDNN could not be loaded\""));
  CHECK(run.profile_at(path).attention.empty());
  CHECK_FALSE(holds(run.with({"-o", path, "--only", "memory"}).out, "without attention"));
}

TEST_CASE("calibrate: the profile says the conditions, launches and copies among them") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  const std::string path = folder.path() + "/p.json";
  REQUIRE(run.with({"-o", path, "--only", "launch,copies", "--only", "memory"}).exit ==
          CalibrateExit::ok);
  const std::string text = text_of(path);
  for (const std::string_view part :
       {"\"driver\": \"made up\"", "\"date\": \"2026-11-21\"",
        "\"launch of empty kernels in a CUDA graph\": \"2.20 us, spread 2.0 %\"",
        "\"copy host to device 268,435,456 bytes\"",
        "\"launch\": \"4 of 4 measured; 1755 MHz, 600 W, 60 C (means, hottest)\""}) {
    CAPTURE(part);
    CHECK(holds(text, part));
  }
  CHECK_FALSE(holds(text, "gemm"));
}

TEST_CASE("calibrate: what does not fit into the time is left out, and said") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  run.prepare = [](test::MadeUpCard& card) { card.seconds_a_task = 0.5; };
  const std::string path = folder.path() + "/p.json";
  const CalibrateRan ran = run.with({"-o", path, "--minutes", "1"});
  CHECK(ran.exit == CalibrateExit::ok);
  CHECK(run.clock < 60);
  CHECK(run.clock > 50);
  CHECK(holds(ran.out, "left out for lack of time"));
  CHECK(holds(text_of(path), "left out for lack of time"));
}

TEST_CASE("calibrate: Ctrl-C and SIGTERM write what was measured until then, exit 130") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/p.json";
  for (const int signal : {SIGINT, SIGTERM}) {
    CalibrateRun run;
    run.prepare = [signal](test::MadeUpCard& card) {
      card.before_each = [signal](std::size_t nth) {
        if (nth == 7) std::raise(signal);
      };
    };
    const CalibrateRan ran = run.with({"-o", path, "--only", "memory"});
    CHECK(ran.exit == CalibrateExit::interrupted);
    CHECK(run.profile_at(path).memory.size() == 7);
    fs::remove(path);
  }
}

TEST_CASE("calibrate: repeats that are far apart are done again, and the calmest count") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/p.json";
  CalibrateRun run;
  std::vector<Task> tasks;
  const auto run_with = [&](const std::function<double(std::size_t)>& quartiles_apart) {
    run.prepare = [&](test::MadeUpCard& card) {
      card.quartiles_apart = quartiles_apart;
      card.before_each = [&](std::size_t) { tasks.push_back(card.tasks.back()); };
    };
    tasks.clear();
    return run.with({"-o", path, "--only", "memory"});
  };
  const CalibrateRan once = run_with([](std::size_t nth) { return nth == 2 ? 0.2 : 0.01; });
  CHECK(once.exit == CalibrateExit::ok);
  Profile profile = run.profile_at(path);
  CHECK(tasks.size() == profile.memory.size() + 1);
  CHECK(describe(tasks[1]) == describe(tasks[2]));
  for (const MemoryPoint& p : profile.memory) CHECK(p.spread == test::near(0.01).epsilon(1e-3));
  CHECK_FALSE(holds(once.out, "restless"));

  const CalibrateRan ever = run_with([](std::size_t nth) { return nth % 3 == 2 ? 0.05 : 0.1; });
  CHECK(ever.exit == CalibrateExit::ok);
  profile = run.profile_at(path);
  CHECK(tasks.size() == 3 * profile.memory.size());
  for (const MemoryPoint& p : profile.memory) CHECK(p.spread == test::near(0.05).epsilon(1e-3));
  CHECK(holds(text_of(path), fmt::format(", {} restless (spread above 3.0 %)", tasks.size() / 3)));
}

TEST_CASE("calibrate: no repeat is done again beyond the time") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  run.prepare = [](test::MadeUpCard& card) {
    card.quartiles_apart = [](std::size_t) { return 0.5; };
    card.seconds_a_task = 2;
  };
  const std::string path = folder.path() + "/p.json";
  CHECK(run.with({"-o", path, "--minutes", "1", "--only", "memory"}).exit == CalibrateExit::ok);
  CHECK(run.clock < 60);
  CHECK(run.clock > 50);
}

TEST_CASE(
    "calibrate: a measurement that never comes back ends the run, and what was good is saved") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/p.json";
  CalibrateRun run;
  std::atomic<bool> ended = false;
  std::size_t points = 0;
  std::string text;
  run.patience = Seconds{0.3};
  run.end_now = [&](CalibrateExit status) {
    CHECK(status == CalibrateExit::failed);
    points = run.profile_at(path).memory.size();
    text = text_of(path);
    ended.store(true);
  };
  run.prepare = [&](test::MadeUpCard& card) {
    card.before_each = [&](std::size_t nth) {
      if (nth < 4) return;
      while (!ended.load()) std::this_thread::yield();
      throw CardError("came back for the test alone");
    };
  };
  const CalibrateRan ran = run.with({"-o", path, "--only", "memory"});
  REQUIRE(ended.load());
  CHECK(points == 3);
  CHECK(holds(text, "MB: it did not come back\""));
  CHECK(holds(ran.err, "lockstep-calibrate: memory "));
  CHECK(holds(ran.err, "MB: it did not come back\n"));
}

TEST_CASE("calibrate: a driver that does not answer at all ends the run, exit 3") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  std::atomic<bool> ended = false;
  run.patience = Seconds{0};
  run.end_now = [&](CalibrateExit status) {
    CHECK(status == CalibrateExit::no_card);
    ended.store(true);
  };
  run.open = [&](int) -> std::unique_ptr<Card> {
    while (!ended.load()) std::this_thread::yield();
    throw CardUnavailable("came back for the test alone");
  };
  const CalibrateRan ran = run.with({"-o", folder.path() + "/p.json", "--device", "3"});
  CHECK(holds(ran.err, "lockstep-calibrate: card 3: its driver did not answer within "));
  CHECK(entries_of(folder.path()) == 0);
}

TEST_CASE("calibrate: a wrong result costs its point, exit 1") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  run.prepare = [](test::MadeUpCard& card) {
    card.before_each = [](std::size_t nth) {
      if (nth == 3) throw TaskFailed("wrong result: 1 where 2 was due");
    };
  };
  const std::string path = folder.path() + "/p.json";
  const CalibrateRan ran = run.with({"-o", path, "--only", "memory"});
  CHECK(ran.exit == CalibrateExit::failed);
  CHECK(holds(ran.err, ": wrong result: 1 where 2 was due\n"));
  CHECK(holds(text_of(path), ", 1 failed"));
}

TEST_CASE("calibrate: a card that gives up ends the run, what was good is written, exit 1") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  run.prepare = [](test::MadeUpCard& card) {
    card.before_each = [](std::size_t nth) {
      if (nth == 5) throw CardError("cudaEventSynchronize: unspecified launch failure");
    };
  };
  const std::string path = folder.path() + "/p.json";
  const CalibrateRan ran = run.with({"-o", path, "--only", "memory"});
  CHECK(ran.exit == CalibrateExit::failed);
  CHECK(run.profile_at(path).memory.size() == 4);
  CHECK(holds(ran.err, "cudaEventSynchronize: unspecified launch failure\n"));
  CHECK(holds(text_of(path), "\"ended early by\""));
}

TEST_CASE("calibrate: without a point there is no profile") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  const CalibrateRan ran = run.with({"-o", folder.path() + "/p.json", "--only", "launch"});
  CHECK(ran.exit == CalibrateExit::ok);
  CHECK(holds(ran.out, "No profile is written"));
  CHECK(entries_of(folder.path()) == 0);
}

TEST_CASE("calibrate: no card, one line, exit 3, no file") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  run.open = [](int device) -> std::unique_ptr<Card> {
    CHECK(device == 2);
    throw CardUnavailable("card 2 cannot be timed: it is 97.0 % busy");
  };
  const CalibrateRan ran = run.with({"-o", folder.path() + "/p.json", "--device", "2"});
  CHECK(ran.exit == CalibrateExit::no_card);
  CHECK(ran.err == "lockstep-calibrate: card 2 cannot be timed: it is 97.0 % busy\n");
  CHECK(ran.out.empty());
  CHECK(entries_of(folder.path()) == 0);
}

TEST_CASE("calibrate: every mistake on the command line is one line, exit 2, before any card") {
  struct Mistake {
    std::vector<std::string> args;
    std::string line;
  };
  const std::vector<Mistake> mistakes{
      {{}, "lockstep-calibrate: no --output; for example: -o h100.profile.json\n"},
      {{"--outpt", "x"},
       "lockstep-calibrate: unknown option --outpt; allowed: --output, --minutes, --only, "
       "--device, --gpu, --presets, --help. Did you mean --output?\n"},
      {{"x.json"},
       "lockstep-calibrate: unexpected argument \"x.json\"; usage: lockstep-calibrate -o FILE "
       "[options]\n"},
      {{"-o", "x", "--only", "gemm,memry"},
       "--only: found \"memry\"; allowed: launch, copies, memory, gemm, attention. Did you mean "
       "memory?\n"},
      {{"-o", "x", "--minutes", "0"},
       "--minutes: found \"0\"; allowed: a whole number from 1 to 1440\n"},
      {{"-o", "x", "--device", "-1"}, "--device: found \"-1\"; allowed: a whole number from 0\n"},
  };
  CalibrateRun run;
  run.open = [](int) -> std::unique_ptr<Card> {
    FAIL("the card was opened");
    return nullptr;
  };
  for (const Mistake& mistake : mistakes) {
    const CalibrateRan ran = run.with(mistake.args);
    CHECK(ran.exit == CalibrateExit::bad_input);
    CHECK(ran.err == mistake.line);
    CHECK(ran.out.empty());
  }
  CHECK(run.with({"-o", "x", "--gpu", "h1000"}).exit == CalibrateExit::bad_input);
}

TEST_CASE("calibrate: a card that no preset is known for needs --gpu") {
  const test::TemporaryFolder folder;
  CalibrateRun run;
  run.facts.name = "NVIDIA GeForce RTX 3060";
  const std::string path = folder.path() + "/p.json";
  const CalibrateRan ran = run.with({"-o", path, "--only", "memory"});
  CHECK(ran.exit == CalibrateExit::bad_input);
  CHECK(holds(ran.err,
              "no preset is known for \"NVIDIA GeForce RTX 3060\"; name one with --gpu: "
              "a100_pcie_80gb, "));
  CHECK(run.with({"-o", path, "--only", "memory", "--gpu", "h100_pcie_80gb"}).exit ==
        CalibrateExit::ok);
  CHECK(run.profile_at(path).gpu == "h100_pcie_80gb");
}

TEST_CASE("calibrate: a folder that is not there is found out before anything is measured") {
  CalibrateRun run;
  run.prepare = [](test::MadeUpCard& card) {
    card.before_each = [](std::size_t) { FAIL("measured"); };
  };
  const CalibrateRan ran = run.with({"-o", "/nonexistent/p.json"});
  CHECK(ran.exit == CalibrateExit::bad_input);
  CHECK(holds(ran.err, "/nonexistent/p.json: found No such file or directory"));
}

TEST_CASE("calibrate: --help says what it does") {
  CalibrateRun run;
  const CalibrateRan ran = run.with({"--help"});
  CHECK(ran.exit == CalibrateExit::ok);
  CHECK(ran.out.starts_with("Usage: lockstep-calibrate -o FILE [options]\n"));
  CHECK(holds(ran.out, "3 no card that could be timed"));
  // What was built without NCCL does not speak of it.
  CHECK_FALSE(holds(ran.out, "nccl"));
  CHECK(run.with({"--nccl", "-o", "x"}).exit == CalibrateExit::bad_input);
}

#ifdef LOCKSTEP_CALIBRATE_PROGRAM
TEST_CASE("calibrate: the program itself, where no card is: one line, exit 3, no file") {
  const test::TemporaryFolder folder;
  // Also where there is a card: none of them is shown to it.
  const test::CommandResult ran =
      test::run_in_source_tree("CUDA_VISIBLE_DEVICES= '" LOCKSTEP_CALIBRATE_PROGRAM "' -o '" +
                               folder.path() + "/p.json' 2>&1");
  CHECK(ran.status == 3);
  CHECK(
      ran.output.starts_with("lockstep-calibrate: there is no GPU here that could be timed "
                             "(cudaGetDeviceCount: "));
  CHECK(std::ranges::count(ran.output, '\n') == 1);
  CHECK(entries_of(folder.path()) == 0);
}

TEST_CASE("calibrate: two ranks without a card, started as by mpirun: exit 3 on both, at once") {
  const test::TemporaryFolder folder;
  const std::string program = "'" LOCKSTEP_CALIBRATE_PROGRAM "'";
  if (!holds(test::run_in_source_tree(program + " --help").output, "--nccl")) return;
  const std::string rank =
      "CUDA_VISIBLE_DEVICES= OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=$i "
      "OMPI_COMM_WORLD_LOCAL_RANK=$i " +
      program + " --nccl -o '" + folder.path() + "/p.json' 2>&1; echo \"exit $?\"";
  const std::string out =
      test::run_in_source_tree("for i in 0 1; do ( " + rank + " ) & done; wait").output;
  CHECK(std::ranges::count(out, '\n') == 4);
  const std::string_view line = "lockstep-calibrate: rank 0: there is no GPU here that could be ";
  const std::size_t first = out.find(line);
  REQUIRE(first != std::string::npos);
  CHECK(out.find(line, first + 1) != std::string::npos);
  CHECK(out.find("exit 3", out.find("exit 3") + 1) != std::string::npos);
  CHECK(entries_of(folder.path()) == 0);
}
#endif
