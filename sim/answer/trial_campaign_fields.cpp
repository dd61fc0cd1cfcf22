#include <optional>

#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

const FieldTable<RungSummary>& rung_fields() {
  using Of = RungSummary;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("bracket", "Which of the brackets, from 0: hyperband has several.",
               [](const Of& r) { return r.bracket; })
          .add("rung", "Which of its rungs, from 0.", [](const Of& r) { return r.rung; })
          .add("end", "Where it ends, as a share of a trial.", [](const Of& r) { return r.end; })
          .add("trials", "Trials that came to it.", [](const Of& r) { return r.trials; })
          .add("ended", "Those that have ended in it.", [](const Of& r) { return r.ended; })
          .add("went_on", "Those that went on to the next one.",
               [](const Of& r) { return r.went_on; })
          .add("gpu_hours", "GPU hours held in it.", [](const Of& r) { return r.gpu_hours; });
  return fields;
}

const FieldTable<OrderedTrials>& ordered_trials_fields() {
  using Of = OrderedTrials;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Which.", [](const Of& o) { return o.name; })
          .add("written", "Its place as written, from 0.", [](const Of& o) { return o.written; })
          .add("weight", "How much its result counts; of all together 1.",
               [](const Of& o) { return o.weight; })
          .add("alone_s", Better::less, "That it takes at least with the GPUs its own.",
               [](const Of& o) { return o.alone_s; })
          .add("result_s", Better::less, "When its result is there, from the first one's begin.",
               [](const Of& o) { return o.result_s; })
          .add("by_then_gpu_hours", Better::less, "GPU hours that it and those before it held.",
               [](const Of& o) { return o.by_then_gpu_hours; })
          .add("by_then_usd", Better::less, "What these cost; where there are prices.",
               [](const Of& o) { return o.by_then_usd; });
  return fields;
}

}  // namespace

const FieldTable<TrialOrder>& trial_order_fields() {
  using Of = TrialOrder;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("mean_result_s", Better::less,
               "Mean time to a result in the best order, one after another: by weight.",
               [](const Of& o) { return o.mean_result_s; })
          .add("written_mean_result_s", Better::less, "The same in the order as written.",
               [](const Of& o) { return o.written_mean_s; })
          .add("saved_s", Better::more, "How much earlier a result is there in the mean.",
               [](const Of& o) { return o.saved_s(); })
          .list("order", "The best order, the first one first.", ordered_trials_fields(),
                [](const Of& o) -> const auto& { return o.parts; });
  return fields;
}

const FieldTable<CampaignSummary>& trial_campaign_fields() {
  using Of = CampaignSummary;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("name", "Which.", [](const Of& c) { return c.name; })
        .add("stopping", "How the worse trials are stopped.",
             [](const Of& c) { return kStoppingNames[static_cast<std::size_t>(c.stopping)]; })
        .add("trials", "Trials that it begins.", [](const Of& c) { return c.trials; })
        .add("finished", "Trials that ran to their ends.", [](const Of& c) { return c.finished; })
        .add("jobs", "Jobs that they were, of all rungs.", [](const Of& c) { return c.jobs; })
        .add("done_s", Better::less, "When its last job ended, since the queue began; if it has.",
             [](const Of& c) { return c.done_s; })
        .add("makespan_s", Better::less, "From its submission to that.",
             [](const Of& c) { return c.makespan_s; })
        .add("ideal_s", Better::less,
             "At least so long if the cluster were its own: what its longest trial works, or what "
             "all "
             "work over as many as fit at a time.",
             [](const Of& c) { return c.ideal_s; })
        .add("makespan_ratio", Better::less, "The makespan over that.",
             [](const Of& c) -> std::optional<double> {
               if (!c.ideal_s || *c.ideal_s <= 0) return std::nullopt;
               return *c.makespan_s / *c.ideal_s;
             })
        .add("best_s", Better::less,
             "From its submission to the end of the best of the trials that ran to their ends, "
             "when it is done.",
             [](const Of& c) { return c.best_s; })
        .add("gpu_hours", Better::less, "GPU hours that its jobs held.",
             [](const Of& c) { return c.gpu_hours; })
        .add("unstopped_gpu_hours", "If all trials ran to their ends undisturbed.",
             [](const Of& c) { return c.unstopped_gpu_hours; })
        .add("saved_gpu_hours", Better::more, "How many fewer it held, when it is done.",
             [](const Of& c) { return c.saved_gpu_hours; })
        .add("usd", Better::less,
             "What it pays if those who hold GPUs pay for all machines, by the hour; where there "
             "are prices.",
             [](const Of& c) { return c.usd; })
        .add("energy_j", Better::less,
             "Of its GPUs with their shares of nodes and of what cools and feeds them; with "
             "\"power\".",
             [](const Of& c) { return c.energy; })
        .add("wait_mean_s", Better::less,
             "Mean time in which a job of it that started or waits held nothing.",
             [](const Of& c) {
               return OrNull<double>{c.wait_s ? std::optional(c.wait_s->mean) : std::nullopt};
             })
        .add("wait_p99_s", Better::less, "99 of 100 of them wait no longer.",
             [](const Of& c) {
               return OrNull<double>{c.wait_s ? std::optional(c.wait_s->p99) : std::nullopt};
             })
        .list("rungs", "How far trials came.", rung_fields(),
              [](const Of& c) -> const auto& { return c.rungs; })
        .object("bracket_order",
                "In which order its brackets have the best trial earliest, one after another, "
                "where it has several and is done.",
                trial_order_fields(), [](const Of& c) -> const auto& { return c.brackets; });
    return out;
  }();
  return fields;
}

}  // namespace lockstep
