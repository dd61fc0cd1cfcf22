#include "topologies/formats/netbox_cables.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

bool is_planned(const NetboxCable& cable) { return cable.status == "planned"; }
bool is_connected(const NetboxCable& cable) {
  return cable.status.empty() || cable.status == "connected";
}

class NetboxCables {
 public:
  NetboxCables(const std::string& file, Cabling cabling)
      : file_(file), cabling_(std::move(cabling)) {}

  Cabling read(const std::vector<NetboxCable>& cables) {
    std::vector<const NetboxCable*> network;
    for (const NetboxCable& cable : cables) {
      if (joins_interfaces(cable)) network.push_back(&cable);
    }
    const bool plan = std::ranges::all_of(network, [](const auto* c) { return is_planned(*c); });
    for (const NetboxCable* cable : network) {
      if (is_connected(*cable) || plan) {
        join(*cable);
      } else {
        ++unconnected_;
      }
    }
    if (joined_.empty()) {
      throw InputError({file_, "", "no connected cable between two interfaces",
                        "NetBox's cables (GET /api/dcim/cables/) or interfaces", ""});
    }
    for (const Joined& one : joined_) add(one);
    say_counts(plan);
    return std::move(cabling_);
  }

 private:
  struct Joined {
    const NetboxEnd *a, *b;
    const std::string* place;
  };

  bool joins_interfaces(const NetboxCable& cable) {
    bool interfaces = !cable.a.empty() && !cable.b.empty(), panel = false, management = false;
    for (const auto* side : {&cable.a, &cable.b}) {
      for (const NetboxEnd& end : *side) {
        interfaces = interfaces && is_netbox_type(end.type, "interface");
        panel =
            panel || is_netbox_type(end.type, "frontport") || is_netbox_type(end.type, "rearport");
        management = management || end.management;
      }
    }
    if (interfaces && !management) return true;
    ++(panel ? panels_ : management ? management_ : others_);
    return false;
  }

  void join(const NetboxCable& cable) {
    const std::size_t a = cable.a.size(), b = cable.b.size(), most = std::max(a, b);
    if (most % std::min(a, b) != 0) {
      throw cabling_error(file_, cable.place, fmt::format("a cable of {} ports to {}", a, b),
                          "as many ports on both sides, or a multiple");
    }
    breakouts_ += most > 1 ? 1 : 0;
    through_ += cable.through_panels ? most : 0;
    for (std::size_t i = 0; i < most; ++i) {
      joined_.push_back({&cable.a[i * a / most], &cable.b[i * b / most], &cable.place});
      for (const NetboxEnd* end : {joined_.back().a, joined_.back().b}) ++shares_[key(*end)];
    }
  }

  using PortKey = std::pair<std::string, std::string>;
  static PortKey key(const NetboxEnd& end) { return {end.port.device, end.port.port}; }

  void add(const Joined& joined) {
    CabledLink link{.a = joined.a->port, .b = joined.b->port, .rate = {}, .place = *joined.place};
    for (const NetboxEnd* end : {joined.a, joined.b}) {
      link.down = link.down || end->down;
      if (end->rate <= BytesPerSecond{}) continue;
      const BytesPerSecond rate = (1.0 / shares_.at(key(*end))) * end->rate;
      link.rate = link.rate > BytesPerSecond{} ? std::min(link.rate, rate) : rate;
    }
    cabling_.links.push_back(std::move(link));
  }

  /// "2 cables WHICH are left out."
  void say_left_out(std::size_t count, std::string_view which) {
    if (count > 0) say(count, "cable", fmt::format("{} {} left out", which, is_or_are(count)));
  }
  static std::string_view is_or_are(std::size_t count) { return count == 1 ? "is" : "are"; }
  void say(std::size_t count, std::string_view noun, std::string_view rest) {
    cabling_.assumptions.push_back(
        fmt::format("{} {}.", counted(static_cast<double>(count), noun), rest));
  }

  void say_counts(bool plan) {
    if (plan) cabling_.assumptions.emplace_back("All cables are planned: they count as connected.");
    say_left_out(unconnected_, "without the status \"connected\"");
    say_left_out(management_, "of interfaces for management only");
    say_left_out(others_, "of ports other than network interfaces");
    if (through_ > 0) {
      say(through_, "connection", "through patch panels counted as from end to end");
    } else {
      say_left_out(panels_,
                   "of patch panels (only interfaces in the same file tell what they connect)");
    }
    if (breakouts_ > 0) {
      cabling_.assumptions.push_back(
          fmt::format("Ports of {} are joined in order, each with an equal share of the rate.",
                      counted(static_cast<double>(breakouts_), "breakout cable")));
    }
  }

  const std::string& file_;
  Cabling cabling_;
  std::vector<Joined> joined_;
  std::map<PortKey, int> shares_;  ///< cables by port
  std::size_t unconnected_ = 0, panels_ = 0, management_ = 0, others_ = 0;
  std::size_t breakouts_ = 0, through_ = 0;
};

}  // namespace

bool is_netbox_type(std::string_view type, std::string_view kind) {
  if (type.starts_with("dcim.")) type.remove_prefix(5);
  return type == kind;
}

Cabling with_netbox_cables(const std::string& file, const std::vector<NetboxCable>& cables,
                           Cabling cabling) {
  return NetboxCables(file, std::move(cabling)).read(cables);
}

}  // namespace lockstep
