#include "sim/trace/formats/read_aicb.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "sim/trace/formats/workload_ranks.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kAicbHeading = "comm_type,";
constexpr double kMostAicbBytes = 1e15;
constexpr double kAicbBarrierBytes = 8;  // assumed: one word, as of Chakra's
constexpr double kElementBytes = 2;      // of products: bf16, as workload_applyer.py allocates
constexpr std::size_t kMostAicbRepeats = 100'000;

/// Rows of a stage as the file has them.
struct AicbSection {
  std::string place;  ///< for messages: "f.csv (rank 0 to 127)"
  int first = 0, ranks = 0;
  std::string table;
};

struct AicbRow {
  std::size_t number = 0;
  std::string type, group, additional, stage;
  std::string size, elapsed, members;
  std::size_t count = 1;
};

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// All whole numbers in a text.
std::vector<std::uint64_t> numbers_in(std::string_view text) {
  std::vector<std::uint64_t> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto [stop, error] =
        std::from_chars(text.data() + at, text.data() + text.size(), out.emplace_back());
    if (error == std::errc{}) {
      at = static_cast<std::size_t>(stop - text.data());
    } else {
      out.pop_back();
      ++at;
    }
  }
  return out;
}

/// "[rank0 ~ rank127]" and "[ pp_stage0: [rank0, rank1] ]".
AicbSection section_of(const std::string& file, std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view ranks = colon == std::string_view::npos ? line : line.substr(colon + 1);
  const std::vector<std::uint64_t> numbers = numbers_in(ranks);
  const bool range = ranks.find('~') != std::string_view::npos && numbers.size() == 2;
  const bool rises = !numbers.empty() && numbers.back() >= numbers.front() &&
                     numbers.back() < static_cast<std::uint64_t>(kMostTraceRanks) &&
                     (range || numbers.back() - numbers.front() + 1 == numbers.size());
  if (!rises) {
    fail_trace(file, in_quotes(line),
               "ranks that follow each other: [rank0 ~ rank127], or [ pp_stage0: [rank0, rank1] ]");
  }
  AicbSection out;
  out.first = static_cast<int>(numbers.front());
  out.ranks = static_cast<int>(numbers.back() - numbers.front() + 1);
  out.place = fmt::format("{} (ranks {} to {})", file, numbers.front(), numbers.back());
  return out;
}

std::vector<AicbSection> sections_of(const std::string& file, std::string_view text) {
  std::vector<AicbSection> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('[')) {
      out.push_back(section_of(file, line));
      continue;
    }
    if (out.empty() && line.find_first_not_of(" \t\r") != std::string_view::npos) {
      fail_trace(file, in_quotes(line), "a line that says which ranks: [rank0 ~ rank127]");
    }
    if (!out.empty()) out.back().table.append(line).append("\n");
  }
  return out;
}

