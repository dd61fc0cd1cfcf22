// Keys that a file lacks are named all at once, with an example of each that can be put in its
// place: in every kind of file that a person writes.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/json_text.hpp"
#include "models/base/missing_keys.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/comm_collective.hpp"
#include "sim/referee/referee_case.hpp"
#include "sim/scenario/read_filling.hpp"
#include "sim/scenario/read_profile.hpp"
#include "sim/scenario/read_queue.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/scenario/read_traffic.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/shared_scenario.hpp"
#include "sim/search/read_plan.hpp"
#include "sim/search/serving_plan.hpp"
#include "sim/search/sweep/sweep.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "topologies/formats/fabric_json.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using Json = nlohmann::ordered_json;

const std::string kRoot = LOCKSTEP_SOURCE_DIR;

/// Of every list of objects the first few: one more has no other keys, and each key is removed in
/// turn.
Json shortened(const Json& from) {
  constexpr std::size_t kKept = 2;
  if (!from.is_structured()) return from;
  Json out = from.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : from.items()) {
    if (from.is_object()) {
      out[key] = shortened(value);
    } else if (out.size() < kKept || !value.is_object()) {
      out.push_back(shortened(value));
    }
  }
  return out;
}

/// A kind of file: an example, and who reads its text. Files that it names are found from `file`.
struct Kind {
  std::string name, file;
  std::function<void(const std::string& file, const std::string& text)> read;
  std::string text = {};  ///< empty: the file's

  [[nodiscard]] Json json() const {
    return shortened(Json::parse(text.empty() ? read_text_file(kRoot + "/" + file) : text));
  }
};

constexpr std::array<std::string_view, 5> kDeciding{"kind", "algorithm", "pattern", "nodes",
                                                    "gpus_per_node"};

/// A search beside drawn jobs.
constexpr const char* kSearches = R"({
  "cluster": {"node": "dgx_h100", "nodes": 4},
  "queue": {
    "order": "fifo", "admission": "strict",
    "campaigns": [{"name": "rate", "trials": 9,
                   "stopping": {"kind": "asha", "eta": 3, "least": 0.04},
                   "job": {"runs": "9 h", "gpus": 8}}],
    "jobs": [{"generate": {"count": 10, "gpus": [[8, 1]], "mean": "1 h"}}]
  }
})";

/// Two nodes at one switch.
constexpr const char* kFabric = R"({
  "rate": "400 Gb/s",
  "hosts": [{"name": "a", "nics": ["a 0"]}, {"name": "b", "nics": ["b 0"]}],
  "switches": [{"name": "leaf"}],
  "cables": [{"a": "a 0", "b": "leaf"}, {"a": "b 0", "b": "leaf", "rate": "200 Gb/s"}]
})";

void read_sweep(const std::string&, const std::string& text) {
  const TemporaryFolder folder;
  Json sweep = Json::parse(text);
  if (sweep.contains("scenario")) sweep["scenario"] = kRoot + "/scenarios/llama3-405b-54days.json";
  (void)load_sweep(folder.write("sweep.json", write_json(sweep)));
}

std::vector<Kind> kinds() {
  const auto job = [](const std::string& file, const std::string& text) {
    (void)read_job_file(JsonCursor::parse(file, text), presets());
  };
  const auto shared = [](const std::string& file, const std::string& text) {
    (void)read_shared_scenario(JsonCursor::parse(file, text), presets());
  };
  const auto rl = [](const std::string& file, const std::string& text) {
    (void)read_rl_scenario(file, text, presets());
  };
  const auto traffic = [](const std::string& file, const std::string& text) {
    (void)read_traffic(JsonCursor::parse(file, text), presets());
  };
  const auto filling = [](const std::string& file, const std::string& text) {
    (void)read_filling(JsonCursor::parse(file, text));
  };
  const auto queue = [](const std::string& file, const std::string& text) {
    (void)read_queue(JsonCursor::parse(file, text), presets());
  };
  const auto serving = [](const std::string& file, const std::string& text) {
    (void)read_serving(JsonCursor::parse(file, text), presets());
  };
  const auto collective = [](const std::string& file, const std::string& text) {
    (void)run_collective_study(JsonCursor::parse(file, text), presets(), {});
  };
  const auto plan = [](const std::string& file, const std::string& text) {
    (void)read_plan(file, text, presets());
  };
  const auto serving_plan = [](const std::string& file, const std::string& text) {
    (void)read_serving_plan(JsonCursor::parse(file, text), presets());
  };
  const auto referee = [](const std::string& file, const std::string& text) {
    (void)read_referee_cases(file, text);
  };
  const auto profile = [](const std::string& file, const std::string& text) {
    (void)read_profile(file, text, presets());
  };
  const auto fabric = [](const std::string& file, const std::string& text) {
    (void)read_fabric_json(file, text);
  };
  return {
      {"a step", "scenarios/llama3-405b-16k.json", job},
      {"two kinds of nodes", "scenarios/llama2-70b-h100-a100.json", job},
      {"adapters", "scenarios/llama2-70b-lora-h100.json", job},
      {"a run", "scenarios/llama3-405b-54days.json", job},
      {"a run with rates of its own", "scenarios/rsc1-reliability.json", job},
      {"power", "scenarios/power/llama3-405b-16k-power.json", job},
      {"jobs", "scenarios/congestion/two-jobs-one-spine.json", shared},
      {"events", "scenarios/congestion/spine-dies.json", shared},
      {"rl", "scenarios/rl/grpo-llama3-8b-colocated.json", rl},
      {"a queue", "scenarios/queue/research-cluster-easy.json", queue},
      {"a cluster to fill", "scenarios/queue/fill-mixed-gpus.json", filling},
      {"campaigns of a queue", "searches.json", queue, kSearches},
      {"serving", "scenarios/serving/llama3-70b-h100-chat.json", serving},
      {"rl with pools", "scenarios/rl/ppo-llama3-8b-pools.json", rl},
      {"traffic", "scenarios/comm/checkpoint-beside-rings.json", traffic},
      {"a collective", "scenarios/comm/allreduce-dgxh100.json", collective},
      {"a plan", "scenarios/plans/train-70b-15t-tokens.json", plan},
      {"a plan for one model", "scenarios/plans/train-405b.json", plan},
      {"a plan of a service", "scenarios/plans/serve-70b.json", serving_plan},
      {"the referee", "tests/reference/packet_referee.json", referee},
      {"a profile", "models/presets/profiles/h100_sxm5_published.json", profile},
      {"a fabric", "fabric.json", fabric, kFabric},
      {"a sweep", "scenarios/sweeps/checkpoint-interval.json", read_sweep},
  };
}

