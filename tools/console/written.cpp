#include "tools/console/written.hpp"

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/printable.hpp"
#include "models/base/write_json.hpp"
#include "tools/console/table.hpp"
#include "topologies/formats/xml_text.hpp"

namespace lockstep {
namespace {

/// "-1.5e-3", or a percentage as error_text() writes it, "+3.1 %": a spreadsheet takes it as such.
bool is_signed_number(std::string_view cell) {
  if (cell.ends_with('%')) cell.remove_suffix(1);
  while (cell.ends_with(' ')) cell.remove_suffix(1);
  if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
  if (cell == "inf" || cell == "nan") return true;
  bool digit = false, exponent = false, point = false;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    const char c = cell[i];
    if (c >= '0' && c <= '9') {
      digit = true;
    } else if (c == '.' && !point && !exponent) {
      point = true;
    } else if (c == 'e' && digit && !exponent) {
      exponent = true;
      digit = false;
      const bool has_sign = i + 1 < cell.size() && (cell[i + 1] == '-' || cell[i + 1] == '+');
      if (has_sign) ++i;
    } else {
      return false;
    }
  }
  return digit;
}

bool is_formula(std::string_view cell) {
  return !cell.empty() && std::string_view("=+-@\t\r").find(cell[0]) != std::string_view::npos &&
         !is_signed_number(cell);
}

}  // namespace

std::string MarkdownMedium::escaped(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  std::string out;
  for (const char c : line) {
    if (std::string_view("\\`*_{}[]<>()#|!").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return printable(out);
}

std::string ShellMedium::escaped(std::string_view text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./=:,@%+").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string SvgMedium::escaped(std::string_view text) { return xml_escaped(text); }

std::string CsvMedium::escaped(std::string_view cell) {
  std::string text = printable_lines(cell);
  if (is_formula(text)) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

JsonText::JsonText(const nlohmann::ordered_json& answer, int indent) {
  if (!answer.is_object()) {
    text_ = write_json(answer, indent) + "\n";
    return;
  }
  nlohmann::ordered_json dated{{"lockstep_version", LOCKSTEP_VERSION}};
  dated.update(answer);
  text_ = write_json(dated, indent) + "\n";
}

Answer Answer::terminal(std::string_view lines) { return Answer(terminal_text(lines)); }

}  // namespace lockstep
