#include "tools/views/measured/validate_fit.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "models/collectives/collectives.hpp"
#include "sim/answer/fields.hpp"
#include "sim/measured/fit_collectives.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_profile.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

using FitJson = nlohmann::ordered_json;

std::string source_of(const Profile& profile, const KernelFit& fit) {
  return fmt::format(
      "fitted to {}{}: lockstep validate --fit; {} points, median error {:.1f} %, of points left "
      "out {:.1f} %",
      profile.file, profile.date.empty() ? "" : " of " + profile.date, fit.after.n,
      100 * fit.after.median_abs, 100 * fit.held_out.median_abs);
}

std::string errors_text(const PointSummary& errors) {
  return fmt::format("{:.1f} % {:5.1f} %", 100 * errors.median_abs, 100 * errors.p90_abs);
}

FitJson constants_json(const KernelFit& fit) {
  FitJson out = FitJson::object();
  for (const auto& [name, value] : fit.constants) out[name] = FitJson::parse(value);
  return out;
}

const FieldTable<PointSummary>& fit_error_fields() {
  using Of = PointSummary;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("n", "Points.", [](const Of& e) { return e.n; })
          .add("median_abs_error", Better::less, "Median of the errors, without their signs.",
               [](const Of& e) { return e.median_abs; })
          .add("p90_abs_error", Better::less, "9 of 10 errors are no larger.",
               [](const Of& e) { return e.p90_abs; })
          .add("bias", "Median of the errors with their signs.",
               [](const Of& e) { return e.bias; });
  return fields;
}

const FieldTable<KernelFit>& fitted_part_fields() {
  using Of = KernelFit;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("part", R"(What was fitted: "gemm", "memory", a kernel of attention, a collective.)",
               [](const Of& f) { return f.part; })
          .add("constants", "The constants, under the names that presets have.",
               [](const Of& f) { return Value::document(constants_json(f)); })
          .object_or_null("preset", "Errors with the preset's constants; null: it has none.",
                          fit_error_fields(),
                          [](const Of& f) { return f.in_preset ? &f.before : nullptr; })
          .object("fitted", "Errors with those that were fitted.", fit_error_fields(),
                  [](const Of& f) -> const PointSummary& { return f.after; })
          .object("left_out", "Errors of points that were left out of the fit, each in turn.",
                  fit_error_fields(),
                  [](const Of& f) -> const PointSummary& { return f.held_out; });
  return fields;
}

const FieldTable<ProfileFit>& fit_answer_fields() {
  using Of = ProfileFit;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("gpu", "The profile's card.", [](const Of& f) { return f.profile.gpu; })
          .list("parts", "What was fitted, part by part.", fitted_part_fields(),
                [](const Of& f) -> const auto& { return f.fits; })
          .add("not_fitted", "Points that no fit uses, and why.",
               [](const Of& f) { return f.not_fitted; });
  return fields;
}

/// The fit that a collective belongs to.
std::string collective_part(const CollectivePoint& p) {
  if (p.nodes > 1) return std::string(kTransportPart);
  for (const CollectiveKind& kind : collective_kinds()) {
    if (kind.op == p.op) return std::string(kNvlinkPart) + std::string(kind.name);
  }
  return {};
}

/// Which points the fits do not use.
std::vector<std::string> unused(const Profile& profile, const std::vector<KernelFit>& fits) {
  std::map<std::string, std::size_t> counts;
  if (!profile.gemm.empty()) counts["gemm"] = profile.gemm.size();
  for (const AttentionPoint& p : profile.attention) {
    ++counts[fmt::format("attention.{}", name_of(p.kernel))];
  }
  if (!profile.memory.empty()) counts["memory"] = profile.memory.size();
  for (const CollectivePoint& p : profile.collectives) ++counts[collective_part(p)];
  for (const KernelFit& fit : fits) counts.erase(fit.part);
  std::vector<std::string> lines;
  lines.reserve(counts.size() + 1);
  for (const auto& [part, count] : counts) {
    lines.push_back(fmt::format("{}: {} point{}, and a fit takes {}", part, count,
                                count == 1 ? "" : "s", kFewestFitPoints));
  }
  if (profile.spans_nodes() && !profile.network) {
    lines.emplace_back("collectives over several nodes: the profile does not say their network");
  }
  return lines;
}

FitJson preset_json(std::string_view kind, const std::string& name, const PresetStore& presets) {
  return FitJson::parse(read_text_file(presets.path(kind, name)));
}

