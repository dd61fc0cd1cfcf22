// Members that answers of several kinds share.
#include <string>

#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"

namespace lockstep {

Value written_value(const WrittenScenario& written) {
  return written ? Value::document(*written) : Value();
}

NamedNumbers bucket_seconds(const BucketTimes& seconds) {
  NamedNumbers out;
  for (const BucketInfo& info : buckets()) {
    out.emplace_back(info.name, seconds[static_cast<std::size_t>(info.bucket)]);
  }
  return out;
}

const FieldTable<PredictionInterval>& interval_fields() {
  using Of = PredictionInterval;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("coverage", "Share of runs whose step time the interval is to hold.",
               [](const Of&) { return kCoverage; })
          .add("low", "Lower end of the interval over step_s.", [](const Of& i) { return i.low; })
          .add("high", "Upper end of the interval over step_s.", [](const Of& i) { return i.high; })
          .add("software", "What is known of the software that ran.",
               [](const Of& i) { return name_of(i.known); })
          .add("gaps", "What of the job no published run had, in words.",
               [](const Of& i) { return i.gaps; })
          .add("group", "The published runs that the interval is made from.",
               [](const Of& i) { return i.group; })
          .add("rows", "How many published runs these are.", [](const Of& i) { return i.rows; })
          .add("sources", "How many sources they are from.", [](const Of& i) { return i.sources; })
          .add("why", "All of this in words.", [](const Of& i) { return words_of(i); });
  return fields;
}

const FieldTable<MemoryBreakdown>& memory_fields() {
  using Of = MemoryBreakdown;
  const auto gib = [](Bytes bytes) { return bytes / gibibytes(1); };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("total_gib", Better::less, "What the framework reserves on the GPU.",
               [gib](const Of& m) { return gib(m.total()); })
          .add("needed_gib", Better::less, "The same without what its allocator would give back.",
               [gib](const Of& m) { return gib(m.needed()); })
          .add("weights_gib", Better::less, "Weights.",
               [gib](const Of& m) { return gib(m.weights); })
          .add("gradients_gib", Better::less, "Gradients.",
               [gib](const Of& m) { return gib(m.gradients); })
          .add("optimiser_gib", Better::less, "State of the optimiser.",
               [gib](const Of& m) { return gib(m.optimiser); })
          .add("activations_gib", Better::less, "Saved activations.",
               [gib](const Of& m) { return gib(m.activations); })
          .add("logits_gib", Better::less, "Logits of the output layer.",
               [gib](const Of& m) { return gib(m.logits); })
          .add("communication_gib", Better::less, "Buffers of collectives.",
               [gib](const Of& m) { return gib(m.communication); })
          .add("framework_gib", Better::less, "The CUDA context and what the framework holds.",
               [gib](const Of& m) { return gib(m.framework); })
          .add("cached_gib", Better::less, "What the allocator keeps without need.",
               [gib](const Of& m) { return gib(m.cached); })
          .add("host_gib", Better::less, "What is kept in the host's memory for the GPU.",
               [gib](const Of& m) { return gib(m.host); });
  return fields;
}

const FieldTable<ClaimCheck>& claim_fields() {
  using Of = ClaimCheck;
  using Bound = ClaimCheck::Bound;
  static const FieldTable<Bound> bounds =
      FieldTable<Bound>()
          .add("bound", "A bound on a member of this answer.",
               [](const Bound& b) { return b.assertion.text; })
          .add("value", "What that member is.",
               [](const Bound& b) { return OrNull<double>{b.value}; })
          .add("kept", "Whether it keeps the bound.", [](const Bound& b) { return !b.miss; });
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("sentence", "The claim, as people say it.",
               [](const Of& c) { return c.claim().sentence; })
          .add("holds", "Whether the scenario's author found that it holds.",
               [](const Of& c) { return c.claim().holds; })
          .add(
              "verdict",
              "What the answer says of that: confirmed, where all bounds are kept; contradicted; "
              "untested, where there are none.",
              [](const Of& c) { return kClaimVerdictNames[static_cast<std::size_t>(c.verdict())]; })
          .add("because", "Why the answer is what it is.",
               [](const Of& c) { return c.claim().explanation; })
          .add("source", "Where the claim or the measurement is from.",
               [](const Of& c) { return c.source(); })
          .list("bounds", "The bounds that show it.", bounds,
                [](const Of& c) -> const std::vector<Bound>& { return c.bounds(); });
  return fields;
}

}  // namespace lockstep
