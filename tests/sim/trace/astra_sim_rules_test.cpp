// What ASTRA-sim asks of Chakra traces, rule by rule, held against our exports. The schema allows
// more: each rule names the function that aborts, throws or waits for ever.
// Source: github.com/astra-sim/astra-sim, in astra-sim/: system/CommunicatorGroup.cc and
// workload/Statistics.cc at 518bd513ae11 (lines 44 and 72); workload/Workload.cc at 0383c203930c,
// workload/Statistics.cc at 1a5d7120dc40, workload/feeder_v3/ at 2aa2bbd1662c.
#include <algorithm>
#include <array>
#include <charconv>
#include <doctest/doctest.h>
#include <google/protobuf/io/coded_stream.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/scenario/read_scenario.hpp"
#include "sim/trace/formats/chakra.pb.h"
#include "sim/trace/formats/write_chakra.hpp"
#include "sim/trace/trace_of_step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

std::vector<chakra::Node> chakra_nodes(const std::string& bytes) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  std::vector<chakra::Node> out;
  bool head = true;
  std::uint32_t length = 0;
  while (stream.ReadVarint32(&length)) {
    std::string message;
    REQUIRE(stream.ReadString(&message, static_cast<int>(length)));
    if (!head) REQUIRE(out.emplace_back().ParseFromString(message));
    head = false;
  }
  return out;
}

const chakra::Attribute* attribute(const chakra::Node& node, const std::string& name) {
  const auto found =
      std::ranges::find_if(node.attr(), [&](const auto& a) { return a.name() == name; });
  return found == node.attr().end() ? nullptr : &*found;
}

/// ETFeederNode::get_attr() (et_feeder_node.h, common.h): absent throws std::runtime_error, and
/// ALLOW_IMPLICIT_FLOAT_TO_INTEGER_CONVERSION is false, so that any other type than a whole number
/// throws std::bad_cast.
std::optional<std::int64_t> whole_number_of(const chakra::Node& node, const std::string& name) {
  const chakra::Attribute* const a = attribute(node, name);
  if (a == nullptr) return std::nullopt;
  if (a->value_case() == chakra::Attribute::kInt64Val) return a->int64_val();
  if (a->value_case() == chakra::Attribute::kUint32Val) return a->uint32_val();
  return std::nullopt;
}

struct Exported {
  int ranks = 0;
  nlohmann::json groups;
  std::vector<std::vector<chakra::Node>> nodes;  ///< by rank
};

/// Pipelines, tensor parallelism, sharding and experts: all that a step of ours may have.
const std::vector<Exported>& exports() {
  static const std::vector<Exported> all = [] {
    std::vector<Exported> out;
    for (const auto& [model, layout] :
         {std::pair{"llama2_7b", R"({"tensor": 2, "pipeline": 2, "data": 2})"},
          {"llama2_7b", R"({"data": 8, "sharding": "zero3"})"},
          {"llama2_7b", R"({"pipeline": 4, "data": 2, "schedule": "zb_h1"})"},
          {"qwen3_30b_a3b", R"({"data": 8, "expert": 4})"}}) {
      const std::string text =
          std::string(R"({"model": ")") + model +
          R"(", "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"}, "parallelism": )" +
          layout + R"(, "batch": {"sequences": 16, "micro": 1, "tokens": 1024}})";
      const Trace trace = trace_of_step(read_scenario("step.json", text, test::presets()));
      Exported exported{.ranks = trace.ranks,
                        .groups = nlohmann::json::parse(write_trace_groups(trace)),
                        .nodes = {}};
      for (int rank = 0; rank < trace.ranks; ++rank) {
        exported.nodes.push_back(chakra_nodes(write_chakra(trace, rank)));
      }
      out.push_back(std::move(exported));
    }
    return out;
  }();
  return all;
}

template <class Check>
void for_each_node(Check check) {
  for (const Exported& exported : exports()) {
    for (int rank = 0; rank < exported.ranks; ++rank) {
      for (const chakra::Node& node : exported.nodes[static_cast<std::size_t>(rank)]) {
        CAPTURE(node.name());
        check(exported, rank, node);
      }
    }
  }
}

}  // namespace

// CommunicatorGroup::set_id(), CommunicatorGroup.cc:44: assert(id > 0).
// Workload::initialize_comm_groups(): std::stoi of each key, and each value a list of ranks.
TEST_CASE("ASTRA-sim: groups are numbered from 1, and list ranks that there are") {
  for (const Exported& exported : exports()) {
    REQUIRE_FALSE(exported.groups.empty());
    for (const auto& [name, ranks] : exported.groups.items()) {
      int id = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
      CHECK((error == std::errc{} && end == name.data() + name.size()));
      CHECK(id > 0);
      for (const auto& rank : ranks) CHECK((rank >= 0 && rank < exported.ranks));
    }
  }
}

