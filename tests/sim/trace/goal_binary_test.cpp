// GOAL as LogGOPSim's txt2bin packs it, written here by an encoder of our own after Parser.hpp
// (Graph::serialize_mmap), against the same schedule as text.
#include <algorithm>
#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/formats/read_trace.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr std::uint8_t kGoalSend = 1, kGoalReceive = 2, kGoalCalculation = 3;

struct MadeOperation {
  std::uint8_t type = kGoalCalculation;
  std::uint64_t size = 0;  ///< ns or bytes
  std::uint32_t peer = 0, tag = 0;
  std::uint8_t cpu = 0, nic = 0;
  std::vector<std::uint32_t> waits{}, starts{};  ///< requires, irequires
};
using MadeRank = std::vector<MadeOperation>;
using MadeSchedule = std::vector<MadeRank>;

std::string goal_text(const MadeSchedule& schedule) {
  std::string out = fmt::format("num_ranks {}\n", schedule.size());
  for (std::size_t r = 0; r < schedule.size(); ++r) {
    out += fmt::format("rank {} {{\n", r);
    std::string dependencies;
    for (std::size_t i = 0; i < schedule[r].size(); ++i) {
      const MadeOperation& own = schedule[r][i];
      if (own.type == kGoalCalculation) {
        out += fmt::format("l{}: calc {} cpu {}\n", i, own.size, own.cpu);
      } else {
        out += fmt::format("l{}: {} {}b {} {} tag {} cpu {}\n", i,
                           own.type == kGoalSend ? "send" : "recv", own.size,
                           own.type == kGoalSend ? "to" : "from", own.peer, own.tag, own.cpu);
      }
      for (const std::uint32_t other : own.waits) {
        dependencies += fmt::format("l{} requires l{}\n", i, other);
      }
      for (const std::uint32_t other : own.starts) {
        dependencies = fmt::format("l{} irequires l{}\n", i, other) + dependencies;
      }
    }
    out += dependencies + "}\n";
  }
  return out;
}

template <class Number>
void put_goal(std::string& out, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF);
  }
}

std::string packed_rank(const MadeRank& rank) {
  std::vector<std::vector<std::uint32_t>> ends(rank.size()), starts(rank.size());
  std::vector<std::uint32_t> roots;
  for (std::uint32_t i = 0; i < rank.size(); ++i) {
    for (const std::uint32_t other : rank[i].waits) ends[other].push_back(i);
    for (const std::uint32_t other : rank[i].starts) starts[other].push_back(i);
    if (rank[i].waits.empty() && rank[i].starts.empty()) roots.push_back(i);
  }
  std::string out, others;
  put_goal(out, static_cast<std::uint32_t>(rank.size()));
  put_goal(out, static_cast<std::uint32_t>(roots.size()));
  for (const std::uint32_t root : roots) put_goal(out, root);
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < rank.size(); ++i) {
    const MadeOperation& own = rank[i];
    put_goal(out, static_cast<std::uint32_t>(own.waits.size() + own.starts.size()));
    put_goal(out, own.type);
    put_goal(out, own.peer);
    put_goal(out, own.size);
    put_goal(out, own.tag);
    put_goal(out, own.cpu);
    put_goal(out, own.nic);
    for (const auto* waiting : {&ends[i], &starts[i]}) {
      put_goal(out, static_cast<std::uint32_t>(waiting->size()));
      put_goal(out, next);
      next += static_cast<std::uint32_t>(waiting->size());
      for (const std::uint32_t other : *waiting) put_goal(others, other);
    }
  }
  return out + others;
}

std::string goal_bytes(const MadeSchedule& schedule) {
  std::string table, ranks;
  put_goal(table, static_cast<std::uint32_t>(schedule.size()));
  put_goal(table, std::uint8_t{1});
  put_goal(table, std::uint8_t{0});
  std::uint64_t at = table.size() + 16 * schedule.size();
  for (const MadeRank& rank : schedule) {
    const std::string packed = packed_rank(rank);
    put_goal(table, at);
    at += packed.size();
    put_goal(table, at);
    ranks += packed;
  }
  std::string out;
  put_goal(out, std::uint64_t{4223});
  return out + table + ranks;
}

