#include "sim/trace/pytorch/kineto_call.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/letter_case.hpp"

namespace lockstep {
namespace {

struct OpWord {
  std::string_view word;
  CollectiveOp op;
  bool of_output;  ///< its size is that of what comes out
};
/// By the first word that the collective's name has, without '_'.
constexpr std::array kOpWords{OpWord{"allreduce", CollectiveOp::all_reduce, false},
                              OpWord{"allgather", CollectiveOp::all_gather, true},
                              OpWord{"reducescatter", CollectiveOp::reduce_scatter, false},
                              OpWord{"alltoall", CollectiveOp::all_to_all, false},
                              OpWord{"broadcast", CollectiveOp::broadcast, false},
                              OpWord{"barrier", CollectiveOp::all_reduce, false},
                              OpWord{"reduce", CollectiveOp::reduce, false},
                              OpWord{"gather", CollectiveOp::reduce, true},
                              OpWord{"scatter", CollectiveOp::broadcast, false}};

struct TypeWidth {
  std::string_view name;
  double bytes;
};
/// Names of c10::ScalarType, and those that C++ gives the same types.
constexpr std::array kTypeWidths{TypeWidth{"float", 4},
                                 TypeWidth{"half", 2},
                                 TypeWidth{"bfloat16", 2},
                                 TypeWidth{"double", 8},
                                 TypeWidth{"long", 8},
                                 TypeWidth{"int", 4},
                                 TypeWidth{"short", 2},
                                 TypeWidth{"byte", 1},
                                 TypeWidth{"char", 1},
                                 TypeWidth{"bool", 1},
                                 TypeWidth{"long int", 8},
                                 TypeWidth{"unsigned char", 1},
                                 TypeWidth{"signed char", 1},
                                 TypeWidth{"short int", 2},
                                 TypeWidth{"float8_e4m3fn", 1},
                                 TypeWidth{"float8_e5m2", 1},
                                 TypeWidth{"float8_e4m3fnuz", 1},
                                 TypeWidth{"float8_e5m2fnuz", 1},
                                 TypeWidth{"float8_e8m0fnu", 1},
                                 TypeWidth{"float4_e2m1fn_x2", 1},
                                 TypeWidth{"uint16", 2},
                                 TypeWidth{"uint32", 4},
                                 TypeWidth{"uint64", 8},
                                 TypeWidth{"qint8", 1},
                                 TypeWidth{"quint8", 1},
                                 TypeWidth{"complexhalf", 4},
                                 TypeWidth{"complexfloat", 8},
                                 TypeWidth{"complexdouble", 16},
                                 TypeWidth{"complex<float>", 8},
                                 TypeWidth{"complex<double>", 16}};

/// Of communication: what names of kernels have in them, in small letters.
constexpr std::array<std::string_view, 13> kExchangeWords{"nccl",
                                                          "cross_device_reduce",
                                                          "one_shot_all_reduce",
                                                          "two_shot_all_reduce",
                                                          "oneshotallreduce",
                                                          "twoshotallreduce",
                                                          "multimem_all_reduce",
                                                          "allreduce_fusion",
                                                          "deep_ep::",
                                                          "nvshmem",
                                                          "mscclpp",
                                                          "mscclkernel",
                                                          "userbuffers_"};

class NcclCallReader {
 public:
  NcclCallReader(const std::string& file, std::string_view kernel, const NcclCallText& text)
      : file_(file), kernel_(kernel), text_(text) {}

  NcclCall read() {
    std::string op = lowered(text_.collective);
    std::erase(op, '_');
    if (op.empty()) {
      fail("without its collective's name",
           "NCCL kernels with \"Collective name\" in their args (PyTorch 2.2 and later)");
    }
    if (op == "send" || op == "recv") return read_message(op == "send");
    const auto* const row = std::ranges::find_if(
        kOpWords, [&](const OpWord& word) { return op.find(word.word) != std::string::npos; });
    if (row == kOpWords.end()) {
      fail("of the collective " + in_quotes(op),
           "allreduce, allgather, reduce_scatter, all_to_all, broadcast, barrier, reduce, gather, "
           "scatter, send, recv");
    }
    NcclCall out{
        .kind = TraceNodeKind::collective, .op = row->op, .size = {}, .peer = 0, .group = {}};
    out.size = size(row->of_output);
    out.group = group();
    return out;
  }

 private:
  [[noreturn]] void fail(std::string_view found, std::string allowed) const {
    fail_trace(file_, fmt::format("{} {}", in_quotes(kernel_), found), std::move(allowed));
  }

  NcclCall read_message(bool sends) const {
    const std::optional<double> peer = sends ? text_.destination : text_.source;
    if (!peer || !(*peer >= 0) || *peer >= kMostTraceRanks) {
      fail("without its other rank", R"("Src Rank" and "Dst Rank" in its args)");
    }
    return {.kind = sends ? TraceNodeKind::send : TraceNodeKind::receive,
            .op = {},
            .size = size(!sends),
            .peer = static_cast<int>(*peer),
            .group = {}};
  }

