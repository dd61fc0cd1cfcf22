#include <array>
#include <fmt/format.h>
#include <stdexcept>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/fields.hpp"
#include "tools/views/tables/command_fields.hpp"
#include "tools/views/tables/validation_output.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const FieldTable<PointSummary>& point_summary_fields() {
  using Of = PointSummary;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("n", "Points.", [](const Of& s) { return s.n; })
          .add("median_abs_error", Better::less, "Median of the errors, without their signs.",
               [](const Of& s) { return s.median_abs; })
          .add("p90_abs_error", Better::less, "9 of 10 errors are no larger.",
               [](const Of& s) { return s.p90_abs; })
          .add("bias", "Median of the errors with their signs.",
               [](const Of& s) { return s.bias; });
  return fields;
}

struct PointMember {
  std::string_view name;
  FieldKind kind;
  std::string_view sentence;
};
// What tells a point apart depends on what was measured. A table has the same at every point.
constexpr std::array kPointMembers{
    PointMember{"id", FieldKind::text, "Its row's name; of --rl and --serving."},
    PointMember{"metric", FieldKind::text, "What was measured, with its unit; of --serving."},
    PointMember{"queue", FieldKind::text, "Its row's name; of --queue."},
    PointMember{"row", FieldKind::text, "Its row's name; of --power."},
    PointMember{"figure", FieldKind::text, "What was measured; of --power and --queue."},
    PointMember{"within", FieldKind::text, "How large the error is promised to be; of --queue."},
    PointMember{"promise", FieldKind::text,
                R"(Of --queue: "kept", "missed", or "reported" without a promise.)"},
    PointMember{"system", FieldKind::text, "The machine; of --nccl."},
    PointMember{"software", FieldKind::text, "Training software; of --rl."},
    PointMember{"engine", FieldKind::text, "Inference engine; of --serving."},
    PointMember{"gpu", FieldKind::text, "Kind of GPU."},
    PointMember{"gpus", FieldKind::integer, "GPUs; of --rl."},
    PointMember{"model", FieldKind::text, "The model; of --rl and --serving."},
    PointMember{"kind", FieldKind::text,
                "Kind of kernel of --profile, of step of --rl, of model of --serving."},
    PointMember{"mode", FieldKind::text, "One pool or two; of --serving."},
    PointMember{"concurrency", FieldKind::text, "Requests at once, as a class; of --serving."},
    PointMember{"by", FieldKind::text,
                "Predicted by the law alone, or corrected by all other points; of --profile."},
    PointMember{"kernel", FieldKind::text, "The kernel; of --memory."},
    PointMember{"implementation", FieldKind::text, "Whose kernel; of --attention and --memory."},
    PointMember{"dtype", FieldKind::text, "Type of elements; of --gemm."},
    PointMember{"pass", FieldKind::text, "Forward, backward or both; of kernels."},
    PointMember{"shape", FieldKind::text, "Size of the kernel; of --memory and --profile."},
    PointMember{"m", FieldKind::number, "Rows of the product; of --gemm."},
    PointMember{"n", FieldKind::number, "Columns of the product; of --gemm."},
    PointMember{"k", FieldKind::number, "Terms of each of its sums; of --gemm."},
    PointMember{"count", FieldKind::number, "Products in one kernel; of --gemm."},
    PointMember{"causal", FieldKind::text, "\"true\" where it is masked; of --attention."},
    PointMember{"sequences", FieldKind::number, "Sequences; of --attention."},
    PointMember{"tokens", FieldKind::number, "Tokens of a sequence; of --attention."},
    PointMember{"heads", FieldKind::number, "Heads of queries; of --attention."},
    PointMember{"kv_heads", FieldKind::number, "Heads of keys and values; of --attention."},
    PointMember{"head_dim", FieldKind::number, "Width of a head; of --attention."},
    PointMember{"op", FieldKind::text, "The collective; of --nccl."},
    PointMember{"nodes", FieldKind::integer, "Nodes; of --nccl."},
    PointMember{"ranks", FieldKind::integer, "GPUs that take part; of --nccl."},
    PointMember{"transport", FieldKind::text, "Network transport; of --nccl."},
    PointMember{"bytes", FieldKind::number, "Size, as nccl-tests counts it; of --nccl."},
    PointMember{"source", FieldKind::text, "Whose measurement it is."},
    PointMember{"basis", FieldKind::text, "Where the measured figure is from; of --queue."}};

