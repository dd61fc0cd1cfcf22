#include "tools/lockstep/perfetto_trace.hpp"

#include <cstdint>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace lockstep;

namespace {

// Four stages of two replicas, eight micro batches each.
RunResult step_to_trace(std::string_view schedule) {
  const PresetStore presets;
  RunResult result{.scenario = read_scenario("small.json",
                                             R"({"model": "megatron_1_7b",
    "cluster": {"node": "dgx_a100_80gb", "nodes": 1},
    "parallelism": {"pipeline": 4, "data": 2, "schedule": ")" +
                                                 std::string(schedule) + R"("},
    "batch": {"sequences": 16, "tokens": 2048}})",
                                             presets),
                   .report = {},
                   .memory = {}};
  result.report = simulate_step(result.scenario, {.record_timeline = true, .keep_actors = true});
  return result;
}

/// A message of protobuf, by field: numbers as they are, parts as text.
struct Decoded {
  std::multimap<unsigned, std::uint64_t> numbers;
  std::multimap<unsigned, std::string> parts;
  [[nodiscard]] std::uint64_t number(unsigned field) const {
    const auto at = numbers.find(field);
    return at == numbers.end() ? 0 : at->second;
  }
};
Decoded decoded(std::string_view bytes) {
  Decoded out;
  const auto varint = [&bytes] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      REQUIRE_FALSE(bytes.empty());
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80U) return value;
    }
  };
  while (!bytes.empty()) {
    const std::uint64_t key = varint();
    const auto field = static_cast<unsigned>(key >> 3U);
    if ((key & 7U) == 0) {
      out.numbers.emplace(field, varint());
    } else if ((key & 7U) == 1) {
      std::uint64_t value = 0;
      for (unsigned i = 0; i < 8; ++i) {
        value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
      }
      bytes.remove_prefix(8);
      out.numbers.emplace(field, value);
    } else {
      REQUIRE((key & 7U) == 2);
      const std::uint64_t size = varint();
      REQUIRE(size <= bytes.size());
      out.parts.emplace(field, std::string(bytes.substr(0, size)));
      bytes.remove_prefix(size);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("Perfetto trace: a message flows to the pass that takes it, on the stage it is sent to") {
  const StepReport report = step_to_trace("1f1b").report;
  const std::vector<MessageFlow> flows = message_flows(report);
  // Three borders between stages, eight micro batches, both ways.
  CHECK(flows.size() == 3 * 8 * 2);
  for (const MessageFlow& flow : flows) {
    const TimelineSlice& sent = report.timeline[flow.message];
    const TimelineSlice& taken = report.timeline[flow.pass];
    CHECK(sent.end <= taken.start);
    CHECK(taken.actor == (sent.stream == 1 ? sent.actor + 1 : sent.actor - 1));
    CHECK(sent.micro_batch == taken.micro_batch);
  }
}

TEST_CASE("Perfetto trace: slices end on the track where they began, in order of time") {
  for (const std::string_view schedule : {"1f1b", "zb_h1", "zb_v"}) {
    CAPTURE(schedule);
    const test::TemporaryFolder folder;
    const std::string path = folder.path() + "/step.pftrace";
    OutputFile file(path);
    write_perfetto(file, step_to_trace(schedule));
    file.commit();
    const std::string bytes = read_text_file(path);
    std::map<std::uint64_t, int> open;  // slices by track
    std::size_t slices = 0, tracks = 0;
    std::uint64_t last = 0;
    const Decoded trace = decoded(bytes);
    for (const auto& [field, packet_bytes] : trace.parts) {
      REQUIRE(field == 1);
      const Decoded packet = decoded(packet_bytes);
      tracks += packet.parts.count(60);
      if (packet.parts.count(11) == 0) continue;
      CHECK(packet.number(8) >= last);
      last = packet.number(8);
      const Decoded event = decoded(packet.parts.find(11)->second);
      const std::uint64_t type = event.number(9), track = event.number(11);
      REQUIRE((type == 1 || type == 2));
      open[track] += type == 1 ? 1 : -1;
      CHECK(open[track] >= 0);
      CHECK(open[track] <= 1);
      slices += type == 1 ? 1 : 0;
    }
    CHECK(slices >= 4 * 8 * 2);
    CHECK(tracks >= 8);
    for (const auto& [track, still] : open) CHECK(still == 0);
  }
}
