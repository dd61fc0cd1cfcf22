#include "topologies/formats/slurm_blocks.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <yaml-cpp/yaml.h>

#include "models/base/input_error.hpp"
#include "topologies/formats/hostlist.hpp"
#include "topologies/formats/slurm_topology.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostBlocks = 100'000;
constexpr std::size_t kMostBlockHosts = std::size_t{1} << 20;

struct SlurmBlock {
  std::string name, nodes;
};

[[noreturn]] void refuse_blocks(const std::string& file, const std::string& found,
                                const std::string& allowed, const std::string& nearest = {}) {
  throw InputError({file, "", found, allowed, nearest});
}

/// A name that no block and no host of this form has.
std::string name_above(const std::vector<SlurmBlock>& blocks) {
  std::set<std::string> names;
  for (const SlurmBlock& block : blocks) names.insert(block.name);
  std::string name = "above_blocks";
  while (names.contains(name)) name += "_";
  return name;
}

SlurmConf tree_of_blocks(const std::string& file, const std::vector<SlurmBlock>& all) {
  std::vector<SlurmBlock> blocks;
  std::set<std::size_t> sizes;
  std::size_t empty = 0;
  for (const SlurmBlock& block : all) {
    if (block.nodes.empty()) {
      ++empty;
      continue;
    }
    const auto hosts = expand_hostlist(block.nodes, kMostBlockHosts);
    if (!hosts) refuse_blocks(file, in_quotes(block.nodes), "a list such as n[1-4,7]");
    sizes.insert(hosts->size());
    blocks.push_back(block);
  }
  if (blocks.empty()) refuse_blocks(file, "no block with nodes", "BlockName=NAME Nodes=HOSTS");
  SlurmConf out;
  std::vector<std::string> names;
  for (const SlurmBlock& block : blocks) {
    out.tree += fmt::format("SwitchName={} Nodes={}\n", block.name, block.nodes);
    names.push_back(block.name);
  }
  if (blocks.size() > 1) {
    out.tree +=
        fmt::format("SwitchName={} Switches={}\n", name_above(blocks), fmt::join(names, ","));
  }
  out.assumptions.push_back(fmt::format(
      "{} blocks of {} hosts are NVLink domains, as the node preset says them; what joins hosts of "
      "a "
      "block on the network is taken as one switch, what joins blocks as one above: the file does "
      "not say. Block sizes are for placement alone.",
      blocks.size(), fmt::join(sizes, ", ")));
  if (empty > 0)
    out.assumptions.push_back(fmt::format("Blocks without hosts: {}, left out.", empty));
  return out;
}

/// A text, or a list of texts with commas between.
std::string text_of(const YAML::Node& node, const char* key) {
  const YAML::Node value = node.IsMap() ? node[key] : YAML::Node();
  if (!value.IsDefined()) return {};
  std::string out = value.IsScalar() ? value.Scalar() : std::string();
  for (const YAML::Node& one : value.IsSequence() ? value : YAML::Node()) {
    if (one.IsScalar()) out += (out.empty() ? "" : ",") + one.Scalar();
  }
  std::erase_if(out, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  return out;
}

SlurmConf blocks_of_yaml(const std::string& file, const YAML::Node& block) {
  const YAML::Node list = block.IsMap() ? block["blocks"] : YAML::Node();
  if (!list.IsSequence() || list.size() > kMostBlocks) {
    refuse_blocks(file, "block without a list of blocks", "blocks: [{block: NAME, nodes: HOSTS}]");
  }
  std::vector<SlurmBlock> blocks;
  for (const YAML::Node& one : list) {
    blocks.push_back({text_of(one, "block"), text_of(one, "nodes")});
    if (blocks.back().name.empty()) refuse_blocks(file, "a block without a name", "block: NAME");
  }
  return tree_of_blocks(file, blocks);
}

SlurmConf tree_of_yaml(const std::string& file, const YAML::Node& tree) {
  const YAML::Node list = tree.IsMap() ? tree["switches"] : YAML::Node();
  if (!list.IsSequence() || list.size() > kMostBlocks) {
    refuse_blocks(file, "tree without a list of switches",
                  "switches: [{switch: NAME, nodes: HOSTS or children: SWITCHES}]");
  }
  SlurmConf out;
  for (const YAML::Node& one : list) {
    const std::string name = text_of(one, "switch"), nodes = text_of(one, "nodes"),
                      children = text_of(one, "children");
    if (name.empty()) refuse_blocks(file, "a switch without a name", "switch: NAME");
    out.tree += "SwitchName=" + name;
    if (!nodes.empty()) out.tree += " Nodes=" + nodes;
    if (!children.empty()) out.tree += " Switches=" + children;
    out.tree += "\n";
  }
  return out;
}

/// The topology that is meant.
YAML::Node chosen(const std::string& file, const YAML::Node& root, const std::string& wanted) {
  if (!root.IsSequence() || root.size() == 0)
    refuse_blocks(file, "no list", "a list of topologies");
  std::vector<std::string> names;
  YAML::Node by_default, last;
  std::size_t defaults = 0;
  for (const YAML::Node& one : root) {
    names.push_back(text_of(one, "topology"));
    if (!wanted.empty() && names.back() == wanted) return one;
    last.reset(one);
    if (text_of(one, "cluster_default") != "true") continue;
    by_default.reset(one);
    ++defaults;
  }
  if (!wanted.empty()) {
    refuse_blocks(file, "no topology " + in_quotes(wanted), listed(names),
                  nearest_name(wanted, names));
  }
  if (defaults == 1) return by_default;
  if (names.size() == 1) return last;
  refuse_blocks(file, fmt::format("{} topologies", names.size()),
                fmt::format("--topology NAME, one of {}", listed(names)));
}

}  // namespace

