#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <unordered_map>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/formats/goal_dependencies.hpp"

namespace lockstep {
namespace {

class GoalReader {
 public:
  /// `any`: whether receives may be from anybody and of any tag.
  GoalReader(const std::string& file, std::string_view text, bool any)
      : file_(file), text_(text), any_(any) {
    next();
  }

  /// Calls `take_rank` with each rank.
  template <class TakeRank>
  void read(const TakeRank& take_rank) {
    while (!token_.empty()) {
      if (take("num_ranks")) {
        ranks_ = number("number of ranks", kMostTraceRanks);
      } else if (take("rank")) {
        take_rank(read_rank());
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
    const auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    while (end < text_.size() && is_word(text_[end])) ++end;
    // "10b" is a number and its unit; "1e30" is no number.
    if (end > at_ && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      const std::string_view digits = text_.substr(at_, end - 1 - at_);
      const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
      if (text_[end - 1] == 'b' && std::ranges::all_of(digits, is_digit)) --end;
    }
    if (end == at_ && end < text_.size()) ++end;
    token_ = text_.substr(at_, end - at_);
    at_ = end;
  }
  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
        line_ += static_cast<std::size_t>(
            std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                       text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        at_ = std::min(end + 2, text_.size());
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';') {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool take(std::string_view word) {
    if (token_ != word) return false;
    next();
    return true;
  }
  void expect(std::string_view word) {
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

  GoalRank read_rank() {
    GoalRank rank;
    rank.rank = static_cast<int>(number("rank", kMostTraceRanks - 1));
    expect("{");
    labels_.clear();
    while (token_ != "}") {
      if (token_.empty()) fail("\"}\" at the end of the rank");
      read_statement(rank);
    }
    next();
    return rank;
  }

  void read_statement(GoalRank& rank) {
    if (is_operation()) {
      read_operation(rank);
      return;
    }
    const std::size_t line = line_;
    const std::string label(word());
    if (take(":")) {
      if (!is_operation()) fail("calc, send or recv");
      const auto index = static_cast<std::uint32_t>(rank.operations.size());
      if (!labels_.try_emplace(label, index).second) {
        fail_trace(fmt::format("{}:{}", file_, line_), "label " + in_quotes(label) + " again",
                   "each label once in a rank");
      }
      read_operation(rank);
      return;
    }
    const bool starts = token_ == "irequires";
    if (!starts && token_ != "requires") {
      fail_trace(fmt::format("{}:{}", file_, line), in_quotes(label),
                 "calc, send or recv; or a label and then \":\", requires or irequires");
    }
    next();
    const std::uint32_t node = labelled(label), other = labelled(std::string(word()));
    (starts ? rank.starts : rank.ends).push_back({node, other});
  }
  [[nodiscard]] bool is_operation() const {
    return token_ == "calc" || token_ == "send" || token_ == "recv";
  }
  std::string_view word() {
    const std::string_view text = token_;
    if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) == 0) {
      fail("calc, send, recv, a label or \"}\"");
    }
    next();
    return text;
  }
  [[nodiscard]] std::uint32_t labelled(const std::string& label) const {
    const auto found = labels_.find(label);
    if (found == labels_.end()) {
      fail_trace(fmt::format("{}:{}", file_, taken_line_), "label " + in_quotes(label),
                 "labels of operations above, in the same rank");
    }
    return found->second;
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
    expect(sends ? "to" : "from");
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
  std::unordered_map<std::string, std::uint32_t> labels_;
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
  GoalReader(file, text, true).read([&](GoalRank rank) { out.push_back(std::move(rank)); });
  return out;
}

}  // namespace lockstep
