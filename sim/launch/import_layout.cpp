// "parallelism" of an imported job, out of what its keys say and of the completed layout.
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/launch/import_parts.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Says the layout as a scenario does.
class ImportedLayout {
 public:
  explicit ImportedLayout(const ImportedJob& imported)
      : job_(imported.job),
        layout_(imported.layout),
        kind_(imported.kind),
        layers_(imported.layers),
        file_(imported.file) {}

  [[nodiscard]] Json json() const {
    Json out{{"tensor", layout_.tensor}};
    if (layout_.context > 1) {
      out["context"] = layout_.context;
      if (!job_.context_exchange.empty()) out["context_exchange"] = job_.context_exchange;
    }
    const bool experts = layout_.expert > 1 || job_.expert_tensor;
    if (experts) {
      out["expert"] = layout_.expert;
      out["expert_tensor"] = layout_.expert_tensor;
      if (!job_.expert_dispatch.empty() && layout_.expert > 1) {
        out["expert_dispatch"] = job_.expert_dispatch;
      }
      if (job_.expert_overlap && layout_.expert > 1) out["expert_overlap"] = *job_.expert_overlap;
    }
    out["pipeline"] = layout_.pipeline;
    out["data"] = layout_.data;
    out["virtual_stages"] = layout_.virtual_stages;
    const bool always = kind_ == LaunchKind::torchtitan || kind_ == LaunchKind::maxtext;
    out["sequence"] = layout_.tensor > 1 && job_.sequence.value_or(always);
    if (!job_.tensor_overlap.empty() && out["sequence"] == true) {
      out["tensor_overlap"] = job_.tensor_overlap;
    }
    out["sharding"] = layout_.sharding;
    if (layout_.shard_group > 0) out["shard_group"] = layout_.shard_group;
    if (job_.reshard && layout_.sharding == "zero3") out["reshard"] = *job_.reshard;
    if (!job_.schedule.empty() && layout_.pipeline > 1) out["schedule"] = job_.schedule;
    stages(out);
    return out;
  }

 private:
  void stages(Json& out) const {
    if (layout_.pipeline == 1) return;
    if (!job_.stage_layers.empty()) {
      out["layers_per_stage"] = job_.stage_layers;
    } else if ((job_.first_layers || job_.last_layers) && layers_ > 0) {
      out["layers_per_stage"] = uneven_stages();
    } else {
      if (!job_.embedding.empty()) out["embedding"] = job_.embedding;
      if (!job_.output.empty()) out["output"] = job_.output;
    }
  }

  /// The first and the last rank have layers of their own number, each in equal chunks; the others
  /// share what is left.
  [[nodiscard]] std::vector<int> uneven_stages() const {
    const int ranks = layout_.pipeline, chunks = layout_.virtual_stages;
    const int ends = (job_.first_layers ? 1 : 0) + (job_.last_layers ? 1 : 0);
    const int rest = layers_ - job_.first_layers.value_or(0) - job_.last_layers.value_or(0);
    const int between = ranks - ends;
    const bool fits = rest >= 0 && (between == 0 ? rest == 0 : rest % (between * chunks) == 0) &&
                      job_.first_layers.value_or(0) % chunks == 0 &&
                      job_.last_layers.value_or(0) % chunks == 0;
    if (!fits) {
      throw InputError(
          {.file = file_,
           .pointer = {},
           .found = fmt::format("{} layers on the first of {} stages, {} on the last",
                                job_.first_layers.value_or(0), ranks, job_.last_layers.value_or(0)),
           .allowed =
               fmt::format("numbers that leave the rest of {} layers in equal parts", layers_),
           .nearest = {}});
    }
    std::vector<int> out;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int rank = 0; rank < ranks; ++rank) {
        int layers = between > 0 ? rest / between : 0;
        if (rank == 0 && job_.first_layers) layers = *job_.first_layers;
        if (rank == ranks - 1 && job_.last_layers) layers = *job_.last_layers;
        out.push_back(layers / chunks);
      }
    }
    return out;
  }

  const JobSketch& job_;
  const CompleteLayout& layout_;
  LaunchKind kind_;
  int layers_;
  const std::string& file_;
};

}  // namespace

Json import_parallelism(const ImportedJob& imported) { return ImportedLayout(imported).json(); }

}  // namespace lockstep