// Statistics::OperatorStatistics::get_operator_type(), Statistics.cc:72: anything else aborts, a
// METADATA_NODE too. Statistics::extract_comp_comm_overlap() throws for MEM nodes.
TEST_CASE("ASTRA-sim: nodes compute or communicate, and are nothing else") {
  constexpr std::array kKinds{chakra::COMP_NODE, chakra::COMM_COLL_NODE, chakra::COMM_SEND_NODE,
                              chakra::COMM_RECV_NODE};
  for_each_node([&](const Exported&, int, const chakra::Node& node) {
    CHECK(std::ranges::count(kKinds, node.type()) == 1);
  });
}

// Workload::issue_comm(): "Comm node should not be on CPU";
// Statistics::extract_comp_comm_overlap(): "Only GPU and COMM types are supported".
TEST_CASE("ASTRA-sim: no node is the CPU's") {
  for_each_node([&](const Exported&, int, const chakra::Node& node) {
    const chakra::Attribute* const host = attribute(node, "is_cpu_op");
    CHECK((host == nullptr || !host->bool_val()));
  });
}

// Workload::issue_coll_comm(): "Unsupported collective comm type"; a broadcast takes no time.
// Workload::extract_comm_group(): "" and "0" are all ranks; a number that the file of groups lacks
// ends the program. RingTopology asks that the rank is a member.
TEST_CASE("ASTRA-sim: collectives are of four kinds, have a size, and a group of their rank") {
  constexpr std::array<std::int64_t, 4> kKinds{chakra::ALL_REDUCE, chakra::ALL_GATHER,
                                               chakra::ALL_TO_ALL, chakra::REDUCE_SCATTER};
  std::size_t calls = 0;
  for_each_node([&](const Exported& exported, int rank, const chakra::Node& node) {
    if (node.type() != chakra::COMM_COLL_NODE) return;
    ++calls;
    CHECK(std::ranges::count(kKinds, whole_number_of(node, "comm_type").value_or(-1)) == 1);
    CHECK(whole_number_of(node, "comm_size").value_or(-1) > 0);
    const chakra::Attribute* const group = attribute(node, "pg_name");
    REQUIRE(group != nullptr);
    REQUIRE(exported.groups.contains(group->string_val()));
    const nlohmann::json& ranks = exported.groups[group->string_val()];
    CHECK(std::count(ranks.begin(), ranks.end(), rank) == 1);
  });
  CHECK(calls > 0);
}

// Workload::issue_send_comm(): "Send node should be issued by the sender"; issue_recv_comm() alike.
TEST_CASE("ASTRA-sim: messages have their ends, a tag and a size") {
  std::size_t messages = 0;
  for_each_node([&](const Exported& exported, int rank, const chakra::Node& node) {
    const bool sends = node.type() == chakra::COMM_SEND_NODE;
    if (!sends && node.type() != chakra::COMM_RECV_NODE) return;
    ++messages;
    const std::int64_t source = whole_number_of(node, "comm_src").value_or(-1);
    const std::int64_t target = whole_number_of(node, "comm_dst").value_or(-1);
    CHECK((sends ? source : target) == rank);
    const std::int64_t other = sends ? target : source;
    CHECK((other >= 0 && other < exported.ranks && other != rank));
    CHECK(whole_number_of(node, "comm_tag").has_value());
    CHECK(whole_number_of(node, "comm_size").value_or(0) > 0);
  });
  CHECK(messages > 0);
}

// _DependancyLayer::add_node() and resolve_dependancy_free_nodes(), dependancy_solver.cpp: a node
// that waits for one that the file lacks never runs, and a start is needed ("No dependancy free
// nodes found").
TEST_CASE("ASTRA-sim: nodes wait for nodes of their file, and one waits for none") {
  for (const Exported& exported : exports()) {
    for (const std::vector<chakra::Node>& nodes : exported.nodes) {
      std::set<std::uint64_t> numbers;
      bool starts = false;
      for (const chakra::Node& node : nodes) {
        CHECK(numbers.insert(node.id()).second);
        starts = starts || (node.data_deps().empty() && node.ctrl_deps().empty());
      }
      CHECK(starts);
      for (const chakra::Node& node : nodes) {
        for (const std::uint64_t before : node.data_deps()) CHECK(numbers.contains(before));
        for (const std::uint64_t before : node.ctrl_deps()) CHECK(numbers.contains(before));
      }
    }
  }
}

}  // namespace lockstep
