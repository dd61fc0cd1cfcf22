#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/formats/goal_dependencies.hpp"

namespace lockstep {
namespace {

constexpr std::uint64_t kGoalCookie = 4223, kGoalUsedCookie = 2342;
constexpr std::uint64_t kGoalHead = 6;   // ranks, cpu and nic, behind the cookie
constexpr std::uint64_t kGoalSpan = 16;  // of the table of ranks
constexpr std::uint64_t kGoalOperationBytes = 39, kGoalNumberBytes = 4;

template <class Number>
Number number_at(std::string_view bytes, std::uint64_t at) {
  Number out = 0;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  if constexpr (std::endian::native == std::endian::big) {
    auto raw = std::bit_cast<std::array<unsigned char, sizeof out>>(out);
    std::ranges::reverse(raw);
    out = std::bit_cast<Number>(raw);
  }
  return out;
}

/// An operation as the file packs it.
struct PackedOperation {
  std::uint32_t waits_for = 0, peer = 0, tag = 0;
  std::uint64_t size = 0;
  std::uint8_t type = 0, cpu = 0, nic = 0;
  struct Others {
    std::uint32_t count = 0, first = 0;
  };
  Others ends, starts;  ///< those that wait for its end and its start

  explicit PackedOperation(std::string_view b)
      : waits_for(number_at<std::uint32_t>(b, 0)),
        peer(number_at<std::uint32_t>(b, 5)),
        tag(number_at<std::uint32_t>(b, 17)),
        size(number_at<std::uint64_t>(b, 9)),
        type(number_at<std::uint8_t>(b, 4)),
        cpu(number_at<std::uint8_t>(b, 21)),
        nic(number_at<std::uint8_t>(b, 22)),
        ends{number_at<std::uint32_t>(b, 23), number_at<std::uint32_t>(b, 27)},
        starts{number_at<std::uint32_t>(b, 31), number_at<std::uint32_t>(b, 35)} {}
};

/// The operations of one rank.
class PackedRank {
 public:
  /// `any`: whether receives may be from anybody and of any tag.
  PackedRank(const std::string& file, int rank, std::string_view bytes, bool any)
      : place_(fmt::format("{}, rank {}", file, rank)), bytes_(bytes), any_(any) {
    out_.rank = rank;
  }

  GoalRank read() {
    constexpr std::uint64_t kCounts = 2 * kGoalNumberBytes;
    if (bytes_.size() < kCounts) cut_short();
    count_ = number_at<std::uint32_t>(bytes_, 0);
    const std::uint64_t roots = number_at<std::uint32_t>(bytes_, kGoalNumberBytes);
    first_ = kCounts + roots * kGoalNumberBytes;
    others_ = first_ + std::uint64_t{count_} * kGoalOperationBytes;
    if (others_ > bytes_.size()) cut_short();
    room_ = (bytes_.size() - others_) / kGoalNumberBytes;
    out_.operations.reserve(count_);
    for (std::uint32_t i = 0; i < count_; ++i) add_operation(i);
    std::vector<std::uint32_t> waits(count_);
    for (std::uint32_t i = 0; i < count_; ++i) add_dependencies(i, waits);
    check_counts(waits);
    return std::move(out_);
  }

 private:
  [[noreturn]] void cut_short() const {
    fail_trace(place_, counted(static_cast<double>(bytes_.size()), "byte"),
               "as many as its operations need: the file is cut short or damaged");
  }
  [[noreturn]] void fail(std::uint32_t i, const std::string& found,
                         const std::string& allowed) const {
    fail_trace(fmt::format("{}, operation {}", place_, i + 1), found, allowed);
  }
  [[nodiscard]] PackedOperation packed(std::uint32_t i) const {
    return PackedOperation(bytes_.substr(first_ + std::uint64_t{i} * kGoalOperationBytes));
  }

  void add_operation(std::uint32_t i) {
    constexpr std::uint8_t kSend = 1, kReceive = 2, kCalculation = 3;
    const PackedOperation own = packed(i);
    GoalRank::Operation& out = out_.operations.emplace_back();
    out.size = own.size;
    out.cpu = own.cpu;
    out.nic = own.nic;
    if (own.type == kCalculation) {
      if (own.size > kMostGoalNanoseconds) {
        fail(i, fmt::format("a calculation of {} ns", own.size),
             fmt::format("at most {}", kMostGoalNanoseconds));
      }
      return;
    }
    const bool sends = own.type == kSend;
    if (!sends && own.type != kReceive) {
      fail(i, fmt::format("type {}", own.type), "1 (send), 2 (recv) or 3 (calc)");
    }
    check_message(i, own, sends);
    out.kind = sends ? GoalRank::Kind::send : GoalRank::Kind::receive;
    out.peer = own.peer;
    out.tag = own.tag;
  }
  void check_message(std::uint32_t i, const PackedOperation& own, bool sends) const {
    if (own.size > kMostGoalMessage) {
      fail(i, fmt::format("a message of {} bytes", own.size),
           fmt::format("at most {}", kMostGoalMessage));
    }
    const bool anybody = own.peer == GoalRank::kAny;
    if (own.peer >= kMostTraceRanks && !(any_ && anybody && !sends)) {
      fail(i, anybody ? std::string("any sender") : fmt::format("rank {}", own.peer),
           fmt::format("one rank, up to {}", kMostTraceRanks - 1));
    }
    if (own.tag == GoalRank::kAny && !any_) fail(i, "any tag", "one tag");
  }