bool is_slurm_yaml(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty() || line.starts_with('#') || line.starts_with("---")) continue;
    if (!line.starts_with('-')) return false;
    line.remove_prefix(1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line.starts_with("topology:");
  }
  return false;
}

SlurmConf slurm_yaml(const std::string& file, std::string_view text, const std::string& wanted) {
  try {
    const YAML::Node topology = chosen(file, YAML::Load(std::string(text)), wanted);
    const std::string name = text_of(topology, "topology");
    SlurmConf out;
    if (topology["tree"].IsDefined()) {
      out = tree_of_yaml(file, topology["tree"]);
    } else if (topology["block"].IsDefined()) {
      out = blocks_of_yaml(file, topology["block"]);
    } else {
      refuse_blocks(file,
                    fmt::format("topology {}, which {}", in_quotes(name),
                                topology["flat"].IsDefined() ? "is flat" : "has neither"),
                    "one with a tree or blocks");
    }
    out.assumptions.push_back(fmt::format("Of topology.yaml, {} is read.", in_quotes(name)));
    return out;
  } catch (const YAML::Exception& error) {
    refuse_blocks(file,
                  error.mark.line < 0
                      ? in_quotes(error.msg)
                      : fmt::format("at line {}, column {}: {}", error.mark.line + 1,
                                    error.mark.column + 1, in_quotes(error.msg)),
                  "YAML");
  }
}

SlurmConf slurm_conf(const std::string& file, std::string_view text) {
  if (!is_block_topology(text)) return {std::string(text), {}};
  std::vector<SlurmBlock> blocks;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, std::min(end, text.find('#'))));
    text.remove_prefix(std::min(end + 1, text.size()));
    SlurmBlock block;
    std::size_t at = 0;
    while ((at = line.find_first_not_of(" \t\r", at)) != std::string::npos) {
      const std::size_t stop = std::min(line.find_first_of(" \t\r", at), line.size());
      const std::string word = line.substr(at, stop - at);
      const std::size_t equals = word.find('=');
      at = stop;
      if (equals == std::string::npos) refuse_blocks(file, in_quotes(word), "KEY=VALUE");
      std::string key = word.substr(0, equals);
      std::ranges::transform(key, key.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      if (key == "blockname") block.name = word.substr(equals + 1);
      if (key == "nodes") block.nodes = word.substr(equals + 1);
      if (key == "switchname") {
        refuse_blocks(file, "switches and blocks in one file", "either of them");
      }
    }
    if (!block.name.empty()) blocks.push_back(std::move(block));
    if (blocks.size() > kMostBlocks) refuse_blocks(file, "too many blocks", "at most 100,000");
  }
  return tree_of_blocks(file, blocks);
}

}  // namespace lockstep
