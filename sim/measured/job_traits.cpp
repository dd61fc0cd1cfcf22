#include "sim/measured/job_traits.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/spec/parameter_counts.hpp"
#include "sim/answer/assertion.hpp"
#include "sim/measured/row_scenario.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string answer_text_at(const Json& object, std::string_view pointer) {
  const Json::json_pointer at{std::string(pointer)};
  return object.contains(at) && object.at(at).is_string() ? object.at(at).get<std::string>()
                                                          : std::string();
}

std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string name_family(std::string_view name) {
  std::string out = plain_name(name);
  const auto digit = std::ranges::find_if(
      out, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  out.erase(digit, out.end());
  return out;
}

/// Assumed weights: another architecture or a mixture of experts beside a dense model tells more
/// apart than twice the GPUs or twice the weights do.
double distance_of(const JobTraits& a, const JobTraits& b) {
  double out = 0;
  if (a.architecture != b.architecture) out += 3;
  if (a.gpu != b.gpu) out += 1;
  if (a.experts != b.experts) out += 3;
  if (a.stack != b.stack) out += 1;
  if (name_family(a.model) != name_family(b.model)) out += 0.5;
  out += 0.5 * std::abs(std::log2(a.parameters / b.parameters));
  out += 0.25 * std::abs(std::log2(a.gpus / b.gpus));
  return out;
}

JobTraits traits_of_answer(const Json& answer, const PresetStore& presets) {
  const std::string gpu = answer_text_at(answer, "/job/gpu");
  return {
      .model = answer_text_at(answer, "/job/model"),
      .gpu = gpu,
      .architecture = presets.has("gpus", gpu) ? presets.gpu(gpu).architecture : "",
      .stack = answer_text_at(answer, "/job/stack"),
      .parameters = number_at(answer, "job.parameters").value_or(1),
      .gpus = number_at(answer, "gpus").value_or(1),
      .experts = number_at(answer, "job.active_parameters") < number_at(answer, "job.parameters")};
}

JobTraits traits_of_job(const ReferenceRow& row, const PresetStore& presets) {
  const ParameterCounts counts = parameter_counts(row.model);
  JobTraits out{.model = row.model.name,
                .gpu = row.gpu,
                .stack = presets.meant("stacks", row.stack),
                .parameters = std::max(1.0, counts.total),
                .gpus = std::max(1.0, static_cast<double>(row.gpus)),
                .experts = counts.active < counts.total};
  if (out.stack.empty()) out.stack = row.stack;
  try {
    out.gpu = gpu_preset_of(row.gpu, row.id, presets);
    out.architecture = presets.gpu(out.gpu).architecture;
  } catch (const InputError&) {
    return out;
  }
  return out;
}

}  // namespace lockstep