/// What the text lacks; nothing where it lacks nothing, whatever else is wrong.
std::optional<MissingKeys> missing_from(const Kind& kind, const Json& text) {
  try {
    kind.read(kRoot + "/" + kind.file, write_json(text));
  } catch (const MissingKeys& error) {
    return error;
  } catch (const InputError&) {
  }
  return std::nullopt;
}

void add_keys(const Json& node, const std::string& object, std::vector<MissingKey>& out) {
  if (!node.is_structured()) return;
  for (const auto& [key, value] : node.items()) {
    if (node.is_object()) out.push_back({object, key, {}});
    add_keys(value, object + "/" + pointer_part(key), out);
  }
}

std::string pointer_of(const MissingKey& key) { return key.object + "/" + pointer_part(key.key); }

bool is_named(const MissingKeys& error, const MissingKey& key) {
  return std::ranges::any_of(error.keys(), [&](const MissingKey& m) {
    return m.object == key.object && m.key == key.key;
  });
}

/// A key that no candidate of a plan has is missing from the scenario that all of them share.
MissingKey shared_by_all(MissingKey key) {
  constexpr std::string_view kCandidates = "/candidates/";
  if (!key.object.starts_with(kCandidates)) return key;
  key.object.erase(0, key.object.find('/', kCandidates.size()));
  return key;
}

Json without(Json text, const MissingKey& key) {
  Json& object = text[Json::json_pointer(key.object)];
  if (object.is_object()) object.erase(key.key);
  return text;
}

/// Keys of the example without each of which, by itself, its reader says that it is missing.
std::vector<MissingKey> required(const Kind& kind, const Json& text) {
  std::vector<MissingKey> keys, out;
  add_keys(text, "", keys);
  for (const MissingKey& key : keys) {
    const auto error = missing_from(kind, without(text, key));
    if (error && is_named(*error, key)) out.push_back(key);
  }
  return out;
}

/// What the error shows in place of what is missing, by its place in the file.
Json examples(const MissingKeys& error) {
  constexpr std::string_view kSuchAs = ", such as ";
  const std::string& allowed = error.problem().allowed;
  const std::size_t at = allowed.find(kSuchAs);
  REQUIRE(at != std::string::npos);
  const Json shown = Json::parse(allowed.substr(at + kSuchAs.size()));
  Json out = Json::object();
  for (const auto& [name, value] : shown.items()) {
    const std::string below = name.starts_with('/') ? name : "/" + name;
    out[error.problem().pointer + below] = value;
  }
  return out;
}

}  // namespace

TEST_CASE("a missing key is named with an example that can stand in its place") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    const Json text = kind.json();
    REQUIRE_FALSE(missing_from(kind, text));
    const std::vector<MissingKey> keys = required(kind, text);
    CHECK_FALSE(keys.empty());
    for (const MissingKey& key : keys) {
      const std::string pointer = pointer_of(key);
      CAPTURE(pointer);
      Json whole = without(text, key);
      const auto error = missing_from(kind, whole);
      REQUIRE(error);
      const Json shown = examples(*error);
      CHECK(shown.contains(pointer));
      for (const auto& [place, value] : shown.items()) whole[Json::json_pointer(place)] = value;
      const auto again = missing_from(kind, whole);
      CHECK_MESSAGE(!again, (again ? again->what() : ""));
    }
  }
}

TEST_CASE("all missing keys of a file are named at once, wherever they stand") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    const Json text = kind.json();
    const std::vector<MissingKey> keys = required(kind, text);
    Json bare = text;
    std::vector<MissingKey> taken;
    for (const MissingKey& key : keys) {
      // What decides which other keys there are, or how large they may be, stays.
      if (std::ranges::find(kDeciding, key.key) != kDeciding.end()) continue;
      // The innermost ones, so that the objects which lack them are there.
      const bool inner = std::ranges::none_of(keys, [&](const MissingKey& other) {
        return other.object == pointer_of(key) || other.object.starts_with(pointer_of(key) + "/");
      });
      if (!inner) continue;
      taken.push_back(key);
      bare = without(std::move(bare), key);
    }
    const auto error = missing_from(kind, bare);
    REQUIRE(error);
    for (const MissingKey& key : taken) {
      CAPTURE(pointer_of(key));
      const bool named = is_named(*error, key) || is_named(*error, shared_by_all(key));
      CHECK(named);
    }
  }
}
