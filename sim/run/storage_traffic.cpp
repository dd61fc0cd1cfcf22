#include "sim/run/storage_traffic.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "sim/run/data_plan.hpp"
#include "sim/run/shared_step.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

/// Rates come out of a solver and times are whole ticks: what is off by less than that is whole.
double part(double of_whole) { return of_whole > 1 - 1e-9 ? 1 : of_whole; }

/// What the node with the slowest NICs sends of payload.
BytesPerSecond nics_of(const Scenario& scenario) {
  return payload_bandwidth(slowest_node(scenario), scenario.transport);
}
/// Of a node, where `given` may be 0 for none given.
BytesPerSecond client_rate(BytesPerSecond given, const Scenario& scenario) {
  const BytesPerSecond nics = nics_of(scenario);
  return given > BytesPerSecond{} ? std::min(given, nics) : nics;
}
/// Of all nodes.
StorageRates rates_of(const StorageSpec& storage, const Scenario& scenario) {
  return storage_rates(storage, node_towards(storage, scenario), scenario.transport,
                       scenario.nodes);
}

}  // namespace

NodeSpec slowest_node(const Scenario& scenario) {
  NodeSpec node = scenario.node;
  for (const NodePool& pool : scenario.pools) {
    if (pool.node.nics * pool.node.nic_bandwidth < node.nics * node.nic_bandwidth) {
      node.nics = pool.node.nics;
      node.nic_bandwidth = pool.node.nic_bandwidth;
    }
    node.gpu.pcie_bandwidth = std::min(node.gpu.pcie_bandwidth, pool.node.gpu.pcie_bandwidth);
  }
  return node;
}

NodeSpec node_towards(const StorageSpec& storage, const Scenario& scenario) {
  NodeSpec node = slowest_node(scenario);
  if (storage.network != StorageNetwork::training || is_drawn(scenario.fabric)) return node;
  const NicPorts ports = nic_ports(node);
  const Fabric fabric(scenario.fabric, scenario.nodes, ports.count, ports.bandwidth);
  node.nic_bandwidth =
      static_cast<double>(ports.count) / node.nics * port_rate_to_top(fabric, scenario.nodes);
  return node;
}

StorageTraffic::StorageTraffic(const Scenario& scenario, const std::optional<DataSpec>& data,
                               double step_s, double steps, double busy)
    : scenario_(scenario), data_(data), step_s_(step_s), busy_(busy) {
  if (!data) return;
  const Batch& batch = scenario.job.batch;
  const double tokens = static_cast<double>(batch.sequences) * batch.tokens;
  const Bytes step_bytes{tokens * data->bytes_per_token};
  const BytesPerSecond needed = step_bytes / Seconds{step_s};
  const bool on_nics = data->storage.network == StorageNetwork::training;
  const BytesPerSecond supply = rates_of(data->storage, scenario).read;
  if (data->dataset && steps > 0) epochs_ = steps * step_bytes / *data->dataset;
  if (data->cache && epochs_ > 1) {
    cached_ = std::min<double>(1.0, scenario.nodes * data->cache->per_node / *data->dataset);
  }
  const DataRates rates = data_rates(supply);
  first_ = lockstep::first_epoch(rates, needed, cached_);
  later_ = later_epoch(rates, needed, cached_);
  supplied_ = speed_over_epochs(first_.speed, later_.speed, epochs_);
  read_ = share_from_storage(later_, epochs_) * supplied_ * needed;
  if (on_nics) {
    share_nics(needed, first_);
    if (epochs_ > 1) share_nics(needed, later_);
  }
  speed_ = speed_over_epochs(first_.speed, later_.speed, epochs_);
}

BytesPerSecond StorageTraffic::staging_write() const {
  const StorageSpec& storage = data_->storage;
  const double servers = storage.network == StorageNetwork::local ? scenario_.nodes : 1;
  return servers * storage.write;
}

