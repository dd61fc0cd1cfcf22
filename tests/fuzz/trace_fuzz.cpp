// Fuzz target: whatever bytes a trace has, each reader gives one or an InputError of one line; a
// trace that was read is replayed to its end, written and read back. An execution trace of PyTorch
// and the Kineto trace beside it are one input, with a zero between them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/trace/formats/read_trace.hpp"
#include "sim/trace/formats/write_chakra.hpp"
#include "sim/trace/pytorch/merge_pytorch.hpp"
#include "sim/trace/replay_trace.hpp"

namespace {

using namespace lockstep;

void require(bool holds) {
  if (!holds) std::abort();
}

const Cluster& cluster() {
  static const Cluster kCluster = [] {
    const PresetStore presets;
    const JsonCursor root = JsonCursor::parse(
        "fuzz", R"({"cluster": {"node": "dgx_h100", "nodes": 2, "fabric": "ideal"}})");
    return read_cluster(root.at("cluster"), presets);
  }();
  return kCluster;
}

void use(std::vector<RankTrace> ranks) {
  constexpr std::size_t kMostNodes = 2000;
  std::size_t nodes = 0;
  for (const RankTrace& rank : ranks) {
    nodes += rank.nodes.size();
    // Copies of a recorded rank fill the job.
    int job = std::max(rank.world, rank.world > 0 ? rank.rank + 1 : 0);
    for (const RankTrace::Group& group : rank.groups) {
      if (!group.ranks.empty()) job = std::max(job, group.ranks.back() + 1);
    }
    if (rank.world > 0 && job > cluster().gpus()) return;
  }
  if (nodes > kMostNodes || ranks.size() > static_cast<std::size_t>(cluster().gpus())) return;
  const Trace trace = join(std::move(ranks));
  const TraceReplay replay = replay_trace(trace, match(trace), cluster());
  require(replay.end >= replay.longest_path);
  for (const TraceRankTimes& times : replay.ranks) require(times.total() == replay.end);
  const TraceReadOptions options{.gpu = cluster().node.gpu,
                                 .groups = read_trace_groups("own", write_trace_groups(trace))};
  std::vector<RankTrace> again;
  for (int r = 0; r < trace.ranks; ++r) {
    again.push_back(read_chakra("own", r, write_chakra(trace, r), options));
  }
  require(join(std::move(again)).size() == trace.size());
}

void use_pair(std::string_view text) {
  const std::size_t zero = text.find('\0');
  const ExecutionTrace operators = read_execution_trace("et", text.substr(0, zero));
  const std::string_view rest = zero == text.npos ? std::string_view() : text.substr(zero + 1);
  std::vector<RankTrace> ranks;
  ranks.push_back(merge_pytorch(operators, read_kineto_recording("kineto", rest, true), 0));
  use(std::move(ranks));
}

}  // namespace

// A first byte below the number of formats names one, else the text has to tell.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  TraceFormat format = recognise_trace(text);
  if (size > 0 && data[0] < trace_formats().size()) {
    format = trace_formats()[data[0]].format;
    text.remove_prefix(1);
  }
  try {
    if (format == TraceFormat::pytorch) {
      use_pair(text);
      return 0;
    }
    use(read_trace_file("fuzz.0", text, format, true,
                        {.gpu = cluster().node.gpu, .groups = {{"1", {0}}}}));
  } catch (const InputError& error) {
    const std::string_view line = error.what();
    require(!line.empty() && line.find('\n') == std::string_view::npos);
  }
  return 0;
}