/// Ranks that compute, start things with others, and pass a message around twice.
MadeSchedule made_schedule() {
  constexpr std::uint32_t kRanks = 6;
  MadeSchedule out(kRanks);
  std::uint64_t draw = 1;
  const auto random = [&](std::uint64_t most) {
    draw = draw * 6364136223846793005ULL + 1442695040888963407ULL;
    return (draw >> 33U) % most;
  };
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    MadeRank& rank = out[r];
    rank.push_back({.size = 1000 + random(5000)});
    for (std::uint32_t round = 0; round < 2; ++round) {
      const auto first = static_cast<std::uint32_t>(rank.size()) - 1;
      rank.push_back({.type = kGoalSend,
                      .size = 100'000 + 1000 * round,
                      .peer = (r + 1) % kRanks,
                      .tag = round,
                      .cpu = 1,
                      .waits = {first},
                      .starts = {}});
      rank.push_back({.type = kGoalReceive,
                      .size = 100'000 + 1000 * round,
                      .peer = (r + kRanks - 1) % kRanks,
                      .tag = round,
                      .cpu = 1,
                      .waits = {},
                      .starts = {first + 1}});
      // Both named in the order that is not the file's; beside it one that starts with it.
      rank.push_back({.size = random(9000), .waits = {first + 2, first}, .starts = {}});
      rank.push_back(
          {.size = random(9000), .cpu = 2, .waits = {first}, .starts = {first + 3, first + 1}});
    }
  }
  return out;
}

std::string written_goal(const TemporaryFolder& folder, const std::string& name,
                         const std::string& bytes) {
  const std::string file = folder.path() + "/" + name;
  std::ofstream(file, std::ios::binary) << bytes;
  return file;
}

