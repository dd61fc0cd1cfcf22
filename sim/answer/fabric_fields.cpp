#include <array>
#include <string>
#include <utility>

#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

constexpr std::array kNetworkBuckets{Bucket::tensor_exposed, Bucket::context_exposed,
                                     Bucket::expert_exposed, Bucket::pipeline_exposed,
                                     Bucket::data_exposed};

const FieldTable<FabricWhatIf>& what_if_fields() {
  using Of = FabricWhatIf;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("change", "What was changed.", [](const Of& w) { return w.change; })
          .add("step_s", Better::less, "The step then.", [](const Of& w) { return w.step_s; })
          .add("exposed_s", Better::less, "Exposed communication then, by bucket.",
               [](const Of& w) {
                 NamedNumbers out;
                 for (const Bucket bucket : kNetworkBuckets) {
                   const auto index = static_cast<std::size_t>(bucket);
                   out.emplace_back(buckets()[index].name, w.seconds[index]);
                 }
                 return out;
               });
  return fields;
}

const FieldTable<TrafficHold>& hold_fields() {
  using Part = TrafficHold::Part;
  static const FieldTable<Part> parts =
      FieldTable<Part>()
          .add("links", "A class of links, or the transfers' own pace.",
               [](const Part& p) { return p.links; })
          .add("share", "Share of the time in which such transfers moved.",
               [](const Part& p) { return p.share; });
  static const FieldTable<TrafficHold> fields =
      FieldTable<TrafficHold>()
          .add("traffic", "Kind of traffic.", [](const TrafficHold& h) { return h.traffic; })
          .list("by", "What set its rate, longest first.", parts,
                [](const TrafficHold& h) -> const auto& { return h.by; });
  return fields;
}

}  // namespace

const FieldTable<RunResult>& fabric_fields() {
  static const FieldTable<RunResult> fields =
      FieldTable<RunResult>()
          .object("full_fabric", "The step on a fabric whose switches never limit.",
                  what_if_fields(),
                  [](const RunResult& r) -> const FabricWhatIf& { return *r.full_fabric; })
          .list("held_back_by", "What set the rate of each kind of traffic, with --explain-fabric.",
                hold_fields(), [](const RunResult& r) -> const auto& { return r.report.holds; })
          .list("relief", "Changes that were simulated, fastest first, with --explain-fabric.",
                what_if_fields(), [](const RunResult& r) -> const auto& { return r.relief; });
  return fields;
}

}  // namespace lockstep
