#include "sim/run/storage_traffic.hpp"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "sim/step/replay.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/site.hpp"

namespace lockstep {
namespace {

/// What is left of each link of the fabric.
std::vector<double> nics_left(const Scenario& scenario, const Fabric& fabric,
                              BytesPerSecond taken) {
  std::vector<double> left(fabric.link_count(), 1.0);
  std::vector<RouteHop> hops;
  const BytesPerSecond of_port = taken / fabric.nics_per_node();
  for (int node = 0; node < scenario.nodes; ++node) {
    for (int nic = 0; nic < fabric.nics_per_node(); ++nic) {
      hops.clear();
      fabric.nic_ups(node, nic, hops);
      fabric.nic_downs(node, nic, hops);
      for (const RouteHop& hop : hops) {
        left[hop.link] = 1 - of_port * hop.share / fabric.capacity(hop.link);
        assert(left[hop.link] > 0);
      }
    }
  }
  return left;
}

/// How long each actor has something on the way through its NIC.
class NicWatch : public FlowObserver {
 public:
  NicWatch(const StepPlan& plan, const std::vector<ReplicaClass>& classes, const Wiring& wiring)
      : classes_(classes), stages_(plan.stages.size()), actors_(classes.size() * stages_) {
    for (const WiredFlow& flow : wiring.flows()) {
      if (flow.on_fabric) uses_.resize(std::max<std::size_t>(uses_.size(), flow.flow + 1));
    }
    for (const WiredFlow& flow : wiring.flows()) {
      if (flow.on_fabric) uses_[flow.flow] = actors_of(flow);
    }
  }

  void started(FlowIndex flow, Bytes, StepTime now) override {
    if (flow >= uses_.size()) return;
    for (const std::size_t a : uses_[flow]) {
      if (actors_[a].moving++ == 0) actors_[a].since = now;
    }
  }
  void moved(FlowIndex, StepTime, StepTime, BytesPerSecond, LinkIndex) override {}
  void ended(FlowIndex flow, StepTime now) override {
    if (flow >= uses_.size()) return;
    for (const std::size_t a : uses_[flow]) {
      Actor& actor = actors_[a];
      if (--actor.moving == 0) actor.busy_s += to_seconds(now - actor.since).base_units();
    }
  }

  /// Mean over all GPUs.
  [[nodiscard]] double busy_s() const {
    double sum = 0, copies = 0;
    for (std::size_t a = 0; a < actors_.size(); ++a) {
      const double of_class = classes_[a / stages_].copies;
      sum += of_class * actors_[a].busy_s;
      copies += of_class;
    }
    return sum / copies;
  }

 private:
  struct Actor {
    int moving = 0;
    StepTime since;
    double busy_s = 0;
  };

  /// Whose NICs send.
  [[nodiscard]] std::vector<std::size_t> actors_of(const WiredFlow& flow) const {
    switch (flow.use) {
      case WiredFlow::Use::message:
        return {flow.subject / 2};
      case WiredFlow::Use::tensor:
        return {flow.subject};
      case WiredFlow::Use::embedding:
        return {flow.subject * stages_, (flow.subject + 1) * stages_ - 1};
      case WiredFlow::Use::data: {
        std::vector<std::size_t> all;
        for (std::size_t c = 0; c < classes_.size(); ++c) {
          all.push_back(c * stages_ + flow.subject);
        }
        return all;
      }
    }
    return {};
  }

