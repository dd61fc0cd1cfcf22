/// From the peak FLOPs of all GPUs over the whole wall time down to those that train the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/views/run/campaign_result.hpp"

namespace lockstep {

class Page;

/// A bar of the waterfall.
struct WaterfallPart {
  enum class Kind : std::uint8_t {
    whole,      ///< peak x wall time
    run_loss,   ///< wall time that does not advance training
    steps,      ///< what is left: healthy steps at full speed
    step_loss,  ///< what those steps lose
    useful,     ///< what is left: model FLOPs
  };
  Kind kind = Kind::whole;
  std::string name;
  std::string about;        ///< what would attack a loss; may be empty
  double share = 0;         ///< of peak x wall time
  std::string sum_of = {};  ///< the losses, too small to be seen, that it is the sum of

  [[nodiscard]] bool is_loss() const { return kind == Kind::run_loss || kind == Kind::step_loss; }
};

/// What wall time is lost to, bucket by bucket; of slower steps, each of their causes that a run
/// tells apart: machines of lots that are missing, the site, the data, and all others. In no order
/// of size.
std::vector<WaterfallPart> run_losses(const CampaignResult& result);

/// From the top: losses of wall time by share, what is left, losses of its steps by share, what is
/// left. Losses and the last part add up to 1. Without a step (step_s 0)
/// it ends at the steps. Useful FLOPs count attention as a causal model needs it, as StepReport's
/// buckets do.
std::vector<WaterfallPart> waterfall(const CampaignResult& result);

/// Adds the section: chart and table.
void add_waterfall(Page& page, const CampaignResult& result);

}  // namespace lockstep