/// The rows of the last whole step.
class AicbRows {
 public:
  explicit AicbRows(const AicbSection& section) : place_(section.place) {
    read_csv(
        section.place, section.table, [&](std::span<const std::string> cells) { heading(cells); },
        [&](std::size_t number, std::span<const std::string> cells) { row(number, cells); });
  }
  /// What stands between the last two ends of an epoch; all, where there are none.
  std::vector<AicbRow> step() {
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].type == "epoch_end") ends.push_back(i);
    }
    epochs_ = ends.size();
    if (ends.empty()) return std::move(rows_);
    const std::size_t from = ends.size() > 1 ? ends[ends.size() - 2] + 1 : 0;
    return {rows_.begin() + static_cast<std::ptrdiff_t>(from),
            rows_.begin() + static_cast<std::ptrdiff_t>(ends.back())};
  }
  [[nodiscard]] std::size_t epochs() const { return epochs_; }

 private:
  void heading(std::span<const std::string> cells) {
    for (std::size_t c = 0; c < cells.size(); ++c) columns_[cells[c]] = c;
    for (const char* needed : {"comm_type", "comm_group", "msg_size"}) {
      if (!columns_.contains(needed)) {
        fail_trace(place_, fmt::format("no column \"{}\"", needed), "AICB's columns");
      }
    }
  }
  void row(std::size_t number, std::span<const std::string> cells) {
    const auto cell = [&](const char* name) {
      const auto at = columns_.find(name);
      return at == columns_.end() ? std::string() : cells[at->second];
    };
    const auto last_part = [](const std::string& name) {
      return name.substr(name.find('.') == std::string::npos ? 0 : name.find('.') + 1);
    };
    AicbRow& out = rows_.emplace_back();
    out.number = number;
    out.type = last_part(cell("comm_type"));
    out.group = last_part(cell("comm_group"));
    out.members = cell("comm_group_size");
    out.size = cell("msg_size");
    out.stage = cell("stage");
    out.additional = cell("additional");
    out.elapsed = cell("_elapsed_time");
    if (const auto count = whole_number(cell("count"))) out.count = *count;
    if (out.count > kMostAicbRepeats) {
      fail_trace(csv_place(place_, number), fmt::format("count {}", out.count),
                 fmt::format("at most {}", kMostAicbRepeats));
    }
  }

  const std::string& place_;
  std::map<std::string, std::size_t> columns_;
  std::vector<AicbRow> rows_;
  std::size_t epochs_ = 0;
};

/// Turns the rows of a stage into what its first rank does.
class AicbStage {
 public:
  AicbStage(const std::string& file, const AicbSection& section, const GpuSpec& gpu, int world)
      : section_(section), gpu_(gpu), world_(world) {
    stage_.first = section.first;
    stage_.ranks = section.ranks;
    stage_.work.file = file;
  }

  WorkloadStage read() {
    AicbRows table(section_);
    const std::vector<AicbRow> rows = table.step();
    for (const AicbRow& row : rows) {
      if (row.group == "tp_group") tensor_ = members_of(row);
    }
    for (const AicbRow& row : rows) {
      for (std::size_t c = 0; c < row.count; ++c) add(row);
    }
    add_aicb_notes(table.epochs());
    return std::move(stage_);
  }

 private:
  [[noreturn]] void fail(const AicbRow& row, std::string found, std::string allowed) const {
    fail_trace(csv_place(section_.place, row.number), std::move(found), std::move(allowed));
  }
  [[nodiscard]] int members_of(const AicbRow& row) const {
    const auto members = whole_number(row.members);
    if (!members || *members < 1 || *members > static_cast<std::uint64_t>(world_)) {
      fail(row, fmt::format("comm_group_size {}", in_quotes(row.members)),
           fmt::format("a whole number from 1 to {}", world_));
    }
    return static_cast<int>(*members);
  }
  [[nodiscard]] double bytes_of(const AicbRow& row) const {
    const auto bytes = whole_number(row.size);
    if (!bytes || static_cast<double>(*bytes) > kMostAicbBytes) {
      fail(row, fmt::format("msg_size {}", in_quotes(row.size)), "whole bytes up to 1e15");
    }
    return static_cast<double>(*bytes);
  }

  RankTrace::Node& next(const AicbRow& row, TraceNodeKind kind) {
    RankTrace::Node& node = stage_.work.add(next_, row.stage.empty() ? row.type : row.stage);
    node.kind = kind;
    node.stream = kind == TraceNodeKind::compute ? std::uint16_t{0} : TraceNode::kNoStream;
    if (next_ > 0) stage_.work.depends_on(next_ - 1);
    ++next_;
    return node;
  }

