// Replays the messages of `lockstep comm --paths` in SimGrid, over the very same links, and
// compares every completion time. Fastest mode of SimGrid: communications started from completion
// callbacks, no actors; plain max-min (CM02, no cross traffic, no TCP window, no latency).
//
// Usage: simgrid_paths PATHS [TOLERANCE]
// Exit status: 0 all completion times agree within TOLERANCE (1e-6, relative), 1 they do not.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
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

struct Message {
  long demand = 0;
  long round = 0;
  double bytes = 0;
  double start = 0;
  double end = 0;  // as Lockstep says
  std::vector<std::uint32_t> links;
};

struct Input {
  std::vector<double> capacity;
  std::vector<Message> messages;
};

Input read_input(const char* path) {
  std::ifstream file(path);
  Input input;
  std::string word;
  int version = 0;
  std::size_t count = 0;
  if (!(file >> word >> version) || word != "lockstep-paths" || version != 1) {
    std::cerr << path << ": no file of lockstep comm --paths\n";
    std::exit(2);
  }
  file >> word >> count;
  input.capacity.resize(count);
  for (double& capacity : input.capacity) file >> capacity;
  file >> word >> count;
  input.messages.resize(count);
  std::string line;
  std::getline(file, line);
  for (Message& message : input.messages) {
    std::getline(file, line);
    std::istringstream fields(line);
    fields >> message.demand >> message.round >> message.bytes >> message.start >> message.end;
    for (std::uint32_t link = 0; fields >> link;) message.links.push_back(link);
  }
  return input;
}

/// Two hosts for each demand; the route between them is that of the message about to start.
class PathZone : public routing::NetZoneImpl {
 public:
  explicit PathZone(const std::string& name) : NetZoneImpl(name) {}
  std::vector<simgrid::kernel::resource::StandardLinkImpl*> links;
  const Message* next = nullptr;

  void get_local_route(const routing::NetPoint*, const routing::NetPoint*, routing::Route* into,
                       double*) override {
    for (const std::uint32_t link : next->links) into->link_list_.push_back(links[link]);
  }
};

class Replay {
 public:
  explicit Replay(const Input& input) : input_(input), finish_(input.messages.size(), -1) {}

  void build() {
    zone_ = new PathZone("paths");
    sg4::NetZone* face = zone_->get_iface();
    for (std::size_t i = 0; i < input_.capacity.size(); ++i) {
      auto* link = face->create_link("l" + std::to_string(i), input_.capacity[i]);
      zone_->links.push_back(link->set_latency(0)->seal()->get_impl());
    }
    from_ = face->create_host("from", 1e9)->seal();
    to_ = face->create_host("to", 1e9)->seal();
    face->seal();
    sg4::Activity::on_completion_cb([this](const sg4::Activity& done) { on_done(done); });
  }

  void start_first() {
    for (std::size_t i = 0; i < input_.messages.size(); ++i) {
      if (input_.messages[i].round == 0) start(i);
    }
  }

  const std::vector<double>& finish() const { return finish_; }

 private:
  void start(std::size_t index) {
    zone_->next = &input_.messages[index];
    auto comm = sg4::Comm::sendto_init(from_, to_);
    comm->set_payload_size(static_cast<std::uint64_t>(input_.messages[index].bytes));
    keep_.push_back(comm);
    number_[comm.get()] = index;
    comm->start();
  }

  void on_done(const sg4::Activity& activity) {
    const auto found = number_.find(&activity);
    if (found == number_.end()) return;
    const std::size_t index = found->second;
    number_.erase(found);
    finish_[index] = sg4::Engine::get_clock();
    const std::size_t next = index + 1;  // the file has the rounds of a demand in a row
    if (next < input_.messages.size() &&
        input_.messages[next].demand == input_.messages[index].demand) {
      start(next);
    }
  }

  const Input& input_;
  PathZone* zone_ = nullptr;
  sg4::Host* from_ = nullptr;
  sg4::Host* to_ = nullptr;
  std::vector<sg4::CommPtr> keep_;
  std::unordered_map<const sg4::Activity*, std::size_t> number_;
  std::vector<double> finish_;
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
  if (argc < 2) {
    std::cerr << "usage: simgrid_paths PATHS [TOLERANCE]\n";
    return 2;
  }
  const double tolerance = argc > 2 ? std::atof(argv[2]) : 1e-6;
  const Input input = read_input(argv[1]);
  const double begin = now(), cpu_begin = cpu_now();
  Replay replay(input);
  replay.build();
  const double built = now();
  replay.start_first();
  engine.run();
  const double done = now(), cpu = cpu_now() - cpu_begin;

  double worst = 0, last = 0;
  std::size_t worst_at = 0, wrong = 0;
  for (std::size_t i = 0; i < input.messages.size(); ++i) {
    const double theirs = replay.finish()[i], ours = input.messages[i].end;
    const double error = theirs < 0 ? 1 : std::abs(ours - theirs) / theirs;
    if (error > worst) worst = error, worst_at = i;
    if (error > tolerance) ++wrong;
    last = std::max(last, theirs);
  }
  std::printf(
      "{\"messages\": %zu, \"build_s\": %.4f, \"run_s\": %.4f, \"cpu_s\": %.4f, \"last_end_s\": "
      "%.12f, "
      "\"worst_difference\": %.3e, \"worst_message\": %zu, \"beyond_tolerance\": %zu}\n",
      input.messages.size(), built - begin, done - built, cpu, last, worst, worst_at, wrong);
  std::fflush(stdout);
  std::_Exit(wrong == 0 ? 0 : 1);  // SimGrid takes minutes to destroy a large platform
}
