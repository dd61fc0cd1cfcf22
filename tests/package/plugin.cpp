// A shared object with the library in it, as a Python module would be.
#include <exception>

#include "sim/scenario/preset_store.hpp"

extern "C" int layers_of_a_preset() {
  try {
    return lockstep::PresetStore().model("llama3_8b").layers;
  } catch (const std::exception&) {
    return -1;
  }
}