DataRates StorageTraffic::data_rates(BytesPerSecond supply) const {
  const BytesPerSecond no_limit{std::numeric_limits<double>::infinity()};
  const double nodes = scenario_.nodes;
  DataRates out{.loader = no_limit,
                .staging = staging_rate(*data_, staging_write()),
                .storage = supply,
                .cache_read = no_limit,
                .cache_write = no_limit};
  if (const auto& loader = data_->loader) {
    out.loader = BytesPerSecond{nodes * loader->cores_per_node * loader->tokens_per_core_s *
                                data_->bytes_per_token};
  }
  if (const auto& cache = data_->cache) {
    out.cache_read = nodes * cache->read;
    out.cache_write = nodes * cache->write;
  }
  return out;
}

void StorageTraffic::share_nics(BytesPerSecond needed, EpochSpeed& pass) {
  const BytesPerSecond reads = pass.from_storage * pass.speed * needed;
  if (reads <= BytesPerSecond{}) return;
  const std::array streams{
      NodeStream{.all = reads, .node = client_rate(data_->storage.client_read, scenario_)}};
  const SharedStep step = shared_step(scenario_, streams);
  if (!data_step_band_) data_step_band_ = step.band;
  const double speed =
      std::min(pass.speed * part(step.rates[0] / reads), part(step_s_ / step.step_s));
  if (speed < pass.speed) pass.limit = DataLimit::network;
  pass.speed = speed;
}

NodeStream StorageTraffic::data_stream(double reads) const {
  const StorageSpec& storage = data_->storage;
  return {.all = reads * read_, .node = client_rate(storage.client_read, scenario_)};
}

StorageTraffic::ServerTime StorageTraffic::server_time(const StorageSpec& storage) const {
  if (!data_ || data_->storage != storage) return {};
  const double servers = storage.network == StorageNetwork::local ? scenario_.nodes : 1;
  const StorageRates rates = rates_of(storage, scenario_);
  const double needed = read_ / (servers * storage.read);
  const double writing = rates.write / (servers * storage.write);
  return {.reads = std::min(needed, std::max(0.5, 1 - writing)), .needed = needed};
}

UploadPlan StorageTraffic::upload(const CheckpointSpec& spec, const CheckpointBytes& bytes) const {
  const bool to_peers = spec.target == CheckpointTarget::peers;
  if (!spec.asynchronous || (!to_peers && !spec.storage)) return {};
  const StorageSpec storage = to_peers ? StorageSpec{} : *spec.storage;

  const BytesPerSecond nics = nics_of(scenario_);
  NodeStream stream{.all = scenario_.nodes * nics, .node = nics, .to_top = !to_peers};
  ServerTime time;
  if (!to_peers) {
    time = server_time(storage);
    const double servers = storage.network == StorageNetwork::local ? scenario_.nodes : 1;
    stream.node = client_rate(storage.client_write, scenario_);
    stream.all =
        std::min(rates_of(storage, scenario_).write, (1 - time.reads) * servers * storage.write);
  }
  if (spec.finishes) {
    if (*spec.finishes <= Seconds{}) return {};
    stream.all = bytes.all / *spec.finishes;
    stream.node = nics;
  }

  const double reads = time.needed > 0 ? time.reads / time.needed : 1;  // of what it needs
  UploadPlan plan{.rate = stream.all, .finishes = {}, .drag = 0};
  double speed = std::min(supplied_ * reads, speed_);
  if (to_peers || storage.network == StorageNetwork::training) {
    std::vector<NodeStream> streams{stream};
    const bool data_too = data_ && data_->storage.network == StorageNetwork::training;
    if (data_too) streams.push_back(data_stream(reads));
    const SharedStep step = shared_step(scenario_, streams);
    const BytesPerSecond alone = std::min(stream.all, scenario_.nodes * stream.node);
    plan.rate = busy_ * step.rates[0] + (1 - busy_) * alone;
    plan.step_band = step.band;
    if (data_too) speed = std::min(speed, supplied_ * reads * part(step.rates[1] / streams[1].all));
    speed = std::min(speed, slowed(part(step_s_ / step.step_s)));
  }
  plan.finishes = (spec.finishes ? Seconds{} : storage.metadata) + bytes.all / plan.rate;
  plan.drag = std::max(0.0, 1 - speed / speed_);
  return plan;
}

}  // namespace lockstep
