/// Adapters (LoRA) with which a model serves, one of many for each request.
#pragma once

#include <optional>

#include "models/spec/adapters.hpp"
#include "sim/scenario/declared_members.hpp"

namespace lockstep {

struct ServingSpec;

struct ServedAdapters {
  int count = 1;                 ///< of different ones
  double zipf = 1;               ///< the k-th is asked for as often as 1 / k to this power
  double without = 0;            ///< share of requests that the model alone answers
  int on_gpu = 8;                ///< different ones in a pass, at most, and held on the GPUs
  std::optional<int> in_host{};  ///< held by the host; none: all
  Adapters shape;                ///< rank and products

  [[nodiscard]] int held() const { return in_host.value_or(count); }
};

void declare_served_adapters(const DeclaredMembers& member, ServedAdapters& out);
/// Holds them against the model, the pools and their memory, and adds what is assumed. Throws
/// InputError.
void settle_served_adapters(const JsonCursor& serving, bool searched, ServingSpec& out);
/// Draws which adapter each request has; of a conversation all its requests the same.
void draw_adapters(ServingSpec& spec);

}  // namespace lockstep
