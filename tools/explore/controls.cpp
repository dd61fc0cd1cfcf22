#include "tools/explore/controls.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Values = std::vector<std::string>;

template <class Names>
Values texts(const Names& names) {
  return Values(std::begin(names), std::end(names));
}

/// low, 2 low, 4 low ... high.
Values doubled(int low, int high) {
  Values out;
  for (int value = low; value <= high; value *= 2) out.push_back(std::to_string(value));
  return out;
}
/// The same with 1.5 times each between.
Values doubled_and_halves(int low, int high) {
  Values out;
  for (int value = low; value <= high; value *= 2) {
    out.push_back(std::to_string(value));
    if (value % 2 == 0 && value * 3 / 2 <= high) out.push_back(std::to_string(value * 3 / 2));
  }
  return out;
}

ExploreControl name_control(const PresetStore& presets, std::string_view path,
                            std::string_view title, std::string_view group,
                            std::string_view answered, std::string_view kind) {
  return {.path = path,
          .title = title,
          .group = group,
          .answered = answered,
          .kind = ControlKind::name,
          .values = presets.names(kind)};
}
ExploreControl choice_control(std::string_view path, std::string_view title, std::string_view group,
                              std::string_view answered, Values values) {
  return {.path = path,
          .title = title,
          .group = group,
          .answered = answered,
          .kind = ControlKind::choice,
          .values = std::move(values)};
}
ExploreControl count_control(std::string_view path, std::string_view title, std::string_view group,
                             std::string_view answered, Values stops, double high) {
  return {.path = path,
          .title = title,
          .group = group,
          .answered = answered,
          .kind = ControlKind::count,
          .values = std::move(stops),
          .low = 1,
          .high = high};
}
ExploreControl number_control(std::string_view path, std::string_view title, std::string_view group,
                              std::string_view answered, Values stops, double low, double high) {
  return {.path = path,
          .title = title,
          .group = group,
          .answered = answered,
          .kind = ControlKind::number,
          .values = std::move(stops),
          .low = low,
          .high = high};
}
ExploreControl searched(ExploreControl control, bool rare = false) {
  control.searched = true;
  control.rare = rare;
  return control;
}

constexpr std::string_view kModelGroup = "Model", kMachineGroup = "Machines",
                           kNetworkGroup = "Network", kLayoutGroup = "Layout",
                           kSoftwareGroup = "Software", kMoneyGroup = "Money and power";

void add_job(std::vector<ExploreControl>& out, const PresetStore& presets) {
  out.push_back(name_control(presets, "model", "Model", kModelGroup, "job.model", "models"));
  out.push_back(count_control("batch.sequences", "Sequences a step", kModelGroup,
                              "job.batch.sequences", doubled_and_halves(1, 32768), 1 << 20));
  out.push_back(count_control("batch.tokens", "Tokens a sequence", kModelGroup, "job.batch.tokens",
                              doubled(512, 131072), 1 << 20));
  out.push_back(choice_control("precision", "Precision", kModelGroup, "job.precision",
                               texts(precision_names())));
}

void add_machines(std::vector<ExploreControl>& out, const PresetStore& presets) {
  out.push_back(
      name_control(presets, "cluster.node", "Server", kMachineGroup, "job.node", "nodes"));
  out.push_back(count_control("cluster.nodes", "Servers", kMachineGroup, "nodes",
                              doubled_and_halves(1, 4096), 16384));
  out.push_back(count_control("cluster.node.nics", "NICs a server", kNetworkGroup,
                              "hardware.nics_per_node", doubled(1, 32), 64));
  out.push_back(choice_control(
      "cluster.node.nic_bandwidth", "Rate of a NIC", kNetworkGroup, "hardware.nic_bytes_per_s",
      {"50 Gb/s", "100 Gb/s", "200 Gb/s", "400 Gb/s", "800 Gb/s", "1600 Gb/s"}));
  out.push_back(
      name_control(presets, "cluster.fabric", "Fabric", kNetworkGroup, "job.fabric", "fabrics"));
  out.push_back(number_control("cluster.fabric.leaf_oversubscription", "Oversubscription",
                               kNetworkGroup, "", {"1", "1.5", "2", "3", "4", "6", "8"}, 1, 64));
}

void add_layout(std::vector<ExploreControl>& out) {
  const auto width = [&](std::string_view path, std::string_view title, std::string_view answered,
                         Values stops, bool rare = false) {
    out.push_back(searched(
        count_control(path, title, kLayoutGroup, answered, std::move(stops), 65536), rare));
  };
  const auto choice = [&](std::string_view path, std::string_view title, std::string_view answered,
                          Values values, bool rare = false) {
    out.push_back(
        searched(choice_control(path, title, kLayoutGroup, answered, std::move(values)), rare));
  };
  width("parallelism.tensor", "Tensor", "job.parallelism.tensor", doubled(1, 64));
  width("parallelism.pipeline", "Pipeline", "job.parallelism.pipeline", doubled_and_halves(1, 64));
  width("parallelism.context", "Context", "job.parallelism.context", doubled(1, 64));
  width("parallelism.expert", "Experts", "job.parallelism.expert", doubled(1, 256));
  width("batch.micro", "Micro batch", "job.batch.micro", doubled(1, 64));
  choice("parallelism.sharding", "Sharding", "job.parallelism.sharding", texts(kShardingNames));
  choice("recompute", "Recompute", "job.recompute", texts(kRecomputeNames));
  choice("parallelism.schedule", "Schedule", "job.parallelism.schedule", texts(schedule_names()),
         true);
  width("parallelism.virtual_stages", "Virtual stages", "job.parallelism.virtual_stages",
        {"1", "2", "3", "4", "5", "6", "8", "10", "12"}, true);
  width("parallelism.expert_tensor", "Tensor width of experts", "job.parallelism.expert_tensor",
        doubled(1, 64), true);
  choice("parallelism.sequence", "Sequence parallel", "job.parallelism.sequence", {"true", "false"},
         true);
  choice("parallelism.embedding", "Embedding", "job.parallelism.embedding", texts(kEndPlaceNames),
         true);
  choice("parallelism.output", "Output layer", "job.parallelism.output", texts(kEndPlaceNames),
         true);
}

