/// What the NVIDIA driver's management library says of a card: clocks, power, who else is on it.
/// Loaded at run time: the CUDA toolkit brings neither the library nor, always, its header.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/calibrate/card.hpp"

namespace lockstep {

class Nvml {
 public:
  /// The card at this PCI address ("0000:1B:00.0"); null where the library or the card is not to
  /// be had, and then clocks and power stay unknown.
  static std::unique_ptr<Nvml> open(const std::string& pci_address);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] std::optional<Occupancy> occupancy() const;
  /// SM clock, temperature, power as the driver averages it (over up to a second).
  [[nodiscard]] CardState state() const;
  /// Since the driver was loaded; nothing on cards that do not count it.
  [[nodiscard]] std::optional<Joules> energy() const;
  /// A condition that conditions() gives beside its own.
  void add_condition(std::string name, std::string value);
  /// Driver version, power limit, highest clocks: conditions of a profile.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> conditions() const;

 private:
  struct Calls;
  explicit Nvml(std::unique_ptr<Calls> calls);
  std::unique_ptr<Calls> calls_;
  std::vector<std::pair<std::string, std::string>> further_;
};

}  // namespace lockstep