  void add(const AicbRow& row) {
    static const std::map<std::string_view, CollectiveOp> kOps{
        {"all_reduce", CollectiveOp::all_reduce},
        {"all_gather", CollectiveOp::all_gather},
        {"all_gather_into_tensor", CollectiveOp::all_gather},
        {"reduce_scatter", CollectiveOp::reduce_scatter},
        {"reduce_scatter_tensor", CollectiveOp::reduce_scatter},
        {"all_to_all", CollectiveOp::all_to_all},
        {"broadcast", CollectiveOp::broadcast},
        {"reduce", CollectiveOp::reduce},
        {"barrier", CollectiveOp::all_reduce}};
    if (row.type == "computation") return add_product(row);
    if (row.type == "isend" || row.type == "irecv") return add_message(row);
    const auto op = kOps.find(row.type);
    if (op == kOps.end()) {
      fail(row, fmt::format("comm_type {}", in_quotes(row.type)),
           "a CommType of AICB: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, "
           "reduce, barrier, isend, irecv, computation, epoch_end");
    }
    const double bytes = row.type == "barrier" ? kAicbBarrierBytes : bytes_of(row);
    const std::uint32_t group = group_of(row);
    if (stage_.groups[group].members < 2 || bytes == 0) {
      ++free_;
      return;
    }
    RankTrace::Node& node = next(row, TraceNodeKind::collective);
    node.op = op->second;
    node.size = Bytes{bytes};
    node.group = group;
    ++calls_;
  }

  std::uint32_t group_of(const AicbRow& row) {
    const int members = row.type == "barrier" || row.group == "all" || row.group == "None"
                            ? world_
                            : members_of(row);
    const auto [at, added] =
        known_.try_emplace({row.group, members}, static_cast<std::uint32_t>(stage_.groups.size()));
    if (!added) return at->second;
    WorkloadGroup group{row.group, section_.first, section_.ranks, members, 1};
    if (row.group == "dp_group" || row.group == "ep_dp_group") {
      group.step = std::max(1, section_.ranks / members);
    } else if (row.group == "ep_group") {
      group.step = tensor_;
    } else if (row.group == "pp_group") {
      group.first = 0;
      group.step = section_.ranks;
    } else if (members == world_) {
      group.first = 0;
    } else if (row.group != "tp_group" && row.group != "ep_tp_group" && row.group != "cp_group") {
      fail(row, fmt::format("comm_group {} of {}", in_quotes(row.group), members),
           "tp_group, cp_group, dp_group, pp_group, ep_group, ep_dp_group, ep_tp_group, or all");
    }
    if (row.group == "cp_group") group.step = tensor_;
    const int tiled = group.first == 0 && group.step == section_.ranks ? world_ : group.ranks;
    const std::int64_t block = std::int64_t{members} * group.step;
    if (members != world_ && (block > tiled || tiled % block != 0)) {
      fail(row, fmt::format("{} of {} ranks, {} apart", in_quotes(row.group), members, group.step),
           fmt::format("groups that tile the {} ranks of the stage", tiled));
    }
    stage_.groups.push_back(group);
    stage_.work.groups.push_back({fmt::format("{} of {}", row.group, members), {}, false});
    return at->second;
  }

  /// A message to or from the stage before or behind; the first and the last stage have one
  /// neighbour only.
  void add_message(const AicbRow& row) {
    const bool to_next = row.additional == "send_next" || row.additional == "recv_next";
    const bool to_previous = row.additional == "send_prev" || row.additional == "recv_prev";
    if (!to_next && !to_previous) {
      fail(row, fmt::format("{} with additional {}", row.type, in_quotes(row.additional)),
           "send_next, send_prev, recv_next or recv_prev");
    }
    const bool at_end = to_next ? section_.first + section_.ranks >= world_ : section_.first == 0;
    if (at_end) return;
    const double bytes = bytes_of(row);
    const bool sends = row.additional.starts_with("send");
    RankTrace::Node& node = next(row, sends ? TraceNodeKind::send : TraceNodeKind::receive);
    node.size = Bytes{bytes};
    node.peer = to_next ? section_.ranks : -section_.ranks;
    ++calls_;
  }