  [[nodiscard]] Bytes size(bool output) const {
    const std::optional<double> elements = output ? text_.out_elements : text_.in_elements;
    constexpr double kMostElements = 1e14;
    if (!elements || !(*elements >= 0) || *elements > kMostElements) {
      fail("without its size", R"("In msg nelems" and "Out msg nelems" in its args)");
    }
    const Bytes width = torch_element_size(text_.dtype);
    if (width == Bytes{}) {
      fail("of dtype " + in_quotes(lowered(text_.dtype)), "a type of PyTorch, such as BFloat16");
    }
    return *elements * width;
  }

  [[nodiscard]] RankTrace::Group group() const {
    RankTrace::Group out{text_.group, listed_ranks(), false};
    const bool cut = text_.ranks.find("...") != std::string::npos;
    const std::optional<double> size = text_.group_size;
    if (!size || !(*size >= 1) || *size > kMostTraceRanks ||
        (out.ranks.empty() && !cut && !text_.ranks.empty() && text_.ranks != "[]")) {
      fail("without its ranks", R"("Process Group Ranks" and "Group size" in its args)");
    }
    const auto members = static_cast<std::size_t>(*size);
    if (cut && out.ranks.size() >= 2) go_on(out.ranks, out.ranks[1] - out.ranks[0], members);
    const double start = text_.rank_start.value_or(-1), stride = text_.rank_stride.value_or(0);
    if (out.ranks.empty() && start >= 0 && start < kMostTraceRanks && stride >= 1 &&
        stride < kMostTraceRanks) {
      out.ranks.push_back(static_cast<int>(start));
      go_on(out.ranks, static_cast<int>(stride), members);
    }
    out.all = out.ranks.empty();
    std::ranges::sort(out.ranks);
    const auto twice = std::ranges::unique(out.ranks);
    out.ranks.erase(twice.begin(), twice.end());
    return out;
  }

  [[nodiscard]] std::vector<int> listed_ranks() const {
    std::vector<int> out;
    // What stands behind the dots, if anything, is the last rank alone.
    const std::string_view list = std::string_view(text_.ranks).substr(0, text_.ranks.find("..."));
    const char* at = list.data();
    const char* const end = at + list.size();
    while (at != end) {
      int rank = 0;
      const auto [next, error] = std::from_chars(at, end, rank);
      if (error == std::errc{}) out.push_back(rank);
      at = error == std::errc{} ? next : at + 1;
    }
    return out;
  }

  /// A long list that was cut goes on in steps of the same size.
  void go_on(std::vector<int>& ranks, int step, std::size_t members) const {
    if (ranks.size() >= members) return;
    const std::int64_t last = ranks[0] + static_cast<std::int64_t>(members) * step;
    if (step < 1 || last > kMostTraceRanks) fail("of ranks out of order", "ascending ranks");
    while (ranks.size() < members) ranks.push_back(ranks.back() + step);
  }

  const std::string& file_;
  std::string_view kernel_;
  const NcclCallText& text_;
};

}  // namespace

bool is_communication_kernel(std::string_view name) {
  const std::string text = lowered(name);
  return std::ranges::any_of(
      kExchangeWords, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

Bytes torch_element_size(std::string_view dtype) {
  std::string name = lowered(dtype);
  if (name.starts_with("c10::")) name.erase(0, 5);
  const auto* const row = std::ranges::find(kTypeWidths, name, &TypeWidth::name);
  return row == kTypeWidths.end() ? Bytes{} : Bytes{row->bytes};
}

NcclCall read_nccl_call(const std::string& file, std::string_view kernel,
                        const NcclCallText& text) {
  return NcclCallReader(file, kernel, text).read();
}

void add_call(const std::string& kernel, const NcclCallText& text, RankTrace& trace) {
  RankTrace::Node& node = trace.nodes.back();
  std::string missing;
  if (text.collective.empty()) {
    missing = in_quotes(kernel) + " without its collective's name";
  } else {
    try {
      return set_call(node, read_nccl_call(trace.file, kernel, text), trace);
    } catch (const InputError& error) {
      missing = error.problem().found;
    }
  }
  node.kind = TraceNodeKind::exchange;
  if (trace.unknown.calls++ == 0) trace.unknown.first = missing;
  trace.unknown.time += node.duration;
}

void set_call(RankTrace::Node& node, NcclCall call, RankTrace& trace) {
  node.kind = call.kind;
  node.op = call.op;
  node.size = call.size;
  node.peer = call.peer;
  if (node.kind == TraceNodeKind::collective) node.group = trace.group(std::move(call.group));
}

}  // namespace lockstep
