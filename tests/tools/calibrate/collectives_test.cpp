#include <algorithm>
#include <atomic>
#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sim/measured/validate_profile.hpp"
#include "sim/scenario/read_profile.hpp"
#include "tests/support/near.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/calibrate/made_up_communicator.hpp"
#include "tools/calibrate/calibrate.hpp"
#include "tools/calibrate/collective_session.hpp"

using namespace lockstep;

namespace {

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool includes(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Runs the program with --nccl on ranks that one process drives.
class CollectivesRun {
 public:
  int nodes = 2, per_node = 8;
  std::function<void(test::MadeUpCommunicator&)> prepare;
  std::function<void(CommunicatorFacts&)> change;
  std::vector<CommunicatorStart> starts;
  std::string out, err;
  PresetStore presets;
  std::atomic<double> clock = 0;  // a guard against hanging calls reads it too

  CalibrateExit with(std::vector<std::string> args) {
    args.insert(args.begin(), "--nccl");
    std::ostringstream out_text, err_text;
    Console console{.out = out_text, .err = err_text, .style = {}, .err_is_terminal = false};
    const CalibrateExit exit =
        run_calibrate(args, console,
                      {.open_card = [](int) -> std::unique_ptr<Card> {
                         FAIL("a card was opened by itself");
                         return nullptr;
                       },
                       .seconds = [this] { return clock.load(); },
                       .date = "2026-11-21",
                       .environment = [](const char*) { return std::nullopt; },
                       .open_communicator = [this](const auto& start) { return open(start); },
                       .end_now = [](CalibrateExit) { FAIL("it was ended"); }});
    out = out_text.str();
    err = err_text.str();
    return exit;
  }
  Profile profile_at(const std::string& path) {
    return read_profile(path, content_of(path), presets);
  }

 private:
  std::unique_ptr<Communicator> open(const CommunicatorStart& start) {
    starts.push_back(start);
    CommunicatorFacts facts = test::facts_of(nodes, per_node, gibibytes(8));
    if (change) change(facts);
    const NodeSpec& node = presets.node("dgx_h100");
    auto made_up = std::make_unique<test::MadeUpCommunicator>(
        facts, node, presets.transport(node.transport), launch_, clock);
    if (prepare) prepare(*made_up);
    return made_up;
  }
  test::MadeUpLaunch launch_{1};
};

}  // namespace

TEST_CASE("calibrate --nccl: what is written, the models read, and find the network as it is") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/fabric.json";
  CollectivesRun run;
  const CalibrateExit exit = run.with({"-o", path, "--node", "dgx_h100"});
  CHECK(run.err.empty());
  REQUIRE(exit == CalibrateExit::ok);
  REQUIRE(run.starts.size() == 1);
  CHECK(run.starts.front().id_file == path + ".nccl-id");
  CHECK(includes(run.out, "16 x NVIDIA H100 80GB HBM3 as h100_sxm5_80gb, 2 nodes of 8: "));
  CHECK(includes(run.out, "all_reduce 8,589,934,592 bytes"));

  const Profile profile = run.profile_at(path);
  CHECK(profile.gpu == "h100_sxm5_80gb");
  CHECK(profile.spans_nodes());
  REQUIRE(profile.network.has_value());
  CHECK(profile.collectives.size() == profile.points());
  REQUIRE(profile.collectives.size() > 120);
  for (const CollectivePoint& p : profile.collectives) {
    CHECK(p.nodes == 2);
    CHECK(p.gpus_per_node == 8);
    CHECK(p.spread == test::near(0.02).epsilon(1e-3));
  }
  // Made up to be 10 % slower than the law on this very network.
  const PointTable table = validate_profile(path, run.presets);
  const auto by_law = std::ranges::find(table.summary, "all, by law", &PointSummary::group);
  REQUIRE(by_law != table.summary.end());
  CHECK(by_law->median_abs == test::near(1 - 1 / 1.1).epsilon(1e-3));
  CHECK(by_law->p90_abs == test::near(1 - 1 / 1.1).epsilon(1e-3));
}

