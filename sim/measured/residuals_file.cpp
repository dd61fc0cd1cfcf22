#include "sim/measured/residuals_file.hpp"

#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kAbout =
    "Errors of predicted step times of published training runs, log(predicted / measured), by what "
    "was run alike: [row, fitted, left_out, vendor_left_out, as_default, composed]. left_out: with "
    "the row's "
    "source left out of the fit; vendor_left_out: with all sources of its vendor left out; "
    "as_default: predicted with the stack that stands in where none is named, null where it cannot "
    "run the row; composed: with the software composed from what it does, GPU constants and a "
    "common "
    "level that no row of the vendor had a part in. Made by: lockstep fit --leave-out --residuals "
    "FILE. Intervals of predictions "
    "come "
    "from it.";

/// What rows that were run alike have in common.
std::string group_of(const Residual& r) {
  const PredictionTraits& t = r.traits;
  return fmt::format(
      R"({{"source":{},"vendor":{},"stack":{},"release":{},"gpu":{},"architecture":{},)"
      R"("network":{},"fabric":{},"experts":{},"sharded_weights":{},"context":{},"rows":[)",
      json_string(r.source), json_string(r.vendor), json_string(t.stack), json_string(t.release),
      json_string(t.gpu), json_string(t.architecture), json_string(t.network),
      json_string(t.fabric), t.experts, t.sharded_weights, t.context);
}

std::string errors_of(const Residual& r) {
  // A zero has no sign: -0.0000 would be another number to whoever compares what was read.
  const auto number = [](const std::optional<double>& error) {
    const std::string text = error ? fmt::format("{:.4f}", *error) : "null";
    return text == "-0.0000" ? text.substr(1) : text;
  };
  return fmt::format("[{},{},{},{},{},{}]", json_string(r.row), number(r.fitted),
                     number(r.left_out), number(r.vendor_left_out), number(r.as_default),
                     number(r.composed));
}

}  // namespace

std::string residuals_json(const ResidualTable& table) {
  std::string out = fmt::format("{{\n\"about\":{},\n\"groups\":[", json_string(kAbout));
  std::string last;
  for (const Residual& r : table) {
    std::string group = group_of(r);
    if (group != last) {
      out += (last.empty() ? "\n" : "\n]},\n") + group + "\n";
    } else {
      out += ",\n";
    }
    out += errors_of(r);
    last = std::move(group);
  }
  return out + (last.empty() ? "]}\n" : "\n]}\n]}\n");
}

}  // namespace lockstep
