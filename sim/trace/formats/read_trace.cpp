#include "sim/trace/formats/read_trace.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <ranges>

#include "models/base/letter_case.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/formats/read_aicb.hpp"
#include "sim/trace/formats/read_kineto.hpp"
#include "sim/trace/formats/read_simai.hpp"
#include "sim/trace/pytorch/merge_pytorch.hpp"

namespace lockstep {
namespace {

constexpr std::array kTraceFormats{
    TraceFormatInfo{TraceFormat::chakra, "chakra", "Chakra execution traces, protobuf, one a rank"},
    TraceFormatInfo{TraceFormat::chakra_json, "chakra-json", "the same in protobuf's JSON mapping"},
    TraceFormatInfo{TraceFormat::kineto, "kineto",
                    "traces of the PyTorch profiler (Chrome trace), one a rank"},
    TraceFormatInfo{TraceFormat::goal, "goal", "a schedule of LogGOPSim and ATLAHS, all ranks"},
    TraceFormatInfo{TraceFormat::pytorch, "pytorch",
                    "execution traces of PyTorch beside Kineto traces, one of each a rank"},
    TraceFormatInfo{TraceFormat::simai, "simai",
                    "a workload of SimAI, or of ASTRA-sim before Chakra: layers, as text"},
    TraceFormatInfo{TraceFormat::aicb, "aicb", "a workload of AICB: calls, as a table"},
    TraceFormatInfo{TraceFormat::nsys, "nsys", "an SQLite export of Nsight Systems, all its GPUs"},
    TraceFormatInfo{TraceFormat::goal_binary, "goal-bin",
                    "the same schedule as LogGOPSim's txt2bin packs it"}};

int rank_of(const std::string& file, bool alone) {
  if (const auto rank = rank_in_name(file)) return *rank;
  if (alone) return 0;
  fail_trace(file, "no rank in the file's name", "names such as trace.0.et");
}

}  // namespace

std::span<const TraceFormatInfo> trace_formats() { return kTraceFormats; }

bool is_tar(std::string_view bytes) {
  constexpr std::size_t kMagic = 257;
  return bytes.size() > kMagic && bytes.substr(kMagic).starts_with("ustar");
}

bool is_database(std::string_view bytes) {
  constexpr std::string_view kMagic{"SQLite format 3\0", 16};
  return bytes.starts_with(kMagic);
}

TraceFormat recognise_trace(std::string_view text) {
  constexpr std::string_view kByteOrder = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrder)) text.remove_prefix(kByteOrder.size());
  if (is_database(text)) return TraceFormat::nsys;
  if (is_goal_binary(text)) return TraceFormat::goal_binary;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return TraceFormat::chakra;
  if (is_simai(text)) return TraceFormat::simai;
  if (is_aicb(text)) return TraceFormat::aicb;
  const std::string_view begin = text.substr(first);
  if (begin.front() == '{' || begin.front() == '[') {
    // A short length of GlobalMetadata may look like a bracket; its next byte is no text then.
    constexpr std::size_t kLook = 16;
    const std::string_view look = begin.substr(0, kLook);
    const bool is_text = std::ranges::all_of(look, [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte >= ' ' || std::isspace(byte) != 0;
    });
    if (!is_text) return TraceFormat::chakra;
    if (is_execution_trace(begin)) return TraceFormat::pytorch;
    // An object with a list of events, or that list alone.
    const std::string_view mark = begin.front() == '[' ? "\"ph\"" : "\"traceEvents\"";
    return text.find(mark) != std::string_view::npos ? TraceFormat::kineto
                                                     : TraceFormat::chakra_json;
  }
  for (const std::string_view word : {"num_ranks", "rank ", "//", "/*"}) {
    if (begin.starts_with(word)) return TraceFormat::goal;
  }
  return TraceFormat::chakra;
}

