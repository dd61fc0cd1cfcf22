#include "tools/python/collective_door.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <pybind11/stl.h>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "models/collectives/candidate.hpp"
#include "models/collectives/collective_extension.hpp"
#include "models/collectives/laws.hpp"
#include "tools/python/in_python.hpp"
#include "tools/python/kept_answers.hpp"
#include "tools/python/python_slots.hpp"

namespace lockstep {
namespace {

namespace py = pybind11;

std::string name_of_op(CollectiveOp op) {
  return std::string(collective_kinds()[static_cast<std::size_t>(op)].name);
}

/// The value of a key that has to be there.
template <class Type>
Type part(const py::dict& row, const char* key, const std::string& allowed) {
  if (!row.contains(key)) {
    throw std::runtime_error(found_instead(row, "a dictionary with \"" + std::string(key) + "\""));
  }
  return given<Type>(row[key], "of " + std::string(key) + ", " + allowed);
}
/// Of one that may be left out.
template <class Type>
Type part_or(const py::dict& row, const char* key, const std::string& allowed, Type otherwise) {
  return row.contains(key) ? part<Type>(row, key, allowed) : otherwise;
}
/// Throws where a key is none of these: a misspelt one would else count as left out.
void check_keys(const py::dict& row, const std::vector<std::string>& allowed) {
  for (const auto& [key, value] : row) {
    const std::string name = py::str(key);
    if (std::ranges::find(allowed, name) != allowed.end()) continue;
    std::string all;
    for (const std::string& each : allowed) all += (all.empty() ? "" : ", ") + each;
    throw std::runtime_error("found the key \"" + name + "\"; allowed: " + all);
  }
}

/// A text of the library's own: candidates keep a view of it.
std::string_view protocol_of(const py::dict& row) {
  const auto named = part_or<std::string>(row, "protocol", "a text", "simple");
  const auto known = std::ranges::find(kProtocols, named);
  if (known != kProtocols.end()) return *known;
  throw std::runtime_error("found the protocol \"" + named + "\"; allowed: ll, ll128, simple");
}

CollectiveCandidate candidate_of(const py::dict& row) {
  check_keys(row, {"protocol", "latency_s", "s_per_byte", "nvlink_bytes", "nic_bytes"});
  return {.algorithm = {},
          .protocol = protocol_of(row),
          .latency = Seconds{part<double>(row, "latency_s", "seconds")},
          .per_byte = SecondsPerByte{part<double>(row, "s_per_byte", "seconds")},
          .nvlink_coefficient = part_or<double>(row, "nvlink_bytes", "a number", 0),
          .network_coefficient = part_or<double>(row, "nic_bytes", "a number", 0)};
}

NetworkEdge edge_of(const py::handle& row) {
  static const std::string kAllowed = "(from, to, bytes) or (from, to, bytes, channels)";
  const auto edge = py::reinterpret_borrow<py::object>(row);
  const auto parts = given<py::tuple>(edge, kAllowed);
  if (parts.size() != 3 && parts.size() != 4) {
    throw std::runtime_error(found_instead(edge, kAllowed));
  }
  return {.from = given<int>(parts[0], kAllowed),
          .to = given<int>(parts[1], kAllowed),
          .bytes = given<double>(parts[2], kAllowed),
          .channels = parts.size() == 4 ? given<int>(parts[3], kAllowed) : 1};
}

CollectiveShape shape_of(const py::object& answer) {
  const auto row = given<py::dict>(answer, "a dictionary with \"edges\"");
  check_keys(row, {"nvlink_bytes", "edges"});
  CollectiveShape shape;
  shape.nvlink_coefficient = part_or<double>(row, "nvlink_bytes", "a number", 0);
  for (const py::handle edge : part<py::list>(row, "edges", "a list")) {
    shape.edges.push_back(edge_of(edge));
  }
  return shape;
}

/// An algorithm that Python functions describe.
class PythonCollective {
 public:
  PythonCollective(const py::function& law, const py::object& shape)
      : law_(kept(law)), shape_(shape.is_none() ? nullptr : kept(py::function(shape))) {}

  Availability availability(const CollectiveContext& context) {
    // The laws of others differ by how uneven an exchange is; a function is not asked that.
    if (!context.skew.is_even()) return {Offer::other_call, {}};
    return law(context).availability;
  }
  void candidates(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
    const std::vector<CollectiveCandidate> lines = law(context).candidates;
    out.insert(out.end(), lines.begin(), lines.end());
  }
  CollectiveShape shape(const ShapeCall& call) {
    if (shape_ == nullptr) return ring_shape(call);
    ShapeQuestion question{call.op, places_of(call.members), call.channels};
    return shapes_.of(question, [&] {
      return in_python([&] { return std::pair(ask(question), call.members.size()); });
    });
  }

