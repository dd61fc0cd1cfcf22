/// The rules that the parts of a scenario have to keep with each other.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {

/// Throws InputError about the value at `pointer` of the draft's scenario; `found` is as JSON
/// writes it. Names the option where one set the value.
[[noreturn]] void refuse(const ScenarioDraft& draft, std::string_view pointer, std::string found,
                         std::string allowed, std::string nearest = {});

/// Tensor and pipeline widths against the model's heads and layers.
void check_widths(const ScenarioDraft& draft);

/// Virtual stages and layers_per_stage against the model's layers. Schedule and stages are final.
/// Whether the schedule takes that many ranks and virtual stages.
void check_schedule(const ScenarioDraft& draft, const Parallelism& cut);
void check_virtual_stages(const ScenarioDraft& draft, const Parallelism& cut);

/// Sequences against micro batch, replicas and schedule.
void check_batch(const ScenarioDraft& draft, const TrainingJob& job);
/// Pieces of products beside their collectives.
void check_tensor_overlap(const ScenarioDraft& draft, const Parallelism& cut);
/// The exchange of context-parallel ranks.
void check_context(const ScenarioDraft& draft, const Parallelism& cut);
/// Experts over ranks.
void check_experts(const ScenarioDraft& draft, const Parallelism& cut);
/// Groups that hold the weights together.
/// Layers of hybrid models.
void check_pattern(const ScenarioDraft& draft, const Parallelism& cut);
void check_adapters(const ScenarioDraft& draft, const TrainingJob& job);
void check_sharding(const ScenarioDraft& draft, const Parallelism& cut);

/// Precision and attention against the GPU, stragglers against the number of GPUs, and the fabric
/// against the nodes. Everything is filled in.
void check_machine(const ScenarioDraft& draft, const Scenario& scenario);

/// States on the host: what they go with, and the memory of its nodes.
void check_offload(const ScenarioDraft& draft, const Scenario& scenario);

/// That the simulation stays within what its clock and memory hold.
void check_extent(const ScenarioDraft& draft, const Scenario& scenario);

/// All of the above. `scenario` is what the draft became; of the draft the model and the widths are
/// read, and what it says of things that only some layouts have.
void check_rules(const ScenarioDraft& draft, const Scenario& scenario);

/// Those of them that hold whatever the layout is.
void check_without_layout(const ScenarioDraft& draft, const Scenario& scenario);

}  // namespace lockstep