/// The NVLink preset of the card with fitted regimes; without any, the transport's.
std::string fitted_fabric(const ProfileFit& fit, const PresetStore& presets) {
  if (fit.fits.front().part == kTransportPart) {
    const KernelFit& part = fit.fits.front();
    FitJson preset = preset_json("transports", fit.profile.network->transport.name, presets);
    for (const auto& [name, value] : part.constants) {
      preset[name] = {{"value", FitJson::parse(value)}, {"source", source_of(fit.profile, part)}};
    }
    return write_json(preset, 2) + "\n";
  }
  const FitJson nvlink =
      preset_json("gpus", fit.profile.gpu, presets).at("collectives").at("value");
  FitJson preset = preset_json("nvlinks", nvlink.get<std::string>(), presets);
  for (const KernelFit& part : fit.fits) {
    if (part.part == kTransportPart) continue;
    for (FitJson& regime : preset[part.part.substr(kNvlinkPart.size())]) {
      const std::string prefix = regime.at("name").get<std::string>() + ".";
      for (const auto& [name, value] : part.constants) {
        if (!name.starts_with(prefix)) continue;
        regime[name.substr(prefix.size())] = FitJson::parse(value);
        regime["source"] = source_of(fit.profile, part);
      }
    }
  }
  return write_json(preset, 2) + "\n";
}

}  // namespace

ProfileFit fit_profile_of(const std::string& name, const PresetStore& presets) {
  ProfileFit out{load_profile(name, presets), {}, {}};
  if (out.profile.power_limit) {
    const double watts = out.profile.power_limit->base_units();
    throw InputError({.file = name,
                      .pointer = "/power_limit",
                      .found = format_quantity(watts, Dimension::power),
                      .allowed = "none, to fit constants of the card at its own limit",
                      .nearest = {}});
  }
  out.fits = fit_profile(out.profile, presets);
  for (KernelFit& fit : fit_collectives(out.profile, presets)) out.fits.push_back(std::move(fit));
  out.not_fitted = unused(out.profile, out.fits);
  if (out.fits.empty()) {
    throw InputError({.file = name,
                      .pointer = {},
                      .found = fmt::format("{}", fmt::join(out.not_fitted, "; ")),
                      .allowed = fmt::format("{} points of products, of memory-bound kernels, of "
                                             "one kernel of attention or of one collective",
                                             kFewestFitPoints),
                      .nearest = {}});
  }
  return out;
}

std::string profile_fit_table(const ProfileFit& fit, const TextStyle& style) {
  TextTable table({{"constants of " + fit.profile.gpu, TextTable::Align::left},
                   {"points"},
                   {"as preset: median, p90"},
                   {"fitted"},
                   {"fitted, on points left out"}});
  for (const KernelFit& part : fit.fits) {
    table.add({part.part, fmt::format("{}", part.after.n),
               part.in_preset ? errors_text(part.before) : "not there", errors_text(part.after),
               errors_text(part.held_out)});
  }
  std::string out = table.text(style, 0);
  for (const std::string& line : fit.not_fitted) out += "not fitted: " + line + "\n";
  for (const KernelFit& part : fit.fits) {
    out += fmt::format("\n{}\n{}\n", part.part, write_json(constants_json(part), 2));
  }
  return out;
}

JsonText profile_fit_json(const ProfileFit& fit) {
  return JsonText(Value(fit_answer_fields().values(fit)).json(), 1);
}

std::vector<FieldInfo> profile_fit_fields() { return fit_answer_fields().infos(); }

CsvText profile_fit_csv(const ProfileFit& fit) {
  CsvText out = csv_line(
      std::vector<std::string>{"part", "constant", "value", "points", "preset_median_abs_error",
                               "fitted_median_abs_error", "left_out_median_abs_error"});
  for (const KernelFit& part : fit.fits) {
    for (const auto& [name, value] : part.constants) {
      std::string bare = value;
      std::erase(bare, '"');
      out += csv_line(std::vector<std::string>{
          part.part, name, bare, fmt::format("{}", part.after.n),
          part.in_preset ? number_text(part.before.median_abs) : "",
          number_text(part.after.median_abs), number_text(part.held_out.median_abs)});
    }
  }
  return out;
}

std::string fitted_preset(const ProfileFit& fit, const PresetStore& presets) {
  if (std::ranges::all_of(fit.fits, is_collective_fit)) return fitted_fabric(fit, presets);
  FitJson preset = FitJson::parse(read_text_file(presets.path("gpus", fit.profile.gpu)));
  for (const KernelFit& part : fit.fits) {
    if (is_collective_fit(part)) continue;
    FitJson* at = &preset;
    const std::size_t dot = part.part.find('.');
    at = &(*at)[part.part.substr(0, dot)];
    if (dot != std::string::npos) at = &(*at)[part.part.substr(dot + 1)];
    for (const auto& [name, value] : part.constants) {
      (*at)[name] = {{"value", FitJson::parse(value)}, {"source", source_of(fit.profile, part)}};
    }
    if (part.in_preset) continue;
    for (const auto& [name, value] : part.untouched) {
      (*at)[name] = {{"value", FitJson::parse(value)},
                     {"source", "assumed for every card: no point of the profile depends on it"}};
    }
  }
  return write_json(preset, 2) + "\n";
}

}  // namespace lockstep
