#include <algorithm>
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

constexpr bool is_goal_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_goal_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_goal_word(char c) { return is_goal_letter(c) || is_goal_digit(c) || c == '_'; }

/// The labels of a rank's operations, which lie in the text.
class GoalLabels {
 public:
  GoalLabels() { clear(); }
  void clear() {
    slots_.assign(std::max(kFewest, slots_.size()), {});
    used_ = 0;
  }
  /// Whether the label is new.
  bool add(std::string_view label, std::uint32_t operation) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place_of(label)];
    if (slot.label != nullptr) return false;
    slot = {label.data(), static_cast<std::uint32_t>(label.size()), operation};
    ++used_;
    return true;
  }
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view label) const {
    const Slot& slot = slots_[place_of(label)];
    if (slot.label == nullptr) return std::nullopt;
    return slot.operation;
  }

 private:
  static constexpr std::size_t kFewest = 1024;
  struct Slot {
    const char* label = nullptr;
    std::uint32_t size = 0, operation = 0;
  };

  /// Where it is, or would be.
  [[nodiscard]] std::size_t place_of(std::string_view label) const {
    std::uint64_t hash = label.size();
    for (const char c : label) hash = hash * 0x9E37'79B9'7F4A'7C15 + static_cast<unsigned char>(c);
    std::size_t at = (hash ^ (hash >> 29U)) & (slots_.size() - 1);
    while (slots_[at].label != nullptr &&
           (slots_[at].size != label.size() ||
            std::memcmp(slots_[at].label, label.data(), label.size()) != 0)) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }
  void grow() {
    const std::vector<Slot> before = std::move(slots_);
    slots_.assign(2 * before.size(), {});
    for (const Slot& slot : before) {
      if (slot.label != nullptr) slots_[place_of({slot.label, slot.size})] = slot;
    }
  }

  std::vector<Slot> slots_;  ///< a power of two of them, at least half of them free
  std::size_t used_ = 0;
};

class GoalReader {
 public:
  /// `any`: whether receives may be from anybody and of any tag.
  GoalReader(const std::string& file, std::string_view text, bool any)
      : file_(file), text_(text), any_(any) {
    next();
  }

  /// How many the schedule says at its beginning that there are; nothing where it says it later.
  std::optional<std::uint64_t> first_ranks() {
    if (!take("num_ranks")) return std::nullopt;
    return number("number of ranks", kMostTraceRanks);
  }
  /// How much of the text has been read.
  [[nodiscard]] std::size_t read_to() const { return at_; }

  /// Calls `take_rank` with each rank.
  template <class TakeRank>
  void read(const TakeRank& take_rank) {
    while (!token_.empty()) {
      if (take("num_ranks")) {
        ranks_ = number("number of ranks", kMostTraceRanks);
      } else if (take("rank")) {
        read_rank();
        take_rank(rank_);
        ++count_;
      } else {
        fail("num_ranks or rank");
      }
    }
    if (ranks_.value_or(0) == 0) {
      fail_trace(file_, "no num_ranks of at least 1", "a schedule in GOAL");
    }
    if (count_ != *ranks_) {
      fail_trace(file_, counted(static_cast<double>(count_), "rank"),
                 fmt::format("the {} that num_ranks says", *ranks_));
    }
  }

 private:
  [[noreturn]] void fail(std::string_view allowed) const {
    fail_trace(fmt::format("{}:{}", file_, line_), token_.empty() ? "the end" : in_quotes(token_),
               std::string(allowed));
  }

