/// `--vary` of `lockstep run`, `comm`, `tune`, `plan` and `replay`: the answer for each value.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/search/vary_axes.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// A point of the grid. A value that cannot be is no end of the others: its error is its answer.
struct VariedPoint {
  std::vector<std::string> values;  ///< one of each axis
  std::string error{};              ///< one line; empty where there is an answer
  nlohmann::ordered_json answer{};  ///< as `--format json` of the command has it
  std::string op{};                 ///< of points_by_operation(): which collective's
  [[nodiscard]] bool ok() const { return error.empty(); }
};

/// A point by its values: "64, 1".
std::string point_name(const VariedPoint& point);

struct Varied {
  std::string file;
  std::vector<VaryAxis> axes;
  std::vector<VariedPoint> points;
};

/// "cluster.nodes and batch.micro".
std::string axes_words(const Varied& varied);

/// A point by its axes and values: "cluster.nodes = 64, batch.micro = 1".
std::string named_point(const Varied& varied, const VariedPoint& point);

/// Why points have no answer, a line for each reason: errors that differ in numbers alone are one,
/// with the point whose error it is and how many more there are.
std::vector<std::string> missing_points(const Varied& varied);

/// Asks `answer_to` for each point's changes ("path=value"); an InputError of it is that point's.
/// Throws the last of them where no point has an answer. `done` is told after each point.
Varied vary(std::string file, std::vector<VaryAxis> axes,
            const std::function<nlohmann::ordered_json(const std::vector<std::string>&)>& answer_to,
            const std::function<void()>& done);

/// The point, or where its answer has "operations" (collectives) one for each: `answer` has the
/// numbers of the operation at its largest size in place of those over all rows.
std::vector<VariedPoint> points_by_operation(const VariedPoint& point);

struct ShownNumber;
/// "5.60 s to 10.1 s": of that number (shown_numbers.hpp), in the form of `text`; empty without
/// one.
std::string interval_words(const VariedPoint& point, const ShownNumber& number,
                           std::string (*text)(double));
/// The layout of a point that was searched or changed: "TP 4 PP 8x2 DP 64" with two virtual
/// stages a rank; of a plan the candidate
/// that it chooses.
std::string layout_words(const VariedPoint& point);
/// What the column of these is called, "choice" or "layout"; empty where all points have the same.
std::string_view layout_column(const Varied& varied);

/// How many points draw more than their site has; empty where none does.
std::string exceeded_rows(const Varied& varied);

/// What is assumed of the fabric at some points and not at all of them, each with these points:
/// "2: all 8 nodes of 2 NIC ports are below one leaf". It is why a better fabric or more
/// NICs may be slower there. No more than eight.
std::vector<std::string> fabric_of_points(const Varied& varied);

/// What the points' scenarios say of themselves: the sentences with which all of them begin, and
/// that their layouts were searched where a question without a file had that done.
std::string varied_about(const Varied& varied);

/// What is varied: the scenario's file, or of a question without one its model and node.
std::string varied_subject(const Varied& varied);

/// A row for each point, of collectives for each operation, with a bar for the number that the kind
/// of answer is about.
std::string varied_table(const Varied& by_point, const TextStyle& style);
/// {"file", "axes": [{"path", "values"}], "points": [{"values", "status", "error", "answer"}]}.
nlohmann::ordered_json varied_json(const Varied& varied);
/// The same rows: a column for each axis, of collectives "op", then status, error, every number
/// of the answers' first level, what the table shows beyond it, and shares of the time.
CsvText varied_csv(const Varied& by_point);

}  // namespace lockstep
