#include "sim/scenario/spec_schemas.hpp"

#include <string_view>

#include <nlohmann/json.hpp>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/job_readers.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

template <class Declare>
Json described(const Declare& declare) {
  Json schema = Json::object();
  declare(DeclaredMembers(schema, Extent::changes));
  return schema;
}

/// Of what one function declares, in an object of its own.
template <class Spec>
Json described(void (*declare)(const DeclaredMembers&, Spec&)) {
  return described([&](const DeclaredMembers& member) {
    Spec spec;
    declare(member, spec);
  });
}

/// Of what one function declares that looks up presets.
template <class Spec>
Json described(void (*declare)(const DeclaredMembers&, const PresetStore&, Spec&),
               const PresetStore& presets) {
  return described([&](const DeclaredMembers& member) {
    Spec spec;
    declare(member, presets, spec);
  });
}

}  // namespace

Json spec_schemas(const PresetStore& presets) {
  return {
      {"/$defs/attention_kernel", described(declare_attention_kernel)},
      {"/$defs/transport/anyOf/1", described(declare_transport)},
      {"/properties/model/anyOf/1", described(declare_model)},
      {"/properties/cluster/anyOf/1/properties/node/anyOf/1", described(declare_node, presets)},
      {"/properties/cluster/anyOf/1/properties/fabric/anyOf/1", described(declare_fabric, presets)},
      {"/properties/power/properties/facility/anyOf/1", described(declare_facility)},
      {"/properties/stack/anyOf/1", described(declare_stack)},
      {"/properties/parallelism", described(declare_parallelism)},
      {"/properties/lora", described(declare_lora)},
      {"/properties/offload", described(declare_offload)},
      {"/properties/frozen", described(declare_frozen)},
  };
}

}  // namespace lockstep