constexpr std::array<std::string_view, 4> kPointUnits{"us", "s", "w", ""};

/// A member in each unit that tables have, of which a table has one.
void add_in_units(std::string_view name, const std::string& sentence,
                  std::vector<FieldInfo>& fields) {
  for (const std::string_view unit : kPointUnits) {
    fields.push_back({.name = unit.empty() ? std::string(name) : fmt::format("{}_{}", name, unit),
                      .sentence = sentence,
                      .kind = FieldKind::number,
                      .always = false});
  }
}

std::vector<FieldInfo> members_of_points() {
  std::vector<FieldInfo> out;
  for (const PointMember& member : kPointMembers) {
    out.push_back({.name = std::string(member.name),
                   .sentence = std::string(member.sentence),
                   .kind = member.kind,
                   .always = false});
  }
  add_in_units("measured", "What was measured; without a unit of its own, in that of the figure.",
               out);
  add_in_units("predicted", "What is predicted for it.", out);
  out.push_back(
      {.name = "error", .sentence = "Predicted over measured, less 1.", .kind = FieldKind::number});
  return out;
}

std::vector<FieldInfo> members_of_worst_points() {
  std::vector<FieldInfo> out = members_of_points();
  out.push_back({.name = "repeats",
                 .sentence = "How often its configuration was measured, in all logs.",
                 .kind = FieldKind::integer});
  out.push_back({.name = "logs", .sentence = "In how many logs.", .kind = FieldKind::integer});
  add_in_units("repeat_least", "The least of these.", out);
  add_in_units("repeat_most", "The most of these.", out);
  out.push_back(
      {.name = "reason", .sentence = "What the data say of the reason.", .kind = FieldKind::text});
  return out;
}

std::vector<FieldInfo> members_of_summary() {
  const auto texts = [](const char* name, const char* sentence, bool always) {
    return FieldInfo{
        .name = name, .sentence = sentence, .kind = FieldKind::texts, .always = always};
  };
  return {{.name = "*",
           .sentence = "Errors of a group of points, under its name; \"all\" is of all.",
           .kind = FieldKind::object,
           .always = false,
           .members = point_summary_fields().infos()},
          texts("skipped", "Why points have no prediction, counted.", true),
          texts("notes", "What is to be known of the points.", false),
          texts("missed", "Points that are further off than is promised; of --queue.", false)};
}

/// A member of an object whose order the table says. Every one has to be declared.
void add_declared(Json& out, const std::string& name, Json value,
                  const std::vector<FieldInfo>& members) {
  if (field_at(members, name) == nullptr) {
    throw std::logic_error("no declaration of the point's member " + name);
  }
  out[name] = std::move(value);
}

/// "measured_us"; "measured" where the unit differs from point to point.
std::string with_unit(std::string_view name, char between, const PointTable& table) {
  return table.unit.empty() ? std::string(name) : fmt::format("{}{}{}", name, between, table.unit);
}

std::string value_cell(double value, const PointTable& table) {
  return table.fine ? fmt::format("{:.9g}", value) : significant(value, 4);
}
std::string error_cell(double error, const PointTable& table) {
  if (!table.fine) return error_text(error);
  const std::string text = fmt::format("{:+.4f} %", 100 * error);
  return text == "-0.0000 %" ? "+0.0000 %" : text;
}

Json point_json(const ValidationPoint& point, const PointTable& table,
                const std::vector<FieldInfo>& members) {
  Json object = Json::object();
  const auto add = [&](const std::string& name, Json value) {
    add_declared(object, name, std::move(value), members);
  };
  for (const auto& [key, value] : point.identity) {
    add(key, value.is_number ? Json::parse(value.text) : Json(value.text));
  }
  add(with_unit("measured", '_', table), twelve_digits(point.measured));
  add(with_unit("predicted", '_', table), twelve_digits(point.predicted));
  add("error", twelve_digits(point.error));
  for (const auto& [key, value] : point.details) add(key, value.text);
  return object;
}

