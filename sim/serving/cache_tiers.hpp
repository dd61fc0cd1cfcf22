/// Slower memory behind the caches of replicas: host memory, which each replica has a part of, and
/// a remote pool that all share.
///
/// What a GPU's cache lets go of is written to both, so that other replicas find it in the pool;
/// the longest unwritten leaves first, and what is loaded back stays where it was. So of two sizes
/// of a tier the larger one holds all that the smaller one does (Mattson et al. 1970, IBM Syst. J.
/// 9(2), 78-117), unless a single piece is larger than the smaller one. Loads over a group's link
/// go one after the other; those out of the pool last as long as the group's NIC ports, which it
/// may share with other groups and replicas, or the pool, whichever is later, have bytes before
/// them. Leaves out: what writing takes (it is beside passes, in the other direction of the links),
/// and the fabric between NICs and the pool.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "models/base/units.hpp"
#include "models/generation/serving_engine.hpp"
#include "sim/serving/prefix_cache.hpp"

namespace lockstep {

/// What of a load comes through which NIC port of the service's nodes.
struct PortLoad {
  std::size_t port = 0;
  double share = 1;
};

/// What stands behind the caches, in tokens and in what loading one takes; 0: nothing.
struct TierPlan {
  CacheLoad load = CacheLoad::blocking;
  int layers = 1;            ///< that come one after the other (by_layer)
  int groups = 1;            ///< of ranks of a replica, each of which loads for its own sequences
  double host_tokens = 0;    ///< that a replica's part of host memory holds
  double remote_tokens = 0;  ///< that the pool holds
  Seconds host_token{};      ///< from the host to the group's GPUs
  Seconds remote_token{};    ///< through one NIC port, all of it
  Seconds pool_token{};      ///< out of the pool, whoever asks
  Seconds remote_latency{};  ///< of each load out of the pool
  /// Of each group, replica by replica; empty: a port of its own for each.
  std::vector<std::vector<PortLoad>> ports{};
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
  /// Its memory is lost.
  void clear();
  [[nodiscard]] const TierFlow& flow() const { return flow_; }

 private:
  std::int64_t capacity_;
  std::unordered_map<std::int32_t, std::list<PrefixPiece>::iterator> held_;  // never gone through
  std::list<PrefixPiece> order_;
  TierFlow flow_;
};

/// The pool of all replicas, and until when it and the NIC ports of their nodes are busy.
struct RemotePool {
  TierStore store;
  RunTime until = 0;
  std::vector<RunTime> ports{};
};

/// Which tier holds how much of a prompt's beginning, in blocks.
struct HeldPrompt {
  std::int32_t node = -1;  ///< below 0: nothing
  std::int64_t gpu = 0, host = 0, remote = 0;
};

struct TierAccount {
  std::int64_t gpu = 0, host = 0, remote = 0;  ///< blocks of prompts found, when work on them began
  std::int64_t loads = 0;
  RunTime loading = 0;  ///< of all loads, from when they were asked for
  RunTime stalled = 0;  ///< that passes waited for them
  TierFlow of_host;

  TierAccount& operator+=(const TierAccount& o);
};

/// The tiers as one replica sees them.
class ReplicaTiers {
 public:
  /// Of the replica of that number; `plan` and `remote` outlive it.
  ReplicaTiers(const TierPlan& plan, std::size_t replica, int block, RemotePool& remote);

  [[nodiscard]] const TierPlan& plan() const { return *plan_; }
  /// The longest beginning of `node` of which each piece is somewhere, and at most so many tokens.
  [[nodiscard]] HeldPrompt find(const PrefixCache& gpu, std::int32_t node,
                                std::int64_t most_tokens) const;
  /// What the GPUs let go of; empties the list.
  void write(std::vector<PrefixPiece>& pieces);
  /// Loads what is not on the GPUs; when it will be there.
  RunTime load(const HeldPrompt& held, RunTime now);
  /// Work on a prompt begins for the first time.
  void count(const HeldPrompt& held);
  /// A pass waits.
  void stall(RunTime time) { account_.stalled += time; }
  /// The replica dies, and its part of host memory with it.
  void lose();
  [[nodiscard]] TierAccount account() const;

 private:
  RunTime load_remote(double tokens, RunTime now);

  const TierPlan* plan_;
  int block_;
  RemotePool* remote_;
  TierStore host_;
  std::vector<RunTime> links_;                ///< of each group: until when it is busy
  std::vector<std::vector<PortLoad>> ports_;  ///< of each group
  TierAccount account_;
};

/// Whole blocks of so many tokens.
std::int64_t tier_blocks(double tokens, int block);

}  // namespace lockstep
