#include "tools/calibrate/rendezvous.hpp"

#include <chrono>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "models/base/input_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tools/calibrate/card.hpp"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

/// Bytes that a text would not survive.
const std::string kId{"\x00\xff\n id \x7f\x80", 9};

double steady_time() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
void short_wait(Seconds) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

Rendezvous meeting(const std::string& file, int rank, int ranks, Seconds patience) {
  return {file, rank, ranks, patience, {.seconds = steady_time, .wait = short_wait}};
}

/// What each rank comes back with: the id, or "failed: " and why.
std::vector<std::string> all_meet(const std::string& file,
                                  const std::vector<std::string>& obstacles) {
  constexpr Seconds kLong{60};
  std::vector<std::string> out(obstacles.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < obstacles.size(); ++i) {
    threads.emplace_back([&, i] {
      const int rank = static_cast<int>(i), ranks = static_cast<int>(obstacles.size());
      try {
        out[i] = meeting(file, rank, ranks, kLong).meet(rank == 0 ? kId : "", obstacles[i]);
      } catch (const CardUnavailable& e) {
        out[i] = std::string("failed: ") + e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return out;
}

bool is_empty(const test::TemporaryFolder& folder) { return fs::is_empty(folder.path()); }

}  // namespace

TEST_CASE("rendezvous: every rank gets rank 0's id, and no file stays") {
  const test::TemporaryFolder folder;
  for (const std::size_t ranks : {2UL, 9UL}) {
    const std::vector<std::string> ids =
        all_meet(folder.path() + "/id", std::vector<std::string>(ranks));
    CHECK(ids == std::vector<std::string>(ranks, kId));
  }
  CHECK(is_empty(folder));
}

TEST_CASE("rendezvous: what an earlier run left is not taken") {
  const test::TemporaryFolder folder;
  // Check-ins that rank 0 would wait for, an id that is none of ours, and an obstacle of old.
  folder.write("id.0", "lockstep-calibrate nccl id\n6f6c64\n\nold-nonce\n");
  folder.write("id.1", "lockstep-calibrate check-in\nold-nonce\n\n");
  folder.write("id.2", "lockstep-calibrate check-in\nold-nonce\ncard 2 was busy\n");
  const std::vector<std::string> ids = all_meet(folder.path() + "/id", {"", "", ""});
  CHECK(ids == std::vector<std::string>(3, kId));
  CHECK(is_empty(folder));
}

TEST_CASE("rendezvous: one rank's obstacle is every rank's, at once") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> all = all_meet(folder.path() + "/id", {"", "", "it is busy", ""});
  CHECK(all == std::vector<std::string>(4, "failed: rank 2: it is busy"));
  const std::vector<std::string> first = all_meet(folder.path() + "/id", {"no GPU", "", ""});
  CHECK(first == std::vector<std::string>(3, "failed: rank 0: no GPU"));
  CHECK(is_empty(folder));
}

TEST_CASE("rendezvous: rank 0 says who did not come, the others that nobody led") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/id";
  CHECK_THROWS_WITH_AS(
      meeting(file, 0, 3, Seconds{0.01}).meet(kId, ""),
      doctest::Contains("of 3 ranks, rank 1, 2 did not come within 0 s; was each started"),
      CardUnavailable);
  CHECK_THROWS_WITH_AS(meeting(file, 0, 20, Seconds{0.01}).meet(kId, ""),
                       doctest::Contains("rank 1, 2, 3, 4, 5, 6, 7, 8 and 11 others did not come"),
                       CardUnavailable);
  CHECK_THROWS_WITH_AS(meeting(file, 2, 3, Seconds{0.01}).meet("", ""),
                       doctest::Contains("rank 2 heard nothing of rank 0 in "), CardUnavailable);
  CHECK(is_empty(folder));
}

TEST_CASE("rendezvous: a folder that cannot be written is a mistake of the caller") {
  CHECK_THROWS_AS(meeting("/nonexistent/id", 1, 2, Seconds{1}).meet("", ""), InputError);
  CHECK_THROWS_AS(meeting("/nonexistent/id", 0, 2, Seconds{1}).meet(kId, ""), InputError);
}
