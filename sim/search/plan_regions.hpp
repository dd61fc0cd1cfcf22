/// Regions of a plan: what it takes to bring data from one to another, and where it may go.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/base/units.hpp"

namespace lockstep {

/// The way from one region to another.
struct WideAreaLink {
  Seconds latency;  ///< one way
  BytesPerSecond bandwidth;
  double usd_per_gb = 0;  ///< of 1e9 bytes that leave the first one
};
/// Latency and then all bytes at the bandwidth: latency + bytes / bandwidth. 0 for no bytes.
Seconds transfer_time(const WideAreaLink& link, Bytes bytes);
/// bytes / 1e9 x price: egress is paid where data leaves, and nothing where it arrives.
double transfer_usd(const WideAreaLink& link, Bytes bytes);

struct PlanRegion {
  std::string name, about;
  Seconds latency;                          ///< one way, to the backbone between regions
  std::optional<BytesPerSecond> bandwidth;  ///< of its own way there, each way
  std::optional<double> egress_usd_per_gb;
  double price_factor = 1;  ///< on prices of machines, of building and of GPU-hours
  std::string pointer;      ///< where it stands in the file
  bool unnamed = false;     ///< its name is a mistake, which is told already
};
/// Over the backbone: both ends' latencies, the narrower end's bandwidth, the first one's price.
/// Requires that both have a bandwidth and a price.
WideAreaLink link_between(const PlanRegion& from, const PlanRegion& to);

/// What is trained on, and where it may be. Regions are indices into the plan's.
struct PlanData {
  Bytes bytes;
  std::vector<std::size_t> in;                     ///< lies there already
  std::optional<std::vector<std::size_t>> may_go;  ///< and may go there; none: anywhere
  std::optional<std::size_t> checkpoints_to;       ///< the last one, at least, is brought there
  std::optional<Seconds> checkpoints_every;        ///< copied there so often; none: the last
  [[nodiscard]] bool may_be_in(std::size_t region) const;
};

/// Where a candidate trains, and how its data gets there.
struct PlanPlace {
  std::size_t region = 0;
  std::string name;
  std::string data_from;    ///< the region whose copy arrives first; empty: it is there
  Seconds data_takes;       ///< until all of it has arrived; training begins then
  double data_usd = 0;      ///< for its egress
  std::string copies_to;    ///< of checkpoints; empty: they stay
  WideAreaLink copies_way;  ///< there
  std::optional<Seconds> copies_every;
};
PlanPlace place_in(const std::vector<PlanRegion>& regions, const PlanData& data,
                   std::size_t region);

/// What moving takes around a run.
struct PlanMoves {
  Seconds before, after;  ///< of the run: the data arrives, the last checkpoint leaves
  double data_usd = 0;
  double copies = 0;  ///< of checkpoints, with the last one
  double copies_usd = 0;
};
/// Copies on the way overlap with training, one at a time: no more often than one is done.
PlanMoves moves_of(const PlanPlace& place, Bytes checkpoint, Seconds run);

}  // namespace lockstep
