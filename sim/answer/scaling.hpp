/// How a job scales: the same work on more GPUs (strong), and more work on more GPUs (weak).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// Dense 16-bit peak of so many GPUs of the scenario over that of an H100 SXM; pools of several
/// kinds by what is in them.
double h100_equivalents(const Scenario& scenario, double gpus);

/// The job on so many GPUs. Tensor, pipeline and context parallelism stay; data parallelism grows.
struct ScalingPoint {
  int gpus = 0, nodes = 0, data = 0, sequences = 0;
  std::string problem;  ///< why it cannot be; then nothing below holds
  double step_s = 0, mfu = 0, tokens_per_s = 0;
  /// Tokens a second and GPU over those of the first point that can be.
  double efficiency = 1;
  /// 1 - efficiency, by where the GPU time of a token goes: of each bucket what a token takes more
  /// than at the first point, over all that it takes. Below 0: less. Adds up exactly.
  BucketTimes lost{};
  /// Dense 16-bit peak of all GPUs over that of an H100 SXM.
  double h100_equivalents = 0;
  /// Of a step its GPU-hours, of a run `usd`; where there is a price.
  std::optional<double> usd_per_trillion_tokens;
  /// At the site's meter, where the scenario says "power": of a healthy step, or of all of a run.
  std::optional<double> joules_per_token;
  std::optional<double> site_limit_w,
      site_excess_w;  ///< as answers have them; where it has a limit
  /// Of a run of days to months on so many GPUs: its goodput, from its start or that of its plan or
  /// its dataset's staging until it is done, the tokens that it trains on, and what it costs: its
  /// lots, else owning its machines, else renting them, else whatever has a price; with storage.
  std::optional<double> goodput, done_s, tokens_done, usd;
  std::string usd_of{};  ///< "rented, with storage"; empty: there is no money
};

struct Scaling {
  std::vector<ScalingPoint> strong;        ///< the scenario's batch
  std::vector<ScalingPoint> weak;          ///< the scenario's sequences of a replica
  std::vector<std::string> assumptions{};  ///< what stays as it is given at every size
};

/// Simulates the step of a scenario's text, and the run of one that has it, on each number of GPUs,
/// both ways. Throws InputError for a scenario of another kind, and where no number can be.
Scaling scale(const std::string& file, const std::string& text, const PresetStore& presets,
              const Question& question, std::span<const int> gpus);

nlohmann::ordered_json scaling_json(const Scaling& scaling);

}  // namespace lockstep
