// Ring all-reduces message by message in SimGrid, over the links and neighbours of
// `lockstep comm --paths` of the same rings with "as": "flows": 2 (n - 1) steps, each of an n-th of
// the buffer; a member sends its next piece when the last one has left and the one before arrived.
//
// Usage: simgrid_rings PATHS MEMBERS
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;
namespace routing = simgrid::kernel::routing;

namespace {

/// An edge of a ring; edge i of a ring of n is followed by edge (i + 1) % n.
struct Edge {
  std::vector<std::uint32_t> links;
  std::size_t next = 0;
  double bytes = 0;  // of one step
  int begun = 0, sent = 0, received = 0;
};

class RingZone : public routing::NetZoneImpl {
 public:
  explicit RingZone(const std::string& name) : NetZoneImpl(name) {}
  std::vector<simgrid::kernel::resource::StandardLinkImpl*> links;
  const Edge* next = nullptr;

  void get_local_route(const routing::NetPoint*, const routing::NetPoint*, routing::Route* into,
                       double*) override {
    for (const std::uint32_t link : next->links) into->link_list_.push_back(links[link]);
  }
};

class Rings {
 public:
  Rings(const char* path, std::size_t members) : steps_(2 * static_cast<int>(members - 1)) {
    std::ifstream file(path);
    std::string word, line;
    std::size_t count = 0;
    file >> word >> count >> word >> count;
    capacity_.resize(count);
    for (double& capacity : capacity_) file >> capacity;
    file >> word >> count;
    edges_.resize(count);
    std::getline(file, line);
    for (std::size_t i = 0; i < count; ++i) {
      std::getline(file, line);
      std::istringstream fields(line);
      double demand = 0, round = 0, bytes = 0, start = 0, end = 0;
      fields >> demand >> round >> bytes >> start >> end;
      edges_[i].bytes = bytes / steps_;
      edges_[i].next = i / members * members + (i % members + 1) % members;
      for (std::uint32_t link = 0; fields >> link;) edges_[i].links.push_back(link);
    }
  }

  void build() {
    zone_ = new RingZone("rings");
    sg4::NetZone* face = zone_->get_iface();
    for (std::size_t i = 0; i < capacity_.size(); ++i) {
      auto* link = face->create_link("l" + std::to_string(i), capacity_[i]);
      zone_->links.push_back(link->set_latency(0)->seal()->get_impl());
    }
    from_ = face->create_host("from", 1e9)->seal();
    to_ = face->create_host("to", 1e9)->seal();
    face->seal();
    current_.resize(edges_.size());
    previous_.resize(edges_.size());
    sg4::Activity::on_completion_cb([this](const sg4::Activity& done) { on_done(done); });
  }
  void start() {
    for (std::size_t i = 0; i < edges_.size(); ++i) send(i);
  }
  std::uint64_t messages() const { return messages_; }

 private:
  void send(std::size_t index) {
    Edge& edge = edges_[index];
    ++edge.begun;
    zone_->next = &edge;
    auto comm = sg4::Comm::sendto_init(from_, to_);
    comm->set_payload_size(static_cast<std::uint64_t>(edge.bytes));
    previous_[index] = current_[index];
    current_[index] = comm;
    number_[comm.get()] = index;
    comm->start();
  }
  void send_if_ready(std::size_t index) {
    const Edge& edge = edges_[index];
    if (edge.begun < steps_ && edge.sent == edge.begun && edge.received >= edge.begun) send(index);
  }
  void on_done(const sg4::Activity& activity) {
    const auto found = number_.find(&activity);
    if (found == number_.end()) return;
    const std::size_t index = found->second;
    number_.erase(found);
    ++messages_;
    ++edges_[index].sent;
    ++edges_[edges_[index].next].received;
    send_if_ready(index);
    send_if_ready(edges_[index].next);
  }

  int steps_;
  std::vector<double> capacity_;
  std::vector<Edge> edges_;
  RingZone* zone_ = nullptr;
  sg4::Host* from_ = nullptr;
  sg4::Host* to_ = nullptr;
  std::vector<sg4::CommPtr> current_, previous_;
  std::unordered_map<const sg4::Activity*, std::size_t> number_;
  std::uint64_t messages_ = 0;
};

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Processor time of the process so far.
double cpu_now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  engine.set_config("network/model:CM02");
  engine.set_config("network/crosstraffic:0");
  engine.set_config("network/TCP-gamma:0");
  if (argc < 3) {
    std::cerr << "usage: simgrid_rings PATHS MEMBERS\n";
    return 2;
  }
  Rings rings(argv[1], static_cast<std::size_t>(std::atol(argv[2])));
  const double begin = now(), cpu_begin = cpu_now();
  rings.build();
  const double built = now();
  rings.start();
  engine.run();
  std::printf(
      "{\"messages\": %llu, \"build_s\": %.4f, \"run_s\": %.4f, \"cpu_s\": %.4f, "
      "\"last_end_s\": %.12f}\n",
      static_cast<unsigned long long>(rings.messages()), built - begin, now() - built,
      cpu_now() - cpu_begin, sg4::Engine::get_clock());
  std::fflush(stdout);
  std::_Exit(0);
}
