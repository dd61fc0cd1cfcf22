#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/fields.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/parallelism_json.hpp"
#include "tools/views/tables/command_fields.hpp"
#include "tools/views/tune/tune_output.hpp"

namespace lockstep {
namespace {

double as_gib(Bytes bytes) { return twelve_digits(bytes / gibibytes(1)); }

/// A layout with the band of its step.
struct LayoutOfTune {
  const TunedLayout& layout;
  const PredictionInterval& interval;
};
struct BestLayout : LayoutOfTune {
  std::size_t rank = 1;
};
struct OwnLayout : LayoutOfTune {
  const TuneResult& result;
};

/// Share of the step in each bucket.
NamedNumbers waterfall_shares(const TunedLayout& layout) {
  NamedNumbers out;
  for (const BucketInfo& info : buckets()) {
    const double seconds = layout.seconds[static_cast<std::size_t>(info.bucket)];
    out.emplace_back(info.name, seconds / layout.step_s);
  }
  return out;
}

const FieldTable<LayoutOfTune>& tuned_layout_fields() {
  using Of = LayoutOfTune;
  const auto bound = [](double StepBand::* end) {
    return [end](const Of& l) -> OrNull<double> {
      if (!l.layout.band) return {};
      return {(*l.layout.band).*end};
    };
  };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("step_s", Better::less, "Time of one training step.",
               [](const Of& l) { return l.layout.step_s; })
          .add("step_s_low", Better::less,
               "Lower end of the 90 % interval, as lockstep run has it.",
               [](const Of& l) { return l.layout.step_s * l.interval.low; })
          .add("step_s_high", Better::less, "Upper end of the same.",
               [](const Of& l) { return l.layout.step_s * l.interval.high; })
          .add("software", "How well its software is known, which the interval is of.",
               [](const Of& l) { return name_of(l.interval.known); })
          .add("ties", "Whether its step is as good as the fastest: within 1 % of it.",
               [](const Of& l) { return l.layout.ties; })
          .add("method", "How its step was simulated.",
               [](const Of& l) { return name_of(l.layout.method); })
          .add("exact_low_s", "The least that a simulation of every rank can give.",
               bound(&StepBand::low_s))
          .add("exact_high_s", "The most that it can give.", bound(&StepBand::high_s))
          .add("mfu", Better::more, "Model FLOP/s over the datasheet peak (MFU).",
               [](const Of& l) { return l.layout.mfu; })
          .add("lower_bound_s", "The bound of its step that the search went by.",
               [](const Of& l) { return l.layout.bound_s; })
          .add("needed_memory_gib", Better::less, "Memory of the fullest GPU.",
               [](const Of& l) { return l.layout.peak.needed() / gibibytes(1); })
          .add("usable_memory_gib", "Memory that a GPU has for it.",
               [](const Of& l) { return l.layout.usable / gibibytes(1); })
          .add("parallelism", "The layout, under the names that scenarios have.",
               [](const Of& l) {
                 return Value::document(written_parallelism(l.layout.scenario.job.parallelism));
               })
          .add("micro", "Sequences of a micro batch.",
               [](const Of& l) { return l.layout.scenario.job.batch.micro_sequences; })
          .add("recompute", "What is recomputed.",
               [](const Of& l) { return name_of(l.layout.scenario.job.recompute); })
          .add("waterfall_shares", "Share of the step in each bucket of the waterfall.",
               [](const Of& l) { return waterfall_shares(l.layout); });
  return fields;
}

const FieldTable<BestLayout>& best_layout_fields() {
  static const FieldTable<BestLayout> fields =
      FieldTable<BestLayout>()
          .add("rank", "Its place, from 1.", [](const BestLayout& l) { return l.rank; })
          .all_of(tuned_layout_fields());
  return fields;
}

const FieldTable<OwnLayout>& own_layout_fields() {
  using Of = OwnLayout;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("rank_first", "The least that its place among all layouts that fit can be, from 1.",
               [](const Of& l) { return l.result.own_rank_first; })
          .add("rank_last", "The most that it can be; equal where its place is exact.",
               [](const Of& l) { return l.result.own_rank_last; })
          .add("fits", "Whether it fits in memory.", [](const Of& l) { return l.result.own_fits; })
          .all_of(tuned_layout_fields());
  return fields;
}

FieldTable<TuneCount> tune_count_fields(std::string_view name, std::string_view sentence) {
  return FieldTable<TuneCount>()
      .add(name, sentence, [](const TuneCount& c) { return c.reason; })
      .add("layouts", "Layouts that it rules out.", [](const TuneCount& c) { return c.layouts; });
}

std::vector<BestLayout> best_layouts(const TuneStudy& study) {
  std::vector<BestLayout> out;
  for (std::size_t i = 0; i < study.result.best.size(); ++i) {
    out.push_back({{study.result.best[i], study.intervals[i]}, i + 1});
  }
  return out;
}

/// A number of the best layout; null where none fits.
template <class Get>
auto of_the_best(Get get) {
  return [get](const TuneStudy& s) -> OrNull<double> {
    if (s.result.best.empty()) return {};
    return {get(s.result.best.front(), s.intervals.front())};
  };
}

void add_tune_headline(FieldTable<TuneStudy>& fields) {
  using Layout = const TunedLayout&;
  using Interval = const PredictionInterval&;
  fields
      .add("step_s", Better::less, "Step of the best layout; null where none fits.",
           of_the_best([](Layout l, Interval) { return l.step_s; }))
      .add("step_s_low", Better::less, "Lower end of its 90 % interval.",
           of_the_best([](Layout l, Interval i) { return l.step_s * i.low; }))
      .add("step_s_high", Better::less, "Upper end of the same.",
           of_the_best([](Layout l, Interval i) { return l.step_s * i.high; }))
      .add("mfu", Better::more, "Its model FLOP/s over the datasheet peak (MFU).",
           of_the_best([](Layout l, Interval) { return l.mfu; }));
}

void add_search_counts(FieldTable<TuneStudy>& fields) {
  using Of = TuneStudy;
  fields
      .add("fastest_step_s", Better::less,
           "The shortest step of all; the best layout's may be up to 1 % longer, or 5 % where that "
           "one surely fits and the fastest does not.",
           [](const Of& s) { return s.result.fastest_s; })
      .add("ties", "Layouts within 1 % of the fastest, that one included.",
           [](const Of& s) { return s.result.ties; })
      .add("considered", "All combinations of the search.",
           [](const Of& s) { return s.result.considered; })
      .list("refused", "Those that break a rule of the scenario, by rule; most first.",
            tune_count_fields("rule", "JSON pointer of the value that the rule is about."),
            [](const Of& s) -> const auto& { return s.result.refused; })
      .list("beyond_stack", "Those that the software cannot run, by what it lacks; most first.",
            tune_count_fields("capability", "What the stack has not."),
            [](const Of& s) -> const auto& { return s.result.beyond_stack; })
      .add("same_as_zero1", "Those with ZeRO-2 where ZeRO-1 fits too, whose step is no longer.",
           [](const Of& s) { return s.result.same_as_zero1; })
      .add("over_memory", "Those that do not fit in memory.",
           [](const Of& s) { return s.result.over_memory; })
      .add("pruned",
           "Those whose lower bound is above the best; where the search was interrupted, those "
           "that it has not looked at.",
           [](const Of& s) { return s.result.pruned; })
      .add("replayed", "Those that were simulated.", [](const Of& s) { return s.result.replayed; })
      .add("interrupted", "Whether the search was stopped before its end.",
           [](const Of& s) { return s.result.interrupted; });
}

const FieldTable<TuneStudy>& tune_study_fields() {
  using Of = TuneStudy;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    add_tune_headline(out);
    out.add("file", "The scenario's file.", [](const Of& s) { return s.base.file; })
        .add("model", "Its model.", [](const Of& s) { return s.base.job.model.name; })
        .add("gpus", "GPUs that the job uses.", [](const Of& s) { return s.base.gpus(); });
    add_search_counts(out);
    out.list("best", "The best layouts, the best first.", best_layout_fields(), best_layouts)
        .object_or_null("own", "The scenario's own layout; null where it cannot run.",
                        own_layout_fields(),
                        [](const Of& s) -> std::optional<OwnLayout> {
                          if (!s.result.own) return std::nullopt;
                          return OwnLayout{{*s.result.own, *s.own_interval}, s.result};
                        })
        .add("notes", "What the answers leave out.", [](const Of& s) { return tune_notes(s); })
        .add("own_problem", "Why the scenario's own layout cannot run.",
             [](const Of& s) -> std::optional<std::string> {
               if (s.result.own || s.result.own_problem.empty()) return std::nullopt;
               return s.result.own_problem;
             });
    return out;
  }();
  return fields;
}

}  // namespace

