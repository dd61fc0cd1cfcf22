/// Nodes of Chakra execution traces, one by one, as those of a rank. What the attributes mean:
/// read_chakra.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/formats/read_chakra.hpp"

namespace lockstep {

namespace chakra {
class Node;
}  // namespace chakra
struct ChakraAttributes;

/// Throws InputError with the node's number. `options` outlive it.
class ChakraRank {
 public:
  ChakraRank(const std::string& file, int rank, const TraceReadOptions& options)
      : options_(options) {
    out_.rank = rank;
    out_.file = file;
  }

  [[nodiscard]] std::size_t nodes() const { return seen_; }
  void add(const chakra::Node& node);
  /// Once: with the ranks of groups, and with the order of streams that the file lacks.
  RankTrace finish();

 private:
  /// A node that a stream of the GPU runs.
  struct Ordered {
    double stream;
    std::uint64_t start, id;
    std::size_t index;
  };

  [[noreturn]] void fail(const chakra::Node& node, const std::string& found,
                         std::string allowed) const;
  double bounded(const chakra::Node& node, std::string_view name, std::optional<double> value,
                 double most) const;
  void read_message(const chakra::Node& node, const ChakraAttributes& a, RankTrace::Node& added);
  void read_collective(const chakra::Node& node, const ChakraAttributes& a, RankTrace::Node& added);
  void keep_length(const chakra::Node& node, RankTrace::Node& added);
  void read_work(const chakra::Node& node, const ChakraAttributes& a, RankTrace::Node& added);
  StepTime duration_of(const chakra::Node& node, const ChakraAttributes& a,
                       const RankTrace::Node& added) const;
  std::uint16_t stream(const chakra::Node& node, std::int64_t number);
  void read_groups(const chakra::Node& node);
  void resolve_groups();
  void repair();

  const TraceReadOptions& options_;
  RankTrace out_;
  std::size_t seen_ = 0;
  std::map<std::int64_t, std::size_t> streams_;
  std::map<std::string, std::vector<int>> known_;
  std::vector<Ordered> ordered_;
};

}  // namespace lockstep
