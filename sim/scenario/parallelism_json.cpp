#include "sim/scenario/parallelism_json.hpp"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/pipeline/schedule.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json when(bool applies, Json value) { return applies ? std::move(value) : Json(nullptr); }

std::string_view place_name(EndPlace place) {
  return kEndPlaceNames[static_cast<std::size_t>(place)];
}

struct LayoutKey {
  std::string_view name;
  bool of_layout;  ///< else of the software
  Json (*value)(const Parallelism& p);
};

// In the order of scenarios/scenario.schema.json. To add a key: its row, its declaration in
// job_readers.cpp, and its schema.
constexpr std::array kLayoutKeys{
    LayoutKey{"tensor", true, [](const Parallelism& p) -> Json { return p.tensor; }},
    LayoutKey{"context", true, [](const Parallelism& p) -> Json { return p.context; }},
    LayoutKey{"expert", true, [](const Parallelism& p) -> Json { return p.expert; }},
    LayoutKey{"expert_tensor", true, [](const Parallelism& p) -> Json { return p.expert_tensor; }},
    LayoutKey{"expert_dispatch", false,
              [](const Parallelism& p) { return when(p.expert > 1, name_of(p.expert_dispatch)); }},
    LayoutKey{"expert_overlap", false,
              [](const Parallelism& p) { return when(p.expert > 1, p.expert_overlap); }},
    LayoutKey{
        "context_exchange", true,
        [](const Parallelism& p) { return when(p.context > 1, name_of(p.context_exchange)); }},
    LayoutKey{"pipeline", true, [](const Parallelism& p) -> Json { return p.pipeline; }},
    LayoutKey{"data", true, [](const Parallelism& p) -> Json { return p.data; }},
    LayoutKey{"virtual_stages", true,
              [](const Parallelism& p) -> Json { return p.virtual_stages; }},
    LayoutKey{"sequence", true, [](const Parallelism& p) -> Json { return p.sequence; }},
    LayoutKey{"tensor_overlap", true,
              [](const Parallelism& p) -> Json {
                if (!p.sequence || !p.tensor_overlap) return nullptr;
                return name_of(*p.tensor_overlap);
              }},
    LayoutKey{"sharding", true, [](const Parallelism& p) -> Json { return name_of(p.sharding); }},
    LayoutKey{"shard_group", true,
              [](const Parallelism& p) { return when(p.shard_group > 0, p.shard_group); }},
    LayoutKey{"reshard", true,
              [](const Parallelism& p) { return when(p.sharding == Sharding::zero3, p.reshard); }},
    LayoutKey{"prefetch", true,
              [](const Parallelism& p) { return when(p.sharding == Sharding::zero3, p.prefetch); }},
    LayoutKey{"schedule", true,
              [](const Parallelism& p) { return when(!p.order, name_of(p.schedule)); }},
    LayoutKey{"schedule_file", true,
              [](const Parallelism& p) -> Json {
                if (!p.order) return nullptr;
                return p.order->file;
              }},
    LayoutKey{"embedding", false,
              [](const Parallelism& p) -> Json { return place_name(p.embedding); }},
    LayoutKey{"output", false, [](const Parallelism& p) -> Json { return place_name(p.output); }},
    LayoutKey{
        "layers_per_stage", true,
        [](const Parallelism& p) { return when(!p.layers_per_stage.empty(), p.layers_per_stage); }},
};

}  // namespace

Json parallelism_json(const Parallelism& layout) {
  Json out = Json::object();
  for (const LayoutKey& key : kLayoutKeys) out[std::string(key.name)] = key.value(layout);
  return out;
}

Json written_parallelism(const Parallelism& layout) {
  Json out = Json::object();
  for (const LayoutKey& key : kLayoutKeys) {
    Json value = key.value(layout);
    if (!value.is_null()) out[std::string(key.name)] = std::move(value);
  }
  return out;
}

std::vector<std::string_view> layout_keys() {
  std::vector<std::string_view> keys;
  for (const LayoutKey& key : kLayoutKeys) {
    if (key.of_layout) keys.push_back(key.name);
  }
  return keys;
}

}  // namespace lockstep
