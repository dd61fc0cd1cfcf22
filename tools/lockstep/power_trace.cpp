#include "tools/lockstep/power_trace.hpp"

#include "tools/lockstep/output_file.hpp"
#include "tools/lockstep/table.hpp"

namespace lockstep {

void write_power_trace(const std::string& path, const RunResult& result) {
  const StepPower& power = *result.power;
  const Scenario& s = result.scenario;
  const double gpus = static_cast<double>(s.nodes) * s.node.gpus;
  OutputFile file(path);
  file.write("time_s,gpu_w,node_w,rack_w,facility_w\n");
  const auto write = [&](Seconds time, std::size_t i) {
    const Watts node = power.node.power[i];
    file.write(csv_line(std::vector<std::string>{
        number_text(time.base_units()), number_text(power.gpus.power[i].base_units() / gpus),
        number_text(node.base_units()),
        number_text(s.node.chassis->nodes_per_rack * node.base_units()),
        number_text(power.facility.power[i].base_units())}));
  };
  for (std::size_t i = 0; i < power.gpus.size(); ++i) write(power.gpus.start[i], i);
  write(power.gpus.end, power.gpus.size() - 1);
  file.commit();
}

}  // namespace lockstep
