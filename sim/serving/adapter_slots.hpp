/// Adapters (LoRA) of the requests on one replica: which of them its GPUs and its host hold, and
/// which requests may run together.
///
/// A pass applies at most `on_gpu` different adapters. A request whose adapter is not among those
/// in use waits while all places are in use, and others that wait behind it go before
/// (github:vllm-project/vllm:vllm/v1/core/sched/scheduler.py, max_loras). What is not on the GPUs
/// comes from host memory, what is not there from storage; what was used longest ago makes room
/// (vllm/lora/worker_manager.py). The replica waits for a load.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

/// What adapters take, of a replica.
struct AdapterRules {
  int count = 0;             ///< of different ones; 0: the service has none
  int on_gpu = 1;            ///< of them in a pass
  int in_host = 1;           ///< of them in host memory
  RunTime from_host = 0;     ///< to the GPUs
  RunTime from_storage = 0;  ///< to host memory
  // What a pass takes longer (models/generation/served_adapters.hpp): once, of each different
  // adapter, and of each token that has one.
  Seconds pass{}, adapter{}, row{};
};

/// What adapters came to, of replicas together.
struct AdapterAccount {
  std::int64_t loads = 0;         ///< to the GPUs
  std::int64_t from_storage = 0;  ///< of these, that no host held
  Seconds loading;                ///< that replicas waited for them
  Seconds kernels;                ///< that passes took longer

  AdapterAccount& operator+=(const AdapterAccount& o) {
    loads += o.loads;
    from_storage += o.from_storage;
    loading += o.loading;
    kernels += o.kernels;
    return *this;
  }
};

/// Numbers below `count` in the order of their last use.
class RecentlyUsed {
 public:
  explicit RecentlyUsed(std::size_t count) : places_(count) {}

  [[nodiscard]] bool has(std::int32_t one) const {
    return places_[static_cast<std::size_t>(one)].has_value();
  }
  [[nodiscard]] std::size_t size() const { return order_.size(); }
  /// Used now; comes in where it was not there.
  void use(std::int32_t one);
  void erase(std::int32_t one);
  /// From the one that was used longest ago on.
  [[nodiscard]] const std::list<std::int32_t>& order() const { return order_; }
  void clear();

 private:
  std::list<std::int32_t> order_;
  std::vector<std::optional<std::list<std::int32_t>::const_iterator>> places_;
};

class AdapterSlots {
 public:
  explicit AdapterSlots(const AdapterRules& rules);

  [[nodiscard]] const AdapterRules& rules() const { return rules_; }
  /// Whether a request with that adapter may run beside those that do; below 0: none.
  [[nodiscard]] bool may_join(std::int32_t adapter) const {
    return adapter < 0 || users_[static_cast<std::size_t>(adapter)] > 0 || room();
  }
  [[nodiscard]] bool on_gpu(std::int32_t adapter) const { return gpu_.has(adapter); }
  /// Whether one more adapter may come into use.
  [[nodiscard]] bool room() const { return static_cast<int>(in_use_.size()) < rules_.on_gpu; }
  /// A request begins; how long the replica waits for its adapter. Requires that it may.
  RunTime join(std::int32_t adapter);
  void leave(std::int32_t adapter);
  /// Different ones of the requests that run, and these requests.
  [[nodiscard]] const std::vector<std::int32_t>& in_use() const { return in_use_; }
  /// How much longer a pass takes with so many different adapters and rows.
  [[nodiscard]] Seconds longer(std::size_t adapters, double rows) const;
  /// Its memory is lost, the GPUs' and the host's. Requires that nobody uses any.
  void clear();
  /// Counts what adapters' kernels took.
  void spent(Seconds time) { kernels_ += time; }
  [[nodiscard]] AdapterAccount account() const {
    return {loads_, from_storage_, to_seconds(loading_), kernels_};
  }

 private:
  void make_place();

  const AdapterRules& rules_;
  std::vector<std::int32_t> users_;   ///< requests of each
  std::vector<std::int32_t> in_use_;  ///< those that have any
  RecentlyUsed gpu_, host_;
  std::int64_t loads_ = 0, from_storage_ = 0;
  RunTime loading_ = 0;
  Seconds kernels_;
};

}  // namespace lockstep
