#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/trace/formats/goal.hpp"

namespace lockstep {
namespace {

constexpr std::uint64_t kPicosPerNano = 1000;
constexpr double kMostStatements = 2e8;
constexpr std::uint32_t kFirstCallTag = 1U << 31U;  ///< messages of the trace have tags below
constexpr std::size_t kFlushAt = std::size_t{1} << 16;

/// Messages that a member of a ring sends for a collective of n.
std::uint64_t goal_messages(CollectiveOp op, std::uint64_t n) {
  const bool once = op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter ||
                    op == CollectiveOp::all_to_all;
  return (once ? 1 : 2) * (n - 1);
}

class GoalWriter {
 public:
  GoalWriter(const Trace& trace, const std::function<void(std::string_view)>& write)
      : trace_(trace), matches_(match(trace)), write_(write), tag_(trace.size()) {
    double statements = 0;
    for (std::uint32_t c = 0; c < matches_.calls.size(); ++c) {
      const TraceMatches::Call& call = matches_.calls[c];
      for (std::uint32_t m = 0; m < call.members; ++m) tag_[matches_.nodes[call.first + m]] = c;
      statements +=
          4.0 * call.members *
          static_cast<double>(goal_messages(trace.collectives[call.collective].op, call.members));
    }
    if (statements > kMostStatements) {
      throw InputError(
          {.file = "--goal",
           .pointer = {},
           .found = fmt::format("collectives of {} statements", plain_number(statements, 3)),
           .allowed = fmt::format("at most {:.0f}; GOAL spells each message out, "
                                  "Chakra (--chakra) does not",
                                  kMostStatements),
           .nearest = {}});
    }
  }

  void run() {
    print("num_ranks {}\n", trace_.ranks);
    for (int rank = 0; rank < trace_.ranks; ++rank) {
      first_ = trace_.rank_first[static_cast<std::size_t>(rank)];
      rank_ = rank;
      picos_ = 0;
      print("\nrank {} {{\n", rank);
      const std::uint32_t end = trace_.rank_first[static_cast<std::size_t>(rank) + 1];
      for (std::uint32_t n = first_; n < end; ++n) write_node(n);
      // Labels are known once their statements have come.
      for (std::uint32_t n = first_; n < end; ++n) write_dependencies(n);
      print("}}\n");
    }
    write_({buffer_.data(), buffer_.size()});
  }

 private:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() < kFlushAt) return;
    write_({buffer_.data(), buffer_.size()});
    buffer_.clear();
  }

  [[nodiscard]] const std::vector<int>& group_of(std::uint32_t n) const {
    return trace_.groups[trace_.collectives[trace_.nodes[n].subject].group];
  }
  [[nodiscard]] bool spelled_out(std::uint32_t n) const {
    return trace_.nodes[n].kind == TraceNodeKind::collective && group_of(n).size() > 1;
  }
  [[nodiscard]] std::uint64_t steps_of(std::uint32_t n) const {
    return goal_messages(trace_.collectives[trace_.nodes[n].subject].op, group_of(n).size());
  }

  void write_node(std::uint32_t n) {
    const TraceNode& node = trace_.nodes[n];
    const std::uint32_t label = n - first_;
    if (spelled_out(n)) return write_collective(n);
    if (node.kind == TraceNodeKind::send || node.kind == TraceNodeKind::receive) {
      const TraceMessage& message = trace_.messages[node.subject];
      const bool sends = node.kind == TraceNodeKind::send;
      print("l{}: {} {:.0f}b {} {} tag {} cpu 1\n", label, sends ? "send" : "recv",
            std::max(1.0, message.size.base_units()), sends ? "to" : "from", message.peer,
            message.tag % kFirstCallTag);
      return;
    }
    std::uint64_t nanos = 0;
    if (node.kind <= TraceNodeKind::delay) {
      const auto rounded = [](std::uint64_t ps) {
        return (ps + kPicosPerNano / 2) / kPicosPerNano;
      };
      nanos = rounded(picos_ + node.duration.ps) - rounded(picos_);
      picos_ += node.duration.ps;
    }
    const bool on_gpu = node.kind == TraceNodeKind::compute;
    print("l{}: calc {} cpu {}\n", label, nanos, on_gpu ? 0 : 2);
  }

  void write_collective(std::uint32_t n) {
    const TraceCollective& collective = trace_.collectives[trace_.nodes[n].subject];
    const std::vector<int>& group = group_of(n);
    const std::size_t size = group.size();
    const auto own =
        static_cast<std::size_t>(std::ranges::lower_bound(group, rank_) - group.begin());
    const double bytes =
        std::max(1.0, std::ceil(collective.payload.base_units() / static_cast<double>(size)));
    const bool to_all = collective.op == CollectiveOp::all_to_all;
    const std::uint32_t label = n - first_;
    print("l{}b: calc 0 cpu 1\n", label);
    const std::uint64_t steps = steps_of(n);
    for (std::uint64_t k = 0; k < steps; ++k) {
      const std::size_t shift = to_all ? k + 1 : 1;
      print("l{}s{}: send {:.0f}b to {} tag {} cpu 1\n", label, k, bytes,
            group[(own + shift) % size], kFirstCallTag + tag_[n]);
      print("l{}r{}: recv {:.0f}b from {} tag {} cpu 1\n", label, k, bytes,
            group[(own + size - shift) % size], kFirstCallTag + tag_[n]);
      if (k == 0 || to_all) {
        print("l{0}s{1} requires l{0}b\nl{0}r{1} requires l{0}b\n", label, k);
      } else {
        print("l{0}s{1} requires l{0}r{2}\nl{0}r{1} requires l{0}r{2}\n", label, k, k - 1);
      }
    }
    print("l{}: calc 0 cpu 1\n", label);
    for (std::uint64_t k = to_all ? 0 : steps - 1; k < steps; ++k) {
      print("l{0} requires l{0}s{1}\nl{0} requires l{0}r{1}\n", label, k);
    }
  }

  void write_dependencies(std::uint32_t n) {
    const char* begin = spelled_out(n) ? "b" : "";
    for (const std::uint32_t d : trace_.dependencies_of(n)) {
      print("l{}{} requires l{}\n", n - first_, begin, d - first_);
    }
  }

  const Trace& trace_;
  TraceMatches matches_;
  const std::function<void(std::string_view)>& write_;
  std::vector<std::uint32_t> tag_;  ///< by node: its call
  fmt::memory_buffer buffer_;
  std::uint32_t first_ = 0;
  int rank_ = 0;
  std::uint64_t picos_ = 0;
};

}  // namespace

void write_goal(const Trace& trace, const std::function<void(std::string_view)>& write) {
  GoalWriter(trace, write).run();
}

}  // namespace lockstep
