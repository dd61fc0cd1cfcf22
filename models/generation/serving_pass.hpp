/// A pass of a replica that serves: what it works on, and where its time goes.
#pragma once

#include "models/base/units.hpp"

namespace lockstep {

/// What a pass works on.
struct PassLoad {
  int sequences = 0;         ///< running, each a row
  double context = 0;        ///< tokens in their cache, together
  int prompts = 0;           ///< pieces of prompts
  double prompt_tokens = 0;  ///< of them, together
  double prompt_pairs = 0;   ///< of a query and a key, together
};

/// Where the time of a pass goes. What prompts add to it is theirs, whatever it is.
struct ServingPass {
  Seconds prompts;
  Seconds products;   ///< of the running sequences, with what lies between
  Seconds attention;  ///< over their cache
  Seconds exchange;   ///< between GPUs
  Seconds host;       ///< GPU idle
  Joules drawn{};     ///< by a GPU over the pass; 0: nobody said what its card draws

  [[nodiscard]] Seconds total() const { return prompts + products + attention + exchange + host; }
  ServingPass& operator+=(const ServingPass& o);
  friend ServingPass operator*(double k, const ServingPass& pass);
};

/// How long passes take: a replica of a model, or a law that a test writes down.
class PassClock {
 public:
  virtual ~PassClock() = default;
  virtual ServingPass pass(const PassLoad& load) = 0;
};

}  // namespace lockstep
