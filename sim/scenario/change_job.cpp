#include "sim/scenario/change_job.hpp"

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/job_readers.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "sim/scenario/stack_choice.hpp"

namespace lockstep {

void change_job(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft) {
  (void)from.read_whole([&] {
    if (const auto model = from.find("model")) {
      declare_model({*model, Extent::changes}, draft.model);
      model->finish();
    }
    declare_job({from, Extent::changes}, draft);
    if (const auto stack = from.find("stack")) change_stack(*stack, presets, draft);
    from.finish();
    return true;
  });
}

}  // namespace lockstep
