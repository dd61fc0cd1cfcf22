#include "topologies/formats/slurm_topology.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/letter_case.hpp"
#include "topologies/formats/fabric_json.hpp"
#include "topologies/formats/hostlist.hpp"
#include "topologies/infiniband/text_lines.hpp"

namespace lockstep {
namespace {

struct SwitchLine {
  int line = 0;
  std::string name;
  std::vector<std::string> hosts;
  std::vector<std::string> switches;
  int level = 0;  ///< 0: not known yet
  std::size_t hosts_below = 0;
  int parents = 0;
};

/// A line of topology.conf that only topology/block has, or its key in topology.yaml.
bool is_block_line(std::string_view line) {
  LineCursor words(line);
  words.skip_spaces();
  const std::string word = words.empty() ? std::string() : lowered(words.word());
  return word.starts_with("blockname=") || word.starts_with("blocksizes=") ||
         word.starts_with("block_sizes:") || word == "block:";
}

class SlurmReader {
 public:
  SlurmReader(const std::string& file, std::string_view text, BytesPerSecond rate)
      : lines_(file, text), rate_(rate) {}

  DrawnFabric read() {
    while (next_logical_line()) {
      if (is_block_line(text_)) {
        lines_.refuse_line(
            first_, "a topology of blocks, which is not read",
            "topology/tree: a line SwitchName=BLOCK Nodes=HOSTS for each block and one line "
            "SwitchName=NAME Switches=BLOCKS above them; that a block is one NVLink domain comes "
            "from the node preset, such as gb200_nvl72");
      }
      read_line();
    }
    if (switches_.empty()) {
      lines_.refuse_line(std::max(1, lines_.number()), "no switch",
                         "at least one line SwitchName=NAME Nodes=HOSTS");
    }
    for (SwitchLine& s : switches_) count_parents(s);
    for (const SwitchLine& s : switches_) {
      for (const std::string& host : s.hosts) ++switches_of_[host];
    }
    for (std::size_t i = 0; i < switches_.size(); ++i) measure(i, 0);
    FabricSketch sketch;
    for (const SwitchLine& s : switches_) add_hosts(s, sketch);
    if (sketch.hosts() == 0) {
      lines_.refuse_line(switches_[0].line, "a tree without hosts",
                         "Nodes= on the lowest switches");
    }
    for (const SwitchLine& s : switches_) add_switch(s, sketch);
    for (const SwitchLine& s : switches_) add_cables(s, sketch);
    DrawnFabric fabric = sketch.finish();
    const bool several = sketch.vertices() - switches_.size() > sketch.hosts();
    fabric.assumptions = {
        fmt::format("Every host has one NIC of {}{}: the file does not say.", rate_text(rate_),
                    several ? " on each switch that lists it" : ""),
        "Every switch has as many cables upwards as hosts below: the file does not say."};
    return fabric;
  }

 private:
  /// A line with those that a backslash at its end joins to it, without its comment.
  bool next_logical_line() {
    text_.clear();
    if (!lines_.next()) return false;
    first_ = lines_.number();
    while (true) {
      std::string_view line = lines_.line().substr(0, lines_.line().find('#'));
      while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
      const bool more = line.ends_with('\\');
      text_ += line.substr(0, line.size() - (more ? 1 : 0));
      if (!more || !lines_.next()) return true;
      text_ += ' ';
    }
  }

  std::vector<std::string> names(std::string_view list) const {
    auto out = expand_hostlist(list, kMaxHosts);
    if (!out) {
      lines_.refuse_line(first_, in_quotes(list),
                         fmt::format("a list such as n[1-4,7], of at most {} names", kMaxHosts));
    }
    return std::move(*out);
  }

  void read_line() {
    LineCursor words(text_);
    SwitchLine out;
    out.line = first_;
    bool printed = false;  // by scontrol, which repeats all hosts below on every switch
    while (words.skip_spaces(), !words.empty()) {
      const std::string_view word = words.word();
      const std::size_t equals = word.find('=');
      const std::string key = lowered(word.substr(0, equals));
      const std::string_view value =
          equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
      if (value.empty()) lines_.refuse_line(first_, in_quotes(word), "KEY=VALUE");
      if (key == "switchname") {
        out.name = value;
      } else if (key == "nodes") {
        out.hosts = names(value);
      } else if (key == "switches") {
        out.switches = names(value);
      } else if (key == "level") {
        printed = true;
      } else if (key != "linkspeed") {  // Slurm reads it and makes no use of it
        const std::vector<std::string> keys{"SwitchName", "Nodes", "Switches", "LinkSpeed",
                                            "Level"};
        lines_.refuse_line(first_, in_quotes(word.substr(0, equals)), listed(keys),
                           nearest_name(word.substr(0, equals), keys));
      }
    }
    if (text_.find_first_not_of(" \t\r") == std::string::npos) return;
    if (out.name.empty()) lines_.refuse_line(first_, in_quotes(text_), "a line with SwitchName=");
    if (printed && !out.switches.empty()) out.hosts.clear();
    if (out.hosts.empty() == out.switches.empty()) {
      lines_.refuse_line(
          first_, out.hosts.empty() ? "neither Nodes nor Switches" : "both Nodes and Switches",
          "one of Nodes= and Switches=");
    }
    if (!index_.emplace(out.name, switches_.size()).second) {
      lines_.refuse_line(first_, in_quotes(out.name), "a name that no other switch has");
    }
    switches_.push_back(std::move(out));
  }

