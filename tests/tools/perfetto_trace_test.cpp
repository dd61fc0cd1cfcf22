#include "tools/views/traces/perfetto_trace.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/near.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace lockstep;

namespace {

// Four stages, eight micro batches of each of two replicas a node.
RunResult step_to_trace(std::string_view schedule, int nodes = 1) {
  const PresetStore presets;
  const std::string text = fmt::format(
      R"({{"model": "megatron_1_7b", "cluster": {{"node": "dgx_a100_80gb", "nodes": {}{}}},
      "parallelism": {{"pipeline": 4, "data": {}, "schedule": "{}"}},
      "batch": {{"sequences": {}, "tokens": 2048}}}})",
      nodes, nodes > 1 ? R"(, "fabric": "rail_optimised")" : "", 2 * nodes, schedule, 16 * nodes);
  RunResult result{
      .scenario = read_scenario("small.json", text, presets), .report = {}, .memory = {}};
  result.report = simulate_step(result.scenario, {.record_timeline = true,
                                                  .keep_actors = true,
                                                  .draw_fabric = nodes > 1,
                                                  .link_rates = nodes > 1});
  return result;
}

double seconds_of(StepTime time) { return to_seconds(time).base_units(); }

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

TEST_CASE("Perfetto trace: of two chunks too, each message has its sender, and its taker in time") {
  // The second chunk of a V runs the other way: its activations go where gradients of the first go.
  for (const std::string_view schedule : {"interleaved", "zb_v"}) {
    CAPTURE(schedule);
    const StepReport report = step_to_trace(schedule).report;
    const std::vector<MessageFlow> flows = message_flows(report);
    const std::size_t crossed = schedule == "zb_v" ? 6 : 7;  // borders between the eight parts
    CHECK(flows.size() == crossed * 8 * 2);
    std::set<std::size_t> taken_once;
    for (const MessageFlow& flow : flows) {
      const TimelineSlice& sent = report.timeline[flow.message];
      const TimelineSlice& taken = report.timeline[flow.pass];
      const std::string_view kind = slice_kinds()[sent.kind].name;
      CHECK(taken_once.insert(flow.pass).second);
      CHECK(sent.end <= taken.start);
      CHECK((slice_kinds()[taken.kind].name == "forward") == (kind == "forward message"));
      CHECK(taken.actor == (sent.actor + (sent.stream == 1 ? 1 : 3)) % 4);
      // A pass of the same micro batch ended when it was sent, or before where it had to queue.
      const bool sender = std::ranges::any_of(report.timeline, [&](const TimelineSlice& pass) {
        return pass.actor == sent.actor && pass.stream == 0 && pass.end <= sent.start &&
               pass.micro_batch == sent.micro_batch &&
               (slice_kinds()[pass.kind].name == "forward") == (kind == "forward message");
      });
      CHECK(sender);
    }
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
    std::set<std::uint64_t> counters;
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
      if (type == 4) {
        counters.insert(track);
        CHECK(std::bit_cast<double>(event.number(44)) >= 0);
        continue;
      }
      REQUIRE((type == 1 || type == 2));
      open[track] += type == 1 ? 1 : -1;
      CHECK(open[track] >= 0);
      CHECK(open[track] <= 1);
      slices += type == 1 ? 1 : 0;
    }
    CHECK(slices >= 4 * 8 * 2);
    CHECK(tracks >= 8);
    CHECK(counters.size() == 4);  // the memory of each stage
    CHECK(open.contains(1));      // the critical path
    for (const auto& [track, still] : open) CHECK(still == 0);
  }
}

TEST_CASE("timeline: critical passes follow each other and take what the path says of passes") {
  for (const std::string_view schedule : {"1f1b", "zb_h1", "zb_v", "interleaved"}) {
    CAPTURE(schedule);
    const StepReport report = step_to_trace(schedule).report;
    std::vector<TimelineSlice> path;
    for (const TimelineSlice& slice : report.timeline) {
      if (slice.critical) path.push_back(slice);
    }
    std::ranges::sort(path, {}, [](const TimelineSlice& s) { return std::pair(s.start, s.end); });
    REQUIRE(path.size() > 8);
    double passes = 0, said = 0;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      CHECK(path[i].end <= path[i + 1].start);
      passes += seconds_of(path[i].end - path[i].start);
    }
    CHECK(slice_kinds()[path.back().kind].name == "optimiser");
    for (const CriticalPathPart& part : report.critical_path) {
      if (part.what.ends_with(" passes")) said += part.seconds;
    }
    CHECK(passes == test::near(said));
  }
}

TEST_CASE("memory_over_time: from what a stage holds anyway to its peak, and back") {
  for (const std::string_view schedule : {"1f1b", "zb_h1", "gpipe"}) {
    CAPTURE(schedule);
    const StepReport report = step_to_trace(schedule).report;
    for (std::size_t a = 0; a < report.actors.size(); ++a) {
      const SteppedCounter memory = memory_over_time(report, a);
      const MemoryBreakdown& of =
          report.stages[static_cast<std::size_t>(report.actors[a].stage)].memory;
      REQUIRE(!memory.value.empty());
      const double idle = (of.needed() - of.activations).base_units();
      CHECK(memory.value.front() == test::near(idle));
      CHECK(memory.value.back() == test::near(idle));
      CHECK(std::ranges::max(memory.value) == test::near(of.needed().base_units()));
      CHECK(std::ranges::is_sorted(memory.at));
    }
  }
}

TEST_CASE(
    "link_rates: where one link stands for those of two classes, its class has its capacity") {
  const PresetStore presets;
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/power/gpt3-175b-512-h100.json";
  const Scenario scenario = read_scenario(file, read_text_file(file), presets);
  const StepReport report =
      simulate_step(scenario, {.record_timeline = true, .draw_fabric = true, .link_rates = true});
  REQUIRE(!report.link_rates.empty());
  for (const LinkRates& rates : report.link_rates) {
    CAPTURE(rates.links);
    CHECK(std::ranges::max(rates.bytes_per_s) <= 1.000001 * rates.capacity.base_units());
  }
}

TEST_CASE(
    "link_rates: over time they are the bytes that crossed the links, within their capacity") {
  const StepReport report = step_to_trace("1f1b", 4).report;
  std::map<std::string, double> moved;
  for (const TrafficBytes& traffic : report.traffic) {
    for (const TrafficBytes::Part& part : traffic.over)
      moved[part.links] += part.bytes.base_units();
  }
  REQUIRE(!moved.empty());
  CHECK(report.link_rates.size() == moved.size());
  for (const LinkRates& rates : report.link_rates) {
    CAPTURE(rates.links);
    double bytes = 0;
    for (std::size_t i = 0; i < rates.at.size(); ++i) {
      CHECK(rates.bytes_per_s[i] <= 1.000001 * rates.capacity.base_units());
      if (i + 1 == rates.at.size()) break;
      bytes += rates.bytes_per_s[i] * seconds_of(rates.at[i + 1] - rates.at[i]);
    }
    CHECK(rates.bytes_per_s.back() == 0);
    CHECK(bytes == doctest::Approx(moved[rates.links]).epsilon(1e-6));
  }
}
