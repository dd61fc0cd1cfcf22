/// What writers of several formats share.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/launch/export_job.hpp"

namespace lockstep {

/// Keys and values, in the order in which they are written.
using KeyValues = std::vector<std::pair<std::string, std::string>>;

/// Collects what a format cannot say.
class LeftOut {
 public:
  explicit LeftOut(std::string_view format) : format_(format) {}
  /// Notes it where `is_lost`.
  void when(bool is_lost, const std::string& path, const std::string& value,
            const std::string& why = {});
  std::vector<NotExported> take() { return std::move(out_); }

 private:
  std::string format_;
  std::vector<NotExported> out_;
};

/// What no launch file says: a machine that is its own, stragglers, a batch or stages that differ.
void leave_out_machine(const Scenario& scenario, LeftOut& left);
/// Adapters and frozen parts.
void leave_out_training(const Scenario& scenario, LeftOut& left);
/// Weights are let go and gathered ahead otherwise than the software does by itself.
void leave_out_gathering(const Scenario& scenario, LeftOut& left);

/// Micro batches of a replica in a step.
int accumulation(const Scenario& scenario);
/// "16 nodes of dgx_h100 (8 GPUs each)", in letters that are safe in a comment.
std::string machine_words(const Scenario& scenario);
std::string on_off(bool value);

/// Megatron-Core's words for the layout, the batch and the model. Flags have "true" or "false".
struct MegatronWords {
  KeyValues layout, batch, model, recompute, experts;
};
MegatronWords megatron_words(const Scenario& scenario, LeftOut& left);

}  // namespace lockstep
