#include "models/pipeline/layout.hpp"

#include <doctest/doctest.h>
#include <vector>

namespace lockstep {

TEST_CASE("pipeline layouts: the way of a micro batch meets every chunk of its direction once") {
  for (const ChunkLayout layout : {ChunkLayout::loop, ChunkLayout::v_shape, ChunkLayout::two_way}) {
    for (int p = 1; p <= 6; ++p) {
      for (int v = 1; v <= 4; ++v) {
        const PipelineShape shape{layout, p, layout == ChunkLayout::two_way ? 2 : v};
        for (int rank = 0; rank < p; ++rank) {
          for (int chunk = 0; chunk < shape.chunks; ++chunk) {
            if (!shape.is_first({rank, chunk})) continue;
            std::optional<ChunkPlace> at = ChunkPlace{rank, chunk};
            int stages = 0;
            for (; at; at = shape.after(*at)) {
              CHECK(shape.stage_of(*at) == stages++);
              if (const auto next = shape.after(*at)) CHECK(shape.before(*next) == at);
            }
            CHECK(stages == shape.stages());
          }
        }
      }
    }
  }
}

TEST_CASE("pipeline layouts: a V turns on its last rank and ends on its first") {
  const PipelineShape shape{ChunkLayout::v_shape, 4, 2};
  CHECK(shape.after({3, 0}) == ChunkPlace{3, 1});
  CHECK(shape.after({3, 1}) == ChunkPlace{2, 1});
  CHECK(shape.is_last({0, 1}));
}

TEST_CASE("pipeline layouts: two ways start and end on both outer ranks") {
  const PipelineShape shape{ChunkLayout::two_way, 4, 2};
  CHECK(shape.is_first({0, 0}));
  CHECK(shape.is_last({3, 0}));
  CHECK(shape.is_first({3, 1}));
  CHECK(shape.is_last({0, 1}));
  CHECK(shape.micro_batches(20) == 10);
}

}  // namespace lockstep
