#include "tools/lockstep/shared_options.hpp"

#include <ostream>

#include "tools/lockstep/output_file.hpp"

namespace lockstep {

TextStyle output_style(const ParsedOptions& options, const Console& console) {
  TextStyle style = console.style;
  if (options.has("output")) style.colour = false;
  return style;
}

void write_output(std::string_view text, const ParsedOptions& options, Console& console) {
  if (!options.has("output")) {
    console.out << text;
    return;
  }
  OutputFile file(options.get("output"));
  file.write(text);
  file.commit();
}

}  // namespace lockstep