std::string binary_mistake(const std::string& bytes) {
  try {
    (void)read_goal_binary("s.bin", bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void check_same_trace(const Trace& a, const Trace& b) {
  CHECK(a.ranks == b.ranks);
  CHECK(a.rank_first == b.rank_first);
  CHECK(a.begins == b.begins);
  CHECK(a.strings == b.strings);
  CHECK(a.dependency_first == b.dependency_first);
  CHECK(a.dependencies == b.dependencies);
  CHECK(a.messages == b.messages);
  CHECK(a.files == b.files);
  REQUIRE(a.size() == b.size());
  for (std::size_t n = 0; n < a.size(); ++n) {
    CHECK(a.nodes[n].duration == b.nodes[n].duration);
    CHECK(a.nodes[n].subject == b.nodes[n].subject);
    CHECK(a.nodes[n].stream == b.nodes[n].stream);
    CHECK(a.nodes[n].kind == b.nodes[n].kind);
    CHECK(a.ids[n] == b.ids[n]);
    CHECK(a.names[n] == b.names[n]);
  }
}

std::string goal_with_byte(std::string bytes, std::size_t at, unsigned char value) {
  bytes.at(at) = static_cast<char>(value);
  return bytes;
}

}  // namespace

TEST_CASE("GOAL binary: a schedule is replayed as its text is, byte for byte") {
  const TemporaryFolder folder;
  const MadeSchedule schedule = made_schedule();
  const std::string text = folder.write("s.goal", goal_text(schedule));
  const std::string binary = written_goal(folder, "s.bin", goal_bytes(schedule));
  for (const char* format : {"json", "csv", "table"}) {
    const auto replayed = [&](const std::string& file, const std::vector<std::string>& more) {
      std::vector<std::string> args{"replay",  file, "--node",   "dgx_h100",
                                    "--nodes", "1",  "--format", format};
      args.insert(args.end(), more.begin(), more.end());
      const Ran ran = lockstep_with(args);
      CHECK_MESSAGE(ran.exit == Exit::ok, ran.err);
      return ran.out;
    };
    const std::string expected = replayed(text, {});
    CHECK(expected.size() > 100);
    CHECK(replayed(binary, {}) == expected);
    CHECK(replayed(binary, {"--from", "goal-bin"}) == expected);
  }
}

TEST_CASE("GOAL: read rank by rank, a schedule is the trace that all of its ranks make together") {
  const MadeSchedule schedule = made_schedule();
  const std::string text = goal_text(schedule), bytes = goal_bytes(schedule);
  std::vector<std::size_t> read;
  const auto read_to = [&](std::size_t end) { read.push_back(end); };
  const auto check = [&](const std::optional<Trace>& trace, const Trace& whole, std::size_t size) {
    REQUIRE(trace);
    check_same_trace(*trace, whole);
    CHECK(read.size() == schedule.size());
    CHECK(std::ranges::is_sorted(read));
    CHECK(read.back() <= size);
    read.clear();
  };
  check(read_goal_in_order("s.goal", text, read_to), join(read_goal("s.goal", text)), text.size());
  check(read_goal_binary_in_order("s.goal", bytes, read_to),
        join(read_goal_binary("s.goal", bytes)), bytes.size());
  // Dependencies wherever the text says them, labels that many others share a beginning with.
  std::string many = "num_ranks 1\nrank 0 {\n";
  for (int i = 0; i < 3000; ++i) many += fmt::format("l{0}: calc {0}\n", i);
  for (int i = 2999; i > 1; --i) many += fmt::format("l{} requires l{}\n", i, i - 2);
  for (int i = 1; i < 3000; i += 2) many += fmt::format("l{} requires l{}\n", i, i - 1);
  const Trace trace = read_goal_in_order("s.goal", many + "}", read_to).value();
  check_same_trace(trace, join(read_goal("s.goal", many + "}")));
  CHECK(std::ranges::equal(trace.dependencies_of(2999), std::array{2997U, 2998U}));
  CHECK(trace.ids[2999] == 3000);
}

TEST_CASE("GOAL: what cannot be read rank by rank is left to who reads all of it") {
  const auto ignore = [](std::size_t /*end*/) {};
  const std::string calc = " {\na: calc 1\n}\n", send = " {\na: send 1b to 5\n}\n";
  for (const std::string& text :
       {"num_ranks 2\nrank 1" + calc + "rank 0" + calc,  // right, in another order
        "rank 0" + calc + "num_ranks 1\n",               // right, said later
        "num_ranks 2\nrank 0" + calc,                    // one is missing
        "num_ranks 1\nrank 0" + calc + "rank 1" + calc,  // one too many
        "num_ranks 1\nrank 0" + send, std::string("calc")}) {
    CHECK_FALSE(read_goal_in_order("s.goal", text, ignore));
  }
  CHECK_FALSE(read_goal_binary_in_order("s.bin", "cut", ignore));
  const TemporaryFolder folder;
  const std::vector<std::string> where{"--node", "dgx_h100", "--nodes", "1"};
  const auto replayed = [&](const std::string& text) {
    std::vector<std::string> args{"replay", folder.write("s.goal", text)};
    args.insert(args.end(), where.begin(), where.end());
    return lockstep_with(args);
  };
  CHECK(replayed("num_ranks 2\nrank 1" + calc + "rank 0" + calc).exit == Exit::ok);
  CHECK(replayed("num_ranks 1\nrank 0" + send).err.find("allowed: another rank") !=
        std::string::npos);
}

TEST_CASE("trace: numbers take as many bytes as the largest, and stay what they are") {
  SmallNumbers numbers;
  const std::vector<std::uint64_t> all{0, 255, 256, 7, 65535, 65536, 1ULL << 32U, 3, ~0ULL};
  for (std::size_t i = 0; i < all.size(); ++i) {
    numbers.push_back(all[i]);
    REQUIRE(numbers.size() == i + 1);
    for (std::size_t k = 0; k <= i; ++k) CHECK(numbers[k] == all[k]);
  }
}

TEST_CASE("GOAL: irequires takes what the other one waits for, wherever the text says that") {
  const std::string head = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nc: calc 3\nd: calc 4\n";
  const auto waits = [](const std::vector<RankTrace>& ranks) { return ranks.at(0).dependencies; };
  const auto expected =
      waits(read_goal("g", head + "b requires a\nc irequires b\nd irequires c\n}"));
  CHECK(expected == std::vector<std::uint64_t>{1, 1, 1});
  CHECK(waits(read_goal("g", head + "d irequires c\nc irequires b\nb requires a\n}")) == expected);
  try {
    (void)read_goal("g", head + "a irequires b\nb irequires c\nc irequires a\n}");
    FAIL("a circle was read");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()) ==
          "g, rank 0: found operation 3 that starts with others in a circle; allowed: irequires "
          "without circles");
  }
}

TEST_CASE("GOAL: as it stands, a schedule has NICs, starts, and receives from anybody") {
  const auto check = [](const std::vector<GoalRank>& ranks) {
    REQUIRE(ranks.size() == 1);
    REQUIRE(ranks[0].operations.size() == 3);
    const GoalRank::Operation& receive = ranks[0].operations[1];
    CHECK(receive.kind == GoalRank::Kind::receive);
    CHECK(receive.size == 10);
    CHECK(receive.peer == GoalRank::kAny);
    CHECK(receive.tag == GoalRank::kAny);
    CHECK(receive.cpu == 1);
    CHECK(receive.nic == 2);
    REQUIRE(ranks[0].ends.size() == 1);
    CHECK(ranks[0].ends[0].operation == 1);
    CHECK(ranks[0].ends[0].other == 0);
    REQUIRE(ranks[0].starts.size() == 1);
    CHECK(ranks[0].starts[0].operation == 2);
    CHECK(ranks[0].starts[0].other == 1);
  };
  const MadeRank made{{.size = 5},
                      {.type = kGoalReceive,
                       .size = 10,
                       .peer = GoalRank::kAny,
                       .tag = GoalRank::kAny,
                       .cpu = 1,
                       .nic = 2,
                       .waits = {0}},
                      {.size = 7, .waits = {}, .starts = {1}}};
  check(read_goal_binary_ranks("s.bin", goal_bytes({made})));
  check(read_goal_ranks("s.goal",
                        "num_ranks 1\nrank 0 {\na: calc 5\nb: recv 10b from -1 tag -1 cpu 1 nic "
                        "2\nc: calc 7\nb requires a\nc irequires b\n}"));
  CHECK(binary_mistake(goal_bytes({made})) ==
        "s.bin, rank 0, operation 2: found any sender; allowed: one rank, up to 999999");
}