TEST_CASE("calibrate --nccl: products beside collectives are conditions, and no points") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/fabric.json";
  CollectivesRun run;
  REQUIRE(run.with({"-o", path, "--only", "sendrecv,overlap"}) == CalibrateExit::ok);
  CHECK(includes(content_of(path),
                 "\"gemm bf16 forward 8192 x 8192 x 8192 beside all_reduce 268,435,456 bytes\": "
                 "\"the product takes 1.1 times as long as the 1.00 ms alone, the collective 1.25 "
                 "times as long as its 2.00 ms\""));
  const auto points = run.profile_at(path).collectives.size();
  CHECK(includes(content_of(path),
                 std::to_string(points + 6) + " of " + std::to_string(points + 6) + " measured"));
  CHECK(includes(content_of(path), "beside all_reduce 268,435,456 bytes, high priority\": \"the"));
  std::filesystem::remove(path);
  CHECK(run.with({"-o", path, "--only", "overlap"}) == CalibrateExit::ok);
  CHECK(includes(run.out, "No profile is written"));
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("calibrate --nccl: collectives that are called otherwise are conditions, and no points") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/fabric.json";
  CollectivesRun run;
  REQUIRE(run.with({"-o", path, "--only", "sendrecv,variants"}) == CalibrateExit::ok);
  CHECK(includes(content_of(path),
                 "\"all_reduce 268,435,456 bytes two at once\": \"1.9 times as long as the 1.00 ms "
                 "of a plain one\""));
  const auto points = run.profile_at(path).collectives.size();
  CHECK(includes(content_of(path),
                 std::to_string(points + 18) + " of " + std::to_string(points + 18) + " measured"));
}

TEST_CASE("calibrate --nccl: inside one machine no network is asked for") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/fabric.json";
  CollectivesRun run;
  run.nodes = 1;
  REQUIRE(run.with({"-o", path, "--only", "alltoall"}) == CalibrateExit::ok);
  CHECK_FALSE(includes(run.out, "does not say what joins the nodes"));
  const Profile profile = run.profile_at(path);
  CHECK_FALSE(profile.spans_nodes());
  CHECK(std::ranges::all_of(profile.collectives, [](const CollectivePoint& p) {
    return p.op == CollectiveOp::all_to_all && p.gpus_per_node == 8;
  }));
  run.nodes = 2;
  REQUIRE(run.with({"-o", path}) == CalibrateExit::ok);
  CHECK(includes(run.out, "does not say what joins the nodes"));
}

TEST_CASE("calibrate --nccl: what does not fit into the time is left out, and said") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/fabric.json";
  CollectivesRun run;
  run.prepare = [](test::MadeUpCommunicator& c) { c.seconds_a_task = 1; };
  CHECK(run.with({"-o", path, "--minutes", "1"}) == CalibrateExit::ok);
  CHECK(run.clock <= 60);
  CHECK(run.clock > 40);
  CHECK(includes(content_of(path), "left out for lack of time"));
  CHECK(includes(content_of(path), "; rank 0: 1980 MHz, 300 W, 50 C (means, hottest)"));
}

TEST_CASE("calibrate --nccl: a wrong result costs its point, a dead rank the rest") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/fabric.json";
  CollectivesRun run;
  run.prepare = [](test::MadeUpCommunicator& c) {
    c.before_each = [](std::size_t nth) {
      if (nth == 3) throw TaskFailed("wrong result: 7 elements of a rank");
      if (nth == 9) throw CardError("a collective: remote process exited");
    };
  };
  CHECK(run.with({"-o", path}) == CalibrateExit::failed);
  CHECK(run.profile_at(path).collectives.size() == 7);
  CHECK(includes(run.err, "bytes: wrong result: 7 elements of a rank\n"));
  CHECK(includes(run.err, "lockstep-calibrate: rank 0: a collective: remote process exited\n"));
  CHECK(includes(content_of(path), "7 of "));
  CHECK(includes(content_of(path), "\"ended early by\": \"a collective: remote process exited\""));
}

TEST_CASE("calibrate --nccl: Ctrl-C writes what was measured until then, exit 130") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/fabric.json";
  CollectivesRun run;
  run.prepare = [](test::MadeUpCommunicator& c) {
    c.before_each = [](std::size_t nth) {
      if (nth == 6) std::raise(SIGINT);
    };
  };
  CHECK(run.with({"-o", path}) == CalibrateExit::interrupted);
  CHECK(run.profile_at(path).collectives.size() == 6);
}

