#include "models/spec/partition.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

std::vector<int> split(int layers, int pipeline, int virtual_stages = 1) {
  TransformerShape model;
  model.layers = layers;
  Parallelism parallelism;
  parallelism.pipeline = pipeline;
  parallelism.virtual_stages = virtual_stages;
  return layers_per_virtual_stage(model, parallelism);
}

}  // namespace

TEST_CASE("partition: layers that divide are split evenly") {
  CHECK(split(96, 8) == std::vector<int>(8, 12));
  CHECK(split(96, 8, 3) == std::vector<int>(24, 4));
  CHECK(split(7, 1) == std::vector<int>{7});
}

// Llama 3 (arXiv:2407.21783, section 3.3.2): 126 layers on 16 stages, one fewer on the first and
// the last. BLOOM (arXiv:2211.05100, section 3.4): 70 layers on 12 stages, where embeddings count
// as a layer.
TEST_CASE("partition: embedding and output take the place of a layer each where that is even") {
  const std::vector<int> llama = split(126, 16);
  CHECK(llama == std::vector<int>{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});
  const std::vector<int> chunks = split(126, 16, 4);
  CHECK(chunks.size() == 64);
  CHECK(chunks.front() == 1);
  CHECK(chunks.back() == 1);
  CHECK(std::count(chunks.begin(), chunks.end(), 2) == 62);
  CHECK(split(70, 12) == std::vector<int>{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5});
}

TEST_CASE("partition: else the output alone, else the first stages get one layer more") {
  CHECK(split(47, 4) == std::vector<int>{12, 12, 12, 11});
  CHECK(split(49, 4) == std::vector<int>{13, 12, 12, 12});
}

TEST_CASE("partition: embedding and output stand where the job says") {
  const auto placed = [](EndPlace embedding, EndPlace output) {
    TransformerShape model;
    model.layers = 14;
    Parallelism parallelism;
    parallelism.pipeline = 4;
    parallelism.embedding = embedding;
    parallelism.output = output;
    return layers_per_virtual_stage(model, parallelism);
  };
  CHECK(placed(EndPlace::automatic, EndPlace::automatic) == std::vector<int>{3, 4, 4, 3});
  CHECK(placed(EndPlace::beside, EndPlace::beside) == std::vector<int>{4, 4, 3, 3});
  CHECK(placed(EndPlace::layer, EndPlace::layer) == std::vector<int>{3, 4, 4, 3});
  CHECK(placed(EndPlace::stage, EndPlace::beside) == std::vector<int>{0, 5, 5, 4});
  CHECK(placed(EndPlace::layer, EndPlace::stage) == std::vector<int>{4, 5, 5, 0});
  CHECK(placed(EndPlace::stage, EndPlace::stage) == std::vector<int>{0, 7, 7, 0});
}

TEST_CASE("partition: what the scenario writes out is kept") {
  TransformerShape model;
  model.layers = 6;
  Parallelism parallelism;
  parallelism.pipeline = 3;
  parallelism.layers_per_stage = {1, 4, 1};
  CHECK(layers_per_virtual_stage(model, parallelism) == std::vector<int>{1, 4, 1});
}

TEST_CASE("partition: every layer sits on one stage, and no stage has two more than another") {
  for (int layers = 1; layers <= 40; ++layers) {
    for (int stages = 1; stages <= layers + 2; ++stages) {
      CAPTURE(layers);
      CAPTURE(stages);
      const std::vector<int> cut = split(layers, stages);
      REQUIRE(cut.size() == static_cast<std::size_t>(stages));
      CHECK(std::accumulate(cut.begin(), cut.end(), 0) == layers);
      const auto [least, most] = std::minmax_element(cut.begin(), cut.end());
      CHECK(*least >= 0);
      CHECK(*most - *least <= 1);
    }
  }
}

}  // namespace lockstep