  /// The next word, number or sign.
  void next() {
    taken_line_ = line_;
    skip();
    std::size_t end = at_;
    while (end < text_.size() && is_goal_word(text_[end])) ++end;
    // "10b" is a number and its unit; "1e30" is no number.
    if (end > at_ && text_[end - 1] == 'b' && is_goal_digit(text_[at_])) {
      const std::string_view digits = text_.substr(at_, end - 1 - at_);
      if (std::ranges::all_of(digits, is_goal_digit)) --end;
    }
    if (end == at_ && end < text_.size()) ++end;
    token_ = text_.substr(at_, end - at_);
    at_ = end;
  }
  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_goal_word(c)) return;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';') {
        if (c == '\n') ++line_;
        ++at_;
      } else if (text_.substr(at_).starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_).starts_with("/*")) {
        const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
        line_ += static_cast<std::size_t>(
            std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                       text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        at_ = std::min(end + 2, text_.size());
      } else {
        return;
      }
    }
  }
  /// The size is the compiler's to know: most of a schedule's words are compared with several.
  template <std::size_t size>
  [[nodiscard]] bool is(const char (&word)[size]) const {
    return token_ == std::string_view(word, size - 1);
  }
  template <std::size_t size>
  bool take(const char (&word)[size]) {
    if (!is(word)) return false;
    next();
    return true;
  }
  template <std::size_t size>
  void expect(const char (&word)[size]) {
    if (!take(word)) fail(fmt::format("\"{}\"", word));
  }
  std::uint64_t number(std::string_view what, std::uint64_t most) {
    std::uint64_t value = 0;
    bool good = !token_.empty();
    for (const char c : token_) {
      good = good && c >= '0' && c <= '9' && value <= most;
      value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    if (!good || value > most) fail(fmt::format("the {}, a whole number up to {}", what, most));
    next();
    return value;
  }

  /// Into `rank_`, whose memory serves one rank after the other.
  void read_rank() {
    GoalRank& rank = rank_;
    rank.operations.clear();
    rank.ends.clear();
    rank.starts.clear();
    rank.rank = static_cast<int>(number("rank", kMostTraceRanks - 1));
    expect("{");
    labels_.clear();
    while (!is("}")) {
      if (token_.empty()) fail("\"}\" at the end of the rank");
      read_statement(rank);
    }
    next();
  }

  void read_statement(GoalRank& rank) {
    if (is_operation()) {
      read_operation(rank);
      return;
    }
    const std::size_t line = line_;
    const std::string_view label = word();
    if (take(":")) {
      if (!is_operation()) fail("calc, send or recv");
      const auto index = static_cast<std::uint32_t>(rank.operations.size());
      if (!labels_.add(label, index)) {
        fail_trace(fmt::format("{}:{}", file_, line_), "label " + in_quotes(label) + " again",
                   "each label once in a rank");
      }
      read_operation(rank);
      return;
    }
    const bool starts = is("irequires");
    if (!starts && !is("requires")) {
      fail_trace(fmt::format("{}:{}", file_, line), in_quotes(label),
                 "calc, send or recv; or a label and then \":\", requires or irequires");
    }
    next();
    const std::uint32_t node = labelled(label), other = labelled(word());
    (starts ? rank.starts : rank.ends).push_back({node, other});
  }
  [[nodiscard]] bool is_operation() const { return is("calc") || is("send") || is("recv"); }
  std::string_view word() {
    const std::string_view text = token_;
    if (text.empty() || !is_goal_letter(text.front())) {
      fail("calc, send, recv, a label or \"}\"");
    }
    next();
    return text;
  }
  [[nodiscard]] std::uint32_t labelled(std::string_view label) const {
    const auto found = labels_.find(label);
    if (!found) {
      fail_trace(fmt::format("{}:{}", file_, taken_line_), "label " + in_quotes(label),
                 "labels of operations above, in the same rank");
    }
    return *found;
  }

  /// "-1", which stands for anybody and for any tag.
  bool take_any() {
    if (!any_ || token_ != "-" || !text_.substr(at_).starts_with('1')) return false;
    next();
    (void)number("number behind \"-\", 1 for any", 1);
    return true;
  }

  void read_operation(GoalRank& rank) {
    GoalRank::Operation& own = rank.operations.emplace_back();
    if (take("calc")) {
      own.size = number("time in nanoseconds", kMostGoalNanoseconds);
    } else {
      read_message(own);
    }
    while (true) {
      if (own.kind != GoalRank::Kind::calculation && take("tag")) {
        own.tag =
            take_any() ? GoalRank::kAny : static_cast<std::uint32_t>(number("tag", 4'294'967'295));
      } else if (take("cpu")) {
        own.cpu = static_cast<std::uint8_t>(number("cpu", 255));
      } else if (take("nic")) {
        own.nic = static_cast<std::uint8_t>(number("nic", 255));
      } else {
        return;
      }
    }
  }
  void read_message(GoalRank::Operation& own) {
    const bool sends = take("send");
    if (!sends) expect("recv");
    own.kind = sends ? GoalRank::Kind::send : GoalRank::Kind::receive;
    own.size = number("size", kMostGoalMessage);
    expect("b");
    sends ? expect("to") : expect("from");
    if (!sends && take_any()) {
      own.peer = GoalRank::kAny;
      return;
    }
    const std::string_view what = sends  ? "receiver"
                                  : any_ ? "sender, -1 for anybody"
                                         : "sender, one rank";
    own.peer = static_cast<std::uint32_t>(number(what, kMostTraceRanks - 1));
  }

  const std::string& file_;
  std::string_view text_;
  std::string_view token_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;        ///< of the next word
  std::size_t taken_line_ = 1;  ///< of the one before it
  std::optional<std::uint64_t> ranks_;
  bool any_ = false;
  std::uint64_t count_ = 0;  ///< ranks that were read
  GoalLabels labels_;
  GoalRank rank_;
};

}  // namespace

std::vector<RankTrace> read_goal(const std::string& file, std::string_view text) {
  std::vector<RankTrace> out;
  GoalReader(file, text, false).read([&](const GoalRank& rank) {
    out.push_back(trace_of_goal(file, rank));
  });
  return out;
}

std::vector<GoalRank> read_goal_ranks(const std::string& file, std::string_view text) {
  std::vector<GoalRank> out;
  GoalReader(file, text, true).read([&](GoalRank& rank) { out.push_back(std::move(rank)); });
  return out;
}

std::optional<Trace> read_goal_in_order(const std::string& file, std::string_view text,
                                        const std::function<void(std::size_t)>& read_to) {
  try {
    const auto ranks = GoalReader(file, text, false).first_ranks();
    if (!ranks) return std::nullopt;
    return join_in_order(*ranks, [&](const AddRank& add) {
      GoalReader reader(file, text, false);
      RankTrace trace;
      reader.read([&](const GoalRank& rank) {
        trace_of_goal(file, rank, trace);
        add(trace);
        read_to(reader.read_to());
      });
    });
  } catch (const InputError&) {
    return std::nullopt;  // several mistakes: read_goal() and join() say the one that comes first
  }
}

}  // namespace lockstep
