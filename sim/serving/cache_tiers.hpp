/// Slower memory behind the caches of replicas: host memory and drives of nodes, of which each
/// replica has a part, and a remote pool that all share.
///
/// What a GPU's cache lets go of is written to all of them, so that other replicas find it in the
/// pool; the longest unwritten leaves first, and what is loaded back stays where it was. So of two
/// sizes of a tier the larger one holds all that the smaller one does (Mattson et al. 1970, IBM
/// Syst. J. 9(2), 78-117), unless a single piece is larger than the smaller one. Loads over a
/// group's link go one after the other, and so do those from the drives of a node; those out of the
/// pool last as long as the group's NIC ports, which it may share with other groups and replicas,
/// or the pool, whichever is later, have bytes before them. A sequence that has to leave a full
/// cache may be swapped: host memory keeps it, before all that is held for others. Leaves out: what
/// writing to tiers takes (it is beside passes, in the other direction of the links), and the
/// fabric between NICs and the pool.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "models/base/units.hpp"
#include "models/generation/serving_engine.hpp"
#include "sim/scenario/cache_policy.hpp"
#include "sim/serving/prefix_cache.hpp"

namespace lockstep {

/// What of a load comes through which NIC port, or from which node's drives, of the service.
struct PortLoad {
  std::size_t port = 0;
  double share = 1;
};

/// What stands behind the caches, in tokens and in what loading one takes; 0: nothing.
struct TierPlan {
  CacheLoad load = CacheLoad::blocking;
  CacheReuse reuse = CacheReuse::fastest;
  CachePreemption preemption = CachePreemption::fastest;
  int layers = 1;            ///< that come one after the other (by_layer)
  int groups = 1;            ///< of ranks of a replica, each of which loads for its own sequences
  double host_tokens = 0;    ///< that a replica's part of host memory holds
  double disk_tokens = 0;    ///< that its part of the nodes' drives holds
  double remote_tokens = 0;  ///< that the pool holds
  Seconds host_token{};      ///< from the host to the group's GPUs; infinite: never
  Seconds disk_token{};      ///< from the drives of one node to its host, all of it
  Seconds disk_latency{};    ///< of each load from drives
  Seconds remote_token{};    ///< through one NIC port, all of it
  Seconds pool_token{};      ///< out of the pool, whoever asks
  Seconds remote_latency{};  ///< of each load out of the pool
  /// Of each group, replica by replica; empty: a port of its own for each.
  std::vector<std::vector<PortLoad>> ports{};
  /// Of each group, replica by replica, the drives that it reads; empty: those of its own node.
  std::vector<std::vector<PortLoad>> drives{};

  /// How much longer a pass of time `work` takes for a load of time `load`. By layer the first one
  /// waits for its own part, and the last one is worked on when all is there:
  /// max(load / L, load - work (L - 1) / L) with L layers; else all of it.
  [[nodiscard]] Seconds added(Seconds load_time, Seconds work) const;
};

/// Blocks that went into a tier, back from it, and out of it for good: written = left + held.
struct TierFlow {
  std::int64_t written = 0, loaded = 0, left = 0, held = 0;

  TierFlow& operator+=(const TierFlow& o);
};

/// Pieces that a tier holds, the longest unwritten first to go.
class TierStore {
 public:
  explicit TierStore(std::int64_t capacity) : capacity_(capacity) {}

  [[nodiscard]] bool holds(std::int32_t node) const { return held_.contains(node); }
  /// Lets go of the oldest for it; what is larger than the tier is not written.
  void write(const PrefixPiece& piece);
  void load(std::int64_t blocks) { flow_.loaded += blocks; }
  /// Room for blocks of a sequence, which pieces leave for; whether they fit.
  bool reserve(std::int64_t blocks);
  void free(std::int64_t blocks) { reserved_ -= blocks; }
  /// Its memory is lost.
  void clear();
  [[nodiscard]] const TierFlow& flow() const { return flow_; }

 private:
  void make_room();

