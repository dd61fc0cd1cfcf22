#include "sim/measured/trace_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <tbb/parallel_for.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/mapped_file.hpp"
#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "models/base/usage_error.hpp"
#include "sim/measured/nsys_ranks.hpp"
#include "sim/measured/nsys_recording.hpp"
#include "sim/measured/sqlite_report.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "sim/trace/copy_rank.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/formats/read_kineto.hpp"
#include "sim/trace/formats/read_trace.hpp"
#include "sim/trace/pytorch/aligned_starts.hpp"
#include "sim/trace/pytorch/merge_pytorch.hpp"
#include "sim/trace/pytorch/profiler_steps.hpp"

namespace lockstep {
namespace {

/// What `lockstep run --chakra` and ASTRA-sim's examples call the process groups beside traces.
constexpr std::string_view kGroupsFile = "comm_groups.json";

std::vector<std::string> files_of_folder(const std::string& folder) {
  std::vector<std::string> protobuf, json, databases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().string();
    if (!entry.is_regular_file() || entry.path().filename() == kGroupsFile) continue;
    if (name.ends_with(".et")) protobuf.push_back(name);
    if (name.ends_with(".json") || name.ends_with(".json.gz")) json.push_back(name);
    if (name.ends_with(".sqlite")) databases.push_back(name);
  }
  std::vector<std::string>& out = !protobuf.empty() ? protobuf : !json.empty() ? json : databases;
  if (out.empty()) {
    throw InputError({.file = folder,
                      .pointer = {},
                      .found = "a folder without traces",
                      .allowed = "files that end in .et, .json, .json.gz or .sqlite, one a rank",
                      .nearest = {}});
  }
  std::ranges::sort(out);
  return std::move(out);
}

std::optional<TraceFormat> asked_format(const std::optional<std::string>& from) {
  if (!from) return std::nullopt;
  std::vector<std::string> names;
  for (const TraceFormatInfo& info : trace_formats()) {
    if (info.name == *from) return info.format;
    names.emplace_back(info.name);
  }
  throw UsageError(fmt::format("--from: found {}; allowed: {}{}", in_quotes(*from), listed(names),
                               did_you_mean(*from, names)));
}

/// What one file holds: ranks, or half of one; an export of Nsight's with several GPUs.
struct TraceFile {
  std::vector<RankTrace> ranks;
  std::optional<ExecutionTrace> operators;
  std::vector<KinetoRecording> recordings;
  std::optional<NsysExport> exported;
};

/// Of several mistakes the first one's, whoever was faster.
template <class Function>
void for_each_index(std::size_t size, const Function& function) {
  std::vector<std::exception_ptr> failed(size);
  tbb::parallel_for(std::size_t{0}, size, [&](std::size_t i) {
    try {
      function(i);
    } catch (...) {
      failed[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failed) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// Execution traces of PyTorch wait for the Kineto trace of their rank: then these are kept too.
bool has_execution_traces(const std::vector<std::string>& files) {
  constexpr std::size_t kHead = 512;
  return std::ranges::any_of(
      files, [](const std::string& file) { return is_execution_trace(read_head(file, kHead)); });
}

/// A schedule of txt2bin, which may be larger than memory.
bool is_unpacked_goal(const std::string& file) {
  constexpr std::size_t kCookieBytes = 8;
  return is_goal_binary(read_head(file, kCookieBytes)) && is_goal_binary(MappedFile(file).bytes());
}

/// The trace of a schedule in GOAL that is a plain file, read where it lies; nothing for any other
/// file, and where read_goal() or join() have something to say.
std::optional<Trace> schedule_where_it_lies(const std::string& file,
                                            std::optional<TraceFormat> asked) {
  constexpr std::size_t kHead = 4096;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return std::nullopt;
  const auto size = std::filesystem::file_size(file, ignored);
  if (ignored || size == 0) return std::nullopt;
  const std::string head = read_head(file, kHead);
  const bool packed = is_goal_binary(head);
  if (packed ? asked && *asked != TraceFormat::goal_binary
             : size > kTraceFileLimit || recognise_trace(head) != TraceFormat::goal ||
                   (asked && *asked != TraceFormat::goal)) {
    return std::nullopt;
  }
  const MappedFile mapped(file);
  const auto read_to = [&](std::size_t bytes) { mapped.forget(bytes); };
  return packed ? read_goal_binary_in_order(file, mapped.bytes(), read_to)
                : read_goal_in_order(file, mapped.bytes(), read_to);
}

StepRequest wanted_step(const std::optional<std::string>& asked) {
  if (!asked) return {};
  const std::string& text = *asked;
  if (text == "all") return {.all = true, .number = {}};
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) {
    throw UsageError(fmt::format("--step: found {}; allowed: the number of a ProfilerStep, or all",
                                 in_quotes(text)));
  }
  return {.all = false, .number = number};
}

/// Whether its operators say which of an execution trace they are.
bool has_operator_numbers(const KinetoRecording& recording) {
  return std::ranges::any_of(recording.operators, [](const KinetoRecording::Operator& own) {
    return own.record_function != 0;
  });
}

/// The groups that the file holds, or that lie beside the traces.
std::map<std::string, std::vector<int>> trace_groups_of(const std::optional<std::string>& asked,
                                                        const std::vector<std::string>& files) {
  std::string file = asked.value_or("");
  if (file.empty()) {
    const auto beside = std::filesystem::path(files.front()).parent_path() / kGroupsFile;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(beside, ignored)) return {};
    file = beside.string();
  }
  return read_trace_groups(file, read_text_file(file));
}

/// All exports of Nsight Systems together: which ranks their GPUs are. Returns a note on it.
std::string place_exports(std::vector<TraceFile>& files) {
  std::vector<NsysExport> exports;
  std::vector<TraceFile*> from;
  for (TraceFile& file : files) {
    if (!file.exported) continue;
    exports.push_back(std::move(*file.exported));
    from.push_back(&file);
  }
  std::string note = place_nsys_ranks(exports);
  for (std::size_t i = 0; i < exports.size(); ++i) {
    for (NsysGpu& gpu : exports[i].gpus) {
      from[i]->recordings.push_back(std::move(gpu.recording));
    }
  }
  return note;
}

std::vector<RankTrace> merge_files(std::vector<TraceFile>& files, const StepRequest& step,
                                   std::vector<std::string>& notes) {
  std::vector<ExecutionTrace> operators;
  std::vector<KinetoRecording> kineto;
  std::vector<RankTrace> out;
  const std::string rank_note = place_exports(files);
  for (TraceFile& file : files) {
    if (file.operators) operators.push_back(std::move(*file.operators));
    for (KinetoRecording& recording : file.recordings) kineto.push_back(std::move(recording));
    for (RankTrace& rank : file.ranks) out.push_back(std::move(rank));
    file = {};
  }
  std::vector<PytorchPair> pairs = pair_pytorch(operators, kineto);
  std::string unlinked;
  for (PytorchPair& pair : pairs) {
    if (!pair.operators || has_operator_numbers(kineto[pair.kineto])) continue;
    forget_host(kineto[pair.kineto]);
    pair.operators.reset();
    unlinked =
        "the Kineto traces have no \"Record function id\" (PyTorch before 2.1): nothing links "
        "their kernels to the execution traces, which are left out";
  }
  notes.push_back(cut_to_step(kineto, step));
  notes.push_back(rank_note);
  if (!unlinked.empty()) notes.push_back(unlinked);
  const bool all_alone = std::ranges::none_of(
      pairs, [](const PytorchPair& pair) { return pair.operators.has_value(); });
  if (all_alone) notes.push_back(align_starts(kineto));
  std::erase(notes, std::string());
  const std::size_t first = out.size();
  out.resize(first + pairs.size());
  for_each_index(pairs.size(), [&](std::size_t i) {
    const auto& [rank, k, o] = pairs[i];
    out[first + i] =
        o ? merge_pytorch(operators[*o], kineto[k], rank) : trace_of_kineto(kineto[k], rank);
    kineto[k] = {};
  });
  return out;
}

void keep_calls(std::vector<RankTrace>& ranks) {
  bool any = false;
  for (RankTrace& rank : ranks) any = keep_recorded_calls(rank) || any;
  if (any) return;
  throw UsageError(
      "--as-recorded: found no call that is told with its recorded length; allowed: recordings of "
      "profilers, whose kernels of communication have one and say what they call");
}

}  // namespace

std::vector<std::string> trace_files(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(word, ignored)) {
      out.push_back(word);
      continue;
    }
    const std::vector<std::string> files = files_of_folder(word);
    out.insert(out.end(), files.begin(), files.end());
  }
  return out;
}