  SwitchLine& child(const SwitchLine& parent, const std::string& name) {
    const auto at = index_.find(name);
    if (at != index_.end()) return switches_[at->second];
    std::vector<std::string> known;
    known.reserve(index_.size());
    for (const auto& [key, i] : index_) known.push_back(key);
    lines_.refuse_line(parent.line, in_quotes(name), "a switch with a line of its own",
                       nearest_name(name, known));
  }

  void count_parents(const SwitchLine& parent) {
    for (const std::string& name : parent.switches) ++child(parent, name).parents;
  }

  /// Level and hosts below, children first.
  void measure(std::size_t i, int depth) {
    SwitchLine& s = switches_[i];
    if (s.level > 0) return;
    if (depth >= kMaxLevel) {
      lines_.refuse_line(s.line, in_quotes(s.name) + " below itself, or below too many others",
                         fmt::format("a tree of at most {} layers", kMaxLevel));
    }
    int below = 0;
    std::size_t hosts = s.hosts.size();
    for (const std::string& name : s.switches) {
      SwitchLine& c = child(s, name);
      measure(static_cast<std::size_t>(&c - switches_.data()), depth + 1);
      below = std::max(below, c.level);
      hosts += c.hosts_below;
    }
    s.level = below + 1;
    s.hosts_below = hosts;
  }

  void add_hosts(const SwitchLine& s, FabricSketch& sketch) const {
    for (const std::string& host : s.hosts) {
      if (index_.contains(host)) {
        lines_.refuse_line(s.line, in_quotes(host), "a host that is not called like a switch");
      }
      const auto known = sketch.find_host(host);
      const std::string nic = nic_name(host, s);
      if (sketch.find(nic)) {
        lines_.refuse_line(s.line, in_quotes(host) + " again", "a host once on a switch");
      }
      sketch.add_nic(known ? *known : sketch.add_host(host), nic);
    }
  }

  /// A host that several switches list has a NIC on each of them: Slurm calls it multi-homed.
  std::string nic_name(const std::string& host, const SwitchLine& s) const {
    return switches_of_.at(host) > 1 ? fmt::format("{} on {}", host, s.name) : host;
  }

  static void add_switch(const SwitchLine& s, FabricSketch& sketch) {
    sketch.add_switch(s.name, s.level);
  }

  void add_cables(const SwitchLine& s, FabricSketch& sketch) {
    const SketchVertex here = *sketch.find(s.name);
    for (const std::string& host : s.hosts) {
      add_cables(*sketch.find(nic_name(host, s)), here, 1, s, sketch);
    }
    for (const std::string& name : s.switches) {
      const SwitchLine& c = child(s, name);
      const auto parents = static_cast<std::size_t>(c.parents);
      const std::size_t count = std::max<std::size_t>(1, (c.hosts_below + parents - 1) / parents);
      add_cables(*sketch.find(name), here, count, s, sketch);
    }
  }

  void add_cables(SketchVertex low, SketchVertex high, std::size_t count, const SwitchLine& s,
                  FabricSketch& sketch) const {
    if (sketch.cables() + count > std::size_t{kMaxCables}) {
      lines_.refuse_line(s.line, "too large a tree",
                         fmt::format("at most {} cables in all", kMaxCables));
    }
    for (std::size_t i = 0; i < count; ++i) {
      sketch.add_cable({.a = low, .b = high, .capacity = rate_, .port_a = 0, .port_b = 0});
    }
  }

  TextLines lines_;
  BytesPerSecond rate_;
  std::string text_;
  int first_ = 1;
  std::vector<SwitchLine> switches_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::map<std::string, int, std::less<>> switches_of_;  ///< by host: how many list it
};

/// Sets that grow by joining; a set's name is its smallest member.
class JoinedSets {
 public:
  explicit JoinedSets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    const std::size_t x = find(a), y = find(b);
    parent_[std::max(x, y)] = std::min(x, y);
  }

 private:
  std::vector<std::size_t> parent_;
};

class SlurmWriter {
 public:
  explicit SlurmWriter(const DrawnFabric& fabric)
      : fabric_(fabric),
        hosts_(fabric.hosts.size()),
        sets_(hosts_ + fabric.graph.vertex_count()),
        slurm_name_(hosts_ + fabric.graph.vertex_count()),
        placed_(hosts_) {}

  std::string text() {
    out_ = "# topology.conf for TopologyPlugin=topology/tree\n";
    for (const std::string& host : fabric_.hosts) host_names_.push_back(plain_name(host));
    const int top = highest_level();
    for (int level = 1; level <= top; ++level) {
      join(level);
      write_level(level);
    }
    return std::move(out_);
  }

