#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/advice.hpp"
#include "sim/answer/exact_rate.hpp"
#include "sim/scenario/run_spec.hpp"

namespace lockstep {
namespace {

using RunChanges = std::vector<StandardChange>;

void add_time(RunChanges& out, std::string_view words, const std::string& path, Seconds now,
              double times) {
  if (!(now > Seconds{})) return;
  const double to = times * now.base_units();
  out.push_back({.words = fmt::format("{} {} -> {}", words, duration_text(now.base_units()),
                                      duration_text(to)),
                 .sets = {fmt::format("{}={} s", path, number_text(to))}});
}

void add_rate(std::vector<std::string>& sets, const std::string& path, BytesPerSecond now) {
  if (now > BytesPerSecond{}) sets.push_back(path + "=" + exact_rate(2 * now.base_units()));
}

/// Servers, or all of them together, and the clients' share, at twice their rate.
void add_storage(RunChanges& out, const std::string& place, const StorageSpec& storage) {
  const std::string path = place + ".storage";
  std::vector<std::string> sets;
  if (storage.servers > 0) {
    add_rate(sets, path + ".server_write", storage.server_write);
    add_rate(sets, path + ".server_read", storage.server_read);
    add_rate(sets, path + ".server_link", storage.server_link);
  } else {
    add_rate(sets, path + ".write", storage.write);
    add_rate(sets, path + ".read", storage.read);
  }
  add_rate(sets, path + ".client_write", storage.client_write);
  add_rate(sets, path + ".client_read", storage.client_read);
  if (sets.empty()) return;
  out.push_back({.words = "storage of twice the rate", .sets = std::move(sets)});
}

void add_checkpoint(RunChanges& out, const std::string& place, const CheckpointSpec& checkpoint,
                    const std::string& of) {
  // Long ones are far from the best, which the square root of a checkpoint's cost decides.
  constexpr Seconds kLong{300};
  if (checkpoint.interval >= kLong) {
    add_time(out, "checkpoint interval" + of, place + ".interval", checkpoint.interval, 0.1);
  }
  add_time(out, "checkpoint interval" + of, place + ".interval", checkpoint.interval, 0.5);
  add_time(out, "checkpoint interval" + of, place + ".interval", checkpoint.interval, 2);
  if (!checkpoint.asynchronous) {
    out.push_back({.words = "checkpoints written while it trains" + of,
                   .sets = {place + ".mode=asynchronous"}});
  }
  if (checkpoint.target == CheckpointTarget::storage && checkpoint.storage)
    add_storage(out, place, *checkpoint.storage);
}

void add_recovery(RunChanges& out, const RunSpec& run) {
  const RecoverySpec& recovery = run.recovery;
  const std::string place = "run.recovery";
  add_time(out, "crashes noticed after", place + ".detects_crash", recovery.detects_crash, 0.5);
  add_time(out, "hangs noticed after", place + ".detects_hang", recovery.detects_hang, 0.5);
  add_time(out, "broken nodes found after", place + ".diagnoses", recovery.diagnoses, 0.5);
  add_time(out, "restart", place + ".restarts", recovery.restarts, 0.5);
  add_time(out, "communicators of 1,000 ranks", place + ".restarts_per_thousand_ranks",
           run.restarts_per_thousand_ranks, 0.5);
  if (recovery.misdiagnosed > 0) {
    out.push_back({.words = "every broken node found", .sets = {place + ".misdiagnosed=0"}});
  }
}

void add_spares(RunChanges& out, const RunSpec& run) {
  const auto hot = [&out, &run](int to) {
    out.push_back({.words = fmt::format("hot spares {} -> {}", run.spares.hot, to),
                   .sets = {fmt::format("run.spares.hot={}", to)}});
  };
  hot(std::max(1, 2 * run.spares.hot));
  if (run.spares.hot > 0) hot(run.spares.hot / 2);
  add_time(out, "repair of a node", "run.spares.repair", run.spares.repair, 0.5);
  out.push_back({.words = fmt::format("replicas that it may go on without {} -> {}", run.elastic,
                                      run.elastic + 1),
                 .sets = {fmt::format("run.spares.elastic={}", run.elastic + 1)}});
}

}  // namespace

std::vector<StandardChange> run_changes(const RunSpec& run, bool checkpoints) {
  RunChanges out;
  const bool several = run.checkpoints.size() > 1;
  for (std::size_t i = 0; i < run.checkpoints.size(); ++i) {
    const std::string place =
        checkpoints ? fmt::format("run.checkpoint.{}", i) : std::string("run.checkpoint");
    add_checkpoint(out, place, run.checkpoints[i],
                   several ? " (" + run.checkpoints[i].name + ")" : "");
  }
  add_recovery(out, run);
  add_spares(out, run);
  return out;
}

}  // namespace lockstep
