#include "tools/views/rl/update_words.hpp"

#include <fmt/format.h>

#include "models/base/number_text.hpp"

namespace lockstep {

std::string update_words(const RlScenario& s, const RlReport& r) {
  const Batch& written = s.training.job.batch;
  const Batch& run = r.training_batch;
  std::string out =
      fmt::format("{} x {} of {} of {} tokens on average", grouped(s.rl.epochs),
                  counted(s.rl.updates, "update"), counted(written.sequences, "sample"),
                  grouped(s.rl.prompt_tokens + r.response_mean));
  const std::string micro = fmt::format("{} to a micro batch", grouped(run.micro_sequences));
  if (!s.rl.packing) {
    return out + fmt::format(", each padded to {} tokens; {}", grouped(run.tokens), micro);
  }
  // Rows are packed whole, and micro batches are of whole rows on every replica.
  const double micro_batches =
      run.sequences / (1.0 * run.micro_sequences * s.training.job.parallelism.data);
  return out + fmt::format(", packed into {}: simulated as {} of {}, {}",
                           micro_batches == 1 ? "one micro batch"
                                              : grouped(micro_batches) + " micro batches",
                           counted(run.sequences, "sample"), grouped(run.tokens), micro);
}

}  // namespace lockstep