  /// Calls `add` with each of the others. Together they are no more than there is room for.
  template <class Add>
  void for_others(std::uint32_t i, const PackedOperation::Others& others, const Add& add) {
    if (others.count == 0) return;
    used_ += others.count;
    if (std::uint64_t{others.first} + others.count > room_ || used_ > room_) {
      fail(i,
           fmt::format("{} from number {} on that wait for it", counted(others.count, "operation"),
                       others.first),
           fmt::format("numbers below {}, each once", room_));
    }
    for (std::uint32_t k = 0; k < others.count; ++k) {
      const std::uint64_t at = others_ + (std::uint64_t{others.first} + k) * kGoalNumberBytes;
      const auto other = number_at<std::uint32_t>(bytes_, at);
      if (other >= count_) {
        fail(i, fmt::format("operation {} that waits for it", std::uint64_t{other} + 1),
             fmt::format("operations up to {}", count_));
      }
      add(other);
    }
  }
  void add_dependencies(std::uint32_t i, std::vector<std::uint32_t>& waits) {
    const PackedOperation own = packed(i);
    for_others(i, own.ends, [&](std::uint32_t other) {
      out_.ends.push_back({other, i});
      ++waits[other];
    });
    for_others(i, own.starts, [&](std::uint32_t other) {
      out_.starts.push_back({other, i});
      ++waits[other];
    });
  }
  void check_counts(const std::vector<std::uint32_t>& waits) const {
    for (std::uint32_t i = 0; i < count_; ++i) {
      const std::uint32_t said = packed(i).waits_for;
      if (said == waits[i]) continue;
      fail(i, fmt::format("a count of {} that it waits for", said),
           fmt::format("{}, as many as others say", waits[i]));
    }
  }

  std::string place_;
  std::string_view bytes_;
  std::uint32_t count_ = 0;
  std::uint64_t first_ = 0;   ///< where operations begin
  std::uint64_t others_ = 0;  ///< where the numbers of those that wait begin
  std::uint64_t room_ = 0;    ///< how many numbers there are
  std::uint64_t used_ = 0;    ///< how many of them operations have named
  bool any_ = false;
  GoalRank out_;
};

}  // namespace

bool is_goal_binary(std::string_view bytes) {
  if (bytes.size() < sizeof kGoalCookie) return false;
  const auto cookie = number_at<std::uint64_t>(bytes, 0);
  return cookie == kGoalCookie || cookie == kGoalUsedCookie;
}

namespace {

/// Calls `take_rank` with each rank; `any` as in PackedRank.
template <class TakeRank>
void read_packed_ranks(const std::string& file, std::string_view bytes, bool any,
                       const TakeRank& take_rank) {
  constexpr std::string_view kForm = "a schedule that txt2bin wrote";
  if (!is_goal_binary(bytes))
    fail_trace(file, "no number 4223 at its beginning", std::string(kForm));
  if (number_at<std::uint64_t>(bytes, 0) == kGoalUsedCookie) {
    fail_trace(file, "a schedule that a simulation with --save-mem has used up",
               "one that txt2bin wrote anew");
  }
  bytes.remove_prefix(sizeof kGoalCookie);
  if (bytes.size() < kGoalHead) fail_trace(file, "a file that is cut short", std::string(kForm));
  const std::uint64_t ranks = number_at<std::uint32_t>(bytes, 0);
  if (ranks == 0 || ranks > kMostTraceRanks) {
    fail_trace(file, fmt::format("{} ranks", ranks),
               fmt::format("at least 1 and at most {}", kMostTraceRanks));
  }
  std::uint64_t end = kGoalHead + ranks * kGoalSpan;
  if (bytes.size() < end) {
    fail_trace(file, counted(static_cast<double>(bytes.size()), "byte"),
               fmt::format("a table of {} ranks: the file is cut short", ranks));
  }
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t at = kGoalHead + rank * kGoalSpan;
    const auto from = number_at<std::uint64_t>(bytes, at),
               to = number_at<std::uint64_t>(bytes, at + 8);
    if (from < end || to < from || to > bytes.size()) {
      fail_trace(
          file, fmt::format("rank {} in bytes {} to {}", rank, from, to),
          fmt::format("behind the rank before it, from {} on, and up to {}", end, bytes.size()));
    }
    take_rank(PackedRank(file, static_cast<int>(rank), bytes.substr(from, to - from), any).read());
    end = to;
  }
}

}  // namespace

std::vector<RankTrace> read_goal_binary(const std::string& file, std::string_view bytes) {
  std::vector<RankTrace> out;
  read_packed_ranks(file, bytes, false,
                    [&](const GoalRank& rank) { out.push_back(trace_of_goal(file, rank)); });
  return out;
}

std::vector<GoalRank> read_goal_binary_ranks(const std::string& file, std::string_view bytes) {
  std::vector<GoalRank> out;
  read_packed_ranks(file, bytes, true, [&](GoalRank rank) { out.push_back(std::move(rank)); });
  return out;
}

std::optional<Trace> read_goal_binary_in_order(const std::string& file, std::string_view bytes,
                                               const std::function<void(std::size_t)>& read_to) {
  constexpr std::uint64_t kAtRanks = sizeof kGoalCookie;
  if (bytes.size() < kAtRanks + kGoalNumberBytes) return std::nullopt;
  try {
    return join_in_order(number_at<std::uint32_t>(bytes, kAtRanks), [&](const AddRank& add) {
      RankTrace trace;
      read_packed_ranks(file, bytes, false, [&](const GoalRank& rank) {
        trace_of_goal(file, rank, trace);
        add(trace);
        const std::uint64_t row = kGoalHead + static_cast<std::uint64_t>(rank.rank) * kGoalSpan;
        read_to(kAtRanks + number_at<std::uint64_t>(bytes, kAtRanks + row + sizeof row));
      });
    });
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace lockstep
