#include "tools/laws/random_comm.hpp"

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/core/random.hpp"
#include "sim/laws/draws.hpp"
#include "tools/laws/comm_laws.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Of StreamName::purpose: scenarios of `lockstep run` have 8.
constexpr std::uint32_t kCommDraws = 9;

class CommDraw : Draws {
 public:
  explicit CommDraw(RandomStream& random) : Draws(random) {}

  Json scenario() {
    Json out{{"cluster", cluster()}};
    if (once_in(3)) {
      out["collective"] = collective();
      return out;
    }
    if (once_in(2)) out["efficiency"] = 1;
    Json entries = Json::array();
    for (int i = 1 + below(3); i > 0; --i) entries.push_back(entry());
    out["traffic"] = std::move(entries);
    return out;
  }

 private:
  Json cluster() {
    Json node = one_of<std::string>({"dgx_h100", "dgx_a100_80gb", "dgx_b200"});
    if (once_in(2)) {
      node = {{"preset", "dgx_h100"}, {"gpus", 1}, {"nvlink_domain", 1}, {"nics", 1}};
    }
    return {{"node", std::move(node)},
            {"nodes", one_of<int>({1, 2, 3, 4, 8, 16})},
            {"fabric", fabric()}};
  }
  Json fabric() {
    Json out{{"kind", one_of<std::string>({"fat_tree", "fat_tree", "rail_optimised"})},
             {"routing", one_of<std::string>({"spray", "spray", "ecmp", "adaptive"})},
             {"levels", 2},
             {"leaf_ports_down", one_of<int>({2, 4, 8})}};
    if (once_in(2)) out["leaf_oversubscription"] = one_of<int>({2, 4});
    if (once_in(3)) out["switch_latency"] = "500 ns";
    if (once_in(4)) out["link_bandwidth"] = one_of<std::string>({"200 Gb/s", "400 Gb/s"});
    return out;
  }
  Json size() {
    auto one = one_of<std::string>({"64 KiB", "1 MiB", "3000000 B", "64 MiB"});
    if (once_in(5)) return {{"from", one}, {"to", "128 MiB"}};
    return one;
  }
  Json entry() {
    const auto kind = one_of<std::string>({"permutation", "shift", "incast", "outcast", "storage",
                                           "all_to_all", "send_receive", "all_reduce", "all_gather",
                                           "reduce_scatter", "broadcast", "reduce"});
    Json out{{"kind", kind}, {"size", size()}};
    if (kind == "storage") {
      out["members"] = {{"of", "nics"}, {"nodes", {{"count", 1}}}};
      out["servers"] = {{"of", "nics"}, {"nodes", {{"first", 1}}}};
      out["direction"] = one_of<std::string>({"write", "read"});
    } else if (once_in(2)) {
      out["members"] = one_of<std::string>({"gpus", "nics"});
    }
    if (once_in(4))
      out["groups"] = {{"count", 2}, {"spread", one_of<std::string>({"consecutive", "strided"})}};
    if (once_in(4)) out["repeat"] = one_of<int>({2, 3});
    if (once_in(6)) out["gap"] = "1 ms";
    if (once_in(6)) out["start"] = "200 us";
    if (once_in(3)) out["seed"] = below(1000);
    if (once_in(3)) {
      out["as"] = one_of<std::string>({"flows", "sources", "coupled", "messages", "nccl"});
    }
    return out;
  }
  Json collective() {
    const std::vector<std::string> ops{"all_reduce",   "all_gather", "reduce_scatter", "all_to_all",
                                       "send_receive", "broadcast",  "reduce"};
    Json out{{"op", one_of(ops)}, {"sizes", {{"from", "8 B"}, {"to", "1 GiB"}, {"factor", 8}}}};
    if (once_in(3)) out["op"] = Json::array({one_of(ops), "all_reduce"});
    if (once_in(3)) out["ranks"] = one_of<int>({2, 4, 6, 8, 16});
    if (once_in(4)) out["placement"] = one_of<std::string>({"strided", "random"});
    if (once_in(5)) out["groups"] = 2;
    if (once_in(5)) out["algorithm"] = one_of<std::string>({"ring", "ring,tree", "^nvls"});
    return out;
  }
};

/// Not where groups are too small, a fabric does not join that many, or a grain is another kind's.
bool is_answered(const std::string& text, const PresetStore& presets) {
  try {
    (void)comm_answer("random.json", text, presets);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

std::string random_comm(std::uint64_t seed, std::uint32_t number, const PresetStore& presets) {
  RandomStream random({.seed = seed, .trajectory = number, .purpose = kCommDraws});
  while (true) {
    std::string text = write_json(CommDraw(random).scenario());
    if (is_answered(text, presets)) return text;
  }
}

}  // namespace lockstep
