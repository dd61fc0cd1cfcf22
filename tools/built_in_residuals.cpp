// Turns models/presets/accuracy/published.json into tables of C++ that the library is compiled with
// (sim/scenario/built_in_residuals.cpp):
//   built_in_residuals FROM.json TO.inc
// The library reads any other text itself, and says what is wrong with it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/os.h>
#include <fstream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;

constexpr std::array kNames{"source", "vendor",       "stack",   "release",
                            "gpu",    "architecture", "network", "fabric"};
constexpr std::array kKinds{"experts", "sharded_weights", "context"};

/// A declaration whose array is as long as the longest name: the tables hold no addresses, which
/// every start of a program would have to fill in.
std::string declared(const std::string& name, std::size_t longest) {
  return fmt::format("  char {}[{}];\n", name, longest + 1);
}

std::string error_or_none(const Json& error) {
  return error.is_null() ? "std::nullopt" : fmt::format("{}", error.get<double>());
}

std::string tables_of(const Json& groups) {
  std::array<std::size_t, kNames.size()> longest{};
  std::size_t longest_row = 0, rows = 0;
  std::string of_groups, of_rows;
  for (const Json& group : groups) {
    of_groups += "{";
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      const auto& name = group.at(kNames[i]).get_ref<const std::string&>();
      longest[i] = std::max(longest[i], name.size());
      of_groups += fmt::format("{:?},", name);
    }
    for (const char* kind : kKinds) of_groups += fmt::format("{},", group.at(kind).get<bool>());
    of_groups += fmt::format("{}}},\n", group.at("rows").size());
    for (const Json& row : group.at("rows")) {
      const auto& name = row.at(0).get_ref<const std::string&>();
      longest_row = std::max(longest_row, name.size());
      of_rows += fmt::format("{{{:?},{},{},{},{},{}}},\n", name, row.at(1).get<double>(),
                             row.at(2).get<double>(), row.at(3).get<double>(),
                             error_or_none(row.at(4)), error_or_none(row.at(5)));
      ++rows;
    }
  }
  std::string out = "struct BuiltInGroup {\n";
  for (std::size_t i = 0; i < kNames.size(); ++i) out += declared(kNames[i], longest[i]);
  for (const char* kind : kKinds) out += fmt::format("  bool {};\n", kind);
  out += "  int rows;\n};\nstruct BuiltInRow {\n" + declared("row", longest_row) +
         "  double fitted, left_out, vendor_left_out;\n"
         "  std::optional<double> as_default, composed;\n};\n";
  out += fmt::format("constexpr BuiltInGroup kGroups[{}] = {{\n{}}};\n", groups.size(), of_groups);
  out += fmt::format("constexpr BuiltInRow kRows[{}] = {{\n{}}};\n", rows, of_rows);
  return out;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  std::ifstream in(words[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  fmt::ostream out = fmt::output_file(words[2]);
  // Compilers warn of a text that is longer than others may take.
  out.print("#pragma GCC system_header\n{}constexpr std::string_view kText = R\"json({})json\";\n",
            tables_of(Json::parse(text).at("groups")), text);
}
