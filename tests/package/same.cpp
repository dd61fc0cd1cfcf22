// What the library answers to scenarios, as JSON, one after the other: check.cmake holds it against
// what the installed program prints.
#include <cstdio>
#include <exception>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "sim/answer/answer.hpp"

int main(int count, char** words) {
  try {
    const lockstep::PresetStore presets;
    for (int i = 1; i < count; ++i) {
      const lockstep::ScenarioAnswer answer = lockstep::answer_scenario(words[i], presets, {});
      std::puts(lockstep::write_json(answer.json(), 2).c_str());
    }
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 2;
  }
}