 private:
  /// A NIC is its host; a switch comes behind all hosts.
  [[nodiscard]] std::size_t member(Vertex v) const {
    const GraphVertex& at = fabric_.graph.vertices()[v];
    return at.is_port() ? static_cast<std::size_t>(at.node) : hosts_ + v;
  }
  /// Switches in no layer count as lowest.
  [[nodiscard]] int level_of(Vertex v) const {
    const GraphVertex& at = fabric_.graph.vertices()[v];
    return at.is_port() ? 0 : std::max(1, at.level);
  }
  [[nodiscard]] int highest_level() const {
    int top = 1;
    for (Vertex v = 0; v < fabric_.graph.vertex_count(); ++v) top = std::max(top, level_of(v));
    return top;
  }

  void join(int level) {
    for (const GraphCable& cable : fabric_.graph.cables()) {
      if (level_of(cable.a) <= level && level_of(cable.b) <= level) {
        sets_.join(member(cable.a), member(cable.b));
      }
    }
  }

  /// Letters that a list in brackets or a line of KEY=VALUE would break at are replaced.
  std::string plain_name(std::string_view text) {
    std::string name;
    for (const char c : text) {
      const bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                        (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
      if (c != ' ') name += fits ? c : '_';
    }
    if (name.empty()) name = "unnamed";
    std::string unique = name;
    for (int i = 2; !used_.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
    return unique;
  }

  /// What was joined up to this layer, by the set's name.
  struct Group {
    std::vector<std::string> hosts;     ///< that are on no switch of Slurm's yet
    std::vector<std::string> switches;  ///< of Slurm's, from the layer below
    std::vector<Vertex> joined_by;      ///< switches of this layer
  };

  void write_level(int level) {
    std::map<std::size_t, Group> groups;
    for (Vertex v = fabric_.graph.port_count(); v < fabric_.graph.vertex_count(); ++v) {
      if (level_of(v) == level) groups[sets_.find(hosts_ + v)].joined_by.push_back(v);
    }
    for (std::size_t host = 0; host < hosts_; ++host) {
      const auto group = groups.find(sets_.find(host));
      if (placed_[host] || group == groups.end()) continue;
      group->second.hosts.push_back(host_names_[host]);
      placed_[host] = true;
    }
    for (const std::size_t low : tops_) {
      const auto group = groups.find(sets_.find(low));
      if (group != groups.end()) group->second.switches.push_back(slurm_name_[low]);
    }
    std::vector<std::size_t> tops;
    for (const std::size_t low : tops_) {
      if (!groups.contains(sets_.find(low))) tops.push_back(low);
    }
    for (const auto& [set, group] : groups) {
      if (write_group(set, group)) tops.push_back(set);
    }
    tops_ = std::move(tops);
  }

  /// False: there is nothing below it.
  bool write_group(std::size_t set, const Group& group) {
    std::vector<std::string> below = group.switches;
    if (below.empty() && group.hosts.empty()) return false;
    if (below.size() == 1 &&
        group.hosts.empty()) {  // nothing new is joined: the switch below stays
      slurm_name_[set] = below.front();
      return true;
    }
    const std::string name = plain_name(fabric_.graph.vertex_name(group.joined_by.front()));
    if (group.joined_by.size() > 1) {
      out_ += fmt::format("# {} stands for {} switches\n", name, group.joined_by.size());
    }
    slurm_name_[set] = name;
    if (below.empty()) {
      out_ += fmt::format("SwitchName={} Nodes={}\n", name, compress_hostlist(group.hosts));
      return true;
    }
    if (!group.hosts.empty()) {
      below.push_back(plain_name(name + "-hosts"));
      out_ += fmt::format("SwitchName={} Nodes={}\n", below.back(), compress_hostlist(group.hosts));
    }
    out_ += fmt::format("SwitchName={} Switches={}\n", name, compress_hostlist(below));
    return true;
  }

  const DrawnFabric& fabric_;
  std::size_t hosts_;
  JoinedSets sets_;
  std::vector<std::string> slurm_name_;  ///< by name of the set
  std::vector<std::string> host_names_;
  std::vector<bool> placed_;       ///< by host: some switch of Slurm's has it
  std::vector<std::size_t> tops_;  ///< sets that have a switch of Slurm's and none above it yet
  std::set<std::string> used_;
  std::string out_;
};

}  // namespace

bool is_block_topology(std::string_view text) {
  const std::string file;
  TextLines lines(file, text);
  while (lines.next()) {
    if (is_block_line(lines.line())) return true;
  }
  return false;
}

DrawnFabric read_slurm_topology(const std::string& file, std::string_view text,
                                BytesPerSecond rate) {
  return SlurmReader(file, text, rate).read();
}

std::string write_slurm_topology(const DrawnFabric& fabric) { return SlurmWriter(fabric).text(); }

}  // namespace lockstep