Trace read_trace(const TraceAsked& wanted, const GpuSpec& gpu, int ranks) {
  const std::vector<std::string> files = trace_files(wanted.words);
  const std::optional<TraceFormat> asked = asked_format(wanted.from);
  const StepRequest step = wanted_step(wanted.step);
  const TraceReadOptions chakra{
      .gpu = gpu, .groups = trace_groups_of(wanted.groups, files), .ranks = ranks};
  if (files.size() == 1 && !wanted.step && !wanted.as_recorded) {
    if (auto schedule = schedule_where_it_lies(files.front(), asked)) return std::move(*schedule);
  }
  const bool merges = asked ? *asked == TraceFormat::pytorch : has_execution_traces(files);
  std::vector<TraceFile> read(files.size());
  for_each_index(files.size(), [&](std::size_t i) {
    if (asked ? *asked == TraceFormat::nsys : is_sqlite(files[i])) {
      read[i].exported = read_nsys_export(files[i], NsysHost::none);
      return;
    }
    if ((!asked || *asked == TraceFormat::goal_binary) && is_unpacked_goal(files[i])) {
      read[i].ranks = read_goal_binary(files[i], MappedFile(files[i]).bytes());
      return;
    }
    const std::string text = read_maybe_gzip(files[i], kTraceFileLimit);
    if (is_tar(text)) {
      throw InputError({.file = files[i],
                        .pointer = {},
                        .found = "a tar archive",
                        .allowed = "the files that are in it: unpack it first (tar xf)",
                        .nearest = {}});
    }
    const bool own = !asked || *asked == TraceFormat::pytorch;
    const TraceFormat format = own ? recognise_trace(text) : *asked;
    if (merges && format == TraceFormat::pytorch) {
      read[i].operators = read_execution_trace(files[i], text);
    } else if (format == TraceFormat::kineto) {
      read[i].recordings.push_back(read_kineto_recording(files[i], text, merges));
    } else {
      read[i].ranks = read_trace_file(files[i], text, format, files.size() == 1, chakra);
    }
  });
  std::vector<std::string> notes;
  std::vector<RankTrace> read_ranks = merge_files(read, step, notes);
  if (wanted.as_recorded) keep_calls(read_ranks);
  Trace trace = join(std::move(read_ranks));
  trace.notes.insert(trace.notes.end(), notes.begin(), notes.end());
  if (notes.empty() && wanted.step) {
    throw UsageError("--step: only recordings of profilers have marked steps");
  }
  return trace;
}