void add_site(std::vector<ExploreControl>& out, const PresetStore& presets) {
  out.push_back(name_control(presets, "stack", "Software", kSoftwareGroup, "job.stack", "stacks"));
  out.push_back(choice_control("training.tokens", "Tokens to train", kMoneyGroup, "training_tokens",
                               {"0.1 T tokens", "0.5 T tokens", "1 T tokens", "2 T tokens",
                                "5 T tokens", "10 T tokens", "15 T tokens", "30 T tokens"}));
  out.push_back(number_control(
      "price.usd_per_gpu_hour", "USD a GPU-hour", kMoneyGroup, "usd_per_gpu_hour",
      {"0.5", "1", "1.5", "2", "2.5", "3", "4", "5", "6", "8", "10", "12", "15"}, 0.01, 1000));
  out.push_back(name_control(presets, "power.facility", "Building", kMoneyGroup,
                             "power.facility_preset", "facilities"));
}

/// What is wrong with a value; the place is the control's.
[[noreturn]] void fail_state(std::string_view path, const std::string& found, std::string allowed,
                             std::string nearest = {}) {
  std::string pointer = "/" + std::string(path);
  std::ranges::replace(pointer, '.', '/');
  throw InputError({.file = "explore",
                    .pointer = std::move(pointer),
                    .found = in_quotes(found),
                    .allowed = std::move(allowed),
                    .nearest = std::move(nearest)});
}

void check_number(const ExploreControl& control, const std::string& text) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  const bool whole = control.kind == ControlKind::count;
  if (error != std::errc{} || end != last || !(value >= control.low && value <= control.high) ||
      (whole &&
       (value != std::floor(value) || text.find_first_not_of("0123456789") != std::string::npos))) {
    fail_state(control.path, text,
               fmt::format("a{} number from {} to {}", whole ? " whole" : "",
                           number_text(control.low), number_text(control.high)));
  }
}

void check_value(const ExploreControl& control, const std::string& text, const Json& own) {
  if (control.kind == ControlKind::count || control.kind == ControlKind::number) {
    return check_number(control, text);
  }
  if (std::ranges::find(control.values, text) != control.values.end()) return;
  if (!text.empty() && text == plain_value_at(own, control.path)) return;
  fail_state(control.path, text, fmt::format("{}", fmt::join(control.values, ", ")),
             nearest_name(text, control.values));
}

}  // namespace

std::vector<ExploreControl> explore_controls(const PresetStore& presets) {
  std::vector<ExploreControl> out;
  add_job(out, presets);
  add_machines(out, presets);
  add_layout(out);
  add_site(out, presets);
  return out;
}

const ExploreControl& control_at(std::string_view path,
                                 const std::vector<ExploreControl>& controls) {
  const auto control = std::ranges::find(controls, path, &ExploreControl::path);
  if (control != controls.end()) return *control;
  std::vector<std::string> names;
  for (const ExploreControl& each : controls) names.emplace_back(each.path);
  throw InputError({.file = "explore",
                    .pointer = {},
                    .found = in_quotes(path),
                    .allowed = fmt::format("{}", fmt::join(names, ", ")),
                    .nearest = nearest_name(path, names)});
}

ExploreState explore_state(const std::vector<std::pair<std::string, std::string>>& said,
                           const std::vector<ExploreControl>& controls, const Json& own) {
  ExploreState state;
  for (const auto& [path, value] : said) {
    check_value(control_at(path, controls), value, own);
    if (!state.emplace(path, value).second) fail_state(path, value, "one value, not two");
  }
  return state;
}

std::vector<std::string> sets_of(const ExploreState& state,
                                 const std::vector<ExploreControl>& controls) {
  std::vector<std::string> sets;
  for (const ExploreControl& control : controls) {
    const auto chosen = state.find(control.path);
    if (chosen != state.end()) sets.push_back(fmt::format("{}={}", control.path, chosen->second));
  }
  return sets;
}

std::string plain_value_at(const Json& scenario, std::string_view path) {
  const Json* at = &scenario;
  while (true) {
    const std::size_t dot = path.find('.');
    if (!at->is_object()) return {};
    const auto member = at->find(std::string(path.substr(0, dot)));
    if (member == at->end()) return {};
    at = &*member;
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  if (at->is_string()) return at->get<std::string>();
  if (at->is_boolean()) return at->get<bool>() ? "true" : "false";
  if (at->is_number_integer()) return std::to_string(at->get<std::int64_t>());
  if (at->is_number()) return number_text(at->get<double>());
  return {};
}

}  // namespace lockstep
