/// What data-parallel collectives put on the links of the fabric.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/fabric/group_uses.hpp"
#include "sim/step/lanes.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/stage_shifts.hpp"

namespace lockstep {

/// Channels of a stage that cross the fabric and load the same links in the same proportions: those
/// of one kind of group and one algorithm.
struct DataWay {
  const DataChannel* first = nullptr;
  std::vector<std::size_t> channels;  ///< of the stage
  bool by_replica = true;  ///< the like of each member in the next domain is in DataGroup::next()
  bool is_ring = false;  ///< each member sends to its like in the next NVLink domain, in a replica
};
/// In the order of the kinds of groups, rings first.
std::vector<DataWay> data_ways(const StagePlan& stage);

/// Where a job's ranks lie on a whole tree whose switches spread every message evenly: all that
/// routes depend on there. Jobs with the same one cross the same links with the same shares,
/// whatever these links carry in a second.
struct SprayedLayout {
  PlacementSpec placement;
  bool lanes_alike = true;  ///< Lanes::first_stands_for_all()
  FabricKind kind = FabricKind::ideal;
  Routing routing = Routing::spray;
  bool pxn = false;
  bool limits = false;  ///< switches can hold back what NICs could carry
  int nodes = 0, nics_per_node = 0;
  /// Of FabricCounts, in its order.
  std::array<int, 8> counts{};

  friend auto operator<=>(const SprayedLayout&, const SprayedLayout&) = default;
};

/// A group of a kind, as far as routes depend on it.
struct GroupLayout {
  int lanes = 1, lane_stride = 1, replicas = 1, stride = 1, replicas_per_domain = 1;

  friend auto operator<=>(const GroupLayout&, const GroupLayout&) = default;
};
GroupLayout layout_of(const DataGroup& group);

/// What replicas send around the rings of a stage's groups, replica by replica.
struct ReplicaRings {
  std::vector<RouteHop> uses;
  std::vector<std::size_t> end;  ///< by replica
};

/// What the data-parallel collectives of a plan put on links. Each route is found once for all who
/// ask: those who fold replicas, wire them, or take a sample.
class DataRoutes {
 public:
  /// Both outlive this. `nodes` as in Site.
  DataRoutes(const StepPlan& plan, const Fabric& fabric, std::vector<int> nodes = {});

  [[nodiscard]] const StepPlan& plan() const { return plan_; }
  [[nodiscard]] const Fabric& fabric() const { return lanes_.fabric(); }
  /// Nothing where routes depend on more: under ECMP, on a drawn fabric, on nodes that were chosen.
  [[nodiscard]] const std::optional<SprayedLayout>& layout() const { return layout_; }
  /// Stages whose routes are those of others, some nodes further on; none without a layout().
  [[nodiscard]] const StageShifts& shifts() const { return shifts_; }
  /// For other routes of the plan, which share what is known of its places.
  [[nodiscard]] Lanes& lanes() { return lanes_; }

  /// Adds to `uses` what all groups of the stage put on links together, or that of one (see
  /// DataGroup::group_of()), for each byte that a member sends over its NIC on average. Rings go
  /// from each member to its like in the next NVLink domain; the edges of any other algorithm are
  /// those of collective_shape(), where switches can limit, and so are those of rings with members
  /// on several domains of one replica: they go on to the next domain before the next replica; so
  /// are those of groups of which some cross other domains than others. The stage's channels
  /// outlive this.
  void add(const StagePlan& stage, const DataWay& way, int which, std::vector<RouteHop>& uses);

  /// The messages into which a NIC divides what a member sends, of the groups of replica `replica`.
  [[nodiscard]] double messages(const StagePlan& stage, const DataWay& way, int replica);

 private:
  using Uses = std::vector<RouteHop>;
  /// What was found for a stage.
  template <class Found>
  struct FoundAt {
    int stage = 0;
    std::shared_ptr<const Found> found;
  };

  const ReplicaRings& rings(const StagePlan& stage, DataGroupKind kind);
  ReplicaRings find_rings(const StagePlan& stage, const DataGroup& group);
  void move_uses(Uses& uses, int from, int to) const;
  const Uses& shape_uses(const StagePlan& stage, const DataChannel& channel, int which);
  Uses find_shape_uses(const StagePlan& stage, const DataChannel& channel, int which);

  const StepPlan& plan_;
  Lanes lanes_;
  bool limits_;  ///< switches can
  std::optional<SprayedLayout> layout_;
  GroupUses groups_;
  std::map<std::pair<int, DataGroupKind>, std::shared_ptr<const ReplicaRings>>
      rings_;  ///< by stage
  std::map<std::pair<const DataChannel*, int>, std::shared_ptr<const Uses>> shapes_;
  StageShifts shifts_;
  /// The first that were found, by StageShifts::like() and by what else decides them.
  std::map<std::tuple<int, GroupLayout>, FoundAt<ReplicaRings>> like_rings_;
  std::map<std::tuple<int, GroupLayout, CollectiveOp, std::string_view, int, int>, FoundAt<Uses>>
      like_shapes_;
};

}  // namespace lockstep
