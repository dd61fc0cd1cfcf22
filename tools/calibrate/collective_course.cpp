#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <ostream>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"
#include "tools/calibrate/collective_session.hpp"
#include "tools/calibrate/course.hpp"
#include "tools/console/interrupt.hpp"

namespace lockstep {
namespace {

void require_equal_cards(const CommunicatorFacts& facts) {
  if (facts.ranks() < 2) throw CardUnavailable(std::string(kTooFewCards));
  for (const std::string& device : facts.devices) {
    if (device == facts.devices.front()) continue;
    throw CardUnavailable(fmt::format("the ranks have different cards: {} and {}",
                                      in_quotes(facts.devices.front()), in_quotes(device)));
  }
}

/// The preset that --node names; null: none is.
const NodeSpec* node_preset(const CalibrateSettings& settings, const GpuSpec& gpu,
                            const PresetStore& presets) {
  if (settings.node.empty()) return nullptr;
  const NodeSpec& node = presets.node(settings.node);
  if (node.gpu.name == gpu.name && node.nics > 0) return &node;
  throw UsageError(fmt::format("--node: found {}; allowed: a node with {} and NICs",
                               in_quotes(settings.node), gpu.name));
}

Calibration collectives_of(const CollectiveSession& session, const CommunicatorFacts& facts,
                           const RankShape& shape, const CalibrateWorld& world) {
  Calibration out{.gpu = {},
                  .about = fmt::format("NCCL over {} {}, timed by lockstep-calibrate {}.",
                                       facts.ranks(), facts.devices.front(), LOCKSTEP_VERSION),
                  .source = "lockstep-calibrate " LOCKSTEP_VERSION ", measured by whoever ran it",
                  .date = world.date,
                  .conditions = facts.conditions,
                  .power_limit = {},
                  .measured = {},
                  .collectives = session.measured(),
                  .shape = shape,
                  .node = {}};
  for (const auto& condition : session.conditions()) out.conditions.push_back(condition);
  return out;
}

}  // namespace

CalibrateExit calibrate_collectives(const CalibrateSettings& settings, Console& console,
                                    const CalibrateWorld& world) {
  const double began = world.seconds();
  const PresetStore presets(settings.presets);
  if (!settings.gpu.empty()) (void)presets.gpu(settings.gpu);
  if (!settings.node.empty()) (void)presets.node(settings.node);
  const Launch launch = launch_of(world.environment);
  // Nobody should wait minutes to learn that the folder is not there.
  if (launch.rank == 0) (void)OutputFile(settings.output);
  const InterruptGuard guard(InterruptGuard::Second::ends_program, {SIGINT, SIGTERM});
  const std::string id_file =
      settings.id_file.empty() ? settings.output + ".nccl-id" : settings.id_file;
  // What there is to save once there is something, for a call of NCCL that never comes back.
  std::function<void()> save;
  CollectiveSession* running = nullptr;
  const auto give_up = [&](const std::string& error) {
    if (running != nullptr) {
      running->end_by(error);
    } else {
      console.err << fmt::format("lockstep-calibrate: rank {}: {}\n", launch.rank, error)
                  << std::flush;
    }
    save_and_end(
        [&] {
          if (save) save();
        },
        console, world);
  };
  const std::unique_ptr<Communicator> communicator =
      world.open_communicator({launch, id_file, give_up});
  const CommunicatorFacts& facts = communicator->facts();
  require_equal_cards(facts);
  const GpuSpec& gpu = card_preset(settings, facts.devices.front(), presets);
  const NodeSpec* const node = node_preset(settings, gpu, presets);
  const RankShape shape = rank_shape(facts.hosts, node);

  const std::vector<CollectiveTask> plan =
      plan_collectives(facts.ranks(), facts.room, settings.only);
  const std::vector<OverlapTask> overlaps =
      plan_overlaps(facts.ranks(), gpu, facts.room, settings.only);
  const std::vector<VariantTask> variants = plan_variants(facts.ranks(), facts.room, settings.only);
  if (launch.rank == 0) {
    console.out << fmt::format("{} x {} as {}, {} {} of {}: {} measurements in at most {} min\n",
                               facts.ranks(), facts.devices.front(), gpu.name, shape.nodes,
                               shape.nodes == 1 ? "node" : "nodes", shape.gpus_per_node,
                               plan.size() + overlaps.size() + variants.size(), settings.minutes);
  }
  CollectiveSession session(*communicator, [&] { return world.seconds() - began; }, console);
  if (launch.rank == 0) {
    save = [&] {
      Calibration calibration = collectives_of(session, facts, shape, world);
      calibration.gpu = gpu.name;
      calibration.node = settings.node;
      write_profile(calibration, settings, began, console, world);
    };
  }
  running = &session;
  const double deadline = 60.0 * settings.minutes - kReserveSeconds;
  SessionEnd end = session.run(plan, deadline);
  if (end == SessionEnd::done) end = session.run(overlaps, deadline);
  if (end == SessionEnd::done) end = session.run(variants, deadline);
  if (launch.rank == 0) {
    save();
    if (shape.nodes > 1 && node == nullptr) {
      console.out << "It does not say what joins the nodes, which `lockstep validate` asks for: "
                     "give --node, or write \"network\" into it.\n";
    }
  }
  return exit_of(end, session.failed());
}

}  // namespace lockstep