TEST_CASE("GOAL binary: it is told by its first bytes, packed or not") {
  const std::string bytes = goal_bytes({{{.size = 5}}});
  CHECK(recognise_trace(bytes) == TraceFormat::goal_binary);
  CHECK(read_goal_binary("s.bin", bytes).at(0).nodes.at(0).duration.ps == 5000);
  const std::string text = "num_ranks 1\nrank 0 {\ncalc 5\n}\n";
  CHECK(binary_mistake(text) ==
        "s.bin: found no number 4223 at its beginning; allowed: a schedule that txt2bin wrote");
  std::string used = bytes;
  used.replace(0, 2, "\x26\x09");
  CHECK(binary_mistake(used) ==
        "s.bin: found a schedule that a simulation with --save-mem has used up; allowed: one that "
        "txt2bin wrote anew");
}

TEST_CASE("GOAL binary: every cut of a file is one line") {
  const std::string bytes = goal_bytes(made_schedule());
  for (std::size_t length = 8; length < bytes.size(); length += length < 200 ? 1 : 37) {
    CAPTURE(length);
    const std::string line = binary_mistake(bytes.substr(0, length));
    CHECK(line.starts_with("s.bin"));
    CHECK(line.find('\n') == std::string::npos);
  }
}

TEST_CASE("GOAL binary: hostile numbers are one line each") {
  // Two operations, of which the second waits for the first. Behind 8 + 6 + 16 bytes lie counts of
  // operations and roots and a root, then the operations.
  const MadeSchedule pair{{{.size = 5}, {.size = 6, .waits = {0}, .starts = {}}}};
  const std::string bytes = goal_bytes(pair);
  constexpr std::size_t kFirst = 8 + 6 + 16 + 12;
  REQUIRE(bytes.size() == kFirst + 2 * 39 + 4);
  struct Hostile {
    std::size_t at;
    unsigned char value;
    const char* found;
  };
  for (const Hostile& each : {
           Hostile{8, 0, "s.bin: found 0 ranks; "},
           Hostile{11, 255, "s.bin: found 4278190081 ranks; "},
           Hostile{9, 1, "s.bin: found 116 bytes; allowed: a table of 257 ranks"},
           Hostile{14, 7, "s.bin: found rank 0 in bytes 7 to "},
           Hostile{29, 255, "s.bin: found rank 0 in bytes 22 to 183"},
           Hostile{33, 255, "s.bin, rank 0: found 94 bytes; allowed: as many as its operations"},
           Hostile{37, 255, "s.bin, rank 0: found 94 bytes; allowed: as many as its operations"},
           Hostile{kFirst + 4, 9, "s.bin, rank 0, operation 1: found type 9; allowed: 1 (send)"},
           Hostile{kFirst + 16, 255, "s.bin, rank 0, operation 1: found a calculation of "},
           Hostile{kFirst, 1, "s.bin, rank 0, operation 1: found a count of 1 that it waits for"},
           Hostile{kFirst + 23, 2, "s.bin, rank 0, operation 1: found 2 operations from number 0"},
           Hostile{kFirst + 27, 9, "s.bin, rank 0, operation 1: found 1 operation from number 9"},
           Hostile{kFirst + 78, 7, "s.bin, rank 0, operation 1: found operation 8 that waits"},
       }) {
    CAPTURE(each.at);
    const std::string line = binary_mistake(goal_with_byte(bytes, each.at, each.value));
    CHECK_MESSAGE(line.starts_with(each.found), line);
    CHECK(line.find('\n') == std::string::npos);
  }
  CHECK(binary_mistake(goal_bytes({{{.type = kGoalReceive, .size = 8, .peer = 0xFFFFFFFF}}}))
            .starts_with("s.bin, rank 0, operation 1: found any sender; allowed: one rank"));
  CHECK(binary_mistake(goal_bytes({{{.type = kGoalReceive, .size = 8, .tag = 0xFFFFFFFF}}}))
            .starts_with("s.bin, rank 0, operation 1: found any tag; allowed: one tag"));
}