Json worst_json(const WorstPoint& worst, const PointTable& table,
                const std::vector<FieldInfo>& members) {
  Json object = point_json(worst.point, table, members);
  const auto add = [&](const std::string& name, Json value) {
    add_declared(object, name, std::move(value), members);
  };
  add("repeats", worst.repeats);
  add("logs", worst.logs);
  add(with_unit("repeat_least", '_', table), twelve_digits(worst.least));
  add(with_unit("repeat_most", '_', table), twelve_digits(worst.most));
  add("reason", worst.reason);
  return object;
}

}  // namespace

std::vector<FieldInfo> point_fields() {
  return {{.name = "points",
           .sentence = "Each point.",
           .kind = FieldKind::objects,
           .members = members_of_points()},
          {.name = "summary",
           .sentence = "Errors of all points, and of groups of them.",
           .kind = FieldKind::object,
           .members = members_of_summary()},
          {.name = "worst",
           .sentence = "Those that are furthest off, worst first; of --nccl.",
           .kind = FieldKind::objects,
           .always = false,
           .members = members_of_worst_points()}};
}

JsonText points_json(const PointTable& table) {
  const std::vector<FieldInfo> members = members_of_points();
  const std::vector<FieldInfo> worst_members = members_of_worst_points();
  Json points = Json::array(), worst = Json::array();
  for (const ValidationPoint& point : table.points) {
    points.push_back(point_json(point, table, members));
  }
  for (const WorstPoint& each : table.worst) {
    worst.push_back(worst_json(each, table, worst_members));
  }
  Json summary = Json::object();
  for (const PointSummary& group : table.summary) {
    summary[group.group] = Value(point_summary_fields().values(group)).json();
  }
  summary["skipped"] = table.skipped;
  if (!table.notes.empty()) summary["notes"] = table.notes;
  if (!table.missed.empty()) summary["missed"] = table.missed;
  Json out{{"points", std::move(points)}, {"summary", std::move(summary)}};
  if (!table.worst.empty()) out["worst"] = std::move(worst);
  return JsonText(out, 1);
}

CsvText points_csv(const PointTable& table) {
  std::vector<std::string> header;
  if (!table.points.empty()) {
    for (const auto& part : table.points.front().identity) header.push_back(part.first);
  }
  header.insert(header.end(),
                {with_unit("measured", '_', table), with_unit("predicted", '_', table), "error"});
  if (!table.points.empty()) {
    for (const auto& part : table.points.front().details) header.push_back(part.first);
  }
  CsvText out = csv_line(header);
  for (const ValidationPoint& point : table.points) {
    std::vector<std::string> cells;
    for (const auto& part : point.identity) cells.push_back(part.second.text);
    cells.insert(cells.end(), {number_text(point.measured), number_text(point.predicted),
                               number_text(point.error)});
    for (const auto& part : point.details) cells.push_back(part.second.text);
    out += csv_line(cells);
  }
  return out;
}

std::string points_table(const PointTable& table, const TextStyle& style) {
  using enum TextTable::Align;
  std::string out;
  if (!table.points.empty()) {
    std::vector<TextTable::Column> columns;
    for (const auto& part : table.points.front().identity) columns.push_back({part.first, left});
    columns.insert(
        columns.end(),
        {{with_unit("measured", ' ', table)}, {with_unit("predicted", ' ', table)}, {"error"}});
    TextTable points(std::move(columns));
    for (const ValidationPoint& point : table.points) {
      std::vector<std::string> cells;
      for (const auto& part : point.identity) cells.push_back(part.second.text);
      cells.insert(cells.end(),
                   {value_cell(point.measured, table), value_cell(point.predicted, table),
                    error_cell(point.error, table)});
      points.add(std::move(cells));
    }
    out += points.text(style, 0) + "\n";
  }
  TextTable summary(
      {{table.what.empty() ? "points" : table.what, left}, {"n"}, {"median"}, {"p90"}, {"bias"}});
  for (const PointSummary& group : table.summary) {
    summary.add({group.group, fmt::format("{}", group.n),
                 fmt::format("{:.1f} %", 100 * group.median_abs),
                 fmt::format("{:.1f} %", 100 * group.p90_abs), error_text(group.bias)});
  }
  out += summary.text(style, 0);
  for (const std::string& note : table.notes) out += note + "\n";
  for (const std::string& reason : table.skipped) out += "skipped: " + reason + "\n";
  return out;
}

}  // namespace lockstep
