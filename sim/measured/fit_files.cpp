#include <fmt/format.h>
#include <map>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/measured/fit.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSource = "fitted to published training runs: lockstep fit";

constexpr const char* kAtBounds = "constants_at_bounds";

/// Path to keys: "gemm.sustained"; a release keeps its dots
/// ("releases.24.05.elementwise.slowdown").
std::vector<std::string> keys_of(const Json& preset, const std::string& path) {
  std::vector<std::string> keys;
  std::string rest = path;
  if (rest.starts_with("releases.")) {
    keys.emplace_back("releases");
    rest.erase(0, 9);
    std::string release;
    for (const auto& [name, changes] : preset.at("releases").items()) {
      if (rest.starts_with(name + ".") && name.size() > release.size()) release = name;
    }
    keys.push_back(release);
    rest.erase(0, release.size() + 1);
  }
  for (std::size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
    keys.push_back(rest.substr(0, dot));
    rest.erase(0, dot + 1);
  }
  keys.push_back(rest);
  return keys;
}

std::vector<FitParameter> parameters_of(const JsonCursor& root) {
  std::vector<FitParameter> parameters;
  for (const JsonCursor& at : root.at("parameters").elements(1000)) {
    FitParameter p;
    const std::string name = at.at("constant").string();
    const std::size_t first = name.find('/'), second = name.find('/', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      at.at("constant").fail("KIND/PRESET/PATH, as in gpus/h100_sxm5_80gb/gemm.sustained");
    }
    p.kind = name.substr(0, first);
    p.preset = name.substr(first + 1, second - first - 1);
    p.path = name.substr(second + 1);
    p.prior = at.at("prior").number({1e-9, 1e9});
    p.spread = at.at("spread").number({1e-6, 10});
    p.min = at.at("min").number({1e-9, 1e9});
    p.max = at.at("max").number({1e-9, 1e9});
    p.value = p.prior;
    p.why = at.at("why").string();
    at.finish();
    parameters.push_back(p);
  }
  return parameters;
}

}  // namespace

std::vector<FitParameter> read_fit_parameters(const std::string& file) {
  const JsonCursor root = JsonCursor::parse(file, read_text_file(file));
  return root.read_whole([&] { return parameters_of(root); });
}

Vendors read_vendors(const std::string& file) {
  const JsonCursor root = JsonCursor::parse(file, read_text_file(file));
  Vendors out;
  const auto vendors = root.find("vendors");
  if (!vendors) return out;
  for (const std::string& vendor : vendors->keys()) {
    for (const JsonCursor& source : vendors->at(vendor).elements(1000)) {
      out[source.string()] = vendor;
    }
  }
  return out;
}

void write_fit(const std::vector<FitParameter>& parameters, const PresetStore& presets) {
  std::map<std::string, Json> files;
  for (const FitParameter& p : parameters) {
    const std::string path = presets.path(p.kind, p.preset);
    auto& preset = files.try_emplace(path, Json{}).first->second;
    if (preset.is_null()) preset = Json::parse(read_text_file(path));
    Json* at = &preset;
    for (const std::string& key : keys_of(preset, p.path)) at = &(*at)[key];
    *at = Json{{"value", p.value}, {"source", fmt::format("{} ({} rows)", kSource, p.rows)}};
  }
  for (const FitParameter& p : parameters) {
    if (p.kind == "stacks") files.at(presets.path(p.kind, p.preset)).erase(kAtBounds);
  }
  for (const FitParameter* p : at_bounds(parameters)) {
    if (p->kind != "stacks") continue;
    Json& listed = files.at(presets.path(p->kind, p->preset))[kAtBounds];
    listed["value"].push_back(p->path);
    listed["source"] = "lockstep fit: the value stopped at a bound of tests/reference/fit.json";
  }
  for (const auto& [path, preset] : files) {
    OutputFile out(path);
    out.write(write_json(preset, 2) + "\n");
    out.commit();
  }
}

}  // namespace lockstep
