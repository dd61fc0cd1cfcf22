#include "tools/laws/random_filling.hpp"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/write_json.hpp"
#include "sim/core/random.hpp"
#include "sim/laws/draws.hpp"
#include "sim/scenario/read_filling.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Of StreamName::purpose: plans have 10 and 11.
constexpr std::uint32_t kFillingDraws = 12;

class FillingDraw : Draws {
 public:
  explicit FillingDraw(RandomStream& random) : Draws(random) {}

  Json filling() {
    Json nodes = Json::array(), pods = Json::array();
    for (int i = 1 + below(3); i > 0; --i) nodes.push_back(node());
    for (int i = 1 + below(5); i > 0; --i) pods.push_back(pod());
    return {{"filling",
             {{"nodes", std::move(nodes)}, {"pods", std::move(pods)}, {"seed", below(1000)}}}};
  }

 private:
  Json node() {
    return {{"count", 1 + below(12)},
            {"cpus", one_of<int>({32, 96, 128})},
            {"memory", one_of<std::string>({"128 GiB", "512 GiB"})},
            {"gpus", one_of<int>({0, 1, 2, 4, 8, 8})},
            {"gpu_model", one_of<std::string>({"A100", "T4", "H100"})}};
  }
  Json pod() {
    Json out{{"count", 1 + below(40)},
             {"cpus", one_of<double>({0, 0.5, 4, 12, 48})},
             {"memory", one_of<std::string>({"2 GiB", "16 GiB", "96 GiB"})}};
    const int gpus = one_of<int>({0, 1, 1, 2, 8});
    if (gpus > 0) out["gpus"] = gpus;
    if (gpus == 1 && once_in(2)) out["gpu_milli"] = 10 * (1 + below(99));
    if (gpus > 0 && once_in(4)) {
      out["gpu_models"] = Json::array({one_of<std::string>({"A100", "T4", "H100"})});
    }
    return out;
  }
};

}  // namespace

std::string random_filling(std::uint64_t seed, std::uint32_t number) {
  RandomStream random({.seed = seed, .trajectory = number, .purpose = kFillingDraws});
  while (true) {
    std::string text = write_json(FillingDraw(random).filling());
    try {  // not where no node has what a pod asks for
      (void)read_filling(JsonCursor::parse("random.json", text));
      return text;
    } catch (const InputError&) {
      continue;
    }
  }
}

}  // namespace lockstep
