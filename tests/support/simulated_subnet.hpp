/// The real InfiniBand tools on a fabric of ours: ibsim holds it, and opensm and infiniband-diags
/// see it as hardware. Debian: ibsim-utils, libumad2sim0, opensm, infiniband-diags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temporary_folder.hpp"

namespace lockstep::test {

/// What an opensm run left behind.
struct OpensmRun {
  std::string lfts;    ///< opensm-lfts.dump
  std::string engine;  ///< whose tables it configured, as its log says: "minhop"
};

/// Simulators have sockets and a folder of their own, so that tests can run side by side. All
/// programs run under `timeout`; the simulator ends with the object.
class SimulatedSubnet {
 public:
  /// Why the tools cannot be used here; empty: they can.
  static std::string missing();

  /// Requires nothing missing. Throws std::runtime_error if ibsim refuses the net file, or any tool
  /// below fails.
  explicit SimulatedSubnet(std::string_view net);
  ~SimulatedSubnet();
  SimulatedSubnet(const SimulatedSubnet&) = delete;
  SimulatedSubnet& operator=(const SimulatedSubnet&) = delete;

  /// Sends a command to ibsim and waits until it is done: `Unlink "S-0000000000200000"[5]`.
  void console(const std::string& command);
  /// Lets opensm configure the subnet once, with the root switches that it is given, if any.
  OpensmRun opensm(std::string_view engine, const std::vector<std::uint64_t>& root_guids = {});
  /// What a tool of infiniband-diags prints: "ibnetdiscover", "dump_fts".
  [[nodiscard]] std::string diagnose(const std::string& tool) const;

 private:
  [[nodiscard]] std::string log() const;
  void wait_for_prompts(std::size_t count) const;
  [[nodiscard]] std::string shell(const std::string& command) const;

  TemporaryFolder folder_;
  std::string socket_;
  FILE* simulator_ = nullptr;
};

}  // namespace lockstep::test