std::optional<int> rank_in_name(std::string_view file) {
  std::string_view name = file.substr(file.find_last_of('/') + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (int ending = 0; ending < 4; ++ending) {  // ".pt.trace.json.gz"
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || std::ranges::all_of(name.substr(dot + 1), is_digit)) break;
    name = name.substr(0, dot);
  }
  const auto last = std::ranges::find_if(std::views::reverse(name), is_digit);
  const auto before = std::find_if_not(last, name.rend(), is_digit);
  const char* const begin = name.data() + (name.rend() - before);
  const char* const end = name.data() + (name.rend() - last);
  int rank = 0;
  const auto [stop, error] = std::from_chars(begin, end, rank);
  if (begin == end || error != std::errc{} || rank >= kMostTraceRanks) return std::nullopt;
  return rank;
}

std::optional<int> rank_word_in_name(std::string_view file) {
  const std::string name = lowered(file.substr(file.find_last_of('/') + 1));
  for (const std::string_view word : {"rank", "worker"}) {
    std::size_t at = name.find(word);
    if (at == std::string::npos) continue;
    at += word.size();
    if (at < name.size() && (name[at] == '-' || name[at] == '_' || name[at] == '.')) ++at;
    int rank = 0;
    const auto [stop, error] = std::from_chars(name.data() + at, name.data() + name.size(), rank);
    if (error == std::errc{} && rank >= 0 && rank < kMostTraceRanks) return rank;
  }
  return std::nullopt;
}

std::optional<int> kineto_rank_in_name(std::string_view file, bool alone) {
  if (const auto rank = rank_word_in_name(file)) return rank;
  return alone ? 0 : rank_in_name(file);
}

std::vector<RankTrace> read_trace_file(const std::string& file, std::string_view text,
                                       TraceFormat format, bool alone,
                                       const TraceReadOptions& options) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    fail_trace(file, "an empty file",
               "a trace: a profiler's, Chakra's, a schedule in GOAL, a workload of SimAI or AICB");
  }
  std::vector<RankTrace> out;
  switch (format) {
    case TraceFormat::goal:
      return read_goal(file, text);
    case TraceFormat::goal_binary:
      return read_goal_binary(file, text);
    case TraceFormat::simai:
      return read_simai(file, text, options.ranks);
    case TraceFormat::aicb:
      return read_aicb(file, text, options.gpu);
    case TraceFormat::kineto:
      out.push_back(read_kineto(file, kineto_rank_in_name(file, alone), text));
      break;
    case TraceFormat::pytorch:
      fail_without_kineto(file);
    case TraceFormat::nsys:
      fail_trace(file, "a database", "a trace that is a text");
    case TraceFormat::chakra_json:
      out.push_back(read_chakra_json(file, rank_of(file, alone), text, options));
      break;
    case TraceFormat::chakra:
      out.push_back(read_chakra(file, rank_of(file, alone), text, options));
      break;
  }
  return out;
}

std::vector<PytorchPair> pair_pytorch(std::span<const ExecutionTrace> operators,
                                      std::span<const KinetoRecording> kineto) {
  const bool one_of_each = operators.size() == 1 && kineto.size() == 1;
  std::vector<PytorchPair> out;
  for (std::size_t k = 0; k < kineto.size(); ++k) {
    const auto named = one_of_each ? 0 : kineto_rank_in_name(kineto[k].file, kineto.size() == 1);
    out.push_back({kineto_rank(kineto[k], named), k, {}});
  }
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const std::string& file = operators[i].file;
    const int rank = one_of_each ? out[0].rank : rank_of(file, false);
    const auto at = std::ranges::find(out, rank, &PytorchPair::rank);
    if (at == out.end()) fail_without_kineto(file);
    if (at->operators) {
      fail_trace(
          file, fmt::format("rank {}", rank),
          fmt::format("each rank once; {} is of the same rank", operators[*at->operators].file));
    }
    at->operators = i;
  }
  return out;
}

}  // namespace lockstep