  std::int64_t capacity_, reserved_ = 0;
  std::unordered_map<std::int32_t, std::list<PrefixPiece>::iterator> held_;  // never gone through
  std::list<PrefixPiece> order_;
  TierFlow flow_;
};

/// The pool of all replicas, and until when it, and the NIC ports and drives of nodes are busy.
struct RemotePool {
  TierStore store;
  RunTime until = 0;
  std::vector<RunTime> ports{}, drives{};
};

/// Which tier holds how much of a prompt's beginning, in blocks.
struct HeldPrompt {
  std::int32_t node = -1;  ///< below 0: nothing
  std::int64_t gpu = 0, host = 0, disk = 0, remote = 0;
  std::int64_t recomputed = 0;  ///< that tiers hold behind it, and that is worked on again

  [[nodiscard]] std::int64_t behind() const { return host + disk + remote; }
};

struct TierAccount {
  /// Blocks of prompts found, when work on them began.
  std::int64_t gpu = 0, host = 0, disk = 0, remote = 0;
  std::int64_t recomputed = 0;  ///< found too, and worked on again, as that was sooner done
  std::int64_t loads = 0;
  RunTime loading = 0;     ///< of all loads, from when they were asked for
  RunTime stalled = 0;     ///< that passes waited for loads and for swapping
  std::int64_t swaps = 0;  ///< of sequences out of a full cache
  std::int64_t moved = 0;  ///< blocks of them, out and back
  TierFlow of_host, of_disk;

  TierAccount& operator+=(const TierAccount& o);
};

/// The tiers as one replica sees them.
class ReplicaTiers {
 public:
  /// Of the replica of that number; `plan` and `remote` outlive it.
  ReplicaTiers(const TierPlan& plan, std::size_t replica, int block, RemotePool& remote);

  [[nodiscard]] const TierPlan& plan() const { return *plan_; }
  /// Beginnings of `node` of at most so many tokens of which each piece is somewhere: the one that
  /// the GPUs hold, then one up to each change from tier to tier; the longest last. What loading
  /// takes grows evenly within a tier, and what it saves ever faster with a longer context, so that
  /// the best one to load is among them.
  [[nodiscard]] std::vector<HeldPrompt> find(const PrefixCache& gpu, std::int32_t node,
                                             std::int64_t most_tokens) const;
  /// What the GPUs let go of; empties the list.
  void write(std::vector<PrefixPiece>& pieces);
  /// How long a load takes that is asked for at `now`.
  [[nodiscard]] Seconds load_time(const HeldPrompt& held, RunTime now);
  /// Loads what is not on the GPUs; when it will be there.
  RunTime load(const HeldPrompt& held, RunTime now);
  /// How long it would take to swap a sequence out now, and back.
  [[nodiscard]] Seconds swap_time(std::int64_t blocks, RunTime now) const;
  /// Swaps it out, where host memory has room for it; when it will be there; below 0: it has none.
  RunTime swap_out(std::int64_t blocks, RunTime now);
  /// Swaps it back, but for the first `held` of its blocks, which GPUs have; when it will be there.
  RunTime swap_in(std::int64_t blocks, std::int64_t held, RunTime now);
  /// Work on a prompt begins for the first time.
  void count(const HeldPrompt& held);
  /// A pass waits.
  void stall(RunTime time) { account_.stalled += time; }
  /// The replica dies, and its part of host memory with it.
  void lose();
  [[nodiscard]] TierAccount account() const;

 private:
  /// Something that a load keeps busy.
  struct Claim {
    RunTime* until;
    Seconds takes;
    Seconds latency{};
  };

  [[nodiscard]] std::vector<Claim> claims(const HeldPrompt& held);
  [[nodiscard]] Seconds host_time(std::int64_t blocks) const;

  const TierPlan* plan_;
  int block_;
  RemotePool* remote_;
  TierStore host_, disk_;
  std::vector<RunTime> links_, out_links_;             ///< of each group: until when it is busy
  std::vector<std::vector<PortLoad>> ports_, drives_;  ///< of each group
  TierAccount account_;
};

/// Whole blocks of so many tokens.
std::int64_t tier_blocks(double tokens, int block);

}  // namespace lockstep
