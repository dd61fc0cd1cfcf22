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
  GoalReader(const std::string& file, std::string_view text) : file_(file), text_(text) { next(); }

  std::vector<RankTrace> read() {
    while (!token_.empty()) {
      if (take("num_ranks")) {
        ranks_ = number("number of ranks", kMostTraceRanks);
      } else if (take("rank")) {
        read_rank();
      } else {
        fail("num_ranks or rank");
      }
    }
    if (ranks_.value_or(0) == 0) {
      fail_trace(file_, "no num_ranks of at least 1", "a schedule in GOAL");
    }
    if (out_.size() != *ranks_) {
      fail_trace(file_, counted(static_cast<double>(out_.size()), "rank"),
                 fmt::format("the {} that num_ranks says", *ranks_));
    }
    return std::move(out_);
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

  void read_rank() {
    RankTrace rank;
    rank.file = file_;
    rank.rank = static_cast<int>(number("rank", kMostTraceRanks - 1));
    expect("{");
    labels_.clear();
    dependencies_ = {};
    while (token_ != "}") {
      if (token_.empty()) fail("\"}\" at the end of the rank");
      read_statement(rank);
    }
    next();
    dependencies_.give_to(rank, fmt::format("{}, rank {}", file_, rank.rank));
    out_.push_back(std::move(rank));
  }

  void read_statement(RankTrace& rank) {
    if (is_operation()) {
      read_operation(rank);
      return;
    }
    const std::size_t line = line_;
    const std::string label(word());
    if (take(":")) {
      if (!is_operation()) fail("calc, send or recv");
      const auto index = static_cast<std::uint32_t>(rank.nodes.size());
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
    if (starts) {
      dependencies_.wait_for_start(node, other);
    } else {
      dependencies_.wait_for_end(node, other);
    }
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

  void read_operation(RankTrace& rank) {
    RankTrace::Node& node = rank.add(rank.nodes.size() + 1, token_);
    dependencies_.add_operation();
    if (take("calc")) {
      node.kind = TraceNodeKind::compute;
      node.duration = {number("time in nanoseconds", kMostGoalNanoseconds) * 1000};
      node.stream = 0;
    } else {
      const bool sends = take("send");
      if (!sends) expect("recv");
      node.kind = sends ? TraceNodeKind::send : TraceNodeKind::receive;
      node.size = Bytes{static_cast<double>(number("size", kMostGoalMessage))};
      expect("b");
      expect(sends ? "to" : "from");
      node.peer =
          static_cast<int>(number(sends ? "receiver" : "sender, one rank", kMostTraceRanks - 1));
    }
    while (true) {
      if (node.kind != TraceNodeKind::compute && take("tag")) {
        node.tag = static_cast<std::uint32_t>(number("tag", 4'294'967'295));
      } else if (take("cpu")) {
        const std::uint64_t cpu = number("cpu", 255);
        if (node.kind == TraceNodeKind::compute) node.stream = static_cast<std::uint16_t>(cpu);
      } else if (take("nic")) {
        (void)number("nic", 255);
      } else {
        return;
      }
    }
  }

  const std::string& file_;
  std::string_view text_;
  std::string_view token_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;        ///< of the next word
  std::size_t taken_line_ = 1;  ///< of the one before it
  std::optional<std::uint64_t> ranks_;
  std::vector<RankTrace> out_;
  std::unordered_map<std::string, std::uint32_t> labels_;
  GoalDependencies dependencies_;  ///< of the rank
};

}  // namespace

std::vector<RankTrace> read_goal(const std::string& file, std::string_view text) {
  return GoalReader(file, text).read();
}

}  // namespace lockstep