 private:
  struct Law {
    Availability availability;
    std::vector<CollectiveCandidate> candidates;
  };
  using Numbers = std::array<double, 12>;
  using LawQuestion = std::pair<CollectiveOp, Numbers>;
  using Places = std::vector<std::pair<int, int>>;  // node and rail, by member
  using ShapeQuestion = std::tuple<CollectiveOp, Places, int>;

  Law law(const CollectiveContext& c) {
    static constexpr std::array<const char*, std::tuple_size_v<Numbers>> kNames{
        "members",         "nodes",           "members_per_node", "most_members_per_node",
        "nic_bytes_per_s", "members_per_nic", "node_bytes_per_s", "nvlink_bytes_per_s",
        "efficiency",      "start_s",         "hop_latency_s",    "ring_hop_latency_s"};
    const Numbers numbers{static_cast<double>(c.n),
                          static_cast<double>(c.k),
                          static_cast<double>(c.g),
                          static_cast<double>(c.most),
                          c.nic.base_units(),
                          c.gpus_per_nic,
                          c.node.base_units(),
                          c.gpu.nvlink_bandwidth.base_units(),
                          c.transport.efficiency,
                          c.start.base_units(),
                          c.transport.hop_latency.base_units(),
                          c.transport.ring_hop_latency.base_units()};
    constexpr std::size_t kCounts = 4;  // the first are whole numbers
    return laws_.of({c.op, numbers}, [&] {
      return in_python([&] {
        py::dict call;
        call["op"] = name_of_op(c.op);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          if (i < kCounts) {
            call[kNames[i]] = static_cast<int>(numbers[i]);
          } else {
            call[kNames[i]] = numbers[i];
          }
        }
        return std::pair(law_of((*law_)(call)), numbers.size());
      });
    });
  }

  static Law law_of(const py::object& answer) {
    if (answer.is_none()) return {{Offer::other_call, {}}, {}};
    if (py::isinstance<py::str>(answer)) {
      return {{Offer::refused, answer.cast<std::string>()}, {}};
    }
    static const std::string kAllowed =
        "candidates (a dictionary, or a list of them), None, or a text that says why not";
    Law law;
    if (py::isinstance<py::dict>(answer)) {
      law.candidates.push_back(candidate_of(answer));
    } else {
      for (const py::dict& row : given<std::vector<py::dict>>(answer, kAllowed)) {
        law.candidates.push_back(candidate_of(row));
      }
    }
    return law;
  }

  static Places places_of(std::span<const GroupMember> members) {
    Places places(members.size());
    for (const GroupNode& node : group_nodes(members)) {
      for (std::size_t rail = 0; rail < node.members.size(); ++rail) {
        places[static_cast<std::size_t>(node.members[rail])] = {node.node, static_cast<int>(rail)};
      }
    }
    return places;
  }

  [[nodiscard]] CollectiveShape ask(const ShapeQuestion& question) const {
    const auto& [op, members, channels] = question;
    py::dict asked;
    asked["op"] = name_of_op(op);
    asked["members"] = members;
    asked["channels"] = channels;
    return shape_of((*shape_)(asked));
  }

  const py::function *law_, *shape_;
  KeptAnswers<LawQuestion, Law> laws_;
  KeptAnswers<ShapeQuestion, CollectiveShape> shapes_;
};

using CollectiveSlots = PythonSlots<PythonCollective>;

CollectiveSlots& python_collectives() {
  static auto* const collectives = new CollectiveSlots("collective");
  return *collectives;
}

/// Rows of the library's table are plain functions, so that each place has functions of its own.
template <std::size_t... places>
constexpr std::array<CollectiveAlgorithm, sizeof...(places)> collective_functions(
    std::index_sequence<places...> /*of kMostExtensions*/) {
  return {CollectiveAlgorithm{
      .availability =
          [](const CollectiveContext& context) {
            const CollectiveSlots::Slot& slot = python_collectives().at(places);
            if (slot.is_empty()) return Availability{Offer::other_call, {}};
            return slot.filling().availability(context);
          },
      .law =
          [](const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
            python_collectives().at(places).filling().candidates(context, out);
          },
      .shape =
          [](const ShapeCall& call) {
            return python_collectives().at(places).filling().shape(call);
          }}...};
}

}  // namespace

void add_python_collective(const std::string& name, const py::function& law,
                           const py::object& shape, const std::string& summary,
                           const std::string& source) {
  static constexpr auto kFunctions =
      collective_functions(std::make_index_sequence<kMostExtensions>());
  python_collectives().put(name, {}, new PythonCollective(law, shape),
                           [&](const CollectiveSlots::Slot& /*slot*/, std::size_t place) {
                             // Where there is no place left, the library says so before it asks.
                             CollectiveAlgorithm row =
                                 kFunctions[std::min(place, kFunctions.size() - 1)];
                             row.name = name;
                             row.summary = summary;
                             row.source = source;
                             add_collective(row);
                           });
}

bool remove_python_collective(const std::string& name) { return python_collectives().remove(name); }

}  // namespace lockstep
