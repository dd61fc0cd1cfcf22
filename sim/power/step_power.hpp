/// What a simulated step draws: GPUs, nodes and the whole site over its time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "models/power/gpu_power.hpp"
#include "models/power/site_power.hpp"
#include "sim/power/power_series.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// The GPUs of a pipeline stage.
struct StagePower {
  int stage = 0;
  Watts mean, peak;  ///< of one GPU
};

/// A GPU and a node (AC) of one kind, mean over the step.
struct PoolPower {
  Watts gpu, node;
};

/// A consumer of the site and its energy in one step.
struct PowerShare {
  std::string_view name;  ///< "gpu_tensor", "fans", "cooling_and_distribution", ...
  Joules energy;
};

/// What the mean GPU, the mean node (AC) and the whole site draw.
struct PowerLevel {
  Watts gpu, node, facility;
};
/// At rest and at work, for a run's phases.
struct PowerLevels {
  PowerLevel training;  ///< mean of a step
  PowerLevel waiting;   ///< the job stands still, its kernels spin (or burn up to the floor that
                        ///< evens out the swing): checkpoint, hang
  PowerLevel starting;  ///< processes hold the cards, nothing runs
  PowerLevel idle;      ///< nobody's
};

struct StepPower {
  double step_s = 0;
  std::vector<StagePower> stages;
  std::vector<PoolPower> pools;          ///< by pool, where the job is on several
  Watts gpu_mean, gpu_peak, gpu_trough;  ///< of one GPU; peak and trough of any, at any instant
  PowerSeries gpus;                      ///< all of the job's, behind the smoothing
  PowerSeries node;                      ///< the mean node at its power supply's input (AC)
  PowerSeries facility;                  ///< everything
  NodePower node_parts;                  ///< at the mean
  FabricPower fabric;
  double supply = 1;  ///< AC over DC of what GPUs draw
  double pue = 1;
  Watts overhead;                  ///< cooling and distribution; follows the mean, not the step
  std::vector<PowerShare> shares;  ///< together energy()
  MeterReading node_meter, facility_meter;
  double ramp_w_per_s = 0;  ///< of the facility
  /// Of all GPUs over ramp_window, W/s, where they are held to ramps: `gpus` has stairs for them.
  std::optional<double> held_ramp;
  /// The step if all that slow ramps cost is hidden; nothing where they cost nothing.
  std::optional<Seconds> step_if_hidden;
  PowerLevels levels;
  Holdings holdings;
  Watts gpu_nameplate;  ///< of all GPUs together, by their datasheet
  /// The most that a meter at the site reads while the job lasts; of a step alone the meter's
  /// highest reading.
  Watts site_peak;
  /// That fit under the scenario's limit, if each adds its share of the meter's highest reading.
  std::optional<int> site_nodes;

  /// By how much the site's peak is above the limit; below it: negative.
  [[nodiscard]] Watts above(Watts site_limit) const { return site_peak - site_limit; }
  [[nodiscard]] Joules energy() const { return lockstep::energy(facility); }
};

/// What GPUs draw over a step, before any store evens it out.
struct GpuDraw {
  double step_s = 0;
  PowerSeries series;          ///< all of the nodes', those that the job leaves alone too
  ByGpuPart<Joules> energy{};  ///< of those that work
  Watts peak, trough;          ///< of one GPU that works, at any instant
  std::vector<StagePower> stages;
  std::vector<Watts> pools;               ///< mean of all GPUs of each PowerPool that work
  std::optional<double> held_ramp;        ///< as StepPower::held_ramp
  std::optional<Seconds> step_if_hidden;  ///< as StepPower::step_if_hidden
};

/// The nodes of one kind, and the GPUs of the job on them.
struct PowerPool {
  const NodeSpec& node;
  double nodes = 0, gpus = 0;

  /// Of GPUs that the job leaves alone.
  [[nodiscard]] Watts unused() const { return (nodes * node.gpus - gpus) * node.gpu.power_idle; }
};

/// The GPUs' part of step_power(). Requires what that requires.
GpuDraw gpu_draw(const Scenario& scenario, const StepReport& report);

/// A GPU of the scenario's nodes, mean over its stages, while `time` of forward passes over the
/// batch goes by: what its kernels take, and `active` in between. Where each pass gathers weights
/// (zero3), these transfers too; what stages send each other is left out. On nodes of one kind.
ByGpuPart<Watts> forward_draw(const Scenario& scenario, Seconds time);

/// The site of nodes whose GPUs draw that: hosts, switches of `ports` and cooling at the mean,
/// power supplies at the instant. What evens out the swing, meters and prices are
/// `scenario.power`'s.
StepPower site_power(const Scenario& scenario, GpuDraw drawn, const std::vector<PowerPool>& pools,
                     BytesPerSecond ports);

/// Rates of the switch ports of the scenario's own fabric; none of a single node.
BytesPerSecond own_ports(const Scenario& scenario);

/// Power of a step from its timeline. In a pass, the kernels' energy (models/power/gpu_power.hpp)
/// is spread evenly over the pass, waits within it too, since a timeline has no finer grain, and
/// clipped at the card's limit; between passes a GPU spins in a collective. Transfers add their
/// bytes evenly over their time. Hosts, switches and cooling follow the mean, supplies the instant.
/// On several kinds of node each GPU draws as its own card does, and each node as its own chassis;
/// `node` is then the mean node.
/// Requires scenario.power and a report with timeline and actors.
StepPower step_power(const Scenario& scenario, const StepReport& report);

}  // namespace lockstep