  const std::vector<ReplicaClass>& classes_;
  std::size_t stages_;
  std::vector<Actor> actors_;
  std::vector<std::vector<std::size_t>> uses_;  ///< actors, by flow
};

}  // namespace

SharedStep shared_step(const Scenario& scenario, BytesPerSecond taken) {
  const StepPlan plan = plan_step(scenario);
  const Fabric fabric = own_fabric(scenario, plan);
  const Folding folding = fold_replicas(scenario, plan, fabric, false);
  FlowNetwork network;
  FabricLinks links{fabric, network, nics_left(scenario, fabric, taken)};
  const Wiring wiring{
      scenario, plan, folding.classes, {.links = &links, .nodes = {}}, folding.links};
  NicWatch watch{plan, folding.classes, wiring};
  network.observe(&watch);
  const double step_s = to_seconds(replay(plan, folding.classes, wiring, false).end).base_units();
  return {.step_s = step_s, .busy = watch.busy_s() / step_s};
}

StorageTraffic::StorageTraffic(const Scenario& scenario, const std::optional<DataSpec>& data,
                               double step_s)
    : scenario_(scenario), data_(data), step_s_(step_s) {
  if (!data) return;
  const Batch& batch = scenario.job.batch;
  const double tokens = static_cast<double>(batch.sequences) * batch.tokens;
  const Bytes step_bytes{tokens * data->bytes_per_token};
  const BytesPerSecond needed = step_bytes / Seconds{step_s};
  const bool on_nics = data->storage.network == StorageNetwork::training;
  BytesPerSecond supply = storage_rates(data->storage, scenario.node, scenario.nodes).read;
  // Gradients leave it half of every port at least.
  if (on_nics) supply = std::min(supply, 0.5 * all_nics());
  supplied_ = std::min<double>(1.0, supply / needed);
  read_ = supplied_ * needed;
  speed_ = supplied_;
  if (on_nics) {
    const SharedStep step = shared_step(scenario, read_ / scenario.nodes);
    speed_ = std::min(speed_, step_s / step.step_s);
  }
}

BytesPerSecond StorageTraffic::all_nics() const {
  const NodeSpec& node = scenario_.node;
  return static_cast<double>(scenario_.nodes) * node.nics * node.nic_bandwidth;
}

StorageTraffic::ServerTime StorageTraffic::server_time(const StorageSpec& storage) const {
  if (!data_ || data_->storage != storage) return {};
  const double servers = storage.network == StorageNetwork::local ? scenario_.nodes : 1;
  const StorageRates rates = storage_rates(storage, scenario_.node, scenario_.nodes);
  const double needed = read_ / (servers * storage.read);
  const double writing = rates.write / (servers * storage.write);
  return {.reads = std::min(needed, std::max(0.5, 1 - writing)), .needed = needed};
}

UploadPlan StorageTraffic::upload(const CheckpointSpec& spec, const CheckpointBytes& bytes) const {
  const bool to_peers = spec.target == CheckpointTarget::peers;
  if (!spec.asynchronous || (!to_peers && !spec.storage)) return {};
  const StorageSpec storage = to_peers ? StorageSpec{} : *spec.storage;

  BytesPerSecond idle = all_nics();  // the upload's rate while the step leaves the NICs alone
  ServerTime time;
  if (!to_peers) {
    time = server_time(storage);
    const double servers = storage.network == StorageNetwork::local ? scenario_.nodes : 1;
    idle = std::min(storage_rates(storage, scenario_.node, scenario_.nodes).write,
                    (1 - time.reads) * servers * storage.write);
  }
  if (spec.finishes) {
    if (*spec.finishes <= Seconds{}) return {};
    idle = bytes.all / *spec.finishes;
  }

  const double reads = time.needed > 0 ? time.reads / time.needed : 1;  // of what it needs
  BytesPerSecond rate = idle;
  double speed = supplied_ * reads;
  if (to_peers || storage.network == StorageNetwork::training) {
    const BytesPerSecond nics = all_nics();
    const bool data_on_nics = data_ && data_->storage.network == StorageNetwork::training;
    const BytesPerSecond data = data_on_nics ? reads * read_ : BytesPerSecond{};
    BytesPerSecond contended = std::min(idle, 0.5 * nics);
    BytesPerSecond taken = std::max(contended, data);
    if (to_peers) {
      // Peers receive what they send, beside the data: three streams on a port.
      contended = std::min(contended, std::max(nics / 3, 0.5 * (nics - data)));
      taken = contended + std::min(data, nics / 3);
    }
    const SharedStep step = shared_step(scenario_, taken / scenario_.nodes);
    rate = step.busy * contended + (1 - step.busy) * idle;
    speed = std::min(speed, step_s_ / step.step_s);
  } else {
    speed = std::min(speed, speed_);
  }
  const Seconds opening = spec.finishes ? Seconds{} : storage.metadata;
  return {.rate = rate,
          .finishes = opening + bytes.all / rate,
          .drag = std::max(0.0, 1 - speed / speed_)};
}

}  // namespace lockstep