nlohmann::ordered_json tune_json(const TuneStudy& study) {
  return Value(tune_study_fields().values(study)).json();
}

std::vector<FieldInfo> tune_fields() { return tune_study_fields().infos(); }

CsvText tune_csv(const TuneStudy& study) {
  std::vector<std::string> titles{"rank",
                                  "step_s",
                                  "step_s_low",
                                  "step_s_high",
                                  "ties",
                                  "mfu",
                                  "tensor",
                                  "context",
                                  "pipeline",
                                  "expert",
                                  "expert_tensor",
                                  "data",
                                  "micro",
                                  "virtual_stages",
                                  "schedule",
                                  "sharding",
                                  "recompute",
                                  "needed_memory_gib",
                                  "usable_memory_gib",
                                  "exact_low_s",
                                  "exact_high_s"};
  for (const BucketInfo& info : buckets()) titles.push_back(fmt::format("{}_share", info.name));
  CsvText out = csv_line(titles);
  for (std::size_t i = 0; i < study.result.best.size(); ++i) {
    const TunedLayout& layout = study.result.best[i];
    const TrainingJob& job = layout.scenario.job;
    const Parallelism& p = job.parallelism;
    const PredictionInterval& interval = study.intervals[i];
    std::vector<std::string> cells{std::to_string(i + 1),
                                   number_text(layout.step_s),
                                   number_text(layout.step_s * interval.low),
                                   number_text(layout.step_s * interval.high),
                                   layout.ties ? "true" : "false",
                                   number_text(layout.mfu)};
    for (const int number : {p.tensor, p.context, p.pipeline, p.expert, p.expert_tensor, p.data,
                             job.batch.micro_sequences, p.virtual_stages}) {
      cells.push_back(std::to_string(number));
    }
    for (const std::string_view name :
         {name_of(p.schedule), name_of(p.sharding), name_of(job.recompute)}) {
      cells.emplace_back(name);
    }
    cells.push_back(number_text(as_gib(layout.peak.needed())));
    cells.push_back(number_text(as_gib(layout.usable)));
    cells.push_back(layout.band ? number_text(layout.band->low_s) : "");
    cells.push_back(layout.band ? number_text(layout.band->high_s) : "");
    for (const double seconds : layout.seconds)
      cells.push_back(number_text(seconds / layout.step_s));
    out += csv_line(cells);
  }
  return out;
}

}  // namespace lockstep
