// What a program gets of a scenario: power, failures and cost, by the names of the answer's
// members.
#include "sim/answer/answer.hpp"

#include <cstdio>

int main(int, char** words) {
  const lockstep::ScenarioAnswer answer = lockstep::answer_scenario(
      words[1], lockstep::PresetStore(),
      {.set = {"cost.usd_per_gpu=30000", "cost.usd_per_kwh=0.08"}, .trajectories = 3});
  for (const char* name : {"goodput", "interruptions", "mfu", "step_s_low", "step_s", "step_s_high",
                           "facility_mean_w", "energy_j", "capital_usd", "owned_usd"}) {
    std::printf("%s %g\n", name, answer.number(name).value());
  }
  return answer.keeps("goodput>0.5") ? 0 : 1;
}
