// One thread: what oneTBB shares out runs in its order.
#pragma once
#include <cstddef>
namespace tbb {
template <class Index, class Body>
void parallel_for(Index first, Index last, const Body& body) {
  for (Index i = first; i < last; ++i) body(i);
}
}  // namespace tbb
