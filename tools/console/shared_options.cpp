#include "tools/console/shared_options.hpp"

#include <charconv>
#include <fmt/format.h>
#include <ostream>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"

namespace lockstep {

int whole_number(const ParsedOptions& options, std::string_view name, int otherwise, int high) {
  if (!options.has(name)) return otherwise;
  const std::string text = options.get(name);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1 || number > high) {
    throw UsageError(fmt::format("--{}: found {}; allowed: a whole number from 1 to {}", name,
                                 in_quotes(text), high));
  }
  return number;
}

Folding folding_of(const ParsedOptions& options) {
  const bool fold = options.has("fold"), unfold = options.has("unfold");
  if (fold && unfold) throw UsageError("--fold: found --unfold beside it; allowed: one of them");
  return fold ? Folding::folded : unfold ? Folding::unfolded : Folding::automatic;
}

TextStyle output_style(const ParsedOptions& options, const Console& console) {
  TextStyle style = console.style;
  if (options.has("output")) {
    style.colour = false;
    style.columns = 0;
  }
  return style;
}

void write_output(const Answer& answer, const ParsedOptions& options, Console& console) {
  if (!options.has("output")) {
    console.out << answer.str();
    return;
  }
  OutputFile file(options.get("output"));
  file.write(answer.str());
  file.commit();
}

}  // namespace lockstep
