#include "tools/calibrate/cudnn/attention_plan.hpp"

#include <utility>

#include "tools/calibrate/card.hpp"

namespace lockstep {
namespace {

/// Engines of the heuristic that are tried; the first that can be built is taken.
constexpr std::int64_t kTriedEngines = 8;

}  // namespace

AttentionTarget::AttentionTarget(const std::string& properties)
    : card_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
  card_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
             static_cast<std::int64_t>(properties.size()), properties.data());
  card_->finalize();
}

AttentionPattern::AttentionPattern(const AttentionShape& shape, const AttentionTarget& target)
    : graph_(attention_graph(shape)), operations_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  operations_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS,
                  std::span<const CudnnDescriptor>(graph_.operations));
  if (!target.card_) {
    operations_.set_one(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle_);
  }
  operations_.finalize();

  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations_);
  heuristic.set_one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  if (target.card_) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.card_);
  heuristic.finalize();
  engines_ = heuristic.others(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                              kTriedEngines);
}

AttentionPlan::AttentionPlan(AttentionPattern pattern, const AttentionTarget& target)
    : pattern_(std::move(pattern)) {
  std::string refusal = "cuDNN has no engine for it";
  for (const CudnnDescriptor& engine : pattern_.engines_) {
    try {
      CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
      if (target.card_) {
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.card_);
      } else {
        plan.set_one(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle_);
      }
      plan.finalize();
      workspace_ = static_cast<std::size_t>(plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
      plan_ = std::move(plan);
      return;
    } catch (const TaskFailed& failed) {
      refusal = failed.what();
    }
  }
  throw TaskFailed(refusal);
}

CudnnDescriptor AttentionPlan::arguments(const std::vector<Pointer>& pointers,
                                         void* workspace) const {
  std::vector<std::int64_t> ids = pattern_.graph_.scalar_ids;
  std::vector<void*> memory;
  memory.reserve(pattern_.graph_.scalars.size() + pointers.size());
  // cuDNN takes numbers by value through a pointer to the host; it does not write there.
  for (const float& scalar : pattern_.graph_.scalars) {
    memory.push_back(const_cast<float*>(&scalar));
  }
  for (const Pointer& p : pointers) {
    ids.push_back(static_cast<std::int64_t>(p.tensor));
    memory.push_back(p.memory);
  }
  CudnnDescriptor out(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  out.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids));
  out.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
          static_cast<std::int64_t>(memory.size()), static_cast<const void*>(memory.data()));
  out.set_one(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  out.finalize();
  return out;
}

void AttentionPlan::enqueue(cudnnHandle_t handle, const CudnnDescriptor& arguments) const {
  const cudnnStatus_t status = cudnn_library().execute(handle, plan_->get(), arguments.get());
  if (status != CUDNN_STATUS_SUCCESS) {
    throw TaskFailed(cudnn_library().failure(status, "cudnnBackendExecute"));
  }
}

}  // namespace lockstep
