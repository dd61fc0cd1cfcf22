#include "tools/lockstep/report/html.hpp"

#include "models/base/printable.hpp"

namespace lockstep {

Html escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : printable_lines(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return Html::markup(out);
}

Html strong(std::string_view text) {
  return Html::markup("<strong>") + escaped(text) + Html::markup("</strong>");
}

Html script_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";  // "<" stands only within strings of JSON
    } else {
      out += c;
    }
  }
  return Html::markup(out);
}

}  // namespace lockstep
