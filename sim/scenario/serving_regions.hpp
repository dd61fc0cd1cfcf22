/// Users of several places or kinds, and replicas in several places.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/failure_mode.hpp"
#include "sim/scenario/serving_objectives.hpp"

namespace lockstep {

inline constexpr int kHoursOfDay = 24;
inline constexpr std::size_t kMostPopulations = 256;

/// Tokens of a prompt or an answer: log-normal around a mean, cut at `most`; or uniform.
struct ServingLengths {
  double mean = 0;
  double sigma = 0;       ///< of the logarithm; 0: all are of mean length
  int most = 0;           ///< 0: not cut
  int low = 0, high = 0;  ///< uniform between them; 0: log-normal
};

/// Users who ask alike: from one place, at their hours of the day, with limits of their own.
struct ServingPopulation {
  std::string name;
  double share = 1;  ///< of the requests, in proportion to those of the others
  std::vector<double>
      hours{};  ///< how many ask in each hour of the day, in proportion; empty: alike
  std::optional<ServingLengths> input{}, output{};  ///< none: the load's
  ServingObjectives objectives{};                   ///< none: the service's
  /// As written: a region's name, and the time there and back.
  std::vector<std::pair<std::string, Seconds>> latency{};
  /// By region: the time there and back; none: their requests may not go there.
  std::vector<std::optional<RunTime>> away{};
};

/// Replicas in one place, in nodes of their own.
struct ServingRegion {
  std::string name;
  int replicas = 1;
  // None: the scenario's.
  std::optional<double> usd_per_gpu_hour{}, usd_per_kwh{}, grams_per_kwh{}, outside_celsius{};
};

/// Which of the regions that a request may go to comes first. Of equal ones the nearer.
enum class RegionOrder : std::uint8_t {
  nearest,
  cheapest,  ///< by what a GPU costs by the hour, then by the price of energy
  cleanest,  ///< by the carbon of the grid
};
constexpr std::array<std::string_view, 3> kRegionOrderNames{"nearest", "cheapest", "cleanest"};

struct ServingRegions {
  std::vector<ServingRegion> all{};  ///< none: the service is in one place
  RegionOrder order = RegionOrder::nearest;
  /// Requests of the least loaded replica of a region, waiting or worked on, from which on the next
  /// region takes them; 0: as many as a replica runs at once.
  int spill = 0;
};

struct ServingSpec;

void declare_lengths(const DeclaredMembers& member, ServingLengths& out);
void check_lengths(const JsonCursor& at, const ServingLengths& of);
void declare_population(const DeclaredMembers& member, ServingPopulation& out);
void declare_regions(const DeclaredMembers& member, ServingRegions& out);

/// How many replicas all regions have together.
int replicas_of(const ServingRegions& regions);
/// Holds regions and populations against each other and the pool. Throws InputError.
void settle_regions(const JsonCursor& serving, bool searched, ServingSpec& out);
/// Regions by how gladly requests of the population go there, those that may take them alone.
std::vector<std::uint32_t> region_order(const ServingSpec& spec, const ServingPopulation& of);

}  // namespace lockstep