TEST_CASE("calibrate --nccl: ranks that give no profile are refused, exit 3 or 2, no file") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/fabric.json";
  CollectivesRun run;
  run.change = [](CommunicatorFacts& facts) { facts.devices.back() = "NVIDIA H200"; };
  CHECK(run.with({"-o", path}) == CalibrateExit::no_card);
  CHECK(run.err ==
        "lockstep-calibrate: the ranks have different cards: \"NVIDIA H100 80GB HBM3\" and "
        "\"NVIDIA H200\"\n");
  run.change = [](CommunicatorFacts& facts) {
    facts.hosts.resize(1);
    facts.devices.resize(1);
  };
  CHECK(run.with({"-o", path}) == CalibrateExit::no_card);
  CHECK(includes(run.err, "there is one GPU; collectives need two at least"));
  run.change = [](CommunicatorFacts& facts) { facts.hosts.back() = "another"; };
  CHECK(run.with({"-o", path}) == CalibrateExit::bad_input);
  CHECK(includes(run.err, "allowed: as many on every machine"));
  run.change = {};
  CHECK(run.with({"-o", path, "--node", "dgx_a100_80gb"}) == CalibrateExit::bad_input);
  CHECK(run.err ==
        "--node: found \"dgx_a100_80gb\"; allowed: a node with h100_sxm5_80gb and NICs\n");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("calibrate --nccl: mistakes on the command line, before any rank is waited for") {
  struct Mistake {
    std::vector<std::string> args;
    std::string line;
  };
  CollectivesRun run;
  for (const Mistake& mistake : std::vector<Mistake>{
           {{}, "lockstep-calibrate: no --output; for example: -o h100.profile.json\n"},
           {{"-o", "x", "--only", "gemm"},
            "--only: found \"gemm\"; allowed: all_reduce, all_gather, reduce_scatter, alltoall, "
            "sendrecv, overlap, variants\n"},
           {{"-o", "x", "--device", "1"},
            "lockstep-calibrate: --device is not for --nccl: the launcher says which rank has "
            "which card, CUDA_VISIBLE_DEVICES which cards there are\n"}}) {
    CHECK(run.with(mistake.args) == CalibrateExit::bad_input);
    CHECK(run.err == mistake.line);
  }
  CHECK(run.with({"-o", "x", "--node", "dgx_h101"}) == CalibrateExit::bad_input);
  CHECK(run.with({"-o", "/nonexistent/x"}) == CalibrateExit::bad_input);
  CHECK(run.starts.empty());
}

TEST_CASE("collective session: processes with clocks of their own do the same, and end together") {
  constexpr int kProcesses = 4;
  const PresetStore presets;
  const NodeSpec& node = presets.node("dgx_h100");
  const TransportSpec& transport = presets.transport(node.transport);
  test::MadeUpLaunch launch(kProcesses);
  std::vector<std::vector<CollectiveTask>> done(kProcesses);
  std::vector<std::string> printed(kProcesses), conditions(kProcesses);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kProcesses; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      CommunicatorFacts facts = test::facts_of(1, kProcesses, gibibytes(8));
      facts.rank = rank;
      std::atomic<double> clock = rank;  // they did not start at once
      test::MadeUpCommunicator ranks(facts, node, transport, launch, clock);
      ranks.seconds_a_task = 0.1 * (rank + 1);  // nor do they wait alike
      std::ostringstream out, err;
      Console console{.out = out, .err = err, .style = {}, .err_is_terminal = false};
      CollectiveSession session(ranks, [&] { return clock.load(); }, console);
      (void)session.run(plan_collectives(kProcesses, gibibytes(8), {}), 20);
      done[at] = ranks.tasks;
      printed[at] = out.str();
      conditions[at] = session.conditions().front().second;
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(done[0].size() > 20);
  CHECK(includes(conditions[0], "left out for lack of time"));
  CHECK_FALSE(printed[0].empty());
  for (std::size_t rank = 1; rank < kProcesses; ++rank) {
    CHECK(printed[rank].empty());
    CHECK(conditions[rank] == conditions[0]);
    REQUIRE(done[rank].size() == done[0].size());
    for (std::size_t i = 0; i < done[0].size(); ++i) {
      CHECK(describe(done[rank][i]) == describe(done[0][i]));
    }
  }
}