std::vector<GoalRank> read_goal_schedule(const TraceAsked& wanted) {
  const std::string& file = wanted.words.front();
  const auto is_goal = [](TraceFormat format) {
    return format == TraceFormat::goal || format == TraceFormat::goal_binary;
  };
  const std::optional<TraceFormat> asked = asked_format(wanted.from);
  if (asked && !is_goal(*asked)) {
    throw UsageError(fmt::format("--from: found {}; allowed beside --loggops: goal, goal-bin",
                                 in_quotes(*wanted.from)));
  }
  if (wanted.words.size() > 1) {
    throw UsageError(fmt::format("--loggops: found {}; allowed: one, a GOAL schedule",
                                 counted(static_cast<double>(wanted.words.size()), "file")));
  }
  if (asked != TraceFormat::goal && is_unpacked_goal(file)) {
    return read_goal_binary_ranks(file, MappedFile(file).bytes());
  }
  const std::string text = read_maybe_gzip(file, kTraceFileLimit);
  const TraceFormat format = asked.value_or(recognise_trace(text));
  if (format == TraceFormat::goal_binary) return read_goal_binary_ranks(file, text);
  if (format == TraceFormat::goal) return read_goal_ranks(file, text);
  const bool empty = text.find_first_not_of(" \t\r\n") == std::string::npos;
  throw InputError(
      {.file = file,
       .pointer = {},
       .found = empty ? std::string("an empty file")
                      : fmt::format("a trace of the format {}",
                                    trace_formats()[static_cast<std::size_t>(format)].name),
       .allowed = "a GOAL schedule, which --loggops is for",
       .nearest = {}});
}

TraceCluster::TraceCluster(const TraceClusterAsked& asked, const PresetStore& presets,
                           const std::vector<std::string>& changes)
    : presets_(presets) {
  for (const auto& [value, key] : {std::pair{&asked.node, "cluster.node"},
                                   {&asked.nodes, "cluster.nodes"},
                                   {&asked.fabric, "cluster.fabric"}}) {
    if (*value) sets_.push_back(fmt::format("{}={}", key, **value));
  }
  sets_.insert(sets_.end(), changes.begin(), changes.end());
  file_ = "command line";
  text_ = R"({"cluster": {}})";
  if (asked.cluster) {
    file_ = scenario_path(*asked.cluster, presets);
    text_ = read_text_file(file_);
  } else if (!asked.node && std::ranges::none_of(changes, [](const std::string& change) {
               return change.starts_with("cluster.node=");
             })) {
    throw UsageError("lockstep: no cluster to replay on; give --node NAME or --cluster FILE");
  }
  const JsonCursor root = JsonCursor::parse(file_, text_, JsonStyle::plain, sets_);
  const ClusterDraft draft =
      root.read_whole([&] { return read_cluster_draft(root.at("cluster"), presets); });
  gpu_ = draft.node.gpu;
  gpus_per_node_ = draft.node.gpus;
  nodes_ = draft.nodes.value_or(0);
  has_nodes_ = draft.nodes.has_value();
}

JsonCursor TraceCluster::written(int ranks) const {
  std::vector<std::string> sets = sets_;
  if (!has_nodes_) sets.push_back(fmt::format("cluster.nodes={}", nodes_for(ranks)));
  return JsonCursor::parse(file_, text_, JsonStyle::plain, sets);
}

Cluster TraceCluster::cluster(int ranks) const {
  const JsonCursor root = written(ranks);
  Cluster cluster = read_cluster(root.at("cluster"), presets_);
  if (cluster.gpus() < ranks) {
    root.at("cluster").at("nodes").fail(
        fmt::format("at least {}, since the trace has {} ranks", nodes_for(ranks), ranks));
  }
  return cluster;
}

}  // namespace lockstep
