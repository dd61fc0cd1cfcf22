#include "tools/lockstep/accuracy/residuals_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/input/write_json.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kAbout =
    "Errors of predicted step times of published training runs, log(predicted / measured): fitted, "
    "with the row's source left out of the fit, and with all sources of its vendor left out; "
    "as_default: "
    "predicted with the stack that stands in where none is named. Made by: lockstep fit "
    "--leave-out --residuals FILE. Intervals of predictions come from it.";

std::string line(const Residual& r) {
  const PredictionTraits& t = r.traits;
  return fmt::format(
      R"({{"row":{},"source":{},"vendor":{},"stack":{},"release":{},"gpu":{},"architecture":{},)"
      R"("network":{},"fabric":{},"experts":{},"sharded_weights":{},"context":{},)"
      R"("fitted":{:.4f},"left_out":{:.4f},"vendor_left_out":{:.4f},"as_default":{}}})",
      json_string(r.row), json_string(r.source), json_string(r.vendor), json_string(t.stack),
      json_string(t.release), json_string(t.gpu), json_string(t.architecture),
      json_string(t.network), json_string(t.fabric), t.experts, t.sharded_weights, t.context,
      r.fitted, r.left_out, r.vendor_left_out,
      r.as_default ? fmt::format("{:.4f}", *r.as_default) : "null");
}

}  // namespace

std::string residuals_json(const ResidualTable& table) {
  std::string out = fmt::format("{{\n\"about\":{},\n\"rows\":[\n", json_string(kAbout));
  for (std::size_t i = 0; i < table.size(); ++i) {
    out += line(table[i]) + (i + 1 < table.size() ? ",\n" : "\n");
  }
  return out + "]}\n";
}

}  // namespace lockstep
