/// Which virtual stages of a model a pipeline rank holds, and from where to where a micro batch
/// goes.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>

namespace lockstep {

enum class ChunkLayout : std::uint8_t {
  loop,     ///< stage s on rank s mod p: every chunk starts on rank 0
  v_shape,  ///< chunk 0 from the first rank to the last, chunk 1 back again, chunk 2 as chunk 0
  /// Two copies of the model of p stages each: chunk 0 from the first rank to the last, chunk 1,
  /// fed with micro batches of its own, from the last to the first.
  two_way,
};

/// A chunk of a pipeline rank.
struct ChunkPlace {
  int rank = 0;
  int chunk = 0;
  friend bool operator==(const ChunkPlace&, const ChunkPlace&) = default;
};

struct PipelineShape {
  ChunkLayout layout = ChunkLayout::loop;
  int ranks = 1;   ///< p
  int chunks = 1;  ///< of a rank; 2 where `layout` is two_way

  /// Stages that one micro batch runs through.
  [[nodiscard]] constexpr int stages() const {
    return layout == ChunkLayout::two_way ? ranks : ranks * chunks;
  }
  /// Micro batches that run through a chunk, of m in all; m is even where `layout` is two_way. They
  /// count from 0 in each chunk.
  [[nodiscard]] constexpr int micro_batches(int m) const {
    return layout == ChunkLayout::two_way ? m / 2 : m;
  }
  /// Whether a micro batch meets the ranks of a chunk in rising order.
  [[nodiscard]] constexpr bool rising(int chunk) const {
    return layout == ChunkLayout::loop || chunk % 2 == 0;
  }
  /// Place of a chunk on the way of a micro batch, from 0.
  [[nodiscard]] constexpr int stage_of(ChunkPlace at) const {
    const int along = rising(at.chunk) ? at.rank : ranks - 1 - at.rank;
    return layout == ChunkLayout::two_way ? along : at.chunk * ranks + along;
  }
  [[nodiscard]] constexpr bool is_first(ChunkPlace at) const { return stage_of(at) == 0; }
  [[nodiscard]] constexpr bool is_last(ChunkPlace at) const { return stage_of(at) == stages() - 1; }
  /// Where a micro batch goes next in the forward direction; nothing after the last stage.
  [[nodiscard]] constexpr std::optional<ChunkPlace> after(ChunkPlace at) const {
    return neighbour(at, +1);
  }
  /// Where it came from; nothing before the first stage.
  [[nodiscard]] constexpr std::optional<ChunkPlace> before(ChunkPlace at) const {
    return neighbour(at, -1);
  }
  /// Whether the last rank sends to the first one and back.
  [[nodiscard]] constexpr bool wraps() const { return layout == ChunkLayout::loop && chunks > 1; }

 private:
  [[nodiscard]] constexpr std::optional<ChunkPlace> neighbour(ChunkPlace at, int step) const {
    const int stage = stage_of(at) + step;
    if (stage < 0 || stage >= stages()) return std::nullopt;
    const int chunk = layout == ChunkLayout::two_way ? at.chunk : stage / ranks;
    const int along = stage % ranks;
    return ChunkPlace{rising(chunk) ? along : ranks - 1 - along, chunk};
  }
};

}  // namespace lockstep