  /// A product of two matrices: ((1024, 4096), (4096, 11008)).
  void add_product(const AicbRow& row) {
    if (const auto ns = whole_number(row.elapsed)) {
      if (*ns > kLongestTraceNode.ps / 1000) {
        fail(row, fmt::format("_elapsed_time {}", row.elapsed), "at most 10 days in ns");
      }
      next(row, TraceNodeKind::compute).duration = {*ns * 1000};
      return;
    }
    const std::vector<std::uint64_t> sides = numbers_in(row.size);
    constexpr std::size_t kLeast = 4;
    if (sides.size() < kLeast || sides.size() % 2 != 0) {
      fail(row, fmt::format("a computation of msg_size {}", in_quotes(row.size)),
           "the shapes of two matrices, or its _elapsed_time in ns");
    }
    const std::size_t half = sides.size() / 2;
    double left = 1, right = 1;
    for (std::size_t i = 0; i < half; ++i) {
      left *= static_cast<double>(sides[i]);
      right *= static_cast<double>(sides[half + i]);
    }
    const auto inner = static_cast<double>(sides[half - 1]);
    const auto width = static_cast<double>(sides.back());
    if (!(left * right < 1e30) || inner == 0) {
      fail(row, fmt::format("a product of {}", in_quotes(row.size)), "smaller matrices than these");
    }
    RankTrace::Node& node = next(row, TraceNodeKind::compute);
    node.flops = Flops{2 * left * width};
    node.size = Bytes{kElementBytes * (left + right + left / inner * width)};
    const FlopsPerSecond peak = std::max(gpu_.peak_bf16, gpu_.peak_fp16);
    const double seconds = std::max(node.flops / peak, node.size / gpu_.hbm_bandwidth).base_units();
    if (!(seconds < to_seconds(kLongestTraceNode).base_units())) {
      fail(row, fmt::format("a product of {}", in_quotes(row.size)), "at most 10 days on this GPU");
    }
    node.duration = to_step_time(Seconds{seconds});
    ++products_;
  }

  void add_aicb_notes(std::size_t epochs) {
    auto& notes = stage_.work.notes;
    notes.push_back(fmt::format("a workload of {} calls, as every rank of a stage makes them{}",
                                calls_,
                                epochs > 1 ? fmt::format(": the last of {} epochs", epochs) : ""));
    const bool computes = std::ranges::any_of(
        stage_.work.nodes, [](const auto& node) { return node.kind == TraceNodeKind::compute; });
    if (!computes) notes.emplace_back("it has no computing: this is the time of its calls alone");
    if (products_ > 0) {
      notes.push_back(fmt::format("{} products without a time take what the peaks of {} allow",
                                  products_, gpu_.name));
    }
    if (free_ > 0) {
      notes.push_back(fmt::format("{} calls of one rank or of no bytes take no time", free_));
    }
  }

  const AicbSection& section_;
  const GpuSpec& gpu_;
  int world_;
  int tensor_ = 1;
  WorkloadStage stage_;
  std::map<std::pair<std::string, int>, std::uint32_t> known_;
  std::uint64_t next_ = 0;
  std::size_t calls_ = 0, free_ = 0, products_ = 0;
};

}  // namespace

bool is_aicb(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  constexpr std::size_t kLook = 4096;
  const std::string_view head = text.substr(first, kLook);
  if (head.starts_with(kAicbHeading)) return true;
  return head.starts_with('[') && head.find("rank") != std::string_view::npos &&
         text.find("\n" + std::string(kAicbHeading)) != std::string_view::npos;
}

std::vector<RankTrace> read_aicb(const std::string& file, std::string_view text,
                                 const GpuSpec& gpu) {
  const std::vector<AicbSection> sections = sections_of(file, text);
  int world = 0;
  for (const AicbSection& section : sections) {
    if (section.first != world || section.ranks != sections.front().ranks) {
      fail_trace(section.place, fmt::format("{} ranks from {} on", section.ranks, section.first),
                 fmt::format("stages of equally many ranks, one behind the other: {} from {} on",
                             sections.front().ranks, world));
    }
    world += section.ranks;
  }
  if (world == 0) fail_trace(file, "no ranks", "a line that says which: [rank0 ~ rank127]");
  std::vector<WorkloadStage> stages;
  stages.reserve(sections.size());
  for (const AicbSection& section : sections) {
    stages.push_back(AicbStage(file, section, gpu, world).read());
  }
  return ranks_of_stages(stages);
}

}  // namespace lockstep
