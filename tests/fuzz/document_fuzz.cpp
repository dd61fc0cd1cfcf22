// Fuzz target: whatever bytes a document of another command than run has, reading it gives that
// document or an InputError of whole lines: a plan, traffic, a residual table, cases of the
// referee, a model's config.json, several jobs, reinforcement learning, a queue, a service. Bytes
// behind the first 0 are --set options of a plan.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/spec/hugging_face.hpp"
#include "sim/referee/referee_case.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_traffic.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/search/read_plan.hpp"
#include "tests/fuzz/documents.hpp"

namespace {

using namespace lockstep;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const PresetStore presets;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view text = next_part(bytes);
  std::vector<std::string> set;
  while (!bytes.empty() && set.size() < 8) set.emplace_back(next_part(bytes));
  read_or_lines([&] { (void)read_plan("fuzz.json", text, presets, set); });
  read_or_lines([&] { (void)read_traffic("fuzz.json", text, presets); });
  read_or_lines([&] {
    (void)read_scenario_file(parse_scenario("fuzz.json", std::string(text), set), presets);
  });
  read_or_lines([&] { (void)read_residuals("fuzz.json", text); });
  read_or_lines([&] { (void)read_referee_cases("fuzz.json", text); });
  read_or_lines([&] { (void)read_hugging_face(JsonCursor::parse("config.json", text), "fuzz"); });
  return 0;
}
